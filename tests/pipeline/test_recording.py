"""A pipeline's tables as a recording: every row once, in order, and no more than is asked for."""

from collections import Counter
from itertools import pairwise

import pytest

pytest.importorskip("deltalake")

from stentor.demo.afternoon import Afternoon
from stentor.errors import FolderError
from stentor.pipeline.tables.recording import START, read_recording
from tests.support.recorded_tables import table_rows, write_tables

RECORDS = list(Afternoon(people=40, shops=8, events=60, moves=120, leaving=0.2, seed=5).records())
KINDS = ("subscribe", "move", "unsubscribe", "event", "matched", "added", "removed")


@pytest.fixture(scope="module")
def rows():
    return table_rows(RECORDS)


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded")
    write_tables(path, rows)
    return path


def deliveries_of(recording):
    ids, events = recording["ids"], recording["events"]
    for kind, _, one, *rest in recording["rows"]:
        if kind == 4:
            yield from ((events[one], ids[other], "matched") for other in rest[0])
        elif kind > 4:
            yield from ((events[other], ids[one], KINDS[kind]) for other in rest[0])


def test_a_recording_has_every_row_of_the_tables_once(folder, rows):
    recording = read_recording(folder)
    expected = Counter((r["event"], r["subscription"], r["change"]) for r in rows["deliveries"])
    assert expected
    assert {change for _, _, change in expected} == {"matched", "added", "removed"}
    assert Counter(deliveries_of(recording)) == expected
    changes = Counter(KINDS[row[0]] for row in recording["rows"] if row[0] < 4)
    assert changes == Counter(r["change"] for r in rows["subscriptions"]) + Counter(
        event=len(rows["events"])
    )
    assert recording["left_out"] == 0


def test_rows_are_in_the_order_in_which_records_happened(folder):
    recording = read_recording(folder)
    times = [row[1] for row in recording["rows"]]
    assert times[0] == 0
    assert all(before <= after for before, after in pairwise(times))
    known = set()
    for kind, _, one, *_ in recording["rows"]:
        if kind == 0:
            known.add(one)
        elif kind in (1, 2):
            assert one in known


def test_an_event_tells_where_it_is_and_what_it_says(folder, rows):
    recording = read_recording(folder)
    by_id = {row["id"]: row for row in rows["events"]}
    for _, time, event, longitude, latitude, until, attributes in (
        row for row in recording["rows"] if row[0] == 3
    ):
        expected = by_id[recording["events"][event]]
        where = expected["attributes"]["loc"]
        assert [longitude, latitude] == attributes["loc"] == [where["x"], where["y"]]
        assert attributes["text"] == expected["attributes"]["text"]
        assert "price" not in attributes or attributes["price"] is not None
        assert recording["start"] + time == expected["time"] // 1000
        assert recording["start"] + until == expected["until"] // 1000


def test_what_comes_later_is_read_from_the_cursor_on(rows, tmp_path):
    early = {name: [r for r in some if r["batch"] < 2] for name, some in rows.items()}
    late = {name: [r for r in some if r["batch"] >= 2] for name, some in rows.items()}
    write_tables(tmp_path, early)
    first = read_recording(tmp_path)
    again = read_recording(tmp_path, first["cursor"])
    assert again["rows"] == []
    assert again["cursor"] == first["cursor"]
    write_tables(tmp_path, late)
    second = read_recording(tmp_path, first["cursor"])
    both = Counter(deliveries_of(first)) + Counter(deliveries_of(second))
    assert both == Counter(deliveries_of(read_recording(tmp_path, START)))
    assert second["rows"]


def test_of_a_large_table_the_newest_files_are_read(rows, tmp_path):
    for batch in range(max(r["batch"] for r in rows["subscriptions"]) + 1):
        write_tables(tmp_path, {n: [r for r in s if r["batch"] == batch] for n, s in rows.items()})
    some = read_recording(tmp_path, most=150)
    everything = read_recording(tmp_path)
    assert 0 < len(some["rows"]) < len(everything["rows"])
    assert some["left_out"] > 0
    assert some["cursor"] == everything["cursor"]
    assert some["start"] + some["rows"][-1][1] == everything["start"] + everything["rows"][-1][1]


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(FolderError, match="holds no table subscriptions"):
        read_recording(tmp_path)
