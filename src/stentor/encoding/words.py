"""Columns of strings as codes of a table: each distinct string is folded and hashed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import Float64, Int64, UInt8, UInt64
from stentor.encoding.hashing import BASIS, hash_slices
from stentor.encoding.prefix import prefix
from stentor.language.terms import fold_terms

#: The code of a word that is not exactly one term.
NOT_ONE_TERM = -1


class WordTable(NamedTuple):
    """Distinct strings in ascending order."""

    start: Int64  # (words + 1,)
    data: UInt8  # (bytes,)
    hash: UInt64  # (words,)
    prefix: Float64  # (words,)


def whole_strings(columns: Sequence[Any]) -> tuple[WordTable, Int64]:
    """The table of all strings in *columns*, and their codes (rows × columns)."""
    return _coded(columns, folded=False, seed=BASIS)


def single_terms(columns: Sequence[Any], seed: int) -> tuple[WordTable, Int64]:
    """The same for words folded to terms and hashed with *seed*; NOT_ONE_TERM where it is not."""
    return _coded(columns, folded=True, seed=seed)


def _coded(columns: Sequence[Any], *, folded: bool, seed: int) -> tuple[WordTable, Int64]:
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
    place = {word: code for code, word in enumerate(words)}
    codes = np.empty((len(indices[0]), len(indices)), np.int64)
    for number, (entries, index) in enumerate(zip(dictionaries, indices, strict=True)):
        lookup = np.array(
            [NOT_ONE_TERM if word is None else place[word] for word in entries], np.int64
        )
        codes[:, number] = lookup[index] if len(entries) else NOT_ONE_TERM
    return _table([word.encode() for word in words], seed), codes


def _term(word: str) -> str | None:
    terms = fold_terms(word)
    return terms[0] if len(terms) == 1 else None


def _table(words: list[bytes], seed: int) -> WordTable:
    start = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(word) for word in words], out=start[1:])
    data = np.frombuffer(b"".join(words), np.uint8)
    hashes = np.empty(len(words), np.uint64)
    hash_slices(data, start, np.uint64(seed), hashes)
    return WordTable(start, data, hashes, np.array([prefix(word) for word in words]))
