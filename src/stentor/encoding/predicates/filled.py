"""One predicate of a template, filled in for many subscriptions at once; columns of strings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stentor.encoding.columns import Float64, Int64, UInt8, UInt64, read_only
from stentor.encoding.hashing import BASIS, hash_slices, prefix
from stentor.encoding.kinds import NEGATED
from stentor.encoding.slots import NumberSlot, TextSlot
from stentor.language.terms import fold_terms, has_wildcard

#: The code of a word that is not exactly one term.
NOT_ONE_TERM = -1


class StringTable(NamedTuple):
    """Distinct strings in ascending order."""

    start: Int64  # (words + 1,)
    data: UInt8  # (bytes,)
    hash: UInt64  # (words,)
    prefix: Float64  # (words,)


def string_codes(columns: Sequence[Any]) -> tuple[StringTable, Int64]:
    """The table of all strings in *columns*, and their codes (rows × columns)."""
    return _coded(columns, folded=False, seed=BASIS)


def term_codes(columns: Sequence[Any], seed: int) -> tuple[StringTable, Int64]:
    """The same for words folded to terms and hashed with *seed*; NOT_ONE_TERM where it is not."""
    return _coded(columns, folded=True, seed=seed)


def _coded(columns: Sequence[Any], *, folded: bool, seed: int) -> tuple[StringTable, Int64]:
    dictionaries, indices = [], []
    for column in columns:
        values = pa.array(column, pa.large_string()) if isinstance(column, list) else column
        encoded = values.dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        entries = encoded.dictionary.to_pylist()
        dictionaries.append([_term(word) if folded else word for word in entries])
        indices.append(encoded.indices.to_numpy(zero_copy_only=False))
    words = sorted({word for entries in dictionaries for word in entries if word is not None})
    location = {word: code for code, word in enumerate(words)}
    codes = np.empty((len(indices[0]), len(indices)), np.int64)
    for number, (entries, index) in enumerate(zip(dictionaries, indices, strict=True)):
        lookup = np.array(
            [NOT_ONE_TERM if word is None else location[word] for word in entries], np.int64
        )
        codes[:, number] = lookup[index] if len(entries) else NOT_ONE_TERM
    return _table([word.encode() for word in words], seed), codes


def _term(word: str) -> str | None:
    terms = fold_terms(word)
    return terms[0] if len(terms) == 1 and not has_wildcard(word) else None


def _table(words: list[bytes], seed: int) -> StringTable:
    start = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(word) for word in words], out=start[1:])
    data = np.frombuffer(b"".join(words), np.uint8)
    hashes = np.empty(len(words), np.uint64)
    hash_slices(read_only(data), read_only(start), np.uint64(seed), hashes)
    return StringTable(start, data, hashes, np.array([prefix(word) for word in words]))


Constants = Sequence[Any]  # a column of numbers or of strings for each slot


@dataclass(slots=True)
class FilledPredicate:
    """What one predicate of each of n subscriptions puts into the columns."""

    kind: int
    low: Float64  # (n,)
    high: Float64  # (n,)
    odd: npt.NDArray[np.bool_]  # (n,) rows that must take the ordinary way
    pair_low: Float64  # (n, pairs)
    pair_high: Float64  # (n, pairs)
    words: StringTable | None = None
    codes: Int64 = field(default_factory=lambda: np.zeros((0, 0), np.int64))  # (n, strings)
    marks: tuple[int, ...] = ()  # (strings,)


@dataclass(frozen=True, slots=True)
class TemplateRows:
    """The subscriptions to be filled in: their locations and their constants."""

    count: int
    position: Float64  # (n, 2)
    constants: Constants
    plane: bool

    def number(self, value: float) -> Float64:
        """The column of *value*: its slot's, or itself repeated."""
        if isinstance(value, NumberSlot):
            column: Float64 = np.asarray(self.constants[value.slot], np.float64) * value.sign
            return column + 0.0  # -0.0 is 0.0
        return np.full(self.count, float(value))

    def words(self, value: str) -> Any:
        """The column of strings of *value*."""
        if isinstance(value, TextSlot):
            return self.constants[value.slot]
        return [str(value)] * self.count


#: Fills one predicate in; it is made once for a template.
Filler = Callable[[TemplateRows], FilledPredicate]


def negate(filled: FilledPredicate) -> FilledPredicate:
    """*filled* negated: no interval is a hull any more."""
    filled.kind |= NEGATED
    filled.low = np.full_like(filled.low, -math.inf)
    filled.high = np.full_like(filled.high, math.inf)
    return filled


def bounded(kind: int, low: Float64, high: Float64, odd: npt.NDArray[np.bool_]) -> FilledPredicate:
    """A predicate whose hull is *low* … *high*, without operands yet."""
    none = np.zeros((len(low), 0))
    return FilledPredicate(kind, low, high, odd, none, none)


def unbounded(kind: int, count: int, odd: npt.NDArray[np.bool_]) -> FilledPredicate:
    """A predicate whose hull is everything, without operands yet."""
    return bounded(kind, np.full(count, -math.inf), np.full(count, math.inf), odd)


def are_on_globe(x: Float64, y: Float64, plane: bool) -> npt.NDArray[np.bool_]:
    """Whether (x, y) are points, on the globe or in the plane."""
    if plane:
        return np.isfinite(x) & np.isfinite(y)
    return (np.abs(x) <= 180) & (np.abs(y) <= 90)  # False for NaN
