"""The R^t-Tree: an R-tree of search ranges, whose nodes know the tokens beneath them.

A message visits a node whose rectangle holds it and that has one of its keywords beneath; an entry
stands under its rarest keyword, as in the R^t++-Tree. Packed by sorting and tiling; what comes
later waits in a list until it is a tenth of all, and then everything is packed anew.

Paper: Li, Wang, Wang, Feng: Location-aware publish/subscribe (2013), as compared with in AP-Tree,
section 5.1.1, with its authors' program, which is not public.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel
from stentor.encoding.columns import EventColumns, Float64, Int64, UInt8, UInt64, event_count
from stentor.index.live import SIGN_ALL_ATTRIBUTES, signatures_of
from stentor_lab.baselines.entry_lists import Float32, mixed, outwards
from stentor_lab.baselines.rival import Rival
from stentor_lab.baselines.spatial_keys import (
    ANY,
    LEVELS,
    KeyChoice,
    boxes_of,
    cells_of_event,
    keyword_keys,
)
from stentor_lab.baselines.spatial_rival import SpatialLayout, SpatialRival, sign_alternatives

#: Children of a node, and bits of the token filter for each entry and level.
FANOUT, BITS = 32, 16
#: The part that may wait before all is packed anew.
WAITING: Final = 0.1


class PackedNodes(NamedTuple):
    """Entries in the order of leaves, then levels of nodes above them, the root last."""

    item: Int64  # (entries,)
    sign: UInt64  # (entries,)
    box: Float32  # (4 × (entries + nodes),) west, south, east, north
    level_start: Int64  # (levels + 1,) positions in `box`; the first level are the entries
    token: UInt8  # a power of two: a Bloom filter over (node, keyword)


class RtTree(Rival):
    """An R-tree with tokens."""

    name = "rt_tree"

    def __init__(self) -> None:
        super().__init__()
        self._choose(np.zeros(0, np.int64))

    def _choose(self, alternatives: Int64) -> None:
        self._nodes: PackedNodes
        self._waiting = np.zeros(0, np.int64)
        self._packed = np.zeros(0, np.int64)
        measuring = _Measuring()
        measuring.history, measuring.subscriptions = self.history, self.subscriptions
        self._choice = measuring.measured(alternatives)
        self._pack()

    def _insert(self, alternatives: Int64) -> None:
        self._waiting = np.concatenate((self._waiting, alternatives))
        if len(self._waiting) > WAITING * len(self._packed):
            self._packed = np.concatenate((self._packed, self._waiting))
            self._waiting = self._waiting[:0]
            self._pack()

    def _remove(self, alternatives: Int64) -> None:
        self._waiting = self._waiting[~np.isin(self._waiting, alternatives)]
        if np.isin(self._packed, alternatives).any():
            gone = np.isin(self._nodes.item, alternatives)
            self._packed = self._packed[~np.isin(self._packed, alternatives)]
            box = self._nodes.box.copy()
            box[: 4 * len(gone)].reshape(-1, 4)[gone] = (np.inf, np.inf, -np.inf, -np.inf)
            sign = self._nodes.sign.copy()
            sign[gone] = ~np.uint64(0)  # nothing has every bit
            self._nodes = self._nodes._replace(box=box, sign=sign)

    def _pack(self) -> None:
        columns, alternatives = self.subscriptions.columns, self._packed
        box = np.empty(4 * len(alternatives))
        boxes_of(columns, alternatives, int(self._choice.attribute[0]), box)
        sign = np.empty(len(alternatives), np.uint64)
        sign_alternatives(columns, alternatives, SIGN_ALL_ATTRIBUTES, sign)
        room = 4 * len(alternatives) + 16
        of, keyword = np.empty(room, np.int64), np.empty(room, np.uint64)
        found = keyword_keys(columns, alternatives, self._choice, of, keyword)
        if found > room:
            of, keyword = np.empty(found, np.int64), np.empty(found, np.uint64)
            keyword_keys(columns, alternatives, self._choice, of, keyword)
        of, keyword = of[:found], keyword[:found]
        sides = box.reshape(-1, 4)[of]
        order = _tiled(sides)
        self._nodes = _levels(
            sides[order], keyword[order], alternatives[of[order]], sign[of[order]]
        )

    def _find(self, events: EventColumns, event: Int64, alternative: Int64) -> int:
        return self._searched(events, event, alternative)[0]

    def _searched(self, events: EventColumns, event: Int64, alternative: Int64) -> tuple[int, int]:
        looked = np.zeros(1, np.int64)
        depth = FANOUT * len(self._nodes.level_start) + 1
        found = search_nodes(
            self._nodes,
            self._choice,
            self._waiting,
            events,
            signatures_of(events),
            (np.empty(LEVELS + 1, np.uint64), np.empty(2)),
            np.empty(2 * depth, np.int64),
            looked,
            event,
            alternative,
        )
        return found, int(looked[0])

    def stats(self) -> dict[str, Any]:
        inherited = super().stats()
        beside = sum(array.nbytes for array in self._nodes)
        return {**inherited, "bytes": inherited["bytes"] + beside}

    def counted_work(self, events: EventColumns) -> dict[str, float]:
        nothing = np.zeros(0, np.int64)
        looked = self._searched(events, nothing, nothing)[1]
        return {
            **super().counted_work(events),
            "entries/event": looked / max(1, event_count(events)),
        }


class _Measuring(SpatialRival):
    """What the spatial-keyword rivals measure, for this one too."""

    name = "measuring"
    layout = SpatialLayout(keywords_first=False, grid=1)

    def measured(self, alternatives: Int64) -> KeyChoice:
        """The location's attribute and how frequent terms are."""
        return self._measured(self.subscriptions.columns, alternatives)


def _tiled(sides: Float64) -> Int64:
    """An order in which neighbours lie near: sorted by x, cut into slices, each sorted by y."""
    finite = np.nan_to_num(sides, posinf=1e300, neginf=-1e300)
    x, y = finite[:, 0] / 2 + finite[:, 2] / 2, finite[:, 1] / 2 + finite[:, 3] / 2
    leaves = max(1, -(-len(sides) // FANOUT))
    slices = max(1, int(np.ceil(np.sqrt(leaves))))
    rank = np.empty(len(sides), np.int64)
    rank[np.argsort(x, kind="stable")] = np.arange(len(sides))
    part = rank * slices // max(1, len(sides))
    return np.lexsort((y, part))


def _levels(sides: Float64, keyword: UInt64, item: Int64, sign: UInt64) -> PackedNodes:
    """The nodes above entries, FANOUT by FANOUT, with the tokens of each."""
    boxes, starts = [sides], [0, len(sides)]
    while len(boxes[-1]) > 1:
        below = boxes[-1]
        cut = np.arange(0, len(below), FANOUT)
        least = np.minimum.reduceat(below[:, :2], cut)
        most = np.maximum.reduceat(below[:, 2:], cut)
        boxes.append(np.concatenate((least, most), axis=1))
        starts.append(starts[-1] + len(cut))
    every = np.concatenate(boxes)
    least32, most32 = outwards(every[:, :2], every[:, 2:])
    levels = len(boxes) - 1
    size = 1 << max(10, (BITS * len(sides) * max(1, levels)).bit_length() - 3)
    token = np.zeros(size, np.uint8)
    level_start = np.array(starts, np.int64)
    write_tokens(keyword, level_start, token)
    box = np.concatenate((least32, most32), axis=1).reshape(-1)
    return PackedNodes(
        np.ascontiguousarray(item), np.ascontiguousarray(sign), box, level_start, token
    )


@inner_kernel
def token_bit(node: int, keyword: np.uint64, size: int) -> int:
    """The bit of a keyword beneath a node."""
    return int(np.int64(mixed(keyword, np.uint64(node)) >> np.uint64(20)) & (8 * size - 1))


@kernel
def write_tokens(keyword: UInt64, level_start: Int64, token: UInt8) -> None:
    """Set the bit of each keyword in all nodes above its entry."""
    for entry in range(len(keyword)):
        position = entry
        for level in range(1, len(level_start) - 1):
            position //= FANOUT
            bit = token_bit(level_start[level] + position, keyword[entry], len(token))
            token[bit >> 3] |= np.uint8(1 << (bit & 7))


@inner_kernel
def has_token(nodes: PackedNodes, node: int, events: EventColumns, one: int) -> bool:
    """Whether a keyword of the event, or none, is needed beneath *node*."""
    bit = token_bit(node, ANY, len(nodes.token))
    if nodes.token[bit >> 3] & np.uint8(1 << (bit & 7)):
        return True
    for term in range(events.term_start[one], events.term_start[one + 1]):
        bit = token_bit(node, events.term_hash[term], len(nodes.token))
        if nodes.token[bit >> 3] & np.uint8(1 << (bit & 7)):
            return True
    return False


@kernel
def search_nodes(
    nodes: PackedNodes,
    choice: KeyChoice,
    waiting: Int64,
    events: EventColumns,
    signature: UInt64,
    place: tuple[UInt64, Float64],
    stack: Int64,
    looked: Int64,
    event: Int64,
    alternative: Int64,
) -> int:
    """Pairs that may match; those that do not fit are only counted."""
    found, box = 0, nodes.box
    top = len(nodes.level_start) - 2
    cell, at = place
    for one in range(len(signature)):
        cells_of_event(events, one, choice, cell, at)
        lacking = ~signature[one]
        for position in range(len(waiting)):
            if found < len(event):
                event[found], alternative[found] = one, waiting[position]
            found += 1
        depth = 0
        if nodes.level_start[1] > 0:
            stack[0], stack[1], depth = top, 0, 1
        while depth > 0:
            depth -= 1
            level, position = stack[2 * depth], stack[2 * depth + 1]
            node = nodes.level_start[level] + position
            looked[0] += 1
            if at[0] < box[4 * node] or at[1] < box[4 * node + 1]:
                continue
            if at[0] > box[4 * node + 2] or at[1] > box[4 * node + 3]:
                continue
            if level == 0:
                if nodes.sign[position] & lacking == np.uint64(0):
                    if found < len(event):
                        event[found], alternative[found] = one, nodes.item[position]
                    found += 1
                continue
            if not has_token(nodes, node, events, one):
                continue
            below = nodes.level_start[level] - nodes.level_start[level - 1]
            for child in range(position * FANOUT, min(below, (position + 1) * FANOUT)):
                stack[2 * depth], stack[2 * depth + 1] = level - 1, child
                depth += 1
    return found
