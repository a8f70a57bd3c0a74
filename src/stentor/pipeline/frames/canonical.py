"""Any DataFrame → canonical records: one set of columns for events and changes, native ones only.

    op string                       publish, subscribe, unsubscribe, move
    id string
    order bigint                    microseconds of a timestamp; null where the user names none
    time, until timestamp
    weights map<string, double>
    expression string               of a change
    at array<double>                of a change: longitude, latitude
    attributes struct<…>            of an event, under their own names
    source string, offset bigint    where the record came from
    problem string, raw string      why it is bad already, and what it was

Whether a column exists and is of a usable type is checked before anything runs. Of what stands in
a row, only that is checked here which cannot be said in these columns; the step that reads them
checks the rest. A source says where its rows came from, and which are bad, in the columns of
`Origin`. A frame that has exactly the canonical columns is taken as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from stentor.errors import SettingsError, StentorError
from stentor.model import Schema
from stentor.pipeline.frames.attribute_types import common_types, usable_types
from stentor.pipeline.frames.columns import (
    DEFAULT_COLUMNS,
    Columns,
    Origin,
    What,
    attribute_columns,
    check_columns,
)
from stentor.pipeline.frames.fields import FrameFields
from stentor.wire.formats import ReadSettings, record_from_object
from stentor.wire.json_text import from_json

COLUMNS: Final = (
    "op", "id", "order", "time", "until", "weights", "expression", "at", "attributes",
    "source", "offset", "problem", "raw",
)  # fmt: skip

#: The problem of JSON text of which Spark does not say more; `reason_for` does.
UNREADABLE: Final = "this is not JSON, or a field is not of the type that the schema says"


class Frame(NamedTuple):
    """A DataFrame, what it holds, and what its columns are called; *name* is for messages."""

    df: DataFrame
    what: What
    name: str
    columns: Columns = DEFAULT_COLUMNS


def canonical(frame: Frame, attributes: T.StructType | None = None) -> DataFrame:
    """The rows of *frame*; a SettingsError names all columns that are missing or wrong.

    *attributes* is the type that all frames of a pipeline share (`attribute_types`); the frame's
    own where there is none. A struct column `attributes` holds all of them instead of columns of
    their own.
    """
    df, what, name, columns = frame
    if tuple(df.columns) == COLUMNS:
        return df
    check_columns(df, what, columns, name)
    types = attribute_types([frame]) if attributes is None else attributes
    fields = FrameFields(df, what, columns)
    op, order, at = fields.op(), fields.order(), fields.at()
    time, until = fields.time("time"), fields.time("until")
    values, wrong_values = fields.attributes(types)
    problem = F.coalesce(
        fields.origin(Origin.PROBLEM),
        *(one.problem for one in (op, order, time, until, at)),
        *wrong_values,
    )
    found: dict[str, Column] = {
        "op": op.value,
        "id": fields.text("id"),
        "order": order.value,
        "time": time.value,
        "until": until.value,
        "weights": fields.weights(),
        "expression": fields.text("expression"),
        "at": at.value,
        "attributes": values,
        "source": F.coalesce(fields.origin(Origin.SOURCE), F.lit(name)),
        "offset": fields.origin(Origin.OFFSET),
        "problem": problem,
        "raw": F.when(problem.isNotNull(), fields.raw()),
    }
    return df.select(*(found[name].alias(name) for name in COLUMNS))


def union(*frames: DataFrame | None) -> DataFrame:
    """All rows of the canonical *frames*; None counts for nothing."""
    given = [frame for frame in frames if frame is not None]
    if not given:
        raise SettingsError("there is nothing to read; give events, changes or records")
    return reduce(DataFrame.unionByName, given)


def attribute_types(frames: Iterable[Frame], declared: Schema | None = None) -> T.StructType:
    """The one struct type for the attributes of all *frames*; *declared* says which count.

    A SettingsError names every column whose type no attribute has, or which the frames disagree
    about.
    """
    found, mistakes = [], []
    for df, what, name, columns in frames:
        if what != "changes":
            types = attribute_columns(df, what, columns)
            usable, wrong = usable_types(types, name, declared)
            found.append((name, usable))
            mistakes += wrong
    if mistakes:
        raise SettingsError("\n".join(mistakes))
    return common_types(found, declared)


def reason_for(raw: str, schema: Schema, problem: str = UNREADABLE) -> str:
    """Why the record *raw* is bad, better than the *problem* says where it is JSON.

    >>> reason_for('{"id": "e1", "price": ', Schema())
    'not JSON: Input data was truncated'
    """
    if problem != UNREADABLE:
        return problem
    try:
        value = from_json(raw.encode("utf-8", "surrogatepass"))
        is_change = isinstance(value, dict) and "expression" in value
        settings = ReadSettings(format="json", default_op="subscribe" if is_change else "publish")
        record_from_object(value, schema.unteachable(), settings)
    except StentorError as error:
        return str(error)
    return problem
