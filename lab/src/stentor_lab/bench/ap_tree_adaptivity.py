"""Adaptivity: rectangles from a millionth of a percent to a tenth of the space.

A tree that adapts visits about as much as the better of two that do not: the one that partitions by
keywords wherever it can, and the one that partitions by place.

Paper: AP-Tree, section 5.1.3, where the range size varies.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import Final

from stentor_lab.bench.ap_tree_matching import (
    KEYWORDS_FIRST,
    MOST_FOR_VARIANTS,
    SIZE,
    SPACE_FIRST,
    TUNED,
    built,
    drawn,
)
from stentor_lab.result import BenchOptions, Row, Table, Unit
from stentor_lab.structures import Workload, figures_of, matching_table
from stentor_lab.workloads.spatial_keyword import SpatialKeyword

#: Areas of the rectangles, as shares of the space.
SHARES: Final = (1e-8, 1e-6, 1e-4, 1e-2, 1e-1)

#: Visits are nodes and candidates; entries are what is looked at in leaves to find candidates.
NODES, CANDIDATES, ENTRIES = "nodes/event", "candidates/event", "entries/event"


def table(options: BenchOptions) -> Table:
    """A row for each size of the rectangles: the tree, with both others beside it."""
    size = min(options.size or SIZE, MOST_FOR_VARIANTS)
    rows = []
    for share in SHARES:
        recipe = SpatialKeyword(options.seed, smallest=share, largest=share)
        title = f"Rectangles of {100 * share:g} % of the space"
        options.progress(f"{title}: drawing {size:,} subscriptions")
        workload = drawn(title, recipe, size)
        rows.append(_row(f"{100 * share:g} %", workload, options))
    facts = {key: fact for key, fact in workload.facts.items() if key != "rectangles"}
    facts |= {"seed": options.seed, "subscriptions": size}
    return Table("Adaptivity", facts, "event", Unit.MICROSECONDS, tuple(rows), compared=False)


def _row(name: str, workload: Workload, options: BenchOptions) -> Row:
    """The times of the tree on *workload*, and what it visits beside what the others do."""
    contenders = built((TUNED, KEYWORDS_FIRST, SPACE_FIRST), workload, options)
    tree, *others = (figures_of(contender, workload) for contender in contenders)
    measured = matching_table(workload, contenders, options, row_scan=False)
    mine, by_keywords, by_space = measured.rows[-3:]
    visits = [one.get(NODES, 0.0) + one[CANDIDATES] for one in (tree, *others)]
    figures = {
        "matches/event": mine.figures["matches/event"],
        NODES: tree.get(NODES, 0.0),
        CANDIDATES: tree[CANDIDATES],
        "visits": visits[0],
        "keywords first": visits[1],
        "space first": visits[2],
        "of the better": _ratio(visits),
        "entries of the better": _ratio([one.get(ENTRIES, 0.0) for one in (tree, *others)]),
        "µs keywords first": 1e6 * median(by_keywords.seconds),
        "µs space first": 1e6 * median(by_space.seconds),
    }
    return replace(mine, name=name, figures=figures)


def _ratio(counts: list[float]) -> float:
    """The first of *counts* over the least of the others."""
    return counts[0] / max(1e-9, min(counts[1:]))
