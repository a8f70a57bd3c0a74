"""What partitions cost by the AP-Tree's model, against the paper's equations written out plainly.

Each figure is worked out by hand, or by a few lines that know nothing of samples, kernels or
scratch. A formula that is replaced by a constant, or loses a term, fails here.
"""

import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.encoding.columns import all_read_only, read_only
from stentor.index.ap_tree import build
from stentor.index.ap_tree.cost_model import (
    FOLLOWED,
    MOST_TIMESTAMPS,
    MotionHistory,
    cuts_of_sample,
    keywords_then_space,
    moving_cost,
    space_then_keywords,
    timestamps_to_rebuild,
)
from stentor.index.ap_tree.keyword_cuts import cost_of_cuts, heuristic_cuts
from stentor.index.ap_tree.layout import (
    COPIES,
    COUNTERS,
    DEPTH,
    FIELDS,
    FLAGS,
    KEYWORDS,
    LEAF,
    MAY_CUT,
    MAY_GRID,
    SPACE,
    ApEntries,
)
from stentor.index.ap_tree.partitions import (
    EventSample,
    grid_cost,
    partition_keywords,
    partition_space,
)
from stentor.index.ap_tree.settings import PAPER, ApTreeSettings
from stentor.index.ap_tree.state import _new_work, policy_of

NEVER = 1e9  # a divergence that nothing reaches
BITS = 2**64 - 1


def entries_of(boxes, keys=()):
    """Entries with these boxes; each with its keywords, or with none."""
    keys = keys or [()] * len(boxes)
    return all_read_only(
        ApEntries(
            alternative=np.arange(len(boxes), dtype=np.int32),
            clause=np.zeros(len(boxes), np.uint16),
            key_start=np.cumsum([0, *map(len, keys)]).astype(np.int64),
            key=np.array([key for one in keys for key in one], np.int32),
            box=np.array(boxes, np.float32).reshape(-1),
            signature=np.zeros(len(boxes), np.uint64),
        )
    )


def all_of(entries):
    return read_only(np.arange(len(entries.alternative), dtype=np.int32))


def sample_of(steps=(), rate=0.0, places=()):
    x, y = (np.array([place[axis] for place in places], np.float64) for axis in range(2))
    dx, dy = (np.array([step[axis] for step in steps], np.float64) for axis in range(2))
    return EventSample(read_only(x), read_only(y), read_only(dx), read_only(dy), rate)


def around(x, y, half=0.25):
    return (x - half, y - half, x + half, y + half)


def region_of(*sides):
    return read_only(np.array(sides, np.float64))


def scrambled(number):
    spread = (number + 1) * 0x9E3779B97F4A7C15 & BITS
    return (spread ^ spread >> 32) * 0x9E3779B97F4A7C15 & BITS


def is_query(number):
    """Which one of two entries is a query where nothing else says where events are."""
    return bool((number ^ scrambled(number >> 1) >> 32) & 1)


# Moving: equations 8 to 13 and Algorithm 8.


def cost_of_moving(places, steps, region, grid, *, depth=0, keywords=0, rate=1.0, **settings):
    entries = entries_of([around(*place) for place in places])
    columns, rows = grid
    return moving_cost(
        entries,
        all_of(entries),
        region_of(*region),
        sample_of(steps, rate),
        columns,
        rows,
        depth,
        keywords,
        policy_of(ApTreeSettings(**settings)),
        np.zeros(256, np.int64),
    )


def test_what_moves_costs_updates_by_equation_9():
    # ζ = 2/8, 1/4, 16/8 (counted as 1), 0; l_path = 2; log f = 3: Σ 2 · ζ · 2 · 3 = 18, of 6
    # events in a timestamp.
    places, steps = [(1, 1), (3, 1), (5, 3), (7, 3)], [(2, 0), (0, 1), (16, 0), (0, 0)]
    region = (0, 0, 8, 4)
    cost = cost_of_moving(places, steps, region, (4, 2), depth=1, rate=6.0, divergence=NEVER)
    assert cost == pytest.approx(18 / 6)


def test_what_moves_out_of_balance_costs_rebuilding_by_equation_13():
    # One of three goes from the first column to the second at timestamp 3: T_Δ = 3.
    places, steps = [(1, 1), (1, 1), (7, 1)], [(1, 0), (0, 0), (0, 0)]
    updates = 2 * (1 / 8) * 1 * math.log2(2)
    tree = 3 * math.log2(2) + 3 * math.sqrt(2) + 2 * 5
    height = math.log(3 / 1) / math.log(9)
    cost = cost_of_moving(
        places, steps, (0, 0, 8, 4), (2, 1), keywords=5, rate=2.0, divergence=0.1, leaf=1, fanout=9
    )
    assert cost == pytest.approx((updates + tree * (height + 1) / 3) / 2.0)


def test_what_does_not_move_costs_nothing():
    assert cost_of_moving([(1, 1)], [], (0, 0, 8, 4), (2, 1)) == 0.0
    assert cost_of_moving([(1, 1), (7, 1)], [(0, 0)] * 2, (0, 0, 8, 4), (2, 1)) == 0.0
    assert cost_of_moving([(1, 1)], [(1, 0)], (0, 0, 8, 4), (2, 1), rate=0.0) == 0.0


def test_a_node_without_extent_is_left_by_every_step():
    cost = cost_of_moving([(0, 0)], [(0.001, 0)], (0, 0, 0, 0), (2, 1), divergence=NEVER)
    assert cost == pytest.approx(2 * 1 * 1 * math.log2(2))


@pytest.mark.parametrize(("divergence", "after"), [(0.4, 3), (0.45, MOST_TIMESTAMPS)])
def test_algorithm_8_by_hand(divergence, after):
    # From the first of two columns to the second at 3, out of the region at 8: each time
    # 0.6 log 3 + 0.2 log 1/3 = 0.439, smoothed by half an entry in each cell and outside.
    entries = entries_of([around(1, 1)])
    found = timestamps_to_rebuild(
        entries,
        all_of(entries),
        region_of(0, 0, 8, 4),
        sample_of([(1, 0)]),
        2,
        1,
        divergence,
        np.zeros(64, np.int64),
    )
    assert found == after


def rebuilt_after(places, steps, region, columns, rows, divergence):
    """Algorithm 8, as the paper has it, smoothed by half an entry."""
    west, south, east, north = region

    def spread(time):
        found = Counter()
        for (x, y), (dx, dy) in zip(places, steps, strict=True):
            across, up = x + time * dx - west, y + time * dy - south
            cell = None
            if 0 <= across <= east - west and 0 <= up <= north - south:
                column = min(columns - 1, int(across / ((east - west) / columns)))
                row = min(rows - 1, int(up / ((north - south) / rows)))
                cell = column, row
            found[cell] += 1
        return found

    cells = [None, *((column, row) for column in range(columns) for row in range(rows))]
    old = spread(0)
    whole = len(places) + len(cells) / 2
    for time in range(1, MOST_TIMESTAMPS):
        new = spread(time)
        found = sum(
            (old[cell] + 0.5) / whole * math.log((old[cell] + 0.5) / (new[cell] + 0.5))
            for cell in cells
        )
        if found > divergence:
            return time
    return MOST_TIMESTAMPS


on_grid = st.integers(0, 32).map(lambda number: number / 4 + 0.125)
travellers = st.lists(
    st.tuples(
        st.tuples(on_grid, on_grid),
        st.tuples(st.integers(-8, 8), st.integers(-8, 8)).map(
            lambda step: (step[0] / 16, step[1] / 16)
        ),
    ),
    min_size=1,
    max_size=20,
)


@given(travellers, st.integers(1, 4), st.integers(1, 4), st.sampled_from([0.01, 0.1, 0.3]))
def test_moving_costs_are_those_of_the_paper(drawn, columns, rows, divergence):
    if columns * rows < 2:
        return
    places, steps = zip(*drawn, strict=True)
    region, size, cells = (0.0, 0.0, 9.0, 9.0), len(places), columns * rows
    zeta = [min(1.0, (abs(dx) + abs(dy)) / 9.0) for dx, dy in steps]
    updates = sum(2 * one * 3 * math.log2(cells) for one in zeta)
    after = rebuilt_after(places, steps, region, columns, rows, divergence)
    tree = size * math.log2(cells) + size * math.sqrt(cells) + cells * 7
    height = max(0.0, math.log(size / 4) / math.log(8))
    rebuilding = tree * (height + 1) / after if after < MOST_TIMESTAMPS else 0.0
    cost = cost_of_moving(
        places,
        steps,
        region,
        (columns, rows),
        depth=2,
        keywords=7,
        rate=5.0,
        divergence=divergence,
        leaf=4,
        fanout=8,
    )
    assert cost == pytest.approx((updates + rebuilding) / 5.0)


def test_many_that_repeat_in_a_rhythm_are_followed_by_chance():
    # One of every eight moves: a fixed one of each eight would see all of them move, or none.
    count = 8 * FOLLOWED
    places = [(1.0, 1.0)] * count
    steps = [(1.0 if n % 8 == 0 else 0.0, 0.0) for n in range(count)]
    entries = entries_of([around(*place) for place in places])
    exact = rebuilt_after(places, steps, (0, 0, 8, 4), 2, 1, 0.05)
    for first in range(8):
        shifted = read_only(np.roll(np.arange(count, dtype=np.int32), first))
        found = timestamps_to_rebuild(
            entries,
            shifted,
            region_of(0, 0, 8, 4),
            sample_of(steps),
            2,
            1,
            0.05,
            np.zeros(64, np.int64),
        )
        assert found == exact == 3


# A grid: equation 1.


def cost_of_grid(boxes, lines_x, lines_y, region, *, settings=PAPER, seen=()):
    """What `grid_cost` says: cost, copies, and what is expected in a cell and in the dummy."""
    entries, policy = entries_of(boxes), policy_of(settings)
    work = _new_work(max(len(boxes), 64), policy)
    columns, rows = len(lines_x) + 1, len(lines_y) + 1
    work.line[: columns + rows - 2] = [*lines_x, *lines_y]
    x, y = (np.array([place[axis] for place in seen] or [0.0]) for axis in range(2))
    cost, copies = grid_cost(
        entries,
        all_of(entries),
        1,
        region_of(*region),
        columns,
        rows,
        policy,
        work,
        x,
        y,
        len(seen),
    )
    return cost, copies, work.expected.tolist()


def cells_of(box, lines_x, lines_y):
    """The cells that *box* touches, by the definition: below a line is left of it."""
    return [
        (column, row)
        for column in range(len(lines_x) + 1)
        for row in range(len(lines_y) + 1)
        if (column == 0 or box[2] >= lines_x[column - 1])
        and (column == len(lines_x) or box[0] < lines_x[column])
        and (row == 0 or box[3] >= lines_y[row - 1])
        and (row == len(lines_y) or box[1] < lines_y[row])
    ]


BOXES = [
    (0, 0, 1, 1),
    (1, 1, 3, 2),  # over the first line along x: two cells
    (5, 5, 6, 6),
    (5, 3, 7, 5),  # over the line along y: two cells
    (-1, -1, 9, 9),  # all of it: the dummy
]


def test_a_grid_costs_by_area_what_equation_1_says():
    # Columns 2, 6; rows 4, 4: 0.25 · (2, 1 below and above …): by hand
    #   column 0: row 0 has boxes 0 and 1, row 1 none; column 1: row 0 has 1 and 3, row 1 2 and 3.
    settings = ApTreeSettings(places="area", visit=3.0)
    cost, copies, (cell, kept) = cost_of_grid(BOXES, [2], [4], (0, 0, 8, 8), settings=settings)
    expected = 0.25 * 0.5 * 2 + 0.75 * 0.5 * 2 + 0.75 * 0.5 * 2
    assert (cell, kept) == (pytest.approx(expected), 1)
    assert cost == pytest.approx(expected + 1 + 3.0 + 3.0)
    assert copies == pytest.approx((1 + 2 + 1 + 2 + 1) / 5)


def test_a_grid_costs_where_the_messages_of_the_history_were():
    settings = ApTreeSettings(visit=2.0)
    seen = [(1, 1), (1, 1), (1, 1), (7, 7)]
    cost, _, (cell, kept) = cost_of_grid(
        BOXES, [2], [4], (0, 0, 8, 8), settings=settings, seen=seen
    )
    assert (cell, kept) == ((2 + 2 + 2 + 2) / 4, 1)
    assert cost == pytest.approx(2 + 1 + 2 * 2.0)
    no_dummy, _, _ = cost_of_grid(
        BOXES[:4], [2], [4], (0, 0, 8, 8), settings=settings, seen=[(1, 7), (1, 1)]
    )
    assert no_dummy == pytest.approx((0 + 2) / 2 + 2.0)


spots = st.integers(0, 31).map(lambda number: number / 2)
some_boxes = st.lists(
    st.tuples(spots, spots, st.integers(0, 8), st.integers(0, 8)).map(
        lambda one: (one[0], one[1], one[0] + one[2] / 4, one[1] + one[3] / 4)
    ),
    min_size=4,
    max_size=40,
)


@given(some_boxes, st.lists(st.tuples(spots, spots), min_size=1, max_size=9), st.integers(0, 2))
def test_a_grid_costs_what_its_cells_hold_where_messages_come(boxes, seen, mode):
    lines_x, lines_y, region = [3.25, 7.75], [5.25], (0.0, 0.0, 24.0, 24.0)
    inserted = [box for number, box in enumerate(boxes) if mode < 2 or not is_query(number)]
    queries = [box for number, box in enumerate(boxes) if is_query(number)]
    held = Counter(cell for box in inserted for cell in cells_of(box, lines_x, lines_y))
    if mode == 0:
        visited = [cells_of((x, y, x, y), lines_x, lines_y)[0] for x, y in seen]
    elif mode == 1:
        visited, seen = [], []
    else:
        middles = [((box[0] + box[2]) / 2, (box[1] + box[3]) / 2) for box in queries]
        visited, seen = [cells_of((x, y, x, y), lines_x, lines_y)[0] for x, y in middles], []
    if mode == 1:
        widths = (3.25 / 24, 4.5 / 24, 16.25 / 24)
        heights = (5.25 / 24, 18.75 / 24)
        found = sum(
            held[column, row] * width * height
            for column, width in enumerate(widths)
            for row, height in enumerate(heights)
        )
    else:
        found = sum(held[cell] for cell in visited) / len(visited)
    settings = ApTreeSettings(visit=8.0, places="area" if mode == 1 else "centres")
    cost, copies, _ = cost_of_grid(boxes, lines_x, lines_y, region, settings=settings, seen=seen)
    if max(held.values()) > 0.95 * len(inserted) and found > len(inserted) / 2:
        assert cost == math.inf, "a grid that separates nothing"
        return
    assert cost == pytest.approx(found * len(boxes) / len(inserted) + 8.0)
    assert copies == pytest.approx(held.total() / len(inserted))


def test_entries_that_alternate_between_two_places_do_not_look_alone():
    # Every second one here, every second one there: a message meets half of them, not nobody.
    boxes = [around(1, 1) if n % 2 else around(7, 7) for n in range(200)]
    _, _, (cell, _) = cost_of_grid(boxes, [4], [4], (0, 0, 8, 8), settings=ApTreeSettings())
    assert cell == pytest.approx(100, rel=0.2)


# Keywords: equation 1, with the dummy.


def test_cuts_cost_what_equation_1_says():
    weight, likely = np.array([0.0, 5, 8, 10, 11]), np.array([0.0, 0.1, 0.5, 0.7, 1.9])
    cuts = np.array([0, 2, 3, 4], np.int32)
    # w · p of each: 8 · 0.5, 2 · 0.2, 1 · 1 (no more likely than certain); and visiting them.
    assert cost_of_cuts(weight, likely, 0.0, cuts, 3) == pytest.approx(4.0 + 0.4 + 1.0)
    assert cost_of_cuts(weight, likely, 3.0, cuts, 3) == pytest.approx(5.4 + 3 * (0.5 + 0.2 + 1))


def test_algorithm_3_moves_the_border_of_even_cuts_by_hand():
    # Two keywords in each: 4 · 0.6 + 4 · 0.2 = 3.2. The likely one alone: 2 · 0.6 + 6 · 0.2 = 2.4.
    weight, likely = np.array([0.0, 2, 4, 6, 8]), np.array([0.0, 0.6, 0.6, 0.7, 0.8])
    cut = np.zeros(3, np.int32)
    heuristic_cuts(read_only(weight), read_only(likely), 0.0, 4, 2, cut)
    assert cut.tolist() == [0, 1, 4]


@pytest.mark.parametrize("partition", ["heuristic", "dp"])
def test_a_keyword_partition_counts_entries_without_a_keyword(partition):
    keys = [(0,)] * 6 + [(1, 3)] * 3 + [(2,)] + [()] * 2
    entries = entries_of([(0, 0, 1, 1)] * 12, keys)
    policy = policy_of(ApTreeSettings(fanout=2, grain=0.0, visit=1.0, partition=partition))
    work, shape = _new_work(64, policy), np.zeros(4, np.int64)
    known = read_only(np.array([0.5, 0.2, 0.1, 0.9]))
    cost = partition_keywords(entries, all_of(entries), 0, known, policy, work, shape)
    # Cuts {0}, {1, 2}: (6 + 1) · 0.5 + (4 + 1) · 0.3; the dummy: 2 + 1.
    assert shape.tolist() == [2, 3, 0, 0]
    assert cost == pytest.approx(3.5 + 1.5 + 3.0)


def test_a_spatial_partition_costs_what_its_grid_does():
    boxes = [around(1, 1)] * 30 + [around(7, 7)] * 10
    entries, policy = entries_of(boxes), policy_of(ApTreeSettings(fanout=4, grain=0.0, visit=1.0))
    work, shape = _new_work(64, policy), np.zeros(4, np.int64)
    seen = [(1, 1)] * 24 + [(7, 7)] * 8
    cost = partition_space(
        entries,
        all_of(entries),
        region_of(0, 0, 8, 8),
        sample_of(places=seen),
        policy,
        work,
        shape,
    )
    assert shape[:3].tolist() == [2, 2, 1000]
    assert cost == pytest.approx((24 * 30 + 8 * 10) / 32 + 1.0)


# The look-ahead.

LOOKING = {"leaf": 4, "fanout": 64, "grain": 2.0, "visit": 3.0}
#: Cumulated weights and chances of three keywords, of 20 entries, 4 of them without one.
WEIGHT, LIKELY = [0.0, 8, 14, 16], [0.0, 0.5, 0.75, 0.875]


def working(expected=(0.0, 0.0)):
    policy = policy_of(ApTreeSettings(**LOOKING))
    work = _new_work(64, policy)
    work.weight[:4], work.likely[:4] = WEIGHT, LIKELY
    work.cut[:4] = 0, 1, 2, 3
    work.expected[:] = expected
    return work, policy


def cut_sample(sample):
    """What cutting *sample* of the 20 entries by keywords costs."""
    if sample <= 4:
        return sample + 3.0
    hits = sum(
        chance * (1 - math.exp(-weight * sample / 20))
        for weight, chance in ((8, 0.5), (6, 0.25), (2, 0.125))
    )
    cuts = min(64, max(2, int(2 * int(sample) / 4)))
    without = sample * 4 / 20
    return min(hits, cuts) * (sample / cuts + 3.0) + 3.0 + without + 3.0


@pytest.mark.parametrize("sample", [1.0, 4.0, 5.0, 10.0, 20.0])
def test_a_sample_that_is_cut_costs_what_its_keywords_are_hit_by(sample):
    work, policy = working()
    assert cuts_of_sample(work, 3, 20, sample, policy) == pytest.approx(cut_sample(sample))
    assert cuts_of_sample(work, 0, 20, sample, policy) == sample + 3.0, "no keywords"


def test_a_sample_of_ten_by_hand():
    # Hits: 0.5 (1 − e⁻⁴) + 0.25 (1 − e⁻³) + 0.125 (1 − e⁻¹) = 0.8074; 5 cuts of 2 entries.
    work, policy = working()
    assert cuts_of_sample(work, 3, 20, 10.0, policy) == pytest.approx(
        0.80742 * (2 + 3) + 3 + 2 + 3, rel=1e-5
    )


@pytest.mark.parametrize("expected", [(10.0, 0.0), (10.0, 6.0), (2.0, 1.0), (19.0, 0.0)])
def test_a_grid_whose_cells_are_cut_costs_both(expected):
    work, policy = working(expected)
    cell, kept = expected
    wanted = 3.0 + min(cell + 3.0, cut_sample(cell))
    if kept:
        wanted += min(kept + 3.0, cut_sample(kept))
    assert space_then_keywords(work, 3, 20, policy) == pytest.approx(wanted)


@pytest.mark.parametrize("cells", [0, 9])
@pytest.mark.parametrize("without", [0, 3, 12])
def test_cuts_that_are_gridded_cost_both(cells, without):
    expected = (2.0, 1.0)
    work, policy = working(expected)
    share = 3.0 / 20

    def gridded(weight):
        if weight <= 4 or not cells:
            return weight + 3.0
        own = min(64, max(2, int(2 * int(weight) / 4)))
        return min(weight + 3.0, weight * min(1.0, share + 1 / own) + 2 * 3.0)

    wanted = 3.0 + sum(
        chance * gridded(weight) for weight, chance in ((8, 0.5), (6, 0.25), (2, 0.125))
    )
    if without:
        wanted += gridded(without)
    assert keywords_then_space(work, 3, cells, 20, without, policy) == pytest.approx(wanted)


def test_cuts_that_are_gridded_by_hand():
    # Reached 0.15; cuts of 8 (4 cells: 0.4), 6 (3 cells: 0.4833), 2 (a leaf).
    work, policy = working((2.0, 1.0))
    by_hand = 3 + 0.5 * (8 * 0.4 + 6) + 0.25 * (6 * (0.15 + 1 / 3) + 6) + 0.125 * 5
    assert keywords_then_space(work, 3, 9, 20, 0, policy) == pytest.approx(by_hand)


# The choice between them.


def choice(costs, *, moving=0.0, copies=0.0, flags=MAY_CUT | MAY_GRID, depth=2, **settings):
    """What 40 entries become, and the arguments, where the cost model says *costs*.

    *costs* are of cuts, of a grid, of a grid that is cut, and of cuts that are gridded.
    """
    cut, grid, grid_then_cut, cut_then_grid = costs
    arguments = {}

    def partition_keywords(entries, segment, offset, known, policy, work, shape):
        shape[0], shape[1] = 5, 3
        work.weight[3] = 30.0
        return cut

    def partition_space(entries, segment, region, sample, policy, work, shape):
        shape[0], shape[1], shape[2] = 4, 2, 1500
        return grid

    def says(name, cost):
        def said(*given):
            arguments[name] = given
            return cost

        return said

    parts = {
        "partition_keywords": partition_keywords,
        "partition_space": partition_space,
        "space_then_keywords": says("space_then_keywords", grid_then_cut),
        "keywords_then_space": says("keywords_then_space", cut_then_grid),
        "moving_cost": says("moving_cost", moving),
    }
    entries, policy = entries_of([around(1, 1)] * 40), policy_of(ApTreeSettings(leaf=4, **settings))
    node, counter = np.zeros(FIELDS, np.int32), np.zeros(COUNTERS, np.int64)
    node[FLAGS], node[DEPTH], counter[COPIES] = flags, depth, copies
    shape = np.zeros(4, np.int64)
    with pytest.MonkeyPatch.context() as patch:
        for name, part in parts.items():
            patch.setattr(build, name, part)
        kind = getattr(build.cheapest_partition, "py_func", build.cheapest_partition)(
            SimpleNamespace(node=node, region=np.zeros(4), counter=counter),
            0,
            entries,
            all_of(entries),
            np.zeros(0),
            sample_of(),
            policy,
            _new_work(64, policy),
            100.0,
            shape,
        )
    return kind, shape[:2].tolist(), arguments


BY_CUTS, BY_GRID = (KEYWORDS, [5, 3]), (SPACE, [4, 2])


@pytest.mark.parametrize(
    ("costs", "settings", "expected"),
    [
        ((10, 11, 99, 99), {"lookahead": False}, BY_CUTS),
        ((11, 10, 99, 99), {"lookahead": False}, BY_GRID),
        ((10, 10, 99, 99), {"lookahead": False}, BY_CUTS),
        ((11, 10, 99, 99), {"lookahead": False, "moving": 2.0}, BY_CUTS),
        ((11, 10, 12, 9), {"lookahead": True}, BY_CUTS),
        ((10, 11, 9, 12), {"lookahead": True}, BY_GRID),
        ((10, 11, 9, 12), {"lookahead": True, "moving": 4.0}, BY_CUTS),
        ((11, 10, 9, 39), {"lookahead": True, "copies": 81.0}, BY_CUTS),
        ((11, 10, 9, 39), {"lookahead": True, "copies": 80.0}, BY_GRID),
        ((10, 10, 30, 12), {"priority": "space"}, BY_GRID),
        ((10, 10, 12, 30), {"priority": "keywords"}, BY_CUTS),
        ((10, 10, 12, 30), {"flags": MAY_CUT}, BY_CUTS),
        ((10, 10, 30, 12), {"flags": MAY_GRID}, BY_GRID),
    ],
)
def test_a_node_becomes_what_costs_least(costs, settings, expected):
    assert choice(costs, **settings)[:2] == expected


@pytest.mark.parametrize("lookahead", [True, False])
def test_a_partition_that_costs_as_much_as_the_entries_is_none(lookahead):
    assert choice((40, 41, 41, 40), lookahead=lookahead)[0] == LEAF
    assert choice((41, 40, 40, 41), lookahead=lookahead)[0] == LEAF
    assert choice((41, 39, 39, 41), lookahead=lookahead, moving=1.0)[0] == LEAF
    assert choice((39, 40, 40, 39), lookahead=lookahead)[0] == KEYWORDS
    assert choice((40, 39, 39, 40), lookahead=lookahead)[0] == SPACE


def test_a_choice_asks_what_the_partitions_are_like():
    _, _, arguments = choice((10, 10, 10, 10), lookahead=True, depth=6)
    assert arguments["space_then_keywords"][1:3] == (3, 40)
    assert arguments["keywords_then_space"][1:5] == (5, 8, 40, 10), "cuts, cells, entries, without"
    assert arguments["moving_cost"][4:8] == (4, 2, 6, 3), "columns, rows, depth, keywords"
    _, _, arguments = choice((10, 10, 10, 10), lookahead=True, flags=MAY_CUT)
    assert arguments["keywords_then_space"][2] == 0
    assert "moving_cost" not in arguments
    assert "space_then_keywords" not in arguments


def test_motion_is_the_last_step_of_each_and_the_messages_in_a_timestamp():
    movements, both = MotionHistory(), np.array([0, 2])
    movements.extend(3)
    assert movements.motion(np.arange(4)) is None, "nobody has moved"
    movements.events += 60
    for step in (5.0, 1.0):
        movements.add(both, np.zeros(4), np.array([step, 2, 0, -step]))
    movements.add(np.array([2]), np.zeros(2), np.array([np.nan, 3.0]))
    movements.add(np.array([2]), np.zeros(2), np.array([0.5, 0.25]))
    motion = movements.motion(np.array([0, 1, 1, 3]))
    assert movements.timestamps == 3.0, "two moved, six times in all"
    assert motion.rate == 60 / 3
    x, y = motion.of(np.array([0, 1, 2]))
    assert (x.tolist(), y.tolist()) == ([1.0, 0.5, 0.5], [2.0, 0.25, 0.25])
