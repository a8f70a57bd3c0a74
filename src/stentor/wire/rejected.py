"""A record that cannot be used, as data: why, what it was, where it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

#: How much of a bad record is kept, in characters.
MOST_RAW: Final = 2_000


class RecordLocation(NamedTuple):
    """Where a record was: in a file of lines, or in a table or document."""

    line: int | None = None  # counted from 1
    offset: int | None = None  # of the line's first byte in the file
    row: int | None = None  # counted from 0


@dataclass(frozen=True, slots=True)
class Rejected:
    """A bad line of a file or a bad row of a table; it never stops what follows it."""

    reason: str
    raw: str
    """What came, cut to `MOST_RAW` characters; bytes that are no UTF-8 are shown as U+FFFD."""
    line: int | None = None
    """Of a file, counted from 1."""
    offset: int | None = None
    """Of the line's first byte in the file."""
    row: int | None = None
    """Of a table, counted from 0."""


def raw_text(raw: bytes | str) -> str:
    """*raw* as a `Rejected` keeps it."""
    # A character has at most four bytes.
    text = raw if isinstance(raw, str) else raw[: 4 * MOST_RAW].decode("utf-8", "replace")
    return text if len(text) <= MOST_RAW else text[:MOST_RAW] + "…"
