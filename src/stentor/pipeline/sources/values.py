"""Columns of points, ranges, numbers and times in any type that sources have → one type each.

A point becomes array<double>, a range struct<low, high>, a time a timestamp: in native columns.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from stentor.errors import RecordError
from stentor.model.values.geometry import read_geometry
from stentor.model.values.time import LATEST

_LATEST_SECOND: Final = LATEST // 1_000_000
_DATE: Final = r"\d{4}-\d{1,2}-\d{1,2}"
_CLOCK: Final = r"(\d{1,2}:\d{1,2})(:\d{1,2}(?:\.\d{1,6}0{0,3})?)?"
_OFFSET: Final = r"[+-]\d{1,2}|[+-]\d{2}:?\d{2}(?::?\d{2})?"
_ZONE: Final = rf"Z|UTC|GMT|{_OFFSET}|[A-Za-z][A-Za-z0-9_+-]*/[A-Za-z0-9_+/-]+"
#: Date, hour and minute, second, zone.
_TEXT: Final = rf"^\s*({_DATE})(?:[T ]{_CLOCK})? ?({_ZONE})?\s*$"
_FOUR_DIGITS: Final = r"^([+-]\d{2})(\d{2})(\d{2})?$"
#: What can be a time, for messages.
TIMES: Final = "a timestamp, a date, their texts (string) or seconds since 1970 (a number)"
POINT: Final = T.ArrayType(T.DoubleType())
SET: Final = T.StructType([T.StructField("set", T.StringType())])
NUMBER_RANGE: Final = T.StructType(
    [T.StructField("low", T.DoubleType()), T.StructField("high", T.DoubleType())]
)
TIME_RANGE: Final = T.StructType(
    [T.StructField("low", T.TimestampType()), T.StructField("high", T.TimestampType())]
)
_PAIRS: Final = (("lon", "lat"), ("longitude", "latitude"), ("x", "y"))
#: A double holds every integer below this one.
_EXACT: Final = float(2**53)
_NOT_A_DOUBLE: Final = (
    " is an integer that a double cannot hold, or beyond 64 bits; send it as a string, or round it "
    "yourself"
)


class Read(NamedTuple):
    """A column as it was understood, and why it could not be, row by row; null where it could."""

    value: Column
    problem: Column


def is_number(of: T.DataType) -> bool:
    """Whether *of* is one of Spark's types of numbers."""
    return isinstance(of, T.NumericType)


def can_be_time(of: T.DataType) -> bool:
    """Whether `read_time` understands columns of the type *of*."""
    return is_number(of) or isinstance(
        of, (T.StringType, T.TimestampType, T.TimestampNTZType, T.DateType, T.NullType)
    )


def read_time(column: Column, of: T.DataType, field: str) -> Read:
    """The instants of *column*, which has the type *of*; *field* is for messages."""
    nothing = F.lit(None).cast("string")
    if isinstance(of, T.StringType):
        return _read_text(column, field)
    if is_number(of):
        return _read_seconds(column, of, field)
    if isinstance(of, T.DateType):
        return Read(F.timestamp_seconds(F.unix_date(column).cast("bigint") * 86_400), nothing)
    if isinstance(of, T.TimestampNTZType):
        # Through text: a cast would take the session's zone.
        return Read(F.concat(column.cast("string"), F.lit("Z")).cast("timestamp"), nothing)
    return Read(column.cast("timestamp"), nothing)


def problem_where(bad: Column, field: str, *sentence: str | Column) -> Column:
    """The *sentence*, after the name of the *field*, in rows that are *bad*; null elsewhere."""
    parts = [F.lit(part) if isinstance(part, str) else part for part in (f"{field}: ", *sentence)]
    return F.when(bad, F.concat(*parts))


def quoted(column: Column, width: int = 60) -> Column:
    """The value in *column*, for a message: cut, and between quotes; null is `nothing`."""
    text = column.cast("string")
    cut = F.when(F.length(text) > width, F.concat(F.left(text, F.lit(width)), F.lit("…")))
    return F.coalesce(F.concat(F.lit("'"), F.coalesce(cut, text), F.lit("'")), F.lit("nothing"))


def _read_text(column: Column, field: str) -> Read:
    date, clock, second, zone = (F.regexp_extract(column, _TEXT, group) for group in range(1, 5))
    # Spark wants seconds before a zone, and the colons of an offset.
    offset = F.regexp_replace(zone, _FOUR_DIGITS, "$1:$2:$3")
    offset = F.regexp_replace(offset, ":$", "")
    whole = F.concat(
        date,
        F.lit(" "),
        F.when(clock == "", "00:00").otherwise(clock),
        F.when(second == "", ":00").otherwise(second),
        F.when(zone == "", "Z").otherwise(offset),
    )
    value = F.when(date != "", whole.try_cast("timestamp"))
    bad = column.isNotNull() & value.isNull()
    advice = " is not a timestamp; write it as 2026-11-15T12:00:00+01:00"
    return Read(value, problem_where(bad, field, quoted(column), advice))


def _read_seconds(column: Column, of: T.DataType, field: str) -> Read:
    if isinstance(of, (T.FloatType, T.DoubleType, T.DecimalType)):
        number = column.cast("double")
        usable = F.abs(number) <= _LATEST_SECOND  # to Spark NaN is above all
        micros = F.rint(number * 1e6).cast("bigint")
    else:
        number = column.cast("bigint")
        usable = number.between(-_LATEST_SECOND, _LATEST_SECOND)
        micros = number * 1_000_000
    value = F.when(usable, F.timestamp_micros(F.when(usable, micros)))
    advice = " seconds since 1970 is not in the years 1 to 9999; divide milliseconds by 1,000"
    return Read(value, problem_where(~usable, field, column.cast("string"), advice))


def no_problem() -> Column:
    """The problem of a column in which nothing can be wrong."""
    return F.lit(None).cast("string")


def read_point(given: Column, of: T.DataType, field: str) -> Read:
    """The points of a column of the type *of*: an array, or a struct of coordinates."""
    if isinstance(of, T.StringType | T.BinaryType):
        return _geometry_point(given, of, field)
    if not isinstance(of, T.StructType):
        return Read(given.cast(POINT), no_problem())
    names = {one.name for one in of.fields}
    if "coordinates" in names:
        return _geojson_point(given, field)
    x, y = (
        given.getField(name).cast("double")
        for pair in _PAIRS
        if set(pair) == names
        for name in pair
    )
    is_there = x.isNotNull() | y.isNotNull()  # a struct of nulls is missing
    return Read(F.when(is_there, F.array(x, y)), no_problem())


def read_set(given: Column, of: T.DataType) -> Column:
    """The sets of a column of the type *of*: arrays, or the texts of arrays."""
    if isinstance(of, T.StructType):
        return given.cast(SET)
    text = F.to_json(given) if isinstance(of, T.ArrayType) else given.cast("string")
    return F.when(given.isNotNull(), F.struct(text.alias("set"))).cast(SET)


def is_point(of: T.DataType) -> bool:
    """Whether *of* is the type of points as they go to the workers."""
    return isinstance(of, T.ArrayType) and is_number(of.elementType)


def read_range(given: Column, of: T.DataType, wanted: T.StructType) -> Column:
    """The ranges of a column of the type *of*, which may hold single values."""
    if isinstance(of, T.StructType):
        return given.cast(wanted)
    end = wanted.fields[0].dataType
    value = read_time(given, of, "").value if isinstance(end, T.TimestampType) else given.cast(end)
    return F.when(value.isNotNull(), F.struct(value.alias("low"), value.alias("high"))).cast(wanted)


def read_integer(given: Column, field: str) -> Read:
    """Integers as doubles, and which of them would be rounded."""
    value = given.cast("double")
    problem = problem_where(_is_rounded(value, given), field, given.cast("string"), _NOT_A_DOUBLE)
    return Read(value, F.when(F.abs(value) >= _EXACT, problem))


def is_range(of: T.DataType) -> bool:
    """Whether *of* is the type of ranges."""
    return isinstance(of, T.StructType) and {one.name for one in of.fields} == {"low", "high"}


def is_whole(of: T.DataType) -> bool:
    """Whether *of* is a type of integers."""
    return isinstance(of, T.IntegralType) or (
        is_number(of) and isinstance(of, T.DecimalType) and of.scale == 0
    )


def _geojson_point(given: Column, field: str) -> Read:
    kind, pair = given.getField("type"), given.getField("coordinates").cast(POINT)
    is_there = kind.isNotNull() | pair.isNotNull()
    is_point = F.coalesce(kind == "Point", F.lit(False)) & pair.isNotNull()
    advice = 'a GeoJSON Point has the type "Point" and two coordinates'
    return Read(_altitude_off(pair), problem_where(is_there & ~is_point, field, advice))


def _geometry_point(given: Column, of: T.DataType, field: str) -> Read:
    """Points in well-known text or binary, read by the reader that reads them everywhere."""
    text = F.hex(given) if isinstance(of, T.BinaryType) else given
    pair = F.udf(_coordinates, POINT)(text)
    bad = given.isNotNull() & pair.isNull()
    shown = quoted(F.hex(given) if isinstance(of, T.BinaryType) else given)
    return Read(pair, problem_where(bad, field, "expected a point, POINT(x y), got ", shown))


def _coordinates(text: str | None) -> list[float] | None:
    try:
        return None if text is None else list(read_geometry(text))
    except RecordError:
        return None


def _altitude_off(pair: Column) -> Column:
    return F.when(F.size(pair) == 3, F.slice(pair, 1, 2)).otherwise(pair)


def _is_rounded(value: Column, integer: Column) -> Column:
    """Whether *value*, a double, is another number than *integer*, or than any of 64 bits."""
    return F.coalesce(value.try_cast("bigint") != integer, F.lit(True))
