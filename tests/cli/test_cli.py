"""The command line: what goes in, what comes out, which exit code."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from stentor.cli import app as cli
from stentor.cli import warm
from stentor.cli.inputs import ANSWER_NO, DEFECT, INTERRUPTED, UNREAD, UNUSABLE, WRONG_USAGE
from stentor.engine import Engine, cold
from stentor.engine.cold import packages_of
from stentor.errors import RecordError, SettingsError
from stentor.wire.files import open_tables, read_table

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
    result = run("match", *FILES, "--strict", code=ANSWER_NO)
    assert result.stdout == ""
    assert "subscriptions.jsonl:3: expected a value" in result.stderr


def test_a_run_that_fails_leaves_older_results_alone(folder):
    (folder / "old.jsonl").write_text("old")
    run("match", *FILES, "--strict", "-o", "old.jsonl", code=ANSWER_NO)
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
    result = run("explain", "price < 300 AND has_all(text, 'ipad')", event, code=ANSWER_NO)
    assert "✗ price < 300" in result.stdout
    assert "✓ has_all(text, 'ipad')" in result.stdout
    yes = run("explain", "price < 400", event, "--json")
    assert json.loads(yes.stdout)["matches"] is True


def test_explain_finds_both_in_files(folder):
    result = run("explain", "ana", "e2", *FILES, code=ANSWER_NO)
    assert "ana does not want e2" in result.stdout


def test_explain_knows_where_the_subscriber_stands():
    near = "ST_DWithin(loc, here(), 1000)"
    run("explain", near, '{"loc": [1, 1]}', "--at", "1,1")
    run("explain", near, '{"loc": [1, 1]}', "--at", "2,1", code=ANSWER_NO)


def test_check_lists_every_bad_line_and_what_can_never_match(folder):
    result = run("check", *FILES, code=ANSWER_NO)
    assert "subscriptions.jsonl:3: bad: expected a value" in result.stdout
    assert "events.jsonl:3: bad:" in result.stdout
    assert "can never match: it asks for a contradiction" in result.stdout
    found = run("check", *FILES, "--json", code=ANSWER_NO)
    assert [one["finding"] for one in lines(found.stdout)].count("bad") == 4
    assert json.loads(found.stderr.splitlines()[-1]) == {"good": 6, "bad": 4, "can never match": 1}


def test_check_of_good_files_exits_with_0(folder):
    (folder / "events.jsonl").write_text('{"id": "e1", "price": 1}')
    run("check", "--events", "events.jsonl")


def test_a_schema_file_is_enforced(folder):
    (folder / "schema.json").write_text('{"price": "number", "text": "string"}')
    (folder / "subscriptions.jsonl").write_text('{"id": "a", "expression": "prise < 1"}')
    result = run("check", "-s", "subscriptions.jsonl", "--schema", "schema.json", code=ANSWER_NO)
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


# How it ends.


def ended(code: str, *arguments: str, **more) -> subprocess.CompletedProcess[str]:
    """How a process ends that runs *code* and then `stentor` with *arguments*."""
    program = (
        f"import sys\n{code}\nsys.argv[1:] = {list(arguments)!r}\nimport stentor.cli as c\nc.main()"
    )
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, **more
    )


def test_a_crash_is_no_answer():
    broken = "import stentor.cli.covers as c\ndef crash(*_, **__): raise ZeroDivisionError('oh')\n"
    done = ended(broken + "c.explain_covering = crash", "covers", "a < 1", "a < 1")
    assert done.returncode == DEFECT
    assert "this is a defect of Stentor, please report it: ZeroDivisionError: oh" in done.stderr
    assert "Traceback" in done.stderr


def test_an_interrupt_is_130_and_quiet():
    broken = "import stentor.cli.covers as c\ndef stop(*_, **__): raise KeyboardInterrupt\n"
    done = ended(broken + "c.explain_covering = stop", "covers", "a < 1", "a < 1")
    assert (done.returncode, done.stderr) == (INTERRUPTED, "")


def test_output_that_nobody_reads_ends_quietly(folder):
    many = "".join(f'{{"id": "e{n}", "price": 1}}\n' for n in range(20_000))
    (folder / "events.jsonl").write_text(many)
    program = [sys.executable, "-m", "stentor", "match", *FILES]
    for size in (1, 20_000):
        (folder / "events.jsonl").write_text("".join(many.splitlines(keepends=True)[:size]))
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(program, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
        os.close(write)
        assert done.returncode == UNREAD
        assert "Traceback" not in done.stderr
        assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize("name", ["events.csv", "events.tsv", "events.txt"])
def test_csv_is_read_and_its_columns_are_mapped(folder, name):
    (folder / name).write_text("id,text,Preis,lon,lat\ne1,iPad,299,151.2,-33.87\n")
    (folder / "wishes.jsonl").write_text(
        '{"id": "ana", "expression": "price < 300 AND ST_DWithin(loc, ST_Point(151.2, -33.87), 9)"}'
    )
    columns = ("--columns", "loc=lon,lat", "--columns", "price=Preis")
    run("match", "-s", "wishes.jsonl", "-e", name, "-o", "out.jsonl", *columns)
    assert (folder / "out.jsonl").read_text() == '{"event": "e1", "subscription": "ana"}\n'


def test_results_are_not_written_through_what_others_put_there(folder):
    (folder / "secret").write_text("secret")
    (folder / ".out.jsonl.partial").symlink_to("secret")
    (folder / "out.jsonl").symlink_to("secret")
    run("match", *FILES, "-o", "out.jsonl")
    assert (folder / "secret").read_text() == "secret"
    assert not (folder / "out.jsonl").is_symlink()
    assert lines((folder / "out.jsonl").read_text())


def test_results_have_the_mode_of_the_file_that_they_replace(folder):
    (folder / "out.jsonl").write_text("")
    (folder / "out.jsonl").chmod(0o640)
    run("match", *FILES, "-o", "out.jsonl")
    assert (folder / "out.jsonl").stat().st_mode & 0o777 == 0o640
    run("match", *FILES, "-o", "new.jsonl")
    mask = os.umask(0)
    os.umask(mask)
    assert (folder / "new.jsonl").stat().st_mode & 0o777 == 0o666 & ~mask


def test_damaged_parquet_is_a_record_error_whatever_is_damaged(folder):
    rows = {"id": [f"e{n}" for n in range(2_000)], "price": list(range(2_000))}
    pq.write_table(pa.table(rows), "events.parquet")
    whole = (folder / "events.parquet").read_bytes()
    random = Random(3)
    damaged = [whole[:cut] for cut in (0, 4, 8, len(whole) // 2, len(whole) - 5)]
    for _ in range(60):
        copy = bytearray(whole)
        for place in random.sample(range(len(copy)), 3):
            copy[place] ^= 1 << random.randrange(8)
        damaged.append(bytes(copy))
    refused = 0
    for data in damaged:
        (folder / "events.parquet").write_bytes(data)
        try:
            for chunk in open_tables("events.parquet"):
                Engine(clock=None).publish_batch(chunk.table)
            read_table("events.parquet")
        except RecordError:
            refused += 1
    assert refused > 10


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_its_extra_the_command_says_how_to_get_it(missing):
    process = ended(f"sys.modules[{missing!r}] = None", "--version")
    assert process.returncode == WRONG_USAGE
    assert process.stdout == ""
    said = f"its extra 'cli' is not installed ({missing} is missing): pip install 'stentor[cli]'"
    assert process.stderr == f"stentor: {said}\n"


def test_warm_compiles_what_is_asked_for_once(monkeypatch):
    done = set()
    monkeypatch.setenv("STENTOR_WAIT", "0")
    monkeypatch.setenv("STENTOR_COMPILING", "1")
    monkeypatch.setattr(cold, "_START", "")  # a child that does nothing
    monkeypatch.setattr(cold, "is_compiled", lambda package, *others: package in done)
    monkeypatch.setattr(warm, "compile_kernels", lambda name: done.add(packages_of(name)[0]))
    for said in ("compiled", "compiled before"):
        told = run("warm", "scan", "mics", "scan").stdout
        assert told.splitlines() == [f"scan: {said}", f"mics: {said}"]
    with pytest.raises(SettingsError, match="no structure 'sieve'; there are scan, mo_tree"):
        run("warm", "sieve")
    assert len(done) == 2
    for name in run("warm").stdout.splitlines():
        assert name.partition(":")[0] in warm.warmable()
    assert len(done) == len(warm.warmable())


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_match_of_which_most_is_rejected_stops_and_says_why(folder, form):
    table = pa.table({"event": [f"e{n}" for n in range(3_000)], "price": [250] * 3_000})
    events = Path(f"wrong.{form}")
    if form == "csv":
        events.write_text("event,price\n" + "e,250\n" * 3_000)
    else:
        events.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    (folder / "subscriptions.jsonl").write_text(SUBSCRIPTIONS.splitlines()[0])
    Path("out.jsonl").write_text("older\n")
    files = ("match", "-s", "subscriptions.jsonl", "-e", str(events), "-o", "out.jsonl")
    with pytest.raises(RecordError, match=r"3,000 of the first 3,000 records are rejected \(100%"):
        run(*files)
    assert Path("out.jsonl").read_text() == "older\n"
    summary = json.loads(run(*files, "--most-rejected", "1", "--json").stdout)
    assert (summary["events"], summary["rejected"]) == (0, 3_000)
    assert summary["share rejected"] > 0.999  # the subscription is good
    assert [reason.partition(" × ")[0] for reason in summary["reasons"]] == ["3,000"]
    assert "id" in summary["reasons"][0]


def test_subscriptions_most_of_which_are_rejected_stop_a_match_and_a_cover(folder):
    bad = "".join(json.dumps({"id": f"s{n}", "expression": "price <"}) + "\n" for n in range(20))
    (folder / "subscriptions.jsonl").write_text(bad)
    for command in (("match", *FILES), ("cover", "-s", "subscriptions.jsonl")):
        with pytest.raises(RecordError, match="20 of the first 20 records"):
            run(*command)
        run(*command, "--most-rejected", "1")


def test_an_update_matches_whom_it_enters_and_a_withdrawal_is_counted(folder):
    (folder / "subscriptions.jsonl").write_text('{"id": "ana", "expression": "price < 300"}\n')
    records = [
        {"op": "update", "id": "e", "price": 250},
        {"op": "update", "id": "e", "price": 260},
        {"op": "update", "id": "e", "price": 350},
        {"id": "f", "price": 1},
        {"op": "update", "id": "e", "price": 250},
        {"op": "withdraw", "id": "e"},
    ]
    (folder / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    result = run("match", *FILES, "--json")
    assert [one["event"] for one in lines(result.stdout)] == ["e", "f", "e"]
    summary = json.loads(result.stderr.splitlines()[-1])
    assert (summary["events"], summary["matches"], summary["withdraw records"]) == (5, 3, 1)
    best = json.loads(run("match", *FILES, "--json", "--top", "1").stderr.splitlines()[-1])
    assert (best["events"], best["matches"], best["rejected"]) == (1, 1, 5)
