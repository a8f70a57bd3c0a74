"""`stentor match --spark`: the same, by a Spark job over files or folders of them.

Bad rows are left out. Those of subscriptions are counted, and those of events that cannot be read,
and the first reasons are shown on standard error; a strict run stops and says why.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from stentor.cli.inputs import read_schema
from stentor.cli.rejected import RejectedShare
from stentor.cli.screen import need_spark, spark_session, timed_line
from stentor.errors import RecordError, SettingsError
from stentor.index.storage.folders import local_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from stentor.pipeline.batch.rejected import RejectedPolicy
    from stentor.pipeline.snapshots import Snapshot
    from stentor.pipeline.sources import What

#: How many reasons are shown.
_MOST_SHOWN: Final = 5


@dataclass(frozen=True, kw_only=True)
class SparkMatch:
    """What is matched, and how: *subscriptions*, a *snapshot* of them, or both to keep it."""

    events: Path
    subscriptions: Path | None
    snapshot: Path | None = None
    out: Path | None = None
    top: int | None = None
    index: str = "auto"
    schema: Path | None = None
    strict: bool = False
    most_rejected: float = 1.0
    master: str | None = None

    def run(self) -> dict[str, Any]:
        """Match, write, and count."""
        self._check()
        need_spark()
        from stentor.pipeline.spark.failures import as_stentor_errors

        start = perf_counter()
        with spark_session(self.master, name="stentor match") as spark, as_stentor_errors():
            with timed_line(f"Reading {self.events}"):
                events = _Rows.read(spark, self.events, "events", self._kinds)
                events.check(self.strict, self.most_rejected)
            events.show()
            with self._built(spark, events) as snapshot:
                _show(str(self.subscriptions or self.snapshot), snapshot.sentences)
                matches = self._matches(events.good, snapshot)
                with timed_line("Matching"):
                    count = _write(spark, matches, self.out)
        return {
            "subscriptions": snapshot.count,
            "events": events.count - events.bad,
            "matches": count,
            "rejected subscriptions": snapshot.rejected,
            "unreadable events": events.bad,
            **({"share unreadable": round(events.bad / events.count, 4)} if events.bad else {}),
            "seconds": round(perf_counter() - start, 3),
        }

    @property
    def _kinds(self) -> dict[str, str] | None:
        if self.schema is None:
            return None
        schema = read_schema(self.schema)
        return {name: str(schema.kind(name)) for name in schema}

    @property
    def _policy(self) -> RejectedPolicy:
        return "raise" if self.strict else "ignore"

    def _check(self) -> None:
        if self.subscriptions is None and self.snapshot is None:
            raise SettingsError("give --subscriptions, or a --snapshot of them")
        if self.subscriptions is None and (self.index != "auto" or self.schema is not None):
            raise SettingsError("a snapshot has the index and the schema that it was built with")
        for path in (self.events, self.subscriptions):
            if path is not None:
                format_of(path)
        for option, path in (("--snapshot", self.snapshot), ("--out", self.out)):
            if path is not None:
                local_folder(path, option)
        is_far = self.master is not None and not self.master.startswith("local")
        if is_far and self.snapshot is None:
            raise SettingsError("on a cluster, give a --snapshot: a folder that all machines see")
        if self.out is not None and self.out.exists():
            raise SettingsError(f"--out: {self.out} is there already; remove it or choose another")

    @contextmanager
    def _built(self, spark: SparkSession, events: _Rows) -> Iterator[Snapshot]:
        """The snapshot to match with; one that is not to be kept is removed afterwards."""
        from stentor.pipeline.batch.match import build_snapshot
        from stentor.pipeline.snapshots import read_snapshot

        if self.subscriptions is None:
            assert self.snapshot is not None
            yield read_snapshot(self.snapshot.resolve())
            return
        with ExitStack() as stack:
            path = self.snapshot
            if path is None:
                path = Path(stack.enter_context(TemporaryDirectory(prefix="stentor-"))) / "snapshot"
            with timed_line(f"Reading {self.subscriptions} and building the index"):
                rows = _Rows.read(spark, self.subscriptions, "changes", None)
                rows.check(self.strict, self.most_rejected)
                rows.show()
                built = build_snapshot(
                    rows.good, path, schema=events.good, index=self.index, rejected=self._policy
                )
            share = RejectedShare(self.most_rejected)
            for sentence in built.sentences:
                share.count_reason(sentence)
            share.judge(str(self.subscriptions), rows.count - rows.bad, built.rejected)
            yield built

    def _matches(self, events: DataFrame, snapshot: Snapshot) -> DataFrame:
        from stentor.pipeline.batch.match import match

        found = match(events, snapshot=snapshot, top=self.top, rejected=self._policy)
        return found if self.top is not None else found.drop("score")


@dataclass(frozen=True)
class _Rows:
    """What a file or a folder holds: the rows that can be read, and how many cannot."""

    name: str
    good: DataFrame
    count: int
    bad: int
    bad_rows: tuple[tuple[str, int], ...]
    """The reasons, the most frequent ones first, each with its rows."""

    @property
    def reasons(self) -> list[str]:
        """The most frequent ones, as they are told."""
        return [f"{rows:,} × {reason}" for reason, rows in self.bad_rows[:_MOST_SHOWN]]

    @classmethod
    def read(
        cls, spark: SparkSession, path: Path, kind: What, kinds: dict[str, str] | None
    ) -> _Rows:
        """The rows of *path*; JSON and CSV are read once more to count them."""
        from stentor.pipeline.sources import Columns, SourceSettings, open_source, source_named
        from stentor.pipeline.sources.columns import Origin

        of = format_of(path)
        has_time = kind == "events" and not source_named(of).has_schema
        columns = Columns(time="time") if has_time else Columns()
        source = SourceSettings(format=of, kind=kind, path=str(path.resolve()), columns=columns)
        df = open_source(spark, source, kinds, streaming=False).df
        if Origin.PROBLEM not in df.columns:
            return cls(str(path), df, df.count(), 0, ())
        seen = df.groupBy(Origin.PROBLEM).count().orderBy("count", ascending=False).collect()
        bad = [(row[Origin.PROBLEM], row["count"]) for row in seen if row[Origin.PROBLEM]]
        good = df.where(f"{Origin.PROBLEM} IS NULL")
        count = sum(row["count"] for row in seen)
        return cls(str(path), good, count, sum(rows for _, rows in bad), tuple(bad))

    def check(self, strict: bool, most_rejected: float) -> None:
        """A RecordError where a *strict* run meets a row that cannot be read, any run most rows."""
        share = RejectedShare(most_rejected)
        for reason, rows in self.bad_rows:
            share.count_reason(reason, rows)
        share.judge(self.name, self.count, self.bad)
        if strict and self.bad:
            raise RecordError(
                f"{self.name}: {self.bad:,} of {self.count:,} rows cannot be read, for example: "
                f"{self.reasons[0]}; leave --strict away to go on without them"
            )

    def show(self) -> None:
        """Say why rows cannot be read."""
        _show(self.name, self.reasons)


def _show(name: str, reasons: Sequence[str]) -> None:
    for reason in reasons:
        print(f"stentor: {name}: left out: {reason}", file=sys.stderr)


def format_of(path: Path) -> str:
    """The format of a file, or of the files in a folder; a SettingsError where it is not known."""
    from stentor.pipeline.sources import SOURCES, source_named

    words = {suffix: word for word in SOURCES for suffix in source_named(word).suffixes}
    named = path
    if path.is_dir() and path.suffix not in words:
        found = (one for one in sorted(path.iterdir()) if not one.name.startswith(("_", ".")))
        named = next(found, path)
    if not path.exists():
        raise SettingsError(f"{path}: there is no such file or folder")
    if named.suffix not in words:
        raise SettingsError(
            f"{path}: with --spark, files or folders of files whose names end with "
            f"{' '.join(words)} are read"
        )
    return words[named.suffix]


def _write(spark: SparkSession, matches: DataFrame, out: Path | None) -> int:
    """Write *matches* into the folder *out*, or as lines to standard output; how many they were."""
    if out is None:
        count = 0
        for row in matches.toLocalIterator():
            print(json.dumps(row.asDict(), ensure_ascii=False))
            count += 1
        return count
    path = str(out.resolve())
    if out.suffix == ".parquet":
        matches.write.parquet(path)
        return spark.read.schema(matches.schema).parquet(path).count()
    matches.write.json(path)
    return spark.read.text(path).count()
