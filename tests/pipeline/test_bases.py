"""The bases of a stream: which structure they choose, and what the end of a run leaves."""

import logging
import sys
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

from stentor.errors import FolderError
from stentor.index import catalog
from stentor.pipeline.commit.manifests import Commits
from stentor.pipeline.config.explain import explanation
from stentor.pipeline.config.file import StreamConfig
from stentor.pipeline.snapshots import open_shard
from stentor.pipeline.stream import shards as replicas
from stentor.pipeline.stream.batch_loop import BatchLoop
from stentor.pipeline.stream.settings import StreamSettings
from tests.programs.leftovers import leftovers

sys.path.insert(0, str(Path(__file__).parent))
from in_process import InProcess
from test_stream_order import delivered, in_order, publish, stream_of, subscribe

MERGING = {"merge_least": 2, "merge_share": 0.01}


def words(first, count):
    """Changes that subscribe to words, and their places in the order."""
    new = [
        subscribe(f"s{place}", f"has_all(text, 'w{place}')")
        for place in range(first, first + count)
    ]
    return in_order(new, range(first, first + count))


@pytest.fixture
def few_are_many(monkeypatch):
    """Have `auto` look at what is asked for from eight alternatives on."""
    monkeypatch.setattr(catalog, "_MANY", 8)


def structures(path):
    last = Commits(path).last()
    return [open_shard(path / "bases" / name).meta["index"] for name in last.bases]


@pytest.mark.parametrize("shards", [1, 2])
def test_auto_is_chosen_by_the_size_of_a_base(tmp_path, few_are_many, shards):
    stream = stream_of(tmp_path, plan="auto", shards=shards, **MERGING)
    stream.batch([words(0, 40)])
    assert (stream.progress[-1].index, stream.progress[-1].why) == ("scan", "")
    stream.stop()
    assert structures(tmp_path) == ["packed"] * shards
    assert Commits(tmp_path).last().index == "packed"
    told = dict(explanation(StreamConfig(sources=(), path=tmp_path, settings=StreamSettings())))
    assert told["Index"].startswith("packed, chosen because ")
    stream.start()
    stream.batch([in_order([publish("e1"), subscribe("x")], [50, 51])])
    assert stream.progress[-1].index == "packed"
    assert "at least 8" in stream.progress[-1].why
    stream.stop()


def test_a_merged_base_chooses_again(tmp_path, few_are_many):
    stream = stream_of(tmp_path, **MERGING)
    stream.batch([words(0, 7)])
    stream.stop()
    assert structures(tmp_path) == ["scan"]
    stream.start()
    stream.batch([words(7, 7)])
    stream.stop()
    assert structures(tmp_path) == ["packed"]


def test_a_base_of_a_structure_that_was_named_gives_way_to_auto(tmp_path, few_are_many):
    stream = stream_of(tmp_path, index="mics", **MERGING)
    stream.batch([words(0, 20)])
    stream.stop()
    assert structures(tmp_path) == ["mics"]
    stream = stream_of(tmp_path, index="auto", merge_least=1000)
    assert structures(tmp_path) == ["mics"]  # nothing waits for it
    told = dict(explanation(StreamConfig(sources=(), path=tmp_path, settings=StreamSettings())))
    assert told["Index"].startswith("mics, as it was before; each new base chooses again")
    stream.batch([in_order([publish("e")], [30])])
    stream.stop()
    assert structures(tmp_path) == ["packed"]
    assert Commits(tmp_path).last().why


def test_runs_that_end_after_one_batch_merge_as_one_that_goes_on(tmp_path):
    stream = stream_of(tmp_path, **MERGING)
    for number in range(4):
        stream.batch([words(number * 10, 10)])
        stream.stop()
        last = Commits(tmp_path).last()
        assert (last.batch, last.base_batch, last.segments) == (number, number, [])
        assert last.counts["subscriptions"] == number * 10 + 10
        assert not leftovers(tmp_path)
        stream.start()
        assert Commits(tmp_path).last() == last
    stream.batch([in_order([publish("e1"), subscribe("ana")], [100, 101])])
    stream.batch([in_order([publish("e2")], [102])])
    stream.stop()
    assert delivered(tmp_path) == [("e2", "ana", "matched")]


def test_another_number_of_shards_is_committed_before_the_first_batch(tmp_path):
    stream = stream_of(tmp_path, plan="sharded", shards=2)
    stream.batch([words(0, 10)])
    stream.stop()
    stream = stream_of(tmp_path, plan="sharded", shards=3)
    stream.stop()
    last = Commits(tmp_path).last()
    assert (last.shards, len(last.bases), last.segments) == (3, 3, [])
    stream = stream_of(tmp_path, plan="sharded", shards=3)
    assert Commits(tmp_path).last() == last
    stream.stop()


class Slow(InProcess):
    """Builds bases only when it is told to, or gives them up."""

    def __init__(self):
        super().__init__()
        self.go = Event()
        self.is_cancelled = False

    def run_beside(self, step, tasks, report):
        self.go.wait()
        if self.is_cancelled:
            raise RuntimeError("cancelled\n\tat org.apache.spark.Pages")
        return self.run(step, tasks, report)

    def cancel_beside(self):
        self.is_cancelled = True
        self.go.set()


def test_bases_that_take_longer_than_the_end_waits_are_given_up(tmp_path):
    runner = Slow()
    stream = stream_of(tmp_path, runner=runner, finish_within=timedelta(0), **MERGING)
    stream.batch([words(0, 10)])
    stream.stop()
    assert runner.is_cancelled
    assert Commits(tmp_path).last().bases == []
    stream = stream_of(tmp_path, **MERGING)
    stream.batch([in_order([publish("e")], [30])])  # the next run builds them
    stream.stop()
    assert Commits(tmp_path).last().base_batch == 0


def test_what_goes_wrong_beside_the_batches_is_told_in_a_line(tmp_path, caplog):
    runner = Slow()
    stream = stream_of(tmp_path, runner=runner, **MERGING)
    stream.batch([words(0, 10)])
    runner.cancel_beside()
    with caplog.at_level(logging.WARNING):
        stream.stop()
    assert [record.getMessage() for record in caplog.records] == [
        "new bases could not be built; trying again later: cancelled"
    ]


def test_a_batch_that_spark_gave_up_cannot_commit_after_the_end(tmp_path):
    stream = stream_of(tmp_path)
    stream.batch([words(0, 10)])
    loop: BatchLoop = stream.loop
    stream.stop()
    with pytest.raises(FolderError, match="has ended; start it again"):
        loop([words(10, 10)], 1)
    assert Commits(tmp_path).last().batch == 0


# Shards and workers.


class TwoWorkers(InProcess):
    """Tasks go now to one worker, now to the other, as Spark gives them out: in no order."""

    slots = 2

    def __init__(self, seed=0):
        super().__init__(seed)
        self._workers = self._workers[:2]
        self.most_open = 0
        self.opened = 0

    @contextmanager
    def _worker(self):
        driver, worker = replicas._OPEN, self._random.choice(self._workers)
        replicas._OPEN = worker
        before = dict(worker)
        try:
            yield
        finally:
            replicas._OPEN = driver
            self.most_open = max(self.most_open, len(worker))
            self.opened += sum(before.get(key) is not one for key, one in worker.items())

    def run(self, step, tasks, report):
        # Each worker gets one of two tasks that run at the same time.
        if tasks != 2:
            return super().run(step, tasks, report)
        reports, workers = [], self._random.sample(self._workers, 2)
        everyone = self._workers
        for number, worker in enumerate(workers):
            self._workers = [worker]
            with self._worker():
                reports.append(step.task(number))
        self._workers = everyone
        return reports


@pytest.mark.parametrize("few", [1, 1000])
def test_a_worker_keeps_to_its_share_of_the_shards(tmp_path, few):
    runner = TwoWorkers()
    stream = stream_of(tmp_path, runner=runner, plan="sharded", shards=4, few_changes=few)
    for number in range(10):
        places = range(number * 10, number * 10 + 9)
        people = [subscribe(f"s{place}") for place in places]
        stream.batch([in_order([*people, publish(f"e{number}")], [*places, number * 10 + 9])])
    stream.stop()
    assert len(delivered(tmp_path)) == 9 * sum(range(1, 11))
    assert runner.most_open == 2  # of four, on two workers
    assert runner.opened == 4  # each shard once, by one of them


class Forgetful(InProcess):
    """Loses the report of a task now and then: its worker died, and it is tried again."""

    slots = 3

    def run(self, step, tasks, report):
        with self._worker():
            if self._random.random() < 0.5:
                step.task(0)
        return super().run(step, tasks, report)


def test_what_a_task_had_claimed_when_it_died_is_done_again(tmp_path):
    runner = Forgetful()
    stream = stream_of(tmp_path, runner=runner, plan="sharded", shards=5, few_changes=1, top=3)
    for number in range(8):
        place = number * 10
        people = [subscribe(f"s{place + one}") for one in range(4)]
        stream.batch([in_order([*people, publish(f"e{number}")], range(place, place + 5))])
    stream.stop()
    assert len(delivered(tmp_path)) == 3 * 8
