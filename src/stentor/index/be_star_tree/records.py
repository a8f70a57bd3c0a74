"""Alternatives as records: their one-dimensional boxes (Table I) and weights, inline in a leaf.

A box is what an alternative's predicates on one axis of one attribute leave possible: of numbers
the interval, of strings their prefixes, of a place its surrounding box. Predicates that bound
nothing still need their attribute to be there: a box without ends. Only `IS NULL` gives no box,
nor does a negated region or one that crosses 180°.
"""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import kernel_inline, kernel_part
from stentor.encoding.columns import (
    BOX,
    KIND_MASK,
    MISSING,
    NEGATED,
    SPAN,
    SubscriptionColumns,
)
from stentor.index.be_star_tree.layout import (
    AXES,
    COUNT_MASK,
    COVERED,
    DESK,
    DIMENSIONS,
    NONE,
    OTHER,
    RECORD_BOX,
    RECORD_WORDS,
    SLOTS,
    SUMMARY,
    TOTAL,
    VALUE,
    Desk,
    Reading,
    Tree,
    X,
    Y,
)

#: A float32 is at most this share below the double that it was rounded from.
_ROUNDING = 2.0**-23


@kernel_inline
def at_least(value: float) -> np.float32:
    """The float32 of *value*, rounded up."""
    rounded = np.float32(value)
    if np.float64(rounded) < value:
        rounded = np.float32(value * (1.0 + _ROUNDING))
        if np.float64(rounded) < value:  # below what a float32 tells from 0
            rounded = np.float32(value + 2e-45)
    return rounded


@kernel_inline
def alternative_of(tree: Tree | Reading, record: int) -> int:
    """The alternative that *record* stands for."""
    return tree.code[2 * record]


@kernel_inline
def box_count(tree: Tree | Reading, record: int) -> int:
    """How many boxes *record* has."""
    return tree.code[2 * record + 1] & COUNT_MASK


@kernel_inline
def words_of(tree: Tree | Reading, record: int) -> int:
    """The words of *record*."""
    return RECORD_WORDS + RECORD_BOX * box_count(tree, record)


@kernel_inline
def box_on(tree: Tree | Reading, record: int, dimension: int) -> int:
    """The place of the box of *record* on *dimension*, or NONE."""
    box = record + RECORD_WORDS
    for _ in range(box_count(tree, record)):
        if tree.code[2 * box] == dimension:
            return box
        box += RECORD_BOX
    return NONE


@kernel_part
def write_record(columns: SubscriptionColumns, alternative: int, tree: Tree, width: int) -> None:
    """Put the record of *alternative*, with at most *width* boxes, on the desk."""
    tree.code[2 * DESK] = alternative
    tree.code[2 * DESK + 1] = 0
    exact, total, other = True, 0.0, 0.0
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        kind, weight = columns.kind[predicate], columns.weight[predicate]
        attribute = columns.attribute[predicate]
        total += weight
        added = False
        if kind & KIND_MASK >= BOX:
            exact = False
            pair = columns.operand_start[predicate]
            west, east = columns.pair_low[pair], columns.pair_high[pair]
            if kind < NEGATED and west <= east:
                south, north = columns.pair_low[pair + 1], columns.pair_high[pair + 1]
                added = add_box(tree, attribute, X, west, east, weight, width)
                add_box(tree, attribute, Y, south, north, 0.0, width)
        elif kind == MISSING:
            exact = False
        else:
            exact = exact and kind == SPAN
            low, high = columns.low[predicate], columns.high[predicate]
            before = box_count(tree, DESK)
            added = add_box(tree, attribute, VALUE, low, high, weight, width)
            exact = exact and box_count(tree, DESK) > before
        if not added:
            other += weight
    tree.half[2 * DESK + 2] = at_least(total)
    tree.half[2 * DESK + 3] = at_least(other)
    if exact:
        tree.code[2 * DESK + 1] |= COVERED


@kernel_part
def add_box(
    tree: Tree, attribute: int, axis: int, low: float, high: float, weight: float, width: int
) -> bool:
    """Add a box to the record on the desk, or intersect it with the one that is there.

    False where it has *width* boxes already, and nothing was done.
    """
    key = AXES * attribute + axis
    dimension = tree.dimension_of[key]
    if dimension == NONE:
        dimension = tree.state[DIMENSIONS]
        tree.state[DIMENSIONS] += 1
        tree.dimension_of[key] = dimension
        tree.key_of[dimension] = key
    box = box_on(tree, DESK, dimension)
    if box != NONE:
        tree.half[2 * box + 1] = at_least(np.float64(tree.half[2 * box + 1]) + weight)
        low, high = max(low, tree.number[box + 1]), min(high, tree.number[box + 2])
        if low <= high:  # what cannot hold at all is left to the verifier
            tree.number[box + 1], tree.number[box + 2] = low, high
        return True
    count = box_count(tree, DESK)
    if count == width or not low <= high:
        return False
    box = DESK + RECORD_WORDS + RECORD_BOX * count
    tree.code[2 * box] = dimension
    tree.half[2 * box + 1] = at_least(weight)
    tree.number[box + 1], tree.number[box + 2] = low, high
    tree.code[2 * DESK + 1] = count + 1
    return True


@kernel_part
def summarise(tree: Tree, record: int, desk: Desk) -> None:
    """Fill `desk.slot` with the weights of *record*, summed up by slot."""
    slot = desk.slot
    for place in range(SLOTS):
        slot[place] = 0.0
    slot[OTHER] = tree.half[2 * record + 3]
    slot[TOTAL] = tree.half[2 * record + 2]
    box = record + RECORD_WORDS
    for _ in range(box_count(tree, record)):
        slot[tree.code[2 * box] % SLOTS] += tree.half[2 * box + 1]
        box += RECORD_BOX


@kernel_inline
def widen_summary(tree: Tree, summary: int, desk: Desk) -> None:
    """Let the summary at *summary* bound what is in `desk.slot` too."""
    half = tree.half[2 * summary : 2 * summary + SUMMARY]
    for place in range(SUMMARY):
        if desk.slot[place] > half[place]:
            half[place] = at_least(desk.slot[place])


@kernel_inline
def is_wide(low: float, high: float) -> bool:
    """Whether low … high has no end."""
    return low == -math.inf and high == math.inf
