"""Points, ranges, numbers and weights, from what sources have them as → one form, natively.

A point becomes array<double>, a range struct<low, high>. What is text here was text in a file
(CSV), or is the JSON of a value that has several forms.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from stentor.pipeline.frames.times import Read, is_number, problem_where, quoted, read_time

POINT: Final = T.ArrayType(T.DoubleType())
NUMBER_RANGE: Final = T.StructType(
    [T.StructField("low", T.DoubleType()), T.StructField("high", T.DoubleType())]
)
TIME_RANGE: Final = T.StructType(
    [T.StructField("low", T.TimestampType()), T.StructField("high", T.TimestampType())]
)

_PAIRS: Final = (("lon", "lat"), ("longitude", "latitude"), ("x", "y"))
_PLACE_OBJECT: Final = "type string, coordinates array<double>, " + ", ".join(
    f"{name} double" for pair in _PAIRS for name in pair
)
#: A double holds every integer below this one.
_EXACT: Final = float(2**53)
_NOT_A_DOUBLE: Final = (
    " is an integer that a double cannot hold, or beyond 64 bits; send it as a string, or round it "
    "yourself"
)


def no_problem() -> Column:
    """The problem of a column in which nothing can be wrong."""
    return F.lit(None).cast("string")


def read_point(given: Column, of: T.DataType, field: str) -> Read:
    """The points of a column of the type *of*: an array, or a struct of coordinates."""
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


def number_of_text(text: Column, field: str) -> Read:
    """The numbers that *text* spells."""
    value = text.try_cast("double")
    bad = text.isNotNull() & value.isNull()
    problem = problem_where(bad, field, "expected a number, got ", quoted(text))
    return Read(value, F.coalesce(problem, rounding_problem(value, text, field)))


def rounding_problem(value: Column, text: Column, field: str) -> Column:
    """What is wrong with a double whose *text* spells an integer that it cannot hold."""
    bad = text.rlike(r"^\s*[+-]?\d+\s*$") & _is_rounded(value, text.try_cast("bigint"))
    # Nested, so that the text is looked at in the few rows that need it.
    return F.when(F.abs(value) >= _EXACT, problem_where(bad, field, text, _NOT_A_DOUBLE))


def boolean_of_text(text: Column, field: str) -> Read:
    """The truth values that *text* spells: true and false."""
    folded = F.lower(F.trim(text))
    value = F.when(folded == "true", F.lit(True)).when(folded == "false", F.lit(False))
    bad = text.isNotNull() & value.isNull()
    return Read(value, problem_where(bad, field, "expected true or false, got ", quoted(text)))


def point_of_text(text: Column, field: str) -> Read:
    """The points that *text*, the JSON of a pair or of an object, spells."""
    place = F.from_json(text, _PLACE_OBJECT)
    pair: Column = F.when(F.startswith(F.ltrim(text), F.lit("[")), F.from_json(text, POINT))
    pair = pair.when(place.getField("type") == "Point", _altitude_off(place["coordinates"]))
    for names in _PAIRS:
        x, y = (place.getField(name) for name in names)
        pair = pair.when(x.isNotNull() & y.isNotNull(), F.array(x, y))
    bad = text.isNotNull() & F.coalesce(F.size(pair) != 2, F.lit(True))
    expected = "expected a place, [longitude, latitude] or a GeoJSON Point, got "
    return Read(pair, problem_where(bad, field, expected, quoted(text)))


def range_of_text(text: Column, wanted: T.StructType, field: str) -> Read:
    """The ranges that *text* spells: the JSON of {low, high}, or of one value."""
    is_time = isinstance(wanted.fields[0].dataType, T.TimestampType)
    is_object = F.startswith(F.ltrim(text), F.lit("{"))
    one = F.when(~is_object, text)
    if is_time:
        ends = F.from_json(text, "low string, high string")
        single = read_time(one, T.StringType(), field)
        low, high = (read_time(ends[end], T.StringType(), field) for end in ("low", "high"))
    else:
        ends = F.from_json(text, "low double, high double")
        single = number_of_text(one, field)
        low, high = (Read(ends[end], no_problem()) for end in ("low", "high"))
    whole = [
        F.when(is_object, end.value).otherwise(single.value).alias(name)
        for name, end in (("low", low), ("high", high))
    ]
    both = whole[0].isNotNull() & whole[1].isNotNull()
    expected = "expected a value or a range {low, high}, got "
    problem = problem_where(text.isNotNull() & ~both, field, expected, quoted(text))
    return Read(
        F.when(both, F.struct(*whole)).cast(wanted),
        F.coalesce(single.problem, low.problem, high.problem, problem),
    )


def weights_of_text(text: Column, field: str) -> Read:
    """The weights that *text*, a JSON object of numbers, spells."""
    value = F.from_json(text, "map<string,double>")
    bad = text.isNotNull() & value.isNull()
    expected = 'expected an object like {"price": 0.5}, got '
    return Read(value, problem_where(bad, field, expected, quoted(text)))


def order_of_text(text: Column, field: str) -> Read:
    """The places in the order that *text* spells: integers, or timestamps as microseconds."""
    whole = text.try_cast("bigint")
    moment = read_time(F.when(whole.isNull(), text), T.StringType(), field).value
    value = F.coalesce(whole, F.unix_micros(moment))
    bad = text.isNotNull() & value.isNull()
    return Read(
        value, problem_where(bad, field, "expected an integer or a timestamp, got ", quoted(text))
    )


def time_of_text(text: Column, field: str, is_seconds: Column | None = None) -> Read:
    """The instants that *text* spells: timestamps, or seconds since 1970."""
    number = text.try_cast("double")
    is_number = number.isNotNull() if is_seconds is None else number.isNotNull() & is_seconds
    seconds = read_time(F.when(is_number, number), T.DoubleType(), field)
    moment = read_time(F.when(~is_number, text), T.StringType(), field)
    return Read(
        F.coalesce(seconds.value, moment.value), F.coalesce(seconds.problem, moment.problem)
    )


def is_range(of: T.DataType) -> bool:
    """Whether *of* is the type of ranges."""
    return isinstance(of, T.StructType) and {one.name for one in of.fields} == {"low", "high"}


def is_whole(of: T.DataType) -> bool:
    """Whether *of* is a type of integers."""
    return isinstance(of, T.IntegralType) or (
        is_number(of) and isinstance(of, T.DecimalType) and of.scale == 0
    )


def _geojson_point(given: Column, field: str) -> Read:
    kind, place = given.getField("type"), given.getField("coordinates").cast(POINT)
    is_there = kind.isNotNull() | place.isNotNull()
    is_point = F.coalesce(kind == "Point", F.lit(False)) & place.isNotNull()
    advice = 'a GeoJSON Point has the type "Point" and two coordinates'
    return Read(_altitude_off(place), problem_where(is_there & ~is_point, field, advice))


def _altitude_off(place: Column) -> Column:
    return F.when(F.size(place) == 3, F.slice(place, 1, 2)).otherwise(place)


def _is_rounded(value: Column, integer: Column) -> Column:
    """Whether *value*, a double, is another number than *integer*, or than any of 64 bits."""
    return F.coalesce(value.try_cast("bigint") != integer, F.lit(True))
