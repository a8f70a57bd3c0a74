"""Constants of the tree, from plain Python values and from timestamps' texts."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

from stentor.errors import ExpressionError, RecordError, TypeConflictError
from stentor.model.kind import Kind
from stentor.model.value import Constant, timestamp, value_of

TRUE = Constant(Kind.BOOLEAN, 1.0)
FALSE = Constant(Kind.BOOLEAN, 0.0)


def constant_of(raw: Any, name: str | None = None) -> Constant:
    """The constant that a number, string, boolean or datetime stands for; *name* is for errors.

    >>> constant_of(3300)
    Constant(kind=<Kind.NUMBER: 'number'>, value=3300.0)
    """
    if isinstance(raw, date):
        return timestamp_constant(raw)
    try:
        value = value_of(raw, field=name)
    except RecordError as error:
        raise ExpressionError(str(error)) from None
    if not isinstance(value, Constant) or value.value in (math.inf, -math.inf):
        owner = f"{name}: " if name else ""
        raise ExpressionError(
            f"{owner}expected a finite number, a string, a boolean or a datetime, got {raw!r:.60}",
            hint="a missing value is tested by IS NULL" if value is None else None,
        )
    return value


def timestamp_constant(raw: str | date) -> Constant:
    """The instant that a text or a datetime stands for, within the years 1 to 9999 of UTC."""
    try:
        micros = timestamp(raw)
    except RecordError as error:
        raise ExpressionError(str(error)) from None
    return Constant(Kind.TIMESTAMP, micros)


def unordered() -> ExpressionError:
    """The error for a boolean that is compared by size."""
    return ExpressionError("booleans have no order", hint="test them with =, != or IN")


def mixed(kind: Kind, other: Kind) -> TypeConflictError:
    """The error for a *kind* of value beside values of an *other* kind."""
    return TypeConflictError(
        f"a {kind} beside a {other}", hint="values side by side are of one type"
    )
