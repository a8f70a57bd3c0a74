"""Spatial partition: where the lines of a grid stand, one dimension after the other (3.3.3)."""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import Float64


@kernel_inline
def below(values: Float64, count: int, limit: float) -> int:
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
    messages: int,
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
        place = min(boxes - 1, boxes * number // cells)
        middle = (lows[place] + highs[place]) / 2.0
        line[number - 1] = min(high, max(low, middle))
    for number in range(1, cells):
        start = low if number == 1 else line[number - 2]
        stop = high if number == cells - 1 else line[number]
        line[number - 1] = best_border(
            lows, highs, points, boxes, messages, by_area, start, stop, line[number - 1]
        )


@kernel_part
def best_border(
    lows: Float64,
    highs: Float64,
    points: Float64,
    boxes: int,
    messages: int,
    by_area: int,
    start: float,
    stop: float,
    border: float,
) -> float:
    """The edge of a box between *start* and *stop* where the cells beside it cost least.

    *border* is where the line stands; it stays there if no edge is in between.
    """
    low, last_low = below(lows, boxes, start), below(lows, boxes, stop)
    high, last_high = below(highs, boxes, start), below(highs, boxes, stop)
    point = first_point = below(points, messages, start)
    last_point = below(points, messages, stop)
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
