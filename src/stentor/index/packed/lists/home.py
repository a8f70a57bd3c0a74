"""The lists as a home."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from stentor._jit import direct
from stentor.encoding.columns import (
    EventColumns,
    Int64,
    SubscriptionColumns,
    all_read_only,
    read_only,
)
from stentor.index.packed.homes import Found, HomeArrays
from stentor.index.packed.lists.build import ListArrays, build_lists
from stentor.index.packed.lists.check import check_lists
from stentor.index.packed.lists.layout import (
    COUNT,
    FIELDS,
    GROUP,
    LACKS_HIGH,
    LACKS_LOW,
    LONG,
    MOST_MET,
    STACK,
    Granules,
    ListAxes,
    ListKeys,
    ListScratch,
)
from stentor.index.packed.lists.match import match_lists
from stentor.index.packed.lists.move import Movers, move_lanes, movers_of

_match_one = direct(match_lists)


class Lists:
    """Alternatives in lists by their rarest key; read-only but for what moves with subscribers.

    What is removed stays until the lists are built anew: the index knows that it is gone.
    """

    name = "lists"

    def __init__(self, arrays: ListArrays, count: int, movers: Movers | None = None) -> None:
        """Lists over *arrays*; without *movers* nothing in them can move."""
        self.arrays_of = arrays._replace(granules=all_read_only(arrays.granules))
        self.movers = movers
        self._written = arrays.granules
        self._count = count
        self._has_moved = False
        self._scratches: list[ListScratch] = []
        self._one: ListScratch | None = None

    @classmethod
    def build(cls, columns: SubscriptionColumns, alternatives: Int64) -> Self:
        """Cost: about 1 µs for each."""
        arrays = build_lists(columns, alternatives)
        given = read_only(np.ascontiguousarray(alternatives, np.int64))
        movers = movers_of(columns, given, arrays.keys.lists, arrays.granules)
        return cls(arrays, len(alternatives), movers if len(movers.lane) else None)

    @property
    def count(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        bundles = (*self.arrays_of, self.movers or ())
        return sum(array.nbytes for bundle in bundles for array in bundle)

    def match(self, events: EventColumns, found: Found) -> int:
        scratch = self._scratches.pop() if self._scratches else None
        scratch = self._fitting(scratch, events)
        count = match_lists(*self.arrays_of, events, scratch, found)
        self._scratches.append(scratch)
        return count

    def match_one(self, events: EventColumns, found: Found) -> int:
        self._one = self._fitting(self._one, events)
        return _match_one(*self.arrays_of, events, self._one, found)

    def _fitting(self, scratch: ListScratch | None, events: EventColumns) -> ListScratch:
        """*scratch*, or a larger one into which the keys of *events* fit."""
        most_terms = int(np.diff(events.term_start).max(initial=0))
        most_values = int(np.diff(events.value_start).max(initial=0))
        keys = GROUP * (1 + most_terms + 5 * most_values)
        if scratch is not None and len(scratch.key) >= keys:
            return scratch
        axes = len(self.arrays_of.axes.is_exact)
        return ListScratch(
            stamp=np.zeros(1, np.int64),
            key_mark=np.zeros(len(self.arrays_of.keys.lists) // FIELDS, np.int64),
            low=np.full(axes, LACKS_LOW, np.int64),
            high=np.full(axes, LACKS_HIGH, np.int64),
            key_start=np.zeros(GROUP + 1, np.int64),
            key=np.empty(2 * keys, np.int64),
            term=np.empty(2 * keys, np.int64),
            stack=np.empty(STACK, np.int64),
            met=np.empty(MOST_MET, np.int64),
        )

    def remove(self, alternatives: Int64) -> None:
        """Nothing: what is gone is passed over when it is found."""

    def move(self, columns: SubscriptionColumns, alternatives: Int64) -> Int64:
        """Write the cells of *alternatives* anew; those that could stay where they are.

        Others are removed. Cost: 0.2 µs each.
        """
        if self.movers is None:
            return alternatives[:0]
        is_placed = np.zeros(len(alternatives), np.uint8)
        keys, axes, _ = self.arrays_of
        self._count -= move_lanes(
            columns,
            read_only(alternatives),
            self.movers,
            keys.lists,
            axes,
            self._written,
            is_placed,
        )
        self._has_moved = True
        placed: Int64 = alternatives[is_placed != 0]
        return placed

    def _lists(self) -> Any:
        return self.arrays_of.keys.lists.reshape(-1, FIELDS)

    def arrays(self) -> HomeArrays:
        named: HomeArrays = {"count": np.array([self._count])}
        for bundle in self.arrays_of:
            named.update(bundle._asdict())
        return named

    @classmethod
    def over(cls, arrays: HomeArrays) -> Self:
        keys, axes, granules = (
            all_read_only(kind(*(arrays[name] for name in kind._fields)))
            for kind in (ListKeys, ListAxes, Granules)
        )
        made: Any = ListArrays
        return cls(made(keys, axes, granules), int(arrays["count"][0]))

    def stats(self) -> dict[str, Any]:
        counts = self._lists()[:, COUNT]
        return {
            "alternatives": self._count,
            "entries": int(counts.sum()),
            "lists": int(np.count_nonzero(counts)),
            "long lists": int(np.count_nonzero(counts > LONG)),
            "longest list": int(counts.max(initial=0)),
            "axes": len(self.arrays_of.axes.is_exact) - 1,
            "bytes": self.nbytes,
        }

    def check(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        check_lists(self.arrays_of, self.movers, columns, alternatives, has_moved=self._has_moved)
