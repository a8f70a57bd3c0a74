"""The k-index: inverted lists of attribute and value, by how many predicates an expression has.

A range is enumerated: an entry for each of its whole values. The conjunction algorithm goes through
the lists of an event side by side, in order of rows, and skips what cannot be in enough of them.

Paper: Whang, Garcia-Molina, Brower, Shanmugasundaram, Vassilvitskii, Vee, Yerneni: Indexing Boolean
expressions (2009). All expressions are known in advance; what is removed, the verifier passes over.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel
from stentor.encoding.columns import EventColumns, Int64, UInt64, event_count
from stentor_lab.baselines.dimensions import AXES, BoundedPredicates, bounded
from stentor_lab.baselines.entry_lists import (
    NOT_THERE,
    Entries,
    EntryLists,
    ListArrays,
    find_list,
    mixed,
)
from stentor_lab.baselines.rival import Rival

#: Values of a range that are enumerated; longer ones are left to the verifier.
LONGEST: Final = 64
#: Beyond this a double has no fractions: nothing is enumerated there.
FARTHEST: Final = float(1 << 52)
#: Predicates that count, at most; and lists of one event.
MOST_PREDICATES, MOST_LISTS = 64, 4096
_REST: Final = np.uint64(3)


class ListScratch(NamedTuple):
    """The lists of an event and how far each has come, in order of what comes next."""

    position: Int64  # (lists,)
    stop: Int64  # (lists,)


class KIndex(Rival):
    """Lists by size, attribute and value."""

    name = "k_index"

    def __init__(self) -> None:
        super().__init__()
        self._choose(np.zeros(0, np.int64))

    def _choose(self, alternatives: Int64) -> None:
        self._lists = EntryLists(bare=True)
        self._last = -1  # lists are in order: what came before is not inserted again
        self._sizes = np.zeros(MOST_PREDICATES + 1, np.int64)

    def _insert(self, alternatives: Int64) -> None:
        fresh = alternatives[alternatives > self._last]
        if not len(fresh):
            return  # it moved: locations are no keys here
        self._last = int(fresh.max())
        found = bounded(self.subscriptions.columns, fresh, locations=False)
        with np.errstate(invalid="ignore"):
            low, high = np.floor(found.low), np.floor(found.high)
            counts = (high - low < LONGEST) & (low > -FARTHEST) & (high < FARTHEST) & (low <= high)
        # An attribute that is asked for twice counts once.
        first = np.ones(len(found.of), np.bool_)
        first[1:] = (found.of[1:] != found.of[:-1]) | (found.dimension[1:] != found.dimension[:-1])
        kept = np.flatnonzero(counts & first)
        some = found.only(kept)
        size = np.minimum(np.bincount(some.of, minlength=len(fresh)), MOST_PREDICATES)
        over = np.arange(len(some.of)) - np.searchsorted(some.of, some.of) >= MOST_PREDICATES
        some = some.only(~over)
        self._sizes += np.bincount(size, minlength=MOST_PREDICATES + 1)
        capacity, count = 0, 16 * len(fresh)
        while count > capacity:
            capacity = count
            of, key = np.empty(capacity, np.int64), np.empty(capacity, np.uint64)
            count = enumerate_values(some, size.astype(np.int64), of, key)
        rest = np.flatnonzero(size == 0)
        items = np.concatenate((fresh[of[:count]], fresh[rest]))
        keys = np.concatenate((key[:count], np.full(len(rest), _REST)))
        nothing = np.zeros(0, np.uint64), np.zeros(0, np.float32)
        self._lists.add(Entries(keys, items, *nothing))

    def _find(self, events: EventColumns, event: Int64, alternative: Int64) -> int:
        return self._searched(events, event, alternative)[0]

    def _searched(self, events: EventColumns, event: Int64, alternative: Int64) -> tuple[int, int]:
        scratch = ListScratch(np.empty(MOST_LISTS, np.int64), np.empty(MOST_LISTS, np.int64))
        looked = np.zeros(1, np.int64)
        found = match_conjunctions(
            self._lists.arrays, self._sizes, self._last, events, scratch, looked, event, alternative
        )
        return found, int(looked[0])

    def stats(self) -> dict[str, Any]:
        inherited = super().stats()
        return {**inherited, "bytes": inherited["bytes"] + self._lists.nbytes}

    def counted_work(self, events: EventColumns) -> dict[str, float]:
        nothing = np.zeros(0, np.int64)
        looked = self._searched(events, nothing, nothing)[1]
        return {
            **super().counted_work(events),
            "entries/event": looked / max(1, event_count(events)),
        }


@inner_kernel
def value_key(size: int, dimension: int, value: int) -> np.uint64:
    """The key of one value for expressions of *size* predicates."""
    return mixed(np.uint64(dimension * (MOST_PREDICATES + 1) + size + 7), np.uint64(value))


@kernel
def enumerate_values(bounds: BoundedPredicates, size: Int64, of: Int64, key: UInt64) -> int:
    """The key of each whole value of each bound; those that do not fit are only counted."""
    found = 0
    for one in range(len(bounds.of)):
        for value in range(int(np.floor(bounds.low[one])), int(np.floor(bounds.high[one])) + 1):
            if found < len(of):
                of[found] = bounds.of[one]
                key[found] = value_key(size[bounds.of[one]], bounds.dimension[one], value)
            found += 1
    return found


@kernel
def match_conjunctions(
    lists: ListArrays,
    sizes: Int64,
    last: int,
    events: EventColumns,
    scratch: ListScratch,
    looked: Int64,
    event: Int64,
    alternative: Int64,
) -> int:
    """Pairs that may match; those that do not fit are only counted."""
    found = 0
    for one in range(len(events.until)):
        if is_too_wide(events, one):
            for item in range(last + 1):  # a long range has too many values to look up
                if found < len(event):
                    event[found], alternative[found] = one, item
                found += 1
            continue
        which = find_list(lists, _REST)
        if which != NOT_THERE:
            start = lists.start[which]
            for entry in range(start, start + lists.used[which]):
                if found < len(event):
                    event[found], alternative[found] = one, lists.item[entry]
                found += 1
        for size in range(1, len(sizes)):
            if sizes[size] > 0:
                found = match_size(
                    lists, size, events, one, scratch, looked, event, alternative, found
                )
    return found


@inner_kernel
def is_too_wide(events: EventColumns, one: int) -> bool:
    """Whether the event has a range of too many values, or so many values that lists overflow."""
    values = 0
    for value in range(events.value_start[one], events.value_start[one + 1]):
        low, high = events.low[value], events.high[value]
        if low < high:
            if not high - low < LONGEST or low < -FARTHEST or high > FARTHEST:
                return True
            values += LONGEST
        values += 1
    return values + 2 > MOST_LISTS


@inner_kernel
def match_size(
    lists: ListArrays,
    size: int,
    events: EventColumns,
    one: int,
    scratch: ListScratch,
    looked: Int64,
    event: Int64,
    alternative: Int64,
    found: int,
) -> int:
    """The conjunction algorithm for expressions of *size* predicates."""
    position, stop = scratch.position, scratch.stop
    count = 0
    for value in range(events.value_start[one], events.value_start[one + 1]):
        low, high = events.low[value], events.high[value]
        if low > high:
            low, high = high, low
        if not low > -FARTHEST or not high < FARTHEST or not high - low <= LONGEST:
            continue  # a point, whose coordinates are no values; or beyond what is enumerated
        for whole in range(int(np.floor(low)), int(np.floor(high)) + 1):
            which = find_list(lists, value_key(size, events.attribute[value] * AXES, whole))
            if which != NOT_THERE and lists.used[which] > 0 and count < len(position):
                position[count] = lists.start[which]
                stop[count] = lists.start[which] + lists.used[which]
                count += 1
    if count < size:
        return found
    sort_lists(lists, position, stop, count)
    while count >= size:
        here, there = lists.item[position[0]], lists.item[position[size - 1]]
        target = there
        if here == there:
            if found < len(event):
                event[found], alternative[found] = one, here
            found += 1
            target = here + 1
        for number in range(count if here == there else size - 1):
            while position[number] < stop[number] and lists.item[position[number]] < target:
                position[number] += 1
                looked[0] += 1
        kept = 0
        for number in range(count):
            if position[number] < stop[number]:
                position[kept], stop[kept] = position[number], stop[number]
                kept += 1
        count = kept
        sort_lists(lists, position, stop, count)
    return found


@inner_kernel
def sort_lists(lists: ListArrays, position: Int64, stop: Int64, count: int) -> None:
    """Sort lists by what comes next: by insertion, for they are nearly sorted."""
    for number in range(1, count):
        at, end = position[number], stop[number]
        item, hole = lists.item[at], number
        while hole > 0 and lists.item[position[hole - 1]] > item:
            position[hole], stop[hole] = position[hole - 1], stop[hole - 1]
            hole -= 1
        position[hole], stop[hole] = at, end
