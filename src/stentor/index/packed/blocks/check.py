"""The invariants of blocks, asserted in plain Python: for tests."""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import Int64, UInt8
from stentor.index.packed.blocks.layout import (
    BLOCK,
    BOX_FLOAT,
    FANOUT,
    HEAD,
    HEAD_HIGH,
    HIGH,
    LIVE,
    LOCATION_CELLS,
    LOCATION_CUTS,
    RECORD,
    BlockArrays,
    BlockDimensions,
)


def check_blocks(
    dimensions: BlockDimensions,
    blocks: BlockArrays,
    records: UInt8,
    slots: Int64,
) -> None:
    """Assert that the true *records* are in *slots*, and that nothing excludes what they want."""
    assert np.array_equal(blocks.record.reshape(-1, RECORD)[slots], records), "records are true"
    assert len(np.unique(slots)) == len(slots)
    lines = int(dimensions.line_start[-1])
    each = np.unpackbits(blocks.line.view(np.uint8), bitorder="little").reshape(-1, lines, BLOCK)
    bits = each.transpose(0, 2, 1).reshape(-1, lines)
    held = bits[slots]
    assert held[:, LIVE].all()
    for dimension, start in enumerate(dimensions.line_start[:-1].tolist()):
        low, high = records[:, dimension, None], records[:, HIGH + dimension, None]
        meets = (low <= dimensions.last_code) & (high >= dimensions.first_code)
        assert np.array_equal(held[:, start : start + meets.shape[1]] != 0, meets)
    _check_locations(dimensions, blocks, records.view(np.float32)[:, BOX_FLOAT:], slots, held)
    _check_heads(dimensions, blocks, records, slots)


def _check_locations(dimensions, blocks, box, slots, held) -> None:  # type: ignore[no-untyped-def]
    """Lines of cells of x and y, and the boxes of all levels."""
    west, east = box[:, :2], -box[:, 2:]
    if dimensions.line_start[0] > 1:
        cuts = blocks.location_cut.reshape(-1, LOCATION_CUTS)[slots // BLOCK]
        for axis in range(2):
            own = cuts[:, axis * LOCATION_CELLS : (axis + 1) * LOCATION_CELLS]
            first = (own <= west[:, axis, None]).sum(axis=1)
            last = (own <= east[:, axis, None]).sum(axis=1)
            meets = (first[:, None] <= dimensions.last_location) & (
                dimensions.first_location <= last[:, None]
            )
            start = 1 + axis * meets.shape[1]
            assert np.array_equal(held[:, start : start + meets.shape[1]] != 0, meets)
    child = slots // BLOCK
    sides = blocks.box.reshape(-1, 4, FANOUT)
    for level in range(len(blocks.level_start) - 3, -1, -1):
        around = sides[blocks.level_start[level] + child // FANOUT, :, child % FANOUT]
        assert (around[:, :2] <= west).all()
        assert (around[:, 2:] >= east).all()
        child = child // FANOUT


def _check_heads(dimensions, blocks, records, slots) -> None:  # type: ignore[no-untyped-def]
    """Codes of the heads of all levels."""
    count, node = len(dimensions.attribute), slots // BLOCK
    for level in range(len(blocks.level_start) - 2, -1, -1):
        head = blocks.head.reshape(-1, HEAD)[blocks.level_start[level] + node]
        assert (head[:, :count] <= records[:, :count]).all()
        assert (head[:, HEAD_HIGH : HEAD_HIGH + count] >= records[:, HIGH : HIGH + count]).all()
        node = node // FANOUT
