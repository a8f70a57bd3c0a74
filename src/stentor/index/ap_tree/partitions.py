"""How a node would be partitioned, by keywords or by space, and what that costs (section 3.3).

A cost is the expected number of entries that an event compares, with `visit` for each node. Cuts of
keywords are in `keyword_cuts.py`; the lines of a grid are chosen one dimension after the other
(3.3.3), by a sample.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import Float64, Int32, Int64
from stentor.index.ap_tree.keyword_cuts import (
    cost_of_cuts,
    even_cuts,
    heuristic_cuts,
    is_affordable,
    optimal_cuts,
)
from stentor.index.ap_tree.layout import ApEntries, ApKernelSettings
from stentor.index.ap_tree.match import cell_along, contains_region, is_wide
from stentor.index.sort import sort_many, sort_slice

#: Entries and events that a grid is chosen by; more would not choose better lines.
SAMPLE = 1024
#: A grid that makes more copies of an entry, on average, is made coarser.
MOST_COPIES = 2.5
#: A cell with more than this part of the entries separates nothing: then it has to be visited by
#: few events, or grids would be nested in one another for ever smaller gains.
ALIKE = 0.95
#: Events of the history in a region, so that they say where events are in it.
LEAST_SEEN = 16

HEURISTIC, OPTIMAL, EVEN = 0, 1, 2

#: Position in `shape`: whether the heuristic stood in for optimal cuts.
STOOD_IN = 3

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@kernel_inline
def count_below(values: Float64, count: int, limit: float) -> int:
    """How many of the first *count* sorted *values* are below *limit*."""
    start, stop = 0, count
    while start < stop:
        middle = (start + stop) >> 1
        if values[middle] < limit:
            start = middle + 1
        else:
            stop = middle
    return start


@kernel
def lines_along(
    lows: Float64,
    highs: Float64,
    points: Float64,
    boxes: int,
    events: int,
    by_area: int,
    low: float,
    high: float,
    cells: int,
    line: Float64,
) -> None:
    """Fill cells − 1 of *line* for boxes and points that are sorted along one dimension.

    Lines start where the middles of boxes are spread evenly; then each is moved to the edge of a
    box where the two cells beside it cost least. Cost: O(boxes), since an edge is tried by two
    lines at most.
    """
    for number in range(1, cells):
        position = min(boxes - 1, boxes * number // cells)
        middle = (lows[position] + highs[position]) / 2.0
        line[number - 1] = min(high, max(low, middle))
    for number in range(1, cells):
        start = low if number == 1 else line[number - 2]
        stop = high if number == cells - 1 else line[number]
        line[number - 1] = best_border(
            lows, highs, points, boxes, events, by_area, start, stop, line[number - 1]
        )


@inner_kernel
def best_border(
    lows: Float64,
    highs: Float64,
    points: Float64,
    boxes: int,
    events: int,
    by_area: int,
    start: float,
    stop: float,
    border: float,
) -> float:
    """The edge of a box between *start* and *stop* where the cells beside it cost least.

    *border* is where the line is now; it stays there if no edge is in between.
    """
    low, last_low = count_below(lows, boxes, start), count_below(lows, boxes, stop)
    high, last_high = count_below(highs, boxes, start), count_below(highs, boxes, stop)
    point = first_point = count_below(points, events, start)
    last_point = count_below(points, events, stop)
    before, after = high, last_low  # boxes that end before the cells, or start before their end
    least = math.inf
    while low < last_low or high < last_high:
        if high >= last_high or (low < last_low and lows[low] <= highs[high]):
            edge = lows[low]
            low += 1
            left = low - 1 - before
        else:
            edge = np.nextafter(highs[high], math.inf)
            high += 1
            left = low - before
        if edge <= start:
            continue
        while point < last_point and points[point] < edge:
            point += 1
        if by_area:
            chance, rest = edge - start, stop - edge
        else:
            chance, rest = float(point - first_point), float(last_point - point)
        cost = left * chance + (after - high) * rest
        if cost < least and edge < stop:
            least, border = cost, edge
    return border


class ApBuildScratch(NamedTuple):
    """Scratch of the construction."""

    segment: Int32  # entries of the nodes that are still to be built, one after the other
    pending: Int64  # (nodes × 3,) node, start and count of its entries in the segment
    made: Int32  # nodes in the order in which they were made
    target: Int32  # (entries,) the number of the child that an entry goes to
    rank: Int32  # (entries,) next keywords, sorted
    other: Int32  # (entries,) scratch of the sort
    weight: Float64  # (keywords + 1,) cumulated
    likely: Float64  # (keywords + 1,)
    cut: Int32  # (fan-out + 4,) first keyword of each cut
    tally: Int64  # (fan-out + 4,) and no less than DIGITS
    line: Float64  # (2 × fan-out,) of the columns, then of the rows
    expected: Float64  # (2,) entries in the cell of an event, and in the dummy
    edge: Float64  # (8 × SAMPLE,) lows, highs, points along x and y; x and y of events
    best: Float64  # scratch of Algorithm 2, and the next two
    choice: Int32
    halving: Int64


class EventSample(NamedTuple):
    """Where events of the history were, and how far the entries move."""

    x: Float64
    y: Float64
    dx: Float64  # (entries,) how far it went in one timestamp, or (0,): nothing moves
    dy: Float64
    rate: float  # events that come in one timestamp


@kernel_inline
def next_key(entries: ApEntries, entry: int, offset: int) -> int:
    """The keyword of *entry* after *offset* others; −1 where it has no more."""
    position = entries.key_start[entry] + offset
    return int(entries.key[position]) if position < entries.key_start[entry + 1] else -1


@kernel_inline
def children_for(policy: ApKernelSettings, count: int) -> int:
    """How many cuts or cells *count* entries are worth."""
    if policy.grain == 0.0:
        return policy.fanout
    return int(min(policy.fanout, max(2.0, policy.grain * count / policy.leaf)))


@kernel_inline
def scrambled(number: int) -> int:
    """*number* as one of 2^32 that look random, the same ones each time."""
    spread = (np.uint64(number) + np.uint64(1)) * _GOLDEN
    return int(((spread ^ (spread >> _HALF)) * _GOLDEN) >> _HALF)


@kernel_inline
def drawn(number: int, stride: int, count: int) -> int:
    """The position of the sample's entry *number*: by chance one of *stride*, below *count*.

    A fixed one of each *stride* would be no sample of entries that repeat in that rhythm.
    """
    return int(min(count - 1, number * stride + scrambled(number) % stride))


@kernel_inline
def is_query(number: int) -> bool:
    """Whether the sample's entry *number* says where events are: by chance one of each two."""
    return bool((number ^ scrambled(number >> 1)) & 1)


@kernel
def partition_keywords(
    entries: ApEntries,
    segment: Int32,
    offset: int,
    known: Float64,
    policy: ApKernelSettings,
    work: ApBuildScratch,
    shape: Int64,
) -> float:
    """The cost of the keyword partition, infinite where there is none.

    *shape* gets the number of cuts and of keywords, and whether the heuristic had to stand in for
    optimal cuts; work.cut, work.rank say where the cuts are.
    """
    shape[0] = shape[1] = shape[STOOD_IN] = 0
    count = 0
    for entry in segment:
        key = next_key(entries, entry, offset)
        if key >= 0:
            work.rank[count] = key
            count += 1
    if count == 0:
        return math.inf
    sort_many(work.rank, count, work.other, work.tally)
    keywords = 0
    work.weight[0] = work.likely[0] = 0.0
    position = 0
    while position < count:
        rank = work.rank[position]
        stop = position + 1
        while stop < count and work.rank[stop] == rank:
            stop += 1
        work.rank[keywords] = rank
        chance = known[rank] if rank < len(known) else 0.0
        work.weight[keywords + 1] = work.weight[keywords] + (stop - position)
        work.likely[keywords + 1] = work.likely[keywords] + chance
        keywords += 1
        position = stop
    cuts = min(keywords, children_for(policy, count))
    shape[0], shape[1] = cuts, keywords
    if policy.partition == EVEN:
        even_cuts(work.weight, keywords, cuts, work.cut)
    elif policy.partition == OPTIMAL and is_affordable(keywords, cuts, len(work.choice)):
        optimal_cuts(
            work.weight,
            work.likely,
            policy.visit,
            keywords,
            cuts,
            work.cut,
            work.best,
            work.choice,
            work.halving,
        )
    else:
        shape[STOOD_IN] = policy.partition == OPTIMAL
        heuristic_cuts(work.weight, work.likely, policy.visit, keywords, cuts, work.cut)
    cost = cost_of_cuts(work.weight, work.likely, policy.visit, work.cut, cuts)
    without = len(segment) - count
    return cost + without + (policy.visit if without > 0 else 0.0)


@kernel
def partition_space(
    entries: ApEntries,
    segment: Int32,
    region: Float64,
    sample: EventSample,
    policy: ApKernelSettings,
    work: ApBuildScratch,
    shape: Int64,
) -> float:
    """The cost of the spatial partition, infinite where there is none.

    *shape* gets the numbers of columns and rows, and how many copies are made of a thousand
    entries; work.line has the lines, columns first.
    """
    shape[0] = shape[1] = shape[2] = 0
    count = len(segment)
    stride = (count + SAMPLE - 1) // SAMPLE
    seen_x = work.edge[6 * SAMPLE : 7 * SAMPLE]
    seen_y = work.edge[7 * SAMPLE : 8 * SAMPLE]
    seen = events_in(sample, region, seen_x, seen_y)
    if seen < LEAST_SEEN:
        seen = 0
    boxes = 0
    for axis in range(2):
        boxes = edges_along(entries, segment, stride, region, axis, work.edge, seen)
    if boxes == 0:
        return math.inf
    cells = children_for(policy, count)
    columns = int(math.sqrt(cells))
    rows = cells // max(1, columns)
    while columns * rows >= 2:
        for axis in range(2):
            first = 3 * SAMPLE * axis
            along = columns if axis == 0 else rows
            start = 0 if axis == 0 else columns - 1
            lines_along(
                work.edge[first : first + SAMPLE],
                work.edge[first + SAMPLE : first + 2 * SAMPLE],
                work.edge[first + 2 * SAMPLE : first + 3 * SAMPLE],
                boxes,
                seen if seen > 0 else boxes,
                policy.by_area if seen == 0 else 0,
                region[axis],
                region[axis + 2],
                along,
                work.line[start : start + along],
            )
        cost, copies = grid_cost(
            entries, segment, stride, region, columns, rows, policy, work, seen_x, seen_y, seen
        )
        if copies <= MOST_COPIES or policy.grain == 0.0:
            shape[0], shape[1], shape[2] = columns, rows, int(1000.0 * copies)
            return cost
        columns, rows = (columns + 1) // 2, (rows + 1) // 2
        if columns * rows == 1:
            break
    return math.inf


@inner_kernel
def edges_along(
    entries: ApEntries,
    segment: Int32,
    stride: int,
    region: Float64,
    axis: int,
    edge: Float64,
    seen: int,
) -> int:
    """How many boxes of a sample are partly in *region*; their edges along *axis* go into *edge*.

    Lows, highs, and where events are: as the *seen* ones, else as the middles of boxes; sorted.
    """
    first = 3 * SAMPLE * axis
    lows, highs = edge[first : first + SAMPLE], edge[first + SAMPLE : first + 2 * SAMPLE]
    points = edge[first + 2 * SAMPLE : first + 3 * SAMPLE]
    boxes = 0
    for number in range((len(segment) + stride - 1) // stride):
        entry = segment[drawn(number, stride, len(segment))]
        box = entries.box[4 * entry : 4 * entry + 4]
        if not contains_region(box, region):
            lows[boxes] = max(box[axis], region[axis])
            highs[boxes] = min(box[axis + 2], region[axis + 2])
            if seen == 0:
                points[boxes] = (lows[boxes] + highs[boxes]) / 2.0
            boxes += 1
    for position in range(seen):
        points[position] = edge[(6 + axis) * SAMPLE + position]
    sort_slice(lows, 0, boxes)
    sort_slice(highs, 0, boxes)
    sort_slice(points, 0, seen if seen > 0 else boxes)
    return boxes


@kernel_inline
def events_in(sample: EventSample, region: Float64, x: Float64, y: Float64) -> int:
    """How many events of the history are in *region*: *x* and *y* get them, as many as fit.

    The history is in random order, so its first events are a sample.
    """
    seen = 0
    for position in range(len(sample.x)):
        if seen == len(x):
            break
        inside = region[0] <= sample.x[position] <= region[2]
        if inside and region[1] <= sample.y[position] <= region[3]:
            x[seen], y[seen] = sample.x[position], sample.y[position]
            seen += 1
    return seen


@kernel
def grid_cost(
    entries: ApEntries,
    segment: Int32,
    stride: int,
    region: Float64,
    columns: int,
    rows: int,
    policy: ApKernelSettings,
    work: ApBuildScratch,
    seen_x: Float64,
    seen_y: Float64,
    seen: int,
) -> tuple[float, float]:
    """Equation 1 for a grid, and how many copies it makes of each entry, both from samples.

    An event comes where those of the history were, or anywhere; or where other entries are: then
    half of the sample is inserted and the other half is queries, since each entry meets itself.
    """
    samples = (len(segment) + stride - 1) // stride
    by_entries = seen == 0 and not policy.by_area
    tally = work.tally[: columns * rows]
    for cell in range(columns * rows):
        tally[cell] = 0
    inserted = kept = copies = 0
    for number in range(samples):
        if by_entries and is_query(number):
            continue
        entry = segment[drawn(number, stride, len(segment))]
        box = entries.box[4 * entry : 4 * entry + 4]
        inserted += 1
        if contains_region(box, region):
            kept += 1
            continue
        west, east = columns_of(work.line, columns, box[0], box[2])
        south, north = rows_of(work.line, columns, rows, box[1], box[3])
        if is_wide(west, east, south, north):
            kept += 1
            continue
        for row in range(south, north + 1):
            for column in range(west, east + 1):
                tally[row * columns + column] += 1
        copies += (east - west + 1) * (north - south + 1)
    if inserted == 0:
        return math.inf, 1.0
    found, queries = 0.0, 0
    if seen > 0:
        for position in range(seen):
            column, _ = columns_of(work.line, columns, seen_x[position], seen_x[position])
            row, _ = rows_of(work.line, columns, rows, seen_y[position], seen_y[position])
            found += tally[row * columns + column]
            queries += 1
    elif policy.by_area:
        for row in range(rows):
            for column in range(columns):
                share = cell_share(work.line, 0, columns, column, region[0], region[2])
                share *= cell_share(work.line, columns - 1, rows, row, region[1], region[3])
                found += tally[row * columns + column] * share
        queries = 1
    else:
        for number in range(samples):
            if not is_query(number):
                continue
            entry = segment[drawn(number, stride, len(segment))]
            box = entries.box[4 * entry : 4 * entry + 4]
            x = (max(box[0], region[0]) + min(box[2], region[2])) / 2.0
            y = (max(box[1], region[1]) + min(box[3], region[3])) / 2.0
            column, _ = columns_of(work.line, columns, x, x)
            row, _ = rows_of(work.line, columns, rows, y, y)
            found += tally[row * columns + column]
            queries += 1
    largest = 0
    for cell in range(columns * rows):
        largest = max(largest, tally[cell])
    is_idle = largest > ALIKE * inserted and found / max(1, queries) + kept > inserted / 2
    if queries == 0 or is_idle:
        return math.inf, 1.0
    scale = len(segment) / inserted
    work.expected[0], work.expected[1] = found / queries * scale, kept * scale
    cost = (found / queries + kept) * scale + policy.visit
    return cost + (policy.visit if kept > 0 else 0.0), (copies + kept) / inserted


@kernel_inline
def columns_of(line: Float64, columns: int, west: float, east: float) -> tuple[int, int]:
    """The first and the last column that *west* … *east* touches."""
    return cell_along(line, 0, columns - 1, west), cell_along(line, 0, columns - 1, east)


@kernel_inline
def rows_of(line: Float64, columns: int, rows: int, south: float, north: float) -> tuple[int, int]:
    """The first and the last row that *south* … *north* touches."""
    first = columns - 1
    return cell_along(line, first, rows - 1, south), cell_along(line, first, rows - 1, north)


@kernel_inline
def cell_share(line: Float64, first: int, cells: int, cell: int, low: float, high: float) -> float:
    """The part of *low* … *high* that is in *cell*."""
    start = low if cell == 0 else line[first + cell - 1]
    stop = high if cell == cells - 1 else line[first + cell]
    return (stop - start) / (high - low) if high > low else np.float64(cell == 0)
