"""An overlay of brokers: what each policy sends between them, uniform and by Zipf's law."""

from __future__ import annotations

import gc
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import numpy as np

from stentor.broker import Delivery, Dimension, Overlay, Space
from stentor.encoding.columns import Int64
from stentor.engine import Engine
from stentor.errors import DisagreementError
from stentor.language.parser import parse
from stentor.model import Schema, Subscription
from stentor.model.record import Record, Subscribe
from stentor.wire.records import record_from_dict
from stentor_lab.result import BenchOptions, Chart, Progress, Row, Table, Unit
from stentor_lab.workloads.cubes import DISTRIBUTIONS, DOMAIN, Cubes

SIZE: Final = 100_000
BROKERS: Final = 11
EVENTS: Final = 1000
#: The first tells everything exactly, so that no event travels for nothing.
POLICIES: Final = ("none", "covering", "mics", "mics gap=16")
ONE_ENGINE: Final = "one engine"
#: Records that come to each broker before the links carry anything.
CHUNK: Final = 100
#: Sizes of a subscription: 4, 8, … on domains of 256.
WIDTHS: Final = 8
#: Many subscriptions fill the space, and nearly every event goes everywhere: they show what links
#: are told. One in so many, with an attribute more, leaves most of it empty: events for nothing.
FEWER: Final = 50
#: Of the space: a cell for each value, but for the last two, which share one.
BITS: Final = 8
#: Subscriptions and events before the first row, so that none includes compiling.
WARM_UP: Final = 50
#: What a picture shows.
CHARTS: Final = (
    Chart("What links were told of subscriptions", "messages", ("told",)),
    Chart("Tables of a broker, on average", "entries", ("entries",)),
    Chart("Events on all links", "messages", ("wanted", "for nothing")),
)


class _Workload(NamedTuple):
    """Subscriptions and events, drawn once for all rows, in a space that fits them."""

    schema: Schema
    space: Space
    wishes: list[Record]
    events: list[Record]


class _Done(NamedTuple):
    """What a run took and what it led to."""

    seconds: float  # of all subscriptions
    event_seconds: float
    deliveries: Int64  # sorted: a number for each
    sent: int  # events, on all links
    figures: dict[str, float]


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Many subscriptions and few, each uniform and by Zipf's law: one engine, then each policy."""
    size = options.size or SIZE
    options.progress("warming up")
    for policy in POLICIES:
        _overlay(_drawn(Cubes(), WARM_UP, WARM_UP), policy, 1, lambda message: None, policy)
    return tuple(
        _table(Cubes(options.seed, distribution, dimensions, sizes=WIDTHS), count, options)
        for dimensions, count in ((2, size), (3, max(1, size // FEWER)))
        for distribution in DISTRIBUTIONS
    )


def _table(recipe: Cubes, size: int, options: BenchOptions) -> Table:
    what = f"{size:,} subscriptions of {recipe.dimensions} attributes, {recipe.distribution}"
    workload = _drawn(recipe, size, EVENTS)
    options.progress(f"{what}: one engine")
    done = {ONE_ENGINE: _one_engine(workload)}
    for policy in POLICIES:
        title = f"{what}: {policy}"
        with _uncollected():
            done[policy] = _overlay(workload, policy, options.seed, options.progress, title)
        if not np.array_equal(done[policy].deliveries, done[ONE_ENGINE].deliveries):
            raise DisagreementError(
                f"{title}: its deliveries are not those of one engine; this is a defect: please "
                "report it with the workload's seed"
            )
    needed = done[POLICIES[0]].sent
    facts = {
        "workload": f"cubes, {recipe.distribution}",
        "attributes": recipe.dimensions,
        "brokers": BROKERS,
        "subscriptions": size,
        "events": len(workload.events),
        "deliveries": len(done[ONE_ENGINE].deliveries),
        "seed": options.seed,
        "runs": 1,
    }
    return Table(
        f"{BROKERS} brokers, {what}",
        facts,
        "subscr.",
        Unit.MICROSECONDS,
        tuple(_row(name, one, workload, needed) for name, one in done.items()),
        compared=False,
        charts=CHARTS,
    )


@contextmanager
def _uncollected() -> Iterator[None]:
    """Leave the garbage collector out, as `timeit` does: it walks millions of objects in vain."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()


def _drawn(recipe: Cubes, size: int, events: int) -> _Workload:
    schema = recipe.schema
    wishes: list[Record] = [
        Subscribe(Subscription(str(number), parse(text, schema=schema)))
        for number, text in enumerate(recipe.texts(size))
    ]
    published: list[Record] = [
        record_from_dict({"op": "publish", **one, "id": str(number)}, schema)
        for number, one in enumerate(recipe.events(events))
    ]
    dimensions = (Dimension(name, 0, DOMAIN - 1) for name in recipe.names)
    return _Workload(schema, Space(tuple(dimensions), BITS), wishes, published)


def _row(name: str, done: _Done, workload: _Workload, needed: int) -> Row:
    """The row of a run; *needed* events, on all links, would have been enough."""
    figures = {"µs/event": 1e6 * done.event_seconds / len(workload.events), **done.figures}
    if name != ONE_ENGINE:
        figures |= {"wanted": needed, "for nothing": done.sent - needed}
    return Row(name, (done.seconds / len(workload.wishes),), figures)


def _one_engine(workload: _Workload) -> _Done:
    engine = Engine(schema=workload.schema, clock=None)
    start = time.perf_counter()
    for first in range(0, len(workload.wishes), CHUNK * BROKERS):
        engine.step(workload.wishes[first : first + CHUNK * BROKERS])
    middle = time.perf_counter()
    found = engine.step(workload.events).matches
    stop = time.perf_counter()
    pairs = zip(found["subscription"].to_pylist(), found["event"].to_pylist(), strict=True)
    return _Done(middle - start, stop - middle, _numbered(pairs, len(workload.events)), 0, {})


def _numbered(pairs: Iterable[tuple[str, str]], events: int) -> Int64:
    """A number for each pair of a subscription and one of so many *events*, sorted."""
    numbers = (int(subscription) * events + int(event) for subscription, event in pairs)
    return np.sort(np.fromiter(numbers, np.int64))


def _overlay(workload: _Workload, policy: str, seed: int, progress: Progress, title: str) -> _Done:
    names = [f"b{number}" for number in range(BROKERS)]
    draw = random.Random(seed)
    links = [(names[draw.randrange(position)], names[position]) for position in range(1, BROKERS)]
    overlay = Overlay(names, links, policy=policy, schema=workload.schema, space=workload.space)
    overlay.run()
    overlay.carried.clear()
    start = time.perf_counter()
    _spread(overlay, workload.wishes, progress, f"{title}, subscriptions")
    middle = time.perf_counter()
    deliveries = _spread(overlay, workload.events, progress, f"{title}, events")
    stop = time.perf_counter()
    carried: Counter[str] = Counter()
    for one, count in overlay.carried.items():
        carried[one.kind] += count
    sent = carried.pop("publish", 0)
    figures = {"told": carried.total(), "entries": _mean(overlay, "table entries")}
    if ranges := _mean(overlay, "ranges"):
        figures["ranges"] = ranges
    pairs = ((one.subscription, one.event) for one in deliveries)
    numbered = _numbered(pairs, len(workload.events))
    return _Done(middle - start, stop - middle, numbered, sent, figures)


def _mean(overlay: Overlay, figure: str) -> float:
    """The mean of a *figure* over all brokers."""
    return sum(broker.stats()[figure] for broker in overlay.brokers.values()) / BROKERS


def _spread(
    overlay: Overlay, records: list[Record], progress: Progress, title: str
) -> list[Delivery]:
    """Let *records* come to all brokers in turn; the deliveries."""
    deliveries: list[Delivery] = []
    told = -1
    for first in range(0, len(records), CHUNK * BROKERS):
        if 5 * first // len(records) > told:  # at each fifth
            told = 5 * first // len(records)
            progress(f"{title}: {first:,} of {len(records):,}")
        chunk = records[first : first + CHUNK * BROKERS]
        for position, name in enumerate(overlay.brokers):
            overlay.send(name, chunk[position::BROKERS])
        deliveries += overlay.run()
    return deliveries
