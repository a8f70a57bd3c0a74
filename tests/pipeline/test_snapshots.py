"""Subscriptions in a folder: a shard opens into what an engine would hold, and shares its pages."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.encoding.template import SubscriptionHeads
from stentor.encoding.texts import TextEncoder
from stentor.engine.endings import Endings
from stentor.engine.ids import StringArrays
from stentor.errors import FolderError
from stentor.index.catalog import structure_class
from stentor.index.storage.arrays import new_folder
from stentor.model import Schema
from stentor.model.values.time import NEVER
from stentor.pipeline.snapshots import (
    open_shard,
    read_snapshot,
    shard_of,
    write_manifest,
    write_shard,
)
from stentor.wire.tables import read_event_table

KINDS = {"price": "number", "text": "string", "stock": "number"}


def strings(values):
    return StringArrays.of(pa.array(values, pa.large_string()))


def build(folder, expressions, until=None):
    """A shard of subscriptions s0, s1, … that ask *expressions*."""
    schema = Schema.declare(KINDS)
    ids = [f"s{row}" for row in range(len(expressions))]
    ends = np.full(len(ids), NEVER) if until is None else np.array(until)
    asked = SubscriptionHeads(ids, np.full((len(ids), 2), np.nan), ends)
    encoded = TextEncoder(schema).encode(expressions, asked)
    assert not encoded.errors
    parts = strings(ids), strings(expressions)
    meta = {"schema": schema.to_dict(), "batch": 7}
    write_shard(encoded.columns, *parts, structure_class("scan"), folder, meta)
    return folder


def wanted_by(shard, **event):
    table = pa.Table.from_pylist([{"id": "e", **event}])
    pairs = shard.state.index.match(read_event_table(table, shard.schema).columns)
    return shard.state.subscribers.ids.take(pairs.rows).to_pylist()


def test_a_shard_opens_into_a_state_that_answers(tmp_path):
    shard = open_shard(build(tmp_path / "a", ["price < 3", "has_any(text, 'ipad')", "price > 9"]))
    assert shard.count == 3
    assert shard.meta["batch"] == 7
    assert wanted_by(shard, price=1.0, text="iPad") == ["s0", "s1"]
    assert shard.state.subscribers.row("s2") == 2
    assert shard.state.texts[1] == "has_any(text, 'ipad')"


def test_an_opened_shard_takes_changes_in_a_layer_above(tmp_path):
    folder = build(tmp_path / "a", ["price < 3", "price > 9"])
    shard = open_shard(folder)
    shard.state.remove([0])
    assert wanted_by(shard, price=1.0) == []
    assert wanted_by(open_shard(folder), price=1.0) == ["s0"]


def test_a_shard_knows_what_its_subscriptions_mention_and_search(tmp_path):
    shard = open_shard(build(tmp_path / "a", ["price < 3", "has_any(text, 'ipad')", "text = 'a'"]))
    assert shard.mentioned == {"price", "text"}
    assert shard.searched == {"text"}
    assert open_shard(build(tmp_path / "b", ["text = 'a'"])).searched == frozenset()


def test_a_shard_of_nothing_answers_nothing(tmp_path):
    shard = open_shard(build(tmp_path / "a", []))
    assert shard.count == 0
    assert wanted_by(shard, price=1.0) == []


def test_subscriptions_of_an_opened_shard_end_when_they_should(tmp_path):
    shard = open_shard(build(tmp_path / "a", ["price < 3"] * 4, [50, NEVER, 20, 50]))
    state = shard.state
    state.time = 20
    state.expire()
    assert len(state.subscribers) == 3
    state.time = 50
    state.expire(most=1)
    assert len(state.subscribers) == 2
    state.expire()
    assert state.subscribers.row("s1") == 1
    assert len(state.subscribers) == 1


@given(
    opened=st.lists(st.sampled_from([1, 2, 3, 9, NEVER])),
    added=st.lists(st.sampled_from([1, 2, 3, 9, NEVER])),
    most=st.none() | st.integers(1, 3),
)
def test_every_row_that_ends_is_told_once_in_time(opened, added, most):
    expiry = Endings()
    expiry.watch(np.array(opened, np.int64))
    expiry.add(range(len(opened), len(opened) + len(added)), added)
    until = [*opened, *added]
    told = []
    for time in (0, 2, 3, 8):
        while found := expiry.over(time, most):
            assert most is None or len(found) <= most
            assert all(until[row] <= time for row in found)
            told += found
        assert sorted(told) == [row for row, end in enumerate(until) if end <= time]


@given(ids=st.lists(st.text(min_size=1), unique=True), shards=st.integers(1, 9))
def test_an_id_has_one_shard_whoever_stands_beside_it(ids, shards):
    together = shard_of(strings(ids), shards).tolist()
    assert together == [shard_of(strings([id]), shards)[0] for id in ids]
    assert all(0 <= shard < shards for shard in together)


def test_ids_spread_over_shards():
    counts = np.bincount(shard_of(strings([f"user-{n}" for n in range(8000)]), 8))
    assert counts.min() > 850


@given(values=st.lists(st.text()), start=st.integers(0, 5))
def test_strings_come_back_from_arrays_whatever_they_are_cut_from(values, start):
    whole = pa.chunked_array([pa.array(values, pa.string()), pa.array(["x", "y"])])
    cut = whole.slice(start)
    assert StringArrays.of(cut).arrow.to_pylist() == cut.to_pylist()
    array = pa.array(values, pa.large_string()).slice(min(start, len(values)))
    assert StringArrays.of(array).arrow.to_pylist() == array.to_pylist()


# Snapshots of several shards.


@pytest.fixture
def snapshot(tmp_path):
    """Two shards that mention different attributes."""
    with new_folder(tmp_path / "snap") as fresh:
        build(fresh / "left", ["price < 3"])
        build(fresh / "right", ["stock = 1", "stock = 2"])
        counts = {"count": 3, "rejected": 1}
        schema, mentioned = Schema.declare(KINDS), {"price", "stock"}
        write_manifest(fresh, schema, ["left", "right"], mentioned, **counts)
    return tmp_path / "snap"


def test_a_snapshot_says_what_it_holds(snapshot):
    found = read_snapshot(snapshot)
    assert (found.count, found.rejected, found.shards) == (3, 1, ("left", "right"))
    assert found.mentioned == {"price", "stock"}
    assert found.schema.to_dict() == Schema.declare(KINDS).to_dict()


def test_a_snapshot_with_a_file_cut_short_or_lost_is_noticed(snapshot):
    files = [path for path in snapshot.rglob("*") if path.is_file()]
    assert len(files) > 40
    for path in files[::5]:
        content = path.read_bytes()
        path.write_bytes(content[:-1])
        with pytest.raises(FolderError):
            read_snapshot(snapshot)
        path.unlink()
        with pytest.raises(FolderError):
            read_snapshot(snapshot)
        path.write_bytes(content)
    assert read_snapshot(snapshot).count == 3


def test_a_newer_snapshot_is_a_clear_error(snapshot):
    manifest = snapshot / "left" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": 999}))
    with pytest.raises(FolderError, match=r"version 999.*upgrade Stentor"):
        read_snapshot(snapshot)


def test_a_shard_is_no_snapshot(snapshot):
    with pytest.raises(FolderError, match="expected 'snapshot'"):
        read_snapshot(snapshot / "left")


PRIVATE = """
import sys
from pathlib import Path
import pyarrow.compute
from stentor.pipeline.snapshots import open_shard

def anonymous():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous"))

before = anonymous()
shard = open_shard(Path(sys.argv[1]))
print(shard.count, anonymous() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_opening_a_shard_copies_nothing_into_the_process(tmp_path):
    folder = build(tmp_path / "a", [f"price < {row} AND text = 'a'" for row in range(60_000)])
    bytes_on_disk = sum(path.stat().st_size for path in folder.rglob("*.npy"))
    assert bytes_on_disk > 10_000_000
    done = subprocess.run(
        [sys.executable, "-c", PRIVATE, str(folder)], capture_output=True, text=True, check=True
    )
    count, kilobytes = map(int, done.stdout.split())
    assert count == 60_000
    assert kilobytes * 1024 < bytes_on_disk / 10
