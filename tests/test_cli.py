"""The command line: what goes in, what comes out, which exit code."""

import gzip
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from stentor.cli import app as cli
from stentor.cli.exits import NO, UNUSABLE, WRONG_USAGE

SUBSCRIPTIONS = """\
{"id": "ana", "expression": "has_all(text, 'ipad') AND price < 300"}
{"id": "ben", "expression": "weight(price < 1000, 3)"}
{"id": "broken", "expression": "price <"}
{"id": "never", "expression": "price < 1 AND price > 2"}
{"id": "nowhere", "expression": "ST_DWithin(loc, here(), 5)"}
"""
EVENTS = """\
{"id": "e1", "text": "iPad discount", "price": 299}
{"id": "e2", "text": "iPad", "price": 350}
not JSON
{"id": "e3", "text": 7}
{"id": "e4"}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "subscriptions.jsonl").write_text(SUBSCRIPTIONS)
    (tmp_path / "events.jsonl").write_text(EVENTS)
    return tmp_path


def run(*arguments: str, code: int = 0):
    result = CliRunner().invoke(cli.app, arguments)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


FILES = ("--subscriptions", "subscriptions.jsonl", "--events", "events.jsonl")


def test_match_writes_a_line_for_each_delivery_and_keeps_bad_lines(folder):
    result = run("match", *FILES, "--json")
    assert lines(result.stdout) == [
        {"event": "e1", "subscription": "ana"},
        {"event": "e1", "subscription": "ben"},
        {"event": "e2", "subscription": "ben"},
    ]
    summary = json.loads(result.stderr.splitlines()[-1])
    assert {name: summary[name] for name in ("subscriptions", "events", "matches", "rejected")} == {
        "subscriptions": 3, "events": 3, "matches": 3, "rejected": 4,
    }  # fmt: skip
    rejected = lines((folder / "rejected.jsonl").read_text())
    assert [(one["source"], one.get("line")) for one in rejected] == [
        ("subscriptions.jsonl", 3),
        ("subscriptions.jsonl", 5),
        ("events.jsonl", 3),
        ("events.jsonl", 4),
    ]
    assert "expected a value" in rejected[0]["reason"]
    assert rejected[0]["raw"] == '{"id": "broken", "expression": "price <"}'
    assert "position" in rejected[1]["reason"]


def test_match_without_bad_lines_leaves_no_rejected_file(folder):
    (folder / "subscriptions.jsonl").write_text(SUBSCRIPTIONS.splitlines()[0])
    (folder / "events.jsonl").write_text(EVENTS.splitlines()[0])
    run("match", *FILES)
    assert not (folder / "rejected.jsonl").exists()


def test_match_reads_and_writes_parquet_with_the_k_best_and_their_scores(folder):
    table = pa.table({"id": ["e1", "e2", None], "text": ["an iPad", "x", "y"], "price": [1, 2, 3]})
    pq.write_table(table, "events.parquet")
    run(
        "match",
        "-s",
        "subscriptions.jsonl",
        "-e",
        "events.parquet",
        "-o",
        "out.parquet",
        "--top",
        "1",
    )
    assert pq.read_table("out.parquet").to_pylist() == [
        {"event": "e1", "subscription": "ben", "score": 3.0},
        {"event": "e2", "subscription": "ben", "score": 3.0},
    ]
    rejected = lines((folder / "rejected.jsonl").read_text())
    assert rejected[-1]["row"] == 2


def test_a_strict_match_stops_at_the_first_bad_record(folder):
    result = run("match", *FILES, "--strict", code=NO)
    assert result.stdout == ""
    assert "subscriptions.jsonl:3: expected a value" in result.stderr


def test_a_run_that_fails_leaves_older_results_alone(folder):
    (folder / "old.jsonl").write_text("old")
    run("match", *FILES, "--strict", "-o", "old.jsonl", code=NO)
    assert (folder / "old.jsonl").read_text() == "old"
    assert not list(folder.glob(".*partial"))


def test_no_match_is_an_empty_table_and_no_reject_an_empty_file(folder):
    (folder / "subscriptions.jsonl").write_text(SUBSCRIPTIONS.splitlines()[0])
    (folder / "events.jsonl").write_text("")
    (folder / "rejected.jsonl").write_text("of an earlier run")
    run("match", *FILES, "-o", "out.parquet")
    assert pq.read_table("out.parquet").num_rows == 0
    assert (folder / "rejected.jsonl").read_text() == ""


def test_events_come_through_a_pipe(folder):
    read, write = os.pipe()
    with os.fdopen(write, "w") as pipe:
        pipe.write(EVENTS)
    result = run("match", "-s", "subscriptions.jsonl", "-e", f"/dev/fd/{read}")
    os.close(read)
    assert len(lines(result.stdout)) == 3


def test_events_come_from_standard_input(folder):
    arguments = ["match", "-s", "subscriptions.jsonl", "-e", "-"]
    result = CliRunner().invoke(cli.app, arguments, input=EVENTS)
    assert len(lines(result.stdout)) == 3


def test_matches_to_standard_output_stand_alone_there(folder):
    assert len(lines(run("match", *FILES, "-o", "-", "--json").stdout)) == 3


def test_an_event_among_subscriptions_is_refused(folder):
    with (folder / "subscriptions.jsonl").open("a") as file:
        file.write('{"op": "publish", "id": "e9", "price": 1}\n')
    run("match", *FILES)
    assert "this is an event" in (folder / "rejected.jsonl").read_text()


def test_events_that_expire_and_repeat_are_told_apart(folder):
    (folder / "events.jsonl").write_text(
        '{"id": "a", "price": 1, "time": 10, "until": 20}\n'
        '{"id": "a", "price": 2, "time": 15, "until": 30}\n'
        '{"id": "a", "price": 3, "time": 20, "until": 30}\n'
        '{"id": "b", "price": 4, "time": 40, "until": 30}\n'
    )
    result = run("match", *FILES)
    assert [one["event"] for one in lines(result.stdout)] == ["a", "a"]
    reasons = [one["reason"] for one in lines((folder / "rejected.jsonl").read_text())]
    assert ["is live until" in reasons[-2], "was over" in reasons[-1]] == [True, True]


def test_explain_says_why_not_and_exits_with_1():
    event = '{"text": "iPad", "price": 350}'
    result = run("explain", "price < 300 AND has_all(text, 'ipad')", event, code=NO)
    assert "✗ price < 300" in result.stdout
    assert "✓ has_all(text, 'ipad')" in result.stdout
    yes = run("explain", "price < 400", event, "--json")
    assert json.loads(yes.stdout)["matches"] is True


def test_explain_finds_both_in_files(folder):
    result = run("explain", "ana", "e2", *FILES, code=NO)
    assert "ana does not want e2" in result.stdout


def test_explain_knows_where_the_subscriber_stands():
    near = "ST_DWithin(loc, here(), 1000)"
    run("explain", near, '{"loc": [1, 1]}', "--at", "1,1")
    run("explain", near, '{"loc": [1, 1]}', "--at", "2,1", code=NO)


def test_check_lists_every_bad_line_and_what_can_never_match(folder):
    result = run("check", *FILES, code=NO)
    assert "subscriptions.jsonl:3: bad: expected a value" in result.stdout
    assert "events.jsonl:3: bad:" in result.stdout
    assert "can never match: it asks for a contradiction" in result.stdout
    found = run("check", *FILES, "--json", code=NO)
    assert [one["finding"] for one in lines(found.stdout)].count("bad") == 4
    assert json.loads(found.stderr.splitlines()[-1]) == {"good": 6, "bad": 4, "can never match": 1}


def test_check_of_good_files_exits_with_0(folder):
    (folder / "events.jsonl").write_text('{"id": "e1", "price": 1}')
    run("check", "--events", "events.jsonl")


def test_a_schema_file_is_enforced(folder):
    (folder / "schema.json").write_text('{"price": "number", "text": "string"}')
    (folder / "subscriptions.jsonl").write_text('{"id": "a", "expression": "prise < 1"}')
    result = run("check", "-s", "subscriptions.jsonl", "--schema", "schema.json", code=NO)
    assert "did you mean 'price'?" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["match", "-s", "missing.jsonl", "-e", "events.jsonl"], "missing.jsonl"),
        (["explain", "price <", "{}"], "expected a value"),
        (["explain", "price < 1", "{"], ""),
        (["match", "-s", "packed.jsonl", "-e", "events.jsonl"], "compressed with gzip"),
    ],
)
def test_what_cannot_be_used_is_one_clear_message(folder, monkeypatch, capsys, arguments, message):
    (folder / "packed.jsonl").write_bytes(gzip.compress(b"{}"))
    assert_stops(monkeypatch, capsys, arguments, message, UNUSABLE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["match", *FILES, "--index", "scam"], "did you mean 'scan'"),
        (["match", *FILES, "--out", "matches.csv"], ".parquet .jsonl"),
        (["match", *FILES, "--out", "events.jsonl"], "events.jsonl is read from"),
        (["match", *FILES, "--rejected", "./events.jsonl"], "events.jsonl is read from"),
        (["explain", "a = 1", "{}", "--at", "1 2"], "longitude,latitude"),
        (["check"], "nothing to check"),
        (["bench", "scam"], "did you mean 'scan'"),
        (["demo", "--picture", "map.xyz"], ".png or .svg or .pdf"),
    ],
)
def test_wrong_usage_is_one_clear_message(folder, monkeypatch, capsys, arguments, message):
    assert_stops(monkeypatch, capsys, arguments, message, WRONG_USAGE)
    assert (folder / "events.jsonl").read_text() == EVENTS


def assert_stops(monkeypatch, capsys, arguments, message, code):
    monkeypatch.setattr("sys.argv", ["stentor", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.run()
    assert stopped.value.code == code
    shown = capsys.readouterr().err
    assert shown.startswith("stentor: ")
    assert message in shown
    assert "Traceback" not in shown


def test_the_demo_of_one_engine_shows_an_afternoon(folder):
    result = run("demo", "--embedded", "--people", "60", "--events", "30")
    for part in ("The afternoon", "Rejected, and why", "stentor-demo.png"):
        assert part in result.stdout
    assert (folder / "stentor-demo.png").stat().st_size > 1000


def test_help_teaches_each_command():
    for command in ("match", "stream", "explain", "check", "bench", "demo"):
        assert "stentor" in run(command, "--help").stdout or command == "demo"
    assert "Exit codes" in run("--help").stdout
    assert run("--version").stdout.startswith("stentor ")
