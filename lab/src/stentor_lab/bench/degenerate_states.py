"""States in which an engine may degenerate: many regions, alike expressions, growth, saving.

Each is beside the scan, or beside the definition where there is nothing to scan. Times are of the
processor, since most differences are too small for the clock on the wall of a busy machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa

from stentor import Engine
from stentor.covering.covers import alternatives_cover, alternatives_of
from stentor.encoding.columns import EventColumns, Int64, event_count
from stentor.encoding.ragged import events_between, take
from stentor.encoding.subscriptions import NormalisedSubscription
from stentor.engine.safe_region import Regions
from stentor.index.catalog import structure_class
from stentor.index.layered import layered
from stentor.index.safe_distance import SafeDistances, shrunk_distances
from stentor.index.structure import Structure
from stentor.index.table import FROM_THE_START, EventTable
from stentor.language.limits import ANY_SIZE
from stentor.language.normalise import normalise
from stentor.language.parser import parse
from stentor_lab.measure import Answer, Case, cpu_stopwatch, measure
from stentor_lab.result import BenchOptions, Table, Unit
from stentor_lab.structures import Workload, measured_table
from stentor_lab.workloads.distributions import random_of
from stentor_lab.workloads.expressions import Expressions
from stentor_lab.workloads.intervals import Intervals
from stentor_lab.workloads.moving_keyword import MovingKeyword
from stentor_lab.workloads.plain import encoded

#: Safe regions, the live events that they are among, and new events.
REGIONS: Final = 100_000
LIVE: Final = (10_000, 2_000, 200)
NEW_EVENTS: Final = 64
WORDS: Final = 2000
#: Among so many of one kind covered ones are looked for; of so few the definition is asked.
COVERED: Final = (500, 1_000, 2_000)
DEFINED: Final = 8
#: Subscribers of the tables of motion, and how many of them move in a call, there and back.
MOVERS: Final = (50_000, 160_000)
MOVED: Final = 500
#: Subscriptions of the other tables, and rows that a call inserts.
SUBSCRIPTIONS: Final = 50_000
INSERTED: Final = 100
EVENTS: Final = 256
#: Events that an opened tree meets at most before it has been looked at.
MET: Final = 20_000

SCAN: Final = "block scan"
Draw = Callable[[np.random.Generator], str]


def state_tables(options: BenchOptions) -> tuple[Table, ...]:
    """A table for each state; a smaller size makes all of them smaller."""
    return (
        *(_regions(live, options) for live in LIVE),
        *(_covered(kind, draw, options) for kind, draw in KINDS.items()),
        _doubling(options),
        _opened(options),
        _since(options),
        *(_motion(size, options) for size in MOVERS),
    )


def _sized(size: int, options: BenchOptions) -> int:
    return min(size, options.size or size)


# Safe regions.


def _messages(random: np.random.Generator, count: int) -> list[dict[str, Any]]:
    """Events with eight words, anywhere."""
    words = random.integers(0, WORDS, (count, 8)).tolist()
    at = np.column_stack([random.uniform(0, 10, count), random.uniform(40, 50, count)]).tolist()
    return [
        {"text": " ".join(f"w{word}" for word in some), "loc": location}
        for some, location in zip(words, at, strict=True)
    ]


def _regions(live: int, options: BenchOptions) -> Table:
    """Whose regions a new event shrinks: the fewer events are live, the larger regions are."""
    random, count = random_of(options.seed, 2), _sized(REGIONS, options)
    title = f"Safe regions among {live:,} live events"
    options.progress(f"{title}: drawing {count:,} subscribers")
    words = random.integers(0, WORDS, count).tolist()
    texts = [f"has_all(text, 'w{word}') AND ST_DWithin(loc, here(), 5000)" for word in words]
    at = np.column_stack([random.uniform(0, 10, count), random.uniform(40, 50, count)])
    columns, drawn = encoded(texts, _messages(random, live + NEW_EVENTS), at)
    known = SafeDistances(EventTable.over(events_between(drawn, 0, live))).of(columns, 0)
    regions, every = Regions(), np.arange(count)
    regions.put(every, columns, known, plane=False)
    batch = events_between(drawn, live, None)
    new = [events_between(batch, row, row + 1) for row in range(NEW_EVENTS)]

    def all_of_them() -> tuple[Int64, ...]:
        return tuple(
            np.flatnonzero(shrunk_distances(columns, event, known) < known) for event in new
        )

    def near(events: EventColumns) -> Int64:
        found = regions.shrunk(events, lambda rows: (columns, rows), {})
        return np.zeros(0, np.int64) if found is None else found.row

    def near_ones() -> tuple[Int64, ...]:
        return tuple(map(near, new))

    figures = {"shrunk/event": sum(map(len, near_ones())) / NEW_EVENTS}
    cases = [
        Case("all regions", cpu_stopwatch(all_of_them), NEW_EVENTS, all_of_them, figures=figures),
        Case("circles", cpu_stopwatch(near_ones), NEW_EVENTS, near_ones, figures=figures),
        Case(
            "circles, in a batch", cpu_stopwatch(lambda: near(batch)), NEW_EVENTS, figures=figures
        ),
    ]
    facts = {"workload": "degenerate", "seed": options.seed, "regions": count, "live events": live}
    rows = measure(cases, options.repetitions, options.progress, title)
    return Table(title, facts, "event", Unit.MICROSECONDS, rows)


# Covering.


def _list(random: np.random.Generator) -> str:
    """Some of 200 brands, few or many."""
    chosen = random.choice(200, int(random.choice([2, 4, 8, 64])), replace=False).tolist()
    listed = ", ".join(f"'b{one}'" for one in chosen)
    return f"brand IN ({listed})"


def _letters(random: np.random.Generator, most: int) -> str:
    return "".join(random.choice(list("abcdefgh"), int(random.integers(2, most))).tolist())


def _like(random: np.random.Generator) -> str:
    return f"name LIKE '%{_letters(random, 5)}%{_letters(random, 5)}%'"


def _rlike(random: np.random.Generator) -> str:
    return f"name RLIKE '{_letters(random, 4)}.*{_letters(random, 4)}'"


def _polygon(random: np.random.Generator) -> str:
    """A diamond, small or large."""
    x, y = random.uniform(1, 9), random.uniform(41, 49)
    side = float(random.choice([0.01, 0.05, 0.5]))
    corners = ((x - side, y), (x, y - side), (x + side, y), (x, y + side), (x - side, y))
    ring = ", ".join(f"{east:.6f} {north:.6f}" for east, north in corners)
    return f"ST_Within(loc, ST_GeomFromText('POLYGON(({ring}))'))"


KINDS: Final = {"lists": _list, "LIKE": _like, "RLIKE": _rlike, "polygons": _polygon}


def _covered(kind: str, draw: Draw, options: BenchOptions) -> Table:
    """Who is covered among expressions of one *kind*, of growing numbers of them."""
    title = f"Covered among {kind}"
    sizes = sorted({_sized(size, options) for size in COVERED})
    random = random_of(options.seed, 3)
    options.progress(f"{title}: drawing {sizes[-1]:,} subscriptions")
    texts = [draw(random) for _ in range(sizes[-1])]
    asked = range(0, sizes[-1], max(1, sizes[-1] // DEFINED))
    engines = [_subscribed(texts[:size]) for size in sizes]
    schema = engines[-1].schema
    forms = [
        alternatives_of(NormalisedSubscription(normalise(parse(text), ANY_SIZE)), schema)
        for text in texts
    ]

    def is_covered(row: int) -> bool:
        """Whether one of the others covers it; of equal ones the first stays."""
        return any(
            alternatives_cover(wide, forms[row])
            and (other < row or not alternatives_cover(forms[row], wide))
            for other, wide in enumerate(forms)
            if other != row
        )

    def by_definition() -> Answer:
        return (np.array([is_covered(row) for row in asked]),)

    largest = f"{sizes[-1]:,}"
    cases = [
        Case(
            f"the definition, {largest}",
            cpu_stopwatch(by_definition),
            len(asked),
            by_definition,
            group=largest,
        )
    ]
    for size, engine in zip(sizes, engines, strict=True):
        covered = {pair.id for pair in engine.redundant()}
        answer = (np.array([str(row) in covered for row in asked]),)
        cases.append(
            Case(
                f"redundant(), {size:,}",
                cpu_stopwatch(engine.redundant),
                size,
                partial(tuple, answer),
                group=f"{size:,}",
                figures={"covered": len(covered)},
            )
        )
    rows = measure(cases, options.repetitions, options.progress, title)
    facts = {"workload": "degenerate", "seed": options.seed, "definition asked of": len(asked)}
    return Table(title, facts, "subscription", Unit.MICROSECONDS, rows)


def _subscribed(texts: Sequence[str]) -> Engine:
    engine = Engine(clock=None)
    ids = [str(row) for row in range(len(texts))]
    report = engine.subscribe_batch(pa.table({"id": ids, "expression": list(texts)}))
    assert not report.rejected, report.rejected[:1]
    return engine


# Growth.


def _doubling(options: BenchOptions) -> Table:
    """The longest call while a tree grows threefold, and chooses its attributes anew meanwhile."""
    title = "Doubling: the longest insertion"
    size = _sized(SUBSCRIPTIONS, options)
    recipe = Intervals(options.seed, 4)
    columns, events = recipe.subscriptions(size).columns(), recipe.events(EVENTS).columns()
    first = take(columns, np.arange(size // 3))
    starts = range(size // 3, size, INSERTED)
    parts = [take(columns, np.arange(start, min(start + INSERTED, size))) for start in starts]

    def longest(name: str) -> float:
        index, seconds = structure_class(name).build(first), 0.0
        for part in parts:
            start = time.thread_time()
            index.insert(part)
            seconds = max(seconds, time.thread_time() - start)
        return seconds

    def grown(name: str) -> Answer:
        index = structure_class(name).build(first)
        for part in parts:
            index.insert(part)
        return tuple(index.match(events))

    def everything() -> float:
        start = time.thread_time()
        structure_class("mo_tree").build(columns)
        return time.thread_time() - start

    options.progress(f"{title}: growing to {size:,} subscriptions")
    cases = [
        Case(SCAN if name == "scan" else name, partial(longest, name), answer=partial(grown, name))
        for name in ("scan", "mo_tree", "packed")
    ]
    cases.append(Case("mo_tree, everything in one call", everything))
    rows = measure(cases, options.repetitions, options.progress, title)
    facts = {"workload": "intervals", "seed": options.seed, "subscriptions": size}
    facts["inserted by a call"] = INSERTED
    return Table(title, facts, "call", Unit.MILLISECONDS, rows)


# What was saved, and what holds from a record on.


def _case(name: str, index: Any, events: EventColumns, **figures: float) -> Case:
    asked = partial(index.match, events)
    return Case(name, cpu_stopwatch(asked), event_count(events), asked, figures=figures)


def _opened(options: BenchOptions) -> Table:
    """An opened tree for whose events another attribute would tell subscriptions apart."""
    random, size = random_of(options.seed, 4), _sized(SUBSCRIPTIONS, options)
    least, others = random.integers(0, 1000, size).tolist(), random.integers(1, 21, size).tolist()
    values = random.integers(0, 500, size).tolist()
    texts = [
        f"bid = {low} AND a{other} = {value}"
        for low, other, value in zip(least, others, values, strict=True)
    ]
    drawn = [
        {"bid": {"low": 0, "high": 1000}}
        | {f"a{one}": int(random.integers(500)) for one in random.choice(20, 3, replace=False) + 1}
        for _ in range(EVENTS)
    ]
    columns, events = encoded(texts, drawn)
    title = "Adaptation of an opened BE*-Tree"
    workload = Workload(title, {"workload": "degenerate"}, columns, events)
    options.progress(f"{title}: {size:,} subscriptions")
    with TemporaryDirectory() as folder:
        structure_class("be_star_tree").build(columns).save(Path(folder, "index"))
        opened = layered(structure_class("be_star_tree")).open(Path(folder, "index"), columns)
        for _ in range(0, MET, event_count(events)):
            opened.match(events)
            if opened.should_merge():
                break
        is_due = float(opened.should_merge())
        adapted = opened.merged()[0]
        cases = [
            _case(SCAN, structure_class("scan").build(columns), events),
            _case("be_star_tree, as it was opened", opened, events),
            _case("be_star_tree, adapted", adapted, events, **{"the engine adapts": is_due}),
        ]
        return measured_table(workload, cases, options)


def _since(options: BenchOptions) -> Table:
    """Rows that hold from a record on, as all do that an engine is given one by one."""
    size = _sized(SUBSCRIPTIONS, options)
    recipe = Expressions(options.seed, match_share=0.01)
    columns, drawn = recipe.subscriptions(size).columns(), recipe.events(EVENTS).columns()
    events = drawn._replace(seq=np.full(event_count(drawn), size + 1))
    title = "Rows with a `since`"
    workload = Workload(title, {"workload": "expressions"}, columns, events)
    options.progress(f"{title}: {size:,} subscriptions")
    cases = []
    for name in ("scan", "be_star_tree", "packed"):
        for since, said in ((np.arange(size), "since"), (FROM_THE_START, "from the start")):
            index = structure_class(name)()
            index.insert(columns, since)
            cases.append(_case(f"{SCAN if name == 'scan' else name}, {said}", index, events))
    return measured_table(workload, cases, options)


def _motion(most: int, options: BenchOptions) -> Table:
    """An AP-Tree built of a folder: for subscribers who are known to move, and as if they stood."""
    title = f"Motion kept after a save, {most:,} subscribers"
    size, recipe = _sized(most, options), MovingKeyword()
    travellers = recipe.travellers(size)
    here = travellers.places()
    columns, events = recipe.subscriptions(here).columns(), recipe.messages(EVENTS, 1)
    workload = Workload(title, {"workload": "moving keyword"}, columns, events)
    rows, tree = np.arange(size), structure_class("ap_tree")
    few = rows[:: max(1, size // MOVED)]
    away = np.roll(here[few], 1, axis=0)
    options.progress(f"{title}: {size:,} subscriptions")
    index = tree.build(columns)
    index.match(events)
    for places in (here[::-1].copy(), here):
        index.move(rows, places)
    with TemporaryDirectory() as folder:
        kept = index.columns_of(rows)
        tree.build(kept, None, index.learned(rows)).save(Path(folder, "index"))
        learned = tree.learned_in(Path(folder, "index"), kept)
        motion = {name: array.copy() for name, array in learned.items()}

    def there_and_back(index: Structure) -> Answer:
        index.move(few, away)
        found = index.match(events)
        index.move(few, here[few])
        return tuple(found)

    contenders = {
        SCAN: structure_class("scan").build(kept),
        "ap_tree, motion forgotten": tree.build(kept),
        "ap_tree, motion kept": tree.build(kept, None, motion),
    }
    cases = []
    for name, one in contenders.items():
        asked = partial(there_and_back, one)
        cases.append(Case(name, cpu_stopwatch(asked), event_count(events), asked))
    return measured_table(workload, cases, options)
