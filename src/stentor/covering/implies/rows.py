"""Whether one row of columns covers another: `covering/covers.py` over columns."""

from __future__ import annotations

from stentor._jit import inner_kernel, kernel
from stentor.covering.implies.operands import COVERED, NOT_COVERED, UNDECIDED
from stentor.covering.implies.predicates import predicate_implies
from stentor.covering.trie.tokens import IMPOSSIBLE
from stentor.encoding.columns import SubscriptionColumns, UInt8
from stentor.encoding.kinds import is_region


@kernel
def row_covers(
    columns: SubscriptionColumns, kinds: UInt8, plane: bool, states: UInt8, wide: int, narrow: int
) -> int:
    """The verdict whether each possible alternative of *narrow* implies one of *wide*."""
    result = COVERED
    for inner in range(columns.alternative_start[narrow], columns.alternative_start[narrow + 1]):
        if states[inner] == IMPOSSIBLE:
            continue
        best = NOT_COVERED
        for outer in range(columns.alternative_start[wide], columns.alternative_start[wide + 1]):
            if states[outer] != IMPOSSIBLE:
                verdict = alternative_covers(columns, kinds, plane, outer, inner)
                if verdict == COVERED:
                    best = COVERED
                    break
                if verdict == UNDECIDED:
                    best = UNDECIDED
        if best == NOT_COVERED:
            return NOT_COVERED
        if best == UNDECIDED:
            result = UNDECIDED
    return result


@inner_kernel
def alternative_covers(
    columns: SubscriptionColumns, kinds: UInt8, plane: bool, wide: int, narrow: int
) -> int:
    """The verdict whether *narrow* implies every predicate of *wide*."""
    result = COVERED
    start, stop = columns.predicate_start[narrow], columns.predicate_start[narrow + 1]
    for predicate in range(columns.predicate_start[wide], columns.predicate_start[wide + 1]):
        attribute = columns.attribute[predicate]
        tests = 0
        best = NOT_COVERED
        for other in range(start, stop):
            if columns.attribute[other] == attribute:
                tests += 1
                verdict = predicate_implies(columns, kinds, plane, other, predicate)
                if verdict == COVERED:
                    best = COVERED
                    break
                if verdict == UNDECIDED:
                    best = UNDECIDED
        # Several tests of one string may together mean what none means alone.
        if best == NOT_COVERED and tests > 1 and not is_region(columns.kind[predicate]):
            best = UNDECIDED
        if best == NOT_COVERED:
            return NOT_COVERED
        if best == UNDECIDED:
            result = UNDECIDED
    return result
