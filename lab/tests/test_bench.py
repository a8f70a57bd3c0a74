"""Benchmarks: tables of the promised form, measured fairly, refused where rows disagree."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from rich.console import Console

from stentor.encoding.columns import MatchPairs
from stentor.encoding.hilbert import HilbertCurve
from stentor.errors import DisagreementError, SettingsError, StentorError
from stentor.index.scan import Scan
from stentor_lab import bench
from stentor_lab.bench import (
    BenchOptions,
    BenchResult,
    Row,
    Table,
    Unit,
    ap_tree,
    be_star_tree,
    brokers,
    covering,
    degenerate,
    encoding,
    live,
    mics,
    mics_boxes,
    mics_ranges,
    mo_tree,
    packed,
    packed_changes,
    packed_rules,
    scan,
    service,
    spark,
    start,
)
from stentor_lab.measure import Case, measure, stopwatch
from stentor_lab.report import show


def silent(message: str) -> None:
    pass


TINY = BenchOptions(size=700, repetitions=2, progress=silent)


def constant(*values: int):
    return lambda: (np.array(values),)


# Measuring.


def test_rows_take_turns():
    order = []

    def sample(name: str):
        def take() -> float:
            order.append(name)
            return 1.0

        return take

    cases = [Case("a", sample("a")), Case("b", sample("b"))]
    measure(cases, 3, silent, "title")
    assert order == ["a", "b"] * 4  # the first pair warms up


def test_seconds_are_per_item_and_the_warm_up_does_not_count():
    times = iter([100.0, 6.0, 2.0, 4.0])
    (row,) = measure([Case("a", lambda: next(times), items=2)], 3, silent, "title")
    assert row.seconds == (3.0, 1.0, 2.0)
    assert row.median == 2.0


def test_a_cold_case_is_not_warmed_up_and_stops_after_its_most_repetitions():
    times = iter([5.0, 6.0])
    cases = [
        Case("cold", lambda: next(times), cold=True, most=2),
        Case("other", lambda: 1.0),
    ]
    cold, other = measure(cases, 3, silent, "title")
    assert cold.seconds == (5.0, 6.0)
    assert len(other.seconds) == 3


def test_a_stopwatch_does_the_work_and_gives_the_seconds():
    done = []
    assert stopwatch(lambda: done.append(1))() >= 0.0
    assert done == [1]


def test_rows_that_disagree_are_refused_before_anything_is_measured():
    def never() -> float:
        raise AssertionError("measured")

    cases = [
        Case("one", never, answer=constant(1, 2)),
        Case("no answer", lambda: 1.0),
        Case("other", never, answer=constant(1, 3)),
    ]
    with pytest.raises(DisagreementError, match="'other' answers otherwise than 'one'"):
        measure(cases, 1, silent, "title")


@pytest.mark.parametrize("other", [(1,), (1, 2, 3), (2, 1)])
def test_answers_of_other_length_or_order_disagree(other):
    cases = [
        Case("one", lambda: 1.0, answer=constant(1, 2)),
        Case("other", lambda: 1.0, answer=constant(*other)),
    ]
    with pytest.raises(DisagreementError):
        measure(cases, 1, silent, "title")


def test_nan_agrees_with_nan():
    cases = [Case(name, lambda: 1.0, answer=lambda: (np.array([np.nan]),)) for name in "ab"]
    assert len(measure(cases, 1, silent, "title")) == 2


def test_progress_tells_of_every_repetition():
    said = []
    measure([Case("a", lambda: 1.0)], 2, said.append, "title")
    assert said[-2:] == ["title: repetition 1 of 2", "title: repetition 2 of 2"]


# Results.


def example(unit: Unit = Unit.MICROSECONDS, *, compared: bool = True) -> Table:
    rows = (Row("slow", (4e-6, 2e-6, 3e-6)), Row("fast", (1e-6,), {"matches/event": 7.5}))
    return Table("A title", {"seed": 1, "size": 1000}, "event", unit, rows, compared)


def test_ratios_are_of_medians_against_the_first_row():
    table = example()
    assert [table.ratio(row) for row in table.rows] == [1.0, pytest.approx(3.0)]


def test_json_holds_the_workload_the_unit_the_spread_and_the_figures():
    result = BenchResult("scan", (example(),), {"cores": 2})
    read = json.loads(json.dumps(result.to_dict()))
    assert read["subject"] == "scan"
    (table,) = read["tables"]
    assert table["workload"] == {"seed": 1, "size": 1000}
    assert table["unit"] == "µs/event"
    slow, fast = table["rows"]
    assert (slow["median"], slow["low"], slow["high"]) == pytest.approx((3.0, 2.0, 4.0))
    assert slow["repetitions"] == 3
    assert fast["ratio"] == pytest.approx(3.0)
    assert fast["matches/event"] == 7.5


def test_a_rate_is_the_inverse_of_a_time():
    table = example(Unit.RATE)
    assert table.per == "event/s"
    assert table.median(table.rows[1]) == pytest.approx(1e6)
    assert table.spread(table.rows[0]) == pytest.approx((250_000, 500_000))


def test_rows_that_are_not_compared_have_no_ratio():
    (slow, _) = example(compared=False).to_dict()["rows"]
    assert "ratio" not in slow
    assert "ratio" not in shown(example(compared=False))


def shown(table: Table) -> str:
    stream = io.StringIO()
    result = BenchResult("scan", (table,), {"cores": 2})
    show(result, Console(file=stream, width=120))
    return stream.getvalue()


def test_what_is_shown_has_workload_median_spread_ratio_and_machine():
    text = shown(example())
    for part in ("A title", "seed 1 · size 1,000", "µs/event", "2–4", "3×", "7.5", "cores 2"):
        assert part in text


# Subjects.


def test_an_unknown_subject_is_refused_with_the_nearest_name():
    with pytest.raises(SettingsError, match="did you mean 'scan'"):
        bench.run("scam", TINY)


@pytest.mark.parametrize("options", [BenchOptions(size=0), BenchOptions(repetitions=0)])
def test_nothing_to_measure_is_refused(options):
    with pytest.raises(SettingsError):
        bench.run("scan", options)


def test_every_subject_can_be_imported():
    assert {name: subject.tables for name, subject in bench.SUBJECTS.items()} == {
        "scan": scan.tables,
        "encoding": encoding.tables,
        "start": start.tables,
        "ap-tree": ap_tree.tables,
        "be-star-tree": be_star_tree.tables,
        "covering": covering.tables,
        "mics": mics.tables,
        "mo-tree": mo_tree.tables,
        "brokers": brokers.tables,
        "degenerate": degenerate.tables,
        "live": live.tables,
        "packed": packed.tables,
        "packed-changes": packed_changes.tables,
        "service": service.tables,
        "spark": spark.tables,
    }


def test_packed_is_measured_while_it_changes():
    lists, blocks, grown, threads, longest, opening = bench.run("packed-changes", TINY).tables
    for changes in (lists, blocks):
        names = [row.name for row in changes.rows]
        assert names == ["short move", "far move", "insertion", "removal"]
        assert all(len(row.seconds) == 2 for row in changes.rows)
    assert [row.name for row in grown.rows][:2] == ["built at once", "grown"]
    assert grown.rows[0].figures["segments"] == grown.rows[1].figures["segments"] == 1
    assert [row.name for row in threads.rows] == ["1 threads", "2 threads"]
    assert len(longest.rows) == 3
    assert all(len(row.seconds) == 2 for row in longest.rows)
    assert len(opening.rows) == 2


def test_rules_are_matched_by_the_scan_the_tree_and_packed():
    tables = packed_rules.tables(TINY)
    assert len(tables) == 4
    for table in tables:
        assert [row.name for row in table.rows] == ["block scan", "be_star_tree", "packed"]


def test_the_scan_subject_compares_both_workloads():
    result = bench.run("scan", TINY)
    assert len(result.tables) == 2
    for table in result.tables:
        assert table.workload["subscriptions"] == 700
        names = [row.name for row in table.rows]
        assert names == ["row loop (plain)", "block kernel, 1 thread", "block kernel, 2 threads"]
        one, two = table.rows[1:]
        assert one.figures["matches/event"] == two.figures["matches/event"]
        assert one.figures["bytes/subscription"] > 0
        assert one.figures["built/s"] > 0
        assert all(len(row.seconds) == 2 for row in table.rows)


def test_the_mics_subject_shows_the_tables_and_figures_of_its_paper():
    boxes, told, inserted, *asked, stored, described, fitted, evaluated, index = bench.run(
        "mics", TINY
    ).tables
    assert len(boxes.rows) == 12
    assert all(row.figures["times"] > 0 for row in boxes.rows)
    for row in told.rows:
        scenarios = [row.figures[name] for name in ("nothing", "covering only", "subsumption")]
        assert scenarios == sorted(scenarios, reverse=True)
        assert row.figures["ranges forwarded"] <= row.figures["ranges given"]
    assert len(inserted.rows) == 18
    assert [len(table.rows) for table in asked] == [15, 15]
    assert all(row.figures["stored ranges"] > 0 for row in (*inserted.rows, *stored.rows))
    shares = [row.figures["in vain, %"] for row in (*described.rows, *fitted.rows)]
    assert all(0 <= share <= 100 for share in shares)
    assert sum(shares[:8]) > sum(shares[8:])
    assert len(evaluated.rows) == 8
    assert [row.name for row in index.rows] == ["row scan", "block scan", "mics", "mics paper"]


def test_enumerated_cells_have_the_ranges_of_their_boxes():
    low, high = mics_boxes.boxes(mics_boxes.ZIPF, 40, 3, 5, seed=1)
    curve = HilbertCurve(3, mics_boxes.BITS)
    assert mics_ranges.enumerated(curve, low, high).tolist() == curve.ranges(low, high).low.tolist()


def test_the_mo_tree_subject_prints_the_scans_first_and_all_rows_agree(monkeypatch):
    monkeypatch.delenv("STENTOR_DATA", raising=False)
    *matching, back, maintenance = bench.run("mo-tree", TINY).tables
    assert len(matching) == 3
    for table in matching:
        names = [row.name for row in table.rows]
        assert names == ["row scan", "block scan", "mo_tree", "mo_tree paper"]
        assert table.rows[2].figures["buckets/event"] > 0
    names = [row.name for row in back.rows]
    assert names == ["row scan", "scan of signatures", "mo_tree", "mo_tree paper"]
    assert maintenance.workload["bytes/subscription"] > 0
    assert len(maintenance.rows) == 6


def test_a_scan_that_loses_a_match_is_refused(monkeypatch):
    match = Scan.match

    def losing(self, events, *, threads=1):
        pairs = match(self, events, threads=threads)
        return MatchPairs(np.zeros_like(pairs.starts), pairs.rows[:0])

    monkeypatch.setattr(Scan, "match", losing)
    with pytest.raises(DisagreementError):
        bench.run("scan", BenchOptions(size=60_000, repetitions=1, progress=silent))


def test_the_be_star_tree_subject_sets_the_papers_values_beside_the_tuned_ones(monkeypatch):
    monkeypatch.setattr(be_star_tree, "EVENTS", 8)
    result = bench.run("be-star-tree", TINY)
    assert len(result.tables) == 2 * 5 + 1
    matching, best = result.tables[:2]
    assert [row.name for row in matching.rows] == [
        "row scan",
        "block scan",
        "BE*-Tree, built at once (BE*-B)",
        "BE*-Tree, inserted one by one",
        "BE*-Tree, the paper's settings",
    ]
    assert matching.workload["the paper's A"] == 5
    assert [row.name for row in best.rows] == ["all matches", "top 1", "top 5"]


def test_the_degenerate_subject_sets_each_structure_beside_the_scan(monkeypatch):
    monkeypatch.setattr(degenerate, "EVENTS", 8)
    monkeypatch.setattr(degenerate, "state_tables", lambda options: (example(),))
    *inputs, state = bench.run("degenerate", TINY).tables
    assert state == example(), "test_degenerate_states.py has them"
    assert [table.title for table in inputs] == [one.name for one in degenerate.INPUTS]
    for one, table in zip(degenerate.INPUTS, inputs, strict=True):
        shown = [row.name for row in table.rows]
        assert shown[0] == "block scan"
        named = [degenerate.SHOWN.get(name, name) for name in one.structures]
        assert {f"{name}, inserted" for name in named} < set(shown)
        for row in table.rows:
            if not row.name.endswith("all matches"):
                assert {"matches/event", "bytes/subscription", "built/s"} <= row.figures.keys()
        assert ("be_star_tree, all matches" in shown) == table.title.startswith("Best of")


def test_the_ap_tree_subject_measures_all_that_the_paper_does(monkeypatch):
    monkeypatch.delenv("STENTOR_DATA", raising=False)
    result = bench.run("ap-tree", BenchOptions(size=700, repetitions=1, progress=silent))
    found = {table.title: table for table in result.tables}
    assert list(found) == [
        "Spatial-keyword subscriptions",
        "Heuristic and optimal cuts",
        "General Boolean expressions",
        "Adaptivity",
        "Insertions",
        "Matching after insertions",
        "Removals",
        "Matching after removals",
        "Moves on a city's roads",
        "Messages to travellers on a city's roads",
        "Safe regions",
        "Safe regions that a message shrinks",
    ]
    for table in found.values():
        assert table.workload["subscriptions"] == 700
        json.dumps(table.to_dict(), allow_nan=False)
    matching = found["Spatial-keyword subscriptions"].rows
    assert [row.name for row in matching] == [
        "row scan",
        "block scan",
        "ap_tree",
        "ap_tree paper",
        "ap_tree priority=keywords",
        "ap_tree priority=space",
    ]
    assert len({row.figures["matches/event"] for row in matching}) == 1
    assert all(row.figures["nodes/event"] > 0 for row in matching[2:])
    sizes = found["Adaptivity"].rows
    assert [row.name for row in sizes] == ["1e-06 %", "0.0001 %", "0.01 %", "1 %", "10 %"]
    assert sizes[0].figures["visits"] < sizes[-1].figures["visits"]


def test_the_encoding_subject_compares_texts_tables_and_events():
    result = bench.run("encoding", BenchOptions(size=40, repetitions=1, progress=silent))
    few, new, structured, events = result.tables
    assert [row.name for row in few.rows[:2]] == [row.name for row in new.rows]
    assert [row.name for row in structured.rows] == ["texts", "Arrow table of constants"]
    assert [row.name for row in events.rows] == ["dicts, one by one", "Arrow table"]
    assert all(table.unit is Unit.RATE for table in result.tables)


def test_a_process_that_fails_is_told_with_what_it_said(tmp_path):
    with pytest.raises(StentorError, match="ZeroDivisionError"):
        start._until_done("1 / 0", tmp_path / "kernels")


def test_a_process_is_timed_until_its_program_is_done(tmp_path):
    assert start._until_done(start.IMPORT, tmp_path / "kernels") > 0.0
