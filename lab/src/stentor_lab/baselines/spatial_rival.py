"""What the spatial-keyword rivals share: lists by keyword and cell, for both directions.

Subscriptions are in the lists of their rarest keywords and their cells; live events in those of all
their terms and all their cells, where a subscription finds them. *first* says which of the two is
looked up first: where there is nothing under it, nothing else is looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int32,
    Int64,
    MatchPairs,
    SubscriptionColumns,
    UInt8,
    UInt64,
    event_count,
    read_only,
    subscription_count,
)
from stentor.encoding.kinds import NEGATED, REGIONS, are_among
from stentor.encoding.ragged import events_between
from stentor.index.live import SIGN_ALL_ATTRIBUTES, signatures_of
from stentor.index.signature import alternative_signature
from stentor.index.verify.predicates import alternative_holds
from stentor.index.verify.scratch import EventScratch, load_event, scratch_for
from stentor_lab.baselines.entry_lists import (
    NOT_THERE,
    Entries,
    EntryLists,
    ListArrays,
    find_list,
    is_ruled_out,
    mixed,
    outwards,
)
from stentor_lab.baselines.rival import Rival
from stentor_lab.baselines.spatial_keys import (
    ANY,
    LEVELS,
    KeyChoice,
    boxes_of,
    cell_keys,
    cells_of_event,
    keyword_keys,
)


@dataclass(frozen=True)
class SpatialLayout:
    """How a spatial-keyword rival is laid out."""

    keywords_first: bool
    grid: int = 0  # cells a side; 0: a quadtree
    copy: float = 0.0  # what a copy in a quadtree costs, in verifications an event


#: Beside what is looked up first: it is there.
PRESENT: Final = np.uint64(0)


class SpatialRival(Rival):
    """Lists by keyword and cell."""

    layout: ClassVar[SpatialLayout]

    def __init__(self) -> None:
        super().__init__()
        self._lists, self._messages = EntryLists(), EntryLists()
        self._marks: Entries
        self._choice = self._measured(self.subscriptions.columns, np.zeros(0, np.int64))

    # What is measured.

    def _choose(self, alternatives: Int64) -> None:
        self._choice = self._measured(self.subscriptions.columns, alternatives)
        self._lists, self._messages = EntryLists(), EntryLists()
        rows = self.live.current_rows()
        if len(rows):
            self._messages.add(self._event_entries(self.live.columns, rows))

    def _measured(self, columns: SubscriptionColumns, alternatives: Int64) -> KeyChoice:
        is_location = are_among(columns.kind, REGIONS) & (columns.kind & NEGATED == 0)
        attributes = columns.attribute[is_location]
        attribute = int(np.bincount(attributes).argmax()) if len(attributes) else -1
        box = np.empty(4 * len(alternatives))
        boxes_of(columns, alternatives, attribute, box)
        sides = box.reshape(-1, 4)
        sides = sides[np.isfinite(sides).all(axis=1)]
        x, y = (sides[:, axis] / 2 + sides[:, axis + 2] / 2 for axis in (0, 1))
        west, south = (float(one.min(initial=0.0)) for one in (sides[:, 0], sides[:, 1]))
        if len(sides):
            west, south = float(sides[:, 0].min()), float(sides[:, 1].min())
        wide = float(sides[:, 2].max(initial=west)) - west
        high = float(sides[:, 3].max(initial=south)) - south
        terms, events = columns.string_hash, max(1, len(alternatives))
        if self.history is not None and event_count(self.history):
            at = self.history.attribute == attribute
            if at.any():
                x, y = self.history.low[at], self.history.high[at]
            terms, events = self.history.term_hash, event_count(self.history)
        term, counts = np.unique(terms, return_counts=True)
        space = np.array([west, south, wide, high])
        by_keyword = 1.0 if self.layout.keywords_first else 0.0
        return KeyChoice(
            np.array([attribute]),
            space,
            term,
            np.minimum(1.0, counts / events),
            _chances(x, y, space) if self.layout.grid == 0 else np.zeros(0),
            np.array([self.layout.grid]),
            np.array([self.layout.copy, by_keyword]),
        )

    # Subscriptions.

    def _insert(self, alternatives: Int64) -> None:
        self._lists.add(self._entries(self.subscriptions.columns, alternatives))
        self._lists.add(self._marks)

    def _remove(self, alternatives: Int64) -> None:
        self._lists.remove(self._entries(self.subscriptions.columns, alternatives))

    def _entries(self, columns: SubscriptionColumns, alternatives: Int64) -> Entries:
        """The entries of *alternatives*."""
        alternatives = np.ascontiguousarray(alternatives, np.int64)
        box = np.empty(4 * len(alternatives))
        boxes_of(columns, alternatives, int(self._choice.attribute[0]), box)
        sign = np.empty(len(alternatives), np.uint64)
        sign_alternatives(columns, alternatives, SIGN_ALL_ATTRIBUTES, sign)
        of, keyword = _filled(
            lambda *arrays: keyword_keys(columns, alternatives, self._choice, *arrays),
            len(alternatives),
        )
        pair, cell = _filled(
            lambda *arrays: cell_keys(box, of, keyword, self._choice, *arrays), 4 * len(of)
        )
        position = of[pair]
        sides = box.reshape(-1, 4)[position]
        least, most = outwards(sides[:, :2], sides[:, 2:])
        return Entries(
            self._keys(keyword[pair], cell),
            alternatives[position],
            sign[position],
            np.concatenate((least, most), axis=1).reshape(-1),
        )

    def _keys(self, keyword: UInt64, cell: UInt64) -> UInt64:
        first, second = (keyword, cell) if self.layout.keywords_first else (cell, keyword)
        key = np.empty(len(first), np.uint64)
        mix_all(first, second, key)
        some = np.unique(first)
        mark = np.empty(len(some), np.uint64)
        mix_all(some, np.full(len(some), PRESENT), mark)
        fresh = np.zeros(len(some), np.uint8)
        find_new(self._lists.arrays, mark, fresh)
        mark = mark[fresh != 0]
        nothing = np.zeros(len(mark), np.int64)
        self._marks = Entries(
            mark, nothing, nothing.astype(np.uint64), np.zeros(4 * len(mark), np.float32)
        )
        return key

    def _find(self, events: EventColumns, event: Int64, alternative: Int64) -> int:
        return match_lists(
            self._lists.arrays,
            self._choice,
            self.layout.keywords_first,
            events,
            signatures_of(events),
            np.empty(LEVELS + 1, np.uint64),
            np.empty(2),
            event,
            alternative,
        )

    # Live events.

    def _hold_events(self, first: int) -> None:
        rows = np.arange(first, self.live.count)
        self._messages.add(self._event_entries(self.live.columns, rows))

    def _drop_events(self, rows: Int64) -> None:
        self._messages.remove(self._event_entries(self.live.columns, rows))

    def _renumbered(self, kept: Int64, count: int) -> None:
        self._messages = EntryLists()
        self._hold_events(0)

    def _event_entries(self, events: EventColumns, rows: Int64) -> Entries:
        terms = int(np.diff(events.term_start)[rows].sum()) if len(rows) else 0
        room = (terms + len(rows)) * (LEVELS + 1)
        key, item = np.empty(room, np.uint64), np.empty(room, np.int64)
        box = np.empty(4 * room)
        scratch = np.empty(LEVELS + 1, np.uint64), np.empty(2)
        found = event_keys(
            events, rows, self._choice, self.layout.keywords_first, *scratch, key, item, box
        )
        least, most = outwards(*np.split(box[: 4 * found].reshape(-1, 4), 2, axis=1))
        sign = np.zeros(len(events.until), np.uint64)
        if found == 0:
            return Entries(key[:0], item[:0], sign[:0], np.zeros(0, np.float32))
        low, high = int(rows.min()), int(rows.max()) + 1
        sign[low:high] = signatures_of(events_between(events, low, high))
        sides = np.concatenate((least, most), axis=1).reshape(-1)
        return Entries(key[:found], item[:found], sign[item[:found]], sides)

    def _match_live(self, columns: SubscriptionColumns) -> MatchPairs:
        """For each subscription its live events, from the lists of its keywords and cells."""
        alternatives = np.arange(len(columns.predicate_start) - 1)
        entries = self._entries(columns, alternatives)
        pairs = _filled(
            lambda *arrays: find_messages(self._messages.arrays, entries, *arrays),
            16 * len(alternatives) + 64,
            np.int64,
        )
        return verified_live(columns, self.live.columns, self.live.hidden, *pairs)

    def _check_live(self) -> None:
        assert self._messages.entry_count >= self.live.current_count

    # Figures.

    def stats(self) -> dict[str, Any]:
        inherited = super().stats()
        beside = self._lists.nbytes + self._messages.nbytes
        return {
            **inherited,
            "bytes": inherited["bytes"] + beside,
            "copies": self._lists.entry_count / max(1, self.subscriptions.current_count),
        }

    def counted_work(self, events: EventColumns) -> dict[str, float]:
        looked = np.zeros(1, np.int64)
        count_entries(
            self._lists.arrays,
            self._choice,
            self.layout.keywords_first,
            events,
            np.empty(LEVELS + 1, np.uint64),
            np.empty(2),
            looked,
        )
        return {
            **super().counted_work(events),
            "entries/event": int(looked[0]) / max(1, event_count(events)),
        }


def _chances(x: Float64, y: Float64, space: Float64) -> Float64:
    """The share of points in each cell of each level of a quadtree over *space*."""
    parts = []
    for level in range(LEVELS + 1):
        side = 1 << level
        lines = []
        for value, start, width in ((x, space[0], space[2]), (y, space[1], space[3])):
            share = (value - start) / width if width > 0 else np.zeros(len(value))
            lines.append(np.clip(np.nan_to_num(share) * side, 0, side - 1).astype(np.int64))
        counts = np.bincount(lines[1] * side + lines[0], minlength=side * side)
        parts.append(counts / max(1, len(x)))
    return np.concatenate(parts)


def _filled(fill: Any, room: int, kind: Any = np.uint64) -> tuple[Any, Any]:
    """Two arrays that *fill* fills, made larger until all fits."""
    room = max(16, room)
    while True:
        arrays = np.empty(room, np.int64), np.empty(room, kind)
        found = fill(*arrays)
        if found <= room:
            return arrays[0][:found], arrays[1][:found]
        room = found


@kernel
def sign_alternatives(
    columns: SubscriptionColumns, alternatives: Int64, first_of: Int32, signature: UInt64
) -> None:
    """The signature of each of *alternatives*."""
    for position in range(len(alternatives)):
        signature[position] = alternative_signature(columns, alternatives[position], first_of)


@kernel
def find_new(lists: ListArrays, key: UInt64, is_new: UInt8) -> None:
    """1 where there is no list of a key yet."""
    for position in range(len(key)):
        is_new[position] = find_list(lists, key[position]) == NOT_THERE


@kernel
def mix_all(first: UInt64, second: UInt64, key: UInt64) -> None:
    """One key for each pair."""
    for position in range(len(key)):
        key[position] = mixed(first[position], second[position])


@kernel
def match_lists(
    lists: ListArrays,
    choice: KeyChoice,
    keywords_first: bool,
    events: EventColumns,
    signature: UInt64,
    cell: UInt64,
    at: Float64,
    event: Int64,
    alternative: Int64,
) -> int:
    """Pairs that may match; those that do not fit are only counted."""
    found = 0
    for one in range(len(signature)):
        cells = cells_of_event(events, one, choice, cell, at)
        lacking = ~signature[one]
        start, stop = events.term_start[one], events.term_start[one + 1]
        words = stop - start + 1
        for outer in range(words if keywords_first else cells):
            first_key = cell[outer]
            if keywords_first:
                first_key = ANY if outer == 0 else events.term_hash[start + outer - 1]
            if find_list(lists, mixed(first_key, PRESENT)) == NOT_THERE:
                continue
            for inner in range(cells if keywords_first else words):
                second = cell[inner] if keywords_first else ANY
                if not keywords_first and inner > 0:
                    second = events.term_hash[start + inner - 1]
                which = find_list(lists, mixed(first_key, second))
                if which == NOT_THERE:
                    continue
                first = lists.start[which]
                for entry in range(first, first + lists.used[which]):
                    if is_ruled_out(lists, entry, lacking, at[0], at[1]):
                        continue
                    if found < len(event):
                        event[found], alternative[found] = one, lists.item[entry]
                    found += 1
    return found


@kernel
def count_entries(
    lists: ListArrays,
    choice: KeyChoice,
    keywords_first: bool,
    events: EventColumns,
    cell: UInt64,
    at: Float64,
    looked: Int64,
) -> None:
    """How many entries are looked at."""
    for one in range(len(events.until)):
        cells = cells_of_event(events, one, choice, cell, at)
        start, stop = events.term_start[one], events.term_start[one + 1]
        words = stop - start + 1
        for outer in range(words if keywords_first else cells):
            first_key = cell[outer]
            if keywords_first:
                first_key = ANY if outer == 0 else events.term_hash[start + outer - 1]
            if find_list(lists, mixed(first_key, PRESENT)) == NOT_THERE:
                continue
            for inner in range(cells if keywords_first else words):
                second = cell[inner] if keywords_first else ANY
                if not keywords_first and inner > 0:
                    second = events.term_hash[start + inner - 1]
                which = find_list(lists, mixed(first_key, second))
                if which != NOT_THERE:
                    looked[0] += lists.used[which]


@kernel
def event_keys(
    events: EventColumns,
    rows: Int64,
    choice: KeyChoice,
    keywords_first: bool,
    cell: UInt64,
    at: Float64,
    key: UInt64,
    item: Int64,
    box: Float64,
) -> int:
    """The lists that live events are in: all their terms in all their cells."""
    found = 0
    for row in rows:
        cells = cells_of_event(events, row, choice, cell, at)
        start, stop = events.term_start[row], events.term_start[row + 1]
        for word in range(start - 1, stop):
            term = ANY if word < start else events.term_hash[word]
            for number in range(cells):
                one = cell[number]
                key[found] = mixed(term, one) if keywords_first else mixed(one, term)
                item[found] = row
                for side in range(4):
                    box[4 * found + side] = at[side & 1]
                found += 1
    return found


@kernel
def find_messages(lists: ListArrays, asked: Entries, event: Int64, alternative: Int64) -> int:
    """Live events that asked entries may want; those that do not fit are only counted."""
    found = 0
    for position in range(len(asked.key)):
        which = find_list(lists, asked.key[position])
        if which == NOT_THERE:
            continue
        first, box = lists.start[which], 4 * position
        for entry in range(first, first + lists.used[which]):
            if asked.sign[position] & ~lists.sign[entry] != np.uint64(0):
                continue
            x, y = lists.box[4 * entry], lists.box[4 * entry + 1]
            far_x, far_y = lists.box[4 * entry + 2], lists.box[4 * entry + 3]
            if far_x < asked.box[box] or far_y < asked.box[box + 1]:
                continue
            if x > asked.box[box + 2] or y > asked.box[box + 3]:
                continue
            if found < len(event):
                event[found], alternative[found] = lists.item[entry], asked.item[position]
            found += 1
    return found


def verified_live(
    columns: SubscriptionColumns,
    events: EventColumns,
    hidden: UInt8,
    event: Int64,
    alternative: Int64,
) -> MatchPairs:
    """Of pairs of a live event and an alternative those that match, by subscription."""
    order = np.lexsort((alternative, event))
    holds = np.zeros(len(order), np.uint8)
    sorted_event = np.ascontiguousarray(event[order])
    sorted_alternative = np.ascontiguousarray(alternative[order])
    verify_pairs(
        columns,
        events,
        hidden,
        scratch_for(events),
        read_only(sorted_event),
        read_only(sorted_alternative),
        holds,
    )
    kept = holds != 0
    row = np.searchsorted(columns.alternative_start, sorted_alternative[kept], side="right") - 1
    width = max(1, len(events.until))
    pairs = np.unique(row * width + sorted_event[kept])
    starts = np.searchsorted(pairs, np.arange(subscription_count(columns) + 1) * width)
    return MatchPairs(starts.astype(np.int64), pairs % width)


@kernel
def verify_pairs(
    columns: SubscriptionColumns,
    events: EventColumns,
    hidden: UInt8,
    scratch: EventScratch,
    event: Int64,
    alternative: Int64,
    holds: UInt8,
) -> None:
    """1 where a pair matches; pairs come in the order of events."""
    spread = -1
    for position in range(len(event)):
        one = event[position]
        if hidden[one] != 0:
            continue
        if one != spread:
            load_event(events, one, scratch)
            spread = one
        if alternative_holds(columns, alternative[position], scratch):
            holds[position] = 1
