"""Each field of a record, read from a DataFrame whose columns were checked, in native columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from stentor.pipeline.frames.attribute_types import nullable
from stentor.pipeline.frames.columns import (
    FIELDS,
    Columns,
    Origin,
    What,
    attribute_columns,
    column_of,
    is_nested,
    types_of,
)
from stentor.pipeline.frames.times import Read, problem_where, quoted, read_time
from stentor.pipeline.frames.values import (
    is_range,
    is_whole,
    no_problem,
    read_integer,
    read_point,
    read_range,
)
from stentor.wire.events import NESTED
from stentor.wire.records import OPS

#: What a frame's records do, and what one does that says nothing.
_OPS: Final[dict[What, tuple[tuple[str, ...], str | None]]] = {
    "events": (("publish",), "publish"),
    "changes": (tuple(op for op in OPS if op != "publish"), "subscribe"),
    "records": (OPS, None),
}


@dataclass(frozen=True, slots=True)
class FrameFields:
    """The fields of the records of *df*."""

    df: DataFrame
    what: What
    columns: Columns

    def op(self) -> Read:
        """What each record does."""
        given = self._column("op").cast("string")
        allowed, default = _OPS[self.what]
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
        """The record's place in the user's order; a timestamp counts as microseconds."""
        name, of = self.columns.order, self._type("order")
        if name is None:
            return Read(F.lit(None).cast("bigint"), no_problem())
        given = self._column("order")
        value = F.unix_micros(given) if isinstance(of, T.TimestampType) else given.cast("bigint")
        missing = "every record needs one, because it says the order"
        return Read(value, problem_where(given.isNull(), name, missing))

    def at(self) -> Read:
        """The subscriber's place as [longitude, latitude]."""
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
            is_event = self._column("op") == "publish"
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
    if isinstance(wanted.dataType, T.ArrayType):
        return read_point(given, of, wanted.name)
    if is_whole(of) and isinstance(wanted.dataType, T.DoubleType):
        # What stays an integer is judged by the step that reads it.
        return read_integer(given, wanted.name)
    return Read(given.cast(wanted.dataType), no_problem())
