"""AP+-Safe: subscribers who know how far they may go, and report only when they are farther.

At each timestamp messages end, subscribers go on, and new messages come. AP+ is told by every
subscriber where it is. With safe regions a subscriber reports when it has left its own; a new
message is looked up among the impact regions (`Regions.shrunk`, as in the engine): whose region it
shrinks is told so, and reports at once if it is outside of what is left. What both deliver is equal
at every timestamp.

Paper: AP-Tree, section 5.2.3.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from stentor.encoding.columns import EventColumns, Float64, Int64, MatchPairs
from stentor.encoding.ragged import events_between, take
from stentor.engine.safe_region import Regions
from stentor.errors import DisagreementError
from stentor.index.safe_distance import SafeDistances, distance_bounds
from stentor.index.structure import Structure
from stentor_lab.baselines.rivals import any_structure, shown_name
from stentor_lab.reproduce.curves import Curve, Panel, Point
from stentor_lab.reproduce.papers.ap_tree_journeys import AP, roads_named
from stentor_lab.reproduce.scale import RunSettings
from stentor_lab.reproduce.sweep import OURS, Axis
from stentor_lab.workloads.moving_keyword import CITY, MovingKeyword, moment
from stentor_lab.workloads.spatial_keyword import SpatialKeyword

SAFE: Final = f"{AP}-Safe"
#: Timestamps of a run.
STEPS: Final = 5

Answers = list[tuple[Int64, ...]]


@dataclass(frozen=True)
class Followed:
    """What a run cost, and what it delivered: changes and new matches of each timestamp."""

    seconds: float
    told: float
    answers: Answers


@dataclass(frozen=True)
class Crowd:
    """So many subscribers among *live* messages, and so many that come at each timestamp."""

    recipe: MovingKeyword
    subscribers: int
    arriving: int
    live: EventColumns

    def index(self, name: str) -> Structure:
        """The structure *name* of both, warm."""
        columns = self.recipe.subscriptions(self.recipe.travellers(self.subscribers).places())
        every = columns.columns()
        index = any_structure(name, every).build(every, events_between(self.live, 0, 1000))
        index.hold(self.live)
        index.match_live(take(every, np.arange(min(2, self.subscribers))))
        return index


class Keeper:
    """How far subscribers may go from where they last reported, as the server knows it."""

    def __init__(self, index: Structure, places: Float64) -> None:
        self._index, self._regions = index, Regions()
        self._distances = SafeDistances(index.live)
        self.home, self.known = places.copy(), np.zeros(len(places))
        self.renew(np.arange(len(places)), places, moment(0))

    def outside(self, places: Float64) -> Int64:
        """Who is not surely inside."""
        return np.flatnonzero(_metres(self.home, places) > self.known)

    def shrink(self, coming: EventColumns) -> Int64:
        """Whose regions *coming* shrink; they are shrunk then."""
        found = self._regions.shrunk(coming, self._index.columns_with, {})
        if found is None:
            return np.zeros(0, np.int64)
        self._regions.shrink(found)
        self.known[found.row] = found.distance  # of a row that comes twice the last
        return np.unique(found.row)

    def forget(self, rows: Int64) -> None:
        """*rows* have reported: what they knew is over."""
        self._regions.forget(rows)

    def renew(self, rows: Int64, places: Float64, now: int) -> None:
        """Regions of *rows*, who are at *places*."""
        if len(rows):
            columns = self._index.columns_of(rows)
            distance = self._distances.of(columns, now)
            self._regions.put(rows, columns, distance, plane=False)
            self.home[rows], self.known[rows] = places, distance


def followed(crowd: Crowd, name: str, *, is_safe: bool) -> Followed:
    """STEPS timestamps with the structure *name*."""
    index = crowd.index(name)
    travellers = crowd.recipe.travellers(crowd.subscribers)
    everybody = np.arange(crowd.subscribers)
    keeper = Keeper(index, travellers.places()) if is_safe else None
    answers: Answers = []
    told, seconds = 0, 0.0
    for step in range(1, STEPS + 1):
        travellers.step()
        now = travellers.places()
        reporting = everybody if keeper is None else keeper.outside(now)
        coming = crowd.recipe.messages(crowd.arriving, step)
        start = time.process_time()
        index.drop(_ended(index, moment(step)))
        found = index.move_and_match(reporting, now[reporting])
        told += len(reporting) + len(found.added.rows) + len(found.removed.rows)
        changes = (*_pairs(reporting, found.added), *_pairs(reporting, found.removed))
        if keeper is not None:
            keeper.forget(reporting)
            shrunk = keeper.shrink(coming)
            seconds += time.process_time() - start
            left = shrunk[_metres(keeper.home[shrunk], now[shrunk]) > keeper.known[shrunk]]
            start = time.process_time()
            keeper.forget(left)
            index.move(left, now[left])  # inside until now: the answer is what it was
            told += len(shrunk) + len(left)
            reporting = np.concatenate((reporting, left))
        matched = index.match(coming)
        index.hold(coming)
        told += len(matched.rows)
        if keeper is not None:
            keeper.renew(reporting, now[reporting], moment(step))
            told += len(reporting)
        seconds += time.process_time() - start
        answers.append((*changes, matched.starts, matched.rows))
    return Followed(seconds / STEPS, told / STEPS, answers)


def _ended(index: Structure, now: int) -> Int64:
    """The live events that are over *now*."""
    live = index.live.current_rows()
    return live[index.live.columns.until[live] <= now]


def _pairs(subscribers: Int64, changes: MatchPairs) -> tuple[Int64, Int64]:
    """Subscribers and their live events, in order."""
    of = np.repeat(subscribers, np.diff(changes.starts))
    order = np.lexsort((changes.rows, of))
    return of[order], changes.rows[order]


def _metres(start: Float64, stop: Float64) -> Float64:
    """How far each has gone, at most."""
    both = zip(start.tolist(), stop.tolist(), strict=True)
    return np.array([distance_bounds(x1, y1, x2, y2, False)[1] for (x1, y1), (x2, y2) in both])


#: What stands in the panel of times: shown, structure, with safe regions.
_RUNS: Final = (
    (AP, "ap_tree paper", False),
    (SAFE, "ap_tree paper", True),
    *((shown_name(name), name, False) for name in OURS),
)


def _measured(settings: RunSettings, axis: Axis, counts: Callable[[Any], tuple[int, int]]) -> Any:
    """Time and communication over *axis*, whose values are so many subscribers and messages.

    Each repetition is another crowd. All contenders deliver the same in it.
    """
    roads, about = roads_named("ODB")
    live = settings.scale.of(1.0)
    points: dict[str, dict[str, list[Point]]] = {"time": {}, "told": {}}
    for x in axis.values:
        subscribers, arriving = counts(x)
        taken: dict[str, list[Followed]] = {shown: [] for shown, _, _ in _RUNS}
        for repetition in range(settings.scale.repetitions):
            words = SpatialKeyword(settings.seed + repetition, space=CITY)
            recipe = MovingKeyword(words, roads=roads)
            crowd = Crowd(recipe, subscribers, arriving, recipe.live_messages(live))
            for shown, name, is_safe in _RUNS:
                settings.progress(f"safe regions, {axis.name} {x}, {repetition + 1}: {shown}")
                taken[shown].append(followed(crowd, name, is_safe=is_safe))
                agree(taken[AP][-1], taken[shown][-1], shown)
        for shown, runs in taken.items():
            samples = tuple(1e3 * one.seconds for one in runs)
            points["time"].setdefault(shown, []).append(Point(x, samples))
            if shown in (AP, SAFE):  # any other index is told as much as AP+
                samples = tuple(one.told for one in runs)
                points["told"].setdefault(shown, []).append(Point(x, samples))
    facts = {
        "live messages": live,
        "timestamps": STEPS,
        "data": f"drawn tweets, {about}",
        "answers": "equal at every timestamp, of all contenders",
        "seeds": f"{settings.seed}–{settings.seed + settings.scale.repetitions - 1}",
    }
    return tuple(
        Panel(
            key,
            title,
            axis.name,
            y,
            tuple(Curve(name, tuple(some)) for name, some in points[key].items()),
            axis.log,
            facts=facts,
        )
        for key, title, y in (
            ("time", "processing", "ms a timestamp"),
            ("told", "communication", "messages from and to subscribers, a timestamp"),
        )
    )


def agree(one: Followed, other: Followed, name: str) -> None:
    """A DisagreementError where *other* delivers otherwise."""
    for step, (ours, theirs) in enumerate(zip(one.answers, other.answers, strict=True), 1):
        if not all(map(np.array_equal, ours, theirs)):
            raise DisagreementError(
                f"at timestamp {step} {name} delivers otherwise than {AP}, so their times mean "
                "nothing; this is a defect: please report it with the workload's seed"
            )


def _most_subscribers(settings: RunSettings) -> int:
    return min(settings.scale.base // 10, 10_000)


def safe_sizes(settings: RunSettings) -> tuple[Panel, ...]:
    """Over subscribers."""
    most = _most_subscribers(settings)
    axis = Axis("subscribers", sorted({10, max(20, most // 10), max(30, most)}), log=True)
    panels: tuple[Panel, ...] = _measured(settings, axis, lambda count: (int(count), most))
    return panels


def safe_rates(settings: RunSettings) -> tuple[Panel, ...]:
    """Over the arrival rate."""
    most = _most_subscribers(settings)
    values = [max(8, round(share * most)) for share in settings.scale.thinned((1, 2, 3, 4, 5))]
    axis = Axis("new messages a timestamp", values)
    panels: tuple[Panel, ...] = _measured(
        settings, axis, lambda rate: (max(10, most // 4), int(rate))
    )
    return panels
