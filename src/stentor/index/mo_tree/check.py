"""The invariants of a MO-Tree, asserted in plain Python: for tests."""

from __future__ import annotations

import math

import numpy as np

from stentor.encoding.columns import (
    BOX,
    MISSING,
    NEGATED,
    EventColumns,
    Int64,
    SubscriptionColumns,
)
from stentor.index.bounds import VALUE, X, Y
from stentor.index.mo_tree.drafting import draft_alternatives, draft_events, drafts_for
from stentor.index.mo_tree.layout import (
    CARD_HIGH,
    CARD_LOW,
    END,
    FREE,
    GRANULE,
    GRANULE_WORDS,
    ITEMS,
    LINE,
    MEMBER,
    MOST_DIMENSIONS,
    NO_SLOT,
    SIGNATURE,
    Drafts,
)
from stentor.index.mo_tree.pool import Pool
from stentor.index.mo_tree.tree import Tree


def check_subscriptions(tree: Tree, columns: SubscriptionColumns, alternatives: Int64) -> None:
    """Assert that *alternatives* are in the buckets of *tree*, each in the one that is its own."""
    drafts = drafts_for(len(alternatives), ending=False)
    draft_alternatives(columns, alternatives, tree.dimensions, tree.cells, tree.query(), drafts)
    for place, alternative in enumerate(alternatives.tolist()):
        bucket = 0
        for layer in range(tree.layers):
            cell = _smallest_cell(tree, layer, _bounds(tree, columns, alternative, layer))
            bucket = bucket * tree.cell_count + cell
        assert drafts.bucket[place] == bucket, "an interval is in the smallest, nearest cell"
    check_pool(tree.subscriptions, drafts, alternatives)


def check_events(tree: Tree, events: EventColumns, rows: Int64) -> None:
    """Assert that the events in *rows* are in the buckets of *tree*, each in its own."""
    drafts = drafts_for(len(rows), ending=True)
    draft_events(events, rows, tree.dimensions, tree.cells, tree.query(), drafts)
    check_pool(tree.events, drafts, rows)
    buckets = tree.events.buckets
    assert (drafts.until >= buckets.soonest[drafts.bucket]).all(), "no event ends before"
    values = tree.event_cells - 1
    for place, row in enumerate(rows.tolist()):
        cells = [_value_cells(tree, events, row, layer, values) for layer in range(tree.layers)]
        bucket = 0
        for low, high in cells:
            bucket = bucket * tree.event_cells + low
            if low != high:
                bucket = tree.event_cells**tree.layers
                break
        assert drafts.bucket[place] == bucket


def check_pool(pool: Pool, drafts: Drafts, members: Int64) -> None:
    """Assert that *members* are in *pool* as *drafts* say, each once, and nothing else is."""
    buckets, slot_of = pool.buckets, pool.slot_of
    card = buckets.card.reshape(-1, LINE)
    slots = slot_of[members]
    assert (slots != NO_SLOT).all(), "each member has a slot"
    assert len(np.unique(slots)) == len(members)
    member = card[:, MEMBER] & np.uint64(FREE)
    bucket = (card[:, MEMBER] >> np.uint64(32)).astype(np.int64)
    assert np.array_equal(member[slots], members.astype(np.uint64))
    assert np.array_equal(bucket[slots], drafts.bucket), "in exactly the bucket its cells name"
    assert np.array_equal(card[slots, SIGNATURE], drafts.signature)
    stored = _stored(buckets.granule, card, slots)
    for steps, drafted in zip(stored, (drafts.low, drafts.high), strict=True):
        assert np.array_equal(steps, drafted.reshape(-1, MOST_DIMENSIONS))
    assert pool.items == buckets.tally[ITEMS] == buckets.used.sum() >= len(members)
    assert (buckets.used <= buckets.room).all()
    inside = (slots >= buckets.start[bucket[slots]]) & (
        slots < buckets.start[bucket[slots]] + buckets.used[bucket[slots]]
    )
    assert inside.all(), "a bucket's items are in its run of slots"
    order = np.argsort(buckets.start[buckets.room > 0])
    start, room = (array[buckets.room > 0][order] for array in (buckets.start, buckets.room))
    assert (start[:-1] + room[:-1] <= start[1:]).all(), "runs do not overlap"
    assert not len(start) or start[-1] + room[-1] <= buckets.tally[END] <= len(card)


def _stored(
    granule: np.ndarray, card: np.ndarray, slots: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The lows and the highs in *slots*, by dimension."""
    bytes_of = granule.view(np.uint8).reshape(-1, GRANULE_WORDS, GRANULE)
    first = bytes_of[slots // GRANULE, :, slots % GRANULE]
    rest = [
        np.ascontiguousarray(card[slots, at : at + 3]).view(np.uint8)
        for at in (CARD_LOW, CARD_HIGH)
    ]
    return (
        np.concatenate([first[:, ::2], rest[0]], axis=1),
        np.concatenate([first[:, 1::2], rest[1]], axis=1),
    )


def _bounds(
    tree: Tree, columns: SubscriptionColumns, alternative: int, layer: int
) -> tuple[float, float] | None:
    """Between which positions the alternative bounds the layer; None where it does not."""
    start, stop = columns.predicate_start[alternative : alternative + 2].tolist()
    low, high, kinds = -math.inf, math.inf, []
    axis = int(tree.dimensions.axis[layer])
    for predicate in range(start, stop):
        if columns.attribute[predicate] != tree.dimensions.attribute[layer]:
            continue
        kind = int(columns.kind[predicate])
        kinds.append(kind)
        if kind >= NEGATED or (kind >= BOX and axis == VALUE):
            continue
        one, other = float(columns.low[predicate]), float(columns.high[predicate])
        if kind >= BOX:
            pair = int(columns.operand_start[predicate]) + (axis == Y)
            one, other = float(columns.pair_low[pair]), float(columns.pair_high[pair])
            if not one <= other:
                continue
        elif axis != VALUE:
            one, other = (-math.inf, other) if axis == X else (one, math.inf)
        low, high = max(low, one), min(high, other)
    if not kinds or kinds[-1] == MISSING:
        return None
    return _position(tree, layer, low), _position(tree, layer, high)


def _position(tree: Tree, layer: int, value: float) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        offset = np.float64(value) - tree.dimensions.low[layer]
        at = float(offset * tree.dimensions.scale[layer])
    return 0.0 if math.isnan(at) else min(1.0, max(0.0, at))


def _smallest_cell(tree: Tree, layer: int, bounds: tuple[float, float] | None) -> int:
    """By looking at every cell."""
    last = tree.cell_count - 1
    if bounds is None or bounds[0] > bounds[1]:
        return last
    low, high = bounds
    first = layer * tree.cell_count
    levels = len(tree.cells.level_start) - 1
    for level in range(levels):
        width = tree.cells.width[layer * levels + level]
        cells = range(*tree.cells.level_start[level : level + 2].tolist())
        holding = [
            (abs(tree.cells.low[first + cell] + 0.5 * width - 0.5 * (low + high)), cell)
            for cell in cells
            if tree.cells.low[first + cell] <= low and high < tree.cells.high[first + cell]
        ]
        if holding:
            return min(holding)[1]
    return last


def _value_cells(
    tree: Tree, events: EventColumns, row: int, layer: int, values: int
) -> tuple[int, int]:
    """The cells of the low and of the high end of what the event has in the layer."""
    start, stop = events.value_start[row : row + 2].tolist()
    axis = int(tree.dimensions.axis[layer])
    for value in range(start, stop):
        if events.attribute[value] == tree.dimensions.attribute[layer]:
            low, high = float(events.low[value]), float(events.high[value])
            ends = {VALUE: (low, high), X: (low, low), Y: (high, high)}[axis]
            one, other = (
                min(int(_position(tree, layer, end) * values), values - 1) for end in ends
            )
            return one, other
    return values, values
