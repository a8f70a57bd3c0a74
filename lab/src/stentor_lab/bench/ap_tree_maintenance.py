"""Maintenance: a tree grows from a fifth of its subscriptions while their distribution drifts.

Paper: AP-Tree, section 5.1.3, index maintenance; AP-Tree-NR is `rebuilds=no`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from stentor.encoding.columns import Int64
from stentor.encoding.ragged import take
from stentor.index.catalog import structure_class
from stentor.index.structure import Structure
from stentor_lab.bench.ap_tree_matching import MOST_FOR_VARIANTS, SIZE, TUNED, drawn
from stentor_lab.result import BenchOptions, Row, Table, Unit
from stentor_lab.structures import Contender, Workload, build, matching_table
from stentor_lab.workloads.distributions import random_of
from stentor_lab.workloads.spatial_keyword import SpatialKeyword

GROWN: Final = ("scan", TUNED, "ap_tree rebuilds=no")
DRIFT: Final = 0.8
BULK_SHARE: Final = 0.2
REMOVED_SHARE: Final = 0.2
#: Subscriptions that come, or go, together.
BATCH: Final = 1000
#: Growing takes a while.
MOST_REPETITIONS: Final = 3

_REMOVED = 300  # a stream of random numbers


@dataclass(frozen=True, slots=True)
class Grown:
    """An index that has grown, and the seconds that an insertion took, by repetition."""

    name: str
    index: Structure
    seconds: tuple[float, ...]


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Insertions and matching after them, removals and matching after those."""
    size = min(options.size or SIZE, MOST_FOR_VARIANTS)
    workload = drawn("Maintenance", SpatialKeyword(options.seed, drift=DRIFT), size)
    facts = {
        **workload.facts,
        "drift": DRIFT,
        "built at once": f"{BULK_SHARE:.0%}",
        "then batches of": BATCH,
        "seed": options.seed,
        "subscriptions": size,
    }
    grown = [_grown(name, workload, options) for name in GROWN]
    inserting = [Row(one.name, one.seconds) for one in grown]
    at_once = build(TUNED, workload, options.progress, shown=f"{TUNED}, all built at once")
    contenders = [Contender(g.name, g.index, 1.0 / g.seconds[-1]) for g in grown] + [at_once]
    matching = _matching("Matching after insertions", workload, contenders, options)
    removed = random_of(options.seed, _REMOVED).permutation(size)[: int(size * REMOVED_SHARE)]
    removing = [Row(one.name, (_removing(one.index, removed),)) for one in contenders]
    return (
        _table("Insertions", facts, "insertion", inserting),
        matching,
        _table("Removals", facts | {"removed": len(removed)}, "removal", removing),
        _matching("Matching after removals", workload, contenders, options),
    )


def _grown(name: str, workload: Workload, options: BenchOptions) -> Grown:
    """*name*, built of the first subscriptions, into which all others were inserted."""
    size, bulk = workload.size, max(1, int(workload.size * BULK_SHARE))
    first, *batches = (
        take(workload.columns, np.arange(start, stop))
        for start, stop in [
            (0, bulk),
            *((start, min(start + BATCH, size)) for start in range(bulk, size, BATCH)),
        ]
    )
    seconds = []
    for repetition in range(min(options.repetitions, MOST_REPETITIONS)):
        options.progress(f"{workload.title}: {name} grows, {repetition + 1}")
        index = structure_class(name).build(first, workload.history)
        started = time.perf_counter()
        for batch in batches:
            index.insert(batch)
        seconds.append((time.perf_counter() - started) / (size - bulk))
    return Grown(name, index, tuple(seconds))


def _removing(index: Structure, rows: Int64) -> float:
    """Remove *rows*; the seconds for each."""
    started = time.perf_counter()
    for start in range(0, len(rows), BATCH):
        index.remove(rows[start : start + BATCH])
    return (time.perf_counter() - started) / len(rows)


def _matching(
    title: str, workload: Workload, contenders: list[Contender], options: BenchOptions
) -> Table:
    renamed = replace(workload, title=title, facts={**workload.facts, "drift": DRIFT})
    return matching_table(renamed, contenders, options, row_scan=False)


def _table(title: str, facts: Mapping[str, Any], item: str, rows: list[Row]) -> Table:
    return Table(title, facts, item, Unit.MICROSECONDS, tuple(rows))
