"""Lines of CSV → the columns of a frame: each cell read as its type, each bad one named."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from stentor.pipeline.frames.columns import FIELDS, Columns, Origin, What, column_of
from stentor.pipeline.frames.times import Read, read_time
from stentor.pipeline.frames.values import (
    boolean_of_text,
    is_range,
    no_problem,
    number_of_text,
    order_of_text,
    point_of_text,
    range_of_text,
    time_of_text,
    weights_of_text,
)
from stentor.wire.events import NESTED

#: The column in which Spark keeps a line that does not fit the header.
CORRUPT: Final = "_stentor_corrupt"
_MISFIT: Final = "the line has more or fewer cells than the header"
_NOT_UTF8: Final = (
    "the line holds U+FFFD, which stands for bytes that are not UTF-8; save the text as UTF-8, or "
    "name its encoding in the source's options"
)


def csv_frame(cells: DataFrame, types: T.StructType, what: What, columns: Columns) -> DataFrame:
    """The records of *cells*, whose columns are all strings; an empty cell is missing.

    Points, ranges and weights stand in a cell as JSON. The frame has each field under its own
    name, all attributes in one struct, and the columns of `Origin`.
    """
    fields = {
        field: name
        for field in FIELDS[what]
        if (name := columns.of(field)) is not None and name in cells.columns
    }
    attributes = [] if what == "changes" else [one for one in types if one.name in cells.columns]
    read = {field: _read_field(field, name) for field, name in fields.items()}
    values = {one.name: _read_attribute(one) for one in attributes}
    origin = [name for name in (Origin.SOURCE, Origin.OFFSET) if name in cells.columns]
    shown = [column_of(name) for name in cells.columns if name not in (*Origin.ALL, CORRUPT)]
    problem = F.coalesce(
        F.when(column_of(CORRUPT).isNotNull(), F.lit(_MISFIT)),
        F.when(_holds_broken_text([*fields.values(), *values]), F.lit(_NOT_UTF8)),
        *(one.problem for one in (*read.values(), *values.values())),
    )
    struct = [one.value.alias(name) for name, one in values.items()]
    return cells.select(
        *(one.value.alias(field) for field, one in read.items()),
        *([F.struct(*struct).alias(NESTED)] if struct else []),
        *map(column_of, origin),
        F.coalesce(column_of(CORRUPT), F.to_json(F.struct(*shown))).alias(Origin.RAW),
        problem.alias(Origin.PROBLEM),
    )


def _holds_broken_text(names: Sequence[str]) -> Column:
    """Whether a cell of these columns was not UTF-8.

    Spark's reader has decoded the cells; nothing but U+FFFD is left of such bytes, and it may
    stand for several, so that other records would seem to have the same id.
    """
    found = [column_of(name).contains("\ufffd") for name in names]
    return reduce(Column.__or__, (F.coalesce(one, F.lit(False)) for one in found), F.lit(False))


def _read_field(field: str, name: str) -> Read:
    text = column_of(name)
    if field == "order":
        return order_of_text(text, name)
    if field in ("time", "until"):
        return time_of_text(text, name)
    if field == "at":
        return point_of_text(text, name)
    if field == "weights":
        return weights_of_text(text, name)
    return _string(text)


def _read_attribute(attribute: T.StructField) -> Read:
    text, name, of = column_of(attribute.name), attribute.name, attribute.dataType
    if isinstance(of, T.StructType) and is_range(of):
        return range_of_text(text, of, name)
    if isinstance(of, T.ArrayType):
        return point_of_text(text, name)
    if isinstance(of, T.DoubleType):
        return number_of_text(text, name)
    if isinstance(of, T.BooleanType):
        return boolean_of_text(text, name)
    if isinstance(of, T.TimestampType):
        return read_time(text, T.StringType(), name)
    return _string(text)


def _string(text: Column) -> Read:
    return Read(text, no_problem())
