"""What a number is: a double, exact where an integer was given; and what a weight is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Final

from stentor.errors import RecordError
from stentor.model.scoring import MOST_WEIGHT
from stentor.model.values.string import describe, read_attribute_name

#: Every integer up to here is a double.
EXACT: Final = 2**53
#: Of one event, where nothing else is said.
MOST_WEIGHTS: Final = 10_000


def is_number(raw: Any) -> bool:
    """Whether *raw* is a number; a boolean is none."""
    return isinstance(raw, (Real, Decimal)) and not isinstance(raw, bool)


def read_number(raw: Any, field: str | None = None) -> float:
    """*raw* as a double; refused where it would have to be rounded.

    >>> read_number(2**53 + 1)
    Traceback (most recent call last):
    stentor.errors.RecordError: 9007199254740993 is an integer that a double cannot hold; \
send it as a string, or round it yourself
    """
    try:
        double = float(raw)
    except OverflowError:
        double = math.inf
    except (TypeError, ValueError):  # NumPy's durations pass for integers, a signalling NaN for one
        raise RecordError(f"{type(raw).__name__} {raw} is no number", field=field) from None
    if isinstance(raw, Integral) and double != int(raw):
        shown = str(raw) if int(raw).bit_length() < 256 else "this"
        raise RecordError(
            f"{shown} is an integer that a double cannot hold; "
            "send it as a string, or round it yourself",
            field=field,
        )
    return double + 0.0  # turns -0.0 into 0.0


def read_weight(raw: Any, name: str) -> float:
    """*raw* as the weight of the attribute *name*."""
    field = f"weights.{name}"
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        weight = read_number(raw, field)
        if 0.0 <= weight <= MOST_WEIGHT:
            return weight
    raise RecordError(
        f"expected a finite number of at least 0 and at most {MOST_WEIGHT:g}, got {describe(raw)}",
        field=field,
    )


def read_weights(raw: Any, most: int = MOST_WEIGHTS) -> dict[str, float]:
    """Weights by attribute, at most *most*, each from 0 to `MOST_WEIGHT`; null ones are left out.

    >>> read_weights({"price": 2, "brand": None})
    {'price': 2.0}
    """
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise RecordError(
            f'expected an object like {{"price": 0.5}}, got {describe(raw)}', field="weights"
        )
    check_weight_count(len(raw), most)
    return {
        read_attribute_name(name): read_weight(weight, name)
        for name, weight in raw.items()
        if weight is not None
    }


def check_weight_count(count: int, most: int) -> None:
    """Refuse more weights than an event may have attributes."""
    if count > most:
        raise RecordError(f"the event has {count:,}; the limit is {most:,}", field="weights")
