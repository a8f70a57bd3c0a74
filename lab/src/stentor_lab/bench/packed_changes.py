"""Packed while it changes: what a change takes, what is left of its speed, and the longest call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import pyarrow as pa

from stentor import Engine
from stentor.encoding.columns import EventColumns, Float64, SubscriptionColumns, event_count
from stentor.encoding.ragged import events_between, take
from stentor.index.catalog import structure_class
from stentor.index.packed import PackedIndex
from stentor.index.structure import TILE, Structure
from stentor_lab.measure import Case, measure, stopwatch
from stentor_lab.result import BenchOptions, Row, Table, Unit
from stentor_lab.structures import matching_case, nbytes
from stentor_lab.workloads.distributions import random_of
from stentor_lab.workloads.intervals import Intervals
from stentor_lab.workloads.moving_keyword import CITY, MovingKeyword
from stentor_lab.workloads.spatial_keyword import SpatialKeyword

SIZE: Final = 1_000_000
EVENTS: Final = 2000
#: Changes of a batch, and batches of each kind of change.
BATCH, BATCHES = 1000, 20
#: Subscriptions, and live events, that one call of an engine brings.
CALL: Final = 200
#: How far a short move goes, in degrees: some thirty metres.
STEP: Final = 0.0003
#: Calls of each kind before any is timed: they compile what all of them need.
WARMING: Final = 50
#: Growing a million in small calls takes minutes.
MOST_REPETITIONS: Final = 3
PACKED: Final = "packed"
_MOVES = 310  # a stream of random numbers


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Changes of two homes, grown beside fresh, the longest calls, opening, threads."""
    size = options.size or SIZE
    options.progress(f"drawing {size:,} subscriptions")
    places = random_of(options.seed, _MOVES).uniform(0, 1, (size, 2))
    places = places * [CITY.east - CITY.west, CITY.north - CITY.south] + [CITY.west, CITY.south]
    recipe = MovingKeyword(SpatialKeyword(options.seed, space=CITY))
    words, events = recipe.subscriptions(places).columns(), recipe.messages(EVENTS, 0)
    intervals = Intervals(options.seed, 4).subscriptions(size).moving_columns()
    return (
        _changes("Changes: words around subscribers, in lists", words, options),
        _changes("Changes: intervals around subscribers, in blocks", intervals, options),
        *_grown(words, events, options),
        _longest(size, options),
        _opening(words, options),
    )


def _changes(title: str, columns: SubscriptionColumns, options: BenchOptions) -> Table:
    """Batches of changes in an index that was built of all but those that come."""
    size = len(columns.until)
    batch = max(1, min(BATCH, size // (4 * BATCHES)))
    old = np.arange(size - batch * BATCHES)
    seconds: dict[str, list[float]] = {}
    for repetition in range(options.repetitions):
        options.progress(f"{title}: repetition {repetition + 1} of {options.repetitions}")
        random = random_of(options.seed, _MOVES + repetition)
        index = structure_class(PACKED).build(take(columns, old))
        chosen = random.permutation(old)[: 3 * batch * BATCHES].reshape(3, BATCHES, batch)
        near = [index.positions(rows) + random.normal(0, STEP, (batch, 2)) for rows in chosen[0]]
        far = [index.positions(random.permutation(rows)) for rows in chosen[1]]
        come = [
            take(columns, len(old) + np.arange(n * batch, (n + 1) * batch)) for n in range(BATCHES)
        ]
        _by_change(seconds, "short move", index.move, zip(chosen[0], near, strict=True), batch)
        _by_change(seconds, "far move", index.move, zip(chosen[1], far, strict=True), batch)
        _by_change(seconds, "insertion", index.insert, ((one,) for one in come), batch)
        _by_change(seconds, "removal", index.remove, ((rows,) for rows in chosen[2]), batch)
    rows = tuple(Row(name, tuple(times)) for name, times in seconds.items())
    facts = {"seed": options.seed, "subscriptions": size, "changes of a batch": batch}
    return Table(title, facts, "change", Unit.MICROSECONDS, rows, compared=False)


def _by_change(
    seconds: dict[str, list[float]],
    name: str,
    change: Callable[..., object],
    batches: Iterable[tuple[object, ...]],
    each: int,
) -> None:
    """Do *change* with all *batches*, and add the seconds that one change took its thread.

    Merges in other threads, and what else the machine does, are not in them.
    """
    start = time.thread_time()
    for given in batches:
        change(*given)
    seconds.setdefault(name, []).append((time.thread_time() - start) / (BATCHES * each))


def _grown(
    columns: SubscriptionColumns, events: EventColumns, options: BenchOptions
) -> tuple[Table, Table]:
    """Built at once, grown with and without what events pay for; and two threads beside one."""
    fresh, grown = structure_class(PACKED).build(columns), structure_class(PACKED)()
    size, title = len(columns.until), "Grown beside built at once"
    options.progress(f"{title}: growing")
    for start in range(0, size, BATCH):
        grown.insert(take(columns, np.arange(start, min(start + BATCH, size))))
    assert isinstance(grown, PackedIndex)
    grown.wait()
    paid = Row("grown, before events paid", (_seconds(grown, events),), _figures(grown))
    for _ in range(max(4, size // (16 * EVENTS))):
        grown.match(events)
        grown.wait()
    cases = [
        matching_case(name, index.match, events, EVENTS, _figures(index))
        for name, index in (("built at once", fresh), ("grown", grown))
    ]
    facts = {"seed": options.seed, "subscriptions": size, "grown in batches of": BATCH}
    measured = measure(cases, options.repetitions, options.progress, title)
    threads = [
        Case(f"{count} threads", stopwatch(partial(fresh.match, events, threads=count)), EVENTS)
        for count in (1, 2)
    ]
    two = measure(threads, options.repetitions, options.progress, "Two threads beside one")
    return (
        Table(title, facts, "event", Unit.MICROSECONDS, (*measured, paid)),
        Table("Two threads beside one", facts, "event", Unit.MICROSECONDS, two),
    )


def _seconds(index: Structure, events: EventColumns) -> float:
    """The seconds of its thread for an event, in a tile, once a few were matched."""
    index.match(events_between(events, 0, 64))
    start = time.thread_time()
    index.match(events_between(events, 0, TILE))
    return (time.thread_time() - start) / min(TILE, event_count(events))


def _figures(index: Structure) -> dict[str, float]:
    stats = index.stats()
    return {
        "segments": float(len(stats["segments"])),
        "bytes/subscription": stats["bytes"] / stats["subscriptions"],
    }


def _longest(size: int, options: BenchOptions) -> Table:
    """The longest call of an engine that grows from nothing, and while all its live events end."""
    title, calls = "The longest call", max(1, size // CALL)
    _calls(min(WARMING, calls))
    runs = []
    for repetition in range(min(options.repetitions, MOST_REPETITIONS)):
        options.progress(f"{title}: repetition {repetition + 1}")
        runs.append(_calls(calls))
    rows = []
    for name in runs[0]:
        every = np.stack([run[name] for run in runs])  # (runs, calls, 2)
        figures = {
            "of its thread, ms": 1e3 * float(np.median(every[:, :, 1].max(axis=1))),
            "median ms": 1e3 * float(np.median(every[:, :, 0])),
        }
        rows.append(Row(name, tuple(every[:, :, 0].max(axis=1).tolist()), figures))
    facts = {"subscriptions": calls * CALL, "live events": calls * CALL, "of a call": CALL}
    return Table(title, facts, "call", Unit.MILLISECONDS, tuple(rows), compared=False)


def _calls(calls: int) -> dict[str, Float64]:
    """What each call took: seconds on the wall, and of its own thread; by kind of call."""
    engine = Engine(PACKED, clock=None)
    kinds = {
        "subscribe": _subscribing(engine, calls),
        "publish what stays live": _holding(engine, calls),
        "publish while that ends": _ending(engine, calls),
    }
    return {name: np.array([_timed(work) for work in works]) for name, works in kinds.items()}


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """The seconds that *work* takes, and how many of them its thread works."""
    wall, own = time.perf_counter(), time.thread_time()
    work()
    return time.perf_counter() - wall, time.thread_time() - own


def _subscribing(engine: Engine, calls: int) -> Iterator[Callable[[], object]]:
    number = np.arange(CALL)
    for call in range(calls):
        words = [f"w{one * 7 % 5000}" for one in number + call]
        table = pa.table({"id": [f"s{call}-{one}" for one in number], "w": words, "low": number})
        yield partial(engine.subscribe_batch, table, "has_all(text, :w) AND a > :low")


def _holding(engine: Engine, calls: int) -> Iterator[Callable[[], object]]:
    number = np.arange(CALL)
    for call in range(calls):
        ids, end = [f"e{call}-{one}" for one in number], np.full(CALL, 10.0 + call)
        table = pa.table({"id": ids, "a": number, "time": np.zeros(CALL), "until": end})
        yield partial(engine.publish_batch, table)


def _ending(engine: Engine, calls: int) -> Iterator[Callable[[], object]]:
    for call in range(calls):
        yield partial(engine.publish, {"id": f"p{call}", "a": 1}, time=10.5 + call)


def _opening(columns: SubscriptionColumns, options: BenchOptions) -> Table:
    """Opening the index of a tenth of *columns*, and of all."""
    with TemporaryDirectory() as folder:
        cases = []
        for share in (10, 1):
            some = take(columns, np.arange(max(1, len(columns.until) // share)))
            path = Path(folder) / str(share)
            index = structure_class(PACKED).build(some)
            index.save(path)
            name = f"{len(some.until):,} subscriptions, {nbytes(some) >> 20} MB of columns"
            cases.append(Case(name, stopwatch(partial(PackedIndex.open, path, some))))
        rows = measure(cases, options.repetitions, options.progress, "Opening")
    return Table("Opening", {"seed": options.seed}, "opening", Unit.MILLISECONDS, rows)
