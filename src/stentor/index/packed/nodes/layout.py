"""The arrays of nodes: heads, lanes, dictionaries, and bounds of scores."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stentor._tables import LANES
from stentor.encoding.columns import Float64, Int32, Int64, UInt8

Float32 = npt.NDArray[np.float32]
UInt16 = npt.NDArray[np.uint16]

ALL_LANES: Final = (1 << LANES) - 1
#: Predicates of an alternative that lie in its leaf; the verifier looks at what is beyond.
MOST_COLUMNS: Final = 16
#: Bytes of a lane for each of them: slot, weight, low, high.
COLUMN_BYTES: Final = 4
#: An axis has a tree for narrow, middling and wide predicates.
CLASSES: Final = 3
NARROW, MIDDLING = 1 / 16, 1 / 4

# Slots of a table. The last is that of lanes which do not ask.
MOST_SLOTS: Final = LANES - 1
ALWAYS: Final = LANES - 1
# Bytes of a table: what an event has along the slot's axis.
LACKING, BELOW, FIRST, ABOVE = 0, 1, 2, 254
#: Cells of a frame, with a byte each: FIRST … ABOVE − 1.
FRAME: Final = ABOVE - FIRST
ANY_LOW, ANY_HIGH = 0, 255  # bounds of a lane that does not ask

# Fields of a head.
START, COUNT, WIDTH, DICTIONARY, BELOW_IT, COVERED, IS_EXACT, HEIGHT = range(8)
FIELDS: Final = 8
NO_ROOT: Final = -1
#: The cell of an axis that an event lacks.
NO_CELL: Final = -1
#: What leaf and tree are read past their ends, at most.
PADDING: Final = LANES


class NodeArrays(NamedTuple):
    """Leaves in order, then inner nodes level by level: the nodes below one are neighbours."""

    root: Int64  # (axes × CLASSES,) a node or NO_ROOT
    head: Int64  # (nodes × FIELDS,) where lanes start, their count, columns, dictionary; then the
    #   first alternative or the first node below; lanes that bounds may prove; whether they do
    lane: UInt8  # (bytes + PADDING,)
    alternative: Int64  # (alternatives,)
    slot_start: Int64  # (dictionaries + 1,)
    slot_axis: Int32  # (slots,)
    slot_base: Int32  # (slots,)
    slot_shift: UInt8  # (slots,)
    is_inexact: UInt8  # (slots,) 1 where a byte stands for several cells, or a cell decides nothing
    promise: Float32  # (nodes + PADDING,) Σ weight × the greatest of its axis, at most
    total: Float32  # (nodes + PADDING,) Σ weight, at most
    heaviest: Float64  # (axes,) the greatest weight
    other: Float64  # (1,) the greatest sum of weights that are in no column


class NodeScratch(NamedTuple):
    """Mutable arrays for one thread."""

    low: Int64  # (axes,) cells of the event, or NO_CELL
    high: Int64  # (axes,)
    axis: Int64  # (axes,) those that the event has
    value: Float64  # (axes,) what it has there; of a range the low end, then the high one
    size: Int64  # (axes,) cuts among which its cell is still to be found
    used: Int64  # (1,) how many axes
    table: UInt8  # (4 × LANES,) low, high; and both for proofs
    waiting: Int64  # (nodes,) inner nodes
    leaf: Int64  # (nodes,)


def scratch_of(axes: int, nodes: int) -> NodeScratch:
    """Scratch for so many *axes* and *nodes*."""
    table = np.zeros(4 * LANES, np.uint8)
    table[ALWAYS::LANES] = BELOW
    return NodeScratch(
        np.full(axes, NO_CELL, np.int64),
        np.full(axes, NO_CELL, np.int64),
        np.empty(axes, np.int64),
        np.empty(axes),
        np.empty(axes, np.int64),
        np.zeros(1, np.int64),
        table,
        np.empty(nodes + 1, np.int64),
        np.empty(nodes + 1, np.int64),
    )
