"""An overlay of brokers: what each policy sends between them, uniform and by Zipf's law."""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import Final, NamedTuple

from stentor.bench.result import BenchOptions, Row, Table, Unit
from stentor.broker import Overlay
from stentor.engine import Engine
from stentor.errors import DisagreementError
from stentor.language.parser import parse
from stentor.model import Schema, Subscription
from stentor.model.record import Record, Subscribe
from stentor.wire.records import record_from_dict
from stentor.workloads.cubes import DISTRIBUTIONS, Cubes

SIZE: Final = 100_000
BROKERS: Final = 11
EVENTS: Final = 1000
POLICIES: Final = ("none", "covering")
#: Records that come to each broker before the links carry anything.
CHUNK: Final = 500
#: Sizes of a subscription: 4, 8, … on domains of 256.
WIDTHS: Final = 8


class _Done(NamedTuple):
    """What a run took and what it led to."""

    seconds: float  # of all subscriptions
    deliveries: int
    figures: dict[str, float]


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """One table for each distribution: one engine, then the overlay with each policy."""
    return tuple(_table(distribution, options) for distribution in DISTRIBUTIONS)


def _table(distribution: str, options: BenchOptions) -> Table:
    size = options.size or SIZE
    count = min(size, EVENTS)
    recipe = Cubes(options.seed, distribution, sizes=WIDTHS)
    schema = recipe.schema
    wishes: list[Record] = [
        Subscribe(Subscription(f"s{number}", parse(text, schema=schema)))
        for number, text in enumerate(recipe.texts(size))
    ]
    events = [record_from_dict({"op": "publish", **one}, schema) for one in recipe.events(count)]
    options.progress(f"{distribution}: one engine")
    done = {"one engine": _one_engine(wishes, events, schema)}
    for policy in POLICIES:
        options.progress(f"{distribution}: {BROKERS} brokers, {policy}")
        done[policy] = _overlay(wishes, events, schema, policy, options.seed)
    if len({one.deliveries for one in done.values()}) > 1:
        told = ", ".join(f"{name}: {one.deliveries:,}" for name, one in done.items())
        raise DisagreementError(f"the deliveries differ: {told}")
    rows = tuple(Row(name, (one.seconds / size,), one.figures) for name, one in done.items())
    facts = {
        "workload": f"cubes, {distribution}",
        "brokers": BROKERS,
        "subscriptions": size,
        "events": count,
        "deliveries": done["one engine"].deliveries,
        "seed": options.seed,
        "runs": 1,
    }
    title = f"{BROKERS} brokers, {distribution}: messages on all links together"
    return Table(title, facts, "subscr.", Unit.MICROSECONDS, rows, compared=False)


def _one_engine(wishes: list[Record], events: list[Record], schema: Schema) -> _Done:
    engine = Engine(schema=schema, clock=None)
    start = time.perf_counter()
    engine.step(wishes)
    seconds = time.perf_counter() - start
    return _Done(seconds, len(engine.step(events).matches), {})


def _overlay(
    wishes: list[Record], events: list[Record], schema: Schema, policy: str, seed: int
) -> _Done:
    names = [f"b{number}" for number in range(BROKERS)]
    draw = random.Random(seed)
    links = [(names[draw.randrange(place)], names[place]) for place in range(1, BROKERS)]
    overlay = Overlay(names, links, policy=policy, schema=schema)
    overlay.run()
    overlay.carried.clear()
    start = time.perf_counter()
    _spread(overlay, wishes)
    seconds = time.perf_counter() - start
    deliveries = _spread(overlay, events)
    carried: Counter[str] = Counter()
    for one, count in overlay.carried.items():
        carried[one.kind] += count
    entries = [broker.stats()["table entries"] for broker in overlay.brokers.values()]
    figures = {
        "told": carried["subscribe"],
        "told/subscr.": carried["subscribe"] / len(wishes),
        "entries/broker": sum(entries) / BROKERS,
        "events sent": carried["publish"],
        "for nothing": overlay.unwanted,
    }
    return _Done(seconds, deliveries, figures)


def _spread(overlay: Overlay, records: list[Record]) -> int:
    """Let *records* come to all brokers in turn; the number of deliveries."""
    deliveries = 0
    for first in range(0, len(records), CHUNK * BROKERS):
        chunk = records[first : first + CHUNK * BROKERS]
        for place, name in enumerate(overlay.brokers):
            overlay.send(name, chunk[place::BROKERS])
        deliveries += len(overlay.run())
    return deliveries
