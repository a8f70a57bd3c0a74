"""What a stream costs beside the engine itself: CPU per event and per delivery."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stentor.engine import Engine
from stentor.index.catalog import index_class, names
from stentor.index.layered import Layered
from stentor_lab.bench.spark.events import COUNTED, Offers, Streamed
from stentor_lab.bench.spark.scale import MOST_ROUNDS, Bench
from stentor_lab.measure import Answer, Case, measure
from stentor_lab.result import Table, Unit
from stentor_lab.workloads.phones import Phones

SUBSCRIPTIONS: Final = 10_000

_DELIVERIES: Final = "deliveries"
_MORE: Final = "more µs/event"


def beside_the_engine(bench: Bench, offers: Offers) -> tuple[Table, ...]:
    """CPU per event and delivery, the stream's beside the engine's own, for every structure."""
    structures = [name for name in names() if not issubclass(index_class(name), Layered)]
    return tuple(table for name in structures for table in _of_structure(bench, offers, name))


def _of_structure(bench: Bench, offers: Offers, index: str) -> tuple[Table, Table]:
    """Subscriptions that want few events, then some that want many; what a delivery adds."""
    phones, size = Phones(bench.options.seed), bench.part(SUBSCRIPTIONS, 100)
    narrow = compared(bench, offers, index, "narrow", phones.texts(0, size))
    wide = compared(bench, offers, index, "wide", phones.mixed_texts(size))
    few, many = narrow.rows[1].figures, wide.rows[1].figures
    deliveries = many[_DELIVERIES] - few[_DELIVERIES]
    if not deliveries:
        return narrow, wide
    each = (many[_MORE] - few[_MORE]) / deliveries
    engine, stream = wide.rows
    told = replace(stream, figures={**many, "more µs/delivery": each})
    return narrow, replace(wide, rows=(engine, told))


def compared(bench: Bench, offers: Offers, index: str, kind: str, texts: list[str]) -> Table:
    """The engine and a stream, on the same events and subscriptions."""
    title = f"{len(texts):,} {kind} subscriptions in the {index}: CPU of the engine, of a stream"
    ids = [f"s{row}" for row in range(len(texts))]
    subscriptions = pa.table({"id": ids, "expression": texts})
    own = _Own(index, subscriptions, pq.read_table(offers.batch.path))
    op = pa.array(["subscribe"] * len(ids))
    changes = bench.stage(subscriptions.append_column("op", op), "phones")
    stream = Streamed(bench, 2, offers, changes, {"index": index, "merge_least": 1})
    items = offers.counted
    cases = [
        Case("engine", own.cpu, items, own.answer, most=MOST_ROUNDS),
        Case("stream", stream.cpu, items, stream.answer, most=MOST_ROUNDS),
    ]
    engine, streamed = measure(cases, bench.options.repetitions, bench.progress, title)
    figures = {
        _DELIVERIES: own.deliveries / items,
        **stream.shares(),
        _MORE: (streamed.median - engine.median) * 1e6,
    }
    rows = (engine, replace(streamed, figures=figures))
    workload = {**offers.workload(bench), "subscriptions": len(texts), "task slots": 2}
    return Table(title, workload, "event", Unit.MICROSECONDS, rows)


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
