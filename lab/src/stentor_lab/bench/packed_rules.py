"""Rules without locations and weights: by equality, by ranges, dense and sparse."""

from __future__ import annotations

from typing import Final

from stentor_lab.result import BenchOptions, Table
from stentor_lab.structures import Workload, build, matching_table
from stentor_lab.workloads.rules import Rules

SIZE: Final = 100_000
SPARSE_SIZE: Final = 1_000_000
EVENTS: Final = 2000
NAMES: Final = ("be_star_tree", "packed")


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """The block scan, the BE*-Tree and packed on each recipe."""
    seed = options.seed
    recipes = {
        "Rules of four predicates, by equality": (Rules(seed), SIZE),
        "Rules of four predicates, by ranges of 12 %": (Rules(seed, domain=100, width=12), SIZE),
        "Dense rules of eight predicates": (Rules(seed, 8, domain=100, width=40), SIZE),
        "Sparse rules: four of 400 attributes, 40 in an event": (
            Rules(seed, 4, 400, 40, 100, 40),
            SPARSE_SIZE,
        ),
    }
    return tuple(
        _table(title, recipe, options.size or size, options)
        for title, (recipe, size) in recipes.items()
    )


def _table(title: str, recipe: Rules, size: int, options: BenchOptions) -> Table:
    options.progress(f"{title}: drawing {size:,} subscriptions")
    facts = {
        "workload": title,
        "predicates": recipe.predicates,
        "attributes": recipe.attributes,
        "values of an event": recipe.values,
        "a test leaves": f"{recipe.width} of {recipe.domain}",
    }
    columns, events = recipe.subscriptions(size).columns(), recipe.events(EVENTS).columns()
    workload = Workload(title, facts, columns, events)
    contenders = [build(name, workload, options.progress) for name in NAMES]
    return matching_table(workload, contenders, options, row_scan=False)
