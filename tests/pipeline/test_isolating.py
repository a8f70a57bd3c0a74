"""One record that makes a step fail is rejected, with the reason, and the stream goes on."""

import sys
from pathlib import Path

import numpy as np
import pytest

from stentor.engine.state import State
from stentor.index import catalog
from stentor.index.packed import PackedIndex
from stentor.pipeline.commit.manifests import Commits
from stentor.pipeline.stream import deliveries, isolating, match_events, plan_changes
from stentor.pipeline.stream.isolating import isolated

sys.path.insert(0, str(Path(__file__).parent))
from test_stream_order import SECOND, delivered, in_order, publish, rows, stream_of, subscribe


@pytest.mark.parametrize("bad", [(), (0,), (99,), (3, 4, 50)])
def test_those_that_fail_are_found_among_those_that_do_not(bad):
    attempts = []

    def attempt(some):
        attempts.append(len(some))
        if set(some.tolist()) & set(bad):
            raise OverflowError("too much\nof it")
        return int(some.sum())

    done, failed = isolated(100, attempt)
    assert [one.position for one in failed] == list(bad)
    assert {one.reason for one in failed} <= {"OverflowError: too much"}
    tried = np.sort(np.concatenate([places for places, _ in done]))
    assert tried.tolist() == [place for place in range(100) if place not in bad]
    assert all(result == places.sum() for places, result in done)
    assert len(attempts) <= 1 + 2 * 7 * len(bad)


@pytest.mark.parametrize("error", [OSError("disk"), MemoryError()])
def test_what_no_record_is_to_blame_for_is_raised(error):
    def attempt(some):
        raise error

    with pytest.raises(type(error)):
        isolated(5, attempt)


@pytest.mark.parametrize("count", [50, 100])
def test_where_everything_fails_it_is_not_the_records(monkeypatch, count):
    if count < isolating.ALL_OF:
        monkeypatch.setattr(isolating, "MOST_ISOLATED", 10)

    def attempt(some):
        raise ValueError("always")

    with pytest.raises(ValueError, match="always"):
        isolated(count, attempt)


@pytest.mark.parametrize("has_order", [True, False])
@pytest.mark.parametrize("shards", [1, 2])
def test_an_event_that_cannot_be_matched_is_rejected(tmp_path, monkeypatch, has_order, shards):
    match = deliveries.match

    def fails(state, events, *others):
        if (events.low == 666.0).any():
            raise OverflowError("6 is too many")
        return match(state, events, *others)

    monkeypatch.setattr(deliveries, "match", fails)
    stream = stream_of(
        tmp_path, has_order=has_order, has_time=has_order, keeps_events=False, shards=shards
    )
    people = [subscribe("ana"), subscribe("bo", "price > 100")]
    events = [publish(f"e{place}", 666.0 if place == 3 else 1.0) for place in range(8)]
    stream.batch([in_order([*people, *events], range(10))])
    stream.stop()
    told = [(f"e{place}", "ana", "matched") for place in range(8) if place != 3]
    assert delivered(tmp_path) == told
    refused = rows(tmp_path, "rejected", "reason", "record")
    assert 1 <= len(refused) <= shards  # by each that holds somebody
    assert "'e3' cannot be matched (OverflowError: 6 is too many)" in refused[0][0]
    assert '"e3"' in refused[0][1]


@pytest.mark.parametrize("few", [1, 1000])
def test_a_change_that_cannot_be_applied_is_rejected(tmp_path, monkeypatch, few):
    version_columns = plan_changes.version_columns

    def fails(state, plan, arriving):
        if any(version.id == "bad" for version in plan.versions):
            raise OverflowError("weights")
        return version_columns(state, plan, arriving)

    monkeypatch.setattr(plan_changes, "version_columns", fails)
    stream = stream_of(tmp_path, few_changes=few)
    names = ["ana", "bad", "bo", "bad", "cé"]
    people = [subscribe(name) for name in names]
    stream.batch([in_order([*people, publish("e1")], range(6))])
    stream.batch([in_order([publish("e2")], [6])])
    stream.stop()
    told = [(event, name, "matched") for event in ("e1", "e2") for name in ("ana", "bo", "cé")]
    assert delivered(tmp_path) == told
    refused = rows(tmp_path, "rejected", "order", "reason")
    assert [order for order, _ in refused] == [1, 3]
    assert all("cannot be applied (OverflowError: weights)" in why for _, why in refused)
    assert rows(tmp_path, "subscriptions", "id") == [("ana",), ("bo",), ("cé",)]


@pytest.mark.parametrize(("few", "has_order"), [(1, True), (1000, True), (1000, False)])
def test_a_subscription_that_no_index_takes_is_rejected(tmp_path, monkeypatch, few, has_order):
    insert = State.insert

    def fails(self, columns, ids, *others):
        if "bad" in ids:
            raise IndexError("no room")
        return insert(self, columns, ids, *others)

    monkeypatch.setattr(State, "insert", fails)
    stream = stream_of(
        tmp_path, few_changes=few, has_order=has_order, has_time=has_order, keeps_events=False
    )
    people = [subscribe(name) for name in ("ana", "bad", "bo")]
    stream.batch([in_order([*people, publish("e1")], range(4))])
    stream.batch([in_order([publish("e2")], [4])])
    stream.stop()
    told = [(event, name, "matched") for event in ("e1", "e2") for name in ("ana", "bo")]
    assert delivered(tmp_path) == told
    (refused,) = rows(tmp_path, "rejected", "reason")
    assert "'bad' cannot be applied (IndexError: no room)" in refused[0]
    assert Commits(tmp_path).last().counts["subscriptions"] == 2


def test_what_fails_for_another_reason_is_raised_as_it_is(tmp_path, monkeypatch):
    def fails(*_):
        raise RuntimeError("a worker is gone")

    monkeypatch.setattr(match_events._Task, "run", fails)
    stream = stream_of(tmp_path)
    with pytest.raises(RuntimeError, match="a worker is gone"):
        stream.batch([in_order([subscribe("ana"), publish("e1")], [1, 2])])
    assert Commits(tmp_path).last() is None
    stream.stop()


def test_a_change_that_cannot_be_matched_with_live_events_is_told_of(tmp_path, monkeypatch):
    differences = match_events.answer_changes

    def fails(queries, *others, **chosen):
        if "bad" in queries.ids.arrow.to_pylist():
            raise OverflowError("too near")
        return differences(queries, *others, **chosen)

    monkeypatch.setattr(match_events, "answer_changes", fails)
    stream = stream_of(tmp_path)
    stream.batch([in_order([publish("e1", until=9 * SECOND)], [1])])
    people = [subscribe(name) for name in ("ana", "bad", "bo", "cé")]
    stream.batch([in_order(people, range(2, 6))])
    stream.stop()
    assert delivered(tmp_path) == [("e1", name, "added") for name in ("ana", "bo", "cé")]
    ((reason, record),) = rows(tmp_path, "rejected", "reason", "record")
    assert "'bad' took effect, and cannot be matched with live events" in reason
    assert record == '{"id":"bad"}'


def test_a_base_that_cannot_be_built_in_the_structure_of_choice_is_a_scan(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog, "_MANY", 2)

    def fails(*_):
        raise OverflowError("deep")

    monkeypatch.setattr(PackedIndex, "build", fails)
    stream = stream_of(tmp_path, merge_least=1)
    people = [subscribe(f"s{place}", "has_all(text, 'a')") for place in range(5)]
    stream.batch([in_order(people, range(5))])
    stream.stop()
    last = Commits(tmp_path).last()
    assert (last.index, last.why) == ("scan", "packed could not be built (OverflowError)")
