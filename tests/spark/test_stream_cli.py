"""`stentor stream` and `stentor match --spark`: what goes in, what comes out, which exit code."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from typer.testing import CliRunner

from stentor.cli import app as cli
from stentor.cli.inputs import ANSWER_NO
from stentor.cli.stream_metrics import published
from stentor.cli.stream_watch import PanelWatcher
from stentor.errors import RecordError, SettingsError, StentorError
from stentor.pipeline.commit.manifests import Commits
from stentor.pipeline.spark.failures import failure
from stentor.pipeline.stream.metrics import NAMES
from stentor.pipeline.stream.progress import BatchProgress

CONFIG = """\
[[source]]
format = "json"
kind = "records"
path = "records"
max_files = 1

[schema]
price = "number"

[order]
by = "seq"

[tables]
path = "out"

[limits]
rejected = 0.5
"""


def run(*arguments, code=0):
    result = CliRunner().invoke(cli.app, arguments)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "records").mkdir()
    (tmp_path / "stentor.toml").write_text(CONFIG)
    return tmp_path


def write_records(folder: Path, number: int, *records):
    file = folder / "records" / f"{number}.jsonl"
    text = (one if isinstance(one, str) else json.dumps(one) for one in records)
    file.write_text("".join(f"{one}\n" for one in text))
    os.utime(file, (1_000_000 + number, 1_000_000 + number))


def subscribe(seq, id, expression="price < 10"):
    return {"seq": seq, "op": "subscribe", "id": id, "expression": expression}


def publish(seq, id, price=1):
    return {"seq": seq, "op": "publish", "id": id, "price": price}


def deliveries(folder):
    rows = DeltaTable(folder / "out" / "tables" / "deliveries").to_pyarrow_table().to_pylist()
    return sorted((row["event"], row["subscription"], row["change"]) for row in rows)


def progress(**changed):
    values = {
        "batch": 7, "records": 30, "events": 10, "changes": 20, "delivered": 40, "rejected": 3,
        "candidates": 25, "seconds": 0.3, "steps": {"reading": 0.2, "tasks matching": 0.5},
        "time": 1_000_000, "lag": 2.5, "subscriptions": 1234, "live": 56, "index": "scan",
        "version": "5+2", "plan": "replicated", "repeats": 0, "reasons": {"id: …": 3},
    }  # fmt: skip
    return BatchProgress(**values | changed)


# Nothing runs.


def test_check_lists_all_mistakes_of_a_file_at_once(folder):
    wrong = CONFIG.replace('"json"', '"jsno"').replace("by =", "bye =").replace("0.5", "5")
    (folder / "stentor.toml").write_text(wrong)
    with pytest.raises(SettingsError) as error:
        run("stream", "stentor.toml", "--check")
    shown = str(error.value)
    assert "3 mistakes" in shown
    for place in ("[[source]] 1, format", "[order], bye", "[limits], rejected"):
        assert place in shown


def test_check_looks_at_the_world_too(folder):
    run("stream", "stentor.toml", "--check")
    (folder / "out").write_text("a file")
    (folder / "stentor.toml").write_text(CONFIG.replace('path = "records"', 'path = "nowhere"'))
    with pytest.raises(SettingsError) as error:
        run("stream", "stentor.toml", "--check")
    assert "2 mistakes" in str(error.value)
    assert "nowhere: there is no such folder" in str(error.value)
    assert "out is a file" in str(error.value)


def test_a_source_whose_columns_nobody_knows_is_a_mistake(folder):
    no_schema = CONFIG.replace('[schema]\nprice = "number"\n', "")
    (folder / "stentor.toml").write_text(no_schema)
    with pytest.raises(SettingsError, match=r"declare the attributes in \[schema\]"):
        run("stream", "stentor.toml", "--check")
    write_records(folder, 1, publish(1, "e"))
    run("stream", "stentor.toml", "--check")


def test_explain_says_what_will_run_and_why(folder):
    shown = " ".join(run("stream", "stentor.toml", "--explain").stdout.split())
    for part in (
        "records from JSON lines",
        "at most 1 file a batch",
        "declared: price (number)",
        "by the column 'seq'",
        "rejected as late",
        "scan until there is a base; each new base chooses again",
        "replicated",
        "because 0 subscriptions are no more than 20,000,000",
        "; new",
        "the stream stops where more than 50.0% are bad",
        "stay 7 days",
    ):
        assert part in shown
    sharded = (
        CONFIG + '[plan]\nname = "sharded"\nshards = 3\n[kafka]\ntopic = "t"\nservers = "s:1"\n'
    )
    (folder / "stentor.toml").write_text(sharded)
    shown = " ".join(run("stream", "stentor.toml", "--explain").stdout.split())
    assert "sharded in 3" in shown
    assert "because you chose it" in shown
    assert "the topic 't' on s:1, at least once" in shown
    assert not (folder / "out").exists()


# What is shown.


def test_the_panel_shows_numbers_and_that_the_stream_waits():
    panel = PanelWatcher("a title", total=60)
    screen = Console(width=90, record=True, file=open(os.devnull, "w"))  # noqa: PTH123, SIM115
    with screen.file:
        screen.print(panel.render())
        panel(progress())
        screen.print(panel.render())
        first = screen.export_text()
        panel(progress(batch=8, seconds=0.001))
        panel.tick(is_waiting=True)
        panel._totals.last = panel._totals.last._replace(at=0)
        screen.print(panel.render())
        second = screen.export_text()
    assert "first batch is under way" in first
    for part in (
        "1,234",
        "scan, version 5+2",
        "2.5",
        "batch 7: 30 records in 300 ms",
        "reading 200",
    ):
        assert part in first
    assert "waiting for records" in second
    assert "waiting" not in first


def read_metrics(text):
    """The samples of a text for Prometheus, by name and labels, and the type of each metric."""
    families = list(text_string_to_metric_families(text))
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }
    assert len(samples) == sum(len(family.samples) for family in families)
    return samples, {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}


def test_metrics_are_text_that_prometheus_reads(tmp_path):
    file = tmp_path / "stentor.prom"
    with published(str(file)) as [listener]:
        samples, _ = read_metrics(file.read_text())
        assert samples["stentor_records_total",] == 0
        listener(progress())
        listener(progress(batch=8, seconds=3.0))
        samples, declared = read_metrics(file.read_text())
    assert samples["stentor_records_total",] == 60
    assert samples["stentor_deliveries_total",] == 80
    assert samples["stentor_batch_seconds_bucket", ("le", "0.25")] == 0
    assert samples["stentor_batch_seconds_bucket", ("le", "0.5")] == 1
    assert samples["stentor_batch_seconds_bucket", ("le", "+Inf")] == 2
    assert samples["stentor_batch_seconds_sum",] == 3.3
    assert samples["stentor_batch_seconds_count",] == 2
    assert samples["stentor_step_seconds_total", ("step", "tasks matching")] == 1
    assert samples["stentor_last_batch",] == 8
    info = ("index", "scan"), ("plan", "replicated"), ("version", "5+2")
    assert samples["stentor_index_info", *info] == 1
    assert declared == set(NAMES)


def told_address(said):
    return next(word for word in said.split() if word.startswith("http")).rstrip(",;")


def test_metrics_are_served_on_this_machine_only(capsys):
    with published("0") as [listener]:
        listener(progress())
        address = told_address(capsys.readouterr().err)
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address) as answer:
            samples, _ = read_metrics(answer.read().decode())
        assert samples["stentor_events_total",] == 10
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(address.replace("/metrics", "/else"))
        port = address.split(":")[2].split("/")[0]
        with pytest.raises(SettingsError, match="cannot listen"), published(port):
            pass


def test_metrics_are_served_at_an_address_where_one_is_given(capsys, tmp_path, monkeypatch):
    with published("127.0.0.2:0"):
        address = told_address(capsys.readouterr().err)
        assert address.startswith("http://127.0.0.2:")
        with urllib.request.urlopen(address) as answer:
            assert "stentor_events_total" in answer.read().decode()
    monkeypatch.chdir(tmp_path)
    with published("m:9464"):
        assert (tmp_path / "m:9464").exists()


def test_what_spark_says_becomes_the_sentence_that_was_raised():
    text = "[STREAM_FAILED] …\nTraceback …\n{}\n SQLSTATE: 39000\n=== Streaming Query ==="
    lost = failure(RuntimeError(text.format("stentor.errors.FolderError: gone;\nlook")))
    assert (type(lost), str(lost)) == (StentorError, "gone;\nlook")
    wrong = failure(RuntimeError(text.format("stentor.errors.SettingsError: top is 0")))
    assert isinstance(wrong, SettingsError)
    bad = failure(RuntimeError("[USER_RAISED_EXCEPTION] 2 of the events SQLSTATE: P0001"))
    assert (type(bad), str(bad)) == (RecordError, "2 of the events")
    assert failure(RuntimeError("no leader for the partition")) is None


# It runs.


def test_a_stream_tells_each_batch_and_goes_on_where_it_stopped(spark, folder):
    write_records(folder, 1, subscribe(1, "ana"), subscribe(2, "bo", "price > 5"))
    write_records(folder, 2, publish(3, "e1"), "no JSON", publish(4, "e2", 7))
    first = run("stream", "stentor.toml", "--once", "--metrics", "m.prom")
    told = lines(first.stdout)
    assert [(one["batch"], one["records"], one["delivered"]) for one in told] == [
        (0, 2, 0),
        (1, 3, 3),
    ]
    assert told[1]["rejected"] == 1
    assert told[1]["steps"].keys() >= {"reading", "matching"}
    assert "Opening sources and tables" in first.stderr
    assert read_metrics((folder / "m.prom").read_text())[0]["stentor_records_total",] == 5
    assert deliveries(folder) == [
        ("e1", "ana", "matched"),
        ("e2", "ana", "matched"),
        ("e2", "bo", "matched"),
    ]
    assert run("stream", "stentor.toml", "--once").stdout == ""
    write_records(folder, 3, publish(5, "e3"))
    assert [one["batch"] for one in lines(run("stream", "stentor.toml", "--once").stdout)] == [2]
    shown = " ".join(run("stream", "stentor.toml", "--explain").stdout.split())
    assert "goes on after batch 2: 2 subscriptions, 0 live events" in shown
    other = CONFIG.replace('[order]\nby = "seq"\n', "")
    (folder / "stentor.toml").write_text(other)
    with pytest.raises(SettingsError, match="cannot change"):
        run("stream", "stentor.toml", "--check")


def test_an_error_in_a_batch_is_a_sentence_and_no_stack_trace(spark, folder, monkeypatch, capsys):
    write_records(folder, 1, *["no JSON"] * 120)
    monkeypatch.setattr("sys.argv", ["stentor", "stream", "stentor.toml", "--once"])
    with pytest.raises(SystemExit) as stopped:
        cli.run()
    assert stopped.value.code == 3
    shown = capsys.readouterr().err
    assert "records: 120 of the first 120 records are rejected (100%)" in shown
    assert "Traceback" not in shown
    assert DeltaTable(folder / "out" / "tables" / "rejected").to_pyarrow_table().num_rows == 0


@pytest.mark.xdist_group("spark-cli")
def test_sigterm_ends_a_stream_after_its_batch_and_a_restart_resumes(folder):
    write_records(folder, 1, subscribe(1, "ana"))
    command = [sys.executable, "-m", "stentor", "stream", "stentor.toml", "--master", "local[2,4]"]
    # A Java that starts fast: this one lives for some seconds only.
    quick = os.environ | {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    stream = subprocess.Popen(command, cwd=folder, env=quick, **pipes)
    try:
        assert json.loads(stream.stdout.readline())["batch"] == 0
        write_records(folder, 2, publish(2, "e1"))
        assert json.loads(stream.stdout.readline())["delivered"] == 1
        stream.send_signal(signal.SIGTERM)
        rest, shown = stream.communicate(timeout=60)
    finally:
        stream.kill()
    assert (stream.returncode, rest) == (0, ""), shown
    assert "Stopping after this batch" in shown
    assert "Traceback" not in shown
    assert deliveries(folder) == [("e1", "ana", "matched")]
    write_records(folder, 3, publish(3, "e2"))
    command.append("--once")
    again = subprocess.run(command, cwd=folder, env=quick, timeout=120, check=True, **pipes)
    assert [one["batch"] for one in lines(again.stdout)] == [2]
    assert deliveries(folder) == [("e1", "ana", "matched"), ("e2", "ana", "matched")]


@pytest.mark.xdist_group("spark-cli")
def test_when_java_is_killed_the_stream_says_so_and_a_restart_resumes(folder):
    write_records(folder, 1, subscribe(1, "ana"))
    command = [sys.executable, "-m", "stentor", "stream", "stentor.toml", "--master", "local[2,4]"]
    quick = os.environ | {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    stream = subprocess.Popen(command, cwd=folder, env=quick, **pipes)
    try:
        assert json.loads(stream.stdout.readline())["batch"] == 0
        asked = ["ps", "-o", "pid=", "--ppid", str(stream.pid)]
        (java,) = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()
        os.kill(int(java), signal.SIGKILL)
        _, shown = stream.communicate(timeout=60)
    finally:
        stream.kill()
    assert stream.returncode == 4, shown
    assert "the Java process that Spark runs in has ended (killed by SIGKILL)" in shown
    assert "Nothing is lost" in shown
    assert "Traceback" not in shown
    assert "refused" not in shown


@pytest.mark.xdist_group("spark-cli")
def test_a_run_that_builds_a_base_at_its_end_leaves_it_to_the_next(folder):
    least = "\n[merge]\nleast = 1\n"
    (folder / "stentor.toml").write_text((folder / "stentor.toml").read_text() + least)
    write_records(folder, 1, *(subscribe(place, f"s{place}") for place in range(1, 6)))
    command = [sys.executable, "-m", "stentor", "stream", "stentor.toml", "--once"]
    command += ["--master", "local[2,4]"]
    quick = os.environ | {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    ran = subprocess.run(
        command, cwd=folder, env=quick, timeout=300, check=True, capture_output=True, text=True
    )
    assert "ERROR" not in ran.stderr
    assert "\tat " not in ran.stderr
    last = Commits(folder / "out").last()
    assert (last.base_batch, last.segments) == (last.batch, [])
    assert [base.name for base in (folder / "out" / "bases").iterdir()] == last.bases


# A batch of files.

SUBSCRIPTIONS = """\
{"id": "ana", "expression": "has_all(text, 'ipad') AND price < 300"}
{"id": "ben", "expression": "weight(price < 1000, 3)"}
{"id": "broken", "expression": "price <"}
"""
EVENTS = """\
{"id": "e1", "text": "iPad discount", "price": 299}
{"id": "e2", "text": "iPad", "price": 350}
not JSON
"""
FILES = ("--subscriptions", "subscriptions.jsonl", "--events", "events.jsonl")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "subscriptions.jsonl").write_text(SUBSCRIPTIONS)
    (tmp_path / "events.jsonl").write_text(EVENTS)
    return tmp_path


def test_match_on_spark_equals_match_and_keeps_its_snapshot(spark, files):
    plain = run("match", *FILES)
    on_spark = run("match", "--spark", *FILES, "--snapshot", "kept", "--json")
    assert sorted(on_spark.stdout.splitlines()) == sorted(plain.stdout.splitlines())
    summary = json.loads(on_spark.stderr.splitlines()[-1])
    summary.pop("seconds")
    assert "events.jsonl: left out: 1 × " in on_spark.stderr
    assert "subscriptions.jsonl: left out: 'broken': expected a value" in on_spark.stderr
    assert summary == {
        "subscriptions": 2, "events": 2, "matches": 3,
        "rejected subscriptions": 1, "unreadable events": 1, "share unreadable": 0.3333,
    }  # fmt: skip
    pq.write_table(pa.table({"id": ["e9"], "text": ["x"], "price": [9.0]}), "events.parquet")
    again = ("match", "--spark", "-e", "events.parquet", "--snapshot", "kept", "--top", "1")
    run(*again, "--out", "best.parquet")
    best = pq.read_table("best.parquet").to_pylist()
    assert best == [{"event": "e9", "subscription": "ben", "score": 3.0}]
    with pytest.raises(SettingsError, match=r"best\.parquet is there already"):
        run(*again, "--out", "best.parquet")


def test_a_strict_match_on_spark_stops_with_the_reason(spark, files):
    assert (
        "rows cannot be read" in run("match", "--spark", *FILES, "--strict", code=ANSWER_NO).stderr
    )
    (files / "events.jsonl").write_text(EVENTS.replace("not JSON\n", ""))
    shown = run("match", "--spark", *FILES, "--strict", code=ANSWER_NO).stderr
    assert "'broken': expected a value" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-e", "events.jsonl"), "give --subscriptions"),
        (("-e", "none.jsonl", "-s", "subscriptions.jsonl"), "none.jsonl: there is no such file"),
        (
            ("-e", "events.txt", "-s", "subscriptions.jsonl"),
            "whose names end with .json .jsonl .ndjson .csv .parquet are read",
        ),
        (("-e", "events.jsonl", "--snapshot", "s", "--index", "scan"), "it was built with"),
        ((*FILES, "--master", "spark://far:7077"), "give a --snapshot"),
        ((*FILES, "--out", "matches.csv"), ".parquet .jsonl"),
    ],
)
def test_wrong_usage_is_told_before_spark_is_started(files, arguments, message):
    (files / "events.txt").write_text("")
    with pytest.raises(SettingsError) as error:
        run("match", "--spark", *arguments)
    assert message in str(error.value)
