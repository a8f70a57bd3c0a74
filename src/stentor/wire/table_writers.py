"""Events and subscriptions → Arrow tables that the readers of this folder read back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isinf
from typing import Any, Final

import pyarrow as pa

from stentor.language.printer import to_text
from stentor.model import (
    Constant,
    Event,
    Kind,
    OneOf,
    Point,
    Range,
    Schema,
    Set,
    Subscription,
    Value,
)
from stentor.model.values.members import set_text
from stentor.model.values.one_of import plain_one_of
from stentor.wire.events import NESTED, needs_nested_form

POINT: Final = pa.struct([("x", pa.float64()), ("y", pa.float64())])
INSTANT: Final = pa.timestamp("us", "UTC")

_TYPES: Final = {
    Kind.NUMBER: pa.float64(),
    Kind.STRING: pa.large_string(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.TIMESTAMP: INSTANT,
    Kind.POINT: POINT,
    Kind.SET: pa.struct([("set", pa.large_string())]),
}


def events_to_table(events: Iterable[Event], schema: Schema) -> Any:
    """*events* as a table: a column for each attribute that *schema* knows the kind of.

    An attribute that is a range in any event is a column of structs of low and high; one that is
    one of several values in any event, of structs of in and not_in, too. The attributes are in a
    struct column where the name of one is taken otherwise.
    """
    given = list(events)
    columns = {
        name: _column([event.attributes.get(name) for event in given], kind)
        for name in schema
        if (kind := schema.kind(name)) is not None
    }
    if needs_nested_form(columns):
        nested = pa.StructArray.from_arrays(list(columns.values()), list(columns))
        columns = {NESTED: nested}
    head = {
        "id": pa.array([event.id for event in given], pa.large_string()),
        "until": pa.array([event.until for event in given], pa.int64()).cast(INSTANT),
    }
    if any(event.weights for event in given):
        weights = [list(event.weights.items()) for event in given]
        head["weights"] = pa.array(weights, pa.map_(pa.string(), pa.float64()))
    return pa.table({**head, **columns})


def subscriptions_to_table(subscriptions: Iterable[Subscription]) -> Any:
    """*subscriptions* as a table of `id`, `expression` (its text), `at` and `until`."""
    given = list(subscriptions)
    return pa.table(
        {
            "id": pa.array([one.id for one in given], pa.large_string()),
            "expression": pa.array([to_text(one.expression) for one in given], pa.large_string()),
            "at": _column([one.at for one in given], Kind.POINT),
            "until": pa.array([one.until for one in given], pa.int64()).cast(INSTANT),
        }
    )


def _column(values: Sequence[Value | None], kind: Kind) -> Any:
    of = _TYPES[kind]
    if any(isinstance(value, OneOf) for value in values):
        return objects_array(values, kind)
    if any(isinstance(value, Range) for value in values):
        ends = [_ends(value) for value in values]
        return pa.StructArray.from_arrays(
            [_scalars([low for low, _ in ends], of), _scalars([high for _, high in ends], of)],
            ["low", "high"],
            mask=pa.array([value is None for value in values]),
        )
    if kind is Kind.SET:
        texts = [{"set": set_text(one)} if isinstance(one, Set) else None for one in values]
        return pa.array(texts, of)
    if kind is Kind.POINT:
        locations = [value._asdict() if isinstance(value, Point) else None for value in values]
        return pa.array(locations, of)
    return _scalars([_ends(value)[0] for value in values], of)


def objects_array(values: Sequence[Value | None], kind: Kind) -> Any:
    """*values*, of which some are one of several, as structs that `read_value` takes."""
    of = _TYPES[kind]
    fields = [pa.field("in", pa.list_(of)), pa.field("not_in", pa.list_(of))]
    if kind in (Kind.NUMBER, Kind.TIMESTAMP):
        fields += [pa.field("low", of), pa.field("high", of)]
    plain = pa.int64() if kind is Kind.TIMESTAMP else of
    stored = [pa.field(one.name, _retyped(one.type, plain)) for one in fields]
    found = [None if value is None else _object(value, kind) for value in values]
    return pa.array(found, pa.struct(stored)).cast(pa.struct(fields))


def _retyped(of: Any, plain: Any) -> Any:
    return pa.list_(plain) if pa.types.is_list(of) else plain


def _object(value: Value, kind: Kind) -> dict[str, Any]:
    def scalar(one: float | str) -> Any:
        if kind is Kind.TIMESTAMP:
            return int(one)
        return bool(one) if kind is Kind.BOOLEAN else one

    if isinstance(value, OneOf):
        return plain_one_of(value, scalar)
    if isinstance(value, Range):
        ends = {"low": value.low, "high": value.high}
        is_time = kind is Kind.TIMESTAMP
        return {name: scalar(one) for name, one in ends.items() if not (is_time and isinf(one))}
    assert isinstance(value, Constant)
    one = scalar(value.value)
    if kind in (Kind.NUMBER, Kind.TIMESTAMP):
        return {"low": one, "high": one}
    return {"in": [one]}


def _ends(value: Value | None) -> tuple[Any, Any]:
    if isinstance(value, Constant):
        return value.value, value.value
    return (value.low, value.high) if isinstance(value, Range) else (None, None)


def _scalars(values: list[Any], of: Any) -> Any:
    """*values*, doubles or strings, as an array of the type *of*."""
    if of == INSTANT or of == pa.bool_():
        whole = pa.array([None if value is None else int(value) for value in values], pa.int64())
        return whole.cast(of)
    return pa.array(values, of)
