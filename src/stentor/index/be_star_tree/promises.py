"""Sketches: the weights of a leaf's records in columns, so that most records need not be read.

A record's *promise* is the sum of its weights, each times the dimension's usual one. Where rare
attributes weigh more, in records as in events, it says nearly what the record will score. For any
c ≥ 0, with the event's weight e, the usual one u and the heaviest one h of each of the event's
dimensions:

    score  ≤  c · promise + Σ h · max(0, e − c · u) + what is no box

since Σ w·e = c · Σ w·u + Σ w · (e − c·u); and the like with the total, where u is 1. So `top.py`
computes from the score that must be reached the least promise and total that a record must have.

A record's *signature* has a bit for each of its dimensions: a record that needs what the event
lacks does not match.

    words      (capacity in rows, 0) │ promises │ totals │ signatures │ where each record starts
"""

from __future__ import annotations

import numpy as np

from stentor._jit import inner_kernel, kernel_inline
from stentor.index.be_star_tree.layout import (
    DEPTH,
    LARGEST_LEAF,
    LEAF,
    LEAF_COUNT,
    NO_PROMISES,
    PROMISE,
    RECORD_WORDS,
    TOTAL,
    BEStarTreeArrays,
    Readable,
    SplitScratch,
    free_run,
    take_run,
)
from stentor.index.be_star_tree.records import (
    at_least,
    box_count,
    box_words,
    dimension_at,
    sum_weights,
    words_of,
)

SIGNATURE_BITS = 31


@kernel_inline
def promises_of(tree: Readable, node: int) -> int:
    """The sketch of the leaf of *node*, or NO_PROMISES."""
    return int(tree.code[2 * (node + DEPTH) + 1])


@kernel_inline
def row_capacity(tree: Readable, sketch: int) -> int:
    """The capacity of *sketch* in records; a multiple of 8."""
    return int(tree.code[2 * sketch])


@kernel_inline
def promises_in(sketch: int) -> int:
    """Where the records' promises start, as a position of halves."""
    return 2 * (sketch + 1)


@kernel_inline
def totals_in(tree: Readable, sketch: int) -> int:
    """Where the records' totals start, as a position of halves."""
    return promises_in(sketch) + row_capacity(tree, sketch)


@kernel_inline
def offsets_in(tree: Readable, sketch: int) -> int:
    """Where the records' offsets start, as a position of codes."""
    return promises_in(sketch) + 3 * row_capacity(tree, sketch)


@kernel_inline
def signatures_in(tree: Readable, sketch: int) -> int:
    """Where the records' signatures start, as a position of codes."""
    return promises_in(sketch) + 2 * row_capacity(tree, sketch)


@kernel_inline
def signature_bit(dimension: int) -> np.int32:
    """The bit of *dimension* in signatures."""
    return np.int32(1 << dimension % SIGNATURE_BITS)


@inner_kernel
def free_promises(tree: BEStarTreeArrays, node: int) -> None:
    """Free the sketch of the leaf of *node*, if there is one."""
    if promises_of(tree, node) != NO_PROMISES:
        free_run(tree, promises_of(tree, node))
        tree.code[2 * (node + DEPTH) + 1] = NO_PROMISES


@inner_kernel
def write_promises(tree: BEStarTreeArrays, node: int, scratch: SplitScratch) -> None:
    """Write the sketch of the leaf of *node*, with capacity for some more records.

    Cost: each box is read.
    """
    free_promises(tree, node)
    count, leaf = tree.word[node + LEAF_COUNT], tree.word[node + LEAF]
    if count == 0:
        return
    rows = (count + count // 4 + 8) & ~7
    words = 1 + 4 * (rows >> 1)
    tree.state[LARGEST_LEAF] = max(tree.state[LARGEST_LEAF], words)
    sketch = take_run(tree, words)
    tree.code[2 * (node + DEPTH) + 1] = sketch
    tree.word[sketch] = rows
    record = leaf
    for row in range(count):
        sum_weights(tree, record, scratch)
        write_row(tree, sketch, row, leaf, record - leaf, scratch)
        record += words_of(tree, record)


@inner_kernel
def append_promise(tree: BEStarTreeArrays, node: int, offset: int, scratch: SplitScratch) -> None:
    """Add the last record of the leaf of *node*, which starts at *offset*, to its sketch.

    Its weights are in `scratch.slot`.
    """
    sketch, row = promises_of(tree, node), tree.word[node + LEAF_COUNT] - 1
    if sketch == NO_PROMISES or row >= row_capacity(tree, sketch):
        write_promises(tree, node, scratch)
    else:
        write_row(tree, sketch, row, tree.word[node + LEAF], offset, scratch)


@kernel_inline
def write_row(
    tree: BEStarTreeArrays, sketch: int, row: int, leaf: int, offset: int, scratch: SplitScratch
) -> None:
    """Write the record at *offset* in *leaf*, summarised in `scratch.slot`, to the *row*."""
    signature, record = np.int32(0), leaf + offset
    box, step = record + RECORD_WORDS, box_words(tree, record)
    for _ in range(box_count(tree, record)):
        signature |= signature_bit(dimension_at(tree, record, box))
        box += step
    tree.code[signatures_in(tree, sketch) + row] = signature
    tree.half[promises_in(sketch) + row] = at_least(scratch.slot[PROMISE])
    tree.half[totals_in(tree, sketch) + row] = at_least(scratch.slot[TOTAL])
    tree.code[offsets_in(tree, sketch) + row] = offset
