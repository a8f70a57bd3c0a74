"""The invariants of a table of ranges, asserted in plain Python: for tests."""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import Int64, UInt64
from stentor.index.mics.range_table.insert import ANNOUNCED, GONE, PASSIVE
from stentor.index.mics.range_table.layout import (
    BLOCK,
    FREE_BLOCK,
    FREED,
    NEVER,
    NONE,
    ORDERED,
    RANGES,
    TOUCHED,
    RangeBlocks,
)
from stentor.index.mics.range_table.store import RangeStore


def check_store(store: RangeStore) -> None:
    """Assert that *store* is in order.

    The table is sorted, disjoint and the union of what is announced, which is all that is
    subscribed and the gaps that merging filled; every passive range is covered.
    """
    entries = store.entries
    for ordered, state in ((store.announced, ANNOUNCED), (store.passive, PASSIVE)):
        _, _, entry = listed(ordered)
        assert sorted(entry.tolist()) == np.flatnonzero(entries.state == state).tolist()
    low, high, entry = listed(store.announced)
    assert np.array_equal(low, entries.announced_low[entry])
    assert np.array_equal(high, entries.announced_high[entry])
    assert (low <= entries.low[entry]).all()
    assert (entries.high[entry] <= high).all()
    filled = (entries.low[entry] - low) + (high - entries.high[entry])
    assert (filled <= np.uint64(2) * store.gap).all()
    low, high, entry = listed(store.passive)
    assert (entry[:-1] < entry[1:])[low[:-1] == low[1:]].all()
    assert np.array_equal(low, entries.low[entry])
    assert np.array_equal(high, entries.high[entry])
    union = listed(store.union)[:2]
    assert pairs(*union) == merged(*listed(store.announced)[:2])
    assert pairs(*union) == merged(
        *(np.concatenate(both) for both in zip(union, (low, high), strict=True))
    )
    current = store.entries_of(np.arange(len(store._count)))
    assert sorted(current.tolist()) == np.flatnonzero(entries.state != GONE).tolist()
    assert store._gone == np.count_nonzero(entries.state == GONE)


def listed(ordered: RangeBlocks) -> tuple[UInt64, UInt64, Int64]:
    """All ranges of *ordered* in order, after its blocks were checked."""
    used = ordered.used
    blocks = ordered.order[: used[ORDERED]]
    assert used[ORDERED] + used[FREED] == used[TOUCHED] <= len(ordered.filled)
    free, count = used[FREE_BLOCK], 0
    while free != NONE:
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
