"""`stentor match`: who wants each event of a file."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Annotated, Any, Final, Self, TextIO

import typer

from stentor._files import replaced
from stentor.cli.inputs import (
    ANSWER_NO,
    UNUSABLE,
    ColumnsOption,
    EventsOption,
    JsonOption,
    OnRejected,
    RejectedFile,
    SchemaOption,
    SubscriptionsOption,
    feed,
    read_schema,
    shown_location,
)
from stentor.cli.match_spark import SparkMatch
from stentor.cli.rejected import MostRejectedOption, RejectedShare
from stentor.cli.screen import MasterOption, progress, size_of, summarise
from stentor.engine import Engine
from stentor.engine.report import Report
from stentor.errors import RecordError, SettingsError
from stentor.wire.files import is_parquet, open_tables
from stentor.wire.mapping import ColumnMapping
from stentor.wire.rejected import Rejected
from stentor.wire.tables import row_text

#: What a file of matches may be called: Parquet, or JSON lines.
SUFFIXES: Final = (".parquet", ".jsonl", ".ndjson", ".json")


def command(
    events: EventsOption,
    subscriptions: SubscriptionsOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="`.parquet` or `.jsonl`; standard output if not given."),
    ] = None,
    rejected: Annotated[
        Path, typer.Option(help="Where bad records go, with their reasons, if there are any.")
    ] = Path("rejected.jsonl"),
    top: Annotated[
        int | None, typer.Option(min=1, help="Only the k best of each event, with scores.")
    ] = None,
    index: Annotated[str, typer.Option(help="The matching structure.")] = "auto",
    columns: ColumnsOption = None,
    schema: SchemaOption = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads that match.")] = 1,
    most_rejected: MostRejectedOption = 0.5,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first bad record (exit code 1).")
    ] = False,
    spark: Annotated[
        bool,
        typer.Option(
            "--spark",
            help="As a Spark job, over files or folders of Parquet, JSON lines or CSV; --out "
            "becomes a folder, and bad rows are counted and the first reasons told, not kept "
            "(`stentor check` lists them).",
        ),
    ] = False,
    snapshot: Annotated[
        Path | None,
        typer.Option(
            help="With --spark: the index in a folder, kept there if --subscriptions are given, "
            "else taken from there."
        ),
    ] = None,
    master: MasterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Match the events of a file with the subscriptions of another.

    Each match is a line `{"event": …, "subscription": …}`. A bad record never stops the run: it is
    counted and written to the rejected file with its reason. Where most of the first ones are bad,
    a column or a type is wrong, and it stops. An update matches the subscriptions that it enters.

        stentor match -s subscriptions.jsonl -e events.jsonl -o matches.parquet
    """
    if spark:
        check_out(out)
        job = SparkMatch(
            events=events,
            subscriptions=subscriptions,
            snapshot=snapshot,
            out=file_of(out),
            top=top,
            index=index,
            schema=schema,
            strict=strict,
            most_rejected=most_rejected,
            master=master,
        )
        try:
            counts = job.run()
        except RecordError as error:
            print(f"stentor: {error}", file=sys.stderr)
            raise typer.Exit(ANSWER_NO if strict else UNUSABLE) from None
        summarise(counts, as_json=as_json, to_output=file_of(out) is not None)
        return
    if subscriptions is None:
        raise SettingsError("give --subscriptions; only with --spark a --snapshot serves as well")
    start = perf_counter()
    check_output(out, [subscriptions, events])
    check_output(rejected, [subscriptions, events])
    writer = MatchWriter(out, scored=top is not None)
    engine = Engine(index, schema=read_schema(schema), clock=None, threads=threads)
    share = RejectedShare(most_rejected)
    with ExitStack() as stack:
        rejects = stack.enter_context(RejectedFile(rejected))

        def on_rejected(source: Path, bad: Rejected) -> None:
            rejects.add(source, bad)
            share.reject(source, bad)
            if strict:
                print(f"stentor: {shown_location(source, bad)}: {bad.reason}", file=sys.stderr)
                raise typer.Exit(ANSWER_NO)

        never = 0
        for report, taken in feed(engine, subscriptions, "subscribe", on_rejected):
            never += len(report.never)
            share.take(subscriptions, taken.total())
        share.finish(subscriptions)
        stack.enter_context(writer)
        done: Counter[str] = Counter()
        reports = _published if is_parquet(events) else _fed
        for report, taken in reports(engine, events, on_rejected, top, columns):
            writer.write(_wanted(report))
            done += taken
            share.take(events, taken.total())
        share.finish(events)
    counts = {
        "subscriptions": len(engine),
        "events": done.pop("publish", 0) + done.pop("update", 0),
        "matches": writer.count,
        **share.summary(as_json=as_json),
        **{f"{word} records": count for word, count in sorted(done.items())},
        "seconds": round(perf_counter() - start, 3),
    }
    if never:
        counts["can never match"] = never
    if rejects.count:
        counts["rejected file"] = str(rejected)
    summarise(counts, as_json=as_json, to_output=writer.has_file)


def _wanted(report: Report) -> Any:
    """Who wants the events of *report*: those that came, and those that an update changed."""
    import pyarrow as pa
    import pyarrow.compute as pc

    entered = report.changes.filter(pc.equal(report.changes["change"], "entered"))
    if not entered.num_rows:
        return report.matches
    columns = report.matches.column_names
    both = pa.concat_tables([report.matches, entered.select(columns)])
    return both.sort_by("record")


def _fed(
    engine: Engine,
    events: Path,
    on_rejected: OnRejected,
    top: int | None,
    columns: list[str] | None,
) -> Iterator[tuple[Report, Counter[str]]]:
    return feed(engine, events, "publish", on_rejected, top, columns)


def _published(
    engine: Engine,
    events: Path,
    on_rejected: OnRejected,
    top: int | None,
    columns: list[str] | None,
) -> Iterator[tuple[Report, Counter[str]]]:
    """The events of a Parquet file, which need not become records one by one."""
    rows_before, mapping = 0, ColumnMapping.of_texts(columns or [])
    with progress(f"Reading {events.name}", size_of(events)) as advance:
        for table, bytes_read in open_tables(events):
            report = engine.publish_batch(mapping.table(table), top=top)
            for bad in report.rejected.to_pylist():
                text = row_text(table, bad["record"])
                on_rejected(events, Rejected(bad["reason"], text, row=rows_before + bad["record"]))
            rows_before += table.num_rows
            advance(bytes_read)
            yield report, Counter(publish=table.num_rows - report.rejected.num_rows)


def file_of(out: Path | None) -> Path | None:
    """Where matches go; None for standard output."""
    return None if out is None or str(out) == "-" else out


def check_out(out: Path | None) -> None:
    """Refuse a name that says no form to write in."""
    file = file_of(out)
    if file is not None and file.suffix not in SUFFIXES:
        raise SettingsError(f"--out is {out}; its name ends with one of {' '.join(SUFFIXES)}")


def check_output(path: Path | None, inputs: list[Path]) -> None:
    """Refuse to write over what is being read."""
    if (
        path is not None
        and path.exists()
        and any(path.samefile(one) for one in inputs if one.exists())
    ):
        raise SettingsError(f"{path} is read from; choose another file to write to")


class MatchWriter:
    """Matches to a Parquet file, a file of JSON lines, or standard output.

    A file comes into being as a whole: where the run fails, an older one stays.
    """

    def __init__(self, path: Path | None, *, scored: bool) -> None:
        self.count = 0
        check_out(path)
        self._path = file_of(path)
        self._scored = scored
        self._stack = ExitStack()
        self._lines: TextIO = sys.stdout
        self._parquet: Any = None

    @property
    def has_file(self) -> bool:
        """Whether standard output is free for other things."""
        return self._path is not None

    def __enter__(self) -> Self:
        if self._path is not None:
            partial = self._stack.enter_context(replaced(self._path))
            if self._path.suffix == ".parquet":
                import pyarrow as pa
                import pyarrow.parquet as pq

                fields = [("event", pa.large_string()), ("subscription", pa.large_string())]
                fields += [("score", pa.float64())] if self._scored else []
                writer = pq.ParquetWriter(partial, pa.schema(fields))
                self._parquet = self._stack.enter_context(writer)
            else:
                self._lines = self._stack.enter_context(partial.open("w", encoding="utf-8"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def write(self, matches: Any) -> None:
        """Append the rows of a report's table of matches."""
        matches = matches.drop_columns("record")
        self.count += matches.num_rows
        if self._parquet is not None:
            self._parquet.write_table(matches)
            return
        for row in matches.to_pylist():
            self._lines.write(json.dumps(row, ensure_ascii=False) + "\n")
