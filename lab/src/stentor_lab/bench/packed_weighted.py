"""Weighted expressions: all matches and the k best, uniform and Zipf; what nodes are worth."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from stentor.encoding.columns import EventColumns, ScoredPairs, read_only_columns
from stentor.index.structure import Structure
from stentor_lab.measure import Case, measure, stopwatch
from stentor_lab.result import BenchOptions, Table, Unit
from stentor_lab.structures import Contender, Workload, build, matching_table
from stentor_lab.workloads.expressions import Expressions

EVENTS: Final = 2000
#: The papers' structure for them, packed, and packed without nodes: the ablation.
NAMES: Final = {
    "be_star_tree": "be_star_tree",
    "packed": "packed",
    "packed home=lists": "packed, lists alone",
}
BEST: Final = (1, 100)


def tables(size: int, options: BenchOptions) -> tuple[Table, ...]:
    """All matches, then the k best with weighted events, as they are and with near misses."""
    found: list[Table] = []
    for share in (0.001, 0.01):
        for alpha in (0.0, 1.0):
            found += _tables(size, share, alpha, options)
    return tuple(found)


def _tables(size: int, share: float, alpha: float, options: BenchOptions) -> list[Table]:
    title = f"Weighted expressions, {share:.1%} match, {'Zipf' if alpha else 'uniform'}"
    options.progress(f"{title}: drawing {size:,} subscriptions")
    recipe = Expressions(options.seed, match_share=share, alpha=alpha, weighted_events=True)
    facts = {"workload": title, "match_share": share, "alpha": alpha}
    columns, events = recipe.subscriptions(size).columns(), recipe.events(EVENTS).columns()
    workload = Workload(title, facts, columns, events)
    contenders = [
        build(name, workload, options.progress, shown=shown) for name, shown in NAMES.items()
    ]
    near = Workload(f"{title}, near misses", facts, columns, near_misses(events, options.seed))
    return [
        matching_table(workload, contenders, options, row_scan=False),
        _best(workload, contenders, options),
        _best(near, contenders, options),
    ]


def near_misses(events: EventColumns, seed: int) -> EventColumns:
    """*events* with a fifth of their values moved by up to three."""
    random = np.random.default_rng(seed)
    moved = random.integers(-3, 4, len(events.low)) * (random.random(len(events.low)) < 0.2)
    return read_only_columns(events._replace(low=events.low + moved, high=events.high + moved))


def _best(workload: Workload, contenders: list[Contender], options: BenchOptions) -> Table:
    """The k best of each event."""

    def top(index: Structure, k: int) -> ScoredPairs:
        return index.top(workload.events, k)

    cases = [
        Case(f"{contender.name}, top {k}", stopwatch(partial(top, contender.index, k)), EVENTS)
        for contender in contenders
        for k in BEST
    ]
    title = f"{workload.title}: the k best, weighted events"
    rows = measure(cases, options.repetitions, options.progress, title)
    return Table(title, workload.facts, "event", Unit.MICROSECONDS, rows)
