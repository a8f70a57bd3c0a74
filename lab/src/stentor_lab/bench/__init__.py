"""What `stentor-lab bench` runs: ratio tables by subject, each with its workload and its spread."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from typing import Final, NamedTuple

from stentor.errors import SettingsError
from stentor_lab.result import (
    BenchOptions,
    BenchResult,
    Chart,
    Row,
    Table,
    Unit,
    this_machine,
)

__all__ = ["SUBJECTS", "BenchOptions", "BenchResult", "Chart", "Row", "Table", "Unit", "run"]


class Subject(NamedTuple):
    """A subject: what it measures, and the module whose `tables` does it."""

    summary: str
    module: str

    @property
    def tables(self) -> Callable[[BenchOptions], tuple[Table, ...]]:
        """The function that measures; its module is imported now."""
        function: Callable[[BenchOptions], tuple[Table, ...]]
        function = import_module(self.module).tables
        return function


#: Subjects by name.
SUBJECTS: Final = {
    "scan": Subject(
        "matching by the block kernel against the plain row loop, on two workloads",
        "stentor_lab.bench.scan",
    ),
    "be-star-tree": Subject(
        "weighted expressions: all matches, the k best, change; the workload varied",
        "stentor_lab.bench.be_star_tree",
    ),
    "encoding": Subject(
        "expression texts, parameter tables and events to columns", "stentor_lab.bench.encoding"
    ),
    "start": Subject(
        "import, and the first publish with warm and with cold kernels", "stentor_lab.bench.start"
    ),
    "ap-tree": Subject(
        "the AP-Tree: matching, adaptivity, maintenance, moving subscriptions; real data if any",
        "stentor_lab.bench.ap_tree",
    ),
    "covering": Subject(
        "relation graphs over k-d tree, Z-curve and scans; a million subscriptions reduced",
        "stentor_lab.bench.covering",
    ),
    "mics": Subject(
        "MICS: boxes to ranges, the merged table, projection; the index beside both scans",
        "stentor_lab.bench.mics",
    ),
    "mo-tree": Subject(
        "the MO-Tree: event and subscription matching, maintenance, beside both scans",
        "stentor_lab.bench.mo_tree",
    ),
    "packed": Subject(
        "packed beside the scan and the papers' structures; live events in blocks",
        "stentor_lab.bench.packed",
    ),
    "packed-changes": Subject(
        "packed while it changes: insertions, removals, moves, growing, opening, the longest call",
        "stentor_lab.bench.packed_changes",
    ),
    "degenerate": Subject(
        "everyday inputs and states in which a structure may degenerate, each beside the scan",
        "stentor_lab.bench.degenerate",
    ),
    "live": Subject(
        "a fleet that moves, tenants, durable engines, and the loop of asyncio",
        "stentor_lab.bench.live",
    ),
    "brokers": Subject(
        "an overlay of brokers: what each policy sends between them, uniform and by Zipf's law",
        "stentor_lab.bench.brokers",
    ),
    "service": Subject(
        "a service on the loopback: frames, single requests, latencies; the bare broker beside it",
        "stentor_lab.bench.service",
    ),
    "spark": Subject(
        "the Spark pipeline: events a second, micro-batches, workers; Spark SQL alone beside it",
        "stentor_lab.bench.spark",
    ),
}


def run(subject: str, options: BenchOptions | None = None) -> BenchResult:
    """Measure *subject*, one of SUBJECTS.

    A DisagreementError where two rows that ought to answer alike do not: then there is nothing to
    compare.
    """
    options = options or BenchOptions()
    if subject not in SUBJECTS:
        near = get_close_matches(subject, SUBJECTS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise SettingsError(f"no benchmark {subject!r}; {hint}there are {', '.join(SUBJECTS)}")
    if options.repetitions < 1 or (options.size is not None and options.size < 1):
        raise SettingsError("a benchmark needs a size and repetitions of at least 1")
    return BenchResult(subject, SUBJECTS[subject].tables(options), this_machine())
