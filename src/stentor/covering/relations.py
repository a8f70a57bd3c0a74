"""The relation graph of subscriptions with ids: what a broker forwards, and withdraws.

    table = CoveringTable(schema)
    table.subscribe("ana", columns)     # -> AnnouncedIds(forward=['ana'], withdraw=[])
    table.unsubscribe("ana")            # -> what to withdraw, and what to forward instead

Replaying the same subscriptions and unsubscriptions in the same order gives the same graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from stentor.covering.graph.contract import Counters
from stentor.covering.graph.edges import FORWARDED
from stentor.covering.graph.g_k import CoveringGraph
from stentor.covering.graph.poset import CoveringPoset
from stentor.encoding.columns import Int64, SubscriptionColumns, subscription_count
from stentor.errors import SettingsError, UnknownIdError
from stentor.model import Schema

#: Dead rows are kept until they outnumber the current ones, and this.
MIN_DEAD_ROWS: Final = 4096


class AnnouncedIds(NamedTuple):
    """What a change announces to the neighbours: ids to be forwarded, and to be withdrawn.

    An id that is forwarded again replaces its earlier subscription. Forward first: between the two
    an event may come over the link for nothing, but none is lost.
    """

    forward: list[str]
    withdraw: list[str]


class CoveringTable:
    """The relation graph of subscriptions with ids: G_k, or the strict poset."""

    def __init__(self, schema: Schema, k: int = 1, *, poset: bool = False) -> None:
        self.graph: CoveringGraph | CoveringPoset = (
            CoveringPoset(schema) if poset else CoveringGraph(schema, k)
        )
        self._ids: list[str] = []  # by row
        self._rows: dict[str, int] = {}  # of the current ones

    def subscribe(self, id: str, columns: SubscriptionColumns) -> AnnouncedIds:
        """Insert the one row of *columns* under *id*, in place of an earlier one."""
        return self.subscribe_batch([id], columns)

    def subscribe_batch(self, ids: Sequence[str], columns: SubscriptionColumns) -> AnnouncedIds:
        """Insert the rows of *columns* under *ids*, one after the other."""
        if len(ids) != subscription_count(columns):
            raise SettingsError(f"{len(ids)} ids for {subscription_count(columns)} subscriptions")
        commands: list[int] = []
        for id, row in zip(ids, self.graph.add(columns).tolist(), strict=True):
            if id in self._rows:
                commands.append(~self._rows[id])
            self._rows[id] = row
            self._ids.append(id)
            commands.append(row)
        return self._run(commands)

    def unsubscribe(self, id: str) -> AnnouncedIds:
        """Remove *id*; an UnknownIdError where it is not current."""
        return self._run([~self._rows.pop(self._known(id))])

    def forwarded(self) -> list[str]:
        """The ids of those that are forwarded, sorted."""
        return sorted(self._ids[row] for row in self.graph.forwarded().tolist())

    def passive(self) -> list[str]:
        """The ids of those that others make redundant, sorted."""
        return sorted(self._ids[row] for row in self.graph.passive().tolist())

    def is_forwarded(self, id: str) -> bool:
        """Whether *id* is forwarded."""
        return bool(self.graph.state[self._rows[self._known(id)]] == FORWARDED)

    def coverers(self, id: str) -> list[str]:
        """The ids of those known to cover *id*, the oldest first."""
        return [self._ids[row] for row in self.graph.coverers(self._rows[self._known(id)])]

    def covered(self, id: str) -> list[str]:
        """The ids of those known to be covered by *id*, the oldest first."""
        return [self._ids[row] for row in self.graph.covered(self._rows[self._known(id)])]

    @property
    def counters(self) -> tuple[Counters, Counters]:
        """The work of subscriptions and of unsubscriptions, since dead rows were last left out."""
        return self.graph.counters

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, id: object) -> bool:
        return id in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def check(self) -> None:
        """Assert the invariants of the graph, and that ids and rows belong together."""
        self.graph.check()
        current = np.flatnonzero(self.graph.state).tolist()
        assert {self._ids[row]: row for row in current} == self._rows

    def _run(self, commands: list[int]) -> AnnouncedIds:
        sent = self.graph.run(np.array(commands, np.int64))
        forward, withdraw = self._net_changes(sent)
        self._tidy()
        return AnnouncedIds(forward, withdraw)

    def _net_changes(self, sent: Int64) -> tuple[list[str], list[str]]:
        """The net effect of *sent*: nothing twice, nothing that was undone."""
        last: dict[int, bool] = {}
        for one in sent.tolist():
            row, goes_out = (one, True) if one >= 0 else (~one, False)
            if not goes_out and last.get(row):
                del last[row]  # came and went within this batch
            else:
                last[row] = goes_out
        forward = [self._ids[row] for row, goes_out in last.items() if goes_out]
        gone = [self._ids[row] for row, goes_out in last.items() if not goes_out]
        return forward, [id for id in gone if id not in set(forward)]

    def _known(self, id: str) -> str:
        if id not in self._rows:
            raise UnknownIdError(f"no subscription has the id {id!r}", id=id)
        return id

    def _tidy(self) -> None:
        """Rebuild without the dead rows once most rows are dead."""
        if self.graph.count - len(self._rows) > max(MIN_DEAD_ROWS, len(self._rows)):
            kept = np.flatnonzero(self.graph.state)
            self.graph = self.graph.only(kept)
            self._ids = [self._ids[row] for row in kept.tolist()]
            self._rows = {id: row for row, id in enumerate(self._ids)}
