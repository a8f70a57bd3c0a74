"""What an application does all day: objects that move, tenants, changes that are kept.

a fleet    live objects updated in random order, with who they entered and left
tenants    an event for the subscriptions of one tenant, beside one for all of them
durable    subscriptions in batches, each on disk before it is answered; opening them again
asyncio    how long the loop waits at most while the engine works
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa

import stentor
from stentor import aio
from stentor_lab.measure import Case, measure, stopwatch
from stentor_lab.result import BenchOptions, Table, Unit

SIZE: Final = 1_000_000
#: Live objects for each region; subscriptions for each tenant.
OBJECTS_PER_REGION: Final = 10
PER_TENANT: Final = 100
BATCH: Final = 20_000
_EVENTS: Final = 100


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """All four; *size* is that of the fleet, and how many subscriptions there are."""
    size = options.size or SIZE
    random = np.random.default_rng(options.seed)
    return (
        _fleet(options, size, random),
        _tenants(options, size, random),
        *_durable(options, size, random),
        _loop(options, random),
    )


def _fleet(options: BenchOptions, size: int, random: np.random.Generator) -> Table:
    regions = max(1, size // OBJECTS_PER_REGION)
    wanted = _regions(regions, random)
    cases = []
    for name in ("packed", "mo_tree"):
        engine = stentor.Engine(name, clock=None)
        engine.subscribe_batch(wanted)
        for start in range(0, size, BATCH):
            engine.update_batch(_objects(np.arange(start, min(size, start + BATCH)), random))
        cases.append(Case(name, stopwatch(_moves(engine, size, random)), min(BATCH, size)))
    rows = measure(cases, options.repetitions, options.progress, "a fleet")
    workload = {"live objects": size, "polygons and circles": regions, "batch": BATCH}
    title = "An object moves: the update, and whom it entered and left"
    return Table(title, workload, "update", Unit.MICROSECONDS, rows)


def _moves(engine: stentor.Engine, size: int, random: np.random.Generator) -> Callable[[], object]:
    def move() -> None:
        some = random.choice(size, min(BATCH, size), replace=False)
        engine.update_batch(_objects(some, random))

    return move


def _objects(which: Any, random: np.random.Generator) -> Any:
    x, y = random.uniform(-1, 1, len(which)), random.uniform(50, 52, len(which))
    points = pa.FixedSizeListArray.from_arrays(pa.array(np.column_stack([x, y]).ravel()), 2)
    return pa.table({"id": [f"o{one}" for one in which.tolist()], "loc": points})


def _regions(regions: int, random: np.random.Generator) -> Any:
    """Half circles, half polygons of four corners, some 300 m across."""
    x, y = random.uniform(-1, 1, regions), random.uniform(50, 52, regions)
    texts = [
        f"ST_DWithin(loc, ST_Point({a:.5f}, {b:.5f}), 150)"
        if number % 2
        else f"ST_Within(loc, ST_GeomFromText('POLYGON(({a:.5f} {b:.5f}, {a + 0.004:.5f} "
        f"{b:.5f}, {a + 0.004:.5f} {b + 0.003:.5f}, {a:.5f} {b + 0.003:.5f}, {a:.5f} {b:.5f}))'))"
        for number, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True))
    ]
    return pa.table({"id": [f"r{one}" for one in range(regions)], "expression": texts})


def _tenants(options: BenchOptions, size: int, random: np.random.Generator) -> Table:
    tenants = max(1, size // PER_TENANT)
    engine = stentor.Engine(clock=None)
    for start in range(0, size, BATCH):
        own = range(start, min(size, start + BATCH))
        labels = [{"tenant": f"t{one % tenants}"} for one in own]
        table = _wishes(own, random).append_column(
            "labels", pa.array(labels, pa.struct([("tenant", pa.string())]))
        )
        engine.subscribe_batch(table)
    events = [
        {"id": f"e{one}", "price": float(random.integers(1000)), "kind": int(random.integers(9))}
        for one in range(_EVENTS)
    ]
    chosen = [{"tenant": f"t{random.integers(tenants)}"} for _ in events]

    def all_of_them() -> None:
        for event in events:
            engine.publish(event)

    def one_tenant() -> None:
        for event, among in zip(events, chosen, strict=True):
            engine.publish(event, among=among)

    cases = [
        Case("for all", stopwatch(all_of_them), _EVENTS),
        Case("among one tenant's", stopwatch(one_tenant), _EVENTS),
    ]
    rows = measure(cases, options.repetitions, options.progress, "tenants")
    workload = {"subscriptions": size, "tenants": tenants, "events": _EVENTS}
    return Table("An event for one tenant", workload, "event", Unit.MICROSECONDS, rows)


def _wishes(which: Any, random: np.random.Generator) -> Any:
    prices, kinds = random.integers(1, 1000, len(which)), random.integers(0, 9, len(which))
    texts = [
        f"price < {price} AND kind = {kind}"
        for price, kind in zip(prices.tolist(), kinds.tolist(), strict=True)
    ]
    return pa.table({"id": [f"s{one}" for one in which], "expression": texts})


def _durable(options: BenchOptions, size: int, random: np.random.Generator) -> tuple[Table, ...]:
    number = count()
    with TemporaryDirectory(prefix="stentor-bench-") as folder:

        def kept(**settings: Any) -> stentor.Engine:
            where = Path(folder, str(next(number)))
            return stentor.Engine.open(where, durable=True, clock=None, **settings)

        engines = {
            "kept nowhere": stentor.Engine(clock=None),
            "durable, fsync=False": kept(fsync=False),
            "durable, fsync of each batch": kept(),
        }
        first = count()

        def subscribe(engine: stentor.Engine) -> Callable[[], object]:
            def work() -> None:
                start = next(first) * BATCH
                engine.subscribe_batch(_wishes(range(start, start + BATCH), random))

            return work

        cases = [
            Case(name, stopwatch(subscribe(engine)), BATCH) for name, engine in engines.items()
        ]
        rows = measure(cases, options.repetitions, options.progress, "durable")
        for engine in engines.values():
            engine.close()
        workload = {"batch": BATCH, "disk": shutil.disk_usage(folder).total >> 30}
        subscribed = Table("Subscribing by the batch", workload, "subscription", Unit.RATE, rows)
        return subscribed, _opening(options, Path(folder, "large"), size, random)


def _opening(options: BenchOptions, folder: Path, size: int, random: np.random.Generator) -> Table:
    engine = stentor.Engine.open(folder, durable=True, fsync=False, clock=None)
    for start in range(0, size, BATCH):
        engine.subscribe_batch(_wishes(range(start, min(size, start + BATCH)), random))
    engine.close()

    def open_it() -> float:
        start = time.perf_counter()
        opened = stentor.Engine.open(folder, durable=True, clock=None)
        opened.publish({"id": "e", "price": 1.0, "kind": 1})
        taken = time.perf_counter() - start
        opened.close()
        return taken

    cases = [Case("open, and the first publish", open_it)]
    rows = measure(cases, options.repetitions, options.progress, "opening")
    workload = {"subscriptions": size}
    return Table(
        "Opening a durable engine", workload, "opening", Unit.SECONDS, rows, compared=False
    )


def _loop(options: BenchOptions, random: np.random.Generator) -> Table:
    """The longest that the loop waits while calls and tables are dealt with."""

    async def longest() -> float:
        async with aio.Engine(clock=None) as engine:
            first, others = _wishes(range(BATCH), random), _wishes(range(BATCH, 6 * BATCH), random)
            await engine.subscribe_batch(first)
            worst, is_over = 0.0, asyncio.Event()

            async def tick() -> None:
                nonlocal worst
                while not is_over.is_set():
                    start = time.perf_counter()
                    await asyncio.sleep(0.001)
                    worst = max(worst, time.perf_counter() - start - 0.001)

            ticking = asyncio.create_task(tick())
            more = engine.subscribe_batch(others)
            events = [{"id": f"e{one}", "price": 1.0, "kind": 1} for one in range(200)]
            await asyncio.gather(more, *(engine.publish(event) for event in events))
            is_over.set()
            await ticking
            return worst

    cases = [Case("the longest wait", lambda: asyncio.run(longest()))]
    rows = measure(cases, options.repetitions, options.progress, "asyncio")
    workload = {"subscriptions": 6 * BATCH, "calls": 200}
    return Table(
        "asyncio: how long the loop waits",
        workload,
        "wait",
        Unit.MILLISECONDS,
        rows,
        compared=False,
    )
