"""Everything at once: axes, entries in order, leaves, and inner nodes above them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stentor.encoding.columns import (
    Int64,
    SubscriptionColumns,
    all_read_only,
    read_only,
)
from stentor.index.packed.lists.layout import ListAxes
from stentor.index.packed.nodes.entries import NodeEntries, entries_of
from stentor.index.packed.nodes.layout import (
    CLASSES,
    COLUMN_BYTES,
    FIELDS,
    NO_ROOT,
    PADDING,
    NodeArrays,
)
from stentor.index.packed.nodes.order import LeafCuts, cut_leaves, order_of, scores_of_entries
from stentor.index.packed.nodes.pack import (
    HULLS,
    NodeHulls,
    frame_slots,
    groups_of,
    head_leaves,
    pack_leaves,
    pack_level,
)


class NodeTree(NamedTuple):
    """All arrays of nodes."""

    axes: ListAxes
    nodes: NodeArrays


class Level(NamedTuple):
    """Nodes of the same height: the first, and what those above must know."""

    start: int
    hulls: NodeHulls


def build_nodes(columns: SubscriptionColumns, alternatives: Int64) -> NodeTree:
    """The nodes of *alternatives*, read-only. Cost: about 2 µs each, and two sorts."""
    alternatives = read_only(np.ascontiguousarray(alternatives, np.int64))
    entries, axes = entries_of(columns, alternatives)
    width = len(axes.is_exact)
    scores = scores_of_entries(entries, width)
    order, band = order_of(entries, scores)
    cuts = cut_leaves(entries, order, band, width)
    plan = _levels_above(entries, order, cuts)
    nodes = _empty_nodes(entries, cuts, plan, width)
    frame_slots(cuts, axes, nodes.slot_base, nodes.slot_shift, nodes.is_inexact)
    nodes.slot_axis[: len(cuts.slot_axis)] = cuts.slot_axis
    used = head_leaves(entries, order, cuts, nodes)
    inner = sum(int(first[-1]) for first in plan)
    nodes = nodes._replace(
        lane=np.zeros(used + COLUMN_BYTES * HULLS * inner + PADDING, np.uint8),
        alternative=alternatives[order],
        heaviest=scores.heaviest,
        other=np.array([entries.other.max(initial=0.0)]),
    )
    leaves = len(cuts.leaf_dictionary)
    level = Level(0, _hulls(leaves))
    slot_of = np.zeros(width, np.int64)
    pack_leaves(
        entries,
        read_only(order),
        type(scores)(*(read_only(one) for one in scores)),
        slot_of,
        nodes,
        level.hulls,
    )
    _pack_levels(plan, level, leaves, len(cuts.slot_start) - 1, used, nodes)
    return NodeTree(axes, all_read_only(nodes))


def _levels_above(entries: NodeEntries, order: Int64, cuts: LeafCuts) -> list[Int64]:
    """Of each level above leaves where its groups of nodes below begin, and the end.

    A run that is one node already is over: of the nodes below only those of others are counted.
    """
    run, levels = entries.run[order[cuts.leaf_start[:-1]]], []
    while len(run := run[_has_neighbour(run)]):
        first = groups_of(run)
        levels.append(first)
        run = run[first[:-1]]
    return levels


def _has_neighbour(run: Int64) -> Any:
    """Which nodes are of a *run* that others are of, too."""
    same = run[1:] == run[:-1]
    return np.append(same, False) | np.append(False, same)


def _empty_nodes(entries: NodeEntries, cuts: LeafCuts, plan: list[Int64], width: int) -> NodeArrays:
    """Arrays for the leaves of *cuts* and the levels of *plan*."""
    inner = sum(len(first) - 1 for first in plan)
    count, slots = len(cuts.leaf_dictionary) + inner, len(cuts.slot_axis) + HULLS * inner
    after = cuts.slot_start[-1] + HULLS * np.arange(1, inner + 1)
    return NodeArrays(
        np.full(width * CLASSES, NO_ROOT, np.int64),
        np.zeros(count * FIELDS, np.int64),
        np.zeros(0, np.uint8),
        np.zeros(0, np.int64),
        np.concatenate([cuts.slot_start, after]),
        np.zeros(slots, np.int32),
        np.zeros(slots, np.int32),
        np.zeros(slots, np.uint8),
        np.zeros(slots, np.uint8),
        np.zeros(count + PADDING, np.float32),
        np.zeros(count + PADDING, np.float32),
        np.zeros(0),
        np.zeros(0),
    )


def _hulls(count: int) -> NodeHulls:
    return NodeHulls(
        np.empty(count, np.int64), *(np.empty(HULLS * count, np.int32) for _ in range(3))
    )


def _pack_levels(
    plan: list[Int64], level: Level, node: int, dictionary: int, lanes: int, nodes: NodeArrays
) -> None:
    """Write inner nodes from *node* on, level by level, and the roots.

    The nodes of a run that is one node already are not among those below the next level. They lie
    between others, so that each group's nodes below are still neighbours: groups are of one run.
    """
    height = 0
    while True:
        start, hulls = level
        inside = np.flatnonzero(_has_neighbour(hulls.run))
        alone = np.setdiff1d(np.arange(len(hulls.run)), inside, assume_unique=True)
        nodes.root[hulls.run[alone]] = start + alone
        if not len(inside):
            return
        first = plan[height]
        height += 1
        above = _hulls(len(first) - 1)
        lanes = pack_level(
            read_only(inside[first[:-1]]),  # groups count the nodes that are left
            read_only(np.diff(first)),
            start,
            node,
            dictionary,
            lanes,
            height,
            nodes,
            hulls,
            above,
        )
        dictionary += len(first) - 1
        level = Level(node, above)
        node += len(first) - 1
