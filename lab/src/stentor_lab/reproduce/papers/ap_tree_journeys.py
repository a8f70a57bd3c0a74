"""What the experiments of AP+-Tree measure: journeys of subscribers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from stentor.encoding.columns import EventColumns, Float64, Int64, SubscriptionColumns, event_count
from stentor.encoding.ragged import events_between, take
from stentor.index.structure import Structure
from stentor_lab.baselines.rivals import any_structure, shown_name
from stentor_lab.measure import Answer, Case, measure
from stentor_lab.reproduce.curves import Curve, Panel, Point
from stentor_lab.reproduce.keyword_data import GN, TWEETS, keyword_data
from stentor_lab.reproduce.scale import RunSettings
from stentor_lab.reproduce.sweep import OURS, Axis, Collected, collecting
from stentor_lab.workloads.distributions import random_of
from stentor_lab.workloads.moving_keyword import CITY, MovingKeyword
from stentor_lab.workloads.moving_names import MovingNames
from stentor_lab.workloads.real_files import has, roads_of
from stentor_lab.workloads.roads import RoadNetwork
from stentor_lab.workloads.spatial_keyword import SpatialKeyword

AP = "AP+-Tree"
#: AP+ that builds no node anew while subscribers move: what that costs, and gains.
FIXED: Final = "AP+-Tree, nodes fixed"
SHOWN: Final = {
    "ap_tree paper": AP,
    "ap_tree paper rebuilds=no": FIXED,
    "iq_tree": "IQ+-Tree",
    "rq_tree": "RQ+-Tree",
    "ss_index": "SS-Index",
    "kk_index": "KK-Index",
    **{name: shown_name(name) for name in OURS},
}
VARIANTS: Final = {
    "ap_tree paper": AP,
    "ap_tree paper rebuilds=no": FIXED,
    "ap_tree paper messages=keywords": "AP+k-Tree",
    "ap_tree paper messages=space": "AP+s-Tree",
    **{name: shown_name(name) for name in OURS},
}
RIVALS: Final = ("IQ+-Tree", "RQ+-Tree", "SS-Index", "KK-Index")
WORDS: Final = (TWEETS, GN)
#: Roads: ODB, and California in place of SAN, whose crossings have no places.
ROADS: Final = {"ODB": "road_oldenburg.txt", "SAN": "road_california.txt"}
#: Of a timestamp so many moves and messages are timed, at most: in smaller batches a tree that
#: arranges itself after each would seem slower than it is.
TIMED: Final = 20_000
#: Timestamps before anything is timed, in which a tree arranges itself, and those that are timed.
WARM, STEADY = 8, 20
_MOVED = 410  # a stream of random numbers

Things = dict[str, float]


@dataclass(frozen=True)
class Journey:
    """Subscribers, live messages, and timestamps of moves and new messages."""

    columns: SubscriptionColumns
    live: EventColumns
    moves: Sequence[tuple[Int64, Float64]]
    messages: Sequence[EventColumns]
    facts: dict[str, Any]


def roads_named(name: str) -> tuple[RoadNetwork | None, str]:
    """The roads *name*, or a drawn city's."""
    if not has(ROADS[name]):
        return None, "a drawn city"
    return roads_of(ROADS[name], CITY), ROADS[name]


def journey(
    settings: RunSettings,
    millions: float = 1.0,
    *,
    words: str = TWEETS,
    roads: str = "ODB",
    velocity: float = 1.0,
    area: float = 0.0001,
    mobility: float = 0.2,
) -> Journey:
    """A journey of so many subscribers, on *roads*; *area* is the share that a circle has.

    *words* are of TWEETS or of GN.
    """
    network, about = roads_named(roads)
    drawn = SpatialKeyword(settings.seed, space=CITY, smallest=area, largest=area)
    recipe = MovingKeyword(drawn, velocity=velocity, roads=network)
    size = settings.scale.of(millions * settings.scale.moving)
    timed = max(8, min(TIMED, size // 10))
    travellers = recipe.travellers(size)
    source, named = keyword_data(words, settings), None
    if source.messages is not None:
        named = MovingNames(recipe, source.messages.stretched(CITY), size)
    places = travellers.places()
    columns = named.subscriptions(places) if named else recipe.subscriptions(places).columns()
    random = random_of(settings.seed, _MOVED)
    moves, messages = [], []
    for step in range(1, WARM + STEADY + 1):
        travellers.step()
        rows = random.permutation(size)[: min(TIMED, max(8, int(mobility * size)))]
        moves.append((rows, travellers.places()[rows]))
        messages.append((named or recipe).messages(timed, step))
    facts = {
        "subscriptions": size,
        "live messages": size,
        "roads": about,
        "data": f"{source.about}, {about}",
        "velocity": velocity,
        "area": f"{100 * area:g} %",
        "moves timed a timestamp": len(moves[0][0]),
        "timestamps": f"{WARM} before, means of {STEADY}",
        "seed": settings.seed,
    }
    live = named.live_messages() if named else recipe.live_messages(size)
    return Journey(columns, live, moves, messages, facts)


def _ready(name: str, trip: Journey) -> Structure:
    history = events_between(trip.live, 0, min(2000, event_count(trip.live)))
    index = any_structure(name, trip.columns).build(trip.columns, history)
    last = event_count(trip.live) - 1
    index.hold(take(trip.live, np.arange(last)))
    index.hold(take(trip.live, np.array([last])))  # what grows does so now
    return index


def _warmed(index: Structure, trip: Journey) -> tuple[Answer, Answer]:
    """What the first timestamps give, which are not timed."""
    changes: list[Int64] = []
    matches: list[Int64] = []
    for (rows, places), coming in zip(trip.moves[:WARM], trip.messages[:WARM], strict=True):
        found = index.move_and_match(rows, places)
        changes += [*found.added, *found.removed]
        matches += index.match(coming)
    return tuple(changes), tuple(matches)


def _cases(index: Structure, shown: str, trip: Journey) -> dict[str, Case]:
    """A case for each of what is measured, which take turns over the same timestamps."""
    answer, matched = _warmed(index, trip)
    beside = index.stats()["bytes"] - index.subscriptions.nbytes - index.live.nbytes
    figures = {"bytes/subscription": max(0, beside) / len(trip.columns.until)}
    moves, slower = iter(trip.moves[WARM:]), iter(trip.moves[WARM:])
    messages, held = iter(trip.messages[WARM:]), iter(trip.messages[WARM:])
    timed = event_count(trip.messages[0])

    def moving() -> float:
        rows, places = next(moves)
        start = time.process_time()
        found = index.move_and_match(rows, places)
        seconds = time.process_time() - start
        figures["changes/move"] = (len(found.added.rows) + len(found.removed.rows)) / len(rows)
        return seconds

    def updating() -> float:
        rows, places = next(slower)
        start = time.process_time()
        index.move(rows, places)
        return time.process_time() - start

    def matching() -> float:
        coming = next(messages)
        start = time.process_time()
        found = index.match(coming)
        first = index.hold(coming)
        seconds = time.process_time() - start
        index.drop(np.arange(first, first + timed))
        figures["matches/message"] = len(found.rows) / timed
        return seconds

    def holding() -> float:
        coming = next(held)
        start = time.process_time()
        first = index.hold(coming)
        seconds = time.process_time() - start
        index.drop(np.arange(first, first + timed))
        return seconds

    count = len(trip.moves[0][0])
    return {
        "msp": Case(shown, moving, count, answer=lambda: answer, cold=True, figures=figures),
        "imm": Case(shown, matching, timed, answer=lambda: matched, cold=True, figures=figures),
        "mi": Case(shown, holding, timed, cold=True),
        "slu": Case(shown, updating, count, cold=True),
    }


_TITLES: Final = {
    "imm": ("incoming message matching", "µs a message"),
    "msp": ("moving subscription processing", "µs a move"),
    "mi": ("message insertion", "µs a message"),
    "slu": ("location update", "µs a move"),
}


def travelling(
    settings: RunSettings,
    axis: Axis,
    trip_of: Callable[[Any], Journey],
    measures: tuple[str, ...],
    names: dict[str, str] = SHOWN,
    suffix: str = "",
) -> tuple[Panel, ...]:
    """Panels of what is measured, over *axis*."""
    panels: dict[str, Collected] = {}
    for x in axis.values:
        trip = trip_of(x)
        made: dict[str, list[Case]] = {one: [] for one in measures}
        for name, shown in names.items():
            settings.progress(f"moving, {axis.name} {x}: {shown}")
            index = _ready(name, trip)
            cases = _cases(index, shown, trip)
            for one in measures:
                made[one].append(cases[one])
        for one in measures:
            title, unit = _TITLES[one]
            if one not in panels:
                panels[one] = collecting(one + suffix, title + suffix, axis, unit, trip.facts)
            said = f"{title}, {x}"
            panels[one].add(x, measure(made[one], STEADY, settings.progress, said))
    return tuple(_of_means(panel.done()) for panel in panels.values())


def _of_means(panel: Panel) -> Panel:
    """*panel*, a point of which is the mean of its timestamps: some of them do the work of many."""
    curves = []
    for curve in panel.curves:
        points = tuple(replace(point, is_mean=True) for point in curve.points)
        curves.append(replace(curve, points=points))
    return replace(panel, curves=tuple(curves))


def details(settings: RunSettings) -> tuple[Panel, ...]:
    """MI and SLU time."""
    axis = Axis("roads", ["ODB"])
    return travelling(settings, axis, lambda _: journey(settings), ("mi", "slu"))


def variants(settings: RunSettings) -> tuple[Panel, ...]:
    """AP+ beside its variants."""
    axis = Axis("roads", ["ODB"])
    return travelling(settings, axis, lambda _: journey(settings), ("imm", "msp"), VARIANTS)


def on_sets(settings: RunSettings) -> tuple[Panel, ...]:
    """The contenders on each data set: words and roads."""
    sets = {f"{words}-{roads}": (words, roads) for words in WORDS for roads in ROADS}
    axis = Axis("data set", list(sets))

    def trip(name: str) -> Journey:
        words, roads = sets[name]
        return journey(settings, words=words, roads=roads)

    trips = travelling(settings, axis, trip, ("imm", "msp"))
    points = {
        curve.name: [Point(p.x, (p.work["bytes/subscription"],)) for p in curve.points]
        for curve in trips[0].curves
    }
    curves = tuple(Curve(name, tuple(some)) for name, some in points.items())
    size = replace(trips[0], key="size", title="index size", y="bytes each", curves=curves)
    return (*trips, size)


def _of_words(
    settings: RunSettings,
    axis: Axis,
    trip_of: Callable[[Any, str], Journey],
    measures: tuple[str, ...] = ("msp",),
) -> tuple[Panel, ...]:
    """`travelling` with the words of TWEETS, and with those of GN: a panel of each."""
    tweets = travelling(settings, axis, lambda x: trip_of(x, TWEETS), measures)
    names = travelling(settings, axis, lambda x: trip_of(x, GN), measures, suffix=f" {GN}")
    return (*tweets, *names)


def measure_mobility(settings: RunSettings) -> tuple[Panel, ...]:
    """MSP time over the share that moves."""
    axis = Axis("% that move", settings.scale.thinned((10, 20, 40, 60, 80)))
    size, panels = settings.scale.of(settings.scale.moving), []
    for panel in _of_words(
        settings, axis, lambda share, words: journey(settings, words=words, mobility=share / 100)
    ):
        curves = []
        for curve in panel.curves:
            points = []
            for point in curve.points:
                total = float(point.x) / 100 * size / 1000
                points.append(replace(point, samples=tuple(total * one for one in point.samples)))
            curves.append(replace(curve, points=tuple(points)))
        panels.append(replace(panel, y="ms a timestamp", curves=tuple(curves)))
    return tuple(panels)


def measure_velocity(settings: RunSettings) -> tuple[Panel, ...]:
    """MSP time over velocity."""
    axis = Axis("× medium velocity", settings.scale.thinned((0.5, 1, 2, 3, 4)))
    return _of_words(
        settings,
        axis,
        lambda times, words: journey(settings, words=words, velocity=float(times)),
    )


def areas(settings: RunSettings) -> tuple[Panel, ...]:
    """MSP time over the area of circles."""
    shares = settings.scale.thinned((1e-8, 1e-6, 1e-4, 1e-2, 1e-1))
    axis = Axis("% of the space", [100 * share for share in shares], log=True)
    return _of_words(
        settings,
        axis,
        lambda percent, words: journey(settings, 0.5, words=words, area=percent / 100),
    )


def sizes(settings: RunSettings) -> tuple[Panel, ...]:
    """MSP and IMM time over sizes."""
    axis = Axis("million subscriptions", settings.scale.thinned((0.5, 1, 1.5, 2, 2.5)))
    return _of_words(
        settings,
        axis,
        lambda one, words: journey(settings, float(one), words=words),
        ("msp", "imm"),
    )
