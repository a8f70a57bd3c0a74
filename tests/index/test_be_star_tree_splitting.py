"""Where the BE*-Tree cuts a bucket, against all ways to cut it."""

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stentor.index.be_star_tree.splitting import (
    NO_CUT,
    approximate_cut,
    exhaustive_cut,
    space_cut,
)
from stentor.index.be_star_tree.state import split_scratch

numbers = st.integers(0, 12)
boxes = st.lists(
    st.tuples(numbers, st.sampled_from([0, 0, 1, 2, 5])).map(lambda box: (box[0], sum(box))),
    min_size=2,
    max_size=9,
)


def scratch_with(buckets):
    scratch = split_scratch(16, 0)
    for place, (low, high) in enumerate(buckets):
        scratch.low[place], scratch.high[place] = low, high
    return scratch


def parts(buckets, cut):
    """The left, overlapping and right boxes of *cut*."""
    stop, start = cut
    left = [box for box in buckets if box[1] <= stop]
    right = [box for box in buckets if box[0] >= start]
    return left, [box for box in buckets if box[1] > stop and box[0] < start], right


def hull(some):
    return (min(low for low, _ in some), max(high for _, high in some)) if some else (0, 0)


def costs(buckets, cut):
    """The length of what overlaps, and of the union of all three hulls: the paper's measures."""
    hulls = [hull(part) for part in parts(buckets, cut) if part]
    ends = sorted({end for one in hulls for end in one})
    union = sum(
        right - left
        for left, right in itertools.pairwise(ends)
        if any(low <= left and right <= high for low, high in hulls)
    )
    low, high = hull(parts(buckets, cut)[1])
    return high - low, union


def is_valid(buckets, cut, least, gap):
    left, _, right = parts(buckets, cut)
    return len(left) >= least and len(right) >= least and hull(left)[1] + gap < hull(right)[0]


def all_cuts(buckets, gap):
    """Every way to give the first so many to the left, or the last so many to the right."""
    for stop in {high for _, high in buckets}:
        starts = [low for low, _ in buckets if low > stop + gap]
        yield stop, min(starts, default=math.inf)
    for start in {low for low, _ in buckets}:
        stops = [high for _, high in buckets if high + gap < start]
        yield max(stops, default=-math.inf), start


@given(buckets=boxes, least=st.integers(1, 3), gap=st.sampled_from([0.0, 1.0, 2.5]))
def test_the_exhaustive_cut_is_the_best_of_all(buckets, least, gap):
    found = exhaustive_cut(scratch_with(buckets), len(buckets), least, gap)
    valid = [cut for cut in all_cuts(buckets, gap) if is_valid(buckets, cut, least, gap)]
    if not valid:
        assert found == NO_CUT
    else:
        assert is_valid(buckets, found, least, gap)
        assert costs(buckets, found) == min(costs(buckets, cut) for cut in valid)


@given(buckets=boxes, least=st.integers(1, 3), gap=st.sampled_from([0.0, 1.0]))
def test_the_approximate_cut_is_valid_and_never_better(buckets, least, gap):
    found = approximate_cut(scratch_with(buckets), len(buckets), least, gap)
    if found != NO_CUT:
        assert is_valid(buckets, found, least, gap)
        best = exhaustive_cut(scratch_with(buckets), len(buckets), least, gap)
        assert costs(buckets, found)[0] >= costs(buckets, best)[0]


@given(buckets=boxes)
def test_the_space_is_cut_in_its_middle(buckets):
    found = space_cut(scratch_with(buckets), len(buckets))
    low, high = hull(buckets)
    if low == high:
        assert found == NO_CUT, "a bucket of one value is atomic"
        return
    middle = (low + high) / 2
    left, overlapping, right = parts(buckets, found)
    assert left == [box for box in buckets if box[1] < middle]
    assert right == [box for box in buckets if box[0] > middle]
    assert overlapping == [box for box in buckets if box[0] <= middle <= box[1]]


def test_a_cut_is_found_among_a_thousand():
    random = np.random.default_rng(1)
    scratch = split_scratch(1000, 0)
    low = random.permutation(1000).astype(float)
    scratch.low[:1000], scratch.high[:1000] = low, low + 0.5
    stop, start = exhaustive_cut(scratch, 1000, 100, 0.0)
    assert 100 <= np.count_nonzero(low + 0.5 <= stop) <= 900
    assert start == np.floor(stop) + 1
