"""The Hilbert curve: both ways, and boxes as ranges."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.encoding.columns import read_only
from stentor.encoding.hilbert import (
    HilbertCurve,
)
from stentor.encoding.hilbert.blocks import by_blocks
from stentor.encoding.hilbert.ranges import collect_ranges
from stentor.encoding.hilbert.steps import by_steps
from stentor.encoding.hilbert.turns import MOST_BLOCK_DIMENSIONS
from stentor.errors import SettingsError

#: Figures 2 and 3: two dimensions of eight intervals.
FIGURE = HilbertCurve(2, 3)
#: The augmentation s2 of the subscription s1 in Figure 3, which has no coordinates in the text:
#: the one box of the cells that the prose lists.
S2_LOW, S2_HIGH = (4, 2), (6, 5)


@st.composite
def curves(draw, most_bits=64):
    dimensions = draw(st.integers(1, most_bits))
    return HilbertCurve(dimensions, draw(st.integers(1, most_bits // dimensions)))


@st.composite
def boxes(draw, most_bits):
    """A curve and a few boxes on it, empty ones too."""
    curve = draw(curves(most_bits))
    corner = st.tuples(*[st.integers(0, curve.last)] * curve.dimensions)
    corners = draw(st.lists(st.tuples(corner, corner), min_size=1, max_size=4))
    ordered = [
        (tuple(map(min, *pair)), tuple(map(max, *pair))) if draw(st.integers(0, 5)) else pair
        for pair in corners
    ]
    return curve, ordered


def enumerated(curve, low, high):
    """The ranges of a box, cell by cell."""
    sides = [range(one, other + 1) for one, other in zip(low, high, strict=True)]
    cells = list(itertools.product(*sides))
    numbers = np.sort(curve.numbers(np.array(cells, np.uint64).reshape(-1, curve.dimensions)))
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    return [(int(part[0]), int(part[-1])) for part in np.split(numbers, breaks) if len(part)]


@pytest.mark.parametrize(
    ("dimensions", "bits"), [(1, 1), (1, 7), (2, 1), (2, 6), (3, 4), (4, 3), (5, 2), (12, 1)]
)
def test_the_curve_visits_each_cell_once_and_goes_to_the_next(dimensions, bits):
    curve = HilbertCurve(dimensions, bits)
    numbers = np.arange(curve.last_number + 1)
    cells = curve.cells(numbers)
    assert len(np.unique(cells, axis=0)) == len(numbers)
    assert (np.abs(np.diff(cells.astype(np.int64), axis=0)).sum(axis=1) == 1).all()
    assert cells[0].tolist() == [0] * dimensions
    assert curve.numbers(cells).tolist() == numbers.tolist()


@given(curve=curves(), data=st.data())
def test_cells_and_numbers_are_turned_into_each_other(curve, data):
    number = data.draw(st.integers(0, curve.last_number))
    cells = curve.cells([number])
    assert curve.numbers(cells).tolist() == [number]
    if number < curve.last_number:
        step = curve.cells([number + 1]).astype(object) - cells.astype(object)
        assert np.abs(step).sum() == 1


@given(drawn=boxes(most_bits=12))
def test_ranges_are_those_of_the_enumerated_cells(drawn):
    curve, some = drawn
    ranges = curve.ranges([low for low, _ in some], [high for _, high in some])
    for place, (low, high) in enumerate(some):
        assert ranges.of(place) == enumerated(curve, low, high)


@given(drawn=boxes(most_bits=10), scale=st.data())
def test_ranges_of_fine_cells_are_those_of_coarse_ones(drawn, scale):
    coarse, some = drawn
    finer = scale.draw(st.integers(0, 64 // coarse.dimensions - coarse.bits))
    fine = HilbertCurve(coarse.dimensions, coarse.bits + finer)
    low = [[end << finer for end in one] for one, _ in some]
    high = [[((end + 1) << finer) - 1 for end in one] for _, one in some]
    # A corner of the fine curve may be turned, but the cells of a box are as many.
    ranges = fine.ranges(np.array(low, np.uint64), np.array(high, np.uint64))
    for place, (one, other) in enumerate(some):
        cells = 1
        for start, stop in zip(one, other, strict=True):
            cells *= max(0, stop - start + 1) << finer
        found = ranges.of(place)
        assert sum(stop - start + 1 for start, stop in found) == cells
        assert all(left[1] + 1 < right[0] for left, right in itertools.pairwise(found))
        ends = fine.cells(np.array(found, np.uint64).reshape(-1)) >> np.uint64(finer)
        assert all(one[i] <= cell[i] <= other[i] for cell in ends.tolist() for i in range(len(one)))


@given(data=st.data(), dimensions=st.integers(1, MOST_BLOCK_DIMENSIONS))
def test_both_walks_find_the_same_ranges_in_cells_of_any_fineness(data, dimensions):
    curve = HilbertCurve(dimensions, data.draw(st.integers(1, 64 // dimensions)))
    coarse = data.draw(st.integers(0, curve.bits - 1))  # few sides of large cells: few ranges
    side = st.tuples(st.integers(0, curve.last >> coarse), st.integers(0, 4))
    boxes = data.draw(st.lists(st.tuples(*[side] * dimensions), min_size=1, max_size=3))
    low = [[start << coarse for start, _ in box] for box in boxes]
    high = [
        [min(curve.last, (start + far + 1 << coarse) - 1) for start, far in box] for box in boxes
    ]
    flat = [read_only(np.array(corner, np.uint64).reshape(-1)) for corner in (low, high)]
    found = [
        collect_ranges(walk(*flat, dimensions, curve.bits), len(boxes))
        for walk in (by_blocks, by_steps)
    ]
    assert [part.tolist() for part in found[0]] == [part.tolist() for part in found[1]]


@pytest.mark.parametrize("dimensions", [1, 2, 3, 7, 16, 32, 64])
def test_the_whole_space_and_its_halves_are_one_range_at_any_size(dimensions):
    curve = HilbertCurve(dimensions, 64 // dimensions)
    zeros, last = [0] * dimensions, [curve.last] * dimensions
    everything = np.array([last], np.uint64)
    assert curve.ranges([zeros], everything).of(0) == [(0, curve.last_number)]
    # The side along which the first and the second half of the curve differ.
    half = curve.cells([0, curve.last_number]).astype(object)
    (side,) = np.flatnonzero(half[0] != half[1]).tolist()
    middle = (curve.last + 1) // 2
    upper = [middle if dimension == side else 0 for dimension in range(dimensions)]
    number = (curve.last_number + 1) // 2
    found = curve.ranges(np.array([upper], np.uint64), everything).of(0)
    assert found == [(number, curve.last_number)]


def test_figure_2_is_the_curve_through_eight_by_eight_cells():
    rows = [[(x, y) for x in range(8)] for y in (7, 0)]
    assert FIGURE.numbers(rows[0]).tolist() == [21, 22, 25, 26, 37, 38, 41, 42]
    assert FIGURE.numbers(rows[1]).tolist() == [0, 3, 4, 5, 58, 59, 60, 63]


def test_figure_3_has_the_publications_and_the_ranges_of_the_subscription():
    ranges = FIGURE.ranges([S2_LOW], [S2_HIGH])
    assert ranges.of(0) == [(32, 35), (45, 46), (50, 55)]
    inside = {
        number: any(low <= number <= high for low, high in ranges.of(0)) for number in (28, 52, 50)
    }
    assert inside == {28: False, 52: True, 50: True}


@pytest.mark.parametrize(("dimensions", "bits"), [(0, 3), (3, 0), (2, 33), (65, 1)])
def test_a_curve_of_too_many_bits_is_refused(dimensions, bits):
    with pytest.raises(SettingsError, match="at most 64 bits"):
        HilbertCurve(dimensions, bits)


@pytest.mark.parametrize("cells", [[(0, 8)], [(-1, 0)], [(0.5, 0)]])
def test_cells_beyond_the_curve_are_refused(cells):
    with pytest.raises(SettingsError, match="whole numbers from 0 to 7"):
        FIGURE.numbers(cells)


def test_boxes_of_another_shape_are_refused():
    with pytest.raises(SettingsError, match="a row for each"):
        FIGURE.numbers([1, 2])
    with pytest.raises(SettingsError, match="one of each for every box"):
        FIGURE.ranges([(1, 2)], [(1, 2), (3, 4)])
