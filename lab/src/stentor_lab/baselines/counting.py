"""What counting rivals share: predicates that an event satisfies are counted by alternative.

An alternative whose predicates were all counted is a candidate. Entries are in lists by a key of
their own (TAMA: level and cell; OpIndex: pivot and operator; Propagation: cell), with the bounds
beside them; what has a direct key is found without counting.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import EventColumns, Float64, Int32, Int64, UInt8, UInt64, event_count
from stentor_lab.baselines.dimensions import (
    AXES,
    BoundedPredicates,
    bounded,
    cell_in,
    domains,
    event_bounds,
)
from stentor_lab.baselines.entry_lists import (
    NOT_THERE,
    Entries,
    EntryLists,
    ListArrays,
    find_list,
    mixed,
    outwards,
)
from stentor_lab.baselines.rival import Rival

#: How entries are found: cells of one size, cells of all sizes, operators below a pivot.
CELLS, LEVELS, OPERATORS = 0, 1, 2
#: Cells of a dimension (CELLS), and the finest level (LEVELS): 1,024 cells.
CELL_COUNT, DEEPEST = 64, 10
AT_LEAST, AT_MOST, EQUAL = 0, 1, 2
_REST: Final = np.uint64(3)
_NO_PIVOT: Final = -1


class Dimensions(NamedTuple):
    """The domains of dimensions, and how often each is bounded."""

    low: Float64
    high: Float64
    used: Int64  # when it was measured
    active: UInt8  # whether it is in some list since then


class CountScratch(NamedTuple):
    """Counters of alternatives; those with an old stamp are void."""

    stamp: Int32
    counted: Int32
    needed: Int32


class CountingRival(Rival):
    """Counts predicates that hold."""

    scheme: ClassVar[int]

    def __init__(self) -> None:
        super().__init__()
        self._choose(np.zeros(0, np.int64))

    def _choose(self, alternatives: Int64) -> None:
        self._lists = EntryLists()
        self._direct = EntryLists(bare=True)
        self._needed = np.zeros(0, np.int32)
        columns = self.subscriptions.columns
        count = AXES * (int(columns.attribute.max(initial=0)) + 1)
        found = bounded(columns, alternatives)
        used = np.bincount(found.dimension, minlength=count)
        low, high = domains(found, count)
        self._dimensions = Dimensions(low, high, used, np.zeros(count, np.uint8))

    def _insert(self, alternatives: Int64) -> None:
        counted, direct, needed = self._entries(alternatives)
        most = int(alternatives.max()) + 1
        if most > len(self._needed):
            wide = np.zeros(max(most, 2 * len(self._needed)), np.int32)
            wide[: len(self._needed)] = self._needed
            self._needed = wide
        self._needed[alternatives] = needed
        self._lists.add(counted)
        self._direct.add(direct)

    def _remove(self, alternatives: Int64) -> None:
        if len(alternatives):
            counted, direct, _ = self._entries(alternatives)
            self._lists.remove(counted)
            self._direct.remove(direct)

    def _entries(self, alternatives: Int64) -> tuple[Entries, Entries, Int32]:
        """What is counted, what is found directly, and how many must be counted of each."""
        bounds = self._known(bounded(self.subscriptions.columns, alternatives))
        has_key, key, whole = self._direct_keys(bounds, len(alternatives))
        rest = np.ones(len(alternatives), np.bool_)
        rest[bounds.of] = False
        rest |= has_key
        keys = np.concatenate((np.where(has_key, key, _REST)[rest], whole[has_key]))
        items = np.concatenate((alternatives[rest], alternatives[has_key]))
        nothing = np.zeros(0, np.uint64), np.zeros(0, np.float32)
        direct = Entries(keys, items, *nothing)
        counts = ~has_key[bounds.of]
        self._dimensions.active[bounds.dimension] = 1
        some = bounds.only(counts)
        needed = np.bincount(some.of, minlength=len(alternatives)).astype(np.int32)
        if self.scheme == OPERATORS:
            needed *= 2  # at least, and at most
        entry, keys = self._counted_keys(some, len(alternatives))
        least, most = outwards(some.low[entry], some.high[entry])
        box = np.stack((least, least, most, most), axis=1).reshape(-1)
        sign = np.zeros(len(entry), np.uint64)
        return Entries(keys, alternatives[some.of[entry]], sign, box), direct, needed

    def _known(self, bounds: BoundedPredicates) -> BoundedPredicates:
        """Those of dimensions that were there when domains were measured."""
        return bounds.only(bounds.dimension < len(self._dimensions.low))

    def _direct_keys(
        self, bounds: BoundedPredicates, count: int
    ) -> tuple[np.ndarray[Any, Any], UInt64, UInt64]:
        """Which alternatives are found by one key alone, the key, and that of its dimension."""
        return np.zeros(count, np.bool_), np.zeros(count, np.uint64), np.zeros(count, np.uint64)

    def _counted_keys(self, bounds: BoundedPredicates, count: int) -> tuple[Int64, UInt64]:
        pivot = np.full(count, _NO_PIVOT)
        if self.scheme == OPERATORS and len(bounds.of):
            rare = np.lexsort((self._dimensions.used[bounds.dimension], bounds.of))
            first = np.unique(bounds.of[rare], return_index=True)[1]
            pivot[bounds.of[rare[first]]] = bounds.dimension[rare[first]]
        capacity, found = 0, max(16, 8 * len(bounds.of))
        while found > capacity:
            capacity = found
            entry, key = np.empty(capacity, np.int64), np.empty(capacity, np.uint64)
            found = write_keys(bounds, self._dimensions, self.scheme, pivot, entry, key)
        return entry[:found], key[:found]

    def _find(self, events: EventColumns, event: Int64, alternative: Int64) -> int:
        found, _ = self._counted(events, event, alternative)
        return found

    def _counted(self, events: EventColumns, event: Int64, alternative: Int64) -> tuple[int, int]:
        size = len(self._needed)
        scratch = CountScratch(np.zeros(size, np.int32), np.zeros(size, np.int32), self._needed)
        looked = np.zeros(1, np.int64)
        found = count_events(
            self._lists.arrays,
            self._direct.arrays,
            self._dimensions,
            self.scheme,
            events,
            scratch,
            looked,
            event,
            alternative,
        )
        return found, int(looked[0])

    def stats(self) -> dict[str, Any]:
        inherited = super().stats()
        beside = self._lists.nbytes + self._direct.nbytes + self._needed.nbytes
        return {**inherited, "bytes": inherited["bytes"] + beside}

    def counted_work(self, events: EventColumns) -> dict[str, float]:
        nothing = np.zeros(0, np.int64)
        looked = self._counted(events, nothing, nothing)[1]
        return {
            **super().counted_work(events),
            "entries/event": looked / max(1, event_count(events)),
        }


@kernel_inline
def dimension_key(dimension: int, part: int, which: int) -> np.uint64:
    """The key of a part of a dimension."""
    return mixed(np.uint64(dimension * 64 + part + 17), np.uint64(which + 5))


@kernel
def write_keys(
    bounds: BoundedPredicates,
    dimensions: Dimensions,
    scheme: int,
    pivot: Int64,
    entry: Int64,
    key: UInt64,
) -> int:
    """The lists of each bound; those that do not fit are only counted."""
    found = 0
    for one in range(len(bounds.of)):
        dimension = bounds.dimension[one]
        low, high = bounds.low[one], bounds.high[one]
        least, most = dimensions.low[dimension], dimensions.high[dimension]
        if scheme == OPERATORS:
            for operator in range(2):
                if found < len(entry):
                    entry[found] = one
                    key[found] = dimension_key(dimension, operator, pivot[bounds.of[one]])
                found += 1
            continue
        cells = CELL_COUNT if scheme == CELLS else 1 << DEEPEST
        start, stop = cell_in(low, least, most, cells), cell_in(high, least, most, cells) + 1
        level = 0 if scheme == CELLS else DEEPEST
        while start < stop:
            width = 1
            if scheme == LEVELS:  # the largest cell that begins here and ends before the stop
                level = DEEPEST
                while level > 0 and start % (2 * width) == 0 and start + 2 * width <= stop:
                    width, level = 2 * width, level - 1
            if found < len(entry):
                entry[found], key[found] = one, dimension_key(dimension, level, start // width)
            found += 1
            start += width
    return found


@kernel
def count_events(
    lists: ListArrays,
    direct: ListArrays,
    dimensions: Dimensions,
    scheme: int,
    events: EventColumns,
    scratch: CountScratch,
    looked: Int64,
    event: Int64,
    alternative: Int64,
) -> int:
    """Pairs that may match; those that do not fit are only counted."""
    found = 0
    for one in range(len(events.until)):
        found = emit_list(direct, _REST, one, event, alternative, found)
        for value in range(events.value_start[one], events.value_start[one + 1]):
            for axis in range(AXES):
                dimension = events.attribute[value] * AXES + axis
                if dimension >= len(dimensions.low) or dimensions.active[dimension] == 0:
                    continue
                low, high = event_bounds(events, value, axis)
                least, most = dimensions.low[dimension], dimensions.high[dimension]
                key = equal_key(dimension, low) if low == high else whole_key(dimension)
                found = emit_list(direct, key, one, event, alternative, found)
                if scheme == OPERATORS:
                    for other in range(events.value_start[one], events.value_start[one + 1]):
                        for along in range(AXES):
                            pivot = events.attribute[other] * AXES + along
                            for operator in range(2):
                                found = count_list(
                                    lists,
                                    dimension_key(dimension, operator, pivot),
                                    operator,
                                    low,
                                    high,
                                    one,
                                    scratch,
                                    looked,
                                    event,
                                    alternative,
                                    found,
                                )
                    continue
                for level in range(DEEPEST + 1 if scheme == LEVELS else 1):
                    cells = CELL_COUNT if scheme == CELLS else 1 << level
                    for cell in range(
                        cell_in(low, least, most, cells), cell_in(high, least, most, cells) + 1
                    ):
                        found = count_list(
                            lists,
                            dimension_key(dimension, level, cell),
                            EQUAL,
                            low,
                            high,
                            one,
                            scratch,
                            looked,
                            event,
                            alternative,
                            found,
                        )
    return found


@inner_kernel
def count_list(
    lists: ListArrays,
    key: np.uint64,
    operator: int,
    low: float,
    high: float,
    one: int,
    scratch: CountScratch,
    looked: Int64,
    event: Int64,
    alternative: Int64,
    found: int,
) -> int:
    """Count the entries of a list that low … high satisfies; emit those that are complete."""
    which = find_list(lists, key)
    if which == NOT_THERE:
        return found
    start, box = lists.start[which], lists.box
    looked[0] += lists.used[which]
    for entry in range(start, start + lists.used[which]):
        if operator != AT_MOST and high < box[4 * entry]:
            continue
        if operator != AT_LEAST and low > box[4 * entry + 2]:
            continue
        item = lists.item[entry]
        if scratch.stamp[item] != one + 1:
            scratch.stamp[item], scratch.counted[item] = one + 1, 0
        scratch.counted[item] += 1
        if scratch.counted[item] == scratch.needed[item]:
            if found < len(event):
                event[found], alternative[found] = one, item
            found += 1
    return found


@inner_kernel
def emit_list(
    lists: ListArrays, key: np.uint64, one: int, event: Int64, alternative: Int64, found: int
) -> int:
    """All of a list are candidates."""
    which = find_list(lists, key)
    if which == NOT_THERE:
        return found
    start = lists.start[which]
    for entry in range(start, start + lists.used[which]):
        if found < len(event):
            event[found], alternative[found] = one, lists.item[entry]
        found += 1
    return found


@kernel_inline
def equal_key(dimension: int, value: float) -> np.uint64:
    """The key of one value of a dimension."""
    return mixed(np.uint64(dimension + 11), np.uint64(hash_of(value)))


@kernel_inline
def whole_key(dimension: int) -> np.uint64:
    """The key of all values of a dimension: what a range looks up."""
    return mixed(np.uint64(dimension + 11), ~np.uint64(0))


@kernel_inline
def hash_of(value: float) -> int:
    """A whole number for *value*: equal ones have equal numbers."""
    clipped = min(max(value * 1024.0, -4e18), 4e18)
    return int(clipped)


@kernel
def equal_keys(dimension: Int64, value: Float64, key: UInt64, whole: UInt64) -> None:
    """`equal_key` and `whole_key` of each."""
    for position in range(len(key)):
        key[position] = equal_key(dimension[position], value[position])
        whole[position] = whole_key(dimension[position])
