"""Everyday inputs on which a structure may degenerate: none may be slower than the scan there.

States, such as many safe regions or a tree that was opened, are in `degenerate_states.py`.
An input is a line of INPUTS: its name, the structures that it tries, and a function from a size and
a random generator to texts of subscriptions and events, or to columns of both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from stentor.encoding.columns import EventColumns, SubscriptionColumns, event_count
from stentor.encoding.ragged import events_between, take
from stentor.index.catalog import structure_class
from stentor.index.structure import Structure
from stentor_lab.bench.degenerate_states import state_tables
from stentor_lab.measure import Answer, Case, stopwatch
from stentor_lab.result import BenchOptions, Progress, Table
from stentor_lab.structures import Contender, Workload, build, figures_of, measured_table
from stentor_lab.workloads.distributions import random_of
from stentor_lab.workloads.expressions import Expressions
from stentor_lab.workloads.intervals import Intervals
from stentor_lab.workloads.pickups import hot_city
from stentor_lab.workloads.plain import encoded

SIZE: Final = 160_000
EVENTS: Final = 256
#: Rows that are inserted by one call, and that are removed in a repetition, by one call each.
INSERTED: Final = 1000
REMOVED: Final = 100
#: Subscriptions that ask for live events, and subscribers that move, in a repetition.
ASKING: Final = 100
MOVED: Final = 500

Columns = tuple[SubscriptionColumns, EventColumns]
Draw = Callable[[int, np.random.Generator], Columns]
Texts = Callable[[int, np.random.Generator], tuple[Sequence[str], Sequence[Mapping[str, Any]]]]
Past = Callable[[np.random.Generator], EventColumns]
Ask = Callable[[Structure, EventColumns], Answer]


@dataclass(frozen=True, slots=True)
class Input:
    """An input, the structures that it tries (with settings), and what they are asked."""

    name: str
    structures: tuple[str, ...]
    draw: Draw
    ask: Ask = Structure.match
    history: Past | None = None


def from_texts(drawn: Texts) -> Draw:
    """What *drawn* gives as texts and plain events, as columns."""

    def draw(size: int, random: np.random.Generator) -> Columns:
        return encoded(*drawn(size, random))

    return draw


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """A table for each input, then for each state."""
    return (*(table_of(one, options) for one in INPUTS), *state_tables(options))


def table_of(one: Input, options: BenchOptions) -> Table:
    """The block scan first, then each structure: built at once, and inserted in parts."""
    size = min(options.size or SIZE, SIZE)
    options.progress(f"{one.name}: drawing {size:,} subscriptions")
    columns, events = one.draw(size, random_of(options.seed, 0))
    history = one.history and one.history(random_of(options.seed, 1))
    workload = Workload(one.name, {"workload": "degenerate"}, columns, events, history)
    contenders = [build("scan", workload, options.progress, shown="block scan")]
    for name in one.structures:
        contenders.append(build(name, workload, options.progress, shown=SHOWN.get(name)))
        contenders.append(_inserted(name, workload, options.progress))
    cases = [_case(contender, one.ask, workload) for contender in contenders]
    if one.ask is best:
        cases += [_all_matches(contender, workload) for contender in contenders[1:]]
    return measured_table(workload, cases, options)


def _inserted(name: str, workload: Workload, progress: Progress) -> Contender:
    """The structure *name*, with the subscriptions of *workload* inserted in their order."""
    progress(f"{workload.title}: inserting into {name}")
    index = structure_class(name)()
    start = time.perf_counter()
    for first in range(0, workload.size, INSERTED):
        rows = np.arange(first, min(first + INSERTED, workload.size))
        index.insert(take(workload.columns, rows))
    rate = workload.size / (time.perf_counter() - start)
    return Contender(f"{SHOWN.get(name, name)}, inserted", index, rate)


def _case(contender: Contender, ask: Ask, workload: Workload) -> Case:
    index, events = contender.index, workload.events
    figures = {
        "matches/event": len(index.match(events).rows) / event_count(events),
        **figures_of(contender, workload),
    }
    if ask is match_while_expiring:
        longest_call(index, events)  # compiles what it calls
        figures["longest call, ms"] = longest_call(index, events)
    asked = partial(ask, index, events)
    return Case(contender.name, stopwatch(asked), event_count(events), asked, figures=figures)


def _all_matches(contender: Contender, workload: Workload) -> Case:
    """What the best are found faster than, or for nothing: all matches of the same tree."""
    asked = partial(contender.index.match, workload.events)
    name = f"{contender.name}, all matches"
    return Case(name, stopwatch(asked), event_count(workload.events))


# What is asked.


def best(index: Structure, events: EventColumns) -> Answer:
    """The best row of each event."""
    return index.top(events, 1)


def remove_then_match(index: Structure, events: EventColumns) -> Answer:
    """Some rows go, one call each, then *events* come."""
    standing = index.current_rows()
    for row in standing[:: max(1, len(standing) // REMOVED)][:REMOVED]:
        index.remove(np.array([row]))
    return index.match(events)


def expire_then_match(index: Structure, events: EventColumns) -> Answer:
    """Some rows end at once, in one call as time passes; then *events* come."""
    standing = index.current_rows()
    index.remove(standing[:: max(1, len(standing) // REMOVED)][:REMOVED])
    return index.match(events)


def longest_call(index: Structure, events: EventColumns) -> float:
    """Milliseconds of the longest single call while *events* come and expire one by one."""
    longest = 0.0
    for row in range(event_count(events)):
        one = events_between(events, row, row + 1)
        start = time.thread_time()
        index.match(one)
        index.drop(np.array([index.hold(one)]))
        index.forget_dropped()
        longest = max(longest, time.thread_time() - start)
    return 1000.0 * longest


def match_while_expiring(index: Structure, events: EventColumns) -> Answer:
    """*events* are matched and kept, some subscriptions ask for them, and they go again."""
    found = index.match(events)
    first = index.hold(events)
    index.match_live(index.columns_of(np.arange(min(ASKING, index.count))))
    index.drop(np.arange(first, first + event_count(events)))
    index.forget_dropped()
    return found


def move_then_match(index: Structure, events: EventColumns) -> Answer:
    """Some subscribers go to the place of another one, in one call; then *events* come."""
    rows = np.arange(0, index.count, max(1, index.count // MOVED))
    locations = index.subscriptions.columns.position.reshape(-1, 2)[rows]
    index.move(rows, np.roll(locations, 1, axis=0))
    return index.match(events)


# Inputs.


def _orders(values: Callable[[int, np.random.Generator], Sequence[int | float]]) -> Draw:
    """`order_no = …` for each of *values*; events have some of them."""

    def drawn(size: int, random: np.random.Generator) -> tuple[list[str], list[dict[str, Any]]]:
        asked = values(size, random)
        events = [{"order_no": asked[position]} for position in random.integers(0, size, EVENTS)]
        return [f"order_no = {value}" for value in asked], events

    return from_texts(drawn)


def _ascending(size: int, random: np.random.Generator) -> list[int]:
    return list(range(1, size + 1))


def _descending(size: int, random: np.random.Generator) -> list[int]:
    return list(range(size, 0, -1))


def _exponential(size: int, random: np.random.Generator) -> list[float]:
    """Values that double a hundred times, ascending."""
    values: list[float] = (2.0 ** np.linspace(0, 100, size)).tolist()
    return values


def _equal(size: int, random: np.random.Generator) -> tuple[list[str], list[dict[str, Any]]]:
    """Sixteen subscriptions, each very often; half of the events are wanted by nobody."""
    texts = [f"status = 'open' AND floor = {row % 16}" for row in range(size)]
    return texts, [{"status": "open", "floor": 17 * (event % 2)} for event in range(8)]


def _users(size: int, random: np.random.Generator) -> tuple[list[str], list[dict[str, Any]]]:
    """Names that begin alike, for longer than any prefix."""
    names = [f"https://example.org/tenants/main/users/user-{row:08}" for row in range(size)]
    events = [{"user": names[position]} for position in random.integers(0, size, EVENTS)]
    return [f"user = '{name}'" for name in names], events


def _pairs(size: int, random: np.random.Generator) -> tuple[list[str], list[dict[str, Any]]]:
    """Two of the names that begin alike for each subscription."""
    names = [f"https://example.org/tenants/main/users/user-{row:08}" for row in range(size)]
    pairs = random.integers(0, size, (size, 2)).tolist()
    events = [{"user": names[position]} for position in random.integers(0, size, EVENTS)]
    return [f"user IN ('{names[one]}', '{names[two]}')" for one, two in pairs], events


def _weighted(match_share: float, alpha: float) -> Draw:
    """Weighted expressions and weighted events."""

    def draw(size: int, random: np.random.Generator) -> Columns:
        seed = int(random.integers(1 << 31))
        recipe = Expressions(seed, match_share=match_share, alpha=alpha, weighted_events=True)
        return recipe.subscriptions(size).columns(), recipe.events(EVENTS).columns()

    return draw


def _posts(random: np.random.Generator, count: int) -> list[dict[str, Any]]:
    """Events with eight of the words that few ask for, in the east of a region."""
    words = random.integers(0, WORDS, (count, 8))
    at = np.column_stack([10 - random.exponential(1.0, count) % 10, random.uniform(40, 50, count)])
    return [
        {"text": " ".join(f"w{word}" for word in some), "loc": location}
        for some, location in zip(words.tolist(), at.tolist(), strict=True)
    ]


def _lists(words: int) -> Draw:
    """Each subscription asks for one of so many *words*."""

    def drawn(size: int, random: np.random.Generator) -> tuple[list[str], list[dict[str, Any]]]:
        listed = random.integers(0, WORDS * words, (size, words)).tolist()
        joined = (", ".join(f"'w{word}'" for word in some) for some in listed)
        texts = [f"has_any(text, {some})" for some in joined]
        return texts, _posts(random, EVENTS)

    return from_texts(drawn)


def _members(words: int) -> Draw:
    """Each subscription asks for one of so many strings."""

    def drawn(size: int, random: np.random.Generator) -> tuple[list[str], list[dict[str, Any]]]:
        listed = random.integers(0, WORDS * words, (size, words)).tolist()
        joined = (", ".join(f"'w{word}'" for word in some) for some in listed)
        events = [{"brand": f"w{word}"} for word in random.integers(0, WORDS * words, EVENTS)]
        return [f"brand IN ({some})" for some in joined], events

    return from_texts(drawn)


def _boxes(size: int, random: np.random.Generator) -> tuple[list[str], list[dict[str, Any]]]:
    """Small boxes, most of them where few events are."""
    x, y = random.exponential(2.0, size) % 10, random.uniform(40, 50, size)
    texts = [
        f"ST_Within(loc, ST_MakeEnvelope({west}, {south}, {west + 0.02}, {south + 0.02}))"
        for west, south in zip(x.tolist(), y.tolist(), strict=True)
    ]
    return texts, _posts(random, EVENTS)


def _west_to_east(random: np.random.Generator) -> EventColumns:
    posts = sorted(_posts(random, 20_000), key=lambda post: float(post["loc"][0]))
    return encoded(["loc IS NOT NULL"], posts)[1]


def _morning_and_evening(random: np.random.Generator) -> EventColumns:
    """In order of time: first where few subscribers are, then where the others are."""
    posts = _posts(random, 20_000)
    for post in posts[:10_000]:
        post["loc"] = [random.uniform(0.0, 0.5), random.uniform(40.0, 41.0)]
    return encoded(["loc IS NOT NULL"], posts)[1]


def _circles(metres: int) -> Draw:
    """Circles around subscribers, and a word for each."""

    def draw(size: int, random: np.random.Generator) -> Columns:
        words = random.integers(0, WORDS, size).tolist()
        circle = f"ST_DWithin(loc, here(), {metres})"
        texts = [f"has_all(text, 'w{word}') AND {circle}" for word in words]
        at = np.column_stack([random.uniform(0, 10, size), random.uniform(40, 50, size)])
        return encoded(texts, _posts(random, EVENTS), at)

    return draw


def _city(size: int, random: np.random.Generator) -> Columns:
    """Intervals, and small squares in a city where most of it happens around one square."""
    recipe = _hot_city(size, random)
    return recipe.subscriptions(size).columns(), recipe.events(EVENTS).columns()


def _city_history(random: np.random.Generator) -> EventColumns:
    return _hot_city(1, random).events(8192).columns()


def _hot_city(size: int, random: np.random.Generator) -> Intervals:
    return Intervals(1, 4, places=hot_city(size, random), reach=(20.0, 100.0))


_BE_STAR: Final = ("be_star_tree", "packed")
_MO: Final = ("mo_tree", "mo_tree pieces=widths", "packed")
#: Variants that are a paper's own, as the tables show them.
SHOWN: Final = {"mo_tree pieces=widths": "mo_tree, the paper's own pieces=widths"}
_AP: Final = ("ap_tree", "packed")
WORDS: Final = 2000
INPUTS: Final = (
    Input("Ascending keys", _BE_STAR, _orders(_ascending)),
    Input("Descending keys", _BE_STAR, _orders(_descending)),
    Input("Ascending keys that double", _BE_STAR, _orders(_exponential)),
    Input("Removal among equal subscriptions", _BE_STAR, from_texts(_equal), remove_then_match),
    Input("Expiry among equal subscriptions", _BE_STAR, from_texts(_equal), expire_then_match),
    Input("Strings with a long common prefix", _BE_STAR, from_texts(_users)),
    Input("Pairs of strings with a long common prefix", _BE_STAR, from_texts(_pairs)),
    Input("Best of weighted events, 0.1 %", _BE_STAR, _weighted(0.001, 0.0), best),
    Input("Best of weighted events, 0.1 %, Zipf", _BE_STAR, _weighted(0.001, 1.0), best),
    Input("Best of weighted events, 1 %", _BE_STAR, _weighted(0.01, 0.0), best),
    Input("Best of weighted events, 1 %, Zipf", _BE_STAR, _weighted(0.01, 1.0), best),
    Input("One of 16 words", _AP, _lists(16)),
    Input("One of 17 words", _AP, _lists(17)),
    Input("One of 16 strings", _AP, _members(16)),
    Input("One of 17 strings", _AP, _members(17)),
    Input("A history in order of time", _AP, from_texts(_boxes), history=_morning_and_evening),
    Input("A history from west to east", _AP, from_texts(_boxes), history=_west_to_east),
    Input("Live events that expire", _AP, _circles(5_000), match_while_expiring),
    Input("Wide circles that move", _AP, _circles(200_000), move_then_match),
    Input("A city around one square", _MO, _city, history=_city_history),
)
