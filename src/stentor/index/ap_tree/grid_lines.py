"""Spatial partition: where the lines of a grid stand, one dimension after the other (3.3.3)."""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import kernel_inline, kernel_part
from stentor.encoding.columns import Float64


@kernel_part
def sort_numbers(values: Float64, count: int) -> None:
    """Sort the first *count* of *values* in place (Shell's way)."""
    gap = 1
    while 3 * gap + 1 < count:
        gap = 3 * gap + 1
    while gap > 0:
        for place in range(gap, count):
            moving = values[place]
            hole = place
            while hole >= gap and values[hole - gap] > moving:
                values[hole] = values[hole - gap]
                hole -= gap
            values[hole] = moving
        gap //= 3


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


@kernel_inline
def chance_between(
    points: Float64, count: int, by_area: int, start: float, stop: float, length: float
) -> float:
    """How likely a message is between *start* and *stop*: by *points*, or by the length."""
    if by_area:
        return (stop - start) / length if length > 0.0 else 1.0
    if count == 0:
        return 1.0
    return (below(points, count, stop) - below(points, count, start)) / count


@kernel_part
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
    length = high - low
    for number in range(1, cells):
        place = min(boxes - 1, boxes * number // cells)
        middle = (lows[place] + highs[place]) / 2.0
        line[number - 1] = min(high, max(low, middle))
    for number in range(1, cells):
        start = low if number == 1 else line[number - 2]
        stop = high if number == cells - 1 else line[number]
        first, last = below(lows, boxes, start), below(lows, boxes, stop)
        first_high, last_high = below(highs, boxes, start), below(highs, boxes, stop)
        before, after = below(highs, boxes, start), below(lows, boxes, stop)
        if number == 1:
            before = 0
        if number == cells - 1:
            after = boxes
        least, best = math.inf, line[number - 1]
        while first < last or first_high < last_high:
            if first_high >= last_high or (first < last and lows[first] <= highs[first_high]):
                border = lows[first]
                first += 1
            else:
                border = np.nextafter(highs[first_high], math.inf)
                first_high += 1
            if not start < border < stop:
                continue
            left = below(lows, boxes, border) - before
            right = after - below(highs, boxes, border)
            cost = left * chance_between(points, messages, by_area, start, border, length)
            cost += right * chance_between(points, messages, by_area, border, stop, length)
            if cost < least:
                least, best = cost, border
        line[number - 1] = best
