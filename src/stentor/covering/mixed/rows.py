"""Whether one row of columns covers another: `meaning/covers.py` over columns."""

from __future__ import annotations

from stentor._jit import kernel, kernel_part
from stentor.covering.mixed.implications import implies
from stentor.covering.mixed.tokens import IMPOSSIBLE
from stentor.covering.mixed.verdicts import ASK, NO, YES
from stentor.encoding.columns import BOX, KIND_MASK, SubscriptionColumns, UInt8


@kernel
def row_covers(
    columns: SubscriptionColumns, kinds: UInt8, plane: bool, states: UInt8, wide: int, narrow: int
) -> int:
    """Whether each possible alternative of *narrow* implies one of *wide*: YES, NO or ASK."""
    result = YES
    for inner in range(columns.alternative_start[narrow], columns.alternative_start[narrow + 1]):
        if states[inner] == IMPOSSIBLE:
            continue
        best = NO
        for outer in range(columns.alternative_start[wide], columns.alternative_start[wide + 1]):
            if states[outer] != IMPOSSIBLE:
                held = alternative_covers(columns, kinds, plane, outer, inner)
                if held == YES:
                    best = YES
                    break
                if held == ASK:
                    best = ASK
        if best == NO:
            return NO
        if best == ASK:
            result = ASK
    return result


@kernel_part
def alternative_covers(
    columns: SubscriptionColumns, kinds: UInt8, plane: bool, wide: int, narrow: int
) -> int:
    """Whether everything that *wide* asks for is asked for by *narrow*: YES, NO or ASK."""
    result = YES
    start, stop = columns.predicate_start[narrow], columns.predicate_start[narrow + 1]
    for predicate in range(columns.predicate_start[wide], columns.predicate_start[wide + 1]):
        attribute = columns.attribute[predicate]
        tests = 0
        best = NO
        for other in range(start, stop):
            if columns.attribute[other] == attribute:
                tests += 1
                held = implies(columns, kinds, plane, other, predicate)
                if held == YES:
                    best = YES
                    break
                if held == ASK:
                    best = ASK
        # Several tests of one string may together mean what none means alone.
        if best == NO and tests > 1 and columns.kind[predicate] & KIND_MASK < BOX:
            best = ASK
        if best == NO:
            return NO
        if best == ASK:
            result = ASK
    return result
