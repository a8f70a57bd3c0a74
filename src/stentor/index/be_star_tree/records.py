"""Alternatives as records: their one-dimensional boxes (Table I) and weights, inline in a leaf.

A box is what an alternative's predicates on one axis of one attribute leave possible: of numbers
the interval, of strings their prefixes (of one string its hash, which tells it from all others
however long they begin alike), of a region its bounding box. Predicates that bound
nothing still need their attribute to be present: an unbounded box. Only `IS NULL` gives no box,
nor does a negated region or one that crosses 180°.
"""

from __future__ import annotations

import math

import numpy as np

from stentor._jit import inner_kernel, kernel_inline
from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.kinds import (
    INTERVAL,
    MEMBERSHIP,
    MISSING,
    is_negated,
    is_region,
)
from stentor.index.be_star_tree.layout import (
    AXES,
    COUNT_MASK,
    COVERED,
    DIMENSIONS,
    HASH,
    NARROW,
    NARROW_BOX,
    NONE,
    OTHER,
    PROMISE,
    RECORD_WORDS,
    SLOTS,
    STAGED,
    SUMMARY,
    TOTAL,
    UNCOVERED,
    VALUE,
    WIDE_BOX,
    BEStarTreeArrays,
    Readable,
    SplitScratch,
    X,
    Y,
)

_INFINITY = np.float32(math.inf)
_SIXTEEN_BITS = (1 << 16) - 1
#: Usual weights are between: products with them are neither 0 nor infinite.
LEAST_USUAL, MOST_USUAL = 2.0**-100, 2.0**100
#: By the exponent of a weight in 16 bits, what the last digit of its significand is worth.
_LAST_DIGIT = np.array([2.0 ** (max(exponent, 1) - 134) for exponent in range(255)] + [math.inf])


@kernel_inline
def at_least(value: float) -> np.float32:
    """The float32 of *value*, rounded up."""
    rounded = np.float32(value)
    if np.float64(rounded) < value:
        rounded = np.nextafter(rounded, _INFINITY)
    return rounded


@kernel_inline
def hash_number(hashed: np.uint64) -> float:
    """As many bits of a string's hash as a double holds."""
    return float(np.int64(hashed >> np.uint64(11)))


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
    return float((significand + (128.0 if exponent > 0 else 0.0)) * _LAST_DIGIT[exponent])


@kernel_inline
def box_on(tree: Readable, record: int, dimension: int) -> int:
    """The position of the box of *record* on *dimension*, or NONE."""
    box, step = record + RECORD_WORDS, box_words(tree, record)
    for _ in range(box_count(tree, record)):
        if dimension_at(tree, record, box) == dimension:
            return box
        box += step
    return NONE


@inner_kernel
def stage_record(
    columns: SubscriptionColumns, alternative: int, tree: BEStarTreeArrays, width: int
) -> None:
    """Write the record of *alternative*, with at most *width* boxes, to STAGED."""
    tree.code[2 * STAGED] = alternative
    tree.code[2 * STAGED + 1] = 0
    exact, total, other = True, 0.0, 0.0
    for predicate in range(
        columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
    ):
        kind, weight = columns.kind[predicate], columns.weight[predicate]
        attribute = columns.attribute[predicate]
        total += weight
        added = False
        if is_region(kind):
            exact = False
            pair = columns.operand_start[predicate]
            west, east = columns.pair_low[pair], columns.pair_high[pair]
            if west <= east and not is_negated(kind):
                south, north = columns.pair_low[pair + 1], columns.pair_high[pair + 1]
                added = add_box(tree, attribute, X, west, east, weight, width)
                add_box(tree, attribute, Y, south, north, 0.0, width)
        elif kind == MISSING:
            exact = False
        else:
            exact = exact and kind == INTERVAL
            axis, low, high = VALUE, columns.low[predicate], columns.high[predicate]
            first, last = columns.operand_start[predicate], columns.operand_stop[predicate] - 1
            if kind == MEMBERSHIP and first <= last and (first == last or low == high):
                # They begin alike: their hashes, which ascend, tell them apart.
                axis, low = HASH, hash_number(columns.string_hash[first])
                high = hash_number(columns.string_hash[last])
            before = box_count(tree, STAGED)
            added = add_box(tree, attribute, axis, low, high, weight, width)
            exact = exact and box_count(tree, STAGED) > before
        if not added:
            other += weight
    tree.half[2 * STAGED + 2] = at_least(total)
    tree.half[2 * STAGED + 3] = at_least(other)
    tree.proved[alternative] = exact
    learn_weights(tree)
    if exact:
        tree.code[2 * STAGED + 1] |= COVERED
    else:
        tree.state[UNCOVERED] = 1
    if fits_narrow(tree):
        make_narrow(tree)


@inner_kernel
def learn_weights(tree: BEStarTreeArrays) -> None:
    """Update `usual` and `heaviest` with the weights of the staged record, which is wide.

    A usual weight is the first above 0, or an average of the first records that were inserted
    together (`build.average_weights`), and never changes then: promises are sums with it.
    """
    box = STAGED + RECORD_WORDS
    for _ in range(box_count(tree, STAGED)):
        dimension, weight = tree.code[2 * box], np.float64(tree.half[2 * box + 1])
        tree.heaviest[dimension] = max(tree.heaviest[dimension], weight)
        if weight > 0.0 and tree.usual[dimension] == 0.0:
            tree.usual[dimension] = min(max(weight, LEAST_USUAL), MOST_USUAL)
        box += WIDE_BOX


@inner_kernel
def add_box(
    tree: BEStarTreeArrays,
    attribute: int,
    axis: int,
    low: float,
    high: float,
    weight: float,
    width: int,
) -> bool:
    """Add a box to the staged record, or intersect it with the one on that dimension.

    False where it has *width* boxes already, and nothing was done.
    """
    key = AXES * attribute + axis
    dimension = tree.dimension_of[key]
    if dimension == NONE:
        dimension = tree.state[DIMENSIONS]
        tree.state[DIMENSIONS] += 1
        tree.dimension_of[key] = dimension
        tree.key_of[dimension] = key
    box = box_on(tree, STAGED, dimension)
    if box != NONE:
        tree.half[2 * box + 1] = at_least(np.float64(tree.half[2 * box + 1]) + weight)
        low, high = max(low, tree.number[box + 1]), min(high, tree.number[box + 2])
        if low <= high:  # what cannot hold at all is left to the verifier
            tree.number[box + 1], tree.number[box + 2] = low, high
        return True
    count = box_count(tree, STAGED)
    if count == width or not low <= high:
        return False
    box = STAGED + RECORD_WORDS + WIDE_BOX * count
    tree.code[2 * box] = dimension
    tree.half[2 * box + 1] = at_least(weight)
    tree.number[box + 1], tree.number[box + 2] = low, high
    tree.code[2 * STAGED + 1] = count + 1
    return True


@inner_kernel
def fits_narrow(tree: BEStarTreeArrays) -> bool:
    """Whether two words for each box of the staged record are exact."""
    box = STAGED + RECORD_WORDS
    for _ in range(box_count(tree, STAGED)):
        low, high = tree.number[box + 1], tree.number[box + 2]
        if not high - low < math.inf or tree.code[2 * box] > _SIXTEEN_BITS:
            return False
        if low + np.float64(np.float32(high - low)) != high:
            return False
        box += WIDE_BOX
    return True


@inner_kernel
def make_narrow(tree: BEStarTreeArrays) -> None:
    """Rewrite the staged record with two words for each box."""
    wide = narrow = STAGED + RECORD_WORDS
    for _ in range(box_count(tree, STAGED)):
        dimension, low, high = tree.code[2 * wide], tree.number[wide + 1], tree.number[wide + 2]
        bits = tree.code[2 * wide + 1]  # of the weight, a float32
        rounded_up = (bits >> 16) + (1 if bits & _SIXTEEN_BITS else 0)
        tree.code[2 * narrow] = dimension | rounded_up << 16
        tree.half[2 * narrow + 1] = np.float32(high - low)
        tree.number[narrow + 1] = low
        wide += WIDE_BOX
        narrow += NARROW_BOX
    tree.code[2 * STAGED + 1] |= NARROW


@inner_kernel
def sum_weights(tree: BEStarTreeArrays, record: int, scratch: SplitScratch) -> None:
    """Fill `scratch.slot` with the weights of *record*, summed up by slot, and with its promise."""
    slot = scratch.slot
    for position in range(SLOTS):
        slot[position] = 0.0
    slot[PROMISE] = 0.0
    slot[OTHER] = tree.half[2 * record + 3]
    slot[TOTAL] = tree.half[2 * record + 2]
    box, step = record + RECORD_WORDS, box_words(tree, record)
    for _ in range(box_count(tree, record)):
        dimension, weight = dimension_at(tree, record, box), weight_at(tree, record, box)
        slot[dimension % SLOTS] += weight
        slot[PROMISE] += weight * tree.usual[dimension]
        box += step


@kernel_inline
def widen_summary(tree: BEStarTreeArrays, summary: int, scratch: SplitScratch) -> None:
    """Widen the summary at *summary* to bound `scratch.slot` too."""
    half = tree.half[2 * summary : 2 * summary + SUMMARY]
    for position in range(SUMMARY):
        if scratch.slot[position] > half[position]:
            half[position] = at_least(scratch.slot[position])
