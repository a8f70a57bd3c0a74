"""A stream that is fed with files: each becomes one micro-batch, and is waited for."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from queue import Empty, Queue
from shutil import rmtree
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from stentor.errors import StentorError
from stentor_lab.bench.spark.scale import Staged
from stentor_lab.processes import Cpu, cpu_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stentor.pipeline.stream.progress import BatchProgress

CHANGES: Final = "op string, id string, expression string"
#: A second after the other: Spark takes files by the time at which they were changed.
_FIRST_FILE_TIME: Final = 1_000_000_000


class Commit(NamedTuple):
    """A micro-batch that was committed, and when, by the clock on the wall."""

    progress: BatchProgress
    clock: float


class Spent(NamedTuple):
    """What micro-batches of events took, from the first file to the last commit."""

    events: int
    deliveries: int
    seconds: float
    cpu: Cpu
    steps: Mapping[str, float]


class Feed:
    """A stream into a new *folder*, which is removed at the end of the `with` block.

    *events* is a file that has their columns. *settings* are those of `StreamSettings`.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        events: Staged,
        *,
        has_changes: bool = True,
        **settings: Any,
    ) -> None:
        from stentor.pipeline import StreamSettings, start

        self.folder = folder
        for name in ("events", "changes"):
            (folder / name).mkdir(parents=True)
        reader = spark.readStream.option("maxFilesPerTrigger", 1)
        columns = spark.read.parquet(str(events.path)).schema
        self._numbers = count()
        self._waiting = 0  # records that were given and not committed yet
        self._commits: Queue[Commit] = Queue()
        self._query = start(
            reader.schema(columns).parquet(str(folder / "events")),
            reader.schema(CHANGES).parquet(str(folder / "changes")) if has_changes else None,
            folder / "pipeline",
            listeners=[self._committed],
            settings=StreamSettings(**settings),
        )

    def give(self, what: str, file: Staged) -> None:
        """Let the stream find *file* among its 'events' or 'changes'."""
        number = next(self._numbers)
        moment = _FIRST_FILE_TIME + number
        os.utime(file.path, (moment, moment))
        (self.folder / what / f"{number}.parquet").hardlink_to(file.path)
        self._waiting += file.rows

    def commits(self) -> Iterator[Commit]:
        """The micro-batches of all that was given, as they are committed."""
        while self._waiting:
            try:
                commit = self._commits.get(timeout=1.0)
            except Empty:
                self._check()
                continue
            self._waiting -= commit.progress.records
            yield commit

    def run(self, events: Staged, times: int) -> Spent:
        """Let *events* come so many times, and wait for the last of them."""
        cpu, started = cpu_seconds(), time.perf_counter()
        for _ in range(times):
            self.give("events", events)
        commits = list(self.commits())
        ended, now = commits[-1].clock, cpu_seconds()
        steps: Counter[str] = Counter()
        for commit in commits:
            steps.update(commit.progress.steps)
        return Spent(
            sum(commit.progress.events for commit in commits),
            sum(commit.progress.delivered for commit in commits),
            ended - started,
            now - cpu,
            steps,
        )

    def subscribe(self, changes: Staged, event: Staged) -> float:
        """Seconds until the subscriptions of *changes* are in a base, which *event* is met with."""
        started = time.perf_counter()
        self.give("changes", changes)
        list(self.commits())
        while True:
            self.give("events", event)
            *_, commit = self.commits()
            if commit.progress.version.partition("+")[0] != "-1":
                return commit.clock - started
            time.sleep(0.1)

    def _committed(self, progress: BatchProgress) -> None:
        self._commits.put(Commit(progress, time.perf_counter()))

    def _check(self) -> None:
        error = self._query.exception()
        if error is not None:
            raise error
        if not self._query.isActive:
            raise StentorError("the stream of the benchmark ended before its time")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._query.stop()
        rmtree(self.folder, ignore_errors=True)
