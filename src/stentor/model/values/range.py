"""What a range is: two ends of one kind, the low one first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from stentor.errors import RecordError
from stentor.model.kind import Kind
from stentor.model.values.constant import is_missing, python_scalar, read_constant

#: What objects call the ends of a range.
ENDS: Final = ("low", "high")


class Range(NamedTuple):
    """Every value from `low` to `high`, both included: an extended event's attribute."""

    kind: Kind
    low: float
    high: float


def read_range(raw: Mapping[str, Any], kind: Kind | None, field: str | None) -> Range:
    """The range between the two ends that *raw* has."""
    ends = [
        python_scalar(raw[end], field) if getattr(raw[end], "ndim", None) == 0 else raw[end]
        for end in ENDS
    ]
    if any(is_missing(end) for end in ends):
        raise RecordError("a range needs both of its ends", field=field)
    low, high = (read_constant(end, kind, field) for end in ends)
    if low.kind is not high.kind or low.kind not in (Kind.NUMBER, Kind.TIMESTAMP):
        raise RecordError(
            f"a range goes between two numbers or two timestamps, not {low.kind} and {high.kind}",
            field=field,
        )
    if low.value > high.value:  # type: ignore[operator]  # both are doubles here
        raise RecordError(f"its low end {raw['low']} is above {raw['high']}", field=field)
    return Range(low.kind, float(low.value), float(high.value))
