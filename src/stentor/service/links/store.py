"""What waits for neighbours, what they were announced and hold, and what has come from them.

A row of `link_outbox` holds what one commit sends one neighbour: messages *first* … *last* as
MessagePack, ready to be sent. It goes when the neighbour has kept it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from stentor.broker.store import Store

LINK_TABLES: Final = (
    """CREATE TABLE links (
    neighbour TEXT PRIMARY KEY, epoch TEXT NOT NULL, received INTEGER NOT NULL,
    acknowledged INTEGER NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE link_outbox (
    neighbour TEXT NOT NULL, last INTEGER NOT NULL, first INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (neighbour, last)) WITHOUT ROWID""",
    """CREATE TABLE announced (
    neighbour TEXT NOT NULL, name TEXT NOT NULL, digest INTEGER NOT NULL,
    PRIMARY KEY (neighbour, name)) WITHOUT ROWID""",
    """CREATE TABLE holders (
    neighbour TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (neighbour, id)) WITHOUT ROWID""",
)


class LinkRow(NamedTuple):
    """Messages *first* … *last* for a neighbour."""

    first: int
    last: int
    body: bytes


class LinkQueue:
    """What is known of a link without a look at the disk."""

    __slots__ = ("acknowledged", "bytes", "epoch", "received", "rows", "sent")

    def __init__(self, epoch: str, received: int, acknowledged: int) -> None:
        self.epoch, self.received, self.acknowledged = epoch, received, acknowledged
        self.sent = acknowledged
        self.bytes = 0
        self.rows: deque[tuple[int, int]] = deque()  # last, bytes

    def add(self, last: int, size: int) -> None:
        """Take note of a row at the end."""
        self.rows.append((last, size))
        self.bytes += size
        self.sent = last

    @property
    def queued(self) -> int:
        """Messages that the neighbour has not kept yet."""
        return self.sent - self.acknowledged


class LinkStore(Store):
    """A broker's store with its links in the same transactions."""

    keeps_links = True

    def __init__(self, path: str | Path) -> None:
        self.link_queues: dict[str, LinkQueue] = {}
        super().__init__(path)

    def _load_links(self) -> None:
        rows = self._database.rows
        for neighbour, *known in rows("SELECT * FROM links"):
            with self.reading("links"):
                self.link_queues[neighbour] = LinkQueue(*known)
        sizes = "SELECT neighbour, last, length(body) FROM link_outbox ORDER BY neighbour, last"
        for neighbour, last, size in rows(sizes):
            with self.reading("link_outbox"):
                self.link_queues[neighbour].add(last, size)

    def put_link(self, neighbour: str, count: int, body: bytes) -> None:
        """Let *count* messages wait for *neighbour*."""
        queue = self.link_queues[neighbour]
        first, last = queue.sent + 1, queue.sent + count
        self._run("INSERT INTO link_outbox VALUES (?, ?, ?, ?)", neighbour, last, first, body)
        queue.add(last, len(body))

    def link_rows_after(self, neighbour: str, after: int, most: int) -> list[LinkRow]:
        """The first *most* rows for *neighbour* after the sequence *after*."""
        question = (
            "SELECT first, last, body FROM link_outbox WHERE neighbour = ? AND last > ? "
            "ORDER BY last LIMIT ?"
        )
        return [LinkRow(*row) for row in self._database.rows(question, neighbour, after, most)]

    def begin_link(self, neighbour: str, epoch: str) -> None:
        """Begin a new *epoch* with *neighbour*: nothing waits, nothing has come."""
        self.forget_link(neighbour)
        self._run("INSERT INTO links VALUES (?, ?, 0, 0)", neighbour, epoch)
        self.link_queues[neighbour] = LinkQueue(epoch, 0, 0)

    def forget_link(self, neighbour: str) -> None:
        """Forget the link to *neighbour*, and what waits for it."""
        self.link_queues.pop(neighbour, None)
        for table in ("links", "link_outbox", "announced", "holders"):
            self._run(f"DELETE FROM {table} WHERE neighbour = ?", neighbour)

    def received_up_to(self, neighbour: str, seq: int) -> None:
        """Take note that everything of *neighbour* up to *seq* is kept here."""
        self.link_queues[neighbour].received = seq
        self._run("UPDATE links SET received = ? WHERE neighbour = ?", seq, neighbour)

    def link_acknowledged(self, neighbour: str, seq: int) -> None:
        """Forget what *neighbour* has kept: everything up to *seq*."""
        queue = self.link_queues[neighbour]
        queue.acknowledged = seq
        while queue.rows and queue.rows[0][0] <= seq:
            queue.bytes -= queue.rows.popleft()[1]
        self._run("UPDATE links SET acknowledged = ? WHERE neighbour = ?", seq, neighbour)
        delete = "DELETE FROM link_outbox WHERE neighbour = ? AND last <= ?"
        self._run(delete, neighbour, seq)

    # What neighbours have.

    def keep_announced(self, neighbour: str, digests: Mapping[str, int | None]) -> None:
        """Keep what *neighbour* was announced, by name; None: nothing any more."""
        for name, digest in digests.items():
            if digest is None:
                delete = "DELETE FROM announced WHERE neighbour = ? AND name = ?"
                self._run(delete, neighbour, name)
            else:
                insert = "INSERT OR REPLACE INTO announced VALUES (?, ?, ?)"
                self._run(insert, neighbour, name, digest)

    def announced(self, neighbour: str) -> dict[str, int]:
        """What *neighbour* was announced: digests by name."""
        question = "SELECT name, digest FROM announced WHERE neighbour = ?"
        return dict(self._database.rows(question, neighbour))

    def keep_holders(self, neighbour: str, changes: Mapping[str, bool]) -> None:
        """Keep which live events *neighbour* is known to have from now on, or not."""
        for id, has in changes.items():
            if has:
                self._run("INSERT OR IGNORE INTO holders VALUES (?, ?)", neighbour, id)
            else:
                self._run("DELETE FROM holders WHERE neighbour = ? AND id = ?", neighbour, id)

    def holders(self, neighbour: str) -> list[str]:
        """The live events that *neighbour* is known to have."""
        question = "SELECT id FROM holders WHERE neighbour = ?"
        return [id for (id,) in self._database.rows(question, neighbour)]


class TrackedIds(set[str]):
    """Ids, and what has changed of them since the last `taken`."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        super().__init__(ids)
        self._changes: dict[str, bool] = {}

    def add(self, id: str) -> None:
        if id not in self:
            super().add(id)
            self._changes[id] = True

    def discard(self, id: object) -> None:
        if isinstance(id, str) and id in self:
            super().discard(id)
            self._changes[id] = False

    def __ior__(self, ids: Any) -> TrackedIds:  # type: ignore[override,misc]
        for id in ids:
            self.add(id)
        return self

    def clear(self) -> None:
        for id in [*self]:
            self.discard(id)

    def taken(self) -> dict[str, bool]:
        """What has come, and what has gone."""
        changes, self._changes = self._changes, {}
        return changes
