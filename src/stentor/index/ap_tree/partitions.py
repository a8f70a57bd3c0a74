"""How a node would be partitioned, by keywords or by space, and what that costs (section 3.3.1).

Costs are numbers of entries that a message makes us look at, for a message that reaches the node;
a visited node counts as `visit` entries. Without any partition the cost is the number of entries.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stentor._jit import kernel_inline, kernel_part
from stentor.encoding.columns import Float64, Int32, Int64
from stentor.index.ap_tree.descending import cell_along, contains_region
from stentor.index.ap_tree.grid_lines import lines_along, sort_numbers
from stentor.index.ap_tree.keyword_cuts import (
    MOST_STEPS,
    cost_of_cuts,
    even_cuts,
    heuristic_cuts,
    optimal_cuts,
)
from stentor.index.ap_tree.layout import Entries, Policy
from stentor.index.ap_tree.radix import sort_many

#: Entries and messages that a grid is chosen by; more would not place its lines better.
SAMPLE = 1024
#: A grid that makes more copies of what it is given is made coarser.
MOST_COPIES = 2.5
#: A cell with more than this part of the entries separates nothing: then it has to be reached by
#: few messages, or grids would be nested in one another for ever smaller gains.
ALIKE = 0.95
#: Messages of the history in a region, so that they say where messages are in it.
LEAST_SEEN = 16
HEURISTIC, OPTIMAL, EVEN = 0, 1, 2


class Work(NamedTuple):
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
    expected: Float64  # (2,) entries in the cell of a message, and in the dummy
    edge: Float64  # (8 × SAMPLE,) lows, highs, points along x and y; x and y of messages
    best: Float64  # scratch of Algorithm 2
    choice: Int32


class Messages(NamedTuple):
    """Where messages of the history were, and how much the entries move."""

    x: Float64
    y: Float64
    dx: Float64  # (entries,) how far it went in one timestamp, or (0,): nothing moves
    dy: Float64
    rate: float  # messages that come in one timestamp


@kernel_inline
def next_key(entries: Entries, entry: int, offset: int) -> int:
    """The keyword of *entry* after *offset* others; −1 where it has no more."""
    place = entries.key_start[entry] + offset
    return int(entries.key[place]) if place < entries.key_start[entry + 1] else -1


@kernel_inline
def children_for(policy: Policy, count: int) -> int:
    """How many cuts or cells *count* entries are worth."""
    if policy.grain == 0.0:
        return policy.fanout
    return int(min(policy.fanout, max(2.0, policy.grain * count / policy.leaf)))


@kernel_part
def partition_keywords(
    entries: Entries,
    segment: Int32,
    offset: int,
    known: Float64,
    policy: Policy,
    work: Work,
    shape: Int64,
) -> float:
    """The cost of the keyword partition, infinite where there is none.

    *shape* gets the number of cuts and of keywords; work.cut, work.rank say where the cuts are.
    """
    shape[0] = shape[1] = 0
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
    place = 0
    while place < count:
        rank = work.rank[place]
        stop = place + 1
        while stop < count and work.rank[stop] == rank:
            stop += 1
        work.rank[keywords] = rank
        chance = known[rank] if rank < len(known) else 0.0
        work.weight[keywords + 1] = work.weight[keywords] + (stop - place)
        work.likely[keywords + 1] = work.likely[keywords] + chance
        keywords += 1
        place = stop
    cuts = min(keywords, children_for(policy, count))
    shape[0], shape[1] = cuts, keywords
    if policy.partition == EVEN:
        even_cuts(work.weight, keywords, cuts, work.cut)
    elif (
        policy.partition == OPTIMAL
        and cuts * keywords * keywords <= MOST_STEPS
        and cuts * (keywords + 1) <= len(work.choice)
        and 2 * (keywords + 1) <= len(work.best)
    ):
        optimal_cuts(
            work.weight,
            work.likely,
            policy.visit,
            keywords,
            cuts,
            work.cut,
            work.best,
            work.choice,
        )
    else:
        heuristic_cuts(work.weight, work.likely, policy.visit, keywords, cuts, work.cut)
    cost = cost_of_cuts(work.weight, work.likely, policy.visit, work.cut, cuts)
    without = len(segment) - count
    return cost + without + (policy.visit if without > 0 else 0.0)


@kernel_part
def partition_space(
    entries: Entries,
    segment: Int32,
    region: Float64,
    messages: Messages,
    policy: Policy,
    work: Work,
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
    seen = messages_in(messages, region, seen_x, seen_y)
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


@kernel_part
def edges_along(
    entries: Entries,
    segment: Int32,
    stride: int,
    region: Float64,
    axis: int,
    edge: Float64,
    seen: int,
) -> int:
    """How many boxes of a sample are partly in *region*; their edges along *axis* go into *edge*.

    Lows, highs, and where messages are: as the *seen* ones, else as the middles of boxes; sorted.
    """
    first = 3 * SAMPLE * axis
    lows, highs = edge[first : first + SAMPLE], edge[first + SAMPLE : first + 2 * SAMPLE]
    points = edge[first + 2 * SAMPLE : first + 3 * SAMPLE]
    boxes = 0
    for place in range(0, len(segment), stride):
        box = entries.box[4 * segment[place] : 4 * segment[place] + 4]
        if not contains_region(box, region):
            lows[boxes] = max(box[axis], region[axis])
            highs[boxes] = min(box[axis + 2], region[axis + 2])
            if seen == 0:
                points[boxes] = (lows[boxes] + highs[boxes]) / 2.0
            boxes += 1
    for place in range(seen):
        points[place] = edge[(6 + axis) * SAMPLE + place]
    sort_numbers(lows, boxes)
    sort_numbers(highs, boxes)
    sort_numbers(points, seen if seen > 0 else boxes)
    return boxes


@kernel_inline
def messages_in(messages: Messages, region: Float64, x: Float64, y: Float64) -> int:
    """How many messages of the history are in *region*: *x* and *y* get them, as many as fit."""
    seen = 0
    for place in range(len(messages.x)):
        inside = region[0] <= messages.x[place] <= region[2]
        if inside and region[1] <= messages.y[place] <= region[3] and seen < len(x):
            x[seen], y[seen] = messages.x[place], messages.y[place]
            seen += 1
    return seen


@kernel_part
def grid_cost(
    entries: Entries,
    segment: Int32,
    stride: int,
    region: Float64,
    columns: int,
    rows: int,
    policy: Policy,
    work: Work,
    seen_x: Float64,
    seen_y: Float64,
    seen: int,
) -> tuple[float, float]:
    """Equation 1 for a grid, and how many copies it makes of each entry, both from samples.

    A message comes where those of the history were, or anywhere; or where other entries are: then
    every other one of the sample is filed, since an entry is always where it is itself.
    """
    step = stride if seen > 0 or policy.by_area else 2 * stride
    tally = work.tally[: columns * rows]
    for cell in range(columns * rows):
        tally[cell] = 0
    filed = kept = copies = 0
    for place in range(0, len(segment), step):
        box = entries.box[4 * segment[place] : 4 * segment[place] + 4]
        filed += 1
        if contains_region(box, region):
            kept += 1
            continue
        west, east = columns_of(work.line, columns, box[0], box[2])
        south, north = rows_of(work.line, columns, rows, box[1], box[3])
        for row in range(south, north + 1):
            for column in range(west, east + 1):
                tally[row * columns + column] += 1
        copies += (east - west + 1) * (north - south + 1)
    if filed == 0:
        return math.inf, 1.0
    found, asked = 0.0, 0
    if seen > 0:
        for place in range(seen):
            column, _ = columns_of(work.line, columns, seen_x[place], seen_x[place])
            row, _ = rows_of(work.line, columns, rows, seen_y[place], seen_y[place])
            found += tally[row * columns + column]
            asked += 1
    elif policy.by_area:
        for row in range(rows):
            for column in range(columns):
                share = part(work.line, 0, columns, column, region[0], region[2])
                share *= part(work.line, columns - 1, rows, row, region[1], region[3])
                found += tally[row * columns + column] * share
        asked = 1
    else:
        for place in range(stride, len(segment), 2 * stride):
            box = entries.box[4 * segment[place] : 4 * segment[place] + 4]
            x = (max(box[0], region[0]) + min(box[2], region[2])) / 2.0
            y = (max(box[1], region[1]) + min(box[3], region[3])) / 2.0
            column, _ = columns_of(work.line, columns, x, x)
            row, _ = rows_of(work.line, columns, rows, y, y)
            found += tally[row * columns + column]
            asked += 1
    largest = 0
    for cell in range(columns * rows):
        largest = max(largest, tally[cell])
    is_idle = largest > ALIKE * filed and found / max(1, asked) + kept > filed / 2
    if asked == 0 or is_idle:
        return math.inf, 1.0
    scale = len(segment) / filed
    work.expected[0], work.expected[1] = found / asked * scale, kept * scale
    cost = (found / asked + kept) * scale + policy.visit
    return cost + (policy.visit if kept > 0 else 0.0), (copies + kept) / filed


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
def part(line: Float64, first: int, cells: int, cell: int, low: float, high: float) -> float:
    """The part of *low* … *high* that is in *cell*."""
    start = low if cell == 0 else line[first + cell - 1]
    stop = high if cell == cells - 1 else line[first + cell]
    return (stop - start) / (high - low) if high > low else np.float64(cell == 0)
