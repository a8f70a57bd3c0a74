"""Blocks of alternatives, all at once: records, their order, lines, heads and boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stentor._intrinsics import prefetch
from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor._lines import cuts_up_to, slots_meeting
from stentor.encoding.columns import Int32, Int64, UInt8, UInt64, read_only
from stentor.index.packed.blocks.layout import (
    BLOCK,
    BOX_FLOAT,
    FANOUT,
    HEAD,
    HEAD_HIGH,
    HIGH,
    LOCATION_CELLS,
    LOCATION_CUTS,
    MOST_DIMENSIONS,
    NOT_ASKED_HIGH,
    NOT_ASKED_LOW,
    RECORD,
    WORDS,
    BlockArrays,
    BlockDimensions,
    Float32,
    short,
    whole,
)
from stentor.index.packed.blocks.order import order_records, order_scratch

#: How many records ahead memory is prefetched.
AHEAD = 8
_RECORD_WORDS = RECORD // 8
_FLOATS = RECORD // 4
#: Corners of a block that its cuts of x and y are chosen from, at most.
CORNERS = 128
#: A head that spans more codes in every dimension is not looked at.
MOST_SPANNED = 240
_ALL = ~np.uint64(0)


def aligned(count: int, dtype: npt.DTypeLike, fill: int | float | None = None) -> npt.NDArray[Any]:
    """*count* elements that begin where a cache line does."""
    size = count * np.dtype(dtype).itemsize
    raw = np.empty(size + 63, np.uint8)
    start = -raw.ctypes.data % 64
    array = raw[start : start + size].view(dtype)
    if fill is not None:
        array[...] = fill
    return array


def build_blocks(
    given: UInt8, signed: int, dimensions: BlockDimensions
) -> tuple[BlockArrays, Int32]:
    """Blocks of the *given* records, of which so many are *signed*, and the slot of each.

    Cost: about a microsecond each; more where codes take part in the order.
    """
    count = len(given) // RECORD
    blocks = -(-count // BLOCK)
    index = np.arange(count, dtype=np.int32)
    order_records(
        read_only(given),
        read_only(given.view(np.float32)),
        len(dimensions.attribute),
        bool(dimensions.line_start[0] > 1),
        index,
        order_scratch(count),
    )
    lines = int(dimensions.line_start[-1])
    record = aligned(blocks * BLOCK * RECORD, np.uint8)
    line = aligned(blocks * lines * WORDS, np.uint64)
    location_cut = aligned(blocks * LOCATION_CUTS, np.float32, np.nan)
    head = np.empty((blocks, HEAD), np.uint8)
    box = np.empty((blocks, 4), np.float32)
    fill_blocks(
        read_only(index),
        read_only(given.view(np.uint64)),
        dimensions,
        record.view(np.uint64),
        record,
        record.view(np.float32),
        line,
        location_cut,
        head.reshape(-1),
        box.reshape(-1),
        aligned(2 * (MOST_DIMENSIONS + 2) * BLOCK, np.uint8),
        np.empty(5 * BLOCK, np.float32),
    )
    level_start, nodes, heads = _tree(box, head)
    left = np.bitwise_count(line.reshape(blocks, lines, WORDS)).sum((0, 2)) / max(1, count)
    slot_of = np.empty(count, np.int32)
    slot_of[index] = np.arange(count, dtype=np.int32)
    arrays = BlockArrays(
        level_start=level_start,
        box=nodes,
        head=heads,
        is_selective=_is_selective(heads),
        location_cut=location_cut,
        line=line,
        record=record,
        record_int=record.view(np.int32),
        record_float=record.view(np.float32),
        left=left,
        signed=np.array([signed]),
    )
    return arrays, slot_of


def _is_selective(heads: UInt8) -> UInt8:
    """Whether each of *heads* excludes so much that it is worth a look."""
    low, high = np.hsplit(heads.reshape(-1, HEAD).astype(np.int16), 2)
    return np.asarray((high - low < MOST_SPANNED).any(axis=1), np.uint8)


def _tree(box: Float32, head: UInt8) -> tuple[Int64, Float32, UInt8]:
    """Where levels start, the boxes of children in eights, and all heads; from boxes of blocks."""
    boxes: list[Float32] = []
    heads, counts = [head], [len(head)]
    while not boxes or len(box) > 1:
        nodes = -(-len(box) // FANOUT)
        padded = np.empty((nodes * FANOUT, 4), np.float32)
        padded[:, :2], padded[:, 2:] = np.inf, -np.inf
        padded[: len(box)] = box
        codes = np.full((nodes * FANOUT, HEAD), 255, np.uint8)
        codes[:, HEAD_HIGH:] = 0
        codes[: len(head)] = head
        by_node, codes_by_node = (
            padded.reshape(nodes, FANOUT, 4),
            codes.reshape(nodes, FANOUT, HEAD),
        )
        low, high = by_node[..., :2].min(axis=1), by_node[..., 2:].max(axis=1)
        padded[len(box) :] = np.nan  # nothing meets a child that is not there
        boxes.append(np.ascontiguousarray(by_node.transpose(0, 2, 1)).reshape(-1))
        box = np.hstack((low, high))
        low_code = codes_by_node[..., :HEAD_HIGH].min(axis=1)
        head = np.hstack((low_code, codes_by_node[..., HEAD_HIGH:].max(axis=1)))
        heads.append(head)
        counts.append(nodes)
    flat = aligned(sum(map(len, boxes)), np.float32)
    np.concatenate(boxes[::-1], out=flat)
    all_heads = aligned(sum(map(np.size, heads)), np.uint8)
    np.concatenate([one.reshape(-1) for one in heads[::-1]], out=all_heads)
    return np.concatenate(([0], np.cumsum(counts[::-1]))), flat, all_heads


@kernel
def fill_blocks(
    index: Int32,
    given: UInt64,
    dimensions: BlockDimensions,
    record_word: UInt64,
    record: UInt8,
    record_float: Float32,
    line: UInt64,
    location_cut: Float32,
    head: UInt8,
    box: Float32,
    code: UInt8,
    single: Float32,
) -> None:
    """Copy the *given* records into blocks in the order of *index*, and fill all that is theirs.

    *code* is scratch for the low, then the high codes of a block, by dimension; *single* for the
    sides of its boxes and for sorting.
    """
    lines = dimensions.line_start[len(dimensions.line_start) - 1]
    for block in range(len(box) // 4):
        first = block * BLOCK
        count = min(BLOCK, len(index) - first)
        words = record_word[first * _RECORD_WORDS : (first + BLOCK) * _RECORD_WORDS]
        for slot in range(count):
            if slot + AHEAD < count:
                prefetch(given, index[first + slot + AHEAD] * _RECORD_WORDS)
            row = whole(index[first + slot])
            for word in range(_RECORD_WORDS):
                words[slot * _RECORD_WORDS + word] = given[row * _RECORD_WORDS + word]
        for word in range(count * _RECORD_WORDS, BLOCK * _RECORD_WORDS):
            words[word] = 0
        fill_block(
            dimensions,
            count,
            record[first * RECORD : (first + BLOCK) * RECORD],
            record_float[first * _FLOATS : (first + BLOCK) * _FLOATS],
            line[block * lines * WORDS : (block + 1) * lines * WORDS],
            location_cut[block * LOCATION_CUTS : (block + 1) * LOCATION_CUTS],
            head[block * HEAD : (block + 1) * HEAD],
            box[block * 4 : block * 4 + 4],
            code,
            single,
        )


@inner_kernel
def fill_block(
    dimensions: BlockDimensions,
    count: int,
    record: UInt8,
    record_float: Float32,
    line: UInt64,
    location_cut: Float32,
    head: UInt8,
    box: Float32,
    code: UInt8,
    single: Float32,
) -> None:
    """The lines, cuts, head and box of a block whose first *count* records are there."""
    low, high = code[: len(code) // 2], code[len(code) // 2 :]
    for lane in range(HEAD_HIGH):
        head[lane], head[HEAD_HIGH + lane] = NOT_ASKED_LOW, NOT_ASKED_HIGH
    for dimension in range(len(dimensions.attribute)):
        lowest, highest = 255, 0
        lows, highs = low[dimension * BLOCK :], high[dimension * BLOCK :]
        for slot in range(count):
            one, other = record[slot * RECORD + dimension], record[slot * RECORD + HIGH + dimension]
            lows[slot], highs[slot] = one, other
            lowest, highest = min(lowest, one), max(highest, other)
        head[dimension], head[HEAD_HIGH + dimension] = lowest, highest
    for side in range(4):
        sides, least = single[side * BLOCK :], short(np.inf)
        for slot in range(count):
            one = record_float[slot * _FLOATS + BOX_FLOAT + side]
            least = min(least, one)
            sides[slot] = -one if side >= 2 else one
        box[side] = -least if side >= 2 else least
    for word in range(WORDS):
        live = live_word(count, word)
        line[word] = live
        for dimension in range(len(dimensions.attribute)):
            position, number = dimension * BLOCK + 64 * word, dimensions.line_start[dimension]
            for one in range(len(dimensions.first_code)):
                first, last = dimensions.first_code[one], dimensions.last_code[one]
                held = slots_meeting(low, high, position, first, last)
                line[(number + one) * WORDS + word] = live & held
    if dimensions.line_start[0] > 1:
        for axis in range(2):
            fill_location_lines(dimensions, axis, count, single, location_cut, line, low, high)


@kernel_inline
def live_word(count: int, word: int) -> np.uint64:
    """The bits of a word in which the first *count* slots of a block are set."""
    if count >= 64 * (word + 1):
        return _ALL
    if count <= 64 * word:
        return np.uint64(0)
    return (np.uint64(1) << np.uint64(count - 64 * word)) - np.uint64(1)


@kernel_inline
def fill_location_lines(
    dimensions: BlockDimensions,
    axis: int,
    count: int,
    single: Float32,
    location_cut: Float32,
    line: UInt64,
    low: UInt8,
    high: UInt8,
) -> None:
    """The cuts of x (*axis* 0) or y at quantiles of the block's corners, and the lines of cells."""
    west, east = single[axis * BLOCK :], single[(2 + axis) * BLOCK :]
    ordered, number = single[4 * BLOCK :], 0
    step = max(1, 2 * count // CORNERS)
    for corner in range(0, 2 * count, step):
        value = west[corner >> 1] if (corner // step) & 1 == 0 else east[corner >> 1]
        position = number
        while position > 0 and ordered[position - 1] > value:
            ordered[position] = ordered[position - 1]
            position -= 1
        ordered[position] = value
        number += 1
    cuts = location_cut[axis * LOCATION_CELLS : (axis + 1) * LOCATION_CELLS]
    for cut in range(1, LOCATION_CELLS):
        cuts[cut - 1] = ordered[cut * number // LOCATION_CELLS]
    at = MOST_DIMENSIONS + axis
    for slot in range(count):
        low[at * BLOCK + slot] = cuts_up_to(cuts, 0, west[slot])
        high[at * BLOCK + slot] = cuts_up_to(cuts, 0, east[slot])
    for word in range(WORDS):
        live = live_word(count, word)
        each = len(dimensions.first_location)
        for one in range(each):
            first, last = dimensions.first_location[one], dimensions.last_location[one]
            held = slots_meeting(low, high, at * BLOCK + 64 * word, first, last)
            line[(1 + axis * each + one) * WORDS + word] = live & held
