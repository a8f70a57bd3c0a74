"""MEMBERSHIP: strings, one of which matches; lists of numbers are intervals (`comparison`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from stentor.encoding.hashing import hash_bytes, prefix
from stentor.encoding.kinds import MEMBERSHIP
from stentor.encoding.predicates.comparison import fill_gaps, fill_points
from stentor.encoding.predicates.filled import (
    FilledPredicate,
    Filler,
    TemplateRows,
    bounded,
    negate,
    string_codes,
)
from stentor.encoding.predicates.growing import Appended, AppendedColumns
from stentor.language.normal_predicates import Membership
from stentor.model import Constant, In, Kind


def append(columns: AppendedColumns, test: Membership) -> Appended:
    """The strings by ascending hash; the hull is that of their prefixes."""
    start = len(columns.string_hash)
    wanted = [string.encode() for string in test.strings]
    for hashed, data in sorted((hash_bytes(data), data) for data in wanted):
        columns.add_string(data, 0, hashed)
    prefixes = [prefix(data) for data in wanted]
    return columns.with_strings(MEMBERSHIP, start, (min(prefixes), max(prefixes)))


def filler(predicate: In, negated: bool) -> Filler | None:
    """How to fill in a list; None where it has no template."""
    kind = predicate.values[0].kind
    if kind is Kind.STRING:
        return partial(fill, predicate.values, negated)
    if kind is Kind.BOOLEAN:
        return None  # there are but two, which the ordinary way knows
    return partial(fill_gaps if negated else fill_points, predicate.values)


def fill(constants: Sequence[Constant], negated: bool, rows: TemplateRows) -> FilledPredicate:
    """`=`, `IN` and their negations on strings, by ascending hash."""
    table, codes = string_codes([rows.words(_str_of(constant)) for constant in constants])
    order = np.argsort(table.hash[codes], axis=1, kind="stable")
    codes = np.take_along_axis(codes, order, axis=1)
    hashes, prefixes = table.hash[codes], table.prefix[codes]
    odd = (hashes[:, 1:] == hashes[:, :-1]).any(axis=1)
    filled = bounded(MEMBERSHIP, prefixes.min(axis=1), prefixes.max(axis=1), odd)
    filled.words, filled.codes, filled.marks = table, codes, (0,) * codes.shape[1]
    return negate(filled) if negated else filled


def _str_of(constant: Constant) -> str:
    """The string of *constant*, still in its slot."""
    assert isinstance(constant.value, str)
    return constant.value
