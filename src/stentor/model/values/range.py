"""What a range is: two ends of one kind, or one of them; the low one first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from stentor.errors import RecordError
from stentor.model.kind import Kind
from stentor.model.values.constant import Constant, is_missing, python_scalar, read_constant

#: What objects call the ends of a range: those that belong to it.
ENDS: Final = ("low", "high")
#: Those that do not.
OPEN_ENDS: Final = ("above", "below")
#: All names of ends; an object of nothing else, of one low and one high end at most, is a range.
RANGE_NAMES: Final = frozenset((*ENDS, *OPEN_ENDS))


class Range(NamedTuple):
    """Every value from `low` to `high`, both included: an extended event's attribute."""

    kind: Kind
    low: float
    high: float


def read_range(raw: Mapping[str, Any], kind: Kind | None, field: str | None) -> Range:
    """The range between the ends that *raw* has; one that it has not is open."""
    low, high = (_end(raw, closed, beyond, kind, field) for closed, beyond in _SIDES)
    known = low or high
    if known is None:
        raise RecordError("a range needs one of its ends at least", field=field)
    kinds = {end.kind for end in (low, high) if end is not None}
    if len(kinds) > 1 or known.kind not in (Kind.NUMBER, Kind.TIMESTAMP):
        names = " and ".join(end.kind for end in (low, high) if end is not None)
        raise RecordError(
            f"a range goes between two numbers or two timestamps, not {names}", field=field
        )
    start = -math.inf if low is None else float(low.value)
    stop = math.inf if high is None else float(high.value)
    if start > stop:
        ends = [raw[name] for pair in _SIDES for name in pair if not is_missing(raw.get(name))]
        raise RecordError(f"its low end {ends[0]} is above {ends[1]}", field=field)
    return Range(known.kind, start, stop)


_SIDES: Final = (("low", "above"), ("high", "below"))


def _end(
    raw: Mapping[str, Any], closed: str, beyond: str, kind: Kind | None, field: str | None
) -> Constant | None:
    """The end of *raw* that is called *closed* or *beyond*, as one that belongs to the range."""
    given = {}
    for name in (closed, beyond):
        end = raw.get(name)
        end = python_scalar(end, field) if getattr(end, "ndim", None) == 0 else end
        if not is_missing(end):
            given[name] = end
    if len(given) > 1:
        raise RecordError(f"a range has {closed!r} or {beyond!r}, not both", field=field)
    for name, end in given.items():
        constant = read_constant(end, kind, field)
        if name == beyond and not isinstance(constant.value, str):
            return Constant(
                constant.kind, beside(constant.kind, constant.value, 1 if closed == "low" else -1)
            )
        return constant
    return None


def beside(kind: Kind, value: float, side: int) -> float:
    """The next value after *value* (*side* is 1) or before it (−1): a double, or a microsecond.

    >>> beside(Kind.TIMESTAMP, 5.0, 1), beside(Kind.NUMBER, 1.0, -1)
    (6.0, 0.9999999999999999)
    """
    following = math.nextafter(value, side * math.inf)
    if kind is Kind.TIMESTAMP and abs(following - value) < 1.0:
        return value + side
    return following
