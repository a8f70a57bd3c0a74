"""Terms of whole text columns: folded, split and hashed, without a Python object per ASCII row.

Rows of ASCII bytes, most rows of most columns, take one pass of a kernel over Arrow's own buffers.
The others go through `fold_terms` one by one and are merged in. Both ways give the same terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from stentor._jit import kernel
from stentor.encoding.columns import Int64, UInt8, UInt64, read_only
from stentor.encoding.hashing import absorb, finish, hash_slices
from stentor.errors import RecordError
from stentor.language.predicates.elements import member_term
from stentor.language.terms import fold_terms
from stentor.model.values.members import read_set

Booleans = NDArray[np.bool_]
Values = TypeVar("Values", Int64, UInt64, UInt8)

# What each byte folds to: a letter or digit, SEPARATES, or NOT_ASCII.
SEPARATES: Final = 0
NOT_ASCII: Final = 255
FOLDED: Final = np.array(
    [
        NOT_ASCII if byte > 127 else ord(chr(byte).lower()) if chr(byte).isalnum() else SEPARATES
        for byte in range(256)
    ],
    np.uint8,
)


class TermColumns(NamedTuple):
    """The terms of each row of a text column, in the order of the text, with repetitions.

    Row `i` has the terms `start[i]:start[i + 1]`; a term's UTF-8 bytes are
    `data[byte_start:byte_stop]`.
    """

    start: Int64  # (rows + 1,)
    hash: UInt64  # (terms,)
    byte_start: Int64  # (terms,)
    byte_stop: Int64  # (terms,)
    data: UInt8  # (bytes,)


def terms_of_texts(texts: Sequence[str], seed: int) -> TermColumns:
    """The terms of *texts*, hashed with *seed* (see `attribute_seed`).

    >>> columns = terms_of_texts(["iPad discount", "", "東京都"], seed=1)
    >>> columns.start
    array([0, 2, 2, 4])
    >>> bytes(columns.data[columns.byte_start[3] : columns.byte_stop[3]]).decode()
    '京都'
    """
    # "?" stands for a lone surrogate: it separates as well.
    encoded = [text.encode("utf-8", "replace") for text in texts]
    return terms_of_column(_bytes(encoded), _offsets(encoded), seed)


def terms_of_column(data: UInt8, offsets: Int64, seed: int) -> TermColumns:
    """The terms of the UTF-8 texts `data[offsets[i]:offsets[i + 1]]`, hashed with *seed*.

    *data* and *offsets* are the buffers of an Arrow string column (offsets of 32 bits are widened)
    or of a slice of one; the caller sees to it that the text of a null is empty.

    Cost: about 0.2 µs for an ASCII row of nine terms; 5 to 20 µs for another.
    """
    data = read_only(np.ascontiguousarray(data))
    offsets = read_only(np.ascontiguousarray(offsets, np.int64))
    _check_offsets(offsets, len(data))
    is_ascii = np.empty(len(offsets) - 1, np.bool_)
    width = int(offsets[-1] - offsets[0])
    # Enough for terms of three letters on average; a column of shorter ones is done again.
    out = _capacity(len(is_ascii), width // 4 + len(is_ascii), width)
    terms, used = fold_ascii_rows(data, offsets, np.uint64(seed), is_ascii, out)
    if terms > len(out.hash):
        out = _capacity(len(is_ascii), terms, width)
        terms, used = fold_ascii_rows(data, offsets, np.uint64(seed), is_ascii, out)
    columns = TermColumns(
        out.start, out.hash[:terms], out.byte_start[:terms], out.byte_stop[:terms], out.data[:used]
    )
    return columns if is_ascii.all() else _merge_other_rows(columns, is_ascii, data, offsets, seed)


def terms_of_sets(data: UInt8, offsets: Int64, seed: int) -> TermColumns:
    """The members of sets as terms: the texts of the sets are as `terms_of_column` takes them.

    Cost: about 1 µs for a member.
    """
    bounds = offsets.tolist()
    texts = (data[start:stop].tobytes() for start, stop in pairwise(bounds))
    members = [
        [member_term(one).encode() for one in read_set(text.decode()).members] if text else []
        for text in texts
    ]
    encoded = [term for own in members for term in own]
    heap, starts = _bytes(encoded), _offsets(encoded)
    hashes = np.empty(len(encoded), np.uint64)
    hash_slices(heap, read_only(starts), np.uint64(seed), hashes)
    counts = np.cumsum([0, *map(len, members)], dtype=np.int64)
    return TermColumns(counts, hashes, starts[:-1], starts[1:], heap)


@kernel
def fold_ascii_rows(
    data: UInt8, offsets: Int64, seed: np.uint64, is_ascii: Booleans, out: TermColumns
) -> tuple[int, int]:
    """Fill *out* with the terms of all ASCII rows; returns how many terms and bytes there are.

    Other rows are marked in *is_ascii* and have no terms yet. Terms past the end of *out* are only
    counted. `out.data` must be as long as the texts together: a term is no longer than its text.
    """
    term = 0
    position = 0
    for row in range(len(is_ascii)):
        out.start[row] = term
        row_start = position
        term_start = position
        value = seed
        is_ascii[row] = True
        for byte in data[offsets[row] : offsets[row + 1]]:
            folded = FOLDED[byte]
            if folded == NOT_ASCII:
                is_ascii[row] = False
                break
            if folded != SEPARATES:
                out.data[position] = folded
                position += 1
                value = absorb(value, folded)
            elif position > term_start:
                write_term(out, term, value, term_start, position)
                term += 1
                term_start = position
                value = seed
        if not is_ascii[row]:
            term = out.start[row]
            position = row_start
        elif position > term_start:
            write_term(out, term, value, term_start, position)
            term += 1
    out.start[len(is_ascii)] = term
    return term, position


@kernel
def write_term(out: TermColumns, term: int, value: np.uint64, start: int, stop: int) -> None:
    """Write one term, whose absorbed bytes gave *value*, if it fits into *out*."""
    if term < len(out.hash):
        out.hash[term] = finish(value)
        out.byte_start[term] = start
        out.byte_stop[term] = stop


def _merge_other_rows(
    columns: TermColumns, is_ascii: Booleans, data: UInt8, offsets: Int64, seed: int
) -> TermColumns:
    """*columns* with the terms of the rows that are not ASCII, in the order of rows."""
    others = np.flatnonzero(~is_ascii)
    # Bytes that are no UTF-8 are read as U+FFFD, which separates.
    texts = (
        data[offsets[row] : offsets[row + 1]].tobytes().decode("utf-8", "replace") for row in others
    )
    terms_by_row = [fold_terms(text) for text in texts]
    encoded = [term.encode() for terms in terms_by_row for term in terms]
    heap, bounds = _bytes(encoded), _offsets(encoded)
    hashes = np.empty(len(encoded), np.uint64)
    hash_slices(heap, read_only(bounds), np.uint64(seed), hashes)
    bounds += len(columns.data)

    counts = np.diff(columns.start)
    counts[others] = [len(terms) for terms in terms_by_row]
    from_ascii = np.repeat(is_ascii, counts)

    def merged(ascii_values: Values, other_values: Values) -> Values:
        values = np.empty(len(from_ascii), ascii_values.dtype)
        values[from_ascii] = ascii_values
        values[~from_ascii] = other_values
        return values

    return TermColumns(
        start=np.concatenate(([0], np.cumsum(counts))),
        hash=merged(columns.hash, hashes),
        byte_start=merged(columns.byte_start, bounds[:-1]),
        byte_stop=merged(columns.byte_stop, bounds[1:]),
        data=np.concatenate((columns.data, heap)),
    )


def _capacity(rows: int, terms: int, width: int) -> TermColumns:
    return TermColumns(
        start=np.empty(rows + 1, np.int64),
        hash=np.empty(terms, np.uint64),
        byte_start=np.empty(terms, np.int64),
        byte_stop=np.empty(terms, np.int64),
        data=np.empty(width, np.uint8),
    )


def _bytes(pieces: list[bytes]) -> UInt8:
    return read_only(np.frombuffer(b"".join(pieces), np.uint8))


def _offsets(pieces: list[bytes]) -> Int64:
    offsets = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum([len(piece) for piece in pieces], out=offsets[1:])
    return offsets


def _check_offsets(offsets: Int64, width: int) -> None:
    """Refuse *offsets* with which a kernel would read outside of its *width* bytes."""
    if len(offsets) == 0 or offsets[0] < 0 or offsets[-1] > width or np.any(np.diff(offsets) < 0):
        raise RecordError(
            f"text offsets must rise from 0 to at most {width}, the length of the text buffer, and "
            "these do not; the Arrow array is damaged: try validate(full=True) on it"
        )
