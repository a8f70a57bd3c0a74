"""`has_all`, `has_any` and `has_phrase` over batches of Spark SQL: texts in, truths out."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import read_only
from stentor.encoding.hashing import BASIS, hash_bytes
from stentor.encoding.terms import TermColumns, terms_of_column
from stentor.language.predicates.keywords import has_run
from stentor.language.terms import fold_terms
from stentor.pipeline.sql.kernels import Booleans, rows_by_text, rows_with_term
from stentor.wire.cells.layout import plain_array, validity
from stentor.wire.cells.string import is_string, string_column


def has_all(texts: pa.Array, *words: pa.Array) -> pa.Array:
    """Which of *texts* have every one of *words*; unknown where either is null."""
    return _has(texts, words, every=True)


def has_any(texts: pa.Array, *words: pa.Array) -> pa.Array:
    """Which of *texts* have at least one of *words*; unknown where either is null."""
    return _has(texts, words, every=False)


def has_phrase(texts: pa.Array, phrases: pa.Array) -> pa.Array:
    """Which of *texts* have the terms of *phrases* in a row; unknown where either is null."""
    texts, phrases = plain_array(texts), plain_array(phrases)
    if not (is_string(texts.type) and is_string(phrases.type)):
        return pa.nulls(len(texts), pa.bool_())
    return pa.array(
        [
            None if text is None or phrase is None else _has_run(text, phrase)
            for text, phrase in zip(texts.to_pylist(), phrases.to_pylist(), strict=True)
        ],
        pa.bool_(),
    )


def _has_run(text: str, phrase: str) -> bool:
    return has_run(fold_terms(text), fold_terms(phrase))


def _has(texts: Any, words: tuple[Any, ...], *, every: bool) -> Any:
    """Cost: the texts are folded once, in 0.2 µs for an ASCII text of nine words."""
    texts, *words_by_row = (plain_array(column) for column in (texts, *words))
    if not all(is_string(column.type) for column in (texts, *words_by_row)):
        return pa.nulls(len(texts), pa.bool_())
    strings = string_column(texts)
    terms = terms_of_column(strings.data, strings.offsets, BASIS)
    joined = np.logical_and if every else np.logical_or
    found = joined.reduce([_rows_with_word(terms, column) for column in words_by_row])
    known = np.logical_and.reduce([validity(column) for column in (texts, *words_by_row)])
    return pa.array(found, mask=~known)


def _rows_with_word(terms: TermColumns, words: Any) -> Booleans:
    found = np.zeros(len(words), np.bool_)
    with_term = np.empty(len(words), np.bool_)
    for word, rows in rows_by_text(words):
        with_all = rows
        for hashed, term in _hashed_terms(word):
            rows_with_term(terms, hashed, term, with_term)
            with_all = with_all & with_term
        found |= with_all
    return found


@lru_cache(maxsize=1024)
def _hashed_terms(word: str) -> list[tuple[np.uint64, Any]]:
    """The terms of *word*, each with its hash."""
    encoded = [term.encode() for term in dict.fromkeys(fold_terms(word))]
    return [
        (np.uint64(hash_bytes(term)), read_only(np.frombuffer(term, np.uint8))) for term in encoded
    ]
