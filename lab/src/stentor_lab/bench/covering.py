"""Covering: the paper's experiments, and a million subscriptions of the whole language reduced."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from stentor.covering.graph.g_k import CoveringGraph
from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.ragged import concatenate
from stentor.encoding.template import SubscriptionHeads
from stentor.encoding.texts import TextEncoder
from stentor.model import Schema
from stentor.model.values.time import NEVER
from stentor_lab.baselines.point_graph import PointGraph, PointSettings
from stentor_lab.baselines.points import points_of
from stentor_lab.measure import Case, measure, stopwatch
from stentor_lab.result import BenchOptions, Row, Table, Unit
from stentor_lab.workloads.interests import Interests
from stentor_lab.workloads.rectangles import Commands, Rectangles

SIZE: Final = 1_000_000
#: Commands for each million of *size*: the paper's Figures 10 to 12, and 8 and 9.
COMPARED_COMMANDS: Final = 100_000
MODE_COMMANDS: Final = 60_000
ATTRIBUTES: Final = (3, 5, 8)
MODES: Final = (1, 2, 3, 4, 5, 6)
#: Texts that are encoded at a time.
CHUNK: Final = 100_000
INDEXES: Final = {
    "row scan": "row_scan",
    "vector scan": "block_scan",
    "Z-curve": "z_curve",
    "k-d tree": "kd_tree",
}
#: Tables I (p = 5 %) and II (40 %): nodes visited and points compared in thousands, by k, for
#: subscriptions and for unsubscriptions.
PAPER: Final = {
    0.05: (
        (782, 31, 5993, 154),
        (974, 9, 9852, 115),
        (1131, 9, 12973, 138),
        (1266, 9, 15663, 153),
        (1390, 10, 18111, 163),
        (1498, 10, 20237, 170),
    ),
    0.40: (
        (415, 141, 4684, 1508),
        (529, 105, 7376, 1576),
        (615, 99, 9365, 1661),
        (683, 97, 10936, 1725),
        (740, 99, 12260, 1790),
        (789, 100, 13389, 1844),
    ),
}


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """The indexes compared, the reporting modes, the reduction; *size* is that of the last."""
    share = (options.size or SIZE) / SIZE
    compared = [_compared(attributes, share, options) for attributes in ATTRIBUTES]
    modes = [_modes(index, p, share, options) for index in ("k-d tree", "Z-curve") for p in PAPER]
    return (*compared, *modes, _reduced(options))


def _graph(index: str, drawn: Commands, k: int) -> PointGraph:
    """A graph that knows the rectangles of *drawn*, none of which stands."""
    graph = PointGraph(2 * drawn.low.shape[1], k, PointSettings(INDEXES[index]))
    graph.add(points_of(drawn.low, drawn.high))
    return graph


def _timed(index: str, drawn: Commands, k: int) -> float:
    graph = _graph(index, drawn, k)
    return stopwatch(partial(graph.run, drawn.rows))()


def _done(index: str, drawn: Commands, k: int = 1) -> PointGraph:
    graph = _graph(index, drawn, k)
    graph.run(drawn.rows)
    return graph


def _compared(attributes: int, share: float, options: BenchOptions) -> Table:
    """Figures 10 to 12: G_1 over each index, all commands together."""
    commands = max(100, round(COMPARED_COMMANDS * share))
    drawn = Rectangles(options.seed, attributes, 0.15).commands(commands)
    cases = []
    for index in INDEXES:
        graph = _done(index, drawn)
        answer = (graph.state.copy(),)
        cases.append(
            Case(
                index,
                partial(_timed, index, drawn, 1),
                answer=partial(tuple, answer),
                most=2 if index == "row scan" else None,
                figures=_figures(graph, ("nodes", "points")),
            )
        )
    title = f"G_1, {attributes} attributes: {2 * attributes} dimensions"
    rows = measure(cases, options.repetitions, options.progress, title)
    facts = {"workload": "rectangles", "commands": commands, "p": "15 %", "seed": options.seed}
    facts["forwarded at the end"] = len(graph.forwarded())
    return Table(title, facts, "run", Unit.MILLISECONDS, rows)


def _figures(graph: PointGraph, names: tuple[str, ...]) -> Mapping[str, float]:
    arriving, leaving = graph.counters
    calls = arriving.calls + leaving.calls
    every = {
        "nodes": (arriving.nodes_visited + leaving.nodes_visited) / calls,
        "points": (arriving.points_compared + leaving.points_compared) / calls,
    }
    return {f"{name}/query": every[name] for name in names}


def _modes(index: str, p: float, share: float, options: BenchOptions) -> Table:
    """Figures 8 and 9, Tables I and II: k = 1 … 6 under heavy and under light load."""
    commands = max(100, round(MODE_COMMANDS * share))
    drawn = Rectangles(options.seed, 5, p).commands(commands)
    cases = []
    for k in MODES:
        arriving, leaving = _done(index, drawn, k).counters
        counted = {
            "nv_s": arriving.nodes_visited,
            "nv_u": leaving.nodes_visited,
            "pc_s": arriving.points_compared,
            "pc_u": leaving.points_compared,
        }
        figures: dict[str, float] = {"queries_u": leaving.calls}
        for name, ours, paper in zip(counted, counted.values(), PAPER[p][k - 1], strict=True):
            figures[name] = ours / 1000
            if index == "k-d tree":
                figures[f"P {name}"] = paper
        cases.append(Case(f"k = {k}", partial(_timed, index, drawn, k), figures=figures))
    title = f"Reporting mode: {index}, p = {p:.0%}"
    rows = measure(cases, options.repetitions, options.progress, title)
    facts = {"workload": "rectangles", "commands": commands, "attributes": 5, "seed": options.seed}
    facts["nodes and points"] = "in thousands; P: the paper's"
    return Table(title, facts, "run", Unit.MILLISECONDS, rows)


def _reduced(options: BenchOptions) -> Table:
    """Subscriptions of the mixed language: those that no other covers."""
    size = options.size or SIZE
    recipe = Interests(options.seed)
    schema = recipe.schema
    options.progress(f"drawing {size:,} subscriptions")
    start = time.perf_counter()
    columns = _encoded(recipe, schema, size)
    drawn = time.perf_counter() - start
    cases = []
    for name, reduce in (("in order of arrival (G_1)", _arriving), ("all at once", _at_once)):
        graph = CoveringGraph(schema)
        reduce(graph, columns)
        figures = {
            "forwarded": float(len(graph.forwarded())),
            "share that remains": len(graph.forwarded()) / size,
            "nodes/query": sum(one.nodes_visited for one in graph.counters) / size,
            "points/query": sum(one.points_compared for one in graph.counters) / size,
        }
        cases.append(
            Case(name, partial(_reduction, reduce, schema, columns), cold=True, figures=figures)
        )
    title = "Subscriptions of the whole language, reduced on one core"
    rows: tuple[Row, ...] = measure(cases, options.repetitions, options.progress, title)
    facts = {
        "workload": "interests",
        "seed": options.seed,
        "subscriptions": size,
        "drawn and encoded in": f"{drawn:.1f} s",
    }
    return Table(title, facts, "set", Unit.SECONDS, rows, compared=False)


def _encoded(recipe: Interests, schema: Schema, size: int) -> SubscriptionColumns:
    """The columns of *size* subscriptions."""
    encoder = TextEncoder(schema)
    texts = list(recipe.texts(size))
    parts = []
    for start in range(0, size, CHUNK):
        chunk = texts[start : start + CHUNK]
        asked = SubscriptionHeads(
            [str(number) for number in range(len(chunk))],
            np.full((len(chunk), 2), np.nan),
            np.full(len(chunk), NEVER),
        )
        parts.append(encoder.encode(chunk, asked).columns)
    return concatenate(parts)


def _arriving(graph: CoveringGraph, columns: SubscriptionColumns) -> None:
    graph.run(graph.add(columns))


def _at_once(graph: CoveringGraph, columns: SubscriptionColumns) -> None:
    graph.reduce(graph.add(columns))


def _reduction(reduce: object, schema: Schema, columns: SubscriptionColumns) -> float:
    graph = CoveringGraph(schema)
    assert callable(reduce)
    return stopwatch(partial(reduce, graph, columns))()
