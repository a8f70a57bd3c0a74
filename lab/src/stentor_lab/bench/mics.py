"""MICS: boxes to ranges, the table of ranges, projection, and the index beside the scans.

Paper: sections 6.1 and 7.
"""

from __future__ import annotations

from typing import Final

from stentor_lab.bench import mics_projection, mics_ranges, mics_tables
from stentor_lab.bench.mics_boxes import SIZE
from stentor_lab.result import BenchOptions, Table
from stentor_lab.structures import Workload, build, matching_table
from stentor_lab.workloads.intervals import Intervals

#: Events that the index is asked about.
EVENTS: Final = 1024


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Table 1; Figures 7 to 12; Tables 2 and 3; the index beside the scans."""
    size = options.size or SIZE
    return (
        mics_ranges.table(options),
        *mics_tables.tables(options, size),
        *mics_projection.tables(options, size),
        _index(size, options),
    )


def _index(size: int, options: BenchOptions) -> Table:
    """The matching index beside the scans, on intervals and squares."""
    recipe = Intervals(options.seed, 4)
    columns, events = recipe.subscriptions(size).columns(), recipe.events(EVENTS).columns()
    facts = {"workload": "intervals", "intervals": 4}
    workload = Workload("MICS as an index: four intervals and a square", facts, columns, events)
    contenders = [build(name, workload, options.progress) for name in ("mics", "mics paper")]
    return matching_table(workload, contenders, options)
