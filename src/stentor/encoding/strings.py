"""Whole columns of strings: their codes, hashes and single terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import Float64, Int64, UInt8, UInt64, read_only
from stentor.encoding.hashing import BASIS, hash_slices, prefix
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
