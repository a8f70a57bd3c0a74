"""AP-Tree, standing subscriptions: Figures 10 to 18, Table 2 (section 5.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from stentor.encoding.ragged import take
from stentor_lab.baselines.rivals import shown_name
from stentor_lab.report import number
from stentor_lab.reproduce.claims import (
    All,
    At,
    BestAt,
    Claim,
    Grows,
    Less,
    Near,
    Panels,
    Proportional,
    Rises,
    Slower,
    Steadier,
)
from stentor_lab.reproduce.curves import Curve, Panel, Point, derived
from stentor_lab.reproduce.experiment import Experiment, Paper
from stentor_lab.reproduce.keyword_data import (
    AIS,
    CARS,
    GN,
    NAMES,
    TWEETS,
    KeywordData,
    keyword_data,
)
from stentor_lab.reproduce.papers.ap_tree_moving import MOVING
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


def _tuned(settings: RunSettings) -> tuple[Panel, ...]:
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


def _variants(settings: RunSettings) -> tuple[Panel, ...]:
    panel = _renamed(_on_sets((*VARIANTS, "ap_tree"), settings, 0.25), VARIANTS)
    return panel, derived(panel, "build", "µs to build one", "µs to build one", title="building")


def _data_sets(settings: RunSettings) -> tuple[Panel, ...]:
    panel = _on_sets((*RIVALS, "ap_tree paper duplicates=1", "rt_tree"), settings)
    return (
        panel,
        derived(panel, "build", "µs to build one", "µs to build one", title="building"),
        derived(panel, "size", "bytes a subscription", "bytes/subscription", title="index size"),
        derived(panel, "work", "candidates an event", "candidates/event", title="candidates"),
    )


def _keywords(settings: RunSettings) -> tuple[Panel, ...]:
    axis = Axis("keywords", settings.scale.thinned((1, 2, 3, 4, 5)))
    panels = []
    for data in (TWEETS, GN):
        source = keyword_data(data, settings)

        def workload(keywords: int, source: KeywordData = source) -> Workload:
            return source.workload(settings.scale.of(1.0), keywords=int(keywords))

        key = "drawn" if data == TWEETS else data
        panels.append(matching(settings, key, data, axis, workload, RIVALS))
    return tuple(panels)


def _ranges(settings: RunSettings) -> tuple[Panel, ...]:
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


def _sizes(settings: RunSettings) -> tuple[Panel, ...]:
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


def _divergence(settings: RunSettings) -> tuple[Panel, ...]:
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


def _growth(settings: RunSettings) -> tuple[Panel, ...]:
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


def _boolean(settings: RunSettings) -> tuple[Panel, ...]:
    names = RIVALS
    by_keywords = matching(
        settings,
        "keywords",
        "Boolean expressions",
        Axis("keywords", settings.scale.thinned((3, 4, 5, 6, 7))),
        lambda keywords: _boolean_workload(settings, settings.scale.of(1.0), int(keywords)),
        names,
    )
    by_size = matching(
        settings,
        "size",
        "Boolean expressions of 5 keywords",
        Axis("million subscriptions", settings.scale.millions((1, 2, 5, 10, 20)), log=True),
        lambda millions: _boolean_workload(settings, settings.scale.of(float(millions)), 5),
        names,
    )
    return by_keywords, by_size


def _statistics(settings: RunSettings) -> tuple[Panel, ...]:
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


def _order(key: str) -> Callable[[Panels], str]:
    """What the order of keywords changes, from the curves of the panel *key*."""

    def told(panels: Panels) -> str:
        panel = panels[key]
        rare, frequent = (panel.curve(name).points[-1].value for name in (RARE, AP))
        iq, rq = (panel.curve(name).points[-1].value for name in (IQ, RQ))
        return (
            f"Tested: with the rarest keyword first, as the lists of rivals have it, the tree "
            f"takes {number(rare)} µs at the last point, and {number(frequent)} with the most "
            f"frequent first, as in the paper; {IQ} takes {number(iq)}, {RQ} {number(rq)}."
        )

    return told


def _copies(panels: Panels) -> str:
    """What one copy of each subscription takes, in place of up to eight."""
    eight, one = (panels["size"].curve(name).points[-1].value for name in (AP, ONE_COPY))
    return (
        f"Tested: with one copy of a subscription in place of up to 8 it takes {number(one)} "
        f"bytes each where it takes {number(eight)} at the last point."
    )


PAPER = Paper(
    "ap-tree",
    "AP-Tree and AP+-Tree",
    "Wang, Zhang, Zhang, Lin, Huang: AP-Tree, efficiently support location-aware publish/subscribe",
    "section 5",
    (
        Experiment(
            "table-2",
            "data sets",
            "GN, CARS, AIS",
            "messages, vocabulary, keywords a message",
            "the user's folder (lab/data.md), or drawn messages of the same form",
            _statistics,
        ),
        Experiment(
            "10",
            "effect of f and θ_p",
            "f 50–800, θ_p 5–400",
            "matching time",
            "`ap_tree paper` with `fanout` and `leaf` varied",
            _tuned,
            (
                Claim(
                    "θ_p does not noticeably matter below 40",
                    At(
                        Grows(f"leaf {TWEETS}", (AP,), least=0.8, most=1.25),
                        f"leaf {TWEETS}",
                        (5, 10, 20, 40),
                    ),
                ),
                Claim(
                    "f has its best value near 200: too small and too large are both worse",
                    BestAt(f"fanout {TWEETS}", AP, 200),
                ),
            ),
            weight=2.0,
        ),
        Experiment(
            "11",
            "variants of the AP-Tree",
            "data set",
            "matching time, building time",
            "DP, HR, KPriority, SPriority; Trie-Qd is not built: the paper leaves open how its "
            "quadtrees and its trie of keywords share a leaf",
            _variants,
            (
                Claim(
                    "HR matches like DP",
                    Near("time", "HR", "DP", within=1.5),
                ),
                Claim("HR is built in far less time than DP", Less("build", "HR", ("DP",))),
                Claim(
                    "KPriority and SPriority match worse than HR",
                    Less("time", "HR", ("KPriority", "SPriority")),
                ),
            ),
            weight=2.0,
        ),
        Experiment(
            "12",
            "evaluation on different data sets",
            "TWEETS, GN, CARS, AIS",
            "matching time, construction time, index size",
            "all rivals, the paper's parameters and tuned ones",
            _data_sets,
            (
                Claim(
                    "AP-Tree significantly beats the others",
                    Less("time", AP, (IQ, RQ, "R^t-Tree")),
                    _order("time"),
                ),
                Claim(
                    "on GN AP-Tree is 30 times as fast as the second best",
                    At(
                        Less(
                            "time",
                            AP,
                            (IQ, RQ, "R^t-Tree"),
                            {IQ: 30.0, RQ: 30.0, "R^t-Tree": 30.0},
                        ),
                        "time",
                        (GN,),
                    ),
                    _order("time"),
                ),
                Claim(
                    "RQ-Tree beats IQ-Tree on TWEETS, GN and AIS, and is beaten on CARS",
                    All(
                        (
                            At(Less("time", RQ, (IQ,)), "time", (TWEETS, GN, AIS)),
                            At(Less("time", IQ, (RQ,)), "time", (CARS,)),
                        )
                    ),
                ),
                Claim("IQ-Tree runs much faster than R^t-Tree", Less("time", IQ, ("R^t-Tree",))),
                Claim(
                    "R^t-Tree is constructed fastest",
                    Less("build", "R^t-Tree", (IQ, RQ, AP)),
                ),
                Claim(
                    "AP-Tree's memory is comparable with the others'",
                    All(tuple(Near("size", AP, name) for name in (IQ, RQ))),
                    _copies,
                ),
            ),
            weight=3.0,
        ),
        Experiment(
            "13",
            "effect of the number of keywords",
            "1–5 keywords",
            "matching time",
            "TWEETS drawn, GN; beside the paper's order the rarest keyword first",
            _keywords,
            (
                Claim(
                    "all improve with more keywords",
                    Rises("drawn", (AP, IQ, RQ), falls=True),
                ),
                Claim(
                    "with more than one keyword AP-Tree leads by a significant margin",
                    At(Less("drawn", AP, (IQ, RQ)), "drawn", part=(1, None)),
                    _order("drawn"),
                ),
            ),
            weight=2.0,
        ),
        Experiment(
            "14",
            "effect of the range size",
            "0.000001–10 % of the space",
            "matching time",
            "TWEETS drawn, GN",
            _ranges,
            (
                Claim(
                    "larger ranges take longer",
                    Rises("drawn", (AP, IQ, RQ)),
                ),
                Claim(
                    "AP-Tree consistently beats RQ and IQ",
                    Less("drawn", AP, (IQ, RQ)),
                    _order("drawn"),
                ),
                Claim(
                    "RQ-Tree is behind IQ-Tree where ranges are very small, before it where large",
                    All(
                        (
                            At(Less("drawn", IQ, (RQ,)), "drawn", part=(0, 1)),
                            At(Less("drawn", RQ, (IQ,)), "drawn", part=(-1, None)),
                        )
                    ),
                ),
                Claim(
                    "AP-Tree is the most stable",
                    Steadier("drawn", AP, (IQ, RQ)),
                ),
            ),
            weight=2.0,
        ),
        Experiment(
            "15",
            "effect of the number of subscriptions",
            "1–20 million (`--up-to 20`; 5 otherwise)",
            "matching time",
            "TWEETS drawn, GN",
            _sizes,
            (
                Claim(
                    "AP-Tree is much more scalable",
                    Slower("drawn", AP, (IQ, RQ)),
                    _order("drawn"),
                ),
                Claim(
                    "time grows less than in proportion to subscriptions",
                    Proportional("drawn", (AP, TUNED, IQ, RQ)),
                ),
            ),
            weight=3.0,
        ),
        Experiment(
            "16",
            "effect of θ_KL",
            "0.0001–0.5",
            "matching time, maintenance",
            "a set that drifts, a fifth built at once, the rest inserted",
            _divergence,
            (
                Claim(
                    "a small θ_KL matches better",
                    Rises("matching", (AP,)),
                ),
                Claim("and maintains at a higher cost", Rises("insertion", (AP,), falls=True)),
            ),
            weight=2.0,
        ),
        Experiment(
            "17",
            "index maintenance",
            "δ 10–90 % built at once",
            "matching time, insertion time",
            "a set that drifts; AP-Tree-NR is `rebuilds=no`",
            _growth,
            (
                Claim(
                    "AP-Tree-NR is not satisfactory where δ is small",
                    At(Less("matching", AP, ("AP-Tree-NR",)), "matching", part=(0, 1)),
                ),
                Claim(
                    "AP-Tree consistently beats IQ and RQ",
                    Less("matching", AP, (IQ, RQ)),
                    _order("matching"),
                ),
                Claim(
                    "AP-Tree-NR inserts fastest, AP-Tree slowest",
                    All(
                        (
                            Less("insertion", "AP-Tree-NR", (AP, IQ, RQ)),
                            Less("insertion", IQ, (AP,)),
                            Less("insertion", RQ, (AP,)),
                        )
                    ),
                ),
            ),
            weight=3.0,
        ),
        Experiment(
            "18",
            "general Boolean subscriptions",
            "3–7 keywords; 1–20 million subscriptions",
            "matching time",
            "keywords joined by AND and OR in two parts",
            _boolean,
            (
                Claim(
                    "all fluctuate little with the number of keywords",
                    Grows("keywords", (AP, IQ, RQ), least=0.5, most=2.0),
                ),
                Claim(
                    "AP-Tree scales well",
                    Proportional("size", (AP,)),
                    _order("size"),
                ),
                Claim(
                    "and uses keywords better than the others where there are many",
                    At(Less("keywords", AP, (IQ, RQ)), "keywords", part=(-1, None)),
                    _order("keywords"),
                ),
            ),
            weight=3.0,
        ),
        *MOVING,
    ),
    (
        ("Figures 1–9", "drawings of the method"),
        ("Table 1", "notation"),
        ("Table 3", "parameters of Figures 19–25, varied there"),
    ),
)
