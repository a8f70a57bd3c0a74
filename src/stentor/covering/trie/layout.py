"""The arrays of covering among whole subscriptions, and the nodes that they hold.

A trie of token sets: one node for each prefix of a sorted set of tokens that an entry wants.

    (node, token) ─hash─▶ child          open addressing, linear probing
    node ─▶ the root of its group's k-d tree, how many entries are below it

The subsets of an offer that exist are found by walking down along its own tokens only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.covering.kd_tree.layout import MOST_DIMENSIONS, BucketLimits, KdTrees
from stentor.covering.kd_tree.match import KdMatchScratch
from stentor.covering.trie.tokens import Extras, Tokens
from stentor.encoding.columns import Float64, Int64, SubscriptionColumns, UInt8, UInt64
from stentor.encoding.spread import first_slot, spread_over
from stentor.index.arena import extended

# What `questions.state` holds: the row that they are about, and how many there are.
QUESTION_ROW, QUESTIONS = 0, 1
# What `needs` holds: how long the arrays must be for a subscription to fit.
NEED_NODES, NEED_COORDINATES, NEED_SLOTS, NEED_TRIE = range(4)


class TrieScratch(NamedTuple):
    """Scratch of one walk through the trie."""

    offered: Tokens
    wanted: Tokens
    node: Int64  # (depth,)
    following: Int64  # (depth,) the next offer to try
    dims: Int64  # (depth,) dimensions so far
    point: Float64  # (MOST_DIMENSIONS,)
    other: Float64  # (MOST_DIMENSIONS,)
    state: Int64  # (1,) nodes of the trie visited


class OpenQuestions(NamedTuple):
    """Questions for the definition about one row: u, does u cover it; ~u, does it cover u."""

    question: Int64  # (capacity,)
    answer: UInt8  # (capacity,) NOT_COVERED, COVERED, or UNDECIDED while it is open
    state: Int64  # (2,)


class TrieArrays(NamedTuple):
    """Every choice of every alternative of a current row, in the trie and in its group's tree."""

    columns: SubscriptionColumns
    kinds: UInt8  # (attributes,)
    states: UInt8  # (alternatives,) PLAIN or IMPOSSIBLE
    entry_start: Int64  # (alternatives + 1,) an entry for each choice of an alternative
    row_of: Int64  # (entries,)
    node_of: Int64  # (entries,) in the trie
    extras: Extras
    trie: Trie
    forest: KdTrees
    limits: BucketLimits
    matching: KdMatchScratch
    walk: TrieScratch
    questions: OpenQuestions
    needs: Int64  # (4,)


def new_tokens(capacity: int) -> Tokens:
    """Scratch for so many tokens of one alternative."""
    return Tokens(
        np.zeros(capacity, np.uint64), np.zeros(capacity, np.int64), np.zeros(capacity, np.int64)
    )


def trie_scratch(capacity: int) -> TrieScratch:
    """Scratch of a walk along so many tokens."""
    return TrieScratch(
        offered=new_tokens(capacity),
        wanted=new_tokens(capacity),
        node=np.zeros(capacity + 1, np.int64),
        following=np.zeros(capacity + 1, np.int64),
        dims=np.zeros(capacity + 1, np.int64),
        point=np.zeros(MOST_DIMENSIONS),
        other=np.zeros(MOST_DIMENSIONS),
        state=np.zeros(1, np.int64),
    )


def open_questions(capacity: int = 64) -> OpenQuestions:
    """No questions, with capacity for so many."""
    return OpenQuestions(
        np.zeros(capacity, np.int64), np.zeros(capacity, np.uint8), np.array([-1, 0])
    )


NO_CHILD, NO_TREE = -1, -1
ROOT = 0


class Trie(NamedTuple):
    """The nodes, and the table of children."""

    tree: Int64  # (nodes,) root in the forest, or NO_TREE
    dims: Int64  # (nodes,) dimensions of that tree
    parent: Int64  # (nodes,)
    below: Int64  # (nodes,) entries at the node and below it
    slot_node: Int64  # (slots,) a power of two; NO_CHILD: free
    slot_token: UInt64  # (slots,)
    slot_child: Int64  # (slots,)
    spread: UInt64  # where the look-up of a pair starts
    used: Int64  # (1,) nodes


def new_trie(nodes: int = 64) -> Trie:
    """A trie of the root alone."""
    return Trie(
        tree=np.full(nodes, NO_TREE),
        dims=np.zeros(nodes, np.int64),
        parent=np.full(nodes, NO_CHILD),
        below=np.zeros(nodes, np.int64),
        slot_node=np.full(4 * nodes, NO_CHILD),
        slot_token=np.zeros(4 * nodes, np.uint64),
        slot_child=np.zeros(4 * nodes, np.int64),
        spread=spread_over(4 * nodes),
        used=np.ones(1, np.int64),
    )


def grow_trie(trie: Trie, more: int) -> Trie:
    """*trie* with capacity for *more* nodes; its table is at most half full."""
    nodes = int(trie.used[0]) + more
    grown = trie._replace(
        tree=extended(trie.tree, nodes, NO_TREE),
        dims=extended(trie.dims, nodes),
        parent=extended(trie.parent, nodes, NO_CHILD),
        below=extended(trie.below, nodes),
    )
    slots = len(trie.slot_node)
    while slots < 2 * len(grown.tree):
        slots *= 2
    if slots == len(trie.slot_node):
        return grown
    grown = grown._replace(
        slot_node=np.full(slots, NO_CHILD),
        slot_token=np.zeros(slots, np.uint64),
        slot_child=np.zeros(slots, np.int64),
        spread=spread_over(slots),
    )
    rehash(trie, grown)
    return grown


@kernel
def rehash(trie: Trie, grown: Trie) -> None:
    """Insert all children of *trie* into the larger table of *grown*."""
    for slot in range(len(trie.slot_node)):
        if trie.slot_node[slot] != NO_CHILD:
            position = slot_of(grown, trie.slot_node[slot], trie.slot_token[slot])
            grown.slot_node[position] = trie.slot_node[slot]
            grown.slot_token[position] = trie.slot_token[slot]
            grown.slot_child[position] = trie.slot_child[slot]


@kernel_inline
def slot_of(trie: Trie, node: int, token: np.uint64) -> int:
    """The slot of the child of *node* by *token*, or the free slot where it would be."""
    last = len(trie.slot_node) - 1
    slot = first_slot(trie.spread, token ^ np.uint64(node) * np.uint64(0x9E3779B97F4A7C15))
    while trie.slot_node[slot] != NO_CHILD and (
        trie.slot_node[slot] != node or trie.slot_token[slot] != token
    ):
        slot = (slot + 1) & last
    return int(slot)


@kernel_inline
def child_of(trie: Trie, node: int, token: np.uint64) -> int:
    """The child of *node* by *token*, or NO_CHILD."""
    slot = slot_of(trie, node, token)
    return NO_CHILD if trie.slot_node[slot] == NO_CHILD else trie.slot_child[slot]


@inner_kernel
def node_for(trie: Trie, token: UInt64, count: int) -> int:
    """The node at the end of the path of the first *count* tokens, made where it is not there."""
    node = ROOT
    for position in range(count):
        slot = slot_of(trie, node, token[position])
        if trie.slot_node[slot] == NO_CHILD:
            fresh = trie.used[0]
            trie.used[0] += 1
            trie.slot_node[slot] = node
            trie.slot_token[slot] = token[position]
            trie.slot_child[slot] = fresh
            trie.parent[fresh] = node
            trie.tree[fresh] = NO_TREE
            trie.below[fresh] = 0
        node = trie.slot_child[slot]
    return node


@inner_kernel
def count_entry(trie: Trie, node: int, change: int) -> None:
    """Count *change* more entries at *node*."""
    while node != NO_CHILD:
        trie.below[node] += change
        node = trie.parent[node]
