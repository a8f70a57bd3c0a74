"""What holds for every store of ranges, and for the postings: for tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stentor.encoding.columns import Int64, UInt64
from stentor.encoding.hilbert import Ranges
from stentor.index.mics.algorithms import GONE, PASSIVE, TOLD
from stentor.index.mics.ordered import (
    BLOCK,
    FREE_BLOCK,
    FREED,
    NEVER,
    NOWHERE,
    ORDERED,
    RANGES,
    TOUCHED,
    Ordered,
)
from stentor.index.mics.postings import CLASSES, MOST_KEY_BITS, Postings
from stentor.index.mics.store import RangeStore


def check_store(store: RangeStore) -> None:
    """Assert that *store* is in order.

    The table is sorted, disjoint and the union of what is told, which is all that is subscribed and
    the gaps that merging filled; every passive range is covered.
    """
    entries = store.entries
    for ordered, state in ((store.told, TOLD), (store.passive, PASSIVE)):
        _, _, entry = listed(ordered)
        assert sorted(entry.tolist()) == np.flatnonzero(entries.state == state).tolist()
    low, high, entry = listed(store.told)
    assert np.array_equal(low, entries.told_low[entry])
    assert np.array_equal(high, entries.told_high[entry])
    assert (low <= entries.low[entry]).all()
    assert (entries.high[entry] <= high).all()
    filled = (entries.low[entry] - low) + (high - entries.high[entry])
    assert (filled <= np.uint64(2) * store.gap).all()
    low, high, entry = listed(store.passive)
    assert (entry[:-1] < entry[1:])[low[:-1] == low[1:]].all()
    assert np.array_equal(low, entries.low[entry])
    assert np.array_equal(high, entries.high[entry])
    union = listed(store.union)[:2]
    assert pairs(*union) == merged(*listed(store.told)[:2])
    assert pairs(*union) == merged(
        *(np.concatenate(both) for both in zip(union, (low, high), strict=True))
    )
    standing = store.entries_of(np.arange(len(store._count)))
    assert sorted(standing.tolist()) == np.flatnonzero(entries.state != GONE).tolist()
    assert store._gone == np.count_nonzero(entries.state == GONE)


def listed(ordered: Ordered) -> tuple[UInt64, UInt64, Int64]:
    """All ranges of *ordered* in order, after its blocks were checked."""
    used = ordered.used
    blocks = ordered.order[: used[ORDERED]]
    assert used[ORDERED] + used[FREED] == used[TOUCHED] <= len(ordered.filled)
    free, count = used[FREE_BLOCK], 0
    while free != NOWHERE:
        assert free not in blocks
        free, count = ordered.filled[free], count + 1
    assert count == used[FREED]
    slots = np.concatenate(
        [
            np.zeros(0, np.int64),
            *(block * BLOCK + np.arange(ordered.filled[block]) for block in blocks),
        ]
    )
    assert len(slots) == used[RANGES]
    assert np.array_equal(ordered.first[: used[ORDERED]], ordered.low[blocks * BLOCK])
    assert (ordered.first[used[ORDERED] :] == NEVER).all()
    assert np.count_nonzero(np.delete(ordered.low, slots) != NEVER) == 0
    for block in blocks:
        assert 0 < ordered.filled[block] <= BLOCK
        part = ordered.high[block * BLOCK : block * BLOCK + ordered.filled[block]]
        assert part.max() == ordered.highest[block]
    low, high = ordered.low[slots], ordered.high[slots]
    assert (low <= high).all()
    assert (low[:-1] <= low[1:]).all()
    return low, high, ordered.entry[slots]


def pairs(low: UInt64, high: UInt64) -> list[tuple[int, int]]:
    """Ranges as pairs of plain numbers."""
    return list(zip(low.tolist(), high.tolist(), strict=True))


def merged(low: UInt64, high: UInt64) -> list[tuple[int, int]]:
    """Ranges as disjoint ones that do not touch: the definition that the algorithms follow."""
    found: list[tuple[int, int]] = []
    for start, stop in sorted(pairs(low, high)):
        if found and start <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], stop)
        else:
            found.append((start, stop))
    return found


def check_postings(
    postings: Postings, standing: Int64, ranges_of: Callable[[Int64], Ranges]
) -> None:
    """Assert that *postings* hold the ranges of the *standing* owners, in their classes.

    And of owners that were hidden without a word, as a layer over an index does.
    """
    low, high, owner = listed(postings.pieces)
    mask = np.uint64((1 << MOST_KEY_BITS) - 1)
    kind = low >> np.uint64(MOST_KEY_BITS)
    assert np.array_equal(np.bincount(kind.astype(np.int64), minlength=CLASSES), postings.classes)
    assert (kind == high >> np.uint64(MOST_KEY_BITS)).all()
    assert [int(length).bit_length() for length in (high - low).tolist()] == kind.tolist()
    filed = np.unique(owner)
    assert np.isin(standing, filed).all()
    ranges = ranges_of(filed)
    expected = zip(
        np.repeat(filed, np.diff(ranges.starts)).tolist(),
        pairs(*ranges[1:]),
        strict=True,
    )
    assert sorted(zip(owner.tolist(), pairs(low & mask, high & mask), strict=True)) == sorted(
        expected
    )
