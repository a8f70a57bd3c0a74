"""The invariants of lists, asserted in plain NumPy: for tests."""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import Int64, SubscriptionColumns
from stentor.index.packed.lists.build import ListArrays, build_lists
from stentor.index.packed.lists.layout import (
    COLUMNS,
    COUNT,
    FIELDS,
    IS_LEAF,
    LANES,
    LONG,
    NO_TREE,
    NOT_ASKED,
    POINTER,
    ROOT,
    START,
)
from stentor.index.packed.lists.move import Movers, wrong_lanes


def check_lists(
    arrays: ListArrays,
    movers: Movers | None,
    columns: SubscriptionColumns,
    alternatives: Int64,
    *,
    has_moved: bool,
) -> None:
    """Assert that *alternatives* are in the lists, and that each tree leads to all of its list.

    Those of *movers* that moved too far are not; the others are under their present bounds.
    """
    keys, axes, granules = arrays
    lists = keys.lists.reshape(-1, FIELDS).astype(np.int64)
    starts, counts, roots = lists[:, START], lists[:, COUNT], lists[:, ROOT]
    used = np.zeros(len(granules.entry), np.int64)
    for start, count in zip(starts, counts, strict=True):
        used[start : start + count] += 1
    assert used.max(initial=0) <= 1, "no two lists share an entry"
    entered = np.unique(granules.entry[used == 1].astype(np.int64) & POINTER)
    assert np.isin(alternatives, entered).all(), "each alternative is in a list"
    if movers is not None:
        which = np.isin(movers.alternative, alternatives).astype(np.uint8)
        assert not wrong_lanes(columns, movers, which, keys.lists, axes, granules), "bounds"
        used[granules.bounds.reshape(-1, COLUMNS, LANES)[:, 0].reshape(-1) == NOT_ASKED] = 0
    assert ((roots == NO_TREE) == (counts <= LONG)).all(), "long lists have trees"
    bounds = granules.bounds.reshape(-1, COLUMNS, LANES)
    for start, count, root in zip(starts, counts, roots, strict=True):
        if root != NO_TREE:
            leaves = _leaves_below(arrays, int(root))
            assert leaves == list(range(start // LANES, -(-(start + count) // LANES)))
    for axis in range(1, len(axes.is_exact)):
        cuts = axes.cut[axes.cut_start[axis] : axes.cut_start[axis + 1]]
        assert cuts[0] == -np.inf
        assert (np.diff(cuts) > 0).all(), "cuts ascend"
    assert (bounds[:, 0][used.reshape(-1, LANES) == 1] != NOT_ASKED).all()
    if has_moved or not len(entered) or not np.array_equal(entered, alternatives):
        return  # some were moved or removed since: what is here of them is out of date
    fresh = build_lists(columns, alternatives)
    for name in ("bounds", "signature", "entry", "record"):
        same = np.array_equal(getattr(fresh.granules, name), getattr(granules, name))
        assert same, f"{name} are those of the columns"


def _leaves_below(arrays: ListArrays, granule: int) -> list[int]:
    """The granules of entries below *granule*, asserting that hulls hold what is below them."""
    granules = arrays.granules
    bounds = granules.bounds.reshape(-1, COLUMNS, LANES)
    found: list[int] = []
    for lane in range(LANES):
        if bounds[granule, 0, lane] == NOT_ASKED:
            continue
        child = int(granules.entry[granule * LANES + lane])
        below = child & POINTER
        is_used = bounds[below, 0] != NOT_ASKED
        for column in range(0, COLUMNS, 2):
            assert (bounds[granule, column, lane] <= bounds[below, column, is_used]).all()
            assert (bounds[granule, column + 1, lane] >= bounds[below, column + 1, is_used]).all()
        needed = granules.signature[granule * LANES + lane]
        assert not (
            needed & ~granules.signature[below * LANES : (below + 1) * LANES][is_used]
        ).any()
        found += [below] if child & IS_LEAF else _leaves_below(arrays, below)
    return found
