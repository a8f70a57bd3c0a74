"""Which column of a DataFrame is which field of a record, checked before anything runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from stentor.errors import SettingsError
from stentor.model import Kind
from stentor.pipeline.sources import DEFAULT_COLUMNS, FIELDS, Columns, What
from stentor.pipeline.sources.attribute_types import kind_of_type
from stentor.pipeline.sources.values import TIMES, can_be_time, is_number
from stentor.wire.events import NESTED, RESERVED

__all__ = [
    "DEFAULT_COLUMNS",
    "FIELDS",
    "Columns",
    "Origin",
    "What",
    "alike_names",
    "attribute_columns",
    "check_columns",
    "column_of",
    "field_mistake",
    "is_nested",
    "named_columns",
    "types_of",
    "unknown_columns",
]

_REQUIRED: Final[dict[What, tuple[str, ...]]] = {
    "events": ("id", "order", "time"),
    "changes": ("id", "order", "time"),
    "records": ("id", "order", "time", "op"),
}


class Origin:
    """Columns in which a source says of each row where it came from and what is wrong with it."""

    SOURCE: Final = "_stentor_source"
    OFFSET: Final = "_stentor_offset"
    PROBLEM: Final = "_stentor_problem"
    RAW: Final = "_stentor_raw"
    ALL: Final = (SOURCE, OFFSET, PROBLEM, RAW)


def named_columns(names: Mapping[str, str]) -> Columns:
    """What a frame calls its fields, where *names* gives the column of some of them.

    >>> named_columns({"id": "event_id"}).id
    'event_id'
    """
    fields = sorted(field.name for field in dataclasses.fields(Columns))
    for field, name in names.items():
        if field not in fields:
            raise SettingsError(
                f"columns: {field!r} is no field of a record{_nearest(field, fields)}; "
                f"there are {', '.join(fields)}"
            )
        if not isinstance(name, str):
            raise SettingsError(f"columns, {field}: expected the name of a column, got {name!r}")
    return Columns(**names)


def column_of(name: str) -> Column:
    """The column called *name*, whatever characters that has."""
    return F.col("`" + name.replace("`", "``") + "`")


def types_of(df: DataFrame) -> dict[str, T.DataType]:
    """The columns of *df* and their types."""
    return {field.name: field.dataType for field in df.schema.fields}


def is_nested(df: DataFrame) -> bool:
    """Whether the attributes of *df* are the fields of one struct column."""
    return isinstance(types_of(df).get(NESTED), T.StructType)


def attribute_columns(df: DataFrame, what: What, columns: Columns) -> dict[str, T.DataType]:
    """The attributes of *df*, and their types."""
    types = types_of(df)
    nested = types.get(NESTED)
    if isinstance(nested, T.StructType):
        return {field.name: field.dataType for field in nested.fields}
    taken = {*RESERVED, *Origin.ALL, *(columns.of(field) for field in FIELDS[what])}
    return {name: of for name, of in types.items() if name not in taken}


def check_columns(df: DataFrame, what: What, columns: Columns, frame: str) -> None:
    """A SettingsError that says what is wrong with the columns of *df*, all of it at once."""
    types = types_of(df)
    nested = types.get(NESTED)
    inner = nested.names if isinstance(nested, T.StructType) else []
    mistakes = alike_names(df.sparkSession, df.columns, frame)
    mistakes += alike_names(df.sparkSession, inner, frame)
    for field in FIELDS[what]:
        name = columns.of(field)
        if name is None:
            continue
        if name in types:
            mistake = field_mistake(field, types[name])
            if mistake is not None:
                mistakes.append(f"{frame}, column {name!r}: {mistake}; cast the column")
        elif field in _REQUIRED[what] or columns.is_named(field):
            mistakes.append(
                f"{frame}: there is no column {name!r}, which holds the {field}"
                f"{_nearest(name, df.columns)}; it has {', '.join(df.columns) or 'no columns'}"
            )
    if "among" in types and what != "changes":
        mistakes.append(f"{frame}: Spark's events are for everybody; drop the column 'among'")
    mistakes += [
        f"{frame}: {mistake}; rename or drop it"
        for mistake in unknown_columns(df, what, columns).values()
    ]
    if mistakes:
        raise SettingsError("\n".join(mistakes))


def alike_names(spark: SparkSession, names: Iterable[str], frame: str) -> list[str]:
    """A sentence for each pair of *names* that Spark cannot tell apart."""
    is_exact = spark.conf.get("spark.sql.caseSensitive") == "true"
    seen: dict[str, str] = {}
    mistakes = []
    for name in names:
        key = name if is_exact else name.lower()
        if key in seen:
            advice = "" if seen[key] == name else ", or set spark.sql.caseSensitive to true"
            mistakes.append(
                f"{frame}: Spark cannot tell the columns {seen[key]!r} and {name!r} apart; rename "
                f"or drop one{advice}"
            )
        seen[key] = name
    return mistakes


def field_mistake(field: str, of: T.DataType) -> str | None:
    """What is wrong with a column of the type *of* for a *field*; None where it will do."""
    expected, fits = _EXPECTED[field]
    if fits(of) or isinstance(of, T.NullType):
        return None
    return f"expected {expected}, got {of.simpleString()}"


def unknown_columns(df: DataFrame, what: What, columns: Columns) -> dict[str, str]:
    """What is neither a field nor an attribute, and what to say of it.

    It may be a misspelled `until`, which would be lost.
    """
    nested = is_nested(df)
    if what != "changes" and not nested:
        return {}
    own = [name for field in FIELDS[what] if (name := columns.of(field)) is not None]
    known = {*own, *RESERVED, *Origin.ALL, *((NESTED,) if nested else ())}
    kind = "changes" if what == "changes" else f'{what} with a column "{NESTED}"'
    return {
        name: f"{kind} have no column {name!r}{_nearest(name, own)}"
        for name in df.columns
        if name not in known
    }


def _nearest(name: str, names: list[str]) -> str:
    by_folded = {one.casefold(): one for one in names}
    close = get_close_matches(name.casefold(), by_folded, n=1)
    return f" (did you mean {by_folded[close[0]]!r}?)" if close else ""


def _is_integer(of: T.DataType) -> bool:
    return isinstance(of, T.IntegralType) or (isinstance(of, T.DecimalType) and of.scale == 0)


def _is_weights(of: T.DataType) -> bool:
    if isinstance(of, T.MapType):
        return isinstance(of.keyType, T.StringType) and is_number(of.valueType)
    return isinstance(of, T.StructType) and all(
        is_number(one.dataType) or isinstance(one.dataType, T.NullType) for one in of.fields
    )


def _is_string(of: T.DataType) -> bool:
    return isinstance(of, T.StringType)


_EXPECTED: Final[dict[str, tuple[str, Callable[[T.DataType], bool]]]] = {
    "op": ("a string", _is_string),
    "id": ("a string or an integer", lambda of: _is_string(of) or _is_integer(of)),
    "order": (
        "an integer or a timestamp",
        lambda of: isinstance(of, (T.IntegralType, T.TimestampType)),
    ),
    "time": (TIMES, can_be_time),
    "until": (TIMES, can_be_time),
    "weights": ("a map<string,double> or a struct of numbers", _is_weights),
    "expression": ("a string", _is_string),
    "at": (
        "a place: array<double>, struct<lon, lat> or GeoJSON's struct<type, coordinates>",
        lambda of: kind_of_type(of) is Kind.POINT,
    ),
}
