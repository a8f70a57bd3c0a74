"""Removal: entries out of the leaves that hold them; the leaves of entries."""

from __future__ import annotations

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import Int32, Int64
from stentor.index.ap_tree.insert import ApInsertScratch, add_to_counts, branches_of_entry
from stentor.index.ap_tree.layout import (
    COPIES,
    FIELDS,
    NONE,
    ROOT,
    SIZE,
    START,
    ApEntries,
    ApKernelSettings,
    ApTreeArrays,
)


@kernel_inline
def drop_slot(tree: ApTreeArrays, node: int, slot: int) -> None:
    """Remove the entry in *slot* from the leaf *node*: the last one moves to *slot*."""
    fields = tree.node[node * FIELDS : (node + 1) * FIELDS]
    last = fields[START] + fields[SIZE] - 1
    tree.signature[slot] = tree.signature[last]
    for side in range(4):
        tree.box[4 * slot + side] = tree.box[4 * last + side]
    tree.alternative[slot] = tree.alternative[last]
    tree.clause[slot] = tree.clause[last]
    fields[SIZE] -= 1


@kernel
def remove_entries(
    tree: ApTreeArrays,
    entries: ApEntries,
    first: int,
    policy: ApKernelSettings,
    total: int,
    walk: ApInsertScratch,
    used: Int64,
) -> int:
    """Remove entries from their leaves from *first* on; where it had to stop."""
    for entry in range(first, len(entries.alternative)):
        box = entries.box[4 * entry : 4 * entry + 4]
        found = branches_of_entry(tree, entries, entry, box, ROOT, False, walk)
        if used[0] + 2 * found + 64 > len(walk.dirty):
            return entry
        for number in range(found):
            if walk.parent[number] != NONE:
                continue
            leaf = tree.child[walk.branch[number]]
            slot = slot_in(tree, leaf, entries.alternative[entry], entries.clause[entry])
            if slot != NONE:
                drop_slot(tree, leaf, slot)
                tree.counter[COPIES] -= 1
                add_to_counts(tree, leaf, -1, policy, total, walk.dirty, used)
    return len(entries.alternative)


@kernel
def leaves_of_entries(
    tree: ApTreeArrays, entries: ApEntries, walk: ApInsertScratch, starts: Int64, nodes: Int32
) -> int:
    """The leaves that each entry leads to, from *starts*; where there is none, the node above.

    How many there are; those that do not fit are only counted.
    """
    used = 0
    for entry in range(len(entries.alternative)):
        starts[entry] = used
        box = entries.box[4 * entry : 4 * entry + 4]
        found = branches_of_entry(tree, entries, entry, box, ROOT, False, walk)
        for number in range(found):
            node = tree.child[walk.branch[number]]
            if used < len(nodes):
                nodes[used] = walk.parent[number] if node == NONE else node
            used += 1
    starts[len(entries.alternative)] = used
    return used


@kernel_inline
def slot_in(tree: ApTreeArrays, leaf: int, alternative: int, clause: int) -> int:
    """The slot of an entry in *leaf*, or NONE."""
    start = tree.node[leaf * FIELDS + START]
    for slot in range(start, start + tree.node[leaf * FIELDS + SIZE]):
        if tree.alternative[slot] == alternative and tree.clause[slot] == clause:
            return int(slot)
    return NONE
