"""`stentor stream`: events and changes of subscriptions through Spark into tables, as they come."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

import typer
from rich.console import Console
from rich.table import Table

from stentor.cli.screen import (
    LogForm,
    LogFormatOption,
    MasterOption,
    need_spark,
    print_line,
    set_log_format,
    spark_session,
    timed_line,
)
from stentor.cli.stream_watch import JsonWatcher, PanelWatcher, Silent
from stentor.errors import SettingsError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from stentor.pipeline.config.file import StreamConfig


_SHOW_CURSOR: Final = "\x1b[?25h"
_INTERRUPTED: Final = 130


class StopRequest:
    """Whether a stream is to stop: by `request`, or by a signal inside a `with` block."""

    def __init__(self) -> None:
        self._is_requested = False
        self._before: dict[int, Any] = {}

    @property
    def is_requested(self) -> bool:
        """Whether the stream is to stop after its batch."""
        return self._is_requested

    def request(self) -> None:
        """Have the stream stop after its batch."""
        self._is_requested = True

    def listen(self) -> None:
        """Take signals in, also where something else has just claimed them, as PySpark does."""
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.signal(number, self._on_signal)
            self._before.setdefault(number, before)

    def __enter__(self) -> Self:
        self.listen()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self._is_requested:
            self._is_requested = True
            return
        if sys.stdout.isatty():
            sys.stdout.write(_SHOW_CURSOR)
            sys.stdout.flush()
        # Nothing is lost: what is not committed is read again. Waiting for threads takes time.
        os._exit(_INTERRUPTED)


Watcher = PanelWatcher | JsonWatcher | Silent

#: Seconds between two looks at a running stream, and at one whose batch is about to end.
_LOOK, _CLOSE_LOOK = 0.25, 0.01
_WAITING: Final = "Waiting"
_AVAILABLE_NOW: Final = {"availableNow": True}


class Show(StrEnum):
    """How progress is shown."""

    AUTO = "auto"
    PANEL = "panel"
    JSON = "json"
    NONE = "none"


def command(
    config: Annotated[Path, typer.Argument(help="The `stentor.toml` that says what to run.")],
    check: Annotated[
        bool, typer.Option("--check", help="List every mistake in the file, and run nothing.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what would run and why, and run nothing.")
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Take in what is there now, and end.")
    ] = False,
    progress: Annotated[
        Show,
        typer.Option(
            help="A live `panel`, a `json` line for each batch, or `none`; by default a panel on a "
            "terminal and lines elsewhere."
        ),
    ] = Show.AUTO,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="PORT|ADDRESS:PORT|FILE",
            help="Prometheus text at 127.0.0.1:PORT/metrics (and /health beside it), at that of "
            "another ADDRESS, or in FILE after each batch: "
            "stentor_records_total, _events_total, _changes_total, _deliveries_total, "
            "_rejected_total, _candidates_total, _batch_seconds, _step_seconds_total, "
            "_subscriptions, _live_events, _lag_seconds, _last_batch, "
            "_last_commit_timestamp_seconds, _logical_time_seconds, _index_info.",
        ),
    ] = None,
    log_format: LogFormatOption = LogForm.PLAIN,
    master: MasterOption = None,
) -> None:
    """Run the pipeline of a file: until it is stopped, or until its sources are read.

    SIGTERM and Ctrl-C stop it after the batch in progress (a second one at once); started again,
    it goes on there. A bad record never stops it: it goes to the table `rejected`.

        stentor stream stentor.toml --check
    """
    from stentor.pipeline.config.file import load

    set_log_format(log_format)
    chosen = load(config)
    if once:
        chosen = replace(chosen, trigger=_AVAILABLE_NOW)
    need_spark()
    if check:
        _check(config, chosen)
    if explain:
        _explain(config, chosen)
    if not (check or explain):
        _run(config, chosen, progress, metrics, master)


def _check(path: Path, config: StreamConfig) -> None:
    from stentor.pipeline.config.explain import mistakes
    from stentor.pipeline.config.samples import samples, topic_mistakes

    found = [*mistakes(config), *topic_mistakes(config)]
    seen = list(samples(config))
    found += [mistake for one in seen if (mistake := one.mistake) is not None]
    if found:
        count = f"{len(found)} mistake{'s' if len(found) > 1 else ''}"
        raise SettingsError(f"{path}: {count}\n" + "\n".join(f"  {one}" for one in found))
    print(f"{path}: no mistakes found")
    for one in seen:
        print(f"  {one.text}")


def _explain(path: Path, config: StreamConfig) -> None:
    from stentor.pipeline.config.explain import explanation

    table = Table.grid(padding=(0, 2))
    for subject, text in explanation(config):
        table.add_row(subject, text)
    # Where nobody looks the width is not known, and 80 columns would break paths.
    screen = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 120)
    screen.print(f"What {path} runs, and why", style="bold")
    screen.print(table)


def _run(
    path: Path, config: StreamConfig, show: Show, metrics: str | None, master: str | None
) -> None:
    from stentor.cli.stream_metrics import published
    from stentor.pipeline.config.file import start_from
    from stentor.pipeline.config.servers import check_servers, naming_servers
    from stentor.pipeline.spark.failures import as_stentor_errors

    with ExitStack() as stack:
        stop = stack.enter_context(StopRequest())
        listeners = stack.enter_context(published(metrics))
        check_servers(config)
        settings = _session_settings(config)
        name = f"stentor {path}"
        spark = stack.enter_context(spark_session(master, name=name, settings=settings))
        stop.listen()
        if stop.is_requested:
            return
        watcher = _watcher(show, str(path), stop)
        with timed_line("Opening sources and tables"), as_stentor_errors():
            query = start_from(config, spark, [*listeners, watcher])
        print_line(
            f"Running into {config.path}; stop with Ctrl-C or SIGTERM to process {os.getpid()}"
        )
        with watcher, naming_servers(config):
            is_over = watch(query, watcher, stop)
    end = "Everything is read" if is_over else "Stopped; started again, it goes on there"
    print_line(f"{end}. {watcher.summary}")


def watch(query: StreamingQuery, watcher: Watcher, stop: StopRequest) -> bool:
    """Whether *query* ended by itself; else it was stopped after its batch, as was requested.

    What went wrong in it is raised as Stentor's own error.
    """
    from stentor.pipeline.spark.failures import as_stentor_errors

    last_batch, is_ending = None, False
    with as_stentor_errors():
        # It takes fractions of a second, whatever its type says.
        while not query.awaitTermination(_CLOSE_LOOK if stop.is_requested else _LOOK):  # type: ignore[arg-type]
            if not query.isActive and not is_ending:
                is_ending = True
                print_line("Everything is read; merging what has changed, for the next start")
            status: dict[str, Any] = query.status
            watcher.tick(is_waiting=status["message"].startswith(_WAITING))
            if not stop.is_requested:
                continue
            if last_batch is None:
                print_line("Stopping after this batch; once more to stop at once")
                last_batch = watcher.batches
            is_idle = not (status["isDataAvailable"] and status["isTriggerActive"])
            if is_idle or watcher.batches != last_batch:
                # A batch that begins just now is given up, and repeated at the next start.
                query.stop()
                return False
    return True


def _session_settings(config: StreamConfig) -> dict[str, str]:
    jars: list[str] = []
    if config.uses_kafka:
        from stentor.pipeline.sinks.kafka import connector_jars

        with timed_line("Looking for Spark's connector for Kafka (10 MB, fetched once)"):
            jars += connector_jars()
    if config.uses_s3:
        from stentor.pipeline.spark.s3 import s3_jars

        with timed_line("Looking for Spark's jars for S3 (14 MB, fetched once)"):
            jars += s3_jars()
    return {"spark.jars": ",".join(jars)} if jars else {}


def _watcher(show: Show, title: str, stop: StopRequest) -> Watcher:
    if show is Show.AUTO:
        show = Show.PANEL if sys.stdout.isatty() else Show.JSON
    if show is Show.PANEL:
        return PanelWatcher(title)
    return JsonWatcher(stop.request) if show is Show.JSON else Silent()
