"""Spatial-keyword subscriptions and messages as files, for the tables of many subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from stentor_lab.bench.spark.scale import Bench, Staged
from stentor_lab.workloads.spatial_keyword import KeywordSubscriptions, SpatialKeyword

#: Of a micro-batch.
EVENTS: Final = 1_000
CHANGES: Final = 100


@dataclass(frozen=True)
class Messages:
    """What is drawn once, and cut into files."""

    bench: Bench
    warm: int = 10
    """Micro-batches that are left out, …"""
    counted: int = 500
    """… and those that count."""

    @property
    def workload(self) -> dict[str, Any]:
        """What tables say of it."""
        return {"workload": "spatial-keyword", **self.bench.workload}

    @property
    def recipe(self) -> SpatialKeyword:
        """Of all that is drawn."""
        return SpatialKeyword(self.bench.options.seed)

    @property
    def batches(self) -> int:
        """How many micro-batches there are, with those that are left out."""
        return self.warm + self.bench.part(self.counted, 6)

    @property
    def changes(self) -> int:
        """Of each micro-batch: not so many that they use up the subscriptions."""
        return min(CHANGES, self.bench.subscriptions // (2 * self.batches))

    @cached_property
    def _drawn(self) -> KeywordSubscriptions:
        size = self.bench.subscriptions
        self.bench.progress(f"drawing {size:,} subscriptions")
        return self.recipe.subscriptions(size + self.batches * self.changes)

    @cached_property
    def _texts(self) -> list[str]:
        return list(self._drawn.texts())

    @cached_property
    def base(self) -> Staged:
        """The subscriptions that stand before the first micro-batch."""
        size = self.bench.subscriptions
        ids = [f"s{row}" for row in range(size)]
        return self.bench.stage(_changes("subscribe", ids, self._texts[:size]), "base", 8)

    def events(self, count: int, name: str) -> Staged:
        """A file of the first *count* messages."""
        return self.bench.stage(self.recipe.events(count).table(), name, 8)

    def micro_batches(self) -> Iterator[tuple[Staged, Staged]]:
        """Events and changes of each: half of these replace a subscription, a quarter is new."""
        events = self.recipe.events(self.batches * EVENTS).table()
        texts = iter(self._texts[self.bench.subscriptions :])
        for batch in range(self.batches):
            yield (
                self.bench.stage(events.slice(batch * EVENTS, EVENTS), f"events-{batch}"),
                self.bench.stage(self._changes_of(batch, texts), f"changes-{batch}"),
            )

    def _changes_of(self, batch: int, texts: Iterator[str]) -> pa.Table:
        size, quarter = self.bench.subscriptions, self.changes // 4
        half = self.changes - 2 * quarter
        gone = [f"s{row}" for row in range(batch * quarter, (batch + 1) * quarter)]
        replaced = [f"s{size - 1 - row}" for row in range(batch * half, (batch + 1) * half)]
        new = [f"s{size + row}" for row in range(batch * quarter, (batch + 1) * quarter)]
        wanted = replaced + new
        return pa.concat_tables(
            [
                _changes("unsubscribe", gone, [None] * quarter),
                _changes("subscribe", wanted, list(islice(texts, len(wanted)))),
            ]
        )


def _changes(op: str, ids: list[str], texts: list[Any]) -> pa.Table:
    columns = {"op": [op] * len(ids), "id": ids, "expression": pa.array(texts, pa.string())}
    return pa.table(columns)
