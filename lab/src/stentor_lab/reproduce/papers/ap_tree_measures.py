"""What the experiments of AP-Tree measure, for standing subscriptions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from stentor.encoding.ragged import take
from stentor_lab.baselines.rivals import shown_name
from stentor_lab.reproduce.curves import Curve, Panel, Point, derived
from stentor_lab.reproduce.keyword_data import (
    AIS,
    CARS,
    GN,
    NAMES,
    TWEETS,
    KeywordData,
    keyword_data,
)
from stentor_lab.reproduce.scale import RunSettings
from stentor_lab.reproduce.sweep import OURS, Axis, matching
from stentor_lab.reproduce.sweep_changes import growing
from stentor_lab.structures import Workload
from stentor_lab.workloads.boolean_keyword import BooleanSubscriptions
from stentor_lab.workloads.spatial_keyword import SpatialKeyword

AP, TUNED, IQ, RQ = (shown_name(one) for one in ("ap_tree paper", "ap_tree", "iq_tree", "rq_tree"))
#: The paper's tree with the rarest keyword first, where it has the most frequent one first.
RARE: Final = shown_name("ap_tree paper order=rare")
RIVALS: Final = ("ap_tree paper", "ap_tree paper order=rare", "ap_tree", "iq_tree", "rq_tree")
#: The paper's tree with one copy of a subscription, where it has up to eight.
ONE_COPY: Final = shown_name("ap_tree paper duplicates=1")
#: How many times the default the drift of a growing set is.
DRIFT: Final = 0.8


def _sets(settings: RunSettings) -> tuple[str, ...]:
    """The data sets: all four, or two where a run is to be quick."""
    return NAMES if settings.scale.points > 3 else (TWEETS, GN)


def _always(workload: Workload, _: object) -> Workload:
    return workload


def _setting(setting: str, values: tuple[int, ...], settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 10: one setting of the paper's tree varied."""
    panels = []
    for data in _sets(settings):
        source = keyword_data(data, settings)
        workload = source.workload(settings.scale.of(1.0))
        axis = Axis(
            setting, values if setting == "leaf" else settings.scale.thinned(values), log=True
        )
        key, made = f"{setting} {data}", []
        names = [f"ap_tree paper {setting}={value}" for value in axis.values]
        panel = matching(settings, key, data, Axis("-", ["all"]), partial(_always, workload), names)
        points = []
        for value, name in zip(axis.values, names, strict=True):
            point = panel.curve(shown_name(name)).points[0]
            points.append(replace(point, x=value))
        made.append(Curve(AP, tuple(points)))
        for name in OURS:
            point = panel.curve(shown_name(name)).points[0]
            level = tuple(replace(point, x=value) for value in axis.values)
            made.append(Curve(shown_name(name), level))
        panels.append(
            replace(panel, key=key, title=f"{setting}, {data}", x=setting, curves=tuple(made))
        )
    return tuple(panels)


def tuned(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 10: fan-out and leaf size varied."""
    return (
        *_setting("fanout", (50, 100, 200, 400, 800), settings),
        *_setting("leaf", (5, 10, 20, 40, 80, 200, 400), settings),
    )


VARIANTS: Final = {
    "ap_tree paper partition=dp": "DP",
    "ap_tree paper": "HR",
    "ap_tree paper priority=keywords": "KPriority",
    "ap_tree paper priority=space": "SPriority",
}


def _renamed(panel: Panel, names: dict[str, str]) -> Panel:
    shown = {shown_name(name): other for name, other in names.items()}
    curves = (replace(one, name=shown.get(one.name, one.name)) for one in panel.curves)
    return replace(panel, curves=tuple(curves))


def _on_sets(names: tuple[str, ...], settings: RunSettings, share: float = 1.0) -> Panel:
    axis = Axis("data set", NAMES if settings.scale.points > 2 else (TWEETS, GN))
    return matching(
        settings,
        "time",
        "matching",
        axis,
        lambda data: keyword_data(data, settings).workload(settings.scale.of(share)),
        names,
    )


def variants(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 11: variants, matching and building."""
    panel = _renamed(_on_sets((*VARIANTS, "ap_tree"), settings, 0.25), VARIANTS)
    return panel, derived(panel, "build", "µs to build one", "µs to build one", title="building")


def data_sets(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 12: all data sets."""
    panel = _on_sets((*RIVALS, "ap_tree paper duplicates=1", "rt_tree"), settings)
    return (
        panel,
        derived(panel, "build", "µs to build one", "µs to build one", title="building"),
        derived(panel, "size", "bytes a subscription", "bytes/subscription", title="index size"),
        derived(panel, "work", "candidates an event", "candidates/event", title="candidates"),
    )


def by_keywords(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 13: over the number of keywords."""
    axis = Axis("keywords", settings.scale.thinned((1, 2, 3, 4, 5)))
    panels = []
    for data in (TWEETS, GN):
        source = keyword_data(data, settings)

        def workload(keywords: int, source: KeywordData = source) -> Workload:
            return source.workload(settings.scale.of(1.0), keywords=int(keywords))

        key = "drawn" if data == TWEETS else data
        panels.append(matching(settings, key, data, axis, workload, RIVALS))
    return tuple(panels)


def by_range(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 14: over the size of ranges."""
    shares = settings.scale.thinned((1e-8, 1e-6, 1e-4, 1e-2, 1e-1))
    axis = Axis("% of the space", [100 * share for share in shares], log=True)
    panels = []
    for data in (TWEETS, GN):
        source = keyword_data(data, settings)

        def workload(percent: float, source: KeywordData = source) -> Workload:
            share = percent / 100
            return source.workload(settings.scale.of(1.0), smallest=share, largest=share)

        key = "drawn" if data == TWEETS else data
        panels.append(matching(settings, key, data, axis, workload, RIVALS))
    return tuple(panels)


def by_size(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 15: over the number of subscriptions."""
    axis = Axis("million subscriptions", settings.scale.millions((1, 2, 5, 10, 20)), log=True)
    panels = []
    for data in (TWEETS, GN):
        source = keyword_data(data, settings)

        def workload(millions: float, source: KeywordData = source) -> Workload:
            return source.workload(settings.scale.of(float(millions)))

        key = "drawn" if data == TWEETS else data
        panels.append(matching(settings, key, data, axis, workload, RIVALS))
    return tuple(panels)


def _drifting(settings: RunSettings) -> Workload:
    recipe = SpatialKeyword(settings.seed, drift=DRIFT)
    events = settings.scale.events
    return Workload(
        "growing",
        {"data": "drawn tweets that drift", "drift": DRIFT, "seed": settings.seed},
        recipe.subscriptions(settings.scale.of(1.0)).columns(),
        recipe.events(events, when=1.0).columns(),
        recipe.events(2 * events, part=1).columns(),
    )


def divergence(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 16: over the threshold of divergence."""
    values = settings.scale.thinned((0.0001, 0.001, 0.01, 0.1, 0.5))
    axis = Axis("threshold of divergence", values, log=True)
    ours = {shown_name(name): (name, 0.2) for name in OURS}
    return growing(
        settings,
        "growth",
        axis,
        _drifting(settings),
        lambda value: {AP: (f"ap_tree paper divergence={value}", 0.2), **ours},
    )


GROWN: Final = {
    AP: "ap_tree paper",
    RARE: "ap_tree paper order=rare",
    "AP-Tree-NR": "ap_tree paper rebuilds=no",
    TUNED: "ap_tree",
    IQ: "iq_tree",
    RQ: "rq_tree",
    **{shown_name(name): name for name in OURS},
}


def growth(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 17: over the share that is built at once."""
    axis = Axis("% built at once", settings.scale.thinned((10, 30, 50, 70, 90)))
    return growing(
        settings,
        "growth",
        axis,
        _drifting(settings),
        lambda percent: {shown: (name, percent / 100) for shown, name in GROWN.items()},
    )


def _boolean_workload(settings: RunSettings, count: int, keywords: int) -> Workload:
    recipe = SpatialKeyword(settings.seed, keywords=keywords)
    drawn = BooleanSubscriptions.of(recipe, count * keywords)
    rows = np.flatnonzero(drawn.plain.keywords == keywords)[:count]
    events = settings.scale.events
    facts = {"data": "drawn tweets", "keywords": keywords, "subscriptions": len(rows)}
    return Workload(
        "boolean",
        {**facts, "seed": settings.seed},
        take(drawn.columns(), rows),
        recipe.events(events).columns(),
        recipe.events(2 * events, part=1).columns(),
    )


def boolean(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 18: over keywords, and over the number of subscriptions."""
    keywords = matching(
        settings,
        "keywords",
        "Boolean expressions",
        Axis("keywords", settings.scale.thinned((3, 4, 5, 6, 7))),
        lambda keywords: _boolean_workload(settings, settings.scale.of(1.0), int(keywords)),
        RIVALS,
    )
    sizes = matching(
        settings,
        "size",
        "Boolean expressions of 5 keywords",
        Axis("million subscriptions", settings.scale.millions((1, 2, 5, 10, 20)), log=True),
        lambda millions: _boolean_workload(settings, settings.scale.of(float(millions)), 5),
        RIVALS,
    )
    return keywords, sizes


def statistics(settings: RunSettings) -> tuple[Panel, ...]:
    """Table 2: what the data sets are."""
    counts: dict[str, list[Point]] = {"messages": [], "words": [], "words a message": []}
    for data in (GN, CARS, AIS):
        messages = keyword_data(data, settings).messages
        assert messages is not None, "these have messages"
        counts["messages"].append(Point(data, (float(len(messages)),)))
        counts["words"].append(Point(data, (float(len(messages.vocabulary)),)))
        each = len(messages.word) / max(1, len(messages))
        counts["words a message"].append(Point(data, (each,)))
    curves = tuple(Curve(name, tuple(points)) for name, points in counts.items())
    about = keyword_data(GN, settings).about
    return (Panel("sets", "data sets", "data set", "number", curves, facts={"data": about}),)
