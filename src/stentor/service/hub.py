"""Between the owner thread and the sockets, in the loop: who is to be told what was committed.

A `Feed` gives one connection the rows of one client's queue in order: those that were just
committed while it keeps up, and from the disk whatever it is behind. Nobody waits for it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

from stentor.errors import StentorError
from stentor.service.core import Core
from stentor.service.outbox import Gap, Key, OutboxRow
from stentor.service.owner import Owner, Question
from stentor.service.rates import Rate
from stentor.service.recent import Seen
from stentor.service.records import CoreOutput, Records, RecordsAnswer
from stentor.service.settings import ServeSettings

#: Bytes of rows that wait in memory for one connection; others are read again from the disk.
MOST_WAITING: Final = 1_000_000
#: Events that wait for somebody who watches, between two frames.
MOST_WATCHED: Final = 500

Found = TypeVar("Found")
_PIECES: Final = msgspec.json.Decoder(list[msgspec.Raw])


class FeedClosedError(Exception):
    """The feed was ended: *code* and *reason* go to the client."""

    def __init__(self, code: int, reason: str) -> None:
        self.code, self.reason = code, reason
        super().__init__(reason)


class Feed:
    """The deliveries of one client for one connection, from *position* on.

    At most *window* are given beyond what is acknowledged; None: any number.
    """

    def __init__(self, hub: Hub, key: Key, position: int, last: int, window: int | None) -> None:
        self._hub, self.key = hub, key
        self._position, self._last = position, last
        self._window = window
        self.acknowledged = position
        self._rows: deque[OutboxRow] = deque()
        self._bytes = 0
        self._is_reading = False
        self._changed = asyncio.Event()
        self._end: FeedClosedError | None = None

    def take(self, rows: list[OutboxRow]) -> None:
        """Hear of rows that were just committed."""
        for row in rows:
            tail = self._rows[-1].last if self._rows else self._position
            is_next = row.first == tail + 1 and not self._is_reading
            if is_next and self._bytes < MOST_WAITING and self._may_go_on(tail):
                self._rows.append(row)
                self._bytes += len(row.body)
            self._last = row.last
        self._changed.set()

    def look_again(self) -> None:
        """Look on the disk: it is not known what the queue holds."""
        self._last = max(self._last, self._position + 1)
        self._changed.set()

    def acknowledge(self, seq: int) -> None:
        """Take note that the client has all up to *seq*."""
        self.acknowledged = max(self.acknowledged, seq)
        self._changed.set()

    def close(self, code: int, reason: str) -> None:
        """End it."""
        self._end = self._end or FeedClosedError(code, reason)
        self._changed.set()

    def _may_go_on(self, position: int) -> bool:
        return self._window is None or position - self.acknowledged < self._window

    async def next(self) -> list[OutboxRow | Gap]:
        """What comes next, once there is something; FeedClosedError where nothing more will."""
        while True:
            self._changed.clear()
            if self._end is not None:
                raise self._end
            if self._rows:
                found: list[OutboxRow | Gap] = [*self._rows]
                self._position = self._rows[-1].last
                self._rows.clear()
                self._bytes = 0
                return found
            if self._last > self._position and self._may_go_on(self._position):
                if found := await self._read():
                    return found
                continue
            await self._changed.wait()

    async def _read(self) -> list[OutboxRow | Gap]:
        """What the disk has after the position; empty where that is nothing."""
        self._is_reading, self._last = True, self._position
        try:
            gap, rows = await self._hub.rows_after(self.key, self._position)
        finally:
            self._is_reading = False
        found: list[OutboxRow | Gap] = []
        if gap is not None:
            found.append(gap)
            self._position = gap.last
        for row in rows:
            found.append(after(row, self._position))
            self._position = row.last
        if rows:
            self._last = max(self._last, self._position + 1)  # there may be more
        return found


def after(row: OutboxRow, position: int) -> OutboxRow:
    """What *row* holds after *position*."""
    if row.first > position:
        return row
    pieces = _PIECES.decode(b"[%b]" % row.body)[position + 1 - row.first :]
    return OutboxRow(position + 1, row.last, row.time, b",".join(bytes(one) for one in pieces))


class Watcher:
    """What somebody of *owner* who watches is told: events, and changes of subscriptions."""

    def __init__(self, owner: str, *, sees_all: bool) -> None:
        self.owner, self._sees_all = owner, sees_all
        self.events: list[Seen] = []
        self.withdrawn: list[str] = []
        self.skipped = 0
        self.changed: dict[str, bool] = {}
        self.wants_events = self.wants_subscriptions = False

    def take(self, output: CoreOutput) -> None:
        """Hear of what was just committed."""
        if self.wants_events:
            for seen in output.seen:
                if self._sees_all or seen.owner == self.owner:
                    if len(self.events) < MOST_WATCHED:
                        self.events.append(seen)
                    else:
                        self.skipped += 1
            self.withdrawn += [
                id for owner, id in output.withdrawn if self._sees_all or owner == self.owner
            ]
            del self.withdrawn[:-MOST_WATCHED]
        if self.wants_subscriptions and self.owner in output.changed:
            self.changed |= output.changed[self.owner]


class Hub:
    """The door to the owner thread, for everything that runs in the loop."""

    def __init__(self, settings: ServeSettings, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self.owner = Owner(settings, self._from_owner, clock)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._feeds: dict[Key, Feed] = {}
        self.watchers: set[Watcher] = set()
        self._waiters: dict[Key, list[asyncio.Event]] = {}
        self.link_events: dict[str, asyncio.Event] = {}  # set when something waits for a neighbour
        self.connections: dict[str, int] = {}
        self.event_rate, self.delivery_rate = Rate(), Rate()
        self._started = time.monotonic()

    @property
    def uptime(self) -> float:
        """Seconds since it was made."""
        return time.monotonic() - self._started

    async def start(self) -> None:
        """Open the store; what is wrong with it is raised."""
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self.owner.start)

    async def stop(self) -> None:
        """Let what waits be committed and answered, then let go of the store."""
        await asyncio.to_thread(self.owner.stop)
        await asyncio.sleep(0)  # the last answers

    def close_feeds(self, code: int, reason: str) -> None:
        """End all connections that are given deliveries."""
        for feed in self._feeds.values():
            feed.close(code, reason)
        for waiters in self._waiters.values():
            for waiter in waiters:
                waiter.set()

    # To the owner thread.

    async def ask(self, question: Callable[[Core], Found]) -> Found:
        """The answer of the core to *question*, in its turn; its error is raised."""
        future: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        self.owner.put(Question(question, lambda answer: _resolve(future, answer)))
        return await future

    async def submit(self, records: Records) -> RecordsAnswer:
        """What *records* led to, once it is kept."""
        future: asyncio.Future[RecordsAnswer] = asyncio.get_running_loop().create_future()
        self.submit_soon(records, lambda answer: _resolve(future, answer))
        return await future

    def submit_soon(self, records: Records, reply: Callable[[Any], None]) -> None:
        """Let *records* happen; what they led to goes to *reply*, in the loop."""
        records.reply, records.arrived = reply, time.perf_counter()
        self.owner.put(records, max(len(records.raws), 1))

    def acknowledge(self, key: Key, seq: int) -> None:
        """Take note that the client *key* has all up to *seq*."""
        self.owner.put((key, seq))
        if feed := self._feeds.get(key):
            feed.acknowledge(seq)

    async def rows_after(self, key: Key, position: int) -> tuple[Gap | None, list[OutboxRow]]:
        """The gap after *position*, if there is one, and the next rows on the disk."""

        def read(core: Core) -> tuple[Gap | None, list[OutboxRow]]:
            queue = core.store.queues.get(key)
            gap = None if queue is None else queue.gap(position)
            return gap, core.store.rows_after(key, position if gap is None else gap.last)

        return await self.ask(read)

    # Feeds.

    async def open_feed(self, key: Key, at: int | None, window: int | None) -> tuple[Feed, int]:
        """The deliveries of *key* after *at* (None: what is acknowledged), and the last sequence.

        Whoever had them before is told that somebody else has them now.
        """

        def state(core: Core) -> tuple[int, int]:
            queue = core.store.queues.get(key)
            return (0, 0) if queue is None else (queue.acknowledged, queue.last)

        acknowledged, last = await self.ask(state)
        position = acknowledged if at is None else max(at, acknowledged)
        feed = Feed(self, key, position, last, window)
        if older := self._feeds.get(key):
            older.close(4409, "another connection has taken this client over")
        self._feeds[key] = feed
        feed.look_again()
        return feed, last

    def close_feed(self, feed: Feed) -> None:
        """Give *feed* nothing any more."""
        if self._feeds.get(feed.key) is feed:
            del self._feeds[feed.key]

    def is_fed(self, key: Key) -> bool:
        """Whether a connection is given the deliveries of *key*."""
        return key in self._feeds

    async def wait_for(self, key: Key, seconds: float) -> None:
        """Wait until the client *key* is given something, but no longer."""
        waiter = asyncio.Event()
        self._waiters.setdefault(key, []).append(waiter)
        try:
            await asyncio.wait_for(waiter.wait(), seconds)
        except TimeoutError:
            pass
        finally:
            self._waiters[key].remove(waiter)
            if not self._waiters[key]:
                del self._waiters[key]

    # From the owner thread.

    def _from_owner(
        self, output: CoreOutput, replies: list[tuple[Callable[[Any], None], Any]]
    ) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has ended: nobody is left to be told
            self._loop.call_soon_threadsafe(self._answer, output, replies)

    def _answer(self, output: CoreOutput, replies: list[tuple[Callable[[Any], None], Any]]) -> None:
        for reply, answer in replies:
            reply(answer)
        for key, rows in output.rows.items():
            self.delivery_rate.add(rows[-1].last - rows[0].first + 1)
            if feed := self._feeds.get(key):
                feed.take(rows)
            for waiter in self._waiters.get(key, ()):
                waiter.set()
        for neighbour in output.linked:
            if event := self.link_events.get(neighbour):
                event.set()
        if output.seen:
            self.event_rate.add(len(output.seen))
        if output.seen or output.changed or output.withdrawn:
            for watcher in self.watchers:
                watcher.take(output)
        if self.settings.queue.policy == "disconnect":
            for key in output.overfull:
                if feed := self._feeds.get(key):
                    feed.close(1013, "the client's queue is full")
        if output.is_reopened:
            for feed in self._feeds.values():
                feed.look_again()


def _resolve(future: asyncio.Future[Any], answer: Any) -> None:
    if future.done():
        return
    if isinstance(answer, StentorError):
        future.set_exception(answer)
    else:
        future.set_result(answer)
