"""The leading bytes of a string as a number that keeps the order of strings.

A string's place among numbers: `a <= b` (by code points, which is by UTF-8 bytes) implies
`prefix(a) <= prefix(b)`. So an index can treat strings as one more numeric dimension, and the
verifier compares the whole bytes.
"""

from __future__ import annotations

#: Six bytes are what a double holds exactly.
PREFIX_BYTES = 6


def prefix(data: bytes, fill: bytes = b"\0") -> float:
    """The first six bytes of *data* as a number, a shorter string filled up with *fill*.

    >>> prefix(b"a") < prefix(b"ab") < prefix(b"b")
    True
    """
    return float(int.from_bytes(data[:PREFIX_BYTES].ljust(PREFIX_BYTES, fill), "big"))
