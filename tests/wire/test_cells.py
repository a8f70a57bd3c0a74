"""Every Arrow type that a column may have, and what its cells become."""

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.errors import RecordError
from stentor.model import Kind
from stentor.model.values import read_value
from stentor.model.values.time import EARLIEST, LATEST
from stentor.wire.cells import read_cells
from stentor.wire.cells.layout import one_array
from stentor.wire.cells.raw import raw_cell
from stentor.wire.cells.string import string_array
from stentor.wire.limits import RecordLimits


def read(array, **options):
    return read_cells(array, field="x", **options)


def values(array, **options):
    """The plain values of *array*, which must have no bad row."""
    cells = read(array, **options)
    assert not cells.reasons
    assert cells.doubtful is None
    if cells.strings is not None:
        found = string_array(cells).to_pylist()
    elif cells.kind is Kind.POINT:
        found = [list(pair) for pair in zip(cells.low.tolist(), cells.high.tolist(), strict=True)]
    elif cells.high is cells.low:
        found = cells.low.tolist()
    else:
        ends = zip(cells.low.tolist(), cells.high.tolist(), strict=True)
        found = [{"low": low, "high": high} for low, high in ends]
    return [cell if there else None for cell, there in zip(found, cells.valid, strict=True)]


def bad(array, **options):
    """The bad rows of *array*."""
    return sorted(read(array, **options).reasons)


# Numbers


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integers_of_any_width_are_numbers(bits):
    for name in (f"int{bits}", f"uint{bits}"):
        array = pa.array([9, 1, None, 127, 5], getattr(pa, name)())
        assert values(array[1:]) == [1.0, None, 127.0, 5.0]
        assert read(array).kind is Kind.NUMBER


def test_an_integer_that_a_double_cannot_hold_is_a_bad_cell():
    array = pa.array([2**53, 2**53 + 1, None, -(2**53) - 1, 2**63 - 1, -(2**63), 2**60], pa.int64())
    assert bad(array) == [1, 3, 4]
    assert bad(pa.array([2**64 - 1, 2**63, 2**53 + 1, 0], pa.uint64())) == [0, 2]


def test_what_stands_under_a_null_is_not_looked_at():
    huge = np.array([1, 2**53 + 1], np.int64)
    array = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(huge)])
    assert values(array) == [1.0, None]


@pytest.mark.parametrize("of", [pa.float16(), pa.float32(), pa.float64()])
def test_nan_is_missing_and_minus_zero_is_zero(of):
    array = pa.array(np.array([7, np.nan, -0.0, np.inf, 0.5], of.to_pandas_dtype()), of)[1:]
    found = values(array)
    assert found == [None, 0.0, math.inf, 0.5]
    assert math.copysign(1.0, found[1]) == 1.0


def test_booleans_are_read_across_a_slice():
    array = pa.array([True, False, None, True] * 5)[3:]
    assert values(array) == array.to_pylist()
    assert read(array).kind is Kind.BOOLEAN


decimals = st.decimals(allow_nan=False, allow_infinity=False, min_value=-10**20, max_value=10**20,
                       places=10)  # fmt: skip


@given(st.lists(decimals | st.none(), min_size=1, max_size=6))
def test_decimals_become_the_nearest_double_and_whole_ones_must_be_exact(cells):
    for of in (pa.decimal128(38, 10), pa.decimal256(60, 10)):
        array = pa.array(cells, of)
        wrong = [
            row
            for row, cell in enumerate(cells)
            if cell is not None and cell == int(cell) and int(float(cell)) != cell
        ]
        assert bad(array) == wrong
        doubles = read(array).low
        for cell, double in zip(cells, doubles, strict=True):
            assert cell is None or double == float(cell)


def test_decimals_of_any_width_and_scale_are_numbers():
    assert values(pa.array([Decimal("1.25"), None], pa.decimal32(5, 2))) == [1.25, None]
    assert values(pa.array([Decimal("1.25")], pa.decimal64(12, 2))) == [1.25]
    assert values(pa.array([Decimal("12E5")], pa.decimal128(5, -5))) == [1_200_000.0]
    assert bad(pa.array([Decimal(2**53 + 1), Decimal(2**60)], pa.decimal128(30, 0))) == [0]


# Strings


@pytest.mark.parametrize(
    "of",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string()),
    ],
)
def test_strings_of_every_layout_and_slice_are_strings(of):
    expected = ["first", "", None, "東京都 is longer than a view's inline bytes", "last"]
    array = pa.array(expected, pa.string()).cast(of)
    assert values(array) == expected
    assert values(array[1:4]) == expected[1:4]
    assert values(array[5:]) == []
    chunked = pa.chunked_array([array[2:], array[:2]])
    assert values(one_array(chunked)) == expected[2:] + expected[:2]


def test_runs_are_strings_too():
    assert values(pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"])) == ["a", "a", "b"]


def test_bytes_under_a_null_do_not_come_through():
    offsets = pa.py_buffer(np.array([0, 1, 4, 5], np.int32))
    valid, data = pa.py_buffer(b"\x05"), pa.py_buffer(b"aXXXb")
    array = pa.Array.from_buffers(pa.string(), 3, [valid, offsets, data])
    cells = read(array)
    assert values(array) == ["a", None, "b"]
    assert np.diff(cells.strings.offsets).tolist() == [1, 0, 1]


def test_strings_are_not_copied_where_arrow_has_them_ready():
    array = pa.array(["a", "bc", "def"], pa.large_string())
    strings = read(array).strings
    assert strings.data.ctypes.data == array.buffers()[2].address
    assert strings.offsets.ctypes.data == array.buffers()[1].address


def strings_of_bytes(pieces):
    return pa.array(pieces, pa.binary()).view(pa.string())


def test_bytes_that_are_no_utf8_are_a_bad_cell():
    array = strings_of_bytes([b"a", b"\xff", None, b"\xc3"])
    assert bad(array) == [1, 3]
    assert bad(array.cast(pa.string_view())) == [1, 3]
    assert bad(array[2:]) == [1]
    assert bad(strings_of_bytes([b"1970-01-01", b"\xff"]), kind=Kind.TIMESTAMP) == [1]


def test_damaged_offsets_are_an_error_that_names_the_column():
    offsets = pa.py_buffer(np.array([0, 100, 5], np.int32))
    array = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abcde")])
    with pytest.raises(RecordError, match="column 'x': the Arrow array is damaged"):
        read(array)


def test_a_string_above_the_limit_is_a_bad_cell():
    assert bad(pa.array(["aaa", "aaaa", "éé"]), limits=RecordLimits(string_bytes=3)) == [1, 2]


# Times


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Rome", "+05:30"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_any_unit_and_zone_are_instants(unit, zone):
    factor = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    array = pa.array([0, 5 * factor, None, -factor], pa.int64()).cast(pa.timestamp(unit, zone))
    cells = read(array[1:])
    assert cells.kind is Kind.TIMESTAMP
    assert cells.valid.tolist() == [True, False, True]
    assert cells.low[[0, 2]].tolist() == [5e6, -1e6]


def test_nanoseconds_that_are_no_microseconds_are_bad():
    array = pa.array([1_000, 1_001, None, -1], pa.int64()).cast(pa.timestamp("ns"))
    assert bad(array) == [1, 3]


def test_years_without_a_text_are_bad():
    for unit, factor in (("s", 10**6), ("ms", 10**3), ("us", 1)):
        ends = [EARLIEST // factor, LATEST // factor, EARLIEST // factor - 1, LATEST // factor + 1]
        whole = [one - one % (10**6 // factor) for one in ends[:2]]
        array = pa.array([*whole, *ends[2:], 2**62], pa.int64()).cast(pa.timestamp(unit))
        assert bad(array) == [2, 3, 4]


def test_a_microsecond_that_a_double_cannot_hold_is_bad():
    year_3000 = 32_503_680_000 * 10**6
    array = pa.array([year_3000, year_3000 + 1], pa.int64()).cast(pa.timestamp("us"))
    assert bad(array) == [1]


def test_dates_are_their_midnight_in_utc():
    days = pa.array([1, None, -1], pa.int32()).cast(pa.date32())
    assert read(days).low[[0, 2]].tolist() == [86_400e6, -86_400e6]
    assert read(days.cast(pa.date64())).low[[0, 2]].tolist() == [86_400e6, -86_400e6]
    assert bad(pa.array([10**7], pa.int32()).cast(pa.date32())) == [0]


def test_texts_are_timestamps_where_the_schema_expects_them():
    array = pa.array(["1970-01-01", None, "soon", "1970-01-01 01:00:00+01:00", ""])
    cells = read(array, kind=Kind.TIMESTAMP)
    assert cells.kind is Kind.TIMESTAMP
    assert cells.valid.tolist() == [True, False, True, True, True]
    assert cells.low[[0, 3]].tolist() == [0.0, 0.0]
    assert bad(array, kind=Kind.TIMESTAMP) == [2, 4]
    assert values(array) == array.to_pylist()


# Points and ranges


def points(names, cells, of=None):
    of = of or pa.float64()
    return pa.array(
        [cell and dict(zip(names, cell, strict=True)) for cell in cells],
        pa.struct([(name, of) for name in names]),
    )


@pytest.mark.parametrize(
    "names", [("x", "y"), ("lon", "lat"), ("longitude", "latitude"), ("lat", "lon")]
)
def test_structs_of_two_coordinates_are_points(names):
    swapped = names[0] == "lat"
    cells = [(9.0, 9.0), None, (90.0, -45.0), (0.0, -0.0)]
    expected = [None, [-45.0, 90.0] if swapped else [90.0, -45.0], [0.0, 0.0]]
    assert values(points(names, cells)[1:]) == expected


def test_lists_of_two_numbers_are_points():
    cells = [[9, 9], None, [180, -90], [0, 90]]
    expected = [None, [180.0, -90.0], [0.0, 90.0]]
    for of in (pa.list_(pa.float64()), pa.large_list(pa.int32()), pa.list_(pa.float32(), 2)):
        assert values(pa.array(cells, of)[1:]) == expected


def test_geojson_points_are_points():
    cells = [
        {"type": "Point", "coordinates": [9.0, 9.0]},
        None,
        {"type": "Point", "coordinates": [1.0, 2.0, 3.0]},
        {"type": "Point", "coordinates": [3.0, 4.0]},
    ]
    assert values(pa.array(cells)[1:]) == [None, [1.0, 2.0], [3.0, 4.0]]
    wrong = [
        {"type": "LineString", "coordinates": [1.0, 2.0]},
        {"type": "Point", "coordinates": [1.0]},
        {"type": "Point", "coordinates": None},
        {"type": None, "coordinates": [1.0, 2.0]},
        {"type": "Point", "coordinates": [200.0, 0.0]},
        {"type": "Point", "coordinates": [1.0, 2.0]},
    ]
    assert bad(pa.array(wrong)) == [0, 1, 2, 3, 4]


def test_coordinates_that_are_no_place_are_bad():
    cells = [
        (181.0, 0.0),
        (0.0, 91.0),
        (math.inf, 0.0),
        (math.nan, 0.0),
        (None, 0.0),
        (180.0, 90.0),
    ]
    assert bad(points(("x", "y"), cells)) == [0, 1, 2, 3, 4]
    assert bad(points(("x", "y"), cells), plane=True) == [2, 3, 4]
    lists = pa.array([[1.0], [1.0, 2.0, 3.0], [1.0, None], [], [1.0, 2.0]])
    assert bad(lists, kind=Kind.POINT) == [0, 1, 2, 3]
    assert read(lists).kind is Kind.SET
    assert bad(points(("x", "y"), [(2**53 + 1, 0)], pa.int64()), plane=True) == [0]


def test_a_struct_of_nothing_but_nulls_is_missing():
    assert values(points(("lon", "lat"), [(None, None), (1.0, 2.0)])) == [None, [1.0, 2.0]]
    assert values(points(("low", "high"), [(None, None), (1.0, 2.0)])) == [
        None,
        {"low": 1.0, "high": 2.0},
    ]


def test_structs_of_low_and_high_are_ranges():
    cells = [(9.0, 9.0), None, (1.0, 2.0), (-math.inf, 3.0)]
    array = points(("low", "high"), cells)[1:]
    assert read(array).kind is Kind.NUMBER
    assert values(array) == [None, {"low": 1.0, "high": 2.0}, {"low": -math.inf, "high": 3.0}]
    wrong = [(2.0, 1.0), (None, 1.0), (1.0, None), (math.nan, 1.0), (1.0, 1.0)]
    assert bad(points(("low", "high"), wrong)) == [0]
    assert values(points(("low", "high"), wrong[1:])) == [
        {"low": -math.inf, "high": 1.0},
        {"low": 1.0, "high": math.inf},
        {"low": -math.inf, "high": 1.0},
        {"low": 1.0, "high": 1.0},
    ]


def test_ranges_of_timestamps_are_ranges_of_instants():
    of = pa.timestamp("ms", "UTC")
    array = points(("low", "high"), [(0, 5000)], of)
    assert read(array).kind is Kind.TIMESTAMP
    assert (read(array).low.tolist(), read(array).high.tolist()) == ([0.0], [5e6])
    texts = points(("low", "high"), [("1970-01-01", "1970-01-02")], pa.string())
    assert read(texts, kind=Kind.TIMESTAMP).high.tolist() == [86_400e6]
    told = "x: a range goes between two numbers or two timestamps, not string and string"
    assert read(texts).reasons == {0: told}


class PlaceType(pa.ExtensionType):
    def __init__(self):
        super().__init__(pa.struct([("x", pa.float64()), ("y", pa.float64())]), "test.place")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls()


def test_an_extension_type_counts_as_its_storage():
    storage = points(("x", "y"), [(1.0, 2.0), None])
    assert values(pa.ExtensionArray.from_storage(PlaceType(), storage)) == [[1.0, 2.0], None]


# Nothing, and what is not supported


def test_a_column_of_nulls_is_missing_whatever_its_type():
    for of in (pa.null(), pa.int64(), pa.string(), pa.binary(), pa.list_(pa.string())):
        cells = read(pa.nulls(3, of))
        assert cells.kind is None
        assert not cells.valid.any()


@pytest.mark.parametrize(
    "array",
    [
        pa.array([b"x"]),
        pa.array([[["a"], ["b"]]]),
        pa.array([{"a": 1}]),
        pa.array([5], pa.time32("s")),
        pa.array([5], pa.duration("s")),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([{"x": "a", "y": "b"}]),
        pa.array([{"type": "Point", "coordinates": "0 0"}]),
        pa.array([{"type": 5, "coordinates": [0.0, 0.0]}]),
    ],
    ids=lambda array: str(array.type),
)
def test_a_type_that_is_not_supported_is_refused_cell_by_cell_in_the_words_for_a_dict(array):
    cells = read(array)
    assert not cells.valid.any()
    with pytest.raises(RecordError) as caught:
        read_value(raw_cell(array, 0), field="x")
    assert cells.reasons == {0: str(caught.value)}
    assert caught.value.field == "x"
