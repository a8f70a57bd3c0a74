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

Of a source of texts a row has its raw text and no problem: a worker reads it (`TextReader`).
Whether a column exists and is of a usable type is checked before anything runs. Of what is in a
row, only that is checked here which cannot be said in these columns; the step that reads them
checks the rest. A source says where its rows came from, and which are bad, in the columns of
`Origin`. A frame that has exactly the canonical columns is taken as it is. `packed` gives the rows
of several frames the form in which they go to the workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from stentor.errors import SettingsError
from stentor.model import Schema
from stentor.model.record import BRINGING_OPS, OPS
from stentor.pipeline.sources import DEFAULT_COLUMNS, FIELDS, Columns, What
from stentor.pipeline.sources.attribute_types import common_types, nullable, usable_types
from stentor.pipeline.sources.columns import (
    Origin,
    attribute_columns,
    check_columns,
    column_of,
    is_nested,
    types_of,
)
from stentor.pipeline.sources.text_records import ALLOWED, TextFormat
from stentor.pipeline.sources.values import (
    SET,
    Read,
    is_number,
    is_point,
    is_range,
    is_whole,
    no_problem,
    problem_where,
    quoted,
    read_integer,
    read_point,
    read_range,
    read_set,
    read_time,
)
from stentor.wire.events import NESTED

if TYPE_CHECKING:
    from stentor.pipeline.sources.parquet_files import ParquetFiles

COLUMNS: Final = (
    "op", "id", "order", "time", "until", "weights", "expression", "at", "attributes",
    "source", "offset", "problem", "raw",
)  # fmt: skip
#: Which of a stream's frames a record came in, by number.
FRAME: Final = "frame"
POINT_STRUCT = T.StructType(
    [T.StructField("x", T.DoubleType()), T.StructField("y", T.DoubleType())]
)


class Frame(NamedTuple):
    """A DataFrame, what it holds, and what its columns are called; *name* is for messages."""

    df: DataFrame
    what: What
    name: str
    columns: Columns = DEFAULT_COLUMNS
    texts: TextFormat | None = None
    """Where the rows are texts that the workers read: in the column `Origin.RAW`."""
    attributes: T.StructType | None = None
    """Of texts, or of files: the attributes that they hold."""
    files: ParquetFiles | None = None
    """Where the rows are names of files, which are replaced by their records batch by batch."""
    most_rejected: float = 0.5
    """The share of its first records that may be rejected."""


def canonical(frame: Frame, attributes: T.StructType | None = None) -> DataFrame:
    """The rows of *frame*; a SettingsError names all columns that are missing or wrong.

    *attributes* is the type that all frames of a pipeline share (`attribute_types`); the frame's
    own where there is none. A struct column `attributes` holds all of them instead of columns of
    their own.
    """
    df, what, name, columns = frame[:4]
    if tuple(df.columns) == COLUMNS:
        return df
    if frame.texts is not None or frame.files is not None:
        return _unread(frame, attributes or frame.attributes or T.StructType())
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


def _unread(frame: Frame, attributes: T.StructType) -> DataFrame:
    """Texts, or names of files, as canonical rows: a text has no problem and is to be read.

    What a record does is said as far as it is known of all of them.
    """
    fields = FrameFields(frame.df, frame.what, frame.columns)
    allowed, default = ALLOWED[frame.what]
    types = {"order": "bigint", "time": "timestamp", "until": "timestamp", "offset": "bigint"}
    types |= {"weights": "map<string,double>", "at": "array<double>"}
    found = {name: F.lit(None).cast(types.get(name, "string")) for name in COLUMNS}
    found |= {
        "op": F.lit(None if len(allowed) == len(OPS) else default).cast("string"),
        "attributes": F.lit(None).cast(attributes),
        "source": F.coalesce(fields.origin(Origin.SOURCE), F.lit(frame.name)),
        "offset": fields.origin(Origin.OFFSET),
        "raw": fields.origin(Origin.RAW),
    }
    return frame.df.select(*(found[name].alias(name) for name in COLUMNS))


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
    for frame in frames:
        df, what, name, columns = frame[:4]
        if what != "changes":
            if frame.attributes is not None:
                types = {one.name: one.dataType for one in frame.attributes.fields}
            else:
                types = attribute_columns(df, what, columns)
            usable, wrong = usable_types(types, name, declared)
            found.append((name, usable))
            mistakes += [*wrong, *_shared_columns(frame, declared)]
    if mistakes:
        raise SettingsError("\n".join(mistakes))
    return common_types(found, declared)


def _shared_columns(frame: Frame, declared: Schema | None) -> Iterator[str]:
    """Columns that hold a field of changes and are called like a declared attribute of events."""
    df, what, name, columns = frame[:4]
    if what != "records" or declared is None or is_nested(df):
        return
    for field in ("expression", "at"):
        column = columns.of(field)
        if column in df.columns and column in declared:
            yield (
                f"{name}, column {column!r}: it holds the {field} of changes, and the schema has "
                f"an attribute of that name; name another column for the {field}, or put the "
                f"attributes of events into one struct column {NESTED!r}"
            )


@dataclass(frozen=True, slots=True)
class FrameFields:
    """The fields of the records of *df*."""

    df: DataFrame
    what: What
    columns: Columns

    def op(self) -> Read:
        """What each record does."""
        given = self._column("op").cast("string")
        allowed, default = ALLOWED[self.what]
        op = given if default is None else F.coalesce(given, F.lit(default))
        bad = ~F.coalesce(op.isin(*allowed), F.lit(False))
        expected = f"expected {'one of ' if len(allowed) > 1 else ''}{', '.join(allowed)}, got "
        return Read(op, problem_where(bad, "op", expected, quoted(given)))

    def text(self, field: str) -> Column:
        """A field that is a string; integers are their decimal texts."""
        return self._column(field).cast("string")

    def time(self, field: str) -> Read:
        """The instant of *field*."""
        of = self._type(field) or T.NullType()
        return read_time(self._column(field), of, self.columns.of(field) or field)

    def order(self) -> Read:
        """The record's position in the user's order; a timestamp counts as microseconds."""
        name, of = self.columns.order, self._type("order")
        if name is None:
            return Read(F.lit(None).cast("bigint"), no_problem())
        given = self._column("order")
        value = F.unix_micros(given) if isinstance(of, T.TimestampType) else given.cast("bigint")
        missing = "every record needs one, because it says the order"
        return Read(value, problem_where(given.isNull(), name, missing))

    def at(self) -> Read:
        """The subscriber's location as [longitude, latitude]."""
        of = self._type("at") or T.NullType()
        return read_point(self._column("at"), of, self.columns.at)

    def weights(self) -> Column:
        """The event's weights by attribute."""
        given, of = self._column("weights"), self._type("weights")
        if isinstance(of, T.StructType):
            pairs = [
                part
                for one in of.fields
                for part in (F.lit(one.name), given.getField(one.name).cast("double"))
            ]
            all_of_them = F.create_map(*pairs) if pairs else F.lit(None)
            given = F.when(
                given.isNotNull(),
                F.map_filter(all_of_them.cast("map<string,double>"), lambda _, v: v.isNotNull()),
            )
        return given.cast("map<string,double>")

    def attributes(self, types: T.StructType) -> tuple[Column, list[Column]]:
        """The event's attributes as a struct of *types*, and what is wrong with them."""
        nothing = F.lit(None).cast(types)
        if self.what == "changes" or not types.fields:
            return nothing, []
        own = attribute_columns(self.df, self.what, self.columns)
        cells, problems = [], []
        for field in types.fields:
            of = own.get(field.name, T.NullType())
            if isinstance(of, T.NullType):
                cells.append(F.lit(None).cast(field.dataType).alias(field.name))
                continue
            nested = is_nested(self.df)
            given = column_of(NESTED).getField(field.name) if nested else column_of(field.name)
            read = _as_type(given, of, field)
            cells.append(read.value.alias(field.name))
            if nullable(of) != field.dataType:
                problems.append(read.problem)
        whole = F.struct(*cells).cast(types)
        if self.what == "records":
            is_event = self._column("op").isin(*BRINGING_OPS)
            return F.when(is_event, whole), [F.when(is_event, one) for one in problems]
        return whole, problems

    def origin(self, name: str) -> Column:
        """What the source says of each row in the column *name* of `Origin`."""
        given = column_of(name) if name in self.df.columns else F.lit(None)
        return given.cast("bigint" if name == Origin.OFFSET else "string")

    def raw(self) -> Column:
        """What a bad row is shown as: its own text, or its columns as JSON."""
        shown = [
            column_of(name)
            for name, of in types_of(self.df).items()
            if name not in Origin.ALL and not isinstance(of, T.NullType)
        ]
        return F.coalesce(self.origin(Origin.RAW), F.to_json(F.struct(*shown)))

    def _type(self, field: str) -> T.DataType | None:
        name = self.columns.of(field)
        return None if name is None else types_of(self.df).get(name)

    def _column(self, field: str) -> Column:
        name = self.columns.of(field)
        if name is None or field not in FIELDS[self.what] or name not in self.df.columns:
            return F.lit(None)
        return column_of(name)


def _as_type(given: Column, of: T.DataType, wanted: T.StructField) -> Read:
    """An attribute of the type *of* in the type that all frames share."""
    if isinstance(wanted.dataType, T.TimestampType):
        return read_time(given, of, wanted.name)
    if is_range(wanted.dataType) and isinstance(wanted.dataType, T.StructType):
        return Read(read_range(given, of, wanted.dataType), no_problem())
    if wanted.dataType == SET:
        return Read(read_set(given, of), no_problem())
    if is_point(wanted.dataType):
        return read_point(given, of, wanted.name)
    if is_whole(of) and isinstance(wanted.dataType, T.DoubleType):
        # What stays an integer is judged by the step that reads it.
        return read_integer(given, wanted.name)
    value = given.cast(wanted.dataType)
    if isinstance(wanted.dataType, T.IntegralType) and is_number(of):
        whole = given.try_cast(wanted.dataType)
        bad = given.isNotNull() & ~given.eqNullSafe(whole.cast(of))
        sentence = f" is no {wanted.dataType.simpleString()}, which the pipeline began with"
        return Read(whole, problem_where(bad, wanted.name, given.cast("string"), sentence))
    return Read(value, no_problem())


def packed(records: DataFrame, attributes: T.StructType, frames: Sequence[Frame]) -> DataFrame:
    """The canonical *records* of *frames*, packed."""
    names = [name for name in COLUMNS if name not in _absent(frames)]
    points = [one.name for one in attributes.fields if is_point(one.dataType)]
    given = {name: F.col("attributes").getField(name) for name in points}
    if "at" in names:
        given["at"] = F.col("at")
    wrong = [_problem(name, point) for name, point in given.items()]
    problem = F.coalesce(F.col("problem"), *wrong)
    shown = F.to_json(F.struct("op", "id", *(["at"] if "at" in names else []), "attributes"))
    replaced = {
        "attributes": _attributes(attributes, points),
        "problem": problem,
        "raw": F.coalesce(F.col("raw"), F.when(problem.isNotNull(), shown)),
        "weights": F.coalesce(F.col("weights"), F.create_map().cast("map<string,double>")),
        "at": _point_struct(F.col("at")),
    }
    names += [FRAME] if FRAME in records.columns else []
    return records.select(*(replaced.get(name, F.col(name)).alias(name) for name in names))


def packed_types(attributes: T.StructType) -> T.StructType:
    """What *attributes* are once they are packed."""
    return T.StructType(
        [
            T.StructField(one.name, POINT_STRUCT) if is_point(one.dataType) else one
            for one in attributes.fields
        ]
    )


def _absent(frames: Sequence[Frame]) -> set[str]:
    """The columns that no frame has."""
    if any(tuple(frame.df.columns) == COLUMNS for frame in frames):
        return set()
    absent = {
        field
        for field in ("order", "time", "until", "weights")
        if not any(
            frame.columns.of(field) in frame.df.columns
            or (frame.files is not None and frame.columns.of(field) is not None)
            for frame in frames
        )
    }
    if all(frame.texts is not None for frame in frames):
        absent |= {"at", "expression", "weights"}
    if not any(frame.files or Origin.OFFSET in frame.df.columns for frame in frames):
        absent.add("offset")
    if all(frame.what == "events" for frame in frames):
        absent |= {"at", "expression"}
    return absent


def _attributes(attributes: T.StructType, points: Sequence[str]) -> Column:
    if not points:
        return F.col("attributes")
    whole = F.col("attributes")
    cells = {one.name: whole.getField(one.name) for one in attributes.fields}
    cells |= {name: _point_struct(cells[name]) for name in points}
    return F.when(whole.isNotNull(), F.struct(*(cell.alias(name) for name, cell in cells.items())))


def _point_struct(given: Column) -> Column:
    x, y = F.get(given, F.lit(0)), F.get(given, F.lit(1))
    return F.when(given.isNotNull(), F.struct(x.alias("x"), y.alias("y")))


def _problem(name: str, given: Column) -> Column:
    """What is wrong with a point that has not two coordinates."""
    size = F.size(given)
    sentence = F.concat(
        F.lit(f"{name}: expected a place, [longitude, latitude], got a list of "),
        size.cast("string"),
    )
    return F.when(given.isNotNull() & (size != 2), sentence)
