"""What a single value is, whatever its kind; and what is none at all."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

from stentor.errors import RecordError
from stentor.model.kind import Kind
from stentor.model.values.number import read_number
from stentor.model.values.string import read_string
from stentor.model.values.time import numpy_datetime, read_timestamp


class Constant(NamedTuple):
    """One value: a double for numbers, booleans and timestamps, a `str` for strings."""

    kind: Kind
    value: float | str


def is_missing(raw: Any) -> bool:
    """Whether *raw* is one of the ways to leave a value out: None, NaN, NaT or pandas' NA.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    if raw is None or type(raw).__name__ == "NAType":
        return True
    if isinstance(raw, Decimal):
        return raw.is_nan()  # a signalling one cannot be compared
    return isinstance(raw, (Real, datetime)) and bool(raw != raw)  # noqa: PLR0124  # NaN and NaT


def python_scalar(raw: Any, field: str | None) -> Any:
    """NumPy's boolean, string or instant *raw* as Python has it; its numbers as they are."""
    if isinstance(raw, Real):
        return raw
    return numpy_datetime(raw, field) if type(raw).__name__ == "datetime64" else raw.item()


def read_constant(raw: Any, kind: Kind | None, field: str | None) -> Constant:
    """The number, boolean, string or timestamp of *raw*, which is not missing."""
    if isinstance(raw, bool):
        return Constant(Kind.BOOLEAN, float(raw))
    if isinstance(raw, str):
        if kind is Kind.TIMESTAMP:
            return Constant(Kind.TIMESTAMP, read_timestamp(raw, field))
        return Constant(Kind.STRING, read_string(raw, field))
    if isinstance(raw, (datetime, date)):
        return Constant(Kind.TIMESTAMP, read_timestamp(raw, field))
    if isinstance(raw, Decimal):
        is_whole = raw.is_finite() and raw.adjusted() < 400 and raw == raw.to_integral_value()
        raw = int(raw) if is_whole else float(raw)  # NaN is missing, and does not come here
    if isinstance(raw, Real):
        return Constant(Kind.NUMBER, read_number(raw, field))
    raise RecordError(
        f"a value of type {type(raw).__name__} is not supported; expected a number, a string, "
        "true or false, a timestamp, a point [lon, lat] or a range {low, high}",
        field=field,
    )
