"""What travels between two brokers: MessagePack, checked and bounded.

    hello ⇄ hello          who, its tree, its schema, its time
    resume ⇄ resume        the epoch, what was sent and what has come
    digest ⇄ digest        only where they cannot resume: what each holds of the other
    batch →, ← ack         from then on, both ways; an ack gives credit for more

A frame of more than half a megabyte goes in pieces: each begins with a byte, 1 where more follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from stentor.errors import StentorError
from stentor.service.links.store import LinkRow
from stentor.service.links.tree import MOST_BROKERS, BrokerState

PROTOCOL: Final = 1
#: Bytes of a piece, and of a whole frame.
PIECE: Final = 500_000
MOST_FRAME: Final = 64_000_000

Count = Annotated[int, Meta(ge=0)]


class LinkRefusedError(StentorError):
    """The connection cannot go on: *code* and *reason* go to the other side."""

    def __init__(self, code: int, reason: str) -> None:
        self.code, self.reason = code, reason
        super().__init__(reason)


RING, NOT_NOW, STRANGE, TAKEN_OVER, RESTARTED = 4410, 4411, 4400, 4409, 1012


class KnownAttribute(msgspec.Struct, frozen=True, array_like=True):
    """An attribute as a broker knows it: of which kind, and where that was said."""

    name: str
    kind: str | None
    where: str


class Hello(msgspec.Struct, frozen=True, tag="hello", tag_field="type", kw_only=True):
    """Who speaks; the first frame."""

    protocol: int
    broker: Annotated[str, Meta(min_length=1, max_length=64)]
    instance: str
    nonce: Annotated[str, Meta(min_length=8, max_length=64)]
    is_dialler: bool
    time: int
    version: str
    credit: Annotated[int, Meta(ge=1)]
    states: Annotated[list[BrokerState], Meta(max_length=MOST_BROKERS)]
    schema: list[KnownAttribute]


class Resume(msgspec.Struct, frozen=True, tag="resume", tag_field="type", kw_only=True):
    """What the sender knows of the link: it has *acknowledged* … *sent*, and has *received*."""

    epoch: str
    acknowledged: Count
    sent: Count
    received: Count


class DigestFrame(msgspec.Struct, frozen=True, tag="digest", tag_field="type", kw_only=True):
    """What the sender holds of the receiver."""

    digest: bytes


class MessageRow(msgspec.Struct, frozen=True, array_like=True):
    """Messages that came over so many links."""

    hops: Count
    messages: list[dict[str, Any]]


class Batch(msgspec.Struct, frozen=True, tag="batch", tag_field="type", kw_only=True):
    """Messages from the sequence *first* on."""

    first: Count
    rows: list[MessageRow]

    @property
    def last(self) -> int:
        """The sequence of the last one."""
        return self.first + sum(len(row.messages) for row in self.rows) - 1


class Ack(msgspec.Struct, frozen=True, tag="ack", tag_field="type", kw_only=True):
    """Everything up to *seq* is kept; *credit* more may come."""

    seq: Count
    credit: Count


class TreeFrame(msgspec.Struct, frozen=True, tag="tree", tag_field="type", kw_only=True):
    """News of brokers."""

    states: Annotated[list[BrokerState], Meta(max_length=MOST_BROKERS)]


Frame = Hello | Resume | DigestFrame | Batch | Ack | TreeFrame
_DECODER: Final = msgspec.msgpack.Decoder(Frame)
encode: Final = msgspec.msgpack.Encoder().encode


def batch(rows: Sequence[LinkRow]) -> bytes:
    """The frame that holds *rows*."""
    raw = [msgspec.Raw(row.body) for row in rows]
    return encode({"type": "batch", "first": rows[0].first, "rows": raw})


def decode(raw: bytes) -> Frame:
    """The frame that *raw* is."""
    try:
        found: Frame = _DECODER.decode(raw)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError) as error:
        raise LinkRefusedError(STRANGE, f"no frame of a link: {error}") from None
    return found


def pieces(frame: bytes) -> Iterator[bytes]:
    """*frame* as it is sent."""
    for start in range(0, len(frame), PIECE):
        stop = start + PIECE
        yield (b"\1" if stop < len(frame) else b"\0") + frame[start:stop]


class Assembler:
    """Puts pieces together."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def take(self, piece: bytes) -> bytes | None:
        """The frame that *piece* ends; None where more follow."""
        if not piece or piece[0] > 1:
            raise LinkRefusedError(STRANGE, "no piece of a frame")
        self._parts.append(piece[1:])
        self._size += len(piece)
        if self._size > MOST_FRAME:
            raise LinkRefusedError(1009, f"a frame has at most {MOST_FRAME:,} bytes")
        if piece[0]:
            return None
        found = b"".join(self._parts)
        self._parts, self._size = [], 0
        return found
