"""Moving subscriptions: subscribers who travel, messages that come and end.

Paper: AP+-Tree, section 5.2: incoming message matching, with the message's own insertion; moving
subscription processing; and the light safe regions of 5.2.3.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from stentor.encoding.columns import EventColumns, Float64, Int64, SubscriptionColumns, event_count
from stentor.encoding.ragged import events_between
from stentor.index.catalog import structure_class
from stentor.index.structure import Structure
from stentor_lab.bench.ap_tree_matching import MOST_FOR_VARIANTS, SIZE
from stentor_lab.bench.ap_tree_safe import safe_regions, shrunk_regions
from stentor_lab.measure import Case, measure
from stentor_lab.result import BenchOptions, Table, Unit
from stentor_lab.workloads.distributions import random_of
from stentor_lab.workloads.moving_keyword import CITY, MovingKeyword
from stentor_lab.workloads.spatial_keyword import SpatialKeyword

#: Live messages in the leaves (AP+), apart by keywords (AP+k), apart by place (AP+s).
MOVING: Final = ("ap_tree", "ap_tree messages=keywords", "ap_tree messages=space")
SCAN: Final = "scan"
#: With each timestamp so many subscribers move, and so many messages come.
MOVES, MESSAGES = 20_000, 10_000
#: The scan looks at every live message for a move, and at every subscription for a message.
SCAN_MOVES, SCAN_MESSAGES = 20, 512
COMPARED: Final = 20
HISTORY: Final = 10_000

_MOVED = 400  # a stream of random numbers


@dataclass(frozen=True, slots=True)
class Timestamp:
    """What happens at one timestamp."""

    rows: Int64  # of the subscribers who move, each once
    places: Float64  # (moves, 2) where to
    messages: EventColumns


@dataclass(frozen=True, slots=True)
class City:
    """Subscriptions, live messages, and what happens next: the first timestamp warms up."""

    columns: SubscriptionColumns
    live: EventColumns
    timestamps: Sequence[Timestamp]


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Moves, messages and safe regions in a generated city."""
    recipe = MovingKeyword(SpatialKeyword(options.seed, space=CITY))
    return tables_of(recipe, "a city's roads", options)


def tables_of(recipe: MovingKeyword, roads: str, options: BenchOptions) -> tuple[Table, ...]:
    """Moves, messages and safe regions of those who travel on *roads*."""
    size = min(options.size or SIZE, MOST_FOR_VARIANTS)
    words = recipe.words
    facts = {
        "workload": "moving",
        "roads": roads,
        "velocity": recipe.velocity,
        "circles": f"{100 * words.smallest:g}–{100 * words.largest:g} % of the space",
        "seed": options.seed,
        "subscriptions": size,
        "live messages": size,
    }
    options.progress(f"Moving subscriptions: drawing {size:,}, and as many live messages")
    city = _drawn(recipe, size, options)
    indexes = {name: _standing(name, city, options) for name in (SCAN, *MOVING)}
    moves = [_moves(name, index, city) for name, index in indexes.items()]
    messages = [_messages(name, index, city) for name, index in indexes.items()]
    titles = f"Moves on {roads}", f"Messages to travellers on {roads}"
    rows = [
        measure(cases, options.repetitions, options.progress, title)
        for title, cases in zip(titles, (moves, messages), strict=True)
    ]
    return (
        Table(titles[0], facts, "move", Unit.MICROSECONDS, rows[0]),
        Table(titles[1], facts, "message", Unit.MICROSECONDS, rows[1]),
        safe_regions(recipe, facts, options),
        shrunk_regions(recipe, facts, options),
    )


def _drawn(recipe: MovingKeyword, size: int, options: BenchOptions) -> City:
    travellers = recipe.travellers(size)
    columns = recipe.subscriptions(travellers.places()).columns()
    random = random_of(options.seed, _MOVED)
    timestamps = []
    for step in range(1, options.repetitions + 2):
        travellers.step()
        rows = random.permutation(size)[:MOVES]
        messages = recipe.messages(min(MESSAGES, size), step)
        timestamps.append(Timestamp(rows, travellers.places()[rows], messages))
    return City(columns, recipe.live_messages(size), timestamps)


def _standing(name: str, city: City, options: BenchOptions) -> Structure:
    """The index *name* of the city's subscriptions, with its messages live."""
    options.progress(f"Moving subscriptions: building {name}")
    index = structure_class(name).build(city.columns, events_between(city.live, 0, HISTORY))
    # The last one by itself: what grows does so now, and not in the first sample.
    last = event_count(city.live) - 1
    index.hold(events_between(city.live, 0, last))
    index.hold(events_between(city.live, last, None))
    return index


def _moves(name: str, index: Structure, city: City) -> Case:
    """The moves of a timestamp, with what they change among the live messages."""
    first, *rest = city.timestamps
    answer = index.move_and_match(first.rows[:COMPARED], first.places[:COMPARED])
    count = min(SCAN_MOVES if name == SCAN else MOVES, len(first.rows))
    timestamps = iter(rest)
    beside = index.stats()["bytes"] - index.subscriptions.nbytes - index.live.nbytes
    figures = {"changes/move": 0.0, "bytes/subscription": beside / len(city.columns.until)}

    def sample() -> float:
        now = next(timestamps)
        started = time.perf_counter()
        found = index.move_and_match(now.rows[:count], now.places[:count])
        seconds = time.perf_counter() - started
        figures["changes/move"] = (len(found.added.rows) + len(found.removed.rows)) / count
        return seconds

    return Case(name, sample, count, lambda: (*answer.added, *answer.removed), figures=figures)


def _messages(name: str, index: Structure, city: City) -> Case:
    """The messages of a timestamp, matched and kept; as many of the oldest go."""
    first, *rest = (timestamp.messages for timestamp in city.timestamps)
    # Now, while all subscribers are where they are in every index: the scan will move fewer.
    answer = index.match(events_between(first, 0, min(COMPARED, event_count(first))))
    count = min(SCAN_MESSAGES if name == SCAN else MESSAGES, event_count(first))
    messages = iter(rest)
    oldest = iter(range(0, count * len(rest), count))
    figures = {"matches/message": 0.0}

    def sample() -> float:
        coming = events_between(next(messages), 0, count)
        started = time.perf_counter()
        found = index.match(coming)
        index.hold(coming)
        seconds = time.perf_counter() - started
        figures["matches/message"] = len(found.rows) / count
        index.drop(next(oldest) + np.arange(count))
        return seconds

    return Case(name, sample, count, lambda: answer, figures=figures)
