"""Where an overflowing bucket is cut: left, overlapping and right (V-A3).

A cut is two values: what ends at or before the first goes left, what begins at or after the second
goes right, the rest overlaps. Sorting takes the time; trying all cuts is linear, since the hull of
what overlaps is known from running minima and maxima.
"""

from __future__ import annotations

import math

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import Float64, Int64
from stentor.index.be_star_tree.layout import Desk

Cut = tuple[float, float]
#: Nothing goes left, nothing goes right.
NO_CUT: Cut = (-math.inf, math.inf)


@kernel_part
def sort_places(values: Float64, places: Int64, spare: Int64, count: int) -> None:
    """Let *places* be 0 … count − 1 by ascending *values*: a merge sort that needs no memory."""
    for place in range(count):
        places[place] = place
    run = 1
    while run < count:
        start = 0
        while start < count:
            middle, stop = min(start + run, count), min(start + 2 * run, count)
            left, right = start, middle
            for target in range(start, stop):
                if left < middle and (
                    right >= stop or values[places[left]] <= values[places[right]]
                ):
                    spare[target] = places[left]
                    left += 1
                else:
                    spare[target] = places[right]
                    right += 1
            start = stop
        for place in range(count):
            places[place] = spare[place]
        run *= 2


@kernel
def exhaustive_cut(desk: Desk, count: int, least: int, gap: float) -> Cut:
    """The cut with the shortest overlapping bucket, then the least coverage; or NO_CUT.

    Left and right hold at least *least* each and are more than *gap* apart. Cost: O(n log n).
    """
    low, high, by_low, by_high = desk.low, desk.high, desk.by_low, desk.by_high
    sort_places(low, by_low, desk.spare, count)
    sort_places(high, by_high, desk.spare, count)
    # By ends: the least beginning of the first so many, and of the others.
    first_low, rest_low = desk.least_low, desk.latest_high
    first_low[0] = rest_low[count] = math.inf
    for place in range(count):
        first_low[place + 1] = min(first_low[place], low[by_high[place]])
        other = count - 1 - place
        rest_low[other] = min(rest_low[other + 1], low[by_high[other]])
    # By beginnings: the last end of the first so many.
    first_high = desk.most_high
    first_high[0] = -math.inf
    for place in range(count):
        first_high[place + 1] = max(first_high[place], high[by_low[place]])
    whole_high = first_high[count]
    best, best_overlap, best_coverage = NO_CUT, math.inf, math.inf
    begun = 0  # how many begin at most `gap` after the end of the left bucket
    for ended in range(1, count):
        stop = high[by_high[ended - 1]]
        if high[by_high[ended]] == stop:
            continue
        while begun < count and low[by_low[begun]] <= stop + gap:
            begun += 1
        if ended < least or count - begun < least:
            continue
        start = low[by_low[begun]]
        overlap_low = overlap_high = start
        if begun > ended:  # otherwise nothing overlaps
            overlap_low, overlap_high = rest_low[ended], first_high[begun]
        overlap = overlap_high - overlap_low
        coverage = covered(first_low[ended], stop, overlap_low, overlap_high, start, whole_high)
        if overlap < best_overlap or (overlap == best_overlap and coverage < best_coverage):
            best, best_overlap, best_coverage = (stop, start), overlap, coverage
    return best


@kernel_inline
def covered(
    left_low: float,
    left_high: float,
    low: float,
    high: float,
    right_low: float,
    right_high: float,
) -> float:
    """The length of the union: left … and right … are apart, low … high may touch both."""
    length = (left_high - left_low) + (right_high - right_low) + (high - low)
    length -= max(0.0, min(left_high, high) - max(left_low, low))
    return length - max(0.0, min(right_high, high) - max(right_low, low))


@kernel
def approximate_cut(desk: Desk, count: int, least: int, gap: float) -> Cut:
    """A cut found by filling left and right from their ends in turn; or NO_CUT.

    Cost: two sorts, as for the exhaustive one, and one pass.
    """
    low, high, by_low, by_high = desk.low, desk.high, desk.by_low, desk.by_high
    sort_places(low, by_low, desk.spare, count)
    sort_places(high, by_high, desk.spare, count)
    stop, start = -math.inf, math.inf
    lefts = rights = 0
    for place in range(count):
        leftmost, rightmost = by_high[place], by_low[count - 1 - place]
        if high[leftmost] + gap < start:
            stop = high[leftmost]
            lefts += 1
        if low[rightmost] > stop + gap:
            start = low[rightmost]
            rights += 1
    if lefts < least or rights < least:
        return NO_CUT
    return stop, start


@kernel
def space_cut(desk: Desk, count: int) -> Cut:
    """A cut in the middle of what the bucket spans, its finite ends taken (space clustering)."""
    least, most = math.inf, -math.inf
    for place in range(count):
        for end in (desk.low[place], desk.high[place]):
            if -math.inf < end < math.inf:
                least, most = min(least, end), max(most, end)
    if not least < most:
        return NO_CUT
    middle = least / 2.0 + most / 2.0
    stop, start = -math.inf, math.inf
    for place in range(count):
        if desk.high[place] < middle:
            stop = max(stop, desk.high[place])
        elif desk.low[place] > middle:
            start = min(start, desk.low[place])
    return stop, start
