"""Order, lateness, time, expiry, and what may change between two starts of a stream."""

import shutil
import sys
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.errors import FolderError, RecordError
from stentor.language.parser import parse
from stentor.model import Constant, Event, Kind, Point, Subscription
from stentor.model.record import Move, Publish, Subscribe, Unsubscribe
from stentor.pipeline.commit.manifests import Commits
from stentor.pipeline.stream import bases
from stentor.pipeline.stream.settings import FrameSettings
from tests.support import grid

sys.path.insert(0, str(Path(__file__).parent))
from in_process import InProcess, Stream, canonical

SECOND = 1_000_000


def subscribe(id, text="price > 0", **fields):
    time = fields.pop("time", None)
    return Subscribe(Subscription(id, parse(text, schema=grid.schema()), **fields), time)


def publish(id, price=1.0, until=None, time=None):
    return Publish(Event(id, {"price": Constant(Kind.NUMBER, price)}, {}, until), time)


def in_order(records, orders, batch_time=0):
    """*records* as a canonical table, at the given places of the user's order."""
    table = canonical(records)
    table = table.set_column(2, "order", pa.array(orders, pa.int64()))
    times = pa.array([batch_time] * len(records), pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    return table.set_column(table.column_names.index("batch_time"), "batch_time", times)


def stream_of(path, **chosen):
    return Stream(path, in_order([publish("e")], [0]).schema.field("attributes").type, **chosen)


def rows(path, name, *columns):
    table = DeltaTable(path / "tables" / name).to_pyarrow_table()
    return sorted(tuple(row[column] for column in columns) for row in table.to_pylist())


def delivered(path):
    return rows(path, "deliveries", "event", "subscription", "change")


def test_a_record_below_what_is_committed_is_rejected_as_late(tmp_path):
    stream = stream_of(tmp_path)
    stream.batch([in_order([subscribe("ana"), publish("e1")], [10, 20])])
    stream.batch([in_order([publish("e2"), publish("e3"), subscribe("bo")], [19, 20, 15])])
    stream.stop()
    assert delivered(tmp_path) == [("e1", "ana", "matched"), ("e3", "ana", "matched")]
    late = rows(tmp_path, "rejected", "reason", "record", "offset")
    assert [offset for _, _, offset in late] == [2, 0]
    assert all("comes too late" in reason for reason, _, _ in late)
    assert '"bo"' in late[0][1]


def test_a_record_that_comes_again_is_a_repeat_and_no_error(tmp_path):
    stream = stream_of(tmp_path)
    first = [subscribe("ana"), publish("e1", until=9 * SECOND, time=SECOND), Unsubscribe("ana")]
    stream.batch([in_order([*first, first[1]], [10, 20, 30, 20])])
    assert stream.progress[-1].repeats == 1
    stream.stop()
    stream.start()
    again = [*first, publish("e1", 2.0), subscribe("bo")]  # another event at a place that is taken
    stream.batch([in_order(again, [10, 20, 30, 20, 40])])
    stream.stop()
    assert stream.progress[-1].repeats == 3
    assert delivered(tmp_path) == [("e1", "ana", "matched"), ("e1", "bo", "added")]
    ((reason,),) = rows(tmp_path, "rejected", "reason")
    assert "comes too late" in reason
    assert [one.name for one in (tmp_path / "recent").iterdir()] == [
        Commits(tmp_path).last().recent
    ]


def test_a_late_record_does_not_move_the_time(tmp_path):
    stream = stream_of(tmp_path)
    stream.batch([in_order([publish("e1", until=9 * SECOND, time=SECOND)], [10])])
    stream.batch([in_order([publish("e0", time=20 * SECOND), subscribe("ana")], [5, 11])])
    stream.stop()
    assert delivered(tmp_path) == [("e1", "ana", "added")]


def test_without_an_order_changes_come_first_and_the_time_is_the_batch_s_own(tmp_path):
    stream = stream_of(tmp_path, has_order=False, has_time=False)
    ending = subscribe("bo", until=5 * SECOND)
    stream.batch([in_order([publish("e1"), subscribe("ana"), ending], [0, 0, 0], 2 * SECOND)])
    stream.batch([in_order([publish("e2", until=9 * SECOND)], [0], 5 * SECOND)])
    stream.batch([in_order([subscribe("cé")], [0], 9 * SECOND)])
    stream.stop()
    assert delivered(tmp_path) == [
        ("e1", "ana", "matched"),
        ("e1", "bo", "matched"),
        ("e2", "ana", "matched"),
    ]
    last = Commits(tmp_path).last()
    assert (last.time, last.live) == (9 * SECOND, [])


def test_equal_places_go_changes_first(tmp_path):
    stream = stream_of(tmp_path)
    stream.batch([in_order([publish("e1"), subscribe("ana")], [1, 1])])
    stream.stop()
    assert delivered(tmp_path) == [("e1", "ana", "matched")]


def test_an_id_is_free_again_once_its_event_is_over_also_within_a_batch(tmp_path):
    stream = stream_of(tmp_path)
    lives = [
        publish("e1", until=3 * SECOND, time=SECOND),
        publish("e1", until=9 * SECOND, time=2 * SECOND),  # still live: rejected
        publish("e1", until=6 * SECOND, time=3 * SECOND),
    ]
    stream.batch([in_order([*lives, publish("e1", time=5 * SECOND)], [1, 2, 3, 4])])
    stream.batch([in_order([publish("e1", time=5 * SECOND), subscribe("ana")], [5, 6])])
    stream.batch([in_order([publish("e1", time=6 * SECOND)], [7])])
    stream.stop()
    assert delivered(tmp_path) == [("e1", "ana", "added"), ("e1", "ana", "matched")]
    assert rows(tmp_path, "rejected", "offset") == [(0,), (1,), (3,)]


def test_a_new_base_leaves_behind_what_is_over(tmp_path):
    stream = stream_of(tmp_path, merge_least=1)
    people = [subscribe("ana", until=5 * SECOND, time=SECOND), subscribe("bo")]
    stream.batch([in_order([*people, Unsubscribe("bo"), subscribe("cé")], [1, 2, 3, 4])])
    stream.batch([in_order([publish("e1", time=6 * SECOND)], [5])])
    stream.wait_for_bases()
    stream.batch([in_order([subscribe("bo", "price > 5"), subscribe("bo")], [6, 6])])
    stream.wait_for_bases()
    stream.batch([in_order([publish("e2")], [7])])
    stream.stop()
    last = Commits(tmp_path).last()
    assert last.bases
    assert last.base_batch >= 0
    assert last.counts["subscriptions"] == 2
    assert delivered(tmp_path) == [
        ("e1", "cé", "matched"),
        ("e2", "bo", "matched"),
        ("e2", "cé", "matched"),
    ]


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 5)])
def test_a_stream_may_go_on_with_another_number_of_shards(tmp_path, before, after):
    ids = [f"s{number}" for number in range(20)]
    stream = stream_of(tmp_path, shards=before)
    stream.batch([in_order([subscribe(id) for id in ids], range(20))])
    stream.stop()
    stream = stream_of(tmp_path, shards=after)
    stream.batch([in_order([publish("e1")], [30])])
    stream.batch([in_order([Unsubscribe("s7"), publish("e2")], [31, 32])])
    stream.stop()
    assert Commits(tmp_path).last().shards == after
    gone = [("e2", "s7", "matched")]
    everyone = [(event, id, "matched") for event in ("e1", "e2") for id in ids]
    assert delivered(tmp_path) == sorted(set(everyone) - set(gone))


def test_segments_and_live_events_stay_few(tmp_path):
    stream = stream_of(tmp_path, fold_after=3)
    for number in range(20):
        happening = [publish(f"e{number}", until=99 * SECOND), subscribe(f"s{number}")]
        stream.batch([in_order(happening, [2 * number, 2 * number + 1])])
    stream.stop()
    last = Commits(tmp_path).last()
    assert len(last.segments) <= 8
    assert len(last.live) <= 4
    assert {one.name for one in (tmp_path / "segments").iterdir()} == {
        s.name for s in last.segments
    }
    assert {one.name for one in (tmp_path / "live").iterdir()} == {s.name for s in last.live}
    assert not list((tmp_path / "work").iterdir())
    expected = [(f"e{e}", f"s{s}", "added") for e in range(20) for s in range(e, 20)]
    expected += [(f"e{e}", f"s{s}", "matched") for e in range(20) for s in range(e)]
    assert delivered(tmp_path) == sorted(expected)


@given(places=st.lists(st.integers(0, 3), min_size=1, max_size=12))
@settings(max_examples=settings.default.max_examples // 5)
def test_a_batch_that_is_run_again_after_its_commit_changes_nothing(tmp_path_factory, places):
    path = tmp_path_factory.mktemp("stream")
    stream = stream_of(path)
    table = in_order(
        [subscribe("ana"), *(publish(f"e{n}") for n in places)], range(1 + len(places))
    )
    stream.batch([table])
    before = delivered(path)
    stream.loop([table], 0)
    stream.stop()
    assert delivered(path) == before


def test_bases_are_copied_to_a_local_cache_once_and_old_copies_go(tmp_path):
    path, cache = tmp_path / "pipeline", tmp_path / "cache"
    stream = stream_of(path, merge_least=1, local_cache=str(cache))
    for number in range(6):
        people = [subscribe(f"s{number}"), subscribe(f"t{number}"), publish(f"e{number}")]
        stream.batch([in_order(people, [3 * number, 3 * number + 1, 3 * number + 2])])
        stream.wait_for_bases()
    used = Commits(path).last()  # the end may adopt bases that nobody has used yet
    stream.stop()
    assert len(delivered(path)) == 2 * sum(range(1, 7))
    (own,) = cache.iterdir()
    assert 1 <= len(list(own.iterdir())) <= 2
    assert used.bases[0] in {copy.name for copy in own.iterdir()}


def test_events_that_depend_on_no_other_take_the_short_way_with_the_same_deliveries(tmp_path):
    people = [subscribe("ana"), subscribe("bo", "price > 5", until=4 * SECOND)]
    batches = [
        ([publish("e1", 9.0), *people, publish("e1", 1.0)], 2 * SECOND),
        ([publish("e2", 9.0), publish("e3", -1.0), subscribe("ana", "price < 0")], 4 * SECOND),
    ]
    found = []
    for way in ("short", "long"):
        stream = stream_of(
            tmp_path / way, has_order=False, has_time=False, keeps_events=way == "long"
        )
        for records, time in batches:
            stream.batch([in_order(records, [0] * len(records), time)])
        stream.stop()
        assert ("publishing" in stream.progress[-1].steps) == (way == "short")
        assert [one.records for one in stream.progress] == [4, 3]
        found.append((delivered(tmp_path / way), Commits(tmp_path / way).last().time))
    assert found[0] == found[1]
    assert found[0][0] == [
        ("e1", "ana", "matched"),
        ("e1", "ana", "matched"),
        ("e1", "bo", "matched"),
        ("e3", "ana", "matched"),
    ]


def test_a_committed_number_with_other_records_is_refused(tmp_path):
    stream = stream_of(tmp_path)
    stream.runner.plan = "offsets 1"
    table = in_order([subscribe("ana"), publish("e1")], [1, 2])
    stream.batch([table])
    stream.loop([table], 0)  # Spark replays what it does not know to be committed
    stream.runner.plan = "offsets 2"
    with pytest.raises(FolderError, match="other records under that number"):
        stream.loop([table], 0)
    with pytest.raises(FolderError, match="Spark's checkpoint is at batch 7"):
        stream.loop([table], 7)
    stream.stop()
    assert delivered(tmp_path) == [("e1", "ana", "matched")]


def test_a_worker_that_knew_another_stream_in_the_same_folder_starts_afresh(tmp_path):
    path = tmp_path / "pipeline"
    runner = InProcess()
    for people in ("old", "new"):
        shutil.rmtree(path, ignore_errors=True)
        stream = stream_of(path, fold_after=4, runner=runner)
        for number in range(8):
            stream.batch([in_order([subscribe(f"{people}{number}")], [number])])
        for number in range(8, 12):
            stream.batch([in_order([publish(f"e{number}")], [number])])
        stream.stop()
    assert {subscription for _, subscription, _ in delivered(path)} == {
        f"new{number}" for number in range(8)
    }
    assert len(delivered(path)) == 4 * 8


def test_a_record_too_far_ahead_of_the_batch_s_time_is_rejected_and_moves_nothing(tmp_path):
    stream = stream_of(tmp_path, most_ahead=timedelta(seconds=10))
    wrong = [publish("e2", time=99 * SECOND), subscribe("bo", time=99 * SECOND)]
    live = publish("e1", until=20 * SECOND, time=5 * SECOND)
    stream.batch([in_order([live, *wrong], [1, 2, 3], 5 * SECOND)])
    stream.batch([in_order([subscribe("ana")], [4], 6 * SECOND)])
    stream.stop()
    assert delivered(tmp_path) == [("e1", "ana", "added")]
    assert all("ahead" in reason for (reason,) in rows(tmp_path, "rejected", "reason"))
    assert len(rows(tmp_path, "rejected", "reason")) == 2


def test_moves_alone_lead_to_new_bases_too(tmp_path):
    stream = stream_of(tmp_path, merge_least=30, fold_after=4)
    stream.batch([in_order([subscribe("ana"), subscribe("bo")], [1, 2])])
    for number in range(60):
        stream.batch([in_order([Move("ana", Point(0.0, number / 100))], [3 + number])])
        stream.wait_for_bases()
    stream.stop()
    last = Commits(tmp_path).last()
    assert last.base_batch > 0
    assert sum(segment.applied for segment in last.segments) <= 32


def test_live_events_that_are_over_do_not_stay_for_one_that_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(bases, "LARGE_LIVE", 10)
    stream = stream_of(tmp_path)
    for number in range(12):
        short = [publish(f"e{number}-{n}", until=(number + 2) * SECOND) for n in range(20)]
        long = publish(f"job{number}", until=999 * SECOND, time=number * SECOND)
        stream.batch([in_order([long, *short], [number] * 21)])
    stream.stop()
    live = Commits(tmp_path).last().live
    assert sum(segment.events for segment in live) <= 4 * 21 + 12


NOBODY = [Unsubscribe(f"s{number}") for number in range(20)]


def test_a_source_most_of_whose_first_records_are_bad_stops_before_its_commit(tmp_path):
    stream = stream_of(tmp_path, frames=[FrameSettings()])
    for _ in range(2):  # started again it stops again, and nothing is lost
        with pytest.raises(RecordError) as caught:
            stream.batch([in_order([*NOBODY, subscribe("ana")], range(21))])
        stream.stop()
        stream.start()
    told = str(caught.value)
    assert told.startswith("records: 20 of the first 21 records are rejected (95%)")
    assert "20 because: no subscription has the id 's0'" in told
    assert "most_rejected = 1.0" in told
    assert Commits(tmp_path).last() is None
    stream.batch([in_order([subscribe(f"s{number}") for number in range(20)], range(20))])
    stream.batch([in_order([*NOBODY, publish("e1"), *NOBODY], range(20, 61))])  # half and half
    stream.batch([in_order([subscribe("ana"), publish("e2")], [70, 71])])
    stream.stop()
    assert delivered(tmp_path) == [("e2", "ana", "matched")]
    assert len(rows(tmp_path, "rejected", "reason")) == 20
    assert stream.progress[-2].reasons == {"no subscription has the id …": 20}


def test_one_bad_source_stops_a_stream_of_others_that_are_good(tmp_path):
    frames = FrameSettings("people"), FrameSettings("events", most_rejected=0.9)
    stream = stream_of(tmp_path, frames=frames)
    many = in_order([subscribe(f"s{number}") for number in range(100)], range(100))
    bad = in_order([publish(f"e{number}", until=0, time=SECOND) for number in range(20)], [99] * 20)

    def of(table, frame, name):
        table = table.set_column(
            table.column_names.index("source"), "source", pa.array([name] * len(table), pa.string())
        )
        return table.append_column("frame", pa.array([frame] * len(table), pa.int32()))

    with pytest.raises(RecordError, match=r"events: 20 of the first 20 records are rejected"):
        stream.batch([of(many, 0, "a"), of(bad, 1, "b")])
    stream.batch([of(many, 0, "a")])
    good = in_order(
        [publish(f"e{number}", until=9 * SECOND) for number in range(1_500)], [99] * 1_500
    )
    stream.batch([of(good, 1, "b")])
    stream.batch([of(bad, 1, "b")])  # these are no first records
    stream.stop()
    assert Commits(tmp_path).last().sources == {"people": (100, 0), "events": (1_500, 0)}


def test_any_number_of_bad_records_is_allowed_where_the_settings_say_so(tmp_path):
    stream = stream_of(tmp_path, frames=[FrameSettings(most_rejected=1.0)])
    stream.batch([in_order(NOBODY, range(20))])
    stream.stop()
    assert len(rows(tmp_path, "rejected", "reason")) == 20


def test_the_lag_is_none_where_no_record_told_its_time(tmp_path):
    stream = stream_of(tmp_path)
    stream.batch([in_order([subscribe("ana")], [1], 5 * SECOND)])
    stream.stop()
    assert stream.progress[0].lag == 0


def test_the_tables_have_the_place_that_the_user_gave_a_record(tmp_path):
    stream = stream_of(tmp_path)
    live = publish("e1", until=99 * SECOND)
    stream.batch([in_order([subscribe("ana"), live, publish("e2")], [100, 250, 300])])
    stream.batch([in_order([subscribe("bo"), subscribe("cé", "price > 9")], [301, 400])])
    stream.batch([in_order([publish("e1"), publish("e3")], [500, 399])])
    stream.stop()
    assert rows(tmp_path, "deliveries", "order", "event", "subscription", "change") == [
        (250, "e1", "ana", "matched"),
        (300, "e2", "ana", "matched"),
        (301, "e1", "bo", "added"),
    ]
    assert rows(tmp_path, "subscriptions", "order", "id") == [
        (100, "ana"),
        (301, "bo"),
        (400, "cé"),
    ]
    assert rows(tmp_path, "events", "order", "id") == [(250, "e1")]
    assert rows(tmp_path, "rejected", "order") == [(399,), (500,)]


@pytest.mark.parametrize("shards", [1, 2])
def test_the_place_that_the_user_gave_is_kept_where_shards_are_ranked_together(tmp_path, shards):
    stream = stream_of(tmp_path, plan="auto", shards=shards, top=1)
    people = [subscribe("ana"), subscribe("bo"), publish("e1")]
    stream.batch([in_order(people, [7, 8, 90])])
    stream.stop()
    assert rows(tmp_path, "deliveries", "order", "event") == [(90, "e1")]


def test_where_no_order_is_named_the_tables_say_of_none(tmp_path):
    stream = stream_of(tmp_path, has_order=False, has_time=False)
    stream.batch([in_order([subscribe("ana"), publish("e1")], [0, 0], SECOND)])
    stream.stop()
    assert rows(tmp_path, "deliveries", "order", "event") == [(None, "e1")]


def test_a_partitioned_stream_delivers_into_the_days_of_its_records(tmp_path):
    day = 86_400 * SECOND
    stream = stream_of(
        tmp_path, partition="date", keep_deliveries=timedelta(days=1), compact_after=1
    )
    for number in range(4):
        record = publish(f"e{number}", time=number * day + SECOND)
        first = [subscribe("ana", time=0)] if not number else []
        places = range(2 * number, 2 * number + len(first) + 1)
        stream.batch([in_order([*first, record], places)])
        stream._housekeeping._compaction.result()
    stream.stop()
    found = DeltaTable(tmp_path / "tables" / "deliveries").to_pyarrow_table().to_pylist()
    assert sorted((str(row["date"]), row["event"]) for row in found) == [
        ("1970-01-03", "e2"),
        ("1970-01-04", "e3"),
    ]


def test_runs_of_one_batch_each_look_after_the_tables_like_one_that_goes_on(tmp_path):
    day = 86_400 * SECOND
    for number in range(1, 5):
        stream = stream_of(tmp_path, partition="date", keep_deliveries=timedelta(days=1))
        first = [subscribe("ana", time=0)] if number == 1 else []
        places = range(2 * number, 2 * number + len(first) + 1)
        record = publish(f"e{number}", time=number * day + SECOND)
        stream.batch([in_order([*first, record], places)])
        stream.loop.close()
        stream._housekeeping.close(is_over=True)
        stream._lock.release()
    found = DeltaTable(tmp_path / "tables" / "deliveries").to_pyarrow_table().to_pylist()
    assert sorted(row["event"] for row in found) == ["e3", "e4"]
