"""The arrays of covering among whole subscriptions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor.covering.dominance.forest import MOST_DIMENSIONS, Forest, Limits
from stentor.covering.dominance.tree_search import Search
from stentor.covering.mixed.tokens import Extras, Tokens
from stentor.covering.mixed.trie import Trie
from stentor.encoding.columns import Float64, Int64, SubscriptionColumns, UInt8

# What `asks.state` holds: the row that is asked about, and how many questions there are.
ASKED_ROW, QUESTIONS = 0, 1
# What `needs` holds: how long the pools must be for a subscription to fit.
NEED_NODES, NEED_COORDINATES, NEED_SLOTS, NEED_TRIE = range(4)


class Walk(NamedTuple):
    """Room for one walk through the trie."""

    offered: Tokens
    asked: Tokens
    node: Int64  # (depth,)
    following: Int64  # (depth,) the next offer to try
    dims: Int64  # (depth,) dimensions so far
    point: Float64  # (MOST_DIMENSIONS,)
    other: Float64  # (MOST_DIMENSIONS,)
    state: Int64  # (1,) nodes of the trie visited


class Asks(NamedTuple):
    """Questions for the definition about one row: u, does u cover it; ~u, does it cover u."""

    question: Int64  # (room,)
    answer: UInt8  # (room,) NO, YES, or ASK while it is open
    state: Int64  # (2,)


class MixedIndex(NamedTuple):
    """Every choice of every alternative of a standing row, in the trie and in its group's tree."""

    columns: SubscriptionColumns
    kinds: UInt8  # (attributes,)
    states: UInt8  # (alternatives,) PLAIN or IMPOSSIBLE
    entry_start: Int64  # (alternatives + 1,) an entry for each choice of an alternative
    row_of: Int64  # (entries,)
    node_of: Int64  # (entries,) in the trie
    extras: Extras
    trie: Trie
    forest: Forest
    limits: Limits
    search: Search
    walk: Walk
    asks: Asks
    needs: Int64  # (4,)


def new_tokens(room: int) -> Tokens:
    """Room for the tokens of one alternative."""
    return Tokens(np.zeros(room, np.uint64), np.zeros(room, np.int64), np.zeros(room, np.int64))


def new_walk(room: int) -> Walk:
    """Room for a walk along so many tokens."""
    return Walk(
        offered=new_tokens(room),
        asked=new_tokens(room),
        node=np.zeros(room + 1, np.int64),
        following=np.zeros(room + 1, np.int64),
        dims=np.zeros(room + 1, np.int64),
        point=np.zeros(MOST_DIMENSIONS),
        other=np.zeros(MOST_DIMENSIONS),
        state=np.zeros(1, np.int64),
    )


def new_asks(room: int = 64) -> Asks:
    """Room for so many questions."""
    return Asks(np.zeros(room, np.int64), np.zeros(room, np.uint8), np.array([-1, 0]))
