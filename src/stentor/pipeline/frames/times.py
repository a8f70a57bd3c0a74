"""Columns of timestamps, of their texts or of seconds → timestamps, in native columns.

What `stentor.model.time.instant` reads is read alike, whatever the session's time zone: a timestamp
that names no zone is UTC. One thing is narrower: a zone is an offset of at most 18 hours, Z, UTC,
GMT or a name with a slash like Europe/Oslo; about the other names Java and Python disagree. What
named zones were before 1970, each takes from tables of its own.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from stentor.model.time import LATEST

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
    """What stands in *column*, for a message: cut, and between quotes; null is `nothing`."""
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
        number = F.nanvl(column.cast("double"), F.lit(None).cast("double"))  # NaN says nothing
        usable = F.abs(number) <= _LATEST_SECOND
        micros = F.rint(number * 1e6).cast("bigint")
    else:
        number = column.cast("bigint")
        usable = number.between(-_LATEST_SECOND, _LATEST_SECOND)
        micros = number * 1_000_000
    value = F.when(usable, F.timestamp_micros(F.when(usable, micros)))
    advice = " seconds since 1970 is not in the years 1 to 9999; divide milliseconds by 1,000"
    return Read(value, problem_where(~usable, field, column.cast("string"), advice))
