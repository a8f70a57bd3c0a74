"""Indexing for Subscription Covering: Figures 8 to 12, Tables I and II (section V)."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from stentor.covering.graph.poset import PosetGraph
from stentor_lab.baselines.point_graph import PointGraph, PointSettings
from stentor_lab.baselines.points import points_of
from stentor_lab.baselines.star_graph import StarGraph
from stentor_lab.bench.covering import INDEXES
from stentor_lab.bench.covering import PAPER as PRINTED
from stentor_lab.measure import Case, cpu_stopwatch, measure
from stentor_lab.reproduce.claims import All, At, Claim, Less, Near, Panels, Rises
from stentor_lab.reproduce.curves import Curve, Panel, Point, paper_curve
from stentor_lab.reproduce.experiment import Experiment, Paper
from stentor_lab.reproduce.scale import RunSettings
from stentor_lab.reproduce.sweep import Axis, collecting
from stentor_lab.workloads.rectangles import Commands, Rectangles

#: The paper's commands in Figures 8 and 9, and in Figures 10 to 12.
MODE_COMMANDS, MOST_COMMANDS = 60_000, 100_000
MODES: Final = (1, 2, 3, 4, 5, 6)
LOADS: Final = {"heavy": 0.05, "light": 0.40}
SPATIAL: Final = ("k-d tree", "Z-curve")
#: Whole graphs compare each subscription with all: sets in Python.
WHOLE_COMMANDS: Final = 2_000


#: Smaller buckets, beside ours of 64: what is visited and compared depends on them.
SMALL_BUCKET: Final = 8
SMALL: Final = f"k-d tree, buckets of {SMALL_BUCKET}"


def _graph(index: str, drawn: Commands, k: int = 1) -> PointGraph:
    asked = PointSettings("kd_tree", overflow=SMALL_BUCKET, underflow=SMALL_BUCKET // 4)
    asked = asked if index == SMALL else PointSettings(INDEXES[index])
    graph = PointGraph(2 * drawn.low.shape[1], k, asked)
    graph.add(points_of(drawn.low, drawn.high))
    return graph


def _sample(index: str, drawn: Commands, k: int) -> float:
    graph = _graph(index, drawn, k)
    return cpu_stopwatch(partial(graph.run, drawn.rows))()


def _counted(index: str, drawn: Commands, k: int) -> tuple[PointGraph, dict[str, float]]:
    graph = _graph(index, drawn, k)
    graph.run(drawn.rows)
    arriving, leaving = graph.counters
    calls = max(1, arriving.calls + leaving.calls)
    return graph, {
        "nodes/query": (arriving.nodes_visited + leaving.nodes_visited) / calls,
        "points/query": (arriving.points_compared + leaving.points_compared) / calls,
        "queries of unsubscribing": float(leaving.calls),
        "nv_s": arriving.nodes_visited / 1000,
        "nv_u": leaving.nodes_visited / 1000,
        "pc_s": arriving.points_compared / 1000,
        "pc_u": leaving.points_compared / 1000,
    }


def _facts(settings: RunSettings, commands: int, **more: Any) -> dict[str, Any]:
    return {"commands": commands, "seed": settings.seed, "data": "drawn", **more}


def _commands(settings: RunSettings, paper: int) -> int:
    """As many as in the paper, or three for each subscription of the scale."""
    return min(paper, 3 * settings.scale.base)


def _modes(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 8: time by k."""
    panels = []
    commands = _commands(settings, MODE_COMMANDS)
    for load, p in LOADS.items():
        drawn = Rectangles(settings.seed, 5, p).commands(commands)
        facts = _facts(settings, commands, p=f"{p:.0%}", attributes=5)
        axis = Axis("k", settings.scale.thinned(MODES))
        made = collecting(load, f"{load} load (p = {p:.0%})", axis, "ms for all commands", facts)
        for k in map(int, axis.values):
            cases = []
            for index in SPATIAL:
                figures = _counted(index, drawn, k)[1]
                sample = partial(_sample, index, drawn, k)
                cases.append(Case(index, sample, cold=True, figures=figures))
            rows = measure(cases, settings.scale.repetitions, settings.progress, f"k = {k}, {load}")
            made.add(k, rows, factor=1e3)
        panels.append(made.done())
    return tuple(panels)


def _queries(settings: RunSettings) -> tuple[Panel, ...]:
    """Figure 9, and Tables I and II: what is counted does not depend on the machine."""
    panels = []
    commands = _commands(settings, MODE_COMMANDS)
    for load, p in LOADS.items():
        drawn = Rectangles(settings.seed, 5, p).commands(commands)
        points = []
        for k in MODES:
            figures = _counted("k-d tree", drawn, k)[1]
            points.append(Point(k, (figures["queries of unsubscribing"],), figures))
        curves = (Curve("k-d tree", tuple(points)),)
        facts = _facts(settings, commands, p=f"{p:.0%}", attributes=5)
        title = f"{load} load (p = {p:.0%})"
        panels.append(Panel(load, title, "k", "queries of unsubscribing", curves, facts=facts))
    return tuple(panels)


def _table(load: str, settings: RunSettings) -> tuple[Panel, ...]:
    commands = _commands(settings, MODE_COMMANDS)
    p = LOADS[load]
    drawn = Rectangles(settings.seed, 5, p).commands(commands)
    names = ("nv_s", "nv_u", "pc_s", "pc_u")
    points: dict[tuple[str, str], list[Point]] = {}
    for index in ("k-d tree", SMALL):
        for k in MODES:
            figures = _counted(index, drawn, k)[1]
            for name in names:
                points.setdefault((index, name), []).append(Point(k, (figures[name],)))
    facts = _facts(settings, commands, p=f"{p:.0%}", paper=f"{MODE_COMMANDS:,} commands")
    panels = []
    for position, name in enumerate(names):
        printed = ((k, float(PRINTED[p][k - 1][position])) for k in MODES)
        ours = (Curve(index, tuple(points[index, name])) for index in ("k-d tree", SMALL))
        curves = *ours, paper_curve(printed)
        what = "nodes visited" if name[0] == "n" else "points compared"
        by = "subscribing" if name[-1] == "s" else "unsubscribing"
        panels.append(Panel(name, f"{name}: {what}, {by}", "k", "thousands", curves, facts=facts))
    return tuple(panels)


def _compared(attributes: int, settings: RunSettings) -> tuple[Panel, ...]:
    """Figures 10 to 12: G_1 over each index, by the number of commands."""
    most = min(MOST_COMMANDS, settings.scale.base)
    shares = settings.scale.thinned([number / 10 for number in range(1, 11)])
    axis = Axis("commands", [max(100, round(share * most)) for share in shares], log=True)
    facts = _facts(settings, most, p="15 %", attributes=attributes)
    title = f"G_1 in {2 * attributes} dimensions"
    made = collecting("time", title, axis, "ms for all commands", facts)
    for commands in map(int, axis.values):
        drawn = Rectangles(settings.seed, attributes, 0.15).commands(commands)
        cases = []
        for index in INDEXES:
            graph, figures = _counted(index, drawn, 1)
            state = (graph.state.copy(),)
            cases.append(
                Case(
                    "naive" if index == "row scan" else index,
                    partial(_sample, index, drawn, 1),
                    answer=partial(tuple, state),
                    most=2 if index == "row scan" else None,
                    figures=figures,
                )
            )
        rows = measure(cases, settings.scale.repetitions, settings.progress, f"{title}, {commands}")
        made.add(commands, rows, factor=1e3)
    return (made.done(),)


def _whole(settings: RunSettings) -> tuple[Panel, ...]:
    """G* and the strict poset beside G_1, on the same commands."""
    most = min(WHOLE_COMMANDS, settings.scale.base)
    axis = Axis("commands", [most // 4, most // 2, most], log=True)
    facts = _facts(settings, most, p="15 %", attributes=3)
    made = collecting("time", "relation graphs", axis, "ms for all commands", facts)
    edges: dict[str, list[Point]] = {}
    for commands in map(int, axis.values):
        drawn = Rectangles(settings.seed, 3, 0.15).commands(commands)
        cases = []
        for name, kind in (("G*", StarGraph), ("strict poset", PosetGraph), ("G_1", None)):
            graph: Any = _graph("k-d tree", drawn)
            if kind is not None:
                graph = kind(graph)
            sample = partial(_fresh_run, kind, drawn)
            graph.run(drawn.rows)
            rows = np.flatnonzero(graph.state)
            count = sum(len(graph.coverers(int(row))) for row in rows)
            edges.setdefault(name, []).append(Point(commands, (float(max(count, 1)),)))
            forwarded = np.sort(graph.forwarded())
            cases.append(Case(name, sample, answer=partial(tuple, (forwarded,)), most=2))
        rows_ = measure(cases, settings.scale.repetitions, settings.progress, f"graphs, {commands}")
        made.add(commands, rows_, factor=1e3)
    curves = tuple(Curve(name, tuple(points)) for name, points in edges.items())
    panel = Panel("edges", "edges kept", "commands", "edges", curves, log_x=True, facts=facts)
    return made.done(), panel


def _fresh_run(kind: Any, drawn: Commands) -> float:
    graph: Any = _graph("k-d tree", drawn)
    if kind is not None:
        graph = kind(graph)
    return cpu_stopwatch(partial(graph.run, drawn.rows))()


def _index_experiment(number: str, attributes: int, *claims: Claim) -> Experiment:
    return Experiment(
        number,
        f"total runtime, dimension {2 * attributes}",
        "10,000–100,000 commands, p = 15 %",
        "time for all commands",
        "G_1 over rows (naive), a vector scan, the Z-curve and the k-d tree; matching indexes do "
        "not look for coverers",
        partial(_compared, attributes),
        (
            Claim(
                "both indexes improve substantially over the naive algorithm",
                All((Less("time", "k-d tree", ("naive",)), Less("time", "Z-curve", ("naive",)))),
            ),
            Claim(
                "(ours) and over a vector scan, which compares the same rows 8 at a time",
                All(
                    (
                        Less("time", "k-d tree", ("vector scan",)),
                        Less("time", "Z-curve", ("vector scan",)),
                    )
                ),
            ),
            Claim(
                "k-d trees perform better than space-filling curves",
                Less("time", "k-d tree", ("Z-curve",)),
            ),
            *claims,
        ),
        weight=2.0,
    )


def _buckets(panels: Panels) -> str:
    """What the size of buckets changes, from the curves of both sizes at k = 1."""
    ours = ", ".join(
        f"{name} {panels[name].curve('k-d tree').points[0].value:,.0f} thousand with buckets of "
        f"64, {panels[name].curve(SMALL).points[0].value:,.0f} with buckets of {SMALL_BUCKET}"
        for name in ("nv_s", "pc_s")
    )
    return f"Tested: the paper does not give the size of its buckets. At k = 1 {ours}."


PAPER = Paper(
    "covering",
    "Subscription covering",
    "Shen, Tirthapura, Aluru: Indexing for subscription covering in publish-subscribe systems",
    "section V",
    (
        Experiment(
            "8",
            "runtime by reporting mode",
            "k 1–6, p 5 % and 40 %",
            "time for 60,000 commands in 10 dimensions",
            "G_k over k-d tree and Z-curve; matching indexes do not look for coverers",
            _modes,
            tuple(
                Claim(
                    f"runtime always increases with k ({load} load)",
                    Rises(load, SPATIAL),
                )
                for load in LOADS
            ),
            weight=2.0,
        ),
        Experiment(
            "9",
            "queries of unsubscribing by reporting mode",
            "k 1–6, p 5 % and 40 %",
            "number of queries",
            "G_k over the k-d tree",
            _queries,
            tuple(
                Claim(
                    f"queries of unsubscribing decrease with k ({load} load)",
                    Rises(load, ("k-d tree",), falls=True),
                )
                for load in LOADS
            ),
        ),
        *(
            Experiment(
                number,
                f"nodes visited and points compared, {load} load",
                "k 1–6",
                "nv and pc of subscribing and unsubscribing, in thousands",
                "G_k over the k-d tree, 60,000 commands",
                partial(_table, load),
                (
                    Claim(
                        "nv and pc of subscribing increase with k",
                        All((Rises("nv_s", ("k-d tree",)), Rises("pc_s", ("k-d tree",)))),
                    ),
                    Claim(
                        "unsubscribing becomes cheaper from k = 1 to 2, then slightly dearer",
                        All(
                            tuple(
                                rule
                                for counted in ("nv_u", "pc_u")
                                for rule in (
                                    At(
                                        Rises(counted, ("k-d tree",), falls=True),
                                        counted,
                                        (1, 2),
                                    ),
                                    At(
                                        Rises(counted, ("k-d tree",)),
                                        counted,
                                        part=(1, None),
                                    ),
                                )
                            )
                        ),
                    ),
                    Claim("the points compared", Near("pc_s", "k-d tree", within=3.0), _buckets),
                    Claim("the nodes visited", Near("nv_s", "k-d tree", within=3.0), _buckets),
                ),
            )
            for number, load in (("table-i", "heavy"), ("table-ii", "light"))
        ),
        _index_experiment("10", 3),
        _index_experiment("11", 6),
        _index_experiment(
            "12",
            8,
            Claim(
                "in 16 dimensions k-d trees run 10 times as fast as naive, twice as the curve",
                Less("time", "k-d tree", ("naive", "Z-curve"), {"naive": 10.0, "Z-curve": 2.0}),
            ),
        ),
        Experiment(
            "graphs",
            "G*, the strict poset and G_1",
            "commands",
            "time, edges kept",
            "each over the same rectangles; G* and poset compare with all, in Python",
            _whole,
            (
                Claim(
                    "one coverer each is enough: G_1 keeps the fewest edges",
                    Less("edges", "G_1", ("G*", "strict poset")),
                ),
                Claim("and costs least", Less("time", "G_1", ("G*", "strict poset"))),
            ),
        ),
    ),
    (("Figures 1–7", "drawings of the method"),),
)
