"""MISSING and PRESENT: kinds without operands."""

from __future__ import annotations

import numpy as np

from stentor.encoding.kinds import MISSING, PRESENT
from stentor.encoding.predicates.filled import FilledPredicate, TemplateRows, unbounded
from stentor.encoding.predicates.growing import Appended
from stentor.language.normal_predicates import IsMissing, IsPresent


def append(test: IsMissing | IsPresent) -> Appended:
    """The kind says it all."""
    return Appended(MISSING if isinstance(test, IsMissing) else PRESENT)


def fill(missing: bool, rows: TemplateRows) -> FilledPredicate:
    """`IS NULL` or `IS NOT NULL`."""
    return unbounded(MISSING if missing else PRESENT, rows.count, np.zeros(rows.count, np.bool_))
