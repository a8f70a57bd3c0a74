"""Algorithm 1: the leaves that a message visits, each cut once, dummy branches included.

With empty places too, and with terms that nobody asks for yet, these are the nodes in which a live
message is kept (section 4.2.4): every subscription that may come and match it is filed beneath one
of them. Beyond a number of copies it stays at the inner nodes that are still to be visited.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import kernel, kernel_inline, kernel_part
from stentor.encoding.columns import EventColumns, Float64, Int32, Int64
from stentor.index.ap_tree.descending import cell_along, cut_of
from stentor.index.ap_tree.layout import (
    FIELDS,
    KEYWORDS,
    KIND,
    LEAF,
    LINES,
    MOST_DEPTH,
    NOTHING,
    PARENT,
    PLACE,
    ROOT,
    SIZE,
    START,
    Tree,
    Vocabulary,
    X,
    Y,
)
from stentor.index.ap_tree.presence import may_be_present
from stentor.index.ap_tree.vocabulary import most_keywords, ranks_of_event

#: Where an event without a place is: in no box but those that are everywhere.
NOWHERE = np.inf


class Path(NamedTuple):
    """Scratch for one message at a time."""

    rank: Int32  # (keywords,) of the message
    node: Int32  # nodes still to be visited
    start: Int32  # and with which keyword to start there
    point: Float64  # (2,) where the message is
    way: Int32  # (MOST_DEPTH + 2,) from a node up to the root


def path_for(events: EventColumns) -> Path:
    """Scratch that each of *events* fits into."""
    return path_of(most_keywords(events))


def path_of(keywords: int) -> Path:
    """Scratch for messages of so many *keywords*."""
    depth = (MOST_DEPTH + 1) * (keywords + 2)
    return Path(
        rank=np.empty(keywords, np.int32),
        node=np.empty(depth, np.int32),
        start=np.empty(depth, np.int32),
        point=np.empty(2),
        way=np.empty(MOST_DEPTH + 2, np.int32),
    )


@kernel_inline
def point_of(events: EventColumns, event: int, attribute: int, point: Float64) -> bool:
    """Whether the event has a place; *point* gets it, or NOWHERE."""
    start, last = events.value_start[event], events.value_start[event + 1]
    stop = last
    while start < stop:
        middle = (start + stop) >> 1
        if events.attribute[middle] < attribute:
            start = middle + 1
        else:
            stop = middle
    if start < last and events.attribute[start] == attribute and events.string[start] < 0:
        point[0], point[1] = events.low[start], events.high[start]
        return True
    point[0] = point[1] = NOWHERE
    return False


def points_of(events: EventColumns, attribute: int) -> Float64:
    """Where each event is (n × 2), or NOWHERE."""
    points = np.empty((len(events.until), 2))
    fill_points(events, attribute, points.reshape(-1))
    return points


@kernel
def fill_points(events: EventColumns, attribute: int, points: Float64) -> None:
    """Fill *points* (n × 2, flat)."""
    for event in range(len(points) // 2):
        point_of(events, event, attribute, points[2 * event : 2 * event + 2])


@kernel
def visit_leaves(
    tree: Tree,
    vocabulary: Vocabulary,
    events: EventColumns,
    attribute: int,
    path: Path,
    starts: Int64,
    leaves: Int32,
    visited: Int64,
) -> int:
    """How many leaves *events* visit; those that fit are in *leaves*, by event from *starts*.

    *visited* counts the nodes.
    """
    found = 0
    point = path.point
    for event in range(len(starts) - 1):
        starts[event] = found
        keywords = ranks_of_event(events, event, vocabulary, False, path.rank)
        has_place = point_of(events, event, attribute, point)
        top = 0
        if len(tree.node) > 0:
            path.node[0], path.start[0] = ROOT, 0
            top = 1
        while top > 0:
            top -= 1
            node, first = path.node[top], path.start[top]
            visited[0] += 1
            fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
            if fields[KIND] == LEAF:
                if fields[SIZE] > 0:
                    if found < len(leaves):
                        leaves[found] = node
                    found += 1
                continue
            start, size = fields[START], fields[SIZE]
            dummy = tree.child[start + size]
            if dummy != NOTHING:
                path.node[top], path.start[top] = dummy, first
                top += 1
            if fields[KIND] == KEYWORDS:
                last = NOTHING
                for place in range(first, keywords):
                    if not may_be_present(tree.present, node, path.rank[place]):
                        continue
                    cut = cut_of(tree.bound, start, size, path.rank[place])
                    if cut != last:
                        last = cut
                        child = tree.child[cut]
                        if child != NOTHING:
                            path.node[top], path.start[top] = child, place + 1
                            top += 1
            elif has_place:
                child = tree.child[cell_at(tree, node, point[0], point[1])]
                if child != NOTHING:
                    path.node[top], path.start[top] = child, first
                    top += 1
    starts[len(starts) - 1] = found
    return found


@kernel_inline
def cell_at(tree: Tree, node: int, x: float, y: float) -> int:
    """The place of the cell of the s-node *node* that (x, y) is in."""
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    columns, lines = fields[X], fields[LINES]
    column = cell_along(tree.line, lines, columns - 1, x)
    row = cell_along(tree.line, lines + columns - 1, fields[Y] - 1, y)
    return int(fields[START] + row * columns + column)


@kernel_part
def places_of_message(
    tree: Tree,
    keywords: int,
    point: Float64,
    has_place: bool,
    most: int,
    node: int,
    first: int,
    path: Path,
    found: Int32,
    parents: Int32,
    used: int,
) -> int:
    """Where a message is kept that reaches *node* with keyword *first*: places and their parents.

    Returns how many of *found* are used then, from *used* on; those that do not fit are counted.
    """
    path.node[0], path.start[0] = node, first
    top = 1
    begun = used
    while top > 0:
        top -= 1
        node, first = path.node[top], path.start[top]
        fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
        is_enough = used - begun + top >= most
        if fields[KIND] == LEAF or is_enough:
            if used < len(found):
                found[used], parents[used] = fields[PLACE], NOTHING
            used += 1
            continue
        start, size = fields[START], fields[SIZE]
        used, top = follow(tree, node, start + size, first, path, top, found, parents, used)
        if fields[KIND] == KEYWORDS:
            last = NOTHING
            for place in range(first, keywords):
                cut = cut_of(tree.bound, start, size, path.rank[place])
                if cut != last:
                    last = cut
                    used, top = follow(tree, node, cut, place + 1, path, top, found, parents, used)
        elif has_place:
            cell = cell_at(tree, node, point[0], point[1])
            used, top = follow(tree, node, cell, first, path, top, found, parents, used)
    return used


@kernel_inline
def follow(
    tree: Tree,
    node: int,
    place: int,
    first: int,
    path: Path,
    top: int,
    found: Int32,
    parents: Int32,
    used: int,
) -> tuple[int, int]:
    """Go on to what hangs at *place* of *node*; where nothing does, the path ends there."""
    child = tree.child[place]
    if child == NOTHING:
        if used < len(found):
            found[used], parents[used] = place, node
        return used + 1, top
    path.node[top], path.start[top] = child, first
    return used, top + 1


@kernel_part
def arrival(tree: Tree, keywords: int, rank: Int32, node: int, way: Int32) -> int:
    """With which keyword a message that visits *node* starts there; NOTHING if it does not.

    Only cuts are looked at. *way* is scratch for a path.
    """
    length = 0
    above = np.int32(node)
    while above != NOTHING:
        way[length] = above
        length += 1
        above = tree.node[above * FIELDS + PARENT]
    first = 0
    for step in range(length - 1, 0, -1):
        fields = tree.node[way[step] * FIELDS : (way[step] + 1) * FIELDS]
        if fields[KIND] != KEYWORDS:
            continue
        start, size = fields[START], fields[SIZE]
        wanted = tree.node[way[step - 1] * FIELDS + PLACE]
        if wanted == start + size:
            continue
        place = first
        while place < keywords and cut_of(tree.bound, start, size, rank[place]) != wanted:
            place += 1
        if place == keywords:
            return NOTHING
        first = place + 1
    return first
