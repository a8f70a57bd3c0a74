"""Odd cells of every kind, for the tests that send them through each door."""

# ruff: noqa: E501

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa


class OddCell(NamedTuple):
    """What stands in an event's attribute `x`, and of which kind the schema says that this is."""

    kind: str
    raw: Any
    of: Any = None  # its Arrow type, where Arrow would infer another one, or none


_HALF = "\ud800"
_POINT = pa.struct([("lon", pa.float64()), ("lat", pa.float64())])
_ENDS = pa.struct([("low", pa.float64()), ("high", pa.float64())])
_PAIR = pa.list_(pa.float64())

NUMBERS = [
    *(OddCell("number", one) for one in (
        0, -1, 299, 2.5, -0.0, 0.1, 1e308, 5e-324, math.inf, -math.inf, math.nan, None,
        2**53, 2**53 + 1, -(2**53) - 1, 2**53 + 2, 2**60, 2**62 + 1, 2**63 - 1, -(2**63),
    )),
    *(OddCell("number", one, pa.uint64()) for one in (2**63, 2**64 - 1, 2**63 + 2048)),
    *(OddCell("number", one, pa.int8()) for one in (127, -128)),
    *(OddCell("number", one, pa.float32()) for one in (0.5, math.nan, math.inf, -0.0)),
    *(OddCell("number", Decimal(one), pa.decimal128(38, 4)) for one in (
        "1.25", "-0.5", "9007199254740993", "9007199254740994", "9007199254740993.5", "0",
        "123456789012345678901234567890",
    )),
    OddCell("number", Decimal(2**200), pa.decimal256(70, 0)),
    OddCell("number", b"5"), OddCell("number", [1]), OddCell("number", [1, 2, 3]), OddCell("number", []),
    OddCell("number", {"a": 1}), OddCell("number", timedelta(seconds=5)),
    OddCell("number", [["a"]]), OddCell("number", {"low": {"low": 1, "high": 2}, "high": 3}),
    OddCell("number", 2**70), OddCell("number", -(2**300)), OddCell("number", Fraction(1, 2)),
    OddCell("number", complex(1, 2)), OddCell("number", Decimal("NaN")), OddCell("number", Decimal("1e400")),
    OddCell("number", np.float32(1.5)), OddCell("number", np.int64(2**53 + 1)), OddCell("number", np.float64("nan")),
]  # fmt: skip
RANGES = [
    *(OddCell("number", {"low": low, "high": high}) for low, high in (
        (1, 2), (1, 1), (2, 1), (0.5, 1.5), (1.5, 0.5), (-math.inf, 3.0), (2**53 + 1, 2**60),
        (0, 2**53 + 1), ("a", "b"), (True, False), (1, "b"), (None, 1), (1, None), ([1], [2]),
    )),
    *(OddCell("number", {"low": low, "high": high}, _ENDS) for low, high in (
        (math.nan, 1.0), (1.0, math.nan), (None, 1.0), (1.0, None), (-0.0, 0.0), (math.inf, math.inf),
    )),
    OddCell("number", {"low": 1}), OddCell("number", {"high": 1}), OddCell("number", {"low": 1, "high": 2, "step": 1}),
    OddCell("timestamp", {"low": "2026-01-01", "high": "2026-01-02"}),
    OddCell("timestamp", {"low": "2026-01-02", "high": "2026-01-01"}),
    OddCell("timestamp", {"low": "2026-01-02", "high": "soon"}),
    OddCell("timestamp", {"low": datetime(2026, 1, 2, tzinfo=UTC), "high": datetime(2026, 1, 3, tzinfo=UTC)}),
    OddCell("timestamp", {"low": datetime(2026, 1, 2, tzinfo=UTC), "high": datetime(2026, 1, 1, tzinfo=UTC)}),
]  # fmt: skip
STRINGS = [
    *(OddCell("string", one) for one in (
        "", " ", "a", "ß", "東京", "\x00", "a\nb", "\ufeffx", "\ufffd", "😀", "e\u0301", _HALF, f"a{_HALF}b",
        "x" * 200, "x" * 201, "é" * 101, "NaN", "null", "5", "2026-01-01", None,
    )),
    OddCell("string", b"\xff", "broken"), OddCell("string", b"ok\xc3", "broken"),
    OddCell("string", b"x"), OddCell("string", ["a", "b"]), OddCell("string", {"a": "b"}),
    OddCell("string", np.str_("x")),
]  # fmt: skip
BOOLEANS = [OddCell("boolean", one) for one in (True, False, None, np.bool_(True), [True], b"1")]
TIMES = [
    *(OddCell("timestamp", one) for one in (
        "2026-01-01", "2026-02-30", "2026-1-2", "2026-01-01T12:00", "2026-01-01T12:00Z",
        "2026-01-01 12:00:00.5+01:00", "2026-01-01T12:00:00.1234567", "2026-01-01T12:00:00.123456000",
        "2026-01-01T25:00", "2026-01-01T12:00:61", "2026-01-01T12:00 Europe/Oslo", "2026-01-01T12:00 Nowhere/No",
        "2026-01-01T12:00+19:00", "2026-01-01T12:00+25:00", "", " ", "soon", "0000-01-01", "0001-01-01",
        "9999-12-31", "9999-12-31T23:59:59-01:00", "10000-01-01", "3000-01-01T00:00:00.000001", "x" * 100,
        None, "２０２６-01-01", " 2026-01-01 ", "2026-01-01t12:00",
    )),
    *(OddCell("timestamp", one) for one in (
        datetime(2026, 1, 1, 12), datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1))), date(2026, 1, 1), date(1, 1, 1),
        datetime(3000, 1, 1, microsecond=1), datetime(9999, 12, 31, 23, 59, 59), datetime(1, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999999),
    )),
    *(OddCell("timestamp", np.datetime64(one, unit), pa.timestamp(unit)) for one, unit in (
        (1, "ns"), (1_000, "ns"), (-1, "ns"), (2**62, "s"), (-(2**40), "s"), (253_402_300_800, "s"),
        (253_402_300_799_999, "ms"), (-62_135_596_801, "s"), (5, "us"),
    )),
    OddCell("timestamp", np.datetime64("NaT"), pa.timestamp("us")),
]  # fmt: skip
POINTS = [
    *(OddCell("point", one, _PAIR) for one in (
        [1.0, 2.0], [180.0, 90.0], [-180.0, -90.0], [500.0, 0.0], [0.0, 95.0], [95.0, 0.0], [-33.9, 151.2],
        [math.nan, 1.0], [1.0, math.inf], [1.0], [1.0, 2.0, 3.0], [], [None, 1.0], [1.0, None], [-0.0, 0.0],
    )),
    *(OddCell("point", one) for one in (
        [1, 2], [2**53 + 1, 0], ["1", "2"], [True, False], [[1, 2], [3, 4]], None, [1, 2, 3],
        {"lon": 1, "lat": 2}, {"longitude": 1, "latitude": 2}, {"x": 1, "y": 2}, {"lat": 2, "lon": 1},
        {"lon": 1, "lat": 95}, {"lon": "1", "lat": "2"}, {"x": 1}, {"x": 1, "y": 2, "z": 3}, {"lon": 1, "y": 2},
        {"type": "Point", "coordinates": [1.0, 2.0]}, {"type": "Point", "coordinates": [1.0, 2.0, 3.0]},
        {"type": "Point", "coordinates": [1.0]}, {"type": "Point", "coordinates": [200.0, 0.0]},
        {"type": "Point", "coordinates": [95.0, 0.0]}, {"type": "Point", "coordinates": "0 0"},
        {"type": "LineString", "coordinates": [1.0, 2.0]}, {"type": 5, "coordinates": [1.0, 2.0]},
        {"type": "Point", "coordinates": []}, {"type": "Point"},
    )),
    *(OddCell("point", {"lon": x, "lat": y}, _POINT) for x, y in (
        (None, 1.0), (1.0, None), (math.nan, 1.0), (math.inf, 1.0), (181.0, 0.0), (0.0, -90.5),
    )),
    OddCell("point", np.array([1.0, 2.0])), OddCell("point", (1.0, 2.0)),
    OddCell("point", b"POINT(1 2)"),
]  # fmt: skip

POINTS += [
    *(OddCell("point", one) for one in (
        "POINT(1 2)", "point ( -1.5 2e1 )", "POINT Z (1 2 3)", "SRID=4326;POINT(1 2)", "POINT(1)", "POINT EMPTY",
        "POINT(200 1)", "LINESTRING(1 2, 3 4)", "1 2", "0101000000000000000000f03f0000000000000040", "01010000",
        bytes.fromhex("0101000000000000000000f03f0000000000000040"),
        bytes.fromhex("0101000020e6100000000000000000f03f0000000000000040"),
        bytes.fromhex("0102000000000000000000f03f0000000000000040"), b"",
    )),
]  # fmt: skip
_SET = pa.struct([("set", pa.list_(pa.string()))])
SETS = [
    *(OddCell("set", one) for one in (
        ["a", "b"], ["b", "a", "b"], [], None, [1, 2], [1.0, 2.0, 3.0], [2**53 + 1], ["", " ", "\x00", "é", "e\u0301"],
        [True], [["a"]], [{"a": 1}], "a", "[]", '["a", 1]', "[1, 2", "[[1]]", 5, b"x", {"a": 1}, {"set": ["a"]},
        {"set": [1, 2]}, {"set": "[1, 2]"}, {"low": 1, "high": 2}, ["x" * 201], [_HALF], np.array([1.0, 2.0]),
    )),
    *(OddCell("set", one, pa.list_(pa.string())) for one in (["a", None], [None], [])),
    *(OddCell("set", one, pa.list_(pa.float64())) for one in ([1.0, math.nan], [None, 1.0], [-0.0], [math.inf])),
    OddCell("set", ["a", 1]), OddCell("set", [Decimal("1.5")]), OddCell("set", {"set": ["a"]}, _SET),
    OddCell("string", {"set": ["a"]}), OddCell("number", {"low": 5}), OddCell("number", {"above": 1, "below": 2}),
    OddCell("number", {"low": 1, "above": 1}), OddCell("number", {"above": 2, "high": 2}),
    OddCell("timestamp", {"above": "2026-01-01"}), OddCell("timestamp", {"below": datetime(2026, 1, 2, tzinfo=UTC)}),
]  # fmt: skip

CELLS = [*NUMBERS, *RANGES, *STRINGS, *BOOLEANS, *TIMES, *POINTS, *SETS]

_WEIGHTS = pa.map_(pa.string(), pa.float64())
_MOMENT = np.datetime64

#: Fields of an event, each with a raw value and its Arrow type.
FIELDS = [
    *(("id", one, None) for one in ("a", "", None, 7, -7, "x" * 512, "x" * 513, "ß" * 256, "ß" * 257, _HALF, "\x00")),
    *(("id", one, pa.uint64()) for one in (2**64 - 1,)),
    *((field, one, None) for field in ("until", "time") for one in (
        None, 5, -5, 2.5, "2026-01-01", "soon", "", "2026-02-30", "2026-01-01T12:00:00.1234567", 10**12, -(10**12),
        1e300, math.nan, math.inf, 253_402_300_799, 253_402_300_800, datetime(2026, 1, 1), date(2026, 1, 1),
    )),
    *((field, _MOMENT(one, unit), pa.timestamp(unit)) for field in ("until", "time") for one, unit in (
        (1, "ns"), (1_000, "ns"), (2**62, "s"), (-62_135_596_801, "s"), (253_402_300_800, "s"),
    )),
    *(("weights", one, _WEIGHTS) for one in (
        None, {}, {"x": 0.0}, {"x": 1.0}, {"x": -1.0}, {"x": math.nan}, {"x": math.inf}, {"x": 1e101}, {"x": None},
        {"": 1.0}, {"n" * 513: 1.0}, {"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 1.0, "b": -2.0},
    )),
    *(("weights", {"x": one}, pa.map_(pa.string(), pa.int64())) for one in (1, -1, 2**53 + 1)),
    *(("op", one, None) for one in ("publish", "move", "", "Publish", None)),
    *(("seq", one, None) for one in (0, 5, -1, 2**63 - 1)),
    ("seq", 2**63, pa.uint64()),
]  # fmt: skip
