"""What the experiments of BE*-Tree measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from stentor.encoding.ragged import concatenate, events_between, take
from stentor_lab.baselines.rivals import shown_name
from stentor_lab.bench.be_star_tree import paper_capacity
from stentor_lab.measure import measure
from stentor_lab.reproduce.curves import Curve, Panel, derived, paper_curve
from stentor_lab.reproduce.scale import RunSettings
from stentor_lab.reproduce.sweep import (
    OURS,
    Axis,
    best,
    build,
    collecting,
    compared_events,
    event_case,
    matching,
)
from stentor_lab.structures import Workload
from stentor_lab.workloads import real_files
from stentor_lab.workloads.distributions import random_of
from stentor_lab.workloads.expressions import Expressions
from stentor_lab.workloads.letter_expressions import LetterExpressions

STAR, BULK, TUNED = "BE*", "BE*-B", "BE*-Tree (tuned)"
SCAN, KIND, BE = (shown_name(one) for one in ("row_scan", "k_index", "be_tree"))
OTHERS: Final = ("row_scan", "k_index", "be_tree", "propagation", "gryphon")
LAWS: Final = {"uniform": 0.0, "zipf": 1.0}
#: Of Table III: what is 100K there is a tenth of a million here too.
TENTH: Final = 0.1
_EQUAL, _LETTERS = 420, 421  # streams of random numbers


def _contenders(share: float) -> dict[str, str]:
    """The paper's tree as it sets it for a match share, grown and built at once; and the tuned."""
    paper = f"be_star_tree paper capacity={paper_capacity(share)}"
    return {f"{paper} dynamic": STAR, paper: BULK, "be_star_tree": TUNED}


def _named(panel: Panel, names: dict[str, str]) -> Panel:
    shown = {shown_name(name): other for name, other in names.items()}
    curves = (replace(one, name=shown.get(one.name, one.name)) for one in panel.curves)
    return replace(panel, curves=tuple(curves))


def expressions(recipe: Expressions, count: int, settings: RunSettings) -> Workload:
    """*count* expressions of *recipe*."""
    facts = {
        "subscriptions": count,
        "dimensions": recipe.dimensions,
        "cardinality": recipe.cardinality,
        "clusters": recipe.clusters,
        "cluster size": recipe.cluster_size,
        "predicates": recipe.predicates,
        "values": recipe.values,
        "match share": f"{recipe.match_share:.2%}",
        "alpha": recipe.alpha,
        "seed": recipe.seed,
        "data": "drawn",
    }
    events = recipe.events(settings.scale.events).columns()
    return Workload("expressions", facts, recipe.subscriptions(count).columns(), events)


def _recipe(settings: RunSettings, **given: Any) -> Expressions:
    return Expressions(settings.seed, **{"match_share": _share(settings, 0.001), **given})


def _share(settings: RunSettings, share: float) -> float:
    """A share that leaves at least ten matches of what is to be matched."""
    return min(0.5, max(share, 10 / settings.scale.of(TENTH)))


def _sweep(
    settings: RunSettings,
    axis: Axis,
    workload_of: Callable[[Any, float], Workload],
    share: float = 0.001,
    names: tuple[str, ...] = OTHERS,
) -> tuple[Panel, ...]:
    """A panel for each law, over *axis*; workload_of takes x and the exponent of the law."""
    contenders = _contenders(_share(settings, share))
    panels = []
    for law, alpha in LAWS.items():
        panel = matching(
            settings,
            law,
            law,
            axis,
            partial(_lawful, workload_of, alpha),
            (*contenders, *names),
        )
        panels.append(_named(panel, contenders))
    return tuple(panels)


def _lawful(workload_of: Callable[[Any, float], Workload], alpha: float, x: Any) -> Workload:
    return workload_of(x, alpha)


def _always(workload: Workload, _: Any) -> Workload:
    return workload


def _one(settings: RunSettings, axis: Axis, field: str, millions: float = TENTH) -> Any:
    """One field of the recipe varied."""

    def workload(x: Any, alpha: float) -> Workload:
        recipe = _recipe(settings, alpha=alpha, **{field: x})
        return expressions(recipe, settings.scale.of(millions), settings)

    return _sweep(settings, axis, workload)


def cardinality(settings: RunSettings) -> tuple[Panel, ...]:
    """Over the cardinality of dimensions."""
    values = settings.scale.thinned((2_500, 250_000, 2_500_000, 250_000_000))
    panels: tuple[Panel, ...] = _one(settings, Axis("cardinality", values, log=True), "cardinality")
    return panels


def clusters(settings: RunSettings) -> tuple[Panel, ...]:
    """Over the number and the size of clusters."""
    numbers = Axis("clusters (0: none)", settings.scale.thinned((0, 26, 10, 4, 2)))
    sizes = Axis("cluster size", settings.scale.thinned((25, 100, 400, 800)), log=True)
    by_number = _one(settings, numbers, "clusters")
    by_size = _one(settings, sizes, "cluster_size")
    renamed = (replace(one, key=f"size {one.key}", title=f"size, {one.title}") for one in by_size)
    return (*by_number, *renamed)


def dimensions(settings: RunSettings) -> tuple[Panel, ...]:
    """Over the number of dimensions."""
    values = settings.scale.thinned((50, 200, 400, 800, 1400))
    panels: tuple[Panel, ...] = _one(settings, Axis("dimensions", values), "dimensions", 0.5)
    return panels


def measure_sizes(settings: RunSettings) -> tuple[Panel, ...]:
    """Over the number of subscriptions."""
    axis = Axis("million subscriptions", settings.scale.thinned((0.1, 0.3, 0.5, 0.7, 1.0)))

    def workload(millions: Any, alpha: float) -> Workload:
        count = settings.scale.of(float(millions))
        return expressions(_recipe(settings, alpha=alpha), count, settings)

    return _sweep(settings, axis, workload)


def measure_predicates(settings: RunSettings) -> tuple[Panel, ...]:
    """Over the predicates of expressions."""
    values = settings.scale.thinned((5, 10, 20, 40, 66))
    axis = Axis("predicates", values)

    def workload(predicates: Any, alpha: float) -> Workload:
        given = {"predicates": int(predicates), "values": int(predicates) + 15, "alpha": alpha}
        return expressions(_recipe(settings, **given), settings.scale.of(TENTH), settings)

    return _sweep(settings, axis, workload)


def measure_events(settings: RunSettings) -> tuple[Panel, ...]:
    """Over the values of events."""
    values = settings.scale.thinned((13, 15, 30, 60, 81))
    axis = Axis("values of an event", values)

    def workload(number: Any, alpha: float) -> Workload:
        recipe = _recipe(settings, values=int(number), alpha=alpha)
        return expressions(recipe, settings.scale.of(TENTH), settings)

    return _sweep(settings, axis, workload)


def equality(settings: RunSettings) -> tuple[Panel, ...]:
    """A share of predicates are equalities: those of a recipe whose ranges have no length."""
    axis = Axis("% equality", settings.scale.thinned((0, 25, 50, 75, 100)))

    def workload(percent: Any, alpha: float) -> Workload:
        count = settings.scale.of(TENTH)
        recipe = _recipe(settings, alpha=alpha)
        ranges = recipe.subscriptions(count)
        points = _recipe(settings, alpha=alpha, longest=0).subscriptions(count)
        equal = random_of(settings.seed, _EQUAL).random(ranges.low.shape) < float(percent) / 100
        mixed = replace(
            ranges,
            low=np.where(equal, points.low, ranges.low),
            high=np.where(equal, points.high, ranges.high),
        )
        made = expressions(recipe, 64, settings)
        return replace(made, columns=mixed.columns(), facts={**made.facts, "subscriptions": count})

    return _sweep(settings, axis, workload)


def overlap(settings: RunSettings) -> tuple[Panel, ...]:
    """Over the length of ranges."""
    axis = Axis("length of a range", settings.scale.thinned((2, 10, 20, 40, 60)))
    panels: tuple[Panel, ...] = _one(settings, axis, "longest")
    spaces = (
        derived(panel, f"space {panel.key}", "bytes a subscription", "bytes/subscription")
        for panel in panels
    )
    return *panels, *spaces


def _tops(share: float) -> dict[str, tuple[str, int | None]]:
    paper = f"be_star_tree paper capacity={paper_capacity(share)} dynamic"
    return {
        STAR: (paper, None),
        "BE*(1)": (paper, 1),
        "BE*(5)": (paper, 5),
        "k-ind": ("k_index", None),
        "k-ind(1)": ("k_index", 1),
        **{shown_name(name): (name, None) for name in OURS},
        **{f"{shown_name(name)}(1)": (name, 1) for name in OURS},
    }


def top_by_size(settings: RunSettings) -> tuple[Panel, ...]:
    """The best, over the number of subscriptions."""
    axis = Axis("million subscriptions", settings.scale.thinned((0.1, 0.3, 0.5, 0.7, 1.0)))
    share = _share(settings, 0.001)
    panels = []
    for law, alpha in LAWS.items():

        def workload(millions: Any, alpha: float = alpha) -> Workload:
            count = settings.scale.of(float(millions))
            return expressions(_recipe(settings, alpha=alpha), count, settings)

        panels.append(best(settings, law, law, axis, workload, _tops(share)))
    panels += [
        best(
            settings,
            name,
            name,
            _letter_axis(settings),
            partial(_letters, name, settings),
            _tops(share),
        )
        for name in LETTERS
    ]
    return tuple(panels)


def _shares(settings: RunSettings) -> list[float]:
    least = 10 / settings.scale.of(0.5)
    return [share for share in (0.0001, 0.001, 0.01, 0.03, 0.09) if share >= least] or [0.09]


def top_by_share(settings: RunSettings) -> tuple[Panel, ...]:
    """The best, over the share that matches."""
    axis = Axis("match share, %", [100 * share for share in _shares(settings)], log=True)
    panels = []
    for law, alpha in LAWS.items():

        def workload(percent: Any, alpha: float = alpha) -> Workload:
            recipe = _recipe(settings, alpha=alpha, match_share=float(percent) / 100)
            return expressions(recipe, settings.scale.of(0.5), settings)

        panels.append(best(settings, law, law, axis, workload, _tops(0.001)))
    return tuple(panels)


def by_share(settings: RunSettings) -> tuple[Panel, ...]:
    """Over the share that matches."""
    axis = Axis("match share, %", [100 * share for share in _shares(settings)], log=True)

    def workload(percent: Any, alpha: float) -> Workload:
        recipe = _recipe(settings, alpha=alpha, match_share=float(percent) / 100)
        return expressions(recipe, settings.scale.of(0.5), settings)

    return _sweep(settings, axis, workload)


def by_k(settings: RunSettings) -> tuple[Panel, ...]:
    """The k best, over k: one point for each, of the same tree."""
    share = _share(settings, 0.01)
    ks = settings.scale.thinned((1, 2, 5, 10, 20, 50))
    paper = f"be_star_tree paper capacity={paper_capacity(share)} dynamic"
    tops: dict[str, tuple[str, int | None]] = {f"{STAR} {k}": (paper, k) for k in ks}
    for name in ("be_star_tree", *OURS):
        tops |= {f"{shown_name(name)} {k}": (name, k) for k in ks}
    panels = []
    for law, alpha in LAWS.items():
        recipe = _recipe(settings, match_share=share, alpha=alpha)
        workload = expressions(recipe, settings.scale.of(0.5), settings)
        title = f"the k best, {law}"
        panel = best(settings, law, title, Axis("-", ["all"]), partial(_always, workload), tops)
        curves = []
        for shown in (STAR, *(shown_name(name) for name in ("be_star_tree", *OURS))):
            points = [replace(panel.curve(f"{shown} {k}").points[0], x=k) for k in ks]
            curves.append(Curve(shown, tuple(points)))
        panels.append(replace(panel, x="k", curves=tuple(curves)))
    return tuple(panels)


#: Authors and titles, and how many of them stand for the paper's 760,000 and 250,000.
LETTERS: Final = {"author": 0.5, "title": 0.25}


def _letter_axis(settings: RunSettings) -> Axis:
    return Axis("share of all", settings.scale.thinned((0.1, 0.25, 0.5, 0.75, 1.0)))


def _letters(name: str, settings: RunSettings, part: Any = 1.0) -> Workload:
    """A part of authors or titles as expressions: the user's, or drawn letters of such lengths."""
    most = 8 if name == "author" else 35
    whole = settings.scale.of(LETTERS[name])
    count = max(64, round(float(part) * whole))
    texts, about = _texts(name, whole, settings)
    drawn = LetterExpressions.of(texts[:count])
    rows = random_of(settings.seed, _LETTERS, 1).integers(0, len(drawn), settings.scale.events)
    facts = {"data": about, "subscriptions": len(drawn), "predicates": f"at most {most}"}
    return Workload(name, facts, drawn.subscriptions(most), drawn.events(rows))


def _texts(name: str, count: int, settings: RunSettings) -> tuple[list[str], str]:
    file = "acl_anthology.tsv"
    if real_files.has(file):
        papers = real_files.table_of(file, ["title", "authors"], "\t")
        if name == "title":
            return [text for text in papers["title"].to_pylist() if text], file
        every = (names or "" for names in papers["authors"].to_pylist())
        return sorted({one for names in every for one in names.split("; ") if one}), file
    random = random_of(settings.seed, _LETTERS)
    lengths = random.integers(9, 16, count) if name == "author" else random.integers(30, 70, count)
    frequency = np.array([8.2, 1.5, 2.8, 4.3, 12.7, 2.2, 2.0, 6.1, 7.0, 0.2, 0.8, 4.0, 2.4, 6.7,
                          7.5, 1.9, 0.1, 6.0, 6.3, 9.1, 2.8, 1.0, 2.4, 0.2, 2.0, 0.1])  # fmt: skip
    letters = random.choice(26, int(lengths.sum()), p=frequency / frequency.sum())
    text = (letters + ord("a")).astype(np.uint8).tobytes().decode()
    ends = np.cumsum(lengths)
    return [text[end - length : end] for end, length in zip(ends, lengths, strict=True)], "drawn"


def real(settings: RunSettings) -> tuple[Panel, ...]:
    """Authors and titles, over their number."""
    contenders = _contenders(0.001)
    axis, names = _letter_axis(settings), (*contenders, *OTHERS)
    return tuple(
        _named(
            matching(settings, name, name, axis, partial(_letters, name, settings), names),
            contenders,
        )
        for name in LETTERS
    )


#: Table II (b): seconds for a million, 760,000 and 250,000.
CONSTRUCTION: Final = {"uniform": 2.30, "zipf": 2.45, "author": 6.55, "title": 11.32}


def micro(settings: RunSettings) -> tuple[Panel, ...]:
    """Table II: leaf capacities, and construction."""
    capacities = settings.scale.thinned((5, 20, 64, 160))
    curves = []
    shares = [one for one in (0.001, 0.01, 0.1) if one >= 10 / settings.scale.of(0.5)]
    for few, share in enumerate(shares):
        recipe = _recipe(settings, match_share=share)
        workload = expressions(recipe, settings.scale.of(0.5), settings)
        names = [f"be_star_tree paper capacity={capacity} dynamic" for capacity in capacities]
        panel = matching(
            settings, "leaf", "leaf capacity", Axis("-", ["all"]), partial(_always, workload), names
        )
        points = [
            replace(panel.curve(shown_name(name)).points[0], x=capacity)
            for name, capacity in zip(names, capacities, strict=True)
        ]
        shown = "fewest match" if few == 0 else f"{share:.1%} match"
        curves.append(Curve(shown, tuple(points)))
        for name in OURS:
            one = panel.curve(shown_name(name)).points[0]
            level = tuple(replace(one, x=capacity) for capacity in capacities)
            curves.append(Curve(f"{shown_name(name)}, {share:.1%}", level))
    title = f"leaf capacity A; fewest: {shares[0]:.1%}"
    leaf = replace(panel, title=title, x="A", curves=tuple(curves), log_x=True)
    axis = Axis("workload", list(CONSTRUCTION))
    built_names = ("be_star_tree paper capacity=5 dynamic", "be_star_tree", "be_tree", "k_index")

    def workload_of(name: Any) -> Workload:
        if name in LAWS:
            recipe = _recipe(settings, alpha=LAWS[name])
            return expressions(recipe, settings.scale.of(0.5), settings)
        return _letters(name, settings)

    timed = matching(settings, "timed", "construction", axis, workload_of, built_names)
    timed = _named(timed, {built_names[0]: STAR})
    built = derived(timed, "build", "µs to build one", "µs to build one", title="construction")
    printed = paper_curve((name, value) for name, value in CONSTRUCTION.items())
    return leaf, replace(built, curves=(*built.curves, printed))


def adaptation(settings: RunSettings) -> tuple[Panel, ...]:
    """What a tree costs, a part of whose subscriptions came in place of those of another law."""
    axis = Axis("% replaced", settings.scale.thinned((10, 25, 50, 75, 100)))
    panels = []
    for law, alpha in LAWS.items():
        other = 1.0 - alpha
        panels.append(_adapted(settings, law, axis, other, alpha))
    return tuple(panels)


def _adapted(
    settings: RunSettings, law: str, axis: Axis, early_alpha: float, late_alpha: float
) -> Panel:
    """Grown under one law; of the first a part goes, and as many of the other law come.

    Beside each curve a tree that is built at once of what then stands.
    """
    count = settings.scale.of(2 * TENTH)
    early = expressions(_recipe(settings, alpha=early_alpha), count, settings)
    recipe = replace(_recipe(settings, alpha=late_alpha), seed=settings.seed + 1)
    late = expressions(recipe, count, settings)
    made = collecting(law, f"towards {law}", axis, "µs an event", late.facts)
    for percent in axis.values:
        gone = round(count * float(percent) / 100)
        stays = take(early.columns, np.arange(gone, count))
        comes = take(late.columns, np.arange(gone))
        whole = replace(late, columns=concatenate([stays, comes]))
        few, cases = compared_events(whole), []
        for name, shown in (*_contenders(0.001).items(), *((n, shown_name(n)) for n in OURS)):
            settings.progress(f"towards {law}, {percent} %: {shown}")
            changed = build(name, early.columns, None)
            changed.index.remove(np.arange(gone))
            changed.index.insert(comes)
            fresh = build(name, whole.columns, None)
            for one, title, first in ((changed, shown, gone), (fresh, f"{shown}, fresh", 0)):
                match = one.index.match
                match(late.events)  # a tree arranges itself while it is asked
                starts, rows = match(few)
                work = one.index.counted_work(events_between(late.events, 0, 64))
                answer = starts, rows - first
                cases.append(event_case(title, match, late.events, settings, work, answer=answer))
        made.compared.append(len(rows))
        told = f"towards {law}, {percent} %"
        made.add(percent, measure(cases, settings.scale.repetitions, settings.progress, told))
    return made.done()


def weights(settings: RunSettings) -> tuple[Panel, ...]:
    """The best where events have weights of their own, and where they have not, over the share."""
    shares = _shares(settings)
    axis = Axis("match share, %", [100 * share for share in shares], log=True)
    panels = []
    for law, alpha in LAWS.items():
        for kind in ("plain", "weighted"):

            def workload(percent: Any, alpha: float = alpha, kind: str = kind) -> Workload:
                recipe = _recipe(
                    settings,
                    match_share=float(percent) / 100,
                    alpha=alpha,
                    weighted_events=kind == "weighted",
                )
                return expressions(recipe, settings.scale.of(0.5), settings)

            title = f"{kind} events, {law}"
            panels.append(best(settings, f"{kind} {law}", title, axis, workload, _tops(0.001)))
    return tuple(panels)
