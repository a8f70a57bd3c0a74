"""The BE*-Tree: all matches and the k best of weighted expressions, construction and change."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from stentor.encoding.columns import ScoredPairs, event_count
from stentor.encoding.ragged import events_between
from stentor.index.be_star_tree import BEStarTree
from stentor_lab.measure import Case, measure, stopwatch
from stentor_lab.result import BenchOptions, Progress, Table, Unit
from stentor_lab.structures import Contender, Workload, build, matching_table
from stentor_lab.workloads import real_files
from stentor_lab.workloads.expressions import Expressions
from stentor_lab.workloads.letter_expressions import LetterExpressions

SIZE: Final = 1_000_000
EVENTS: Final = 1024
#: Workloads that vary one setting at a time are smaller, as in the paper's Table III.
VARIED_SIZE: Final = 100_000
#: The share that is removed and inserted again.
CHURN: Final = 10
SINGLE_EVENTS: Final = 256


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Matching and the k best at two match shares, change, single calls, Table III varied."""
    found: list[Table] = []
    for share in (0.001, 0.01):
        found += _at_share(share, options)
    return (*found, _varied(options), *_real(options))


def _workload(recipe: Expressions, size: int, title: str) -> Workload:
    facts = {
        "workload": "weighted expressions",
        "dimensions": recipe.dimensions,
        "predicates": recipe.predicates,
        "values": recipe.values,
        "match share": f"{recipe.match_share:.2%}",
        "the paper's A": paper_capacity(recipe.match_share),
    }
    columns, events = recipe.subscriptions(size).columns(), recipe.events(EVENTS).columns()
    return Workload(title, facts, columns, events)


def _at_share(share: float, options: BenchOptions) -> list[Table]:
    size = options.size or SIZE
    options.progress(f"drawing {size:,} expressions")
    title = f"Weighted expressions, {share:.1%} of which match"
    workload = _workload(Expressions(options.seed, match_share=share), size, title)
    paper = f"be_star_tree paper capacity={paper_capacity(share)}"
    bulk = build(
        "be_star_tree", workload, options.progress, shown="BE*-Tree, built at once (BE*-B)"
    )
    dynamic = _grown(workload, options.progress)
    contenders = [
        bulk,
        dynamic,
        build(paper, workload, options.progress, shown="BE*-Tree, the paper's settings"),
    ]
    found = [matching_table(workload, contenders, options), _best(workload, dynamic, options)]
    found.append(_single(workload, dynamic, options))
    del contenders[1:]
    found.append(_changed(workload, dynamic, options))
    found.append(_after(workload, bulk, dynamic, options))
    return found


def _grown(workload: Workload, progress: Progress) -> Contender:
    """A tree into which the subscriptions were inserted one by one."""
    progress(f"{workload.title}: inserting one by one")
    index = BEStarTree()
    start = time.perf_counter()
    index.insert(workload.columns)
    rate = workload.size / (time.perf_counter() - start)
    return Contender("BE*-Tree, inserted one by one", index, rate)


def _best(workload: Workload, contender: Contender, options: BenchOptions) -> Table:
    """The k best against all matches of the same tree."""
    index, events = contender.index, workload.events

    def top(k: int) -> ScoredPairs:
        return index.top(events, k)

    cases = [Case("all matches", stopwatch(lambda: index.match(events)), EVENTS)]
    for k in (1, 5):
        assert isinstance(index, BEStarTree)
        figures = index.top_effort(events, k)
        cases.append(Case(f"top {k}", stopwatch(partial(top, k)), EVENTS, figures=figures))
    title = f"{workload.title}: the k best"
    rows = measure(cases, options.repetitions, options.progress, title)
    return Table(title, workload.facts, "event", Unit.MICROSECONDS, rows)


def _single(workload: Workload, contender: Contender, options: BenchOptions) -> Table:
    """One call for each event against one call for all of them."""
    index = contender.index
    batch = events_between(workload.events, 0, min(SINGLE_EVENTS, event_count(workload.events)))
    ones = [events_between(batch, row, row + 1) for row in range(event_count(batch))]
    cases = [
        Case("in one batch", stopwatch(lambda: index.match(batch)), len(ones)),
        Case("one call each", stopwatch(lambda: [index.match(one) for one in ones]), len(ones)),
    ]
    title = f"{workload.title}: single calls"
    rows = measure(cases, options.repetitions, options.progress, title)
    return Table(title, workload.facts, "event", Unit.MICROSECONDS, rows)


def _changed(workload: Workload, contender: Contender, options: BenchOptions) -> Table:
    """A tenth goes and comes again, in batches; the rows that stand are renewed each time."""
    index, count = contender.index, max(1, workload.size // CHURN)
    random = np.random.default_rng(options.seed)
    gone: list[Any] = []

    def removing() -> float:
        gone[:] = [random.choice(index.current_rows(), count, replace=False)]
        return stopwatch(lambda: index.remove(gone[0]))()

    def inserting() -> float:
        columns = index.columns_of(gone[0])
        return stopwatch(lambda: index.insert(columns))()

    cases = [
        Case("delete in batch", removing, count, cold=True),
        Case("insert in batch", inserting, count, cold=True),
    ]
    title = f"{workload.title}: change of one in {CHURN}"
    rows = measure(cases, options.repetitions, options.progress, title)
    return Table(title, workload.facts, "subscription", Unit.MICROSECONDS, rows, compared=False)


def _after(workload: Workload, bulk: Contender, churned: Contender, options: BenchOptions) -> Table:
    """Matching by a tree of which a tenth was renewed again and again, and by a fresh one."""
    cases = [
        Case(name, stopwatch(partial(index.match, workload.events)), EVENTS)
        for name, index in (("fresh", bulk.index), ("after the changes", churned.index))
    ]
    title = f"{workload.title}: matching after {options.repetitions} times that change"
    rows = measure(cases, options.repetitions, options.progress, title)
    return Table(title, workload.facts, "event", Unit.MICROSECONDS, rows)


def _varied(options: BenchOptions) -> Table:
    """Matching where one setting of the workload is another, after the paper's Table III."""
    size = min(options.size or VARIED_SIZE, VARIED_SIZE)
    varied: dict[str, Expressions] = {
        "as it is": Expressions(options.seed),
        "Zipf": Expressions(options.seed, alpha=1.0),
        "50 dimensions": Expressions(options.seed, dimensions=50),
        "1400 dimensions": Expressions(options.seed, dimensions=1400),
        "cardinality 2.5K": Expressions(options.seed, cardinality=2500),
        "2 clusters": Expressions(options.seed, clusters=2),
        "no clusters": Expressions(options.seed, clusters=0),
        "cluster size 25": Expressions(options.seed, cluster_size=25),
        "cluster size 800": Expressions(options.seed, cluster_size=800),
        "66 predicates": Expressions(options.seed, predicates=66, values=81),
        "match share 0.01 %": Expressions(options.seed, match_share=0.0001),
        "match share 9 %": Expressions(options.seed, match_share=0.09),
    }
    cases = []
    for name, recipe in varied.items():
        workload = _workload(recipe, size, name)
        contender = build("be_star_tree", workload, options.progress)
        cases.append(_varied_case(name, contender, workload))
    rows = measure(cases, options.repetitions, options.progress, "Table III")
    facts = {"subscriptions": size, "seed": options.seed, "match share": "0.1 % unless said"}
    return Table(
        "One setting of the workload varied",
        facts,
        "event",
        Unit.MICROSECONDS,
        rows,
        compared=False,
    )


def _varied_case(name: str, contender: Contender, workload: Workload) -> Case:
    match: Callable[[], Any] = partial(contender.index.match, workload.events)
    figures = {
        "matches/event": len(match().rows) / EVENTS,
        **contender.index.counted_work(workload.events),
        "built/s": contender.built_per_second,
    }
    return Case(name, stopwatch(match), EVENTS, figures=figures)


def _real(options: BenchOptions) -> list[Table]:
    """Titles, authors and package tags, where STENTOR_DATA names a folder that has them."""
    if not real_files.is_there():
        options.progress("no real data: STENTOR_DATA names no folder")
        return []
    papers = real_files.table_of("acl_anthology.tsv", ["title", "authors"], "\t")
    packages = real_files.table_of("debian_packages.tsv", ["tags"], "\t")
    authors = {one for names in papers["authors"].to_pylist() for one in (names or "").split("; ")}
    texts = {
        "authors": (sorted(authors), 8),
        "titles": (papers["title"].to_pylist(), 35),
        "package tags": (packages["tags"].to_pylist(), 35),
    }
    return [_real_table(name, *given, options) for name, given in texts.items()]


def _real_table(name: str, texts: Sequence[str | None], most: int, options: BenchOptions) -> Table:
    options.progress(f"real data: reading {name}")
    drawn = LetterExpressions.of([text for text in texts if text][: options.size or SIZE])
    rows = np.random.default_rng(options.seed).integers(0, len(drawn), EVENTS)
    workload = Workload(
        f"Real data: {name}",
        {"files": "acl_anthology.tsv, debian_packages.tsv", "predicates": f"at most {most}"},
        drawn.subscriptions(most),
        drawn.events(rows),
    )
    tree = build("be_star_tree", workload, options.progress, shown="BE*-Tree")
    return matching_table(workload, [tree], options)


def paper_capacity(match_share: float) -> int:
    """The paper's A for workloads in which an event matches such a share (Table II a).

    >>> paper_capacity(0.001), paper_capacity(0.01), paper_capacity(0.2)
    (5, 20, 160)
    """
    return 5 if match_share < 0.01 else 20 if match_share < 0.1 else 160
