"""A snapshot in Spark's workers: how soon it is open, and what memory the second one adds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from stentor.errors import StentorError
from stentor_lab.bench.spark.messages import EVENTS, Messages
from stentor_lab.bench.spark.scale import MOST_ROUNDS, Bench, Staged
from stentor_lab.processes import proportional_bytes, spark_workers
from stentor_lab.result import Row, Table, Unit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stentor.pipeline.snapshots import Snapshot

#: A daemon, and the workers that are forked from it.
_WITH_ONE, _WITH_TWO = 2, 3
_MOST_TRIES: Final = 20


@dataclass(frozen=True)
class Open:
    """For `mapInArrow`, in a worker: the seconds that opening a shard takes."""

    shard: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for _ in batches:
            started = time.perf_counter()
            from stentor.pipeline.snapshots import open_shard

            open_shard(Path(self.shard))
            yield pa.record_batch({"seconds": [time.perf_counter() - started]})


def opening(bench: Bench, messages: Messages) -> Table:
    """Seconds in a worker that has done nothing before; megabytes of one worker and of two."""
    from stentor.pipeline import build_snapshot

    spark = bench.sessions.of(2)
    events = messages.events(2 * EVENTS, "messages")
    bench.progress(f"building a snapshot of {bench.subscriptions:,} subscriptions")
    started = time.perf_counter()
    snapshot = build_snapshot(
        spark.read.parquet(str(messages.base.path)),
        bench.folder / "snapshot",
        schema=messages.recipe.schema,
    )
    built = time.perf_counter() - started
    seconds, sizes = [], []
    for number in range(min(bench.options.repetitions, MOST_ROUNDS)):
        bench.progress(f"opening the snapshot in fresh workers: {number + 1}")
        spark = bench.sessions.fresh(2)
        one_task = spark.range(0, 1, 1, 1)
        shard = str(snapshot.path / snapshot.shards[0])
        seconds.append(one_task.mapInArrow(Open(shard), "seconds double").collect()[0].seconds)
        sizes.append([_size(spark, events, snapshot, tasks) for tasks in (1, 2)])
    workload = {
        **messages.workload,
        "subscriptions": snapshot.count,
        "snapshot built from texts in": f"{built:.1f} s",
        "each worker matched": f"{EVENTS:,} events",
    }
    row = Row("snapshot opened in a fresh worker", tuple(seconds), _figures(sizes))
    title = "A snapshot in Spark's workers"
    return Table(title, workload, "worker", Unit.MILLISECONDS, (row,), compared=False)


def _size(spark: SparkSession, events: Staged, snapshot: Snapshot, tasks: int) -> int | None:
    """The memory of daemon and workers once so many *tasks* have matched at a time."""
    from stentor.pipeline import match

    asked = spark.read.parquet(str(events.path)).limit(tasks * EVENTS).repartition(tasks)
    matches = match(asked, snapshot=snapshot)
    for _ in range(_MOST_TRIES):
        matches.write.format("noop").mode("overwrite").save()
        workers = spark_workers()
        if proportional_bytes(workers) is None:
            return None
        if len(workers) == (_WITH_ONE, _WITH_TWO)[tasks - 1]:
            return proportional_bytes(workers)
    raise StentorError(f"Spark has {len(workers)} Python processes for {tasks} tasks at a time")


def _figures(sizes: list[list[int | None]]) -> dict[str, float]:
    told = [(one, two) for one, two in sizes if one is not None and two is not None]
    if not told:
        return {}
    one, two = (sum(size) / len(told) for size in zip(*told, strict=True))
    return {
        "MB with one": one / 1e6,
        "MB with two": two / 1e6,
        "second adds %": 100.0 * (two - one) / one,
    }
