"""Spark's types ↔ kinds of attributes: what a DataFrame's columns can be in an event.

    number      byte, short, int, long, float, double, decimal
    string      string; also a timestamp's text where the schema says so
    boolean     boolean
    timestamp   timestamp, timestamp_ntz (taken as UTC), date
    point       array of numbers, struct<lon, lat>, <longitude, latitude>, <x, y>, or GeoJSON's
                struct<type, coordinates>; well-known text and binary where the schema says so
    set         array of strings; of numbers where the schema says so; struct<set> of its text
    a range     struct<low, high> of two numbers or two timestamps: of their kind

These are the types that `stentor.wire.cells` reads from Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import types as T  # noqa: N812

from stentor.errors import SettingsError
from stentor.model import Kind, Schema
from stentor.model.values.nested import names_of_a_value
from stentor.model.values.one_of import NAMES
from stentor.pipeline.commit.manifests import Commits
from stentor.pipeline.sources import RANGE
from stentor.pipeline.sources.text_records import NO_SETS
from stentor.pipeline.sources.values import (
    NUMBER_RANGE,
    POINT,
    SET,
    TIME_RANGE,
    is_number,
    is_range,
)
from stentor.pipeline.storage.folder import StreamFolder

_PAIRS: Final = ({"x", "y"}, {"lon", "lat"}, {"longitude", "latitude"})
_EXPECTED: Final = (
    "a number, a string, a boolean, a timestamp, a point (array<double> or struct<lon, lat>) or a "
    "range (struct<low, high>)"
)
_TYPES: Final[dict[str, T.DataType]] = {
    Kind.NUMBER: T.DoubleType(),
    Kind.STRING: T.StringType(),
    Kind.BOOLEAN: T.BooleanType(),
    Kind.TIMESTAMP: T.TimestampType(),
    Kind.POINT: POINT,
    Kind.SET: SET,
    Kind.NUMBER + RANGE: NUMBER_RANGE,
    Kind.TIMESTAMP + RANGE: TIME_RANGE,
}
_INTEGERS: Final = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)


def kind_of_type(of: T.DataType, declared: Kind | None = None) -> Kind | None:
    """The kind of attribute that a column of the type *of* holds; None where none can.

    >>> kind_of_type(T.ArrayType(T.DoubleType()))
    <Kind.POINT: 'point'>
    >>> kind_of_type(T.StringType(), Kind.TIMESTAMP)
    <Kind.TIMESTAMP: 'timestamp'>
    """
    if is_number(of):
        return Kind.NUMBER
    if isinstance(of, (T.StringType, T.CharType, T.VarcharType)):
        is_text_of = declared in (Kind.TIMESTAMP, Kind.POINT, Kind.SET)
        return declared if is_text_of else Kind.STRING
    if isinstance(of, T.BinaryType):
        return declared if declared is Kind.POINT else None
    if isinstance(of, T.BooleanType):
        return Kind.BOOLEAN
    if isinstance(of, (T.TimestampType, T.TimestampNTZType, T.DateType)):
        return Kind.TIMESTAMP
    if isinstance(of, T.ArrayType):
        if isinstance(of.elementType, T.StringType):
            return Kind.SET
        if not is_number(of.elementType):
            return None
        return Kind.SET if declared is Kind.SET else Kind.POINT
    if isinstance(of, T.StructType):
        return _kind_of_struct(of, declared)
    return None


def usable_types(
    types: Mapping[str, T.DataType], frame: str, declared: Schema | None = None
) -> tuple[dict[str, T.DataType], list[str]]:
    """Those of a frame's columns that are attributes, and a sentence for each that cannot be.

    A *declared* schema names the columns that count, and their kinds. A column of nothing but
    nulls (void) has no kind, and is left out.
    """
    found: dict[str, T.DataType] = {}
    mistakes = []
    for name, of in types.items():
        if isinstance(of, T.NullType) or (declared is not None and name not in declared):
            continue
        expected = declared.kind(name) if declared is not None else None
        names = of.names if isinstance(of, T.StructType) else []
        if names_of_a_value(names) and not NAMES.isdisjoint(names):
            mistakes.append(f"{frame}, column {name!r}: {NO_SETS}")
            continue
        kind = kind_of_type(of, expected)
        if kind is None and declared is None:
            continue  # nobody can ask for it
        if kind is None:
            mistakes.append(
                f"{frame}, column {name!r}: {of.simpleString()} is no type of an attribute; "
                f"expected {_EXPECTED}. Cast the column or drop it"
                + ("" if declared is not None else ", or declare a schema without it")
            )
        elif expected not in (None, kind):
            mistakes.append(
                f"{frame}, column {name!r}: expected a {expected}, as the schema says, "
                f"got {of.simpleString()}; cast the column, or change the schema"
            )
        else:
            found[name] = _TYPES[kind] if kind_of_type(of) not in (None, kind) else of
    return found, mistakes


def common_types(
    frames: Iterable[tuple[str, Mapping[str, T.DataType]]], declared: Schema | None = None
) -> T.StructType:
    """The one struct type that holds the attributes of all *frames* (a name, and its types).

    Columns of one kind but several types get the widest: doubles, timestamps, arrays of two
    numbers, ranges. A SettingsError names every column of two kinds.
    """
    common: dict[str, tuple[str, T.DataType]] = {}
    mistakes = []
    for frame, types in frames:
        for name, of in types.items():
            first, known = common.setdefault(name, (frame, of))
            merged = _merged(known, of, declared.kind(name) if declared is not None else None)
            if merged is None:
                mistakes.append(
                    f"the column {name!r} is {of.simpleString()} in {frame}, but "
                    f"{known.simpleString()} in {first}; cast one of them: one name has one type"
                )
            else:
                common[name] = first, merged
    if declared is not None and common:
        # A source without a declared attribute is a mistake only where no other has it.
        mistakes += [
            f"no source of events has a column {name!r}, which the schema declares; "
            f"they have {', '.join(common)}"
            for name in declared
            if name not in common
        ]
    if mistakes:
        raise SettingsError("\n".join(mistakes))
    return T.StructType([T.StructField(name, nullable(of)) for name, (_, of) in common.items()])


def first_kinds(frames: Iterable[Mapping[str, T.DataType]]) -> T.StructType:
    """The attributes of all *frames*; one that two differ about is of the first one's kind."""
    common: dict[str, T.DataType] = {}
    for types in frames:
        for name, of in types.items():
            known = common.setdefault(name, of)
            common[name] = _merged(known, of, None) or known
    return T.StructType([T.StructField(name, nullable(of)) for name, of in common.items()])


def check_still_fit(now: T.StructType, began: T.StructType) -> None:
    """A SettingsError names each attribute whose values no longer fit the type it *began* with.

    >>> was = T.StructType([T.StructField("price", T.LongType())])
    >>> check_still_fit(T.StructType([T.StructField("price", T.IntegerType())]), was)
    >>> check_still_fit(T.StructType([T.StructField("price", T.DoubleType())]), was)
    Traceback (most recent call last):
    stentor.errors.SettingsError: the column 'price' is double now, but was bigint when the \
pipeline began; cast it, or choose another folder
    """
    types = {one.name: one.dataType for one in now.fields}
    mistakes = [
        f"the column {one.name!r} is {types[one.name].simpleString()} now, but was "
        f"{one.dataType.simpleString()} when the pipeline began; cast it, or choose another folder"
        for one in began.fields
        if one.name in types and not _fits(types[one.name], one.dataType)
    ]
    if mistakes:
        raise SettingsError("\n".join(mistakes))


def types_of_kinds(kinds: Mapping[str, str]) -> T.StructType:
    """The struct type of attributes of these *kinds*; "number range", "timestamp range" too.

    >>> types_of_kinds({"price": "number", "loc": "point"}).simpleString()
    'struct<price:double,loc:array<double>>'
    """
    Schema.declare({name: kind.removesuffix(RANGE) for name, kind in kinds.items()})
    return T.StructType([T.StructField(name, _TYPES[kind]) for name, kind in kinds.items()])


def kinds_of_types(types: T.StructType) -> dict[str, str]:
    """The kinds of attributes of these *types*, from which `types_of_kinds` makes types again."""
    return {
        one.name: f"{kind_of_type(one.dataType)}{RANGE if is_range(one.dataType) else ''}"
        for one in types.fields
    }


def nullable(of: T.DataType) -> T.DataType:
    """The type *of* with nulls allowed everywhere inside, as when frames are put together."""
    if isinstance(of, T.ArrayType):
        return T.ArrayType(nullable(of.elementType))
    if isinstance(of, T.StructType):
        return T.StructType([T.StructField(one.name, nullable(one.dataType)) for one in of.fields])
    return of


def schema_of(types: T.StructType, *, plane: bool = False) -> Schema:
    """The closed schema of events whose attributes have these Spark *types*.

    >>> schema_of(T.StructType([T.StructField("price", T.LongType())]))
    Schema(price: number)
    """
    usable, mistakes = usable_types({one.name: one.dataType for one in types.fields}, "the events")
    if mistakes:
        raise SettingsError("\n".join(mistakes))
    kinds = {name: kind_of_type(of) or Kind.STRING for name, of in usable.items()}
    return Schema.closed(kinds, plane=plane)


def committed_kinds(path: Path | StreamFolder) -> dict[str, str] | None:
    """The kinds of attributes that the pipeline *path* began with; None before its first batch."""
    last = Commits(path).last()
    if last is None:
        return None
    return kinds_of_types(T.StructType.fromJson(last.settings["attributes"]))


def _fits(now: T.DataType, began: T.DataType) -> bool:
    """Whether every value of the type *now* is one of the type *began*, however written."""
    if isinstance(now, _INTEGERS) and isinstance(began, _INTEGERS):
        return _INTEGERS.index(type(now)) <= _INTEGERS.index(type(began))
    return _merged(began, nullable(now), kind_of_type(began)) == began


def _merged(first: T.DataType, second: T.DataType, declared: Kind | None) -> T.DataType | None:
    if first.simpleString() == second.simpleString():
        return first
    kinds = {kind_of_type(one, declared) for one in (first, second)}
    has_range = is_range(first) or is_range(second)
    if kinds == {Kind.NUMBER}:
        return NUMBER_RANGE if has_range else T.DoubleType()
    if kinds == {Kind.TIMESTAMP}:
        return TIME_RANGE if has_range else T.TimestampType()
    if kinds == {Kind.SET}:
        return SET
    return POINT if kinds == {Kind.POINT} else None


def _kind_of_struct(of: T.StructType, declared: Kind | None) -> Kind | None:
    fields = {field.name: field.dataType for field in of.fields}
    if set(fields) in _PAIRS:
        return Kind.POINT if all(map(is_number, fields.values())) else None
    if set(fields) == {"type", "coordinates"}:
        is_pair = kind_of_type(fields["coordinates"]) is Kind.POINT
        return Kind.POINT if is_pair and isinstance(fields["type"], T.StringType) else None
    if set(fields) == {"set"}:
        return Kind.SET
    if set(fields) == {"low", "high"}:
        kinds = {kind_of_type(one, declared) for one in fields.values()}
        return kinds.pop() if kinds in ({Kind.NUMBER}, {Kind.TIMESTAMP}) else None
    return None
