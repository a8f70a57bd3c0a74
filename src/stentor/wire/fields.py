"""The fields that records of all kinds have: ids, instants, weights, positions, checked."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from numbers import Integral
from typing import Any, Final

from stentor.errors import RecordError
from stentor.model.time import format_timestamp
from stentor.model.value import Point, number, text, value_of

#: Of an id or of an attribute's name, as UTF-8.
MOST_ID_BYTES: Final = 512

Raw = Mapping[str, Any]


def id_of(raw: Any, field: str = "id") -> str:
    """The id that *raw* stands for: a string of 1 to 512 bytes; an integer is its decimal text.

    >>> id_of(7)
    '7'
    """
    if not isinstance(raw, bool) and isinstance(raw, Integral) and int(raw).bit_length() < 1024:
        raw = str(raw)
    if raw is None:
        raise RecordError("every record needs one: a string or an integer", field=field)
    if not isinstance(raw, str):
        raise RecordError(
            f"expected a string or an integer, got {shown(raw)}",
            field=field,
        )
    if not 0 < utf8_length(text(raw, field)) <= MOST_ID_BYTES:
        raise RecordError(
            f"expected 1 to {MOST_ID_BYTES} bytes, got {utf8_length(raw):,}; "
            "shorten it, for example to a hash",
            field=field,
        )
    return raw


def name_of(raw: Any) -> str:
    """*raw* as an attribute's name: a string of 1 to 512 bytes."""
    if not isinstance(raw, str):
        raise RecordError(f"an attribute's name is a string, got {shown(raw)}")
    if not 0 < utf8_length(text(raw, "an attribute's name")) <= MOST_ID_BYTES:
        raise RecordError(
            f"an attribute's name has 1 to {MOST_ID_BYTES} bytes, "
            f"got {utf8_length(raw):,}: {shown(raw)}"
        )
    return raw


def moment_text(micros: int | None) -> str | None:
    """*micros* as `instant` reads it back."""
    return None if micros is None else format_timestamp(micros)


def weights_of(raw: Any) -> dict[str, float]:
    """Weights by attribute: finite and at least 0; one that is null is left out.

    >>> weights_of({"price": 2, "brand": None})
    {'price': 2.0}
    """
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise RecordError(
            f'expected an object like {{"price": 0.5}}, got {shown(raw)}', field="weights"
        )
    return {
        name_of(name): weight_of(weight, name) for name, weight in raw.items() if weight is not None
    }


def weight_of(raw: Any, name: str) -> float:
    """*raw* as the weight of the attribute *name*."""
    field = f"weights.{name}"
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        weight = number(raw, field)
        if math.isfinite(weight) and weight >= 0.0:
            return weight
    raise RecordError(f"expected a finite number of at least 0, got {shown(raw)}", field=field)


def position_of(raw: Any, *, plane: bool) -> Point | None:
    """Where a subscriber stands: a pair [longitude, latitude] or a GeoJSON Point."""
    if raw is None or isinstance(raw, Point):
        return raw
    if isinstance(raw, (list, tuple, Mapping)):
        place = value_of(raw, plane=plane, field="at")
        if isinstance(place, Point):
            return place
    raise RecordError(
        f"expected a place, [longitude, latitude] or a GeoJSON Point, got {shown(raw)}", field="at"
    )


def check_fields(raw: Raw, allowed: Collection[str], what: str) -> None:
    """Refuse a field of *raw* that *what* does not have: a misspelled `until` would be lost."""
    for name, value in raw.items():
        if name not in allowed and value is not None:
            close = get_close_matches(str(name), allowed, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(allowed)}"
            raise RecordError(f"{what} has no such field; {hint}", field=str(name)[:MOST_ID_BYTES])


def check_object(raw: Any, what: str) -> Raw:
    """*raw* itself; refused where it is not an object (a mapping)."""
    if not isinstance(raw, Mapping):
        raise RecordError(f"{what} is an object {{…}}, got {shown(raw)}")
    return raw


def utf8_length(value: str) -> int:
    """The bytes of *value* as UTF-8."""
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def shown(raw: Any, width: int = 60) -> str:
    """*raw* for a message, and of what type it is; cut, and never deep inside."""
    kind = type(raw).__name__
    if isinstance(raw, str):
        return repr(raw if len(raw) <= width else raw[:width] + "…")
    if raw is None or isinstance(raw, (bool, float)):
        return str(raw)
    if isinstance(raw, int):
        return str(raw) if raw.bit_length() <= 256 else "a huge integer"
    return f"an object ({kind})" if isinstance(raw, Mapping) else f"a value of type {kind}"
