"""Driver's side: the columns that matching needs of the users' frames, checked before any job."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from stentor.errors import SettingsError
from stentor.model import Kind, Schema
from stentor.pipeline.frames.attribute_types import kind_of_type, usable_types
from stentor.pipeline.frames.columns import (
    DEFAULT_COLUMNS,
    Columns,
    attribute_columns,
    check_columns,
    column_of,
    is_nested,
)
from stentor.wire.events import NESTED

#: A schema as users give it: declared, or that of a frame of events.
SchemaLike = Schema | Mapping[str, str | Kind] | DataFrame

_SUBSCRIPTION = ("id", "expression", "at", "until")
_EVENT = ("time", "weights", "op")  # beside the id; `until` is for live events


def schema_from(
    given: SchemaLike | None, events: DataFrame | None = None, id: str = "id"
) -> Schema:
    """The closed schema that *given* stands for; without it, that of *events*."""
    if isinstance(given, Schema):
        return Schema.declare({name: _known(given, name) for name in given}, plane=given.plane)
    if isinstance(given, Mapping):
        return Schema.declare(given)
    frame = events if given is None else given
    if not isinstance(frame, DataFrame):
        raise SettingsError(
            'say what the attributes are: schema={"price": "number", "loc": "point"}, or '
            "schema=events, a DataFrame that has them"
        )
    types = attribute_columns(frame, "events", _columns(frame, id))
    usable, _ = usable_types(types, "the events")  # what no expression can ask of does not matter
    return Schema.declare({name: kind_of_type(of) or Kind.STRING for name, of in usable.items()})


def _known(schema: Schema, name: str) -> Kind:
    kind = schema.kind(name)
    if kind is None:
        raise SettingsError(f"the schema does not say of which type {name!r} is; declare it")
    return kind


def check_frame(frame: Any, what: str) -> None:
    """A SettingsError where *frame* is not a frame that can be read to its end."""
    if not isinstance(frame, DataFrame):
        raise SettingsError(f"{what}: expected a Spark DataFrame, got {type(frame).__name__}")
    if frame.isStreaming:
        raise SettingsError(f"{what}: this one is a stream, which stentor.pipeline.start takes")


def subscription_columns(subscriptions: DataFrame) -> DataFrame:
    """The columns of *subscriptions* that are encoded."""
    check_frame(subscriptions, "subscriptions")
    if "expression" not in subscriptions.columns:
        raise SettingsError(
            "the subscriptions have no column 'expression'; "
            f"they have {', '.join(subscriptions.columns) or 'no columns'}"
        )
    check_columns(subscriptions, "changes", DEFAULT_COLUMNS, "the subscriptions")
    names = [name for name in _SUBSCRIPTION if name in subscriptions.columns]
    return subscriptions.select(*map(_as_read, names))


def _as_read(name: str) -> Column:
    return column_of(name).cast("string").alias(name) if name == "id" else column_of(name)


def check_events(events: DataFrame, id: str, schema: Schema, needed: Collection[str]) -> None:
    """A SettingsError where *events* lack an attribute that is *needed*, or have another type."""
    check_frame(events, "events")
    columns = _columns(events, id)
    check_columns(events, "events", columns, "the events")
    types = attribute_columns(events, "events", columns)
    missing = sorted(name for name in needed if name not in types)
    if missing:
        raise SettingsError(
            f"the events have no column {', '.join(map(repr, missing))}, which subscriptions may "
            f"ask about; they have {', '.join(events.columns)}. Rename a column, or add one of "
            "nulls where no event has it"
        )
    _, mistakes = usable_types(
        {name: of for name, of in types.items() if name in needed}, "the events", schema
    )
    if mistakes:
        raise SettingsError("\n".join(mistakes))


def event_columns(
    events: DataFrame, id: str, attributes: Collection[str], seen: Callable[[str, Column], Column]
) -> list[Column]:
    """What `MatchEvents` reads of *events*; *seen* says what it sees of an attribute's column."""
    fields = _columns(events, id)
    nested = is_nested(events)

    def attribute(name: str) -> Column:
        column = column_of(NESTED).getField(name) if nested else column_of(name)
        return seen(name, column).alias(name)

    chosen = [column_of(id).cast("string").alias("id")]
    for field in _EVENT:
        name = fields.of(field)
        if name is not None and name in events.columns:
            chosen.append(column_of(name).alias(field))
    if attributes:
        chosen.append(F.struct(*map(attribute, attributes)).alias(NESTED))
    return chosen


def _columns(events: DataFrame, id: str) -> Columns:
    time = "time" if "time" in events.columns else None
    return replace(DEFAULT_COLUMNS, id=id, time=time)
