"""Where the steps of a micro-batch run: in Spark's workers, or (in tests) in this process."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
import pyarrow as pa

from stentor.errors import SettingsError
from stentor.index.folders import sync

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from stentor.pipeline.stream.publishing import Publishing, PublishReport
    from stentor.pipeline.stream.reading import Reading, ReadReport

Report = TypeVar("Report", bound=msgspec.Struct)

#: What every step gives `mapInArrow`: a report is JSON.
REPORTS = "report string"


class Step(Protocol):
    """A step of a micro-batch: tasks by number, each of which ends with a report."""

    def task(self, number: int) -> msgspec.Struct:
        """Do one task, in this process."""


class Runner(Protocol):
    """Runs steps."""

    @property
    def slots(self) -> int:
        """How many tasks run at a time."""

    @property
    def query(self) -> str:
        """The id of the running query in Spark's checkpoint."""

    def plan_of(self, batch: int) -> str:
        """The sum of what Spark's checkpoint says *batch* consists of; empty where nobody knows."""

    def batch_time(self, batch: int, records: Any) -> int:
        """The time of *batch* itself, in microseconds since 1970: the same when it is replayed."""

    def only(self, records: Any, *, events: bool) -> Any:
        """The *events* among *records*, or all others."""

    def read(self, records: Any, step: Reading) -> list[ReadReport]:
        """Run the reading step on *records*; the reports in the order of partitions."""

    def publish(self, records: Any, step: Publishing) -> list[PublishReport]:
        """Run the publishing step on *records*."""

    def run(self, step: Step, tasks: int, report: type[Report]) -> list[Report]:
        """Run the tasks 0 … *tasks* of *step*; their reports in that order."""


class SparkRunner:
    """Runs steps in the workers of a Spark session."""

    def __init__(self, spark: SparkSession, checkpoint: Path | None = None) -> None:
        """Run in the session *spark*; *checkpoint* is Spark's folder, where it is a local one."""
        self._spark = spark
        self._checkpoint = checkpoint

    @property
    def slots(self) -> int:
        return self._spark.sparkContext.defaultParallelism

    @property
    def query(self) -> str:
        found = self._spark.sparkContext.getLocalProperty("sql.streaming.queryId")
        if not found:
            raise SettingsError(
                "Spark does not say which query this batch belongs to, so nobody can tell whether "
                "the checkpoint is the folder's own; unset PYSPARK_PIN_THREAD, and start streams "
                "with stentor.pipeline.start"
            )
        return found

    def read(self, records: DataFrame, step: Reading) -> list[ReadReport]:
        from stentor.pipeline.stream.reading import ReadReport

        rows = records.mapInArrow(step, REPORTS).collect()
        reports = [msgspec.json.decode(row.report, type=ReadReport) for row in rows]
        return sorted(reports, key=lambda report: report.partition)

    def plan_of(self, batch: int) -> str:
        plan = self._plan(batch)
        return hashlib.blake2b(plan, digest_size=16).hexdigest() if plan else ""

    def batch_time(self, batch: int, records: DataFrame) -> int:
        # Not `current_timestamp()` in a column, though Spark keeps that for a replay too: as a
        # literal of the generated code it makes Spark compile every batch anew. Where the log
        # cannot be read the clock serves: of an attempt that failed nothing is left to differ from.
        lines = self._plan(batch).splitlines()
        if len(lines) > 1:
            return int(msgspec.json.decode(lines[1])["batchTimestampMs"]) * 1000
        return time.time_ns() // 1000

    def _plan(self, batch: int) -> bytes:
        """What Spark's log says of *batch*; nothing where the log is not on a local disk."""
        if self._checkpoint is None:
            return b""
        try:
            file = self._checkpoint / "offsets" / str(batch)
            sync(file)  # before anything is committed under its number
            return file.read_bytes()
        except OSError:
            return b""

    def only(self, records: DataFrame, *, events: bool) -> DataFrame:
        # Of a frame of events the optimiser knows that nothing of it is left, and does not read it.
        return records.filter("op = 'publish'" if events else "op <> 'publish' OR op IS NULL")

    def publish(self, records: DataFrame, step: Publishing) -> list[PublishReport]:
        from stentor.pipeline.stream.publishing import PublishReport

        rows = records.mapInArrow(step, REPORTS).collect()
        return [msgspec.json.decode(row.report, type=PublishReport) for row in rows]

    def run(self, step: Step, tasks: int, report: type[Report]) -> list[Report]:
        numbers = self._spark.range(0, tasks, 1, tasks)
        rows = numbers.mapInArrow(_Tasks(step), REPORTS).collect()
        return [msgspec.json.decode(row.report, type=report) for row in rows]


class _Tasks:
    """What `mapInArrow` runs: numbers of tasks come in, their reports come out."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield reported(self._step.task(number))


def reported(report: msgspec.Struct) -> Any:
    """*report* as a step gives it to Spark."""
    return pa.record_batch({"report": [msgspec.json.encode(report).decode()]})
