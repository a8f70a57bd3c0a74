"""Events from Parquet files to the tables: how many a second, and at what CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final, NamedTuple

import numpy as np

from stentor_lab.bench.spark.feed import Feed, Spent
from stentor_lab.bench.spark.scale import MOST_ROUNDS, Bench, Staged
from stentor_lab.measure import Answer, Case, measure
from stentor_lab.result import Table, Unit
from stentor_lab.workloads.phones import Phones

#: Events of a micro-batch.
EVENTS: Final = 400_000
#: Micro-batches of a sample: those that warm up, and those that count.
WARM, COUNTED = 1, 2

_numbers = count()


class Offers(NamedTuple):
    """Files of events: a micro-batch of them, and one alone."""

    batch: Staged
    one: Staged

    @classmethod
    def drawn(cls, bench: Bench) -> Offers:
        """As many as *bench* is to have."""
        count = bench.part(EVENTS, 1_000)
        bench.progress(f"drawing {count:,} events")
        table = Phones(bench.options.seed).offers(count)
        return cls(bench.stage(table, "offers", 8), bench.stage(table.slice(0, 1), "offer"))

    @property
    def counted(self) -> int:
        """Events of a sample."""
        return COUNTED * self.batch.rows

    def workload(self, bench: Bench) -> dict[str, Any]:
        """What tables say of it."""
        return {
            "workload": "phones",
            **bench.workload,
            "events per micro-batch": self.batch.rows,
            "micro-batches": f"{WARM} to warm up, {COUNTED} counted",
        }


@dataclass
class Streamed:
    """Samples of a stream: each is a stream of its own, whose first batches do not count."""

    bench: Bench
    slots: int
    offers: Offers
    changes: Staged | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    spent: list[Spent] = field(default_factory=list)

    def run(self) -> Spent:
        """One sample more."""
        spark = self.bench.sessions.of(self.slots)
        folder = self.bench.folder / f"stream-{next(_numbers)}"
        is_fed = self.changes is not None
        with Feed(spark, folder, self.offers.one, has_changes=is_fed, **self.settings) as feed:
            if self.changes is not None:
                feed.subscribe(self.changes, self.offers.one)
            feed.run(self.offers.batch, WARM)
            self.spent.append(feed.run(self.offers.batch, COUNTED))
        return self.spent[-1]

    def seconds(self) -> float:
        """One sample by the clock on the wall."""
        return self.run().seconds

    def cpu(self) -> float:
        """One sample in seconds on a core."""
        return self.run().cpu.total

    def answer(self) -> Answer:
        """How many deliveries one sample has."""
        return (np.array([self.run().deliveries]),)

    def figures(self) -> dict[str, float]:
        """CPU in microseconds per event, Java's and Python's, over all samples but the first."""
        counted = self.spent[1:]
        scale = 1e6 / sum(one.events for one in counted)
        cpus = (one.cpu for one in counted)
        java, python = (sum(part) * scale for part in zip(*cpus, strict=True))
        return {"CPU µs": java + python, "Java": java, "Python": python}

    def shares(self) -> dict[str, float]:
        """The same by what it was spent on; tasks tell what matching and writing took."""
        figures = self.figures()
        counted = self.spent[1:]
        scale = 1e6 / sum(one.events for one in counted)
        matching, writing = (
            sum(one.steps.get(f"tasks {step}", 0.0) for one in counted) * scale
            for step in ("matching", "writing")
        )
        reading = figures["Python"] - matching - writing
        parts = {"Spark": figures["Java"], "reading": reading, "matching": matching}
        return {**parts, "writing": writing}


def without_subscriptions(bench: Bench, offers: Offers) -> Table:
    """Events per second with one task slot, and with two."""
    title = "Events without subscriptions, from Parquet files to the tables"
    streams = {slots: Streamed(bench, slots, offers) for slots in (1, 2)}
    cases = [
        Case(
            f"{slots} task slot{'s' * (slots > 1)}",
            stream.seconds,
            offers.counted,
            most=MOST_ROUNDS,
        )
        for slots, stream in streams.items()
    ]
    rows = measure(cases, bench.options.repetitions, bench.progress, title)
    told = tuple(
        replace(row, figures=stream.figures())
        for row, stream in zip(rows, streams.values(), strict=True)
    )
    return Table(title, offers.workload(bench), "events", Unit.RATE, told)
