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
    NARROW,
    NARROW_BOX,
    NONE,
    OTHER,
    RECORD_WORDS,
    SLOTS,
    SUMMARY,
    TOTAL,
    UNCOVERED,
    VALUE,
    WIDE_BOX,
    Desk,
    Readable,
    Tree,
    X,
    Y,
)

_INFINITY = np.float32(math.inf)
_SIXTEEN_BITS = (1 << 16) - 1
#: By the exponent of a weight in 16 bits, what the last place of its significand is worth.
_LAST_PLACE = np.array([2.0 ** (max(exponent, 1) - 134) for exponent in range(255)] + [math.inf])


@kernel_inline
def at_least(value: float) -> np.float32:
    """The float32 of *value*, rounded up."""
    rounded = np.float32(value)
    if np.float64(rounded) < value:
        rounded = np.nextafter(rounded, _INFINITY)
    return rounded


@kernel_inline
def alternative_of(tree: Readable, record: int) -> int:
    """The alternative that *record* stands for."""
    return int(tree.code[2 * record])


@kernel_inline
def box_count(tree: Readable, record: int) -> int:
    """How many boxes *record* has."""
    return int(tree.code[2 * record + 1] & COUNT_MASK)


@kernel_inline
def is_narrow(tree: Readable, record: int) -> bool:
    """Whether the boxes of *record* take two words each, not three."""
    return bool(tree.code[2 * record + 1] & NARROW)


@kernel_inline
def box_words(tree: Readable, record: int) -> int:
    """The words of each box of *record*."""
    return NARROW_BOX if is_narrow(tree, record) else WIDE_BOX


@kernel_inline
def words_of(tree: Readable, record: int) -> int:
    """The words of *record*."""
    return RECORD_WORDS + box_words(tree, record) * box_count(tree, record)


@kernel_inline
def dimension_at(tree: Readable, record: int, box: int) -> int:
    """The dimension of the *box* of *record*."""
    code = tree.code[2 * box]
    return int(code & _SIXTEEN_BITS if is_narrow(tree, record) else code)


@kernel_inline
def low_at(tree: Readable, box: int) -> float:
    """Where *box* begins."""
    return float(tree.number[box + 1])


@kernel_inline
def high_at(tree: Readable, record: int, box: int) -> float:
    """Where the *box* of *record* ends."""
    if is_narrow(tree, record):
        return float(tree.number[box + 1] + np.float64(tree.half[2 * box + 1]))
    return float(tree.number[box + 2])


@kernel_inline
def weight_at(tree: Readable, record: int, box: int) -> float:
    """The weight of the *box* of *record*, or a little more."""
    if not is_narrow(tree, record):
        return float(tree.half[2 * box + 1])
    bits = tree.code[2 * box] >> 16
    exponent, significand = bits >> 7, bits & 127
    return float((significand + (128.0 if exponent > 0 else 0.0)) * _LAST_PLACE[exponent])


@kernel_inline
def box_on(tree: Readable, record: int, dimension: int) -> int:
    """The place of the box of *record* on *dimension*, or NONE."""
    box, step = record + RECORD_WORDS, box_words(tree, record)
    for _ in range(box_count(tree, record)):
        if dimension_at(tree, record, box) == dimension:
            return box
        box += step
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
    tree.proved[alternative] = exact
    if exact:
        tree.code[2 * DESK + 1] |= COVERED
    else:
        tree.state[UNCOVERED] = 1
    if fits_narrow(tree):
        make_narrow(tree)


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
    box = DESK + RECORD_WORDS + WIDE_BOX * count
    tree.code[2 * box] = dimension
    tree.half[2 * box + 1] = at_least(weight)
    tree.number[box + 1], tree.number[box + 2] = low, high
    tree.code[2 * DESK + 1] = count + 1
    return True


@kernel_part
def fits_narrow(tree: Tree) -> bool:
    """Whether the record on the desk can be told in two words for each box, exactly."""
    box = DESK + RECORD_WORDS
    for _ in range(box_count(tree, DESK)):
        low, high = tree.number[box + 1], tree.number[box + 2]
        if not high - low < math.inf or tree.code[2 * box] > _SIXTEEN_BITS:
            return False
        if low + np.float64(np.float32(high - low)) != high:
            return False
        box += WIDE_BOX
    return True


@kernel_part
def make_narrow(tree: Tree) -> None:
    """Rewrite the record on the desk with two words for each box."""
    wide = narrow = DESK + RECORD_WORDS
    for _ in range(box_count(tree, DESK)):
        dimension, low, high = tree.code[2 * wide], tree.number[wide + 1], tree.number[wide + 2]
        bits = tree.code[2 * wide + 1]  # of the weight, a float32
        rounded_up = (bits >> 16) + (1 if bits & _SIXTEEN_BITS else 0)
        tree.code[2 * narrow] = dimension | rounded_up << 16
        tree.half[2 * narrow + 1] = np.float32(high - low)
        tree.number[narrow + 1] = low
        wide += WIDE_BOX
        narrow += NARROW_BOX
    tree.code[2 * DESK + 1] |= NARROW


@kernel_part
def summarise(tree: Tree, record: int, desk: Desk) -> None:
    """Fill `desk.slot` with the weights of *record*, summed up by slot."""
    slot = desk.slot
    for place in range(SLOTS):
        slot[place] = 0.0
    slot[OTHER] = tree.half[2 * record + 3]
    slot[TOTAL] = tree.half[2 * record + 2]
    box, step = record + RECORD_WORDS, box_words(tree, record)
    for _ in range(box_count(tree, record)):
        slot[dimension_at(tree, record, box) % SLOTS] += weight_at(tree, record, box)
        box += step


@kernel_inline
def widen_summary(tree: Tree, summary: int, desk: Desk) -> None:
    """Let the summary at *summary* bound what is in `desk.slot` too."""
    half = tree.half[2 * summary : 2 * summary + SUMMARY]
    for place in range(SUMMARY):
        if desk.slot[place] > half[place]:
            half[place] = at_least(desk.slot[place])
