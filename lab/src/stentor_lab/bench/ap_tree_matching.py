"""Matching with AP-Trees: tuned, with the paper's parameters, and its variants.

Paper: AP-Tree, sections 5.1.2 and 5.1.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from stentor_lab.result import BenchOptions, Table
from stentor_lab.structures import Contender, Workload, build, matching_table
from stentor_lab.workloads.boolean_keyword import BooleanSubscriptions
from stentor_lab.workloads.spatial_keyword import SpatialKeyword

SIZE: Final = 1_000_000
EVENTS: Final = 2048
HISTORY: Final = 20_000
#: More subscriptions than these do not fit into memory once for every variant.
MOST_FOR_VARIANTS: Final = 2_000_000
#: Optimal cuts take time; the paper's parameters take kilobytes for a Boolean expression.
MOST_FOR_ALL: Final = 100_000

TUNED: Final = "ap_tree"
PAPER: Final = "ap_tree paper"
KEYWORDS_FIRST: Final = "ap_tree priority=keywords"
SPACE_FIRST: Final = "ap_tree priority=space"
OPTIMAL_CUTS: Final = "ap_tree paper partition=dp"


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Conjunctions, with all variants; fewer of them with optimal cuts; Boolean expressions."""
    return _conjunctions(options), _optimal_cuts(options), _boolean(options)


def _conjunctions(options: BenchOptions) -> Table:
    size = options.size or SIZE
    options.progress(f"drawing {size:,} subscriptions")
    workload = drawn("Spatial-keyword subscriptions", SpatialKeyword(options.seed), size)
    return matching_table(workload, built(_affordable(size), workload, options), options)


def _optimal_cuts(options: BenchOptions) -> Table:
    size = min(options.size or SIZE, MOST_FOR_ALL)
    workload = drawn("Heuristic and optimal cuts", SpatialKeyword(options.seed), size)
    contenders = built((PAPER, OPTIMAL_CUTS, TUNED), workload, options)
    return matching_table(workload, contenders, options, row_scan=False)


def _boolean(options: BenchOptions) -> Table:
    size = options.size or SIZE
    recipe = SpatialKeyword(options.seed)
    options.progress(f"drawing {size:,} Boolean expressions")
    columns = BooleanSubscriptions.of(recipe, size).columns()
    workload = replace(drawn("General Boolean expressions", recipe, 1), columns=columns)
    names = [name for name in _affordable(size) if name != PAPER or size <= MOST_FOR_ALL]
    return matching_table(workload, built(names, workload, options), options, row_scan=False)


def drawn(title: str, recipe: SpatialKeyword, size: int) -> Workload:
    """*size* subscriptions of *recipe*, messages that nobody has seen, and a history of others."""
    facts = {
        "workload": "spatial-keyword",
        "keywords": f"1–{recipe.keywords}",
        "vocabulary": recipe.vocabulary,
        "rectangles": f"{100 * recipe.smallest:g}–{100 * recipe.largest:g} % of the space",
        "history": HISTORY,
    }
    return Workload(
        title,
        facts,
        recipe.subscriptions(size).columns(),
        recipe.events(EVENTS, when=1.0).columns(),
        recipe.events(HISTORY, part=1).columns(),
    )


def built(names: Iterable[str], workload: Workload, options: BenchOptions) -> list[Contender]:
    """The structures *names*, each on all of *workload*."""
    return [build(name, workload, options.progress) for name in names]


def _affordable(size: int) -> list[str]:
    """As many of the variants as fit into memory together."""
    return [TUNED] if size > MOST_FOR_VARIANTS else [TUNED, PAPER, KEYWORDS_FIRST, SPACE_FIRST]
