"""`stentor demo`: a generated afternoon in a city, delivered by the streaming pipeline."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from stentor.cli.screen import check_picture
from stentor.demo.story import Story, draw, show

if TYPE_CHECKING:
    from stentor.cli.stream import Watcher
    from stentor.demo.afternoon import Afternoon
    from stentor.pipeline.stream.progress import BatchProgress

#: Where to look next; the paths are real, and the lines run as they stand.
ASK = """\
Ask the tables yourself (they stay in {folder}):
  Spark    from stentor.pipeline import session, tables
           tables.read(session(), "{pipeline}", "deliveries").show()
  pandas   from deltalake import DeltaTable
           DeltaTable("{pipeline}/tables/deliveries").to_pandas()
  DuckDB   import duckdb; from deltalake import DeltaTable
           deliveries = DeltaTable("{pipeline}/tables/deliveries").to_pyarrow_dataset()
           duckdb.sql("SELECT change, count(*) FROM deliveries GROUP BY change")"""
NEXT = """\
Your own streams: stentor stream {config} --explain says what ran here; change a copy of it."""


def command(
    people: Annotated[int, typer.Option(min=1, help="How many people walk about.")] = 5_000,
    events: Annotated[int, typer.Option(min=1, help="How many coupons and jobs come.")] = 2_000,
    seed: Annotated[int, typer.Option(help="Of the generated afternoon.")] = 1,
    folder: Annotated[
        Path,
        typer.Option(help="Where records, tables and the map go; an earlier demo's is reused."),
    ] = Path("stentor-demo"),
    picture: Annotated[
        Path | None, typer.Option(help="Where the map of the deliveries goes, if not there.")
    ] = None,
    embedded: Annotated[
        bool,
        typer.Option("--embedded", help="One engine in this process: no Spark, no tables."),
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Against a `stentor serve` of its own, with its console.")
    ] = False,
    minutes: Annotated[
        float, typer.Option(min=0.01, help="How long the afternoon takes with --live.")
    ] = 20.0,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the server of --live.")] = 8731,
) -> None:
    """Watch a city's afternoon: people who walk about, coupons, jobs, bad records.

    The records stand in files, and go through the streaming pipeline into tables that stay on disk.
    """
    from stentor.demo.afternoon import Afternoon

    if live:
        _live(
            Afternoon(people=people, events=events, moves=5 * events, bad=0, seed=seed),
            minutes,
            port,
        )
        return
    start = perf_counter()
    picture = picture or (Path("stentor-demo.png") if embedded else folder / "map.png")
    check_picture(picture)
    screen = Console(highlight=False, markup=False, soft_wrap=not sys.stdout.isatty())
    afternoon = Afternoon(people=people, events=events, moves=5 * events, seed=seed)
    screen.print(f"An afternoon in Saltmere: {len(afternoon):,} records, seed {seed}")
    if embedded:
        from stentor.demo.embedded import deliver

        story = deliver(afternoon)
    else:
        story = _stream(afternoon, folder)
    show(screen, story)
    draw(screen, story, picture)
    if not embedded:
        from stentor.demo.folder import CONFIG, PAGE, PIPELINE
        from stentor.demo.page import write_page

        pipeline = (folder / PIPELINE).resolve()
        write_page(pipeline, folder / PAGE)
        screen.print(f"The same afternoon as a page that moves: {folder / PAGE}")
        screen.print("\n" + ASK.format(folder=folder, pipeline=pipeline))
        screen.print("\n" + NEXT.format(config=folder / CONFIG))
    screen.print(f"\nAll of it took {perf_counter() - start:.0f} s")


def _live(afternoon: Afternoon, minutes: float, port: int) -> None:
    """Play *afternoon* against a server of its own until it is interrupted."""
    import asyncio
    import time

    from stentor.cli.serve import need_service

    need_service()
    from stentor.demo.live import play, server

    screen = Console(highlight=False, markup=False, soft_wrap=True)
    screen.print("Starting the server …")
    with server(port) as url, suppress(KeyboardInterrupt):
        screen.print(f"Open {url} to watch Saltmere's afternoon; Ctrl-C ends it.")
        with screen.status("People arrive …") as status:

            def on_progress(records: int, deliveries: int) -> None:
                status.update(f"{records:,} records, {deliveries:,} deliveries")

            asyncio.run(play(url, afternoon, minutes, on_progress))
        screen.print(f"Evening has come; the server stays at {url} until Ctrl-C.")
        while True:
            time.sleep(3600)


def _stream(afternoon: Afternoon, folder: Path) -> Story:
    """Send the records through `stentor stream`'s own path."""
    from stentor.cli.screen import need_spark, spark_session, timed_line
    from stentor.cli.stream import StopRequest, watch
    from stentor.demo.folder import prepare
    from stentor.demo.tables import story_of
    from stentor.pipeline.config.file import load, start_from

    need_spark()
    with timed_line(f"Writing the records into {folder}"):
        config = load(prepare(folder, afternoon))
    with spark_session(name="stentor demo", quick=True) as spark:
        start = perf_counter()
        batches: list[BatchProgress] = []
        watcher = _watcher(len(afternoon))
        with timed_line("Opening sources and tables"):
            query = start_from(config, spark, [batches.append, watcher])
        with StopRequest() as stop, watcher:
            if not watch(query, watcher, stop):
                raise KeyboardInterrupt
        seconds = perf_counter() - start
        with timed_line("Asking the tables"):
            return story_of(spark, config.path, batches, seconds)


def _watcher(records: int) -> Watcher:
    from stentor.cli.stream_watch import LineWatcher, PanelWatcher

    is_watched = sys.stdout.isatty()
    return PanelWatcher("The afternoon", total=records) if is_watched else LineWatcher(records)
