"""The arrays of covering among whole subscriptions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor.covering.kd_tree.layout import MOST_DIMENSIONS, BucketLimits, KdTrees
from stentor.covering.kd_tree.match import KdSearchScratch
from stentor.covering.trie.nodes import Trie
from stentor.covering.trie.tokens import Extras, Tokens
from stentor.encoding.columns import Float64, Int64, SubscriptionColumns, UInt8

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
    search: KdSearchScratch
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
