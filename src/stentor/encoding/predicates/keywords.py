"""KEYWORDS: groups of terms, hashed with their attribute."""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import INNER, LAST
from stentor.encoding.hashing import attribute_seed, hash_bytes
from stentor.encoding.kinds import KEYWORDS, PHRASE
from stentor.encoding.predicates.filled import (
    NOT_ONE_TERM,
    FilledPredicate,
    TemplateRows,
    negate,
    term_codes,
    unbounded,
)
from stentor.encoding.predicates.growing import Appended, AppendedColumns
from stentor.language.normal_predicates import Keywords, Phrase
from stentor.model import Has


def append(columns: AppendedColumns, test: Keywords, attribute: str) -> Appended:
    """Group after group; the last term of each is marked."""
    start, seed = len(columns.string_hash), attribute_seed(attribute)
    for terms in test.groups:
        for position, term in enumerate(terms, start=1):
            data = term.encode()
            mark = LAST if position == len(terms) else INNER
            columns.add_string(data, mark, hash_bytes(data, seed))
    return columns.with_strings(KEYWORDS, start)


def append_phrase(columns: AppendedColumns, test: Phrase, attribute: str) -> Appended:
    """Term after term, in the order of the phrase."""
    start, seed = len(columns.string_hash), attribute_seed(attribute)
    for term in test.terms:
        data = term.encode()
        columns.add_string(data, INNER, hash_bytes(data, seed))
    return columns.with_strings(PHRASE, start)


def fill(predicate: Has, negated: bool, rows: TemplateRows) -> FilledPredicate:
    """`has_all` and `has_any` of words that are single terms, in the order of the terms."""
    columns = [rows.words(word) for word in predicate.words]
    table, codes = term_codes(columns, attribute_seed(predicate.attribute))
    codes.sort(axis=1)  # codes follow the order of terms
    odd = (codes[:, :1] == NOT_ONE_TERM).any(axis=1) | (np.diff(codes, axis=1) == 0).any(axis=1)
    filled = unbounded(KEYWORDS, rows.count, odd)
    inner = INNER if predicate.every else LAST
    filled.words, filled.codes = table, codes
    filled.marks = (inner,) * (codes.shape[1] - 1) + (LAST,)
    return negate(filled) if negated else filled
