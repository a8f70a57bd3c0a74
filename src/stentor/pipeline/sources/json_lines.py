"""JSON texts → the columns of a frame, by Spark's own parser, as strictly as `stentor.wire` reads.

A text that is not JSON, or whose field is not of its type, never stops the stream: it has a
problem. Spark would take a number for a string, round long integers, and read bytes that are not
UTF-8 as U+FFFD, so that several ids become one; all are looked for. Keys that the schema does not
have are ignored; of a key that stands twice the last one counts.
"""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from stentor.pipeline.frames.canonical import UNREADABLE
from stentor.pipeline.frames.columns import FIELDS, Columns, Origin, What, column_of
from stentor.pipeline.frames.times import Read, problem_where, read_time
from stentor.pipeline.frames.values import (
    is_range,
    no_problem,
    order_of_text,
    point_of_text,
    range_of_text,
    rounding_problem,
    time_of_text,
)
from stentor.wire.events import NESTED, RESERVED

#: The column that holds the texts.
TEXT: Final = "value"

_BLANK: Final = " \t\r\n\x1e\ufeff"
_PARSED: Final = "_stentor_parsed"
_CORRUPT: Final = "_stentor_corrupt"
_IS_UTF8: Final = "_stentor_is_utf8"
_NOT_UTF8: Final = "not UTF-8; save the text as UTF-8"
_OPTIONS: Final = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
#: How JSON begins that is not a string: numbers, objects, arrays, true, false.
_NOT_A_STRING: Final = tuple("-0123456789{[tf")
_TEXT_FIELDS: Final = ("op", "id", "order", "time", "until", "expression", "at")


def json_frame(texts: DataFrame, types: T.StructType, what: What, columns: Columns) -> DataFrame:
    """The records of *texts*, whose column `value` holds one each; blank ones are skipped.

    *types* are those of the attributes, *columns* the keys of the fields. The frame has each field
    under its own name, all attributes in one struct, and the columns of `Origin`.

    Cost: 5 µs for a record of ten attributes; 3 more for a point.
    """
    fields = {field: key for field in FIELDS[what] if (key := columns.of(field)) is not None}
    attributes = T.StructType() if what == "changes" else types
    text = F.btrim(column_of(TEXT).cast("string"), F.lit(_BLANK))
    origin = [name for name in (Origin.SOURCE, Origin.OFFSET) if name in texts.columns]
    # Inside an object, what follows the record is an error too.
    whole = F.concat(F.lit('{"record":'), text, F.lit("}"))
    wanted = _parsed_type(fields, attributes)
    parsed = texts.where(text != "").select(
        *map(column_of, origin),
        text.alias(Origin.RAW),
        F.is_valid_utf8(text).alias(_IS_UTF8),
        F.from_json(whole, wanted, _OPTIONS).alias(_PARSED),
    )
    read = {field: _read_field(field, key) for field, key in fields.items()}
    cells = {one.name: _read_attribute(one, fields) for one in attributes}
    unread = column_of(_PARSED)[_CORRUPT].isNotNull() | column_of(_PARSED)["record"].isNull()
    problem = F.coalesce(
        F.when(~column_of(_IS_UTF8), F.lit(_NOT_UTF8)),
        F.when(F.coalesce(unread, F.lit(True)), F.lit(UNREADABLE)),
        *(one.problem for one in (*read.values(), *cells.values())),
    )
    struct = [one.value.alias(name) for name, one in cells.items()]
    return parsed.select(
        *(one.value.alias(field) for field, one in read.items()),
        *([F.struct(*struct).alias(NESTED)] if struct else []),
        *map(column_of, origin),
        F.make_valid_utf8(column_of(Origin.RAW)).alias(Origin.RAW),
        problem.alias(Origin.PROBLEM),
    )


def _parsed_type(fields: dict[str, str], attributes: T.StructType) -> T.StructType:
    """What Spark's parser is to look for: fields, and attributes beside them or nested."""
    string = T.StringType()
    record = T.StructType()
    for field, key in fields.items():
        weights = T.MapType(string, T.DoubleType())
        record = record.add(key, string if field in _TEXT_FIELDS else weights)
    inner = T.StructType()
    for one in attributes:
        # What may have several forms is read as its own text first.
        is_plain = isinstance(one.dataType, (T.DoubleType, T.BooleanType))
        inner = inner.add(one.name, one.dataType if is_plain else string)
    for one in inner:
        if _is_flat(one.name, fields):
            record = record.add(one)
    if inner.fields:
        record = record.add(NESTED, inner)
    return T.StructType().add("record", record).add(_CORRUPT, string)


def _is_flat(name: str, fields: dict[str, str]) -> bool:
    """Whether an attribute of this *name* may stand beside the fields."""
    return name not in {*RESERVED, NESTED, *fields.values()}


def _read_field(field: str, key: str) -> Read:
    given = column_of(_PARSED)["record"].getField(key)
    if field == "weights":
        return Read(given, no_problem())
    if field == "at":
        return point_of_text(given, key)
    if field == "order":
        return order_of_text(given, key)
    if field in ("time", "until"):
        return time_of_text(given, key, is_seconds=_is_unquoted(given, key))
    if field == "id":
        bad = F.when(_is_unquoted(given, key), ~given.rlike(r"^-?\d+$"))
        return _strings(given, bad, key, "expected a string or an integer, got ")
    return _strings(given, _is_unquoted(given, key), key)


def _read_attribute(attribute: T.StructField, fields: dict[str, str]) -> Read:
    name, of = attribute.name, attribute.dataType
    record = column_of(_PARSED)["record"]
    nested = record.getField(NESTED)
    given = nested.getField(name)
    if _is_flat(name, fields):
        given = F.when(nested.isNull(), record.getField(name)).otherwise(given)
    if isinstance(of, T.StructType) and is_range(of):
        return _ranges(given, of, name)
    if isinstance(of, T.ArrayType):
        return point_of_text(given, name)
    if isinstance(of, T.DoubleType):
        digits = F.regexp_extract(column_of(Origin.RAW), _key(name) + r"(-?\d+)\s*[,}]", 1)
        return Read(given, rounding_problem(given, digits, name))
    if isinstance(of, T.BooleanType):
        return Read(given, no_problem())
    strings = _strings(given, _is_unquoted(given, name), name)
    if isinstance(of, T.TimestampType):
        moment = read_time(given, T.StringType(), name)
        return Read(moment.value, F.coalesce(strings.problem, moment.problem))
    return strings


def _ranges(given: Column, of: T.StructType, name: str) -> Read:
    read = range_of_text(given, of, name)
    is_string = given.isNotNull() & ~_is_unquoted(given, name)
    is_object = F.startswith(given, F.lit("{"))
    if isinstance(of.fields[0].dataType, T.TimestampType):
        strings = _strings(given, ~is_string & ~is_object, name)
    else:
        strings = _strings(given, is_string, name, "expected a number or a range, got the string ")
    return Read(read.value, F.coalesce(strings.problem, read.problem))


def _strings(
    given: Column, bad: Column, field: str, expected: str = "expected a string, got "
) -> Read:
    return Read(given, problem_where(bad, field, expected, given))


def _is_unquoted(given: Column, key: str) -> Column:
    """Whether the string that Spark gives was something else in the text.

    Cost: almost nothing unless it begins like something else; then one search in the text.
    """
    raw = column_of(Origin.RAW)
    is_quoted = (
        raw.contains(f'"{key}":"') | raw.contains(f'"{key}": "') | raw.rlike(_key(key) + '"')
    )
    return F.when(F.left(given, F.lit(1)).isin(*_NOT_A_STRING), ~is_quoted).otherwise(F.lit(False))


def _key(key: str) -> str:
    """The pattern of a *key* and its colon."""
    return f'"{re.escape(key)}"' + r"\s*:\s*"
