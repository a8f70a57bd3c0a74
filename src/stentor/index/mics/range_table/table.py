"""The table of one listener: what is announced to it of the subscriptions that are for it.

A broker has one for each link. Ranges route: they are announced to the listener under the
subscription's id, and it forwards every publication whose number is in one of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from enum import StrEnum
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import Int64, UInt8
from stentor.encoding.hilbert.ranges import Ranges, whole_numbers
from stentor.errors import SettingsError
from stentor.index.mics.range_table.check import check_store, listed, pairs
from stentor.index.mics.range_table.insert import ANNOUNCED, PASSIVE, covered_ranges
from stentor.index.mics.range_table.store import RangeStore

Id = TypeVar("Id", bound=Hashable)
Pairs = list[tuple[int, int]]
LAST_NUMBER: Final = 2**64 - 1


class Coverage(StrEnum):
    """How much of a subscription the others cover."""

    NOT = "not"
    PARTLY = "partly"
    TOTALLY = "totally"


class Withdrawal(NamedTuple, Generic[Id]):
    """What an unsubscription changes: first announce what is promoted, then withdraw."""

    promoted: Mapping[Id, Pairs]  # ranges of others that must be announced now
    withdrawn: Pairs  # what was announced of the one that leaves


class RangeTable(Generic[Id]):
    """Subscriptions as ranges, merged; what has to be announced of them.

    *gap* numbers between two ranges are filled when they are merged: 0 is perfect merging. A filled
    gap is announced as a part of the range that came last, so that the listener needs no gap.

    >>> table = RangeTable()
    >>> table.subscribe("ana", [(32, 35), (45, 46), (50, 55)])
    [(32, 35), (45, 46), (50, 55)]
    >>> table.subscribe("ben", [(33, 34), (47, 49)])
    [(47, 49)]
    >>> table.ranges()
    [(32, 35), (45, 55)]
    >>> table.covers(52), table.covers(28)
    (True, False)
    >>> table.unsubscribe("ana")
    Withdrawal(promoted={'ben': [(33, 34)]}, withdrawn=[(32, 35), (45, 46), (50, 55)])
    """

    def __init__(self, gap: int = 0) -> None:
        if not 0 <= gap < 1 << 63:
            raise SettingsError(f"gap={gap}; expected 0 (perfect merging) to 2^63 − 1")
        self._store = RangeStore(gap)
        self._owners: dict[Id, list[int]] = {}
        self._id_of: dict[int, Id] = {}
        self._free: list[int] = []  # owners that were removed

    def subscribe(self, id: Id, ranges: Iterable[tuple[int, int]]) -> Pairs:
        """Add *ranges* to the subscription *id*; which of them must be announced to the listener.

        Those that the union of all others covers are kept for later. Called again for the same *id*
        it adds to what that has. Cost: a look-up for each range (Algorithm 1).
        """
        entries = self._add([id], ranges_of(ranges))
        kept = self._store.entries
        return pairs(kept.announced_low[entries], kept.announced_high[entries])

    def subscribe_all(self, ids: Iterable[Id], ranges: Ranges) -> dict[Id, Pairs]:
        """Add the ranges of each of *ids*, one after the other; what must be announced of each."""
        return self._by_id(self._add(list(ids), ranges))

    def unsubscribe(self, id: Id) -> Withdrawal[Id]:
        """Remove the subscription *id*; what to announce first, and what to withdraw then.

        Exactly what is still needed is announced: passive ranges that nothing covers any more.
        Nothing where *id* is not known.
        """
        owners = np.array(self._owners.pop(id, []), np.int64)
        leaving = self._store.entries_of(owners)
        entries = self._store.entries
        announced = leaving[entries.state[leaving] == ANNOUNCED]
        withdrawn = pairs(entries.announced_low[announced], entries.announced_high[announced])
        promoted = self._store.remove(owners)
        changed = self._by_id(promoted)
        for owner in owners.tolist():
            del self._id_of[owner]
        self._free += owners.tolist()
        return Withdrawal(changed, withdrawn)

    def covers(self, number: int) -> bool:
        """Whether some subscription's range contains *number* (Algorithm 2)."""
        return bool(self.covers_all([number])[0])

    def covers_all(self, numbers: npt.ArrayLike) -> UInt8:
        """1 where one of *numbers* is in some range."""
        return self._store.holds(whole_numbers(numbers, LAST_NUMBER, "numbers"))

    def meets(self, query: Ranges) -> UInt8:
        """1 where one of *query*, the ranges of events, shares a number with some range."""
        return self._store.meets(query)

    def covered(self, ranges: Iterable[tuple[int, int]]) -> Coverage:
        """How much of *ranges* the union covers: total, partial or no subsumption."""
        _, low, high = ranges_of(ranges)
        found = np.zeros(len(low), np.uint8)
        covered_ranges(self._store.union, low, high, found)
        return _share(found)

    def ranges(self) -> Pairs:
        """The table: disjoint ranges that do not touch, ascending."""
        return pairs(*listed(self._store.union)[:2])

    def announced(self) -> dict[Id, Pairs]:
        """What was announced to the listener and not withdrawn, by id."""
        return self._by_id(np.flatnonzero(self._store.entries.state == ANNOUNCED))

    def passive(self) -> dict[Id, Pairs]:
        """What is covered and was not announced, by id."""
        entries = self._store.entries
        kept = np.flatnonzero(entries.state == PASSIVE)
        return self._grouped(kept, pairs(entries.low[kept], entries.high[kept]))

    def __len__(self) -> int:
        return len(self._owners)

    def __contains__(self, id: object) -> bool:
        return id in self._owners

    @property
    def range_count(self) -> int:
        """How many ranges the table stores."""
        return self._store.range_count

    @property
    def nbytes(self) -> int:
        return self._store.nbytes

    def check(self) -> None:
        """Assert every invariant of the table: for tests."""
        check_store(self._store)
        owners = sorted(owner for of in self._owners.values() for owner in of)
        assert owners == sorted(self._id_of)
        assert sorted(owners + self._free) == list(range(len(owners) + len(self._free)))
        assert all(self._id_of[owner] == id for id, of in self._owners.items() for owner in of)

    def _add(self, ids: list[Id], ranges: Ranges) -> Int64:
        if len(ids) != len(ranges.starts) - 1 or (ranges.low > ranges.high).any():
            raise SettingsError(
                f"{len(ids)} subscriptions and ranges of {len(ranges.starts) - 1}; expected the "
                "ranges of each, none of which ends before it begins"
            )
        known = len(self._id_of) + len(self._free)
        reused = [self._free.pop() for _ in ids[: len(self._free)]]
        owners = [*reused, *range(known, known + len(ids) - len(reused))]
        for owner, id in zip(owners, ids, strict=True):
            self._owners.setdefault(id, []).append(owner)
            self._id_of[owner] = id
        return self._store.add(np.array(owners, np.int64), ranges)

    def _by_id(self, entries: Int64) -> dict[Id, Pairs]:
        kept = self._store.entries
        return self._grouped(
            entries, pairs(kept.announced_low[entries], kept.announced_high[entries])
        )

    def _grouped(self, entries: Int64, ranges: Pairs) -> dict[Id, Pairs]:
        found: dict[Id, Pairs] = {}
        for owner, one in zip(self._store.owner_of(entries).tolist(), ranges, strict=True):
            found.setdefault(self._id_of[owner], []).append(one)
        return found


def ranges_of(given: Iterable[tuple[int, int]]) -> Ranges:
    """Pairs (low, high), both included, as the ranges of one subscription.

    >>> ranges_of([(32, 35), (45, 46)]).of(0)
    [(32, 35), (45, 46)]
    """
    ends = whole_numbers(list(given), LAST_NUMBER, "the ends of ranges")
    ends = ends if ends.size else ends.reshape(0, 2)
    if ends.ndim != 2 or ends.shape[1] != 2:
        raise SettingsError(f"ranges of shape {ends.shape}; expected pairs (low, high)")
    low, high = np.ascontiguousarray(ends.T)
    if (low > high).any():
        raise SettingsError("a range ends before it begins; expected pairs (low, high)")
    return Ranges(np.array([0, len(low)]), low, high)


def covers(ranges: Iterable[tuple[int, int]], other: Iterable[tuple[int, int]]) -> Coverage:
    """How much of *other* one subscription of *ranges* covers (section 3.5).

    Totally where each range of *other* lies in one of *ranges*, partly where some does.

    >>> covers([(0, 9), (20, 29)], [(3, 4), (20, 29)]), covers([(0, 9)], [(3, 4), (9, 12)])
    (<Coverage.TOTALLY: 'totally'>, <Coverage.PARTLY: 'partly'>)
    """
    table: RangeTable[int] = RangeTable()
    table.subscribe(0, ranges)
    return table.covered(other)


def _share(found: UInt8) -> Coverage:
    if found.all():
        return Coverage.TOTALLY
    return Coverage.PARTLY if found.any() else Coverage.NOT
