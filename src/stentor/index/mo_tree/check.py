"""The invariants of a MO-Tree, asserted in plain Python: for tests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns
from stentor.encoding.kinds import MISSING, NEGATED, REGIONS, is_among
from stentor.index.bounds import VALUE, X, Y
from stentor.index.mo_tree.buckets import BucketTable
from stentor.index.mo_tree.build import MoTreeLayers
from stentor.index.mo_tree.items import items_of_alternatives, items_of_events, new_items
from stentor.index.mo_tree.layout import (
    CARD_HIGH,
    CARD_LOW,
    END,
    FREE,
    GRANULE,
    GRANULE_WORDS,
    ITEMS,
    LAST_STEP,
    LINE,
    MEMBER,
    MOST_DIMENSIONS,
    NO_SLOT,
    PIECES,
    SIGNATURE,
    MoItems,
)


def in_trees(tables: Sequence[BucketTable], members: Int64) -> Iterator[tuple[int, Int64]]:
    """The number of each of *tables* with those of *members* in it; each is in exactly one."""
    contained = [table.contained(members) for table in tables]
    assert np.array_equal(np.sort(np.concatenate(contained)), members), "each member has one slot"
    yield from enumerate(contained)


def check_subscriptions(
    tree: MoTreeLayers, columns: SubscriptionColumns, alternatives: Int64
) -> None:
    """Assert that *alternatives* are in the buckets of *tree*, each in its own."""
    items = new_items(len(alternatives), ending=False)
    items_of_alternatives(columns, alternatives, tree.dimensions, tree.cells, tree.query(), items)
    for position, alternative in enumerate(alternatives.tolist()):
        bucket = 0
        for layer in range(tree.layers):
            cell = _smallest_cell(tree, layer, _bounds(tree, columns, alternative, layer))
            bucket = bucket * tree.cell_count + cell
        assert items.bucket[position] == bucket, "an interval is in the smallest, nearest cell"
    check_buckets(tree.subscriptions, items, alternatives)


def check_events(tree: MoTreeLayers, events: EventColumns, rows: Int64) -> None:
    """Assert that the events in *rows* are in the buckets of *tree*, each in its own."""
    items = new_items(len(rows), ending=True)
    items_of_events(events, rows, tree.dimensions, tree.cells, tree.query(), items)
    check_buckets(tree.events, items, rows)
    buckets = tree.events.buckets
    assert (items.until >= buckets.soonest[items.bucket]).all(), "no event ends before"
    values = tree.event_cells - 1
    for position, row in enumerate(rows.tolist()):
        cells = [_value_cells(tree, events, row, layer, values) for layer in range(tree.layers)]
        bucket = 0
        for low, high in cells:
            bucket = bucket * tree.event_cells + low
            if low != high:
                bucket = tree.event_cells**tree.layers
                break
        assert items.bucket[position] == bucket


def check_buckets(table: BucketTable, items: MoItems, members: Int64) -> None:
    """Assert that *members* are in *table* as *items* say, each once, and nothing else is."""
    buckets, slot_of = table.buckets, table.slot_of
    card = buckets.card.reshape(-1, LINE)
    slots = slot_of[members]
    assert (slots != NO_SLOT).all(), "each member has a slot"
    assert len(np.unique(slots)) == len(members)
    member = card[:, MEMBER] & np.uint64(FREE)
    bucket = (card[:, MEMBER] >> np.uint64(32)).astype(np.int64)
    assert np.array_equal(member[slots], members.astype(np.uint64))
    assert np.array_equal(bucket[slots], items.bucket), "in exactly the bucket its cells name"
    assert np.array_equal(card[slots, SIGNATURE], items.signature)
    stored = _stored(buckets.granule, card, slots)
    for steps, expected in zip(stored, (items.low, items.high), strict=True):
        assert np.array_equal(steps, expected.reshape(-1, MOST_DIMENSIONS))
    assert table.items == buckets.tally[ITEMS] == buckets.used.sum() >= len(members)
    assert (buckets.used <= buckets.room).all()
    inside = (slots >= buckets.start[bucket[slots]]) & (
        slots < buckets.start[bucket[slots]] + buckets.used[bucket[slots]]
    )
    assert inside.all(), "a bucket's items are in its run of slots"
    order = np.argsort(buckets.start[buckets.room > 0])
    start, capacity = (array[buckets.room > 0][order] for array in (buckets.start, buckets.room))
    assert (start[:-1] + capacity[:-1] <= start[1:]).all(), "runs do not overlap"
    assert not len(start) or start[-1] + capacity[-1] <= buckets.tally[END] <= len(card)


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
        LAST_STEP - np.concatenate([first[:, 1::2], rest[1]], axis=1),
    )


def _bounds(
    tree: MoTreeLayers, columns: SubscriptionColumns, alternative: int, layer: int
) -> tuple[float, float] | None:
    """The positions between which the alternative bounds the layer; None where it does not."""
    start, stop = columns.predicate_start[alternative : alternative + 2].tolist()
    low, high, kinds = -math.inf, math.inf, []
    axis = int(tree.dimensions.axis[layer])
    for predicate in range(start, stop):
        if columns.attribute[predicate] != tree.dimensions.attribute[layer]:
            continue
        kind = int(columns.kind[predicate])
        kinds.append(kind)
        is_region = is_among(kind, REGIONS)
        if kind & NEGATED or (is_region and axis == VALUE):
            continue
        one, other = float(columns.low[predicate]), float(columns.high[predicate])
        if is_region:
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


def _position(tree: MoTreeLayers, layer: int, value: float) -> float:
    knots = tree.dimensions.knot[layer * (PIECES + 1) : (layer + 1) * (PIECES + 1)]
    assert (knots[:-1] <= knots[1:]).all(), "knots ascend"
    if not value > knots[0] or value >= knots[-1]:
        return float(value > knots[0])
    piece = int(np.count_nonzero(knots <= value)) - 1
    with np.errstate(over="ignore", invalid="ignore"):
        within = float((value - knots[piece]) * tree.dimensions.rate[layer * PIECES + piece])
    return (piece + (0.0 if math.isnan(within) else min(1.0, max(0.0, within)))) / PIECES


def _smallest_cell(tree: MoTreeLayers, layer: int, bounds: tuple[float, float] | None) -> int:
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
    tree: MoTreeLayers, events: EventColumns, row: int, layer: int, values: int
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
