"""Packed beside the block scan and the best paper's structure, on what each of its homes is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from stentor_lab.bench import packed_blocks, packed_rules, packed_weighted
from stentor_lab.result import BenchOptions, Table
from stentor_lab.structures import Workload, build, matching_table
from stentor_lab.workloads.spatial_keyword import SpatialKeyword

SIZE: Final = 1_000_000
EVENTS: Final = 2000
PACKED: Final = "packed"


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Lists: spatial-keyword; rules; nodes: weighted expressions; then blocks, both directions."""
    keywords = _lists("Spatial-keyword subscriptions", SpatialKeyword, {}, "ap_tree", options)
    weighted = packed_weighted.tables(options.size or SIZE, options)
    return (keywords, *packed_rules.tables(options), *weighted, *packed_blocks.tables(options))


def _lists(
    title: str,
    recipe_of: Callable[..., Any],
    settings: dict[str, Any],
    paper: str,
    options: BenchOptions,
) -> Table:
    """The block scan, the structure of the workload's *paper*, and packed."""
    size = options.size or SIZE
    options.progress(f"{title}: drawing {size:,} subscriptions")
    recipe = recipe_of(options.seed, **settings)
    columns, events = recipe.subscriptions(size).columns(), recipe.events(EVENTS).columns()
    workload = Workload(title, {"workload": title, **settings}, columns, events)
    contenders = [build(name, workload, options.progress) for name in (paper, PACKED)]
    return matching_table(workload, contenders, options, row_scan=False)
