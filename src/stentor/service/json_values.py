"""What an event may hold, whichever door it comes through: what JSON can write, and nothing else.

MessagePack has infinities, NaN, bytes and types of its own: they are refused. Its timestamps are
times. JSON has integers of any size, which MessagePack ends at 64 bits: beyond that they are the
doubles that they mean, or refused. So whatever was taken can be given to every client.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from stentor.errors import RecordError
from stentor.model.values.number import read_number
from stentor.wire.json_text import MOST_DEPTH

#: Integers of MessagePack.
_LOWEST, _HIGHEST = -(2**63), 2**64 - 1
_PLAIN: Final = frozenset((str, bool, type(None), datetime))


def as_json_has_it(fields: dict[str, Any]) -> dict[str, Any]:
    """A copy of an event's *fields*; a RecordError where JSON cannot say one of them."""
    return {
        name: value if type(value) in _PLAIN else _value(value, name)
        for name, value in fields.items()
    }


def _value(value: Any, field: str) -> Any:
    kind = type(value)
    if kind is int:
        return value if _LOWEST <= value <= _HIGHEST else read_number(value, field)
    if kind is float:
        if math.isfinite(value):
            return value
        raise RecordError(f"{value} is no number that JSON has; leave it out", field=field)
    if kind is dict:
        return {name: _value(inner, f"{field}.{name}") for name, inner in value.items()}
    if kind is list:
        return [_value(inner, field) for inner in value]
    if kind in _PLAIN:
        return value
    raise RecordError(
        f"expected what JSON has, got {'bytes' if kind is bytes else 'a type of MessagePack'}; "
        "send a text or a number",
        field=field,
    )


def nearest_double(value: int) -> float | None:
    """The double nearest to *value*; None beyond all of them."""
    try:
        return float(value)
    except OverflowError:
        return None


def pack(frame: Any, double: Callable[[int], Any] = nearest_double) -> bytes:
    """*frame* as MessagePack; *double* says what integers are that it cannot hold."""
    try:
        return msgspec.msgpack.encode(frame)
    except OverflowError:
        return msgspec.msgpack.encode(_small(frame, double))


def _small(value: Any, double: Callable[[int], Any]) -> Any:
    if isinstance(value, dict):
        return {name: _small(inner, double) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_small(inner, double) for inner in value]
    is_large = isinstance(value, int) and not _LOWEST <= value <= _HIGHEST
    return double(value) if is_large else value


def check_shape(raw: Any, depth: int = MOST_DEPTH) -> Any:
    """*raw*, if it is no deeper than JSON may be and its keys are texts."""
    if depth == 0:
        raise RecordError(f"it is nested more than {MOST_DEPTH} deep in its frame; flatten it")
    if type(raw) is dict:
        for key, value in raw.items():
            if type(key) is not str:
                raise RecordError("the keys of an object are texts")
            if type(value) is dict or type(value) is list:
                check_shape(value, depth - 1)
    elif type(raw) is list:
        for value in raw:
            if type(value) is dict or type(value) is list:
                check_shape(value, depth - 1)
    return raw
