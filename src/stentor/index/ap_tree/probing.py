"""Leaves that messages visit → candidates: what a signature and a box cannot rule out."""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import EventColumns, Float64, Int32, Int64, UInt8, UInt64
from stentor.index.ap_tree.layout import (
    FIELDS,
    LIST_SIZE,
    LIST_START,
    NOTHING,
    PARENT,
    SIZE,
    START,
    Entries,
    Tree,
)
from stentor.index.ap_tree.visiting import point_of
from stentor.index.backwards import NO_FILTERS
from stentor.index.signature import event_signature

_NO_BITS = np.uint64(0)


@kernel
def probe_leaves(
    tree: Tree,
    events: EventColumns,
    attribute: int,
    starts: Int64,
    leaves: Int32,
    point: Float64,
    found_event: Int64,
    found_alternative: Int64,
) -> int:
    """The number of candidates; those that do not fit are only counted. *point* is scratch."""
    found = 0
    for event in range(len(starts) - 1):
        point_of(events, event, attribute, point)
        x, y = point[0], point[1]
        lacking = ~event_signature(events, event, NO_FILTERS)
        for leaf in leaves[starts[event] : starts[event + 1]]:
            start, size = tree.node[leaf * FIELDS + START], tree.node[leaf * FIELDS + SIZE]
            signature = tree.signature[start : start + size]
            box = tree.box[4 * start : 4 * (start + size)]
            alternative = tree.alternative[start : start + size]
            for slot in range(size):
                if signature[slot] & lacking != _NO_BITS:
                    continue
                if (
                    (box[4 * slot] <= x)
                    & (box[4 * slot + 1] <= y)
                    & (box[4 * slot + 2] >= x)
                    & (box[4 * slot + 3] >= y)
                ):
                    if found < len(found_event):
                        found_event[found] = event
                        found_alternative[found] = alternative[slot]
                    found += 1
    return found


@kernel
def probe_messages(
    tree: Tree,
    entries: Entries,
    owner: Int64,
    starts: Int64,
    leaves: Int32,
    hidden: UInt8,
    signature: UInt64,
    point: Float64,
    found_owner: Int64,
    found_message: Int64,
) -> int:
    """Live messages in the lists of *leaves* and above that each entry may want.

    The number of pairs of the entry's *owner* and a message; those that do not fit are counted.
    A list above several leaves is looked at for each: a pair may come more than once.
    """
    found = 0
    for entry in range(len(owner)):
        needed = entries.signature[entry]
        box = entries.box[4 * entry : 4 * entry + 4]
        for leaf in leaves[starts[entry] : starts[entry + 1]]:
            node = np.int32(leaf)
            while node != NOTHING:
                first = tree.node[node * FIELDS + LIST_START]
                for message in tree.listed[first : first + tree.node[node * FIELDS + LIST_SIZE]]:
                    x, y = point[2 * message], point[2 * message + 1]
                    if (
                        (needed & ~signature[message] == _NO_BITS)
                        & (box[0] <= x)
                        & (box[1] <= y)
                        & (box[2] >= x)
                        & (box[3] >= y)
                        & (hidden[message] == 0)
                    ):
                        if found < len(found_owner):
                            found_owner[found] = owner[entry]
                            found_message[found] = message
                        found += 1
                node = tree.node[node * FIELDS + PARENT]
    return found
