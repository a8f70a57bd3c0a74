"""Entries in order, and where leaves and dictionaries are cut."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from stentor._jit import kernel, kernel_inline
from stentor._tables import LANES
from stentor.encoding.columns import Float64, Int32, Int64, read_only
from stentor.index.packed.lists.layout import LEAST, MOST_CELL, whole
from stentor.index.packed.nodes.entries import NodeEntries
from stentor.index.packed.nodes.layout import FRAME, MOST_SLOTS

#: Entries of a band at most, and how much wider than their mean its hull may be.
MOST_OF_BAND: Final = 1024
WIDER: Final = 5


class Scores(NamedTuple):
    """What bounds the scores of entries."""

    heaviest: Float64  # (axes,)
    promise: Float64  # (alternatives,)
    total: Float64  # (alternatives,)


class LeafCuts(NamedTuple):
    """Where leaves and dictionaries are, among entries in their order."""

    leaf_start: Int64  # (leaves + 1,)
    leaf_dictionary: Int64  # (leaves,)
    slot_start: Int64  # (dictionaries + 1,)
    slot_axis: Int32  # (slots,)
    slot_base: Int32  # (slots,)
    slot_top: Int32  # (slots,)


def scores_of_entries(entries: NodeEntries, axes: int) -> Scores:
    """The bounds of scores of *entries*."""
    count = len(entries.first)
    scores = Scores(np.zeros(axes), np.zeros(count), np.zeros(count))
    weigh_axes(entries, scores.heaviest)
    weigh_entries(entries, read_only(scores.heaviest), scores.promise, scores.total)
    return scores


@kernel
def weigh_axes(entries: NodeEntries, heaviest: Float64) -> None:
    """Fill *heaviest*: the greatest weight along each axis."""
    for column in range(len(entries.axis)):
        axis = entries.axis[column]
        heaviest[axis] = max(heaviest[axis], entries.weight[column])


@kernel
def weigh_entries(
    entries: NodeEntries, heaviest: Float64, promise: Float64, total: Float64
) -> None:
    """Fill *promise* and *total* of all entries."""
    for position in range(len(promise)):
        for column in range(entries.start[position], entries.start[position + 1]):
            promise[position] += entries.weight[column] * heaviest[entries.axis[column]]
            total[position] += entries.weight[column]


def order_of(entries: NodeEntries, scores: Scores) -> tuple[Int64, Int64]:
    """The entries by run, by where they are along its axis; bands of neighbours by their promise.

    Also the band of each. Where weights are all alike, bands are ordered by the second column.
    """
    first = entries.start[:-1] + entries.first
    order = np.argsort(entries.run << 20 | entries.low[first], kind="stable")
    band = np.empty(len(order), np.int64)
    cut_bands(entries, read_only(order), band)
    if len(entries.weight) and entries.weight.min() < entries.weight.max():
        # Of floats that are not negative the bits have the same order.
        bits = scores.promise.astype(np.float32).view(np.int32).astype(np.int64)
        inside = (1 << 31) - bits
    else:
        second = np.where(entries.second < 0, first, entries.start[:-1] + entries.second)
        inside = entries.axis[second].astype(np.int64) << 16 | entries.low[second]
    order = order[np.argsort(band << 32 | inside[order], kind="stable")]
    return order, band


@kernel
def cut_bands(entries: NodeEntries, order: Int64, band: Int64) -> None:
    """Fill *band*: neighbours whose hull is at most `WIDER` times their mean width."""
    number, size, low, high, widths = whole(-1), 0, whole(0), whole(-1), whole(0)
    run = whole(-1)
    for position in range(len(order)):
        entry = order[position]
        column = entries.start[entry] + entries.first[entry]
        begin, end = whole(entries.low[column]), whole(entries.high[column])
        width = max(1, end - begin + 1)
        hull = max(high, end) - low + 1
        if (
            entries.run[entry] != run
            or begin > high
            or size >= MOST_OF_BAND
            or hull * (size + 1) > WIDER * (widths + width)
        ):
            number += 1
            run, size, low, high, widths = entries.run[entry], 0, begin, end, whole(0)
        high, size, widths = max(high, end), size + 1, widths + width
        band[position] = number


def cut_leaves(entries: NodeEntries, order: Int64, band: Int64, axes: int) -> LeafCuts:
    """Where leaves and dictionaries are cut."""
    count = len(order)
    cuts = LeafCuts(
        np.empty(count + 1, np.int64),
        np.empty(count, np.int64),
        np.empty(count + 1, np.int64),
        *(np.empty(len(entries.axis), np.int32) for _ in range(3)),
    )
    slot_of = np.full(axes, -1, np.int64)
    leaves, dictionaries, slots = choose_cuts(
        entries, read_only(order), read_only(band), slot_of, cuts
    )
    return LeafCuts(
        cuts.leaf_start[: leaves + 1],
        cuts.leaf_dictionary[:leaves],
        cuts.slot_start[: dictionaries + 1],
        cuts.slot_axis[:slots].copy(),
        cuts.slot_base[:slots].copy(),
        cuts.slot_top[:slots].copy(),
    )


@kernel
def choose_cuts(
    entries: NodeEntries, order: Int64, band: Int64, slot_of: Int64, cuts: LeafCuts
) -> tuple[int, int, int]:
    """Fill *cuts*: how many leaves, dictionaries and slots there are."""
    leaves, dictionaries, slots, start = 0, 0, 0, 0
    while start < len(order):
        first_slot = slots
        cuts.slot_start[dictionaries] = first_slot
        stop = start
        while stop < len(order) and fits(
            entries, order[stop], slot_of, cuts, slots - first_slot, stop - start >= LANES
        ):
            slots = add_slots(entries, order[stop], slot_of, cuts, slots)
            stop += 1
        for slot in range(first_slot, slots):
            slot_of[cuts.slot_axis[slot]] = -1
        position = start
        while position < stop:
            after = position + 1
            while after < min(stop, position + LANES) and band[after] == band[position]:
                after += 1
            cuts.leaf_start[leaves], cuts.leaf_dictionary[leaves] = position, dictionaries
            leaves, position = leaves + 1, after
        dictionaries, start = dictionaries + 1, stop
    cuts.leaf_start[leaves] = len(order)
    cuts.slot_start[dictionaries] = slots
    return leaves, dictionaries, slots


@kernel_inline
def fits(
    entries: NodeEntries, entry: int, slot_of: Int64, cuts: LeafCuts, slots: int, strictly: bool
) -> bool:
    """Whether a dictionary of so many *slots* takes *entry*; *strictly*: with a byte a cell."""
    fresh = 0
    for column in range(entries.start[entry], entries.start[entry + 1]):
        slot = slot_of[entries.axis[column]]
        if slot < 0:
            fresh += 1  # an axis that is asked twice counts twice, which does no harm
        elif strictly:
            base, top = cuts.slot_base[slot], cuts.slot_top[slot]
            if entries.low[column] != LEAST:
                base = min(base, entries.low[column])
            if entries.high[column] < MOST_CELL:
                top = max(top, entries.high[column])
            if top - base >= FRAME:
                return False
    return slots + fresh <= MOST_SLOTS


@kernel_inline
def add_slots(entries: NodeEntries, entry: int, slot_of: Int64, cuts: LeafCuts, slots: int) -> int:
    """Widen the dictionary by *entry*; how many slots there are then."""
    for column in range(entries.start[entry], entries.start[entry + 1]):
        axis = entries.axis[column]
        slot = slot_of[axis]
        if slot < 0:
            slot = slots
            slots += 1
            slot_of[axis] = slot
            cuts.slot_axis[slot] = axis
            cuts.slot_base[slot], cuts.slot_top[slot] = MOST_CELL, LEAST
        if entries.low[column] != LEAST:
            cuts.slot_base[slot] = min(cuts.slot_base[slot], entries.low[column])
            cuts.slot_top[slot] = max(cuts.slot_top[slot], entries.low[column])
        if entries.high[column] < MOST_CELL:
            cuts.slot_base[slot] = min(cuts.slot_base[slot], entries.high[column])
            cuts.slot_top[slot] = max(cuts.slot_top[slot], entries.high[column])
    return slots
