"""Subscription indexing: covering, subsumption and merging in two phases (MICS, section 5).

    new ──▶ ranges on the curve ──▶ those that share cells ──▶ exact methods ──▶ what covers it,
            `index/mics/`           a few of all               `covers`,         what it covers,
                                                               `subsumption`,    what subsumes it,
                                                               `merging`         what it merges with

The first phase leaves out what cannot be related to a new subscription; the second reports only
what is proved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from stentor.covering.covers import Alternatives, alternatives_cover
from stentor.covering.implies.decode import alternatives_of_row
from stentor.covering.merging import as_columns, merged
from stentor.covering.subsumption import subsumption
from stentor.encoding.columns import Int64, SubscriptionColumns, subscription_count
from stentor.encoding.kinds import KIND_MASK, OWN_CIRCLE, STRINGS, are_among
from stentor.encoding.ragged import take
from stentor.errors import SettingsError, UnknownIdError
from stentor.index.catalog import index_class
from stentor.index.mics import Mics
from stentor.model import Kind, Schema

#: Steps of subtraction after which a subscription counts as not subsumed.
MOST_STEPS: Final = 2000
#: Dead rows are kept until they outnumber the current ones, and this.
MIN_DEAD_ROWS: Final = 4096


class Merger(NamedTuple):
    """What a subscription can be merged with perfectly, in which attribute, and the result."""

    id: str
    attribute: str
    columns: SubscriptionColumns


class Related(NamedTuple):
    """How a subscription is related to the current ones; ids, the oldest first."""

    covered_by: list[str]
    covers: list[str]
    subsumed_by: list[str]  # all of these together match all that it matches; empty: not known
    mergers: list[Merger]  # only with those that neither cover it nor are covered
    evaluated: int  # how many of the current ones were compared (Table 3)
    gave_up: bool  # whether subtraction met its limit


class SubsumptionIndex:
    """Subscriptions with ids, indexed by the most selective of their dimensions."""

    def __init__(
        self, schema: Schema, index: str = "mics", *, most_steps: int = MOST_STEPS
    ) -> None:
        kind = index_class(index)
        if not issubclass(kind, Mics):
            raise SettingsError(f"index={index!r}; expected mics, with settings: 'mics ranges=8'")
        if most_steps < 1:
            raise SettingsError(f"most_steps={most_steps}; expected 1 or more")
        self.schema = schema
        self.most_steps = most_steps
        self.queries = self.evaluated = 0  # subscriptions, and those they were compared with
        self._kind: type[Mics] = kind
        self._mics = kind()
        self._ids: list[str] = []  # by row
        self._rows: dict[str, int] = {}  # of the current ones
        self._void: set[int] = set()  # rows that no event can match
        self._learned: tuple[Kind | None, ...] = ()
        self._booleans = np.zeros(0, bool)  # by the code of an attribute
        self._interest = lru_cache(maxsize=1 << 16)(self._interest_of)

    def subscribe(self, id: str, columns: SubscriptionColumns) -> None:
        """Insert the one row of *columns* under *id*, in place of an earlier one."""
        self.subscribe_batch([id], columns)

    def subscribe_batch(self, ids: Sequence[str], columns: SubscriptionColumns) -> None:
        """Insert the rows of *columns* under *ids*; of equal ids the last stays."""
        if len(ids) != subscription_count(columns):
            raise SettingsError(f"{len(ids)} ids for {subscription_count(columns)} subscriptions")
        first = self._mics.insert(columns)
        gone = []
        for row, id in enumerate(ids, start=first):
            if id in self._rows:
                gone.append(self._rows[id])
            self._rows[id] = row
            self._ids.append(id)
        self._remove(gone)
        self._void |= {row for row in self._impossible(first) if self._rows[self._ids[row]] == row}

    def unsubscribe(self, id: str) -> None:
        """Remove *id*; an UnknownIdError where it is not current."""
        if id not in self._rows:
            raise UnknownIdError(f"no subscription has the id {id!r}", id=id)
        self._remove([self._rows.pop(id)])
        self._tidy()

    def relate(self, columns: SubscriptionColumns) -> list[Related]:
        """How each subscription of *columns*, none of them current, is related to the current ones.

        Cost: one look-up, and for each of those that share cells a few microseconds; up to
        `most_steps` such times for subsumption.
        """
        self._learn()
        found = self._mics.related(self._reaching_out(columns))
        names = self.schema.by_code
        related = []
        for position in range(subscription_count(columns)):
            rows = found.rows[found.starts[position] : found.starts[position + 1]].tolist()
            interest = alternatives_of_row(columns, position, names, self.schema)
            row = take(columns, np.array([position]))
            related.append(self._related(interest, row, rows))
        return related

    def columns_of(self, id: str) -> SubscriptionColumns:
        """The columns of *id*."""
        if id not in self._rows:
            raise UnknownIdError(f"no subscription has the id {id!r}", id=id)
        return self._mics.columns_of(np.array([self._rows[id]]))

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, id: object) -> bool:
        return id in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def check(self) -> None:
        """Assert that ids, rows and the index belong together."""
        self._mics.check()
        current = self._mics.current_rows().tolist()
        assert {self._ids[row]: row for row in current} == self._rows
        assert self._void == {row for row in current if not self._interest(row)}

    def _related(
        self, interest: Alternatives, row: SubscriptionColumns, rows: list[int]
    ) -> Related:
        self.queries += 1
        if not interest:  # a contradiction: every current subscription covers it
            everyone = self._named(sorted(self._rows.values()))
            void = self._named(sorted(self._void))
            return Related(everyone, void, everyone[:1], [], 0, gave_up=False)
        self.evaluated += len(rows)
        others = [(one, self._interest(one)) for one in rows]
        above = [one for one, wide in others if self._covers(wide, interest)]
        below = [one for one, narrow in others if self._covers(interest, narrow)]
        by, gave_up = above[:1], False
        if not above:
            found = subsumption(interest, others, self.schema, self.most_steps)
            by, gave_up = sorted(found.by or ()), found.gave_up
        nested = {*above, *below}
        mergers = [
            Merger(self._ids[one], union.attribute, as_columns(row, code, union.wanted))
            for one, other in others
            if one not in nested and (union := merged(interest, other, self.schema))
            for code in (self.schema.code(union.attribute),)
        ]
        below = sorted({*below, *self._void})
        return Related(
            self._named(above), self._named(below), self._named(by), mergers, len(rows), gave_up
        )

    def _named(self, rows: list[int]) -> list[str]:
        return [self._ids[row] for row in rows]

    def _covers(self, wide: Alternatives, narrow: Alternatives) -> bool:
        """Whether *wide* covers *narrow*; alternatives may do so together."""
        if alternatives_cover(wide, narrow):
            return True
        if len(wide) < 2:
            return False
        return subsumption(narrow, [(0, wide)], self.schema, self.most_steps).by is not None

    def _reaching_out(self, columns: SubscriptionColumns) -> SubscriptionColumns:
        """*columns* a little wider, so that they share a cell with what only touches them."""
        is_boolean = self._booleans[columns.attribute]
        with np.errstate(over="ignore"):  # beyond the largest double comes the infinity
            return columns._replace(
                low=np.where(is_boolean, -math.inf, np.nextafter(columns.low, -math.inf)),
                high=np.where(is_boolean, math.inf, np.nextafter(columns.high, math.inf)),
                pair_low=np.nextafter(columns.pair_low, -math.inf),
                pair_high=np.nextafter(columns.pair_high, math.inf),
            )

    def _impossible(self, first: int) -> Iterator[int]:
        """The rows from *first* on that no event can match."""
        self._learn()
        columns = self._mics.subscriptions.columns
        of_alternative = columns.predicate_start[columns.alternative_start[first:]]
        # Only strings, booleans and circles around an unknown location can be impossible.
        kind = columns.kind[of_alternative[0] :] & KIND_MASK
        attribute = columns.attribute[of_alternative[0] :]
        may_be = are_among(kind, STRINGS) | (kind == OWN_CIRCLE) | self._booleans[attribute]
        counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(may_be)])
        doubtful = np.diff(counts[of_alternative - of_alternative[0]]) > 0
        doubtful |= np.diff(columns.alternative_start[first:]) == 0
        return (
            row for row in (first + np.flatnonzero(doubtful)).tolist() if not self._interest(row)
        )

    def _interest_of(self, row: int) -> Alternatives:
        return alternatives_of_row(
            self._mics.subscriptions.columns, row, self.schema.by_code, self.schema
        )

    def _learn(self) -> None:
        """Forget what was computed before the schema learned more."""
        kinds = tuple(self.schema.kind(name) for name in self.schema.by_code)
        if kinds != self._learned:
            self._learned = kinds
            self._booleans = np.array([kind is Kind.BOOLEAN for kind in kinds], bool)
            self._interest.cache_clear()

    def _remove(self, rows: list[int]) -> None:
        self._mics.remove(np.array(rows, np.int64))
        self._void.difference_update(rows)

    def _tidy(self) -> None:
        """Rebuild without the dead rows once most rows are dead."""
        if len(self._ids) - len(self._rows) > max(MIN_DEAD_ROWS, len(self._rows)):
            kept = self._mics.current_rows()
            self._start_anew(kept)

    def _start_anew(self, kept: Int64) -> None:
        columns = self._mics.columns_of(kept)
        self._ids = [self._ids[row] for row in kept.tolist()]
        self._rows = {id: row for row, id in enumerate(self._ids)}
        position = {row: at for at, row in enumerate(kept.tolist())}
        self._void = {position[row] for row in self._void}
        self._mics = self._kind.build(columns)
        self._interest.cache_clear()
