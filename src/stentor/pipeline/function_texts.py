"""`has_all` and `has_any` over batches of Spark SQL: texts in, truths out."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from stentor.encoding.hashing import BASIS, hash_bytes
from stentor.encoding.readonly import read_only
from stentor.encoding.terms import TermColumns, terms_of_column
from stentor.errors import RecordError
from stentor.language.terms import fold_terms
from stentor.pipeline.function_kernels import Booleans, rows_with_term
from stentor.wire.cells.layout import unwrapped, validity
from stentor.wire.cells.strings import is_string, string_column


def has_all(texts: pa.Array, *words: pa.Array) -> pa.Array:
    """Which of *texts* have every one of *words*; unknown where the text is null."""
    return _has(texts, words, every=True)


def has_any(texts: pa.Array, *words: pa.Array) -> pa.Array:
    """Which of *texts* have at least one of *words*; unknown where the text is null."""
    return _has(texts, words, every=False)


def _has(texts: Any, words: tuple[Any, ...], *, every: bool) -> Any:
    """Cost: the texts are folded once, in 0.2 µs for an ASCII text of nine words."""
    texts = unwrapped(texts)
    if not is_string(texts.type) or len(texts) == 0:
        return pa.nulls(len(texts), pa.bool_())
    strings = string_column(texts)
    terms = terms_of_column(strings.data, strings.offsets, BASIS)
    joined = np.logical_and if every else np.logical_or
    held = joined.reduce([_rows_with_word(terms, _literal(word)) for word in words])
    return pa.array(held, mask=~validity(texts))


def _literal(column: Any) -> str:
    """The one string that a literal's *column* repeats."""
    values = column.unique()
    if len(values) != 1 or not is_string(values.type) or not values[0].is_valid:
        raise RecordError("the words of has_all and has_any are string literals, not columns")
    word: str = values[0].as_py()
    return word


def _rows_with_word(terms: TermColumns, word: str) -> Booleans:
    rows = len(terms.start) - 1
    with_all = np.ones(rows, np.bool_)
    with_one = np.empty(rows, np.bool_)
    for hashed, term in _hashed_terms(word):
        rows_with_term(terms, hashed, term, with_one)
        with_all &= with_one
    return with_all


@lru_cache(maxsize=1024)
def _hashed_terms(word: str) -> list[tuple[np.uint64, Any]]:
    """The terms of *word*, each with its hash."""
    encoded = [term.encode() for term in dict.fromkeys(fold_terms(word))]
    return [
        (np.uint64(hash_bytes(term)), read_only(np.frombuffer(term, np.uint8))) for term in encoded
    ]
