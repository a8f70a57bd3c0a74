"""An attribute is missing, or there."""

from __future__ import annotations

from stentor._jit import kernel_inline
from stentor.encoding.kinds import MISSING, PRESENT


@kernel_inline
def holds_without_value(kind: int) -> bool:
    """Whether a predicate of *kind* holds of an event without the attribute: `IS NULL` alone."""
    return bool(kind == MISSING)


@kernel_inline
def is_null_test(kind: int) -> bool:
    """Whether the value, where there is one, says nothing of a predicate of *kind*."""
    return kind in (PRESENT, MISSING)


@kernel_inline
def holds_of_any_value(kind: int) -> bool:
    """Whether such a predicate holds of every event that has the attribute."""
    return bool(kind == PRESENT)
