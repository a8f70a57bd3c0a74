"""Live messages in the tree: filed where matching led them, found by what comes or moves there.

A message is kept in the leaves that it visits, also in those that hold nothing yet (they are made
for it), so that every subscription which may come and match it is filed beside it.
"""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import EventColumns, Int32, UInt8
from stentor.index.ap_tree.descending import make_node
from stentor.index.ap_tree.layout import (
    FIELDS,
    FREE,
    KIND,
    LIST_ROOM,
    LIST_SIZE,
    LIST_START,
    LISTED,
    NODES,
    NOTHING,
    ROOT,
    Tree,
    Vocabulary,
)
from stentor.index.ap_tree.pools import add_listed
from stentor.index.ap_tree.visiting import Path, arrival, places_of_message, point_of
from stentor.index.ap_tree.vocabulary import ranks_of_event


@kernel
def file_messages(
    tree: Tree,
    vocabulary: Vocabulary,
    events: EventColumns,
    rows: Int32,
    first: int,
    node: int,
    attribute: int,
    most: int,
    path: Path,
    place: Int32,
    parent: Int32,
) -> int:
    """Keep the messages *rows* from *first* on beneath *node*; the first without room.

    A message that does not come to *node* is not kept there. *place* and *parent* are scratch.
    """
    for number in range(first, len(rows)):
        message = rows[number]
        keywords = ranks_of_event(events, message, vocabulary, True, path.rank)
        has_place = point_of(events, message, attribute, path.point)
        start = arrival(tree, keywords, path.rank, node, path.way)
        if start == NOTHING:
            continue
        used = places_of_message(
            tree,
            keywords,
            path.point,
            has_place,
            most,
            node,
            start,
            path,
            place,
            parent,
            0,
        )
        room = 0
        if used <= len(place):
            for one in range(used):
                if parent[one] == NOTHING:
                    kept = tree.child[place[one]]
                    size = tree.node[kept * FIELDS + LIST_SIZE]
                    if size == tree.node[kept * FIELDS + LIST_ROOM]:
                        room += 2 * size + 4
                else:
                    room += 4
        if (
            used > len(place)
            or (tree.counter[NODES] + used) * FIELDS > len(tree.node)
            or tree.counter[LISTED] + room > len(tree.listed)
        ):
            return number
        for one in range(used):
            if parent[one] != NOTHING:
                make_node(tree, place[one], parent[one])
            add_listed(tree, tree.child[place[one]], message)
    return len(rows)


def places_of_live(
    tree: Tree,
    vocabulary: Vocabulary,
    events: EventColumns,
    message: int,
    attribute: int,
    path: Path,
) -> list[tuple[int, int]]:
    """All places of *message*, and the node above where nothing hangs there: for checks."""
    place = np.empty(len(tree.child) + 1, np.int32)
    parent = np.empty_like(place)
    used = find_places(tree, vocabulary, events, message, attribute, path, place, parent)
    return list(zip(place[:used].tolist(), parent[:used].tolist(), strict=True))


@kernel
def find_places(
    tree: Tree,
    vocabulary: Vocabulary,
    events: EventColumns,
    message: int,
    attribute: int,
    path: Path,
    place: Int32,
    parent: Int32,
) -> int:
    """How many of *place* and *parent* are filled for *message*, however many copies that are."""
    keywords = ranks_of_event(events, message, vocabulary, True, path.rank)
    has_place = point_of(events, message, attribute, path.point)
    most = len(tree.child) + 1
    return places_of_message(
        tree, keywords, path.point, has_place, most, ROOT, 0, path, place, parent, 0
    )


@kernel
def forget_hidden(tree: Tree, hidden: UInt8) -> None:
    """Drop the messages that are *hidden* from all lists."""
    for node in range(tree.counter[NODES]):
        fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
        if fields[KIND] == FREE:
            continue
        start, kept = fields[LIST_START], 0
        for place in range(start, start + fields[LIST_SIZE]):
            message = tree.listed[place]
            if hidden[message] == 0:
                tree.listed[start + kept] = message
                kept += 1
        fields[LIST_SIZE] = kept
