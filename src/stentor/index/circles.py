"""Circles on the globe or on a plane, in blocks: which of them contain a location.

    slot    a circle: its centre on the unit sphere (on a plane: x, y, 0), its reach squared as a
            chord, and what an event must have to matter to it: a term or string, if there is one
            that it cannot do without, and a signature (`signature.py`)
    block   64 slots: the box around their circles, and what the signatures of all need

Slots are sorted by keyword, those without one first; within a keyword by location, and circles
without an end by what they need. New slots wait unsorted behind them until there are many. An
event looks at the blocks of its own keywords and at those without, and at the slots of blocks whose
box it is in.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stentor._jit import inner_kernel, kernel
from stentor.encoding.columns import EventColumns, Float64, Int64, UInt64, all_read_only, read_only
from stentor.index.arena import GrowingArray
from stentor.index.live import SIGN_ALL_ATTRIBUTES
from stentor.index.signature import event_signature
from stentor.model.geometry import EARTH_RADIUS

BLOCK: Final = 64
#: Fewer slots than this that came or went since the last sort never call for another.
FEW: Final = 1024
#: The reach of a free slot.
GONE: Final = -1.0
#: More than rounding does to a chord.
_ROUNDING: Final = 1e-9
_BITS: Final = 10  # of each coordinate, by which circles are sorted
#: The keyword of a circle that needs none.
NO_KEYWORD: Final = np.uint64(0)
_NO_BITS = np.uint64(0)
#: The slot of a key that has no circle.
NO_SLOT: Final = -1
_FIRST_CAPACITY = 256


class Slots(NamedTuple):
    """All circles."""

    centre: Float64  # (slots × 3,)
    reach: Float64  # (slots,) squared, or GONE
    needed: UInt64  # (slots,)
    keyword: UInt64  # (slots,) or NO_KEYWORD; ascending as far as they are sorted
    key: Int64  # (slots,) whose circle it is
    low: Float64  # (blocks × 3,)
    high: Float64  # (blocks × 3,)
    common: UInt64  # (blocks,) what all of its slots need


def no_slots(slots: int) -> Slots:
    """So many free *slots*, a multiple of BLOCK."""
    blocks = slots // BLOCK
    return Slots(
        np.zeros(3 * slots),
        np.full(slots, GONE),
        np.zeros(slots, np.uint64),
        np.zeros(slots, np.uint64),
        np.zeros(slots, np.int64),
        np.full(3 * blocks, np.inf),
        np.full(3 * blocks, -np.inf),
        np.full(blocks, ~_NO_BITS),
    )


class Circles:
    """Circles by key; each key has one at most."""

    def __init__(self, *, plane: bool) -> None:
        self.plane = plane
        self._slots = no_slots(0)
        self._sealed = all_read_only(self._slots)
        self._count = self._sorted = 0  # slots in use, and how many of them are sorted
        self._changed = 0  # slots that came or went since the last sort
        self._slot_of = GrowingArray(np.int64)  # by key

    def __len__(self) -> int:
        return int(np.count_nonzero(self._slot_of.view != NO_SLOT))

    def put(
        self, keys: Int64, centres: Float64, radii: Float64, needed: UInt64, keyword: UInt64
    ) -> None:
        """Give each of *keys* a circle around its *centres* (n × 2) instead of the one it had.

        Wherever an exception interrupts this, each has the new one, the old one or both.

        Cost: amortised, a sort of all, about a microsecond each.
        """
        if not len(keys):
            return
        start, stop = self._count, self._count + len(keys)
        if stop > len(self._slots.reach):
            self._grow(max(stop, 2 * self._count, _FIRST_CAPACITY))
        locations, reach = on_sphere(centres, self.plane), chords(radii, self.plane)
        wants = needed, keyword
        slots = np.arange(start, stop)
        _fill(self._slots, slots, locations, reach, wants, keys)
        self._count = stop
        self._slot_of.extend(NO_SLOT, max(0, 1 + int(keys.max()) - len(self._slot_of)))
        slot_of = self._slot_of.writable
        before = slot_of[keys]
        slot_of[keys] = slots  # of a key that comes twice the last
        gone = np.concatenate([before[before != NO_SLOT], slots[slot_of[keys] != slots]])
        self._slots.reach[gone] = GONE
        self._changed += len(keys) + len(gone)
        if self._changed > max(FEW, self._count // 8):
            self._sort()

    def remove(self, keys: Int64) -> None:
        """Remove the circles of *keys*, which have one each."""
        slot_of = self._slot_of.writable
        slots = slot_of[keys]
        slot_of[keys] = NO_SLOT
        self._slots.reach[slots[slots != NO_SLOT]] = GONE
        self._changed += len(keys)

    def shrink(self, keys: Int64, radii: Float64) -> None:
        """Shrink the circles of *keys* to *radii*; of a key that comes twice the last counts."""
        slots = self._slot_of.view[keys]
        self._changed += int(np.count_nonzero(np.isinf(self._slots.reach[slots])))
        self._slots.reach[slots] = chords(radii, self.plane)

    def around(self, events: EventColumns, is_wanted: npt.NDArray[np.bool_]) -> tuple[Int64, Int64]:
        """Pairs of an event and a key whose circle contains it, by event; some come twice.

        The locations of an event are its values of the attributes in *is_wanted*, by code.

        Cost: what has its keywords or none, O(1 / 64) each where it is far; and what is found.
        """
        capacity, found = 0, _FIRST_CAPACITY
        while found > capacity:
            capacity = found
            found_event, keys = np.empty((2, capacity), np.int64)
            found = find_circles(
                self._sealed,
                self._sorted,
                self._count,
                self.plane,
                read_only(is_wanted),
                events,
                found_event,
                keys,
            )
        return found_event[:found], keys[:found]

    def _grow(self, slots: int) -> None:
        grown = no_slots(-(-slots // BLOCK) * BLOCK)
        for new, old in zip(grown, self._slots, strict=True):
            new[: len(old)] = old
        self._slots, self._sealed = grown, all_read_only(grown)

    def _sort(self) -> None:
        """Sort circles so that near ones share a block, and leave out those that were removed."""
        old = self._slots
        alive = np.flatnonzero(old.reach[: self._count] >= 0.0)
        locations, endless = old.centre.reshape(-1, 3)[alive], np.isinf(old.reach[alive])
        near = _morton(locations) * ~endless
        order = np.lexsort((old.needed[alive] * endless, near, endless, old.keyword[alive]))
        alive, locations = alive[order], locations[order]
        count, keys = len(alive), old.key[alive]
        fresh = no_slots(-(-count // BLOCK) * BLOCK)
        wants = old.needed[alive], old.keyword[alive]
        _fill(fresh, np.arange(count), locations, old.reach[alive], wants, keys)
        slot_of = GrowingArray(np.int64)
        slot_of.extend(NO_SLOT, len(self._slot_of))
        slot_of.writable[keys] = np.arange(count)
        sealed = all_read_only(fresh)
        self._slots, self._sealed, self._slot_of = fresh, sealed, slot_of
        self._count, self._sorted, self._changed = count, count, 0


def on_sphere(locations: Float64, plane: bool) -> Float64:
    """*locations* (n × 2) in space (n × 3)."""
    if plane:
        return np.column_stack([locations, np.zeros(len(locations))])
    longitude, latitude = np.radians(locations).T
    flat = np.cos(latitude)
    return np.column_stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)])


def chords(radii: Float64, plane: bool) -> Float64:
    """How far a location in a circle can be from its centre, in space: squared, rounded up."""
    reach = radii
    if not plane:
        arc = radii / EARTH_RADIUS
        reach = np.where(arc < np.pi, 2.0 * np.sin(np.minimum(arc, np.pi) / 2.0), np.inf)
    with np.errstate(over="ignore"):
        return np.square(reach * (1.0 + _ROUNDING))


def _fill(
    own: Slots,
    slots: Int64,
    locations: Float64,
    reach: Float64,
    wants: tuple[UInt64, UInt64],
    keys: Int64,
) -> None:
    """Write circles to *slots*, and enlarge what is known of their blocks."""
    block, radius = slots // BLOCK, np.sqrt(reach)[:, None]
    own.centre.reshape(-1, 3)[slots] = locations
    own.needed[slots], own.keyword[slots] = wants
    own.key[slots] = keys
    np.minimum.at(own.low.reshape(-1, 3), block, locations - radius)
    np.maximum.at(own.high.reshape(-1, 3), block, locations + radius)
    np.bitwise_and.at(own.common, block, wants[0])
    own.reach[slots] = reach


def _morton(locations: Float64) -> Int64:
    """Morton numbers: near numbers are near in space."""
    low, high = locations.min(axis=0, initial=np.inf), locations.max(axis=0, initial=-np.inf)
    width = np.where(high > low, high - low, 1.0)
    cell = np.clip((locations - low) / width * (1 << _BITS), 0, (1 << _BITS) - 1).astype(np.int64)
    number = np.zeros(len(locations), np.int64)
    for bit in range(_BITS):
        for axis in range(3):
            number |= (cell[:, axis] >> bit & 1) << (3 * bit + axis)
    return number


@kernel
def find_circles(
    slots: Slots,
    by_keyword: int,
    count: int,
    plane: bool,
    is_wanted: npt.NDArray[np.bool_],
    events: EventColumns,
    found_event: Int64,
    found_key: Int64,
) -> int:
    """The number of pairs; those that do not fit are only counted.

    The first *by_keyword* of *count* slots are sorted and looked up; the others are compared.
    """
    found = 0
    out = (found_event, found_key)
    without = _first_from(slots.keyword, NO_KEYWORD + np.uint64(1), by_keyword)
    for one in range(len(events.until)):
        lacking = ~event_signature(events, one, SIGN_ALL_ATTRIBUTES)
        values = range(events.value_start[one], events.value_start[one + 1])
        for position in values:
            code = events.attribute[position]
            if code < 0 or code >= len(is_wanted) or not is_wanted[code]:
                continue
            at = _in_space(events.low[position], events.high[position], plane)
            found = _look(slots, 0, without, one, at, lacking, out, found)
            for term in range(events.term_start[one], events.term_start[one + 1]):
                wanted = events.term_hash[term]
                found = _look_up(slots, by_keyword, wanted, one, at, lacking, out, found)
            for value in values:
                if events.string[value] >= 0:
                    wanted = events.string_hash[events.string[value]]
                    found = _look_up(slots, by_keyword, wanted, one, at, lacking, out, found)
            found = _look(slots, by_keyword, count, one, at, lacking, out, found)
    return found


@inner_kernel
def _in_space(x: float, y: float, plane: bool) -> tuple[float, float, float]:
    """A location in the coordinates of `Slots.centre`."""
    if plane:
        return x, y, 0.0
    longitude, latitude = math.radians(x), math.radians(y)
    flat = math.cos(latitude)
    return flat * math.cos(longitude), flat * math.sin(longitude), math.sin(latitude)


@inner_kernel
def _look_up(
    slots: Slots,
    by_keyword: int,
    wanted: np.uint64,
    event: int,
    at: tuple[float, float, float],
    lacking: np.uint64,
    out: tuple[Int64, Int64],
    found: int,
) -> int:
    """`_look` at the slots of the keyword *wanted*."""
    if wanted == NO_KEYWORD:
        return found
    start = _first_from(slots.keyword, wanted, by_keyword)
    if start == by_keyword or slots.keyword[start] != wanted:
        return found
    stop = by_keyword
    if wanted + np.uint64(1) != NO_KEYWORD:
        stop = _first_from(slots.keyword, wanted + np.uint64(1), by_keyword)
    return _look(slots, start, stop, event, at, lacking, out, found)


@inner_kernel
def _look(
    slots: Slots,
    start: int,
    stop: int,
    event: int,
    at: tuple[float, float, float],
    lacking: np.uint64,
    out: tuple[Int64, Int64],
    found: int,
) -> int:
    """*found*, and how many of the slots *start* … *stop* contain the location *at*."""
    x, y, z = at
    while start < stop:
        block = start // BLOCK
        last = min(stop, (block + 1) * BLOCK)
        low, high = slots.low[3 * block : 3 * block + 3], slots.high[3 * block : 3 * block + 3]
        is_out = x < low[0] or x > high[0] or y < low[1] or y > high[1]
        is_out = is_out or z < low[2] or z > high[2]
        if is_out or slots.common[block] & lacking != _NO_BITS:
            start = last
            continue
        for slot in range(start, last):
            dx, dy = slots.centre[3 * slot] - x, slots.centre[3 * slot + 1] - y
            dz = slots.centre[3 * slot + 2] - z
            if dx * dx + dy * dy + dz * dz > slots.reach[slot]:
                continue
            if slots.needed[slot] & lacking == _NO_BITS:
                if found < len(out[0]):
                    out[0][found], out[1][found] = event, slots.key[slot]
                found += 1
        start = last
    return found


@inner_kernel
def _first_from(keyword: UInt64, wanted: np.uint64, stop: int) -> int:
    """The first slot before *stop* whose keyword is *wanted* or more."""
    start = 0
    while start < stop:
        middle = (start + stop) >> 1
        if keyword[middle] < wanted:
            start = middle + 1
        else:
            stop = middle
    return start
