"""Where the steps of a micro-batch run: in Spark's workers, or (in tests) in this process.

Steps over several shards run in pieces (`run_pieces`): a process takes the piece whose shards it
has open already. Spark gives a task to whichever worker is free, so tasks with shards of their own
would have every worker open every shard in time. Instead as many tasks as there are pieces each
claim one, a file in the batch's folder, and the driver does again what was claimed by a task that
did not come to its end.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
import pyarrow as pa

from stentor._files import sync
from stentor.errors import SettingsError
from stentor.pipeline.storage.folder import StreamFolder
from stentor.pipeline.stream.shards import ShardState, open_shards

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from stentor.pipeline.stream.match_events import PublishReport, ShortPathStep
    from stentor.pipeline.stream.read_records import ReadReport, ReadStep

Report = TypeVar("Report", bound=msgspec.Struct)
#: What every step gives `mapInArrow`: a report is JSON.
REPORTS = "report string"


class WorkerStep(Protocol):
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

    def clock(self) -> int:
        """What time it is, in microseconds since 1970."""

    def only(self, records: Any, *, events: bool) -> Any:
        """The *events* among *records*, or all others."""

    def read(self, records: Any, step: ReadStep) -> list[ReadReport]:
        """Run the reading step on *records*; the reports in the order of partitions."""

    def publish(self, records: Any, step: ShortPathStep) -> list[PublishReport]:
        """Run the publishing step on *records*."""

    def run(self, step: WorkerStep, tasks: int, report: type[Report]) -> list[Report]:
        """Run the tasks 0 … *tasks* of *step*; their reports in that order."""

    def run_beside(self, step: WorkerStep, tasks: int, report: type[Report]) -> list[Report]:
        """The same in a thread of its own, beside the batches."""

    def cancel_beside(self) -> None:
        """Give up what runs beside the batches; whoever waits for it gets an error."""


class SparkRunner:
    """Runs steps in the workers of a Spark session."""

    def __init__(self, spark: SparkSession, checkpoint: StreamFolder | None = None) -> None:
        """Run in the session *spark*; *checkpoint* is Spark's folder, where it can be read."""
        self._spark = spark
        self._checkpoint = checkpoint
        self._beside = f"stentor {secrets.token_hex(8)}"

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

    def read(self, records: DataFrame, step: ReadStep) -> list[ReadReport]:
        from stentor.pipeline.stream.read_records import ReadReport

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
        return self.clock()

    def clock(self) -> int:
        return time.time_ns() // 1000

    def _plan(self, batch: int) -> bytes:
        """What Spark's log says of *batch*; nothing where the log cannot be read."""
        if self._checkpoint is None:
            return b""
        offsets = self._checkpoint / "offsets"
        try:
            if offsets.is_local:
                sync(offsets.local / str(batch))  # before anything is committed under its number
            return offsets.read(str(batch))
        except OSError:
            return b""

    def only(self, records: DataFrame, *, events: bool) -> DataFrame:
        # Of a frame of events the optimiser knows that nothing of it is left, and does not read it.
        return records.filter("op = 'publish'" if events else "op <> 'publish' OR op IS NULL")

    def publish(self, records: DataFrame, step: ShortPathStep) -> list[PublishReport]:
        from stentor.pipeline.stream.match_events import PublishReport

        rows = records.mapInArrow(step, REPORTS).collect()
        return [msgspec.json.decode(row.report, type=PublishReport) for row in rows]

    def run(self, step: WorkerStep, tasks: int, report: type[Report]) -> list[Report]:
        numbers = self._spark.range(0, tasks, 1, tasks)
        rows = numbers.mapInArrow(_Tasks(step), REPORTS).collect()
        return [msgspec.json.decode(row.report, type=report) for row in rows]

    def run_beside(self, step: WorkerStep, tasks: int, report: type[Report]) -> list[Report]:
        self._spark.sparkContext.setJobGroup(self._beside, "beside the batches of a stream")
        return self.run(step, tasks, report)

    def cancel_beside(self) -> None:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        with suppress(Py4JError, ConnectionError, EOFError):  # Spark may have ended
            self._spark.sparkContext.cancelJobGroup(self._beside)


class _Tasks:
    """What `mapInArrow` runs: numbers of tasks come in, their reports come out."""

    def __init__(self, step: WorkerStep) -> None:
        self._step = step

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield report_batch(self._step.task(number))


def report_batch(report: msgspec.Struct) -> Any:
    """*report* as a step gives it to Spark."""
    return pa.record_batch({"report": [msgspec.json.encode(report).decode()]})


class PieceStep(Protocol):
    """A step whose tasks need some of the shards each."""

    def shards_of(self, piece: int) -> Sequence[ShardState]:
        """The shards that the task number *piece* needs."""

    def task(self, number: int) -> msgspec.Struct:
        """Do one task, in this process."""


def run_pieces(
    runner: Runner, step: PieceStep, pieces: int, report: type[Report], folder: StreamFolder
) -> list[Report]:
    """Run all *pieces* of *step*; their reports in order. *folder* is for their claims."""
    claimed = runner.run(Claiming(step, folder, pieces), pieces, Claimed)
    reports = {
        one.piece: msgspec.json.decode(one.report, type=report) for one in claimed if one.piece >= 0
    }
    lost = tuple(piece for piece in range(pieces) if piece not in reports)
    if lost:  # their tasks failed, and when they were tried again they claimed others
        done = runner.run(Chosen(step, lost), len(lost), report)
        reports |= dict(zip(lost, done, strict=True))
    return [reports[piece] for piece in range(pieces)]


@dataclass(frozen=True)
class Claiming:
    """What runs in the workers: each task claims a piece of *step* in *folder* and does it."""

    step: PieceStep
    folder: StreamFolder
    pieces: int

    def task(self, number: int) -> Claimed:
        """Do the piece that suits this process best; *number* decides between equals."""
        has_open = open_shards()

        def rank(piece: int) -> tuple[int, int]:
            here = sum((one.path, one.shard) in has_open for one in self.step.shards_of(piece))
            return -here, (piece - number) % self.pieces

        for piece in sorted(range(self.pieces), key=rank):
            if self.folder.claim(str(piece)):
                report = msgspec.json.encode(self.step.task(piece))
                return Claimed(piece, report.decode())
        return Claimed(-1, "")


class Claimed(msgspec.Struct, frozen=True):
    """The piece that a task has done, and its report in JSON; −1 where none was left."""

    piece: int
    report: str


@dataclass(frozen=True)
class Chosen:
    """The *pieces* of a step, task by task."""

    step: PieceStep
    pieces: tuple[int, ...]

    def task(self, number: int) -> msgspec.Struct:
        """Do one of them."""
        return self.step.task(self.pieces[number])
