"""The Spark benchmark: its tables are there, parts add up, rows that disagree are refused."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from stentor.errors import DisagreementError
from stentor.pipeline.spark import sessions as command_session
from stentor_lab.bench import BenchOptions, Unit
from stentor_lab.bench.spark.engine import beside_the_engine
from stentor_lab.bench.spark.events import COUNTED, Offers, Streamed, without_subscriptions
from stentor_lab.bench.spark.feed import Spent
from stentor_lab.bench.spark.messages import Messages
from stentor_lab.bench.spark.scale import Bench, Sessions
from stentor_lab.processes import Cpu, cpu_seconds, proportional_bytes

pytestmark = pytest.mark.xdist_group("spark-bench")

REPOSITORY = Path(__file__).parents[3]


def silent(message: str) -> None:
    pass


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(BenchOptions(size=600, repetitions=2, progress=silent), tmp_path, Sessions())


# One run on tiny workloads.


@pytest.fixture(scope="module")
def tables() -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "lab.tests.programs.bench_spark"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert ran.returncode == 0, ran.stderr[-4000:]
    found: list[dict[str, Any]] = json.loads(ran.stdout)["tables"]
    return found


@pytest.mark.skipif(not psutil.LINUX, reason="this system does not tell what is shared")
def test_a_second_worker_adds_memory_to_the_first_and_shares_most_of_it(tables):
    (row,) = tables[0]["rows"]
    assert tables[0]["workload"]["subscriptions"] == 600
    assert row["median"] > 0.0
    assert 0.0 < row["MB with two"] - row["MB with one"] < row["MB with one"]
    added = row["MB with two"] / row["MB with one"] - 1.0
    assert row["second adds %"] == pytest.approx(100.0 * added)


def test_the_parts_of_a_stream_add_up_to_its_cpu(tables):
    engine, stream = tables[1]["rows"]
    assert (engine["name"], stream["name"]) == ("engine", "stream")
    parts = [stream[part] for part in ("Spark", "reading", "matching", "writing")]
    assert sum(parts) == pytest.approx(stream["median"])
    assert all(part > 0.0 for part in parts), parts
    assert stream["more µs/event"] == pytest.approx(stream["median"] - engine["median"])
    assert stream["deliveries"] > 0.0


def test_micro_batches_are_timed_from_commit_to_commit_and_step_by_step(tables):
    assert tables[2]["unit"] == "ms/micro-batch"
    first, middle, last, every = tables[2]["rows"]
    assert [row["repetitions"] for row in (first, middle, last)] == [2, 2, 2]
    assert every["repetitions"] >= 6  # events and changes need not begin in the same batch
    assert every["low"] <= every["median"] <= every["95 %"] <= every["high"]
    assert not any(name.startswith("tasks") for name in every)
    for step in ("reading", "ordering", "settling", "publishing", "commit", "Spark's own"):
        assert 0.0 < every[step] < every["median"]


def test_joins_and_matches_answer_the_same_question(tables):
    names = [row["name"] for row in tables[3]["rows"]]
    assert len(names) == 4
    assert all("Spark SQL" in name for name in names[:2])
    assert names[2:] == ["match, from texts", "match, with a snapshot"]
    assert tables[3]["rows"][0]["ratio"] == 1.0


# Arithmetic, on streams that only say what they would have taken.


def pretend(monkeypatch: pytest.MonkeyPatch, spend: Any) -> None:
    def run(stream: Streamed) -> Spent:
        stream.spent.append(spend(stream))
        return stream.spent[-1]

    monkeypatch.setattr(Streamed, "run", run)


def test_events_per_second_are_of_all_samples_but_the_first(bench, monkeypatch):
    def spend(stream: Streamed) -> Spent:
        is_first = not stream.spent
        events = COUNTED * stream.offers.batch.rows
        seconds = 99.0 if is_first else 2.0 / stream.slots
        return Spent(events, 0, seconds, Cpu(99.0 if is_first else 3.0, 1.0), {})

    pretend(monkeypatch, spend)
    offers = Offers.drawn(bench)
    table = without_subscriptions(bench, offers)
    one, two = table.rows
    assert table.unit is Unit.RATE
    assert table.median(one) == pytest.approx(offers.counted / 2.0)
    assert table.ratio(two) == pytest.approx(2.0)
    each = 1e6 / offers.counted
    assert one.figures == pytest.approx({"CPU µs": 4 * each, "Java": 3 * each, "Python": each})


def test_what_a_delivery_adds_is_told_apart_from_what_an_event_adds(bench, monkeypatch):
    engine_cpu = iter([1.0] * 100)
    monkeypatch.setattr("stentor_lab.bench.spark.engine._Own.cpu", lambda own: next(engine_cpu))
    found = matched(monkeypatch)

    def spend(stream: Streamed) -> Spent:
        events = COUNTED * stream.offers.batch.rows
        more = (5.0 * events + 0.25 * found[-1]) / 1e6
        return Spent(events, found[-1], 1.0, Cpu(1.0, more), {"tasks matching": 0.5})

    pretend(monkeypatch, spend)
    narrow, wide = beside_the_engine(bench, Offers.drawn(bench))[:2]
    assert wide.rows[1].figures["deliveries"] > narrow.rows[1].figures["deliveries"]
    assert narrow.rows[1].figures["more µs/event"] >= 5.0
    assert wide.rows[1].figures["more µs/delivery"] == pytest.approx(0.25)


def test_a_stream_that_loses_a_delivery_is_refused(bench, monkeypatch):
    found = matched(monkeypatch)
    pretend(monkeypatch, lambda _: Spent(2_000, found[-1] - 1, 1.0, Cpu(1.0, 1.0), {}))
    with pytest.raises(DisagreementError, match="'stream' answers otherwise than 'engine'"):
        beside_the_engine(bench, Offers.drawn(bench))


def matched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the engine delivers, time after time."""
    from stentor_lab.bench.spark.engine import _Own

    found: list[int] = []
    answer = _Own.answer

    def remembered(own: _Own) -> Any:
        counted = answer(own)
        found.append(own.deliveries)
        return counted

    monkeypatch.setattr(_Own, "answer", remembered)
    return found


# Workloads, sessions, processes.


def test_changes_of_micro_batches_name_subscriptions_that_stand(bench):
    import pyarrow.parquet as pq

    messages = Messages(bench, warm=2, counted=6)
    standing = set(pq.read_table(messages.base.path)["id"].to_pylist())
    assert len(standing) == 600
    for events, changes in messages.micro_batches():
        assert events.rows == 1_000
        rows = pq.read_table(changes.path).to_pylist()
        assert len(rows) == messages.changes
        gone = {row["id"] for row in rows if row["op"] == "unsubscribe"}
        wanted = {row["id"]: row["expression"] for row in rows if row["op"] == "subscribe"}
        assert gone <= standing
        assert gone.isdisjoint(wanted)
        assert len(gone) + len(wanted) == len(rows)
        assert all(wanted.values())
        assert standing & set(wanted)
        standing = (standing - gone) | set(wanted)
    assert len(standing) == 600


def test_a_session_is_kept_until_other_slots_are_asked_for(monkeypatch):
    told = []

    @contextmanager
    def made(master, *, name, quick):
        told.append(f"start {master}")
        yield object()
        told.append(f"stop {master}")

    monkeypatch.setattr(command_session, "command_session", made)
    sessions = Sessions()
    assert sessions.of(2) is sessions.of(2)
    sessions.of(1)
    sessions.fresh(1)
    sessions.stop()
    assert told == [
        "start local[2]",
        "stop local[2]",
        "start local[1]",
        "stop local[1]",
        "start local[1]",
        "stop local[1]",
    ]


def test_cpu_is_of_this_process_and_those_below_it():
    before = cpu_seconds()
    subprocess.run([sys.executable, "-c", "sum(range(10_000_000))"], check=True)
    after = cpu_seconds()
    assert (after - before).python >= 0.05


def test_memory_is_of_those_processes_that_still_run():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    own = proportional_bytes([os.getpid(), ended.pid])
    assert own is None or own > 1 << 20
    assert (own is None) == (not psutil.LINUX)
    assert proportional_bytes([ended.pid]) is None


def test_a_process_without_spark_has_no_workers():
    told = "from stentor_lab.processes import spark_workers; print(spark_workers())"
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True
    )  # a process of its own: this one may hold the session of other tests
    assert done.stdout == "[]\n"
