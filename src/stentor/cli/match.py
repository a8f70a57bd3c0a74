"""`stentor match`: who wants each event of a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, TextIO

import typer

from stentor.cli.exits import NO
from stentor.cli.inputs import (
    EventsOption,
    JsonOption,
    OnRejected,
    SchemaOption,
    SubscriptionsOption,
    feed,
    read_schema,
)
from stentor.cli.rejects import RejectedFile
from stentor.cli.screen import progress, size_of, summarise
from stentor.engine import Engine
from stentor.engine.report import Report
from stentor.wire.files import is_parquet, open_tables
from stentor.wire.frames import row_text
from stentor.wire.rejected import Rejected


def command(
    subscriptions: SubscriptionsOption,
    events: EventsOption,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="`.parquet` or JSON lines; standard output if not given."),
    ] = None,
    rejected: Annotated[
        Path, typer.Option(help="Where bad records go, with their reasons, if there are any.")
    ] = Path("rejected.jsonl"),
    top: Annotated[
        int | None, typer.Option(min=1, help="Only the k best of each event, with scores.")
    ] = None,
    index: Annotated[str, typer.Option(help="The matching structure.")] = "auto",
    schema: SchemaOption = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads that match.")] = 1,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first bad record (exit code 1).")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Match the events of a file with the subscriptions of another.

    Each match is a line `{"event": …, "subscription": …}`. A bad record never stops the run: it is
    counted and written to the rejected file with its reason.

        stentor match -s subscriptions.jsonl -e events.jsonl -o matches.parquet
    """
    start = perf_counter()
    engine = Engine(index, schema=read_schema(schema), clock=None, threads=threads)
    with ExitStack() as stack:
        rejects = stack.enter_context(RejectedFile(rejected))

        def on_rejected(source: Path, bad: Rejected) -> None:
            rejects.add(source, bad)
            if strict:
                print(f"stentor: {source}: {bad.reason}", file=sys.stderr)
                raise typer.Exit(NO)

        never = 0
        for report, _ in feed(engine, subscriptions, "subscribe", on_rejected):
            never += len(report.never)
        writer = stack.enter_context(MatchWriter(out))
        count = _match(engine, events, writer, top, on_rejected)
    counts: dict[str, Any] = {
        "subscriptions": len(engine),
        "events": count,
        "matches": writer.count,
        "rejected": rejects.count,
        "seconds": round(perf_counter() - start, 3),
    }
    if never:
        counts["can never match"] = never
    if rejects.count:
        counts["rejected file"] = str(rejected)
    summarise(counts, as_json=as_json, to_output=out is not None)


def _match(
    engine: Engine, events: Path, writer: MatchWriter, top: int | None, on_rejected: OnRejected
) -> int:
    """Publish all events of a file; how many were good."""
    reports = _published if is_parquet(events) else _fed
    count = 0
    for report, good in reports(engine, events, on_rejected, top):
        writer.write(report.matches)
        count += good
    return count


def _fed(
    engine: Engine, events: Path, on_rejected: OnRejected, top: int | None
) -> Iterator[tuple[Report, int]]:
    return feed(engine, events, "publish", on_rejected, top)


def _published(
    engine: Engine, events: Path, on_rejected: OnRejected, top: int | None
) -> Iterator[tuple[Report, int]]:
    """The events of a Parquet file, which need not become records one by one."""
    rows_before = 0
    with progress(f"Reading {events.name}", size_of(events)) as advance:
        for table, bytes_read in open_tables(events):
            report = engine.publish_batch(table, top=top)
            for bad in report.rejected.to_pylist():
                text = row_text(table, bad["record"])
                on_rejected(events, Rejected(bad["reason"], text, row=rows_before + bad["record"]))
            rows_before += table.num_rows
            advance(bytes_read)
            yield report, table.num_rows - report.rejected.num_rows


class MatchWriter:
    """Matches to a Parquet file, a file of JSON lines, or standard output."""

    def __init__(self, path: Path | None) -> None:
        self.count = 0
        self._path = path
        self._parquet: Any = None
        self._lines: TextIO | None = None

    def __enter__(self) -> MatchWriter:
        if self._path is None:
            self._lines = sys.stdout
        elif self._path.suffix != ".parquet":
            self._lines = self._path.open("w", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        if self._parquet is not None:
            self._parquet.close()
        if self._lines is not None and self._lines is not sys.stdout:
            self._lines.close()

    def write(self, matches: Any) -> None:
        """Append the rows of a report's table of matches."""
        matches = matches.drop_columns("record")
        self.count += matches.num_rows
        if self._lines is not None:
            for row in matches.to_pylist():
                self._lines.write(json.dumps(row, ensure_ascii=False) + "\n")
            return
        if self._parquet is None:
            import pyarrow.parquet as pq

            self._parquet = pq.ParquetWriter(self._path, matches.schema)
        self._parquet.write_table(matches)
