"""What the experiments of MO-Tree measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from stentor.encoding.ragged import events_between
from stentor_lab.baselines.rivals import any_structure, shown_name
from stentor_lab.reproduce.curves import Curve, Panel, Point, paper_curve
from stentor_lab.reproduce.scale import RunSettings
from stentor_lab.reproduce.sweep import OURS, Axis, matching
from stentor_lab.reproduce.sweep_changes import (
    ASKING,
    LiveWorkload,
    holding,
    inserting,
    live_matching,
)
from stentor_lab.structures import Workload
from stentor_lab.workloads.intervals import Intervals
from stentor_lab.workloads.pickups import FILE, Places, read_pickups
from stentor_lab.workloads.real_files import has

MO, TUNED = shown_name("mo_tree paper"), shown_name("mo_tree")
#: The paper's tree with two layers in place of six: what the other four cost.
FLATTER = shown_name("mo_tree paper layers=2")
TAMA, STAR, OP, BEQ = "TAMA", "R*-Tree", "OpIndex", "BEQ-Tree"
TREES: Final = ("mo_tree paper", "mo_tree paper layers=2", "mo_tree")
FOR_EVENTS: Final = (*TREES, "tama", "op_index", "r_star_tree")
FOR_SUBSCRIPTIONS: Final = (*TREES, "beq_tree", "r_star_tree")
ALPHAS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Table 5 in milliseconds, from alpha = 0 to 1.
TABLE_5: Final = {
    "live": {
        MO: (1.32, 1.26, 1.17, 1.08, 0.99),
        BEQ: (2.79, 2.83, 2.82, 2.79, 2.81),
        STAR: (127.17, 133.64, 133.74, 139.59, 192.17),
    },
    "events": {
        MO: (1.27, 1.21, 1.13, 1.05, 0.96),
        TAMA: (10.46, 10.20, 10.06, 10.07, 10.26),
        STAR: (8.37, 10.26, 13.19, 21.02, 29.02),
        OP: (33.71, 33.38, 33.39, 34.29, 35.07),
    },
}


@lru_cache(maxsize=1)
def _pickups() -> Places:
    return read_pickups()


def _recipe(settings: RunSettings, predicates: int = 10, alpha: float = 1.0) -> Intervals:
    places = _pickups() if has(FILE) else None
    return Intervals(settings.seed, predicates, alpha, places=places)


def _facts(settings: RunSettings, recipe: Intervals) -> dict[str, Any]:
    return {
        "data": FILE if has(FILE) else "a drawn city",
        "predicates": recipe.predicates,
        "alpha": recipe.alpha,
        "seed": settings.seed,
    }


def _events(settings: RunSettings, recipe: Intervals, count: int) -> Workload:
    """*count* subscriptions that events are matched with."""
    history, events = 4096, settings.scale.events
    drawn = recipe.events(events + history).columns()
    return Workload(
        "intervals",
        {**_facts(settings, recipe), "subscriptions": count},
        recipe.subscriptions(count).columns(),
        events_between(drawn, 0, events),
        events_between(drawn, events, None),
    )


def _live(settings: RunSettings, recipe: Intervals, count: int) -> LiveWorkload:
    """*count* live events that subscriptions ask for."""
    return LiveWorkload(
        {**_facts(settings, recipe), "live events": count},
        recipe.events(count).columns(),
        recipe.subscriptions(min(ASKING, 2 * settings.scale.events)).columns(),
        recipe.subscriptions(min(8192, max(64, count // 4))).columns(),
    )


def _millions(settings: RunSettings) -> Axis:
    return Axis("million", settings.scale.thinned((1, 2, 3, 4, 5)))


#: The R*-Tree in 22 dimensions takes milliseconds an item: it stands in a panel of its own size.
def _small(settings: RunSettings) -> int:
    return settings.scale.slow


def _both_sizes(
    settings: RunSettings, key: str, axis: Axis, workload: Callable[[Any, int], Workload]
) -> tuple[Panel, ...]:
    """The panel of all but the R*-Tree at the sizes, and one with it at a size it can do."""
    large = matching(
        settings, key, "event matching", axis, lambda x: workload(x, settings.scale.of(1.0)),
        FOR_EVENTS,
    )  # fmt: skip
    small = matching(
        settings,
        f"{key} small",
        f"event matching, {_small(settings):,} subscriptions",
        axis,
        lambda x: workload(x, _small(settings)),
        FOR_EVENTS,
    )
    return large, small


def by_size(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 4: event matching by size."""
    recipe = _recipe(settings)
    axis = _millions(settings)
    large = matching(
        settings,
        "time",
        "event matching",
        axis,
        lambda millions: _events(settings, recipe, settings.scale.of(float(millions))),
        FOR_EVENTS,
    )
    small = matching(
        settings,
        "small",
        "event matching, with the R*-Tree",
        Axis("subscriptions", [_small(settings) // 2, _small(settings)]),
        lambda count: _events(settings, recipe, int(count)),
        FOR_EVENTS,
    )
    return large, small


def by_predicates(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 5: event matching by predicates."""
    axis = Axis("predicates", settings.scale.thinned((4, 6, 8, 10)))
    return _both_sizes(
        settings,
        "time",
        axis,
        lambda predicates, count: _events(settings, _recipe(settings, int(predicates)), count),
    )


def live_by_size(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 6: subscription matching by size."""
    recipe = _recipe(settings)
    large = live_matching(
        settings,
        "time",
        "subscription matching",
        _millions(settings),
        lambda millions: _live(settings, recipe, settings.scale.of(float(millions))),
        FOR_SUBSCRIPTIONS,
    )
    small = live_matching(
        settings,
        "small",
        "subscription matching, with the R*-Tree",
        Axis("live events", [_small(settings) // 2, _small(settings)]),
        lambda count: _live(settings, recipe, int(count)),
        FOR_SUBSCRIPTIONS,
    )
    return large, small


def live_by_predicates(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 7: subscription matching by predicates."""
    axis = Axis("predicates", settings.scale.thinned((4, 6, 8, 10)))
    panels = []
    for key, count in (("time", settings.scale.of(1.0)), ("small", _small(settings))):

        def workload(predicates: Any, count: int = count) -> LiveWorkload:
            return _live(settings, _recipe(settings, int(predicates)), count)

        title = f"subscription matching, {count:,} live events"
        panels.append(live_matching(settings, key, title, axis, workload, FOR_SUBSCRIPTIONS))
    return tuple(panels)


def alphas(settings: RunSettings) -> tuple[Panel, ...]:
    """Table 5: over the popularity of attributes."""
    axis = Axis("alpha", settings.scale.thinned(ALPHAS))
    large, small = _both_sizes(
        settings,
        "events",
        axis,
        lambda alpha, count: _events(settings, _recipe(settings, alpha=float(alpha)), count),
    )
    live = live_matching(
        settings,
        "live",
        "subscription matching",
        axis,
        lambda alpha: _live(
            settings, _recipe(settings, alpha=float(alpha)), settings.scale.of(1.0)
        ),
        FOR_SUBSCRIPTIONS,
    )
    return (*map(_with_printed, (large, live)), small)


def _with_printed(panel: Panel) -> Panel:
    """*panel* with the paper's curves, its milliseconds as microseconds."""
    printed = []
    for name, values in TABLE_5[panel.key].items():
        points = ((alpha, 1000 * ms) for alpha, ms in zip(ALPHAS, values, strict=True))
        kept = [(alpha, value) for alpha, value in points if alpha in panel.xs]
        printed.append(paper_curve(kept, f"the paper's {name}"))
    return replace(panel, curves=(*panel.curves, *printed))


def event_changes(settings: RunSettings) -> tuple[Panel, ...]:
    """Figures 8 and 9: live events that come and go."""
    recipe = _recipe(settings)
    large = holding(
        settings,
        "live events",
        _millions(settings),
        lambda millions: _live(settings, recipe, settings.scale.of(float(millions))),
        FOR_SUBSCRIPTIONS,
    )
    small = holding(
        settings,
        "live events, with the R*-Tree",
        Axis("live events", [_small(settings) // 2, _small(settings)]),
        lambda count: _live(settings, recipe, int(count)),
        FOR_SUBSCRIPTIONS,
    )
    return large + tuple(replace(one, key=f"small {one.key}") for one in small)


def subscription_changes(settings: RunSettings) -> tuple[Panel, ...]:
    """Figures 10 and 11: subscriptions that come and go."""
    recipe = _recipe(settings)
    large = inserting(
        settings,
        "subscriptions",
        _millions(settings),
        lambda millions: _events(settings, recipe, settings.scale.of(float(millions))),
        FOR_EVENTS,
    )
    small = inserting(
        settings,
        "subscriptions, with the R*-Tree",
        Axis("subscriptions", [_small(settings) // 2, _small(settings)]),
        lambda count: _events(settings, recipe, int(count)),
        FOR_EVENTS,
    )
    return large + tuple(replace(one, key=f"small {one.key}") for one in small)


def only(measure: Callable[[RunSettings], tuple[Panel, ...]], key: str) -> Any:
    """Of what *measure* gives, the panels that tell of *key*."""

    def some(settings: RunSettings) -> tuple[Panel, ...]:
        return tuple(panel for panel in measure(settings) if panel.key.endswith(key))

    return some


def memory(settings: RunSettings) -> tuple[Panel, ...]:
    """Bytes beside the exact columns, for as many subscriptions as live events."""
    recipe = _recipe(settings)
    points: dict[str, list[Point]] = {}
    axis = settings.scale.thinned((1, 2, 3, 4, 5))
    together = {
        MO: ("mo_tree paper",),
        FLATTER: ("mo_tree paper layers=2",),
        TUNED: ("mo_tree",),
        "TAMA+BEQ-Tree": ("tama", "beq_tree"),
        "OpIndex+BEQ-Tree": ("op_index", "beq_tree"),
        **{shown_name(name): (name,) for name in OURS},
    }
    for millions in axis:
        count = settings.scale.of(float(millions))
        columns, events = recipe.subscriptions(count).columns(), recipe.events(count).columns()
        for shown, names in together.items():
            settings.progress(f"memory, {millions}: {shown}")
            beside = 0
            for position, name in enumerate(names):
                index = any_structure(name, columns)()
                if position == 0:
                    index.insert(columns)
                if position == len(names) - 1:
                    index.hold(events)
                held = index.subscriptions.nbytes + index.live.nbytes
                beside += max(0, index.stats()["bytes"] - held)
            points.setdefault(shown, []).append(Point(millions, (beside / 1e6,)))
    curves = tuple(Curve(name, tuple(some)) for name, some in points.items())
    facts = _facts(settings, recipe)
    return (Panel("memory", "memory", "million of each", "MB", curves, facts=facts),)


def _tree_setting(
    setting: str, values: tuple[Any, ...], settings: RunSettings
) -> tuple[Panel, ...]:
    """One setting of the tree varied: matching events, and live events."""
    some = settings.scale.thinned(values)
    base = {"layers": "mo_tree paper", "levels": "mo_tree", "stabbed": "mo_tree"}[setting]
    names = {f"{base} {setting}={value}": value for value in some}
    recipe, count = _recipe(settings), settings.scale.of(1.0)
    one = Axis("-", ["all"])
    workload, live = _events(settings, recipe, count), _live(settings, recipe, count)
    panels = (
        matching(settings, "events", "event matching", one, lambda _: workload, tuple(names)),
        live_matching(settings, "live", "subscription matching", one, lambda _: live, tuple(names)),
    )
    made = []
    for panel in panels:
        points = [
            replace(panel.curve(shown_name(name)).points[0], x=value)
            for name, value in names.items()
        ]
        curves = [Curve(MO, tuple(points))]
        for name in OURS:
            point = panel.curve(shown_name(name)).points[0]
            level = tuple(replace(point, x=value) for value in some)
            curves.append(Curve(shown_name(name), level))
        made.append(replace(panel, x=setting, curves=tuple(curves)))
    return tuple(made)


def layers(settings: RunSettings) -> tuple[Panel, ...]:
    """Over the layers of the tree."""
    return _tree_setting("layers", (1, 2, 3, 4, 5, 6), settings)


def levels(settings: RunSettings) -> tuple[Panel, ...]:
    """Over the levels of cells."""
    return _tree_setting("levels", (1, 2, 3, 4), settings)


def widths(settings: RunSettings) -> tuple[Panel, ...]:
    """Over the widths of cells."""
    return _tree_setting("stabbed", (2.0, 3.0, 4.0, 5.0, 6.5), settings)
