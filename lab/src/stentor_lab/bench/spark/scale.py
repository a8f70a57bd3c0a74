"""How large the workloads of the Spark benchmark are, and where their files and sessions stand."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from stentor_lab.result import BenchOptions, Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Subscriptions of the largest table, where all other sizes are as they are written down.
SIZE: Final = 1_000_000
#: Rounds of what takes seconds each time.
MOST_ROUNDS: Final = 3


class Staged(NamedTuple):
    """A Parquet file that waits to be read."""

    path: Path
    rows: int


@dataclass
class Sessions:
    """One Spark session at a time, on as many cores of this machine as are asked for.

    *quick* ones start sooner and compute more slowly, so their figures mean nothing.
    """

    quick: bool = False
    _open: ExitStack = field(default_factory=ExitStack)
    _slots: int = 0
    _spark: SparkSession | None = None

    def of(self, slots: int) -> SparkSession:
        """A session with so many task slots: the one that is open, if it has them."""
        if self._spark is None or slots != self._slots:
            return self.fresh(slots)
        return self._spark

    def fresh(self, slots: int) -> SparkSession:
        """A session whose workers have done nothing yet; Java goes on as it was."""
        from stentor.pipeline.spark.sessions import command_session

        self.stop()
        made = command_session(f"local[{slots}]", name="stentor bench", quick=self.quick)
        self._spark, self._slots = self._open.enter_context(made), slots
        return self._spark

    def stop(self) -> None:
        """End the session that is open."""
        self._open.close()
        self._spark = None


@dataclass(frozen=True)
class Bench:
    """What all tables of one run share."""

    options: BenchOptions
    folder: Path
    sessions: Sessions

    @property
    def subscriptions(self) -> int:
        """Of the largest table."""
        return self.options.size or SIZE

    @property
    def progress(self) -> Progress:
        """Who is told what is being done."""
        return self.options.progress

    @property
    def workload(self) -> Mapping[str, Any]:
        """What every table says of its workload."""
        return {"seed": self.options.seed}

    def part(self, count: int, least: int) -> int:
        """*count*, or less of it where there are fewer subscriptions than `SIZE`."""
        return max(least, min(count, count * self.subscriptions // SIZE))

    def stage(self, table: pa.Table, name: str, groups: int = 1) -> Staged:
        """*table* as a file; Spark's tasks can share it by its row *groups*."""
        file = self.folder / f"{name}.parquet"
        pq.write_table(table, file, row_group_size=max(1, -(-table.num_rows // groups)))
        return Staged(file, table.num_rows)
