"""`stentor bench`: all structures on a user's own files."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from stentor.cli import bench
from stentor.cli.app import app
from stentor.engine import Engine
from stentor.errors import DisagreementError, RecordError
from stentor.index.catalog import names
from stentor.index.mo_tree import MoTree

STRUCTURES = [name for name in names() if not name.endswith(" layered")]
FILES = ("--subscriptions", "s.jsonl", "--events", "e.jsonl")
SUBSCRIPTIONS = [
    {"id": f"s{n}", "expression": f"price < {n} AND has_any(text, 'w{n % 3}')"} for n in range(80)
]
EVENTS = [{"id": f"e{n}", "price": n % 90, "text": f"w{n % 4} w{n % 5}"} for n in range(120)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench, "SMALLEST", 5)
    monkeypatch.setattr(bench, "MOMENT", 0.0)
    write("s.jsonl", SUBSCRIPTIONS)
    write("e.jsonl", EVENTS)
    return tmp_path


def write(name, records):
    Path(name).write_text("".join(json.dumps(record) + "\n" for record in records))


def run(*arguments):
    return CliRunner().invoke(app, ["bench", *FILES, *arguments], catch_exceptions=False)


def test_every_structure_is_measured_on_growing_parts_with_the_scan_first():
    found = json.loads(run("--json", "--repetitions", "2").stdout)
    assert [table["subscriptions"] for table in found["tables"]] == [5, 20, 80]
    for table in found["tables"]:
        assert [row["index"] for row in table["rows"]] == STRUCTURES
        for row in table["rows"]:
            assert 0.0 < row["low"] <= row["µs/event"] <= row["high"]
            assert min(row["bytes/subscription"], row["built/s"]) > 0.0
    assert (found["subscriptions"], found["events"]) == (80, 120)
    assert found["fastest"] in STRUCTURES
    assert found["auto"] == {"name": "scan", "reason": "80 alternatives are fewer than 20,000"}


def test_matches_are_those_of_events_that_no_structure_has_seen():
    engine = Engine(clock=None)
    for one in SUBSCRIPTIONS:
        engine.subscribe(**one)
    unseen = [len(engine.publish(event)) for event in EVENTS[60:]]
    found = json.loads(run("--json", "--repetitions", "1").stdout)
    assert {row["matches/event"] for row in found["tables"][-1]["rows"]} == {np.mean(unseen)}


def test_people_are_told_figures_curves_and_what_auto_would_choose():
    shown = run("--repetitions", "1").stdout
    for text in ("80 subscriptions", "matches/event", "bytes/subscription", "built/s", *STRUCTURES):
        assert text in shown
    assert "by the number of subscriptions" in shown
    assert "fastest here: " in shown
    assert "auto would choose: scan (80 alternatives are fewer than 20,000)" in shown


def test_few_subscriptions_are_one_table():
    write("s.jsonl", SUBSCRIPTIONS[:10])
    ran = run("--repetitions", "1")
    assert ran.exit_code == 0
    assert "by the number" not in ran.stdout


def test_the_picture_has_a_curve_for_each_structure(folder):
    run("--repetitions", "1", "--picture", "curves.svg")
    drawn = (folder / "curves.svg").read_text("utf-8")
    for name in STRUCTURES:
        assert f"<!-- {name} -->" in drawn


def test_a_structure_that_answers_otherwise_is_refused(monkeypatch):
    match = MoTree.match

    def forgetful(index, events, **more):
        found = match(index, events, **more)
        return found._replace(rows=found.rows[::-1])

    monkeypatch.setattr(MoTree, "match", forgetful)
    with pytest.raises(DisagreementError, match="mo_tree answers otherwise than scan"):
        run("--repetitions", "1")


def test_bad_records_are_told_and_left_out():
    write("s.jsonl", [{"id": "bad", "expression": "price <"}, *SUBSCRIPTIONS, {"id": "odd"}])
    write("e.jsonl", [{"op": "move", "id": "s1", "at": [1, 2]}, *EVENTS, {"price": "cheap"}])
    ran = run("--json", "--repetitions", "1")
    assert json.loads(ran.stdout)["events"] == 120
    assert "s.jsonl:1: expected a value" in ran.stderr
    assert "s.jsonl: 2 records are left out" in ran.stderr
    assert "e.jsonl:1: this is no event" in ran.stderr
    assert "e.jsonl: 2 records are left out" in ran.stderr


@pytest.mark.parametrize("empty", ["s.jsonl", "e.jsonl"])
def test_a_file_without_anything_is_refused(empty):
    write(empty, [])
    with pytest.raises(RecordError, match=f"{empty} has nothing to compare with"):
        run()
