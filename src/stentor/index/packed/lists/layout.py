"""The arrays of lists: keys, axes, granules and records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import Float64, Int32, Int64, UInt8, UInt64

#: A number of 64 bits, whatever it was: kernels mix only these.
whole: Callable[[Any], int] = np.int64  # type: ignore[assignment]  # it is no int to mypy
UInt16 = npt.NDArray[np.uint16]
UInt32 = npt.NDArray[np.uint32]

LANES: Final = 8  # of a granule
LANE_BITS: Final = 3
ALL_LANES: Final = (1 << LANES) - 1
COLUMNS: Final = 4  # of a granule's bounds: low and high along two axes
#: A list of more entries has a tree above it, and begins with a granule of its own.
LONG: Final = 64

# Codes.
ANY_EVENT: Final = 0  # the key of alternatives that have no other: every event has it
NO_CODE: Final = -1
CLASSES: Final = 3  # an attribute has a list for narrow, middling and wide predicates

# Fields of a list, by its code.
START, COUNT, ROOT, AXIS_A, AXIS_B, TEXT_START, TEXT_STOP, OWNER = range(8)
FIELDS: Final = 8
NO_TREE: Final = -1
# Owners of a key that is no attribute's string.
OF_TERM, OF_SEVERAL, OF_NUMBER, OF_ATTRIBUTE = -1, -2, -3, -4

# Cells of an axis: how many cuts do not exceed a value, so at least 1.
NO_AXIS: Final = 0  # every event lacks it
LEAST, MOST_CELL, NOT_ASKED = 0, 65534, 65535  # low ends: −∞; high ends: ∞, and nothing is asked
MOST_CUTS: Final = 60_000
#: The cells of what an event lacks: they meet no bounds but those of who does not ask.
LACKS_LOW, LACKS_HIGH = NOT_ASKED, LEAST

# Entries: what is left to do when the bounds and the signature of a lane are met.
ALTERNATIVE_BITS: Final = 30
COVERED: Final = 1 << 30  # nothing: all predicates are proved
CANDIDATE: Final = 1 << 31  # the verifier
IS_LEAF: Final = 1 << 31  # of a lane in a tree: its granule is one of entries
POINTER: Final = (1 << ALTERNATIVE_BITS) - 1

# The first word of a record: how many keys and ranges follow, and whether that is all.
COUNT_BITS: Final = 12
MOST_COUNT: Final = (1 << COUNT_BITS) - 1
UNPROVED: Final = 1 << 31


class ListKeys(NamedTuple):
    """What lists go by: words and whole strings by hash, numbers by value, attributes by code."""

    spread: UInt64  # where the look-up of a hash starts
    slot: UInt64  # (2 × slots,) a hash and its code + 1, or 0
    lists: Int32  # (codes × FIELDS,)
    text: UInt8  # (bytes,) of words and strings
    attribute_code: Int32  # (attributes × CLASSES,) or NO_CODE
    number_start: Int64  # (attributes + 1,)
    number: Float64  # (numbers,) ascending within an attribute
    number_code: Int32  # (numbers,)


class ListAxes(NamedTuple):
    """Attributes, and coordinates of locations, cut into cells at quantiles of their bounds."""

    axis_of: Int32  # (3 × attributes,) by VALUE, X and Y; or NO_AXIS
    cut_start: Int64  # (axes + 1,)
    cut: Float64  # (cuts,) ascending within an axis, the first −∞
    is_exact: UInt8  # (axes,) 1 where every bound is a cut: cells decide


class Granules(NamedTuple):
    """Entries, eight to a granule, list after list; then trees above long lists.

    A lane of a tree stands for a granule below: hulls of bounds, and bits that all of them need.
    """

    bounds: UInt16  # (granules × COLUMNS × LANES,)
    signature: UInt64  # (granules × LANES,) a bit for each key that is needed
    entry: UInt32  # (granules × LANES,) an alternative and its flags; in trees a granule
    record_start: UInt32  # (entries,)
    record: UInt32  # (words,) per entry: counts, keys, ranges (an axis, low | high << 16)


class ListScratch(NamedTuple):
    """Mutable arrays for one thread."""

    stamp: Int64  # (1,) marks equal to it belong to the event that is looked at
    key_mark: Int64  # (codes,)
    low: Int64  # (axes,) cells of the event, or LACKS_LOW
    high: Int64  # (axes,)
    key_start: Int64  # (GROUP + 1,)
    key: Int64  # codes of some events
    term: Int64  # beside each code the position of the term it is to be confirmed on
    stack: Int64  # granules of a tree
    met: Int64  # (MOST_MET,) lanes whose records are still to be read


#: Events whose keys are looked up, and whose lists are prefetched, before the first is matched.
GROUP: Final = 8
#: Lanes that are met are gathered and their records prefetched, so many at a time.
MOST_MET: Final = 128
# Instead of the position of a term: a string's value, −1 less its position; or nothing.
CONFIRMED: Final = -(1 << 62)
#: Granules of a tree that wait at most: 7 at each level, of which there are at most 11.
STACK: Final = 96
