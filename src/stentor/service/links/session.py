"""One connection between two brokers, without sockets: frames in, frames out.

Both sides do the same. Whoever has said hello and `resume` knows whether the other can go on where
they stopped; where not, both say what they hold, and begin a new epoch with a greeting that has
only what differs. Batches that come while senders are held wait, so that acknowledgements pass.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import stentor
from stentor.broker.greetings import LinkDigest
from stentor.errors import RecordError, StoreError
from stentor.service.links.book import LinkBook
from stentor.service.links.frames import (
    NOT_NOW,
    PROTOCOL,
    RESTARTED,
    RING,
    STRANGE,
    TAKEN_OVER,
    Ack,
    Batch,
    DigestFrame,
    Hello,
    LinkRefusedError,
    Resume,
    TreeFrame,
    batch,
    decode,
    encode,
)
from stentor.service.links.store import LinkRow
from stentor.service.settings import NAME

#: Messages that may be on their way, and bytes of one batch.
CREDIT: Final = 5_000
_MOST_BATCH: Final = 1_000_000
_MOST_ROWS: Final = 50


class LinkSession:
    """A connection of the broker of *book*; *may* refuses whoever is not let in.

    All of it runs in the thread that owns the broker.
    """

    def __init__(
        self,
        book: LinkBook,
        *,
        is_dialler: bool,
        may: Callable[[str], None] = lambda name: None,
        credit: int = CREDIT,
    ) -> None:
        self._book, self._is_dialler, self._may, self._credit = book, is_dialler, may, credit
        self._nonce = secrets.token_hex(8)
        self.neighbour = ""
        self.is_open = False
        self.end_reason: LinkRefusedError | None = None
        self.on_end: Callable[[], object] = lambda: None
        self._mine = Resume(epoch="", acknowledged=0, sent=0, received=0)
        self._hello: Hello | None = None
        self._resume: Resume | None = None
        self._epoch = ""
        self._asked = 0  # up to which all that came waits, or is kept
        self._sent = 0  # up to which all was sent
        self._their_credit = 0
        self._pending: deque[Batch] = deque()
        self._known: dict[str, int] = {}  # versions of brokers' states that the other side has

    @property
    def is_waiting(self) -> bool:
        """Whether batches wait because senders are held."""
        return bool(self._pending)

    def begin(self) -> list[bytes]:
        """The first frame."""
        book = self._book
        book.report()
        hello = Hello(
            protocol=PROTOCOL,
            broker=book.broker.name,
            instance=book.tree.instance,
            nonce=self._nonce,
            is_dialler=self._is_dialler,
            time=book.broker.time,
            version=stentor.__version__,
            credit=self._credit,
            states=[*book.tree.states.values()],
            schema=book.schema(),
        )
        return [encode(hello)]

    def take(self, raw: bytes) -> list[bytes]:
        """What to send when *raw* has come; LinkRefusedError where that cannot be."""
        self._check()
        frame = decode(raw)
        if isinstance(frame, Hello) and self._hello is None:
            return self._greeted(frame)
        if isinstance(frame, Resume) and self._hello is not None and self._resume is None:
            return self._compared(frame)
        if isinstance(frame, DigestFrame) and self._resume is not None and not self.is_open:
            return self._began(frame)
        if self.is_open:
            if isinstance(frame, Batch):
                self._queue(frame)
                return self.apply()
            if isinstance(frame, Ack):
                return self._acknowledged(frame)
            if isinstance(frame, TreeFrame):
                return self._heard(frame)
        raise LinkRefusedError(STRANGE, f"no {type(frame).__name__} was expected")

    def end(self, code: int, reason: str) -> None:
        """Let it go; whoever runs it is told by the next call."""
        if self.end_reason is None:
            self.end_reason = LinkRefusedError(code, reason)
            self.on_end()
        account = self._book.accounts.get(self.neighbour)
        if account is not None and account.session is self:
            account.session = None
            with suppress(StoreError):  # a broker that has failed says nothing any more
                self._book.report()

    def _check(self) -> None:
        if self.end_reason is not None:
            raise self.end_reason
        if not self._book.is_current:
            raise LinkRefusedError(RESTARTED, "the store was opened again")

    # Hello.

    def _greeted(self, hello: Hello) -> list[bytes]:
        book, name = self._book, hello.broker
        if hello.protocol != PROTOCOL:
            raise LinkRefusedError(STRANGE, f"protocol {hello.protocol}, expected {PROTOCOL}")
        if not NAME.fullmatch(name):
            raise LinkRefusedError(STRANGE, "no name of a broker")
        self._may(name)
        if name == book.broker.name or book.tree.namesake(hello.states):
            self._refuse(name, STRANGE, f"two brokers are called {book.broker.name!r}; rename one")
        if ring := book.tree.ring(name, hello.states):
            others = ", ".join(sorted(ring))
            reason = f"a link from {book.broker.name} to {name} closes a ring by {others}"
            self._refuse(name, RING, f"{reason}: expected a tree")
        self._hello, self._their_credit = hello, hello.credit
        self.neighbour = name
        self._take_over(name)
        book.refusals.pop(name, None)
        book.tree.take(hello.states)
        self._known = {one.name: one.version for one in hello.states}
        queue = book.store.link_queues.get(name)
        if queue is not None:
            self._mine = Resume(
                epoch=queue.epoch,
                acknowledged=queue.acknowledged,
                sent=queue.sent,
                received=queue.received,
            )
        return [encode(self._mine)]

    def _refuse(self, name: str, code: int, reason: str) -> None:
        self._book.refusals[name] = reason
        raise LinkRefusedError(code, reason)

    def _take_over(self, name: str) -> None:
        """Be the session of *name*; of two that dialled each other the smaller name's stays."""
        account = self._book.accounts.get(name)
        other = None if account is None else account.session
        if other is None or other is self:
            return
        if other._is_dialler != self._is_dialler:
            smaller = min(name, self._book.broker.name)
            dialler = self._book.broker.name if self._is_dialler else name
            if dialler != smaller and other.is_open:
                raise LinkRefusedError(NOT_NOW, "the other connection is used")
        other.end(TAKEN_OVER, "another connection has taken this link over")

    def _compared(self, theirs: Resume) -> list[bytes]:
        self._resume, mine = theirs, self._mine
        can_resume = (
            bool(mine.epoch)
            and mine.epoch == theirs.epoch
            and mine.acknowledged <= theirs.received <= mine.sent
            and theirs.acknowledged <= mine.received <= theirs.sent
        )
        if not can_resume:
            return [encode(DigestFrame(digest=self._book.digest(self.neighbour).to_bytes()))]
        if theirs.received > mine.acknowledged:
            self._book.acknowledge(self.neighbour, theirs.received)
        self._sent, self._asked = theirs.received, mine.received
        return self._opened()

    def _began(self, frame: DigestFrame) -> list[bytes]:
        assert self._hello is not None
        assert self._resume is not None
        nonces = (self._nonce, self._hello.nonce)
        epoch = "-".join(nonces if self._is_dialler else nonces[::-1])
        try:
            held = LinkDigest.from_bytes(frame.digest)
        except RecordError as error:
            raise LinkRefusedError(STRANGE, str(error)) from None
        knows = self._mine.epoch != "" and self._mine.epoch == self._resume.epoch
        received = min(self._resume.received, self._mine.sent) if knows else None
        self._book.begin(self.neighbour, epoch, held, received)
        self._sent = self._asked = 0
        return self._opened()

    def _opened(self) -> list[bytes]:
        assert self._hello is not None
        self.is_open = True
        account = self._book.accounts[self.neighbour]
        account.session, account.problem = self, ""
        account.conflicts = self._book.compare(self.neighbour, self._hello.schema)
        self._book.report()
        return self.more()

    # Batches.

    def _queue(self, frame: Batch) -> None:
        if frame.first != self._asked + 1 or frame.last < frame.first:
            raise LinkRefusedError(STRANGE, f"{frame.first} came after {self._asked}")
        queue = self._book.store.link_queues[self.neighbour]
        if frame.first - queue.received > 2 * self._credit:
            raise LinkRefusedError(STRANGE, "more came than there was credit for")
        self._asked = frame.last
        self._pending.append(frame)

    def apply(self) -> list[bytes]:
        """Let the batches that came happen, unless senders are held; what to send then."""
        self._check()
        if not self._pending or self._book.is_full(self.neighbour):
            return []
        rows = [row for one in self._pending for row in one.rows]
        self._book.receive(self.neighbour, rows, self._asked)
        self._pending.clear()
        return [encode(Ack(seq=self._asked, credit=self._credit)), *self.more()]

    def _acknowledged(self, frame: Ack) -> list[bytes]:
        queue = self._book.store.link_queues[self.neighbour]
        if frame.seq > self._sent:
            raise LinkRefusedError(STRANGE, f"{frame.seq} was never sent")
        self._their_credit = frame.credit
        if frame.seq > queue.acknowledged:
            self._book.acknowledge(self.neighbour, frame.seq)
        return self.more()

    def more(self) -> list[bytes]:
        """What waits, as far as there is credit, and news of the tree."""
        self._check()
        if not self.is_open:
            return []
        book, frames = self._book, []
        queue = book.store.link_queues[self.neighbour]
        book.fresh.discard(self.neighbour)
        while self._sent < queue.sent and self._sent - queue.acknowledged < self._their_credit:
            chosen: list[LinkRow] = []
            size = 0
            for row in book.store.link_rows_after(self.neighbour, self._sent, _MOST_ROWS):
                if chosen and size + len(row.body) > _MOST_BATCH:
                    break
                chosen.append(row)
                size += len(row.body)
            self._sent = chosen[-1].last
            frames.append(batch(chosen))
        return [*frames, *self._news()]

    # The tree.

    def _news(self) -> list[bytes]:
        states = self._book.tree.states
        news = [one for one in states.values() if self._known.get(one.name, -1) < one.version]
        if not news:
            return []
        self._known |= {one.name: one.version for one in news}
        return [encode(TreeFrame(states=news))]

    def _heard(self, frame: TreeFrame) -> list[bytes]:
        book = self._book
        if book.tree.namesake(frame.states):
            self._refuse(self.neighbour, STRANGE, f"two brokers are called {book.broker.name!r}")
        for one in frame.states:
            self._known[one.name] = max(one.version, self._known.get(one.name, -1))
        if book.tree.take(frame.states):
            extra = book.tree.extra_link()
            if extra is not None and book.broker.name in extra:
                other = extra[extra[0] == book.broker.name]
                if other in book.broker.links:
                    book.refusals[other] = f"the link between {extra[0]} and {extra[1]} made a ring"
                    book.remove(other)
            book.news()
        return self.more()
