"""The steps of a batch match, as workers run them, without Spark around them."""

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.errors import FolderError
from stentor.pipeline.batch.build import (
    KEPT_RUNS,
    Builder,
    BuildOne,
    BuildShards,
    EncodeSubscriptions,
    read_reports,
)
from stentor.pipeline.batch.matching import MatchEvents
from stentor.wire.limits import DEFAULT_RECORD_LIMITS
from stentor.wire.table_writers import subscriptions_to_table
from tests.pipeline import drawn_matches
from tests.pipeline.drawn_matches import best, defined, table_of
from tests.support import grid

SCHEMA = grid.schema().to_dict()
PRICES = {"plane": False, "declared": True, "attributes": [
    {"name": "price", "kind": "number", "where": "here"},
    {"name": "stock", "kind": "number", "where": "here"},
]}  # fmt: skip


@pytest.fixture(autouse=True)
def _not_waiting_for_the_disk(monkeypatch):
    """Nothing here cuts the power."""
    monkeypatch.setattr("os.fsync", lambda _: None)


def run(step, tables):
    """The rows that *step* gives for partitions, a table each."""
    batches = [batch for table in tables for batch in step(iter(table.to_batches()))]
    return [row for batch in batches for row in batch.to_pylist()]


def parts(table, count):
    """*table* in so many partitions."""
    cuts = np.linspace(0, table.num_rows, count + 1).astype(int).tolist()
    return [table.slice(start, stop - start) for start, stop in pairwise(cuts)]


def built_one(scratch, partitions, *, schema=SCHEMA, rejected="raise"):
    """What `BuildOne` tells of subscriptions in *partitions*."""
    encode = EncodeSubscriptions(schema, str(scratch), 1, DEFAULT_RECORD_LIMITS)
    names = tuple(one["name"] for one in schema["attributes"])
    build = BuildOne(Builder(schema, "scan", str(scratch)), names, rejected)
    rows = [
        pa.Table.from_batches([one]) for part in partitions for one in encode(part.to_batches())
    ]
    found = run(build, [pa.concat_tables(rows)]) if rows else run(build, [pa.table({})])
    return found[0] if found else None


def built_shards(folder, partitions, shards, *, rejected="raise"):
    """What `BuildShards` tells of subscriptions in *partitions*."""
    encode = EncodeSubscriptions(SCHEMA, str(folder / "parts"), shards, DEFAULT_RECORD_LIMITS)
    encoded = read_reports(run(encode, partitions))
    builder = Builder(SCHEMA, "auto", str(folder / "parts"))
    build = BuildShards(builder, encoded.parts, str(folder), rejected)
    return run(build, [pa.table({"id": range(shards)})])


def matches(events, *, shards=(), scratch="", top=None, rejected="raise"):
    step = MatchEvents(tuple(map(str, shards)), str(scratch), top, rejected, DEFAULT_RECORD_LIMITS)
    return sorted(tuple(row.values()) for row in run(step, [events]))


def with_run(events, run):
    return events.append_column("run", pa.array([run] * events.num_rows, pa.int64()))


def priced(**prices):
    return pa.table({"id": list(prices), "expression": [f"price < {p}" for p in prices.values()]})


@settings(max_examples=40)
@given(
    events=drawn_matches.events(0, 8),
    subscriptions=drawn_matches.subscriptions(0, 8),
    partitions=st.integers(1, 3),
    shards=st.integers(1, 3),
    k=st.integers(1, 3),
)
def test_matches_are_those_of_the_definition(events, subscriptions, partitions, shards, k):
    expected = defined(events, subscriptions)
    asked = parts(subscriptions_to_table(subscriptions), partitions)
    published = table_of(events)
    with TemporaryDirectory() as folder:
        path = Path(folder)
        one = built_one(path / "scratch", asked)
        if subscriptions:
            timed = with_run(published, one["run"])
            assert matches(timed, scratch=path / "scratch") == expected
            assert matches(timed, scratch=path / "scratch", top=k) == best(expected, k)
        else:
            assert one is None
        found = built_shards(path, asked, shards)
        assert sum(row["count"] for row in found) == len(subscriptions)
        folders = [path / row["shard"] for row in found]
        assert matches(published, shards=folders) == expected
        assert matches(published, shards=folders, top=k) == best(expected, k)


def test_a_build_says_which_attributes_are_mentioned(tmp_path):
    row = built_one(tmp_path, [priced(ana=1, bo=2)], schema=PRICES)
    assert row["mentioned"] == [True, False]
    assert row["problem"] is None


def test_the_same_subscriptions_are_one_run_and_others_another(tmp_path):
    first = built_one(tmp_path, [priced(ana=1), priced(bo=2)], schema=PRICES)
    again = built_one(tmp_path, [priced(bo=2), priced(ana=1)], schema=PRICES)
    other = built_one(tmp_path, [priced(ana=1, bo=3)], schema=PRICES)
    assert first["run"] == again["run"] != other["run"]
    assert sorted(one.name[:4] for one in tmp_path.iterdir()) == ["run-", "run-"]


def test_a_task_that_is_tried_again_finds_what_it_built(tmp_path):
    encode = EncodeSubscriptions(PRICES, str(tmp_path), 1, DEFAULT_RECORD_LIMITS)
    [encoded] = encode(priced(ana=1).to_batches())
    build = BuildOne(Builder(PRICES, "auto", str(tmp_path)), ("price",), "raise")
    assert run(build, [encoded_table := pa.Table.from_batches([encoded])])
    assert list(tmp_path.glob("*.part")) == []
    assert run(build, [encoded_table]) == run(build, [encoded_table])


def test_a_build_that_another_action_finished_first_is_dropped(tmp_path, monkeypatch):
    real = Builder.build

    def build_twice(self, part, folder):
        monkeypatch.undo()
        built_one(tmp_path, [priced(ana=1)], schema=PRICES)
        real(self, part, folder)

    monkeypatch.setattr(Builder, "build", build_twice)
    row = built_one(tmp_path, [priced(ana=1)], schema=PRICES)
    assert row["run"] is not None
    assert [one.name[:4] for one in tmp_path.iterdir()] == ["run-"]


def test_few_earlier_runs_are_kept(tmp_path):
    runs = [built_one(tmp_path, [priced(ana=n)], schema=PRICES)["run"] for n in range(6)]
    assert len(list(tmp_path.iterdir())) == 1 + KEPT_RUNS < len(runs)
    event = pa.table({"id": ["e"], "attributes": [{"price": -1.0}]})
    assert matches(with_run(event, runs[-1]), scratch=tmp_path) == [("e", "ana", 1.0)]
    with pytest.raises(FolderError, match="replaced or removed"):
        matches(with_run(event, runs[0]), scratch=tmp_path)


BAD = pa.table(
    {
        "id": pa.array(["ana", "ana", None, b"\xff", "cy", "dd"], pa.binary()).view(pa.string()),
        "expression": [
            "price < 1",
            "price < 2",
            "price < 3",
            "price < 4",
            "prise < 5",
            "price < 6",
        ],
        "at": pa.array([None, None, None, None, None, [200.0, 0.0]], pa.list_(pa.float64())),
    }
)


def test_bad_subscriptions_are_told_or_left_out(tmp_path):
    rows = [*parts(BAD, 3), priced(ee=7)]
    problem = built_one(tmp_path, rows, schema=PRICES)["problem"]
    assert problem.startswith("6 of the subscriptions cannot be used")
    assert "'ana': 2 subscriptions have this id" in problem
    assert "did you mean 'price'?" in problem
    assert "'dd': at: [200.0, 0.0] is not on the globe" in problem
    run = built_one(tmp_path, rows, schema=PRICES, rejected="ignore")["run"]
    event = pa.table({"id": ["e"], "attributes": [{"price": 0.0}]})
    assert matches(with_run(event, run), scratch=tmp_path) == [("e", "ee", 1.0)]


def test_a_bad_row_is_told_though_all_others_were_built_before(tmp_path):
    assert built_one(tmp_path, [priced(ana=1)], schema=PRICES)["problem"] is None
    bad = pa.table({"id": ["bo"], "expression": ["price <"]})
    assert "'bo'" in built_one(tmp_path, [priced(ana=1), bad], schema=PRICES)["problem"]


def test_bad_events_are_told_or_left_out(tmp_path):
    run = built_one(tmp_path, [priced(ana=5)], schema=PRICES)["run"]
    events = pa.table(
        {"id": ["e", None, "f"], "attributes": [{"price": p} for p in (1, 1, 2**53 + 1)]}
    )
    [(problem, subscription, score)] = matches(with_run(events, run), scratch=tmp_path)
    assert subscription is score is None
    assert problem.startswith("2 of the 3 events of a batch cannot be used")
    told = "'f': price: 9007199254740993 is an integer that a double cannot hold"
    assert told in problem
    usable = matches(with_run(events, run), scratch=tmp_path, rejected="ignore")
    assert usable == [("e", "ana", 1.0)]


def test_many_matches_come_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("stentor.pipeline.batch.matching.MOST_ROWS", 7)
    run = built_one(tmp_path, [priced(**{f"s{n}": n for n in range(20)})], schema=PRICES)["run"]
    events = pa.table({"id": ["e", "f"], "attributes": [{"price": -1.0}, {"price": 9.5}]})
    step = MatchEvents((), str(tmp_path), None, "raise", DEFAULT_RECORD_LIMITS)
    sizes = [batch.num_rows for batch in step(with_run(events, run).to_batches())]
    assert sum(sizes) == 30
    assert max(sizes) <= 7
