"""Events from Parquet files to the tables, without subscriptions and beside the engine itself."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final

import numpy as np
import pyarrow as pa

from stentor.bench.measure import Answer, Case, measure
from stentor.bench.result import Row, Table, Unit
from stentor.bench.spark_feed import Feed, Spent
from stentor.bench.spark_processes import cpu_seconds
from stentor.bench.spark_scale import MOST_ROUNDS, Bench, Staged
from stentor.engine import Engine
from stentor.index.catalog import index_class, names
from stentor.index.layered import Layered
from stentor.workloads.phones import Phones

#: Events of a micro-batch.
EVENTS: Final = 500_000
#: Micro-batches of a sample: those that warm up, and those that count.
WARM, COUNTED = 1, 2
SUBSCRIPTIONS: Final = 10_000

_numbers = count()


@dataclass
class Streamed:
    """Samples of a stream: each is a stream of its own, whose first batches do not count."""

    bench: Bench
    slots: int
    events: Staged
    changes: Staged | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    spent: list[Spent] = field(default_factory=list)

    def run(self) -> Spent:
        """One sample more."""
        spark = self.bench.sessions.of(self.slots)
        folder = self.bench.folder / f"stream-{next(_numbers)}"
        is_fed = self.changes is not None
        with Feed(spark, folder, self.events, has_changes=is_fed, **self.settings) as feed:
            if self.changes is not None:
                feed.subscribe(self.changes, self.events)
            feed.run(self.events, WARM)
            self.spent.append(feed.run(self.events, COUNTED))
        return self.spent[-1]

    def seconds(self) -> float:
        """One sample by the clock on the wall."""
        return self.run().seconds

    def cpu(self) -> float:
        """One sample in seconds on a core."""
        cpu = self.run().cpu
        assert cpu is not None
        return cpu.total

    def answer(self) -> Answer:
        """How many deliveries one sample has."""
        return (np.array([self.run().deliveries]),)

    def figures(self) -> dict[str, float]:
        """CPU in microseconds per event, Java's and Python's, over all samples but the first."""
        counted = self.spent[1:]
        scale = 1e6 / sum(one.events for one in counted)
        cpus = [one.cpu for one in counted if one.cpu is not None]
        if not cpus:
            return {}
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


def without_subscriptions(bench: Bench, events: Staged) -> Table:
    """Events per second with one task slot, and with two."""
    title = "Events without subscriptions, from Parquet files to the tables"
    streams = {slots: Streamed(bench, slots, events) for slots in (1, 2)}
    cases = [
        Case(
            f"{slots} task slot{'s' * (slots > 1)}",
            stream.seconds,
            COUNTED * events.rows,
            most=MOST_ROUNDS,
        )
        for slots, stream in streams.items()
    ]
    rows = measure(cases, bench.options.repetitions, bench.progress, title)
    told = tuple(
        replace(row, figures=stream.figures())
        for row, stream in zip(rows, streams.values(), strict=True)
    )
    return Table(title, _workload(bench, events), "events", Unit.RATE, told)


def beside_the_engine(bench: Bench, events: Staged) -> tuple[Table, ...]:
    """CPU per event and delivery, the stream's beside the engine's own, for every structure."""
    if cpu_seconds() is None:
        bench.progress("this system does not tell the CPU of processes: no tables of it")
        return ()
    structures = [name for name in names() if not issubclass(index_class(name), Layered)]
    return tuple(table for name in structures for table in _of_structure(bench, events, name))


def _of_structure(bench: Bench, events: Staged, index: str) -> tuple[Table, Table]:
    phones, size = Phones(bench.options.seed), bench.part(SUBSCRIPTIONS, 100)
    few, few_deliveries = _compared(
        bench, events, index, "few deliveries", phones.texts(0, size)
    )
    many, many_deliveries = _compared(
        bench, events, index, "about ten deliveries per event", phones.mixed_texts(size)
    )
    more = _more(many) - _more(few)
    stream = many.rows[1]
    each = more / max(many_deliveries - few_deliveries, 1e-9)
    told = replace(stream, figures={**stream.figures, "more µs/delivery": each})
    return few, replace(many, rows=(many.rows[0], told))


def _compared(
    bench: Bench, events: Staged, index: str, what: str, texts: list[str]
) -> tuple[Table, float]:
    """The engine and a stream of the same events and subscriptions; deliveries per event."""
    title = f"{len(texts):,} subscriptions in the {index}, {what}: CPU"
    ids = [f"s{row}" for row in range(len(texts))]
    subscriptions = pa.table({"id": ids, "expression": texts})
    own = _Own(index, subscriptions, pa.parquet.read_table(events.path))
    op = pa.array(["subscribe"] * len(ids))
    changes = bench.stage(subscriptions.append_column("op", op), f"phones-{next(_numbers)}")
    settings = {"index": index, "merge_least": 1}
    stream = Streamed(bench, 2, events, changes, settings)
    items = COUNTED * events.rows
    cases = [
        Case("engine, publish_batch", own.cpu, items, own.answer, most=MOST_ROUNDS),
        Case("stream, 2 task slots", stream.cpu, items, stream.answer, most=MOST_ROUNDS),
    ]
    engine, streamed = measure(cases, bench.options.repetitions, bench.progress, title)
    deliveries = own.deliveries / items
    more = (streamed.median - engine.median) * 1e6
    figures = {"deliveries": deliveries, **stream.shares(), "more µs/event": more}
    rows = (engine, replace(streamed, figures=figures))
    workload = {**_workload(bench, events), "subscriptions": len(texts), "index": index}
    return Table(title, workload, "event", Unit.MICROSECONDS, rows), deliveries


def _more(table: Table) -> float:
    """Microseconds per event that the stream takes more."""
    engine, stream = table.rows
    return (stream.median - engine.median) * 1e6


class _Own:
    """The engine in this process, on the same batches of the same events."""

    def __init__(self, index: str, subscriptions: pa.Table, events: pa.Table) -> None:
        self._engine = Engine(schema=Phones().schema, index=index, clock=None)
        self._engine.subscribe_batch(subscriptions)
        self._events = events
        self.deliveries = 0

    def cpu(self) -> float:
        started = time.process_time()
        for _ in range(COUNTED):
            self._engine.publish_batch(self._events)
        return time.process_time() - started

    def answer(self) -> Answer:
        reports = [self._engine.publish_batch(self._events) for _ in range(COUNTED)]
        self.deliveries = sum(report.matches.num_rows for report in reports)
        return (np.array([self.deliveries]),)


def _workload(bench: Bench, events: Staged) -> dict[str, Any]:
    return {
        "workload": "phones",
        **bench.workload,
        "events per micro-batch": events.rows,
        "micro-batches": f"{WARM} to warm up, {COUNTED} counted",
    }
