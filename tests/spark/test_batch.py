"""Matching as a join: what it gives is what an engine gives, when it runs, and what it refuses."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812

from stentor.errors import FolderError, RecordError, SettingsError
from stentor.language.evaluate import evaluate
from stentor.language.printer import to_text
from stentor.model import Constant, Kind, Point, Range
from stentor.pipeline import build_snapshot, match
from stentor.pipeline.batch_matching import Matches, k_best
from stentor.testing import grid, strategies

#: An example is a whole job, and none of them is made smaller.
few_large = settings(
    max_examples=3,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)

EVENTS = "id string, price double, text string, loc array<double>, unused string"
SUBSCRIPTIONS = "id string, expression string, at array<double>"


def rows_of(matches):
    return sorted(tuple(row) for row in matches.collect())


def jobs(spark):
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


@pytest.fixture(scope="module")
def events(spark):
    rows = [
        ("e1", 10.0, "a red iPad", [0.0, 0.0], "x"),
        ("e2", 500.0, "blue", None, "x"),
        ("e3", None, "iPad", [1.0, 1.0], None),
    ]
    return spark.createDataFrame(rows, EVENTS).cache()


@pytest.fixture(scope="module")
def subscriptions(spark):
    rows = [
        ("ana", "price < 100", None),
        ("bo", "has_all(text, 'ipad') AND ST_DWithin(loc, here(), 1000)", [0.0, 0.0]),
        ("cy", "price > 1", None),
    ]
    return spark.createDataFrame(rows, SUBSCRIPTIONS).cache()


EXPECTED = [("e1", "ana", 1.0), ("e1", "bo", 2.0), ("e1", "cy", 1.0), ("e2", "cy", 1.0)]


def more(subscriptions, *rows):
    return subscriptions.union(
        subscriptions.sparkSession.createDataFrame(list(rows), subscriptions.schema)
    )


# What it gives.


def drawn_events():
    """Many events with ids of their own; only the price is a range, so that columns have a type."""

    def with_plain_values(event, number):
        plain = {
            name: value
            if name == "price" or not isinstance(value, Range)
            else Constant(value.kind, value.low)
            for name, value in event.attributes.items()
        }
        return replace(event, id=f"e{number}", attributes=plain)

    times = st.none() | strategies.instants()
    drawn = st.lists(st.tuples(strategies.events(), times), min_size=25, max_size=40)
    return drawn.map(
        lambda found: [(with_plain_values(one, n), time) for n, (one, time) in enumerate(found)]
    )


def drawn_subscriptions():
    drawn = st.lists(strategies.subscriptions(until=True), min_size=25, max_size=40)
    return drawn.map(lambda found: [replace(one, id=f"s{n}") for n, one in enumerate(found)])


ARROW = {
    Kind.NUMBER: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
    Kind.POINT: pa.list_(pa.float64()),
}
TYPES = {
    **{name: ARROW[kind] for name, kind in grid.KINDS.items()},
    "price": pa.struct({"low": pa.float64(), "high": pa.float64()}),
    "home": pa.struct({"lon": pa.float64(), "lat": pa.float64()}),
}


def cell(name, value):
    if value is None:
        return None
    if isinstance(value, Point):
        return {"lon": value.x, "lat": value.y} if name == "home" else [value.x, value.y]
    if name == "price":
        low, high = (value.low, value.high) if isinstance(value, Range) else (value.value,) * 2
        return {"low": low, "high": high}
    if value.kind is Kind.BOOLEAN:
        return value.value != 0.0
    return int(value.value) if value.kind is Kind.TIMESTAMP else value.value


def frame_of_events(spark, events):
    columns = {
        "id": pa.array([event.id for event, _ in events]),
        "time": pa.array([time for _, time in events], ARROW[Kind.TIMESTAMP]),
        "weights": pa.array(
            [list(event.weights.items()) or None for event, _ in events],
            pa.map_(pa.string(), pa.float64()),
        ),
    }
    for name, kind in TYPES.items():
        cells = [cell(name, event.attributes.get(name)) for event, _ in events]
        columns[name] = pa.array(cells, kind)
    return spark.createDataFrame(pa.table(columns))


def frame_of_subscriptions(spark, subscriptions):
    table = pa.table(
        {
            "id": [one.id for one in subscriptions],
            "expression": [to_text(one.expression) for one in subscriptions],
            "at": pa.array([one.at and list(one.at) for one in subscriptions], ARROW[Kind.POINT]),
            "until": pa.array([one.until for one in subscriptions], ARROW[Kind.TIMESTAMP]),
        }
    )
    return spark.createDataFrame(table)


def defined(events, subscriptions):
    """The matches by definition."""
    found = []
    for event, time in events:
        for one in subscriptions:
            if time is None or one.until is None or time < one.until:
                evaluation = evaluate(one.expression, event, here=one.at)
                if evaluation.truth:
                    found.append((event.id, one.id, evaluation.score))
    return sorted(found)


def best(matches, k):
    by_event = {}
    for event, id, score in matches:
        by_event.setdefault(event, []).append((-score, id))
    return sorted(
        (event, id, -score) for event, found in by_event.items() for score, id in sorted(found)[:k]
    )


@few_large
@given(
    events=drawn_events(),
    subscriptions=drawn_subscriptions(),
    partitions=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    shards=st.integers(1, 3),
)
def test_matches_are_those_of_the_definition(
    spark, tmp_path_factory, events, subscriptions, partitions, shards
):
    expected = defined(events, subscriptions)
    assume(len(expected) > 20)
    published = frame_of_events(spark, events).repartition(partitions[0])
    asked = frame_of_subscriptions(spark, subscriptions).repartition(partitions[1])
    assert rows_of(match(published, asked, index="scan", schema=grid.KINDS)) == expected
    assert rows_of(match(published, asked, top=2)) == best(expected, 2)
    path = tmp_path_factory.mktemp("batch") / "snapshot"
    built = build_snapshot(asked, path, schema=published, shards=shards)
    assert (built.count, len(built.shards)) == (len(subscriptions), shards)
    assert rows_of(match(published, snapshot=path)) == expected
    assert rows_of(match(published, snapshot=built, top=3)) == best(expected, 3)


@given(
    found=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from("aäbcé"), st.sampled_from([0.0, 1.0, 2.0])),
        unique_by=lambda one: one[:2],
    ),
    cuts=st.lists(st.integers(0, 9), max_size=2),
    k=st.integers(1, 3),
)
def test_the_best_of_several_shards_are_the_best_of_all(found, cuts, k):
    parts = np.array_split(np.arange(len(found)), len(cuts) + 1)
    ids = pa.array([f"e{number}" for number in range(4)], pa.large_string())
    matches = [
        Matches(
            ids,
            np.array([found[row][0] for row in rows], np.int64),
            pa.array([found[row][1] for row in rows], pa.large_string()),
            np.array([found[row][2] for row in rows]),
        )
        for rows in parts
    ]
    table = k_best(matches, k).batch().to_pylist()
    expected = best([(f"e{event}", id, score) for event, id, score in found], k)
    assert sorted(tuple(row.values()) for row in table) == expected
    order = [(row["event"], -row["score"], row["subscription"]) for row in table]
    assert order == sorted(order)


def test_attributes_may_stand_in_one_struct_and_ids_be_numbers(spark, subscriptions):
    rows = [(7, (10.0, "iPad", [0.0, 0.0]))]
    kinds = "number long, attributes struct<price: double, text: string, loc: array<double>>"
    nested = spark.createDataFrame(rows, kinds)
    expected = [("7", id, score) for event, id, score in EXPECTED if event == "e1"]
    assert rows_of(match(nested, subscriptions, id="number")) == expected


def test_nobody_asks_and_nothing_matches(events, subscriptions, tmp_path):
    nobody = subscriptions.where("id = 'nobody'")
    assert rows_of(match(events, nobody)) == []
    assert rows_of(match(events.limit(0), subscriptions)) == []
    built = build_snapshot(nobody, tmp_path / "s", schema=events, shards=2)
    assert (built.count, built.mentioned) == (0, frozenset())
    assert rows_of(match(events, snapshot=built)) == []


def test_a_subscription_that_mentions_nothing_wants_every_event(events, spark, tmp_path):
    all_of_them = spark.createDataFrame([("all", "true")], "id string, expression string")
    expected = [("e1", "all", 0.0), ("e2", "all", 0.0), ("e3", "all", 0.0)]
    assert rows_of(match(events, all_of_them)) == expected
    build_snapshot(all_of_them, tmp_path / "s", schema=events)
    assert rows_of(match(events, snapshot=tmp_path / "s")) == expected


# When it runs.


def test_no_job_runs_before_an_action(spark, events, subscriptions):
    before = jobs(spark)
    matches = match(events, subscriptions)
    matches.where("score > 1").explain()
    assert jobs(spark) == before
    assert rows_of(matches) == EXPECTED
    assert jobs(spark) > before


def test_a_subscription_that_nobody_can_read_fails_only_when_it_is_read(events, subscriptions):
    broken = subscriptions.withColumn("expression", F.raise_error(F.lit("unreadable")))
    matches = match(events, broken)
    with pytest.raises(Exception, match="unreadable"):
        matches.collect()


def test_actions_share_an_index_until_the_subscriptions_change(spark, events, tmp_path):
    kinds, path = "id string, expression string", str(tmp_path / "subscriptions")
    spark.createDataFrame([("ana", "price < 100")], kinds).coalesce(1).write.parquet(path)
    matches = match(events, spark.read.schema(kinds).parquet(path), scratch=tmp_path / "scratch")
    assert matches.count() == 1
    assert matches.where("score > 0").count() == 1
    assert [one.name[:4] for one in (tmp_path / "scratch").glob("*/*/*")] == ["run-"]
    spark.createDataFrame([("bo", "price < 100")], kinds).write.mode("append").parquet(path)
    spark.catalog.refreshByPath(path)
    assert matches.select("event").distinct().count() == 1
    assert matches.count() == 2


def test_only_columns_that_are_mentioned_carry_data(spark, events, subscriptions, tmp_path):
    """An integer that no double holds would be refused if anybody looked at it."""
    odd = events.coalesce(1).withColumn("odd", F.lit(2**53 + 1))
    assert rows_of(match(odd, subscriptions)) == EXPECTED
    built = build_snapshot(subscriptions, tmp_path / "s", schema=odd)
    assert built.mentioned == {"price", "text", "loc"}
    plan = match(odd, snapshot=built)._jdf.queryExecution().optimizedPlan().toString()
    assert "loc" in plan
    assert "odd" not in plan
    asking = more(subscriptions, ("dd", "odd = 1", None))
    with pytest.raises(PySparkException, match="'e1': odd: an integer that a double cannot hold"):
        match(odd, asking).count()


# What is bad.


def test_bad_subscriptions_are_named_or_left_out(events, subscriptions, tmp_path):
    asked = more(
        subscriptions, ("dd", "prise < 3", None), ("ee", "price <", None), (None, "", None)
    )
    with pytest.raises(PySparkException) as told:
        match(events, asked).collect()
    for part in (
        "3 of the subscriptions",
        "'dd'",
        "did you mean 'price'?",
        "'ee'",
        "without an id",
    ):
        assert part in str(told.value)
    assert "Traceback" not in str(told.value)
    assert rows_of(match(events, asked, rejected="ignore")) == EXPECTED
    with pytest.raises(RecordError, match="3 of the subscriptions cannot be used"):
        build_snapshot(asked, tmp_path / "s", schema=events)
    assert list(tmp_path.iterdir()) == []
    built = build_snapshot(asked, tmp_path / "s", schema=events, rejected="ignore")
    assert (built.count, built.rejected) == (3, 3)


def test_an_id_that_comes_twice_is_refused_in_each_of_its_rows(events, subscriptions, tmp_path):
    asked = more(subscriptions, ("ana", "price > 1000", None)).repartition(3)
    problem = r"2 of the subscriptions.*\n  'ana': 2 subscriptions have this id"
    with pytest.raises(PySparkException, match=problem):
        match(events, asked).collect()
    with pytest.raises(RecordError, match=problem):
        build_snapshot(asked, tmp_path / "s", schema=events, shards=2)
    without = [one for one in EXPECTED if one[1] != "ana"]
    assert rows_of(match(events, asked, rejected="ignore")) == without
    built = build_snapshot(asked, tmp_path / "s", schema=events, shards=2, rejected="ignore")
    assert (built.count, built.rejected) == (2, 2)
    assert rows_of(match(events, snapshot=built)) == without


def test_bad_events_are_named_or_left_out(spark, events, subscriptions):
    bad = [("e9", 10.0, "iPad", [0.0, 99.0], None), (None, 10.0, "", None, None)]
    published = events.union(spark.createDataFrame(bad, EVENTS))
    with pytest.raises(PySparkException, match=r"'e9': loc: not on the globe|without an id: id:"):
        match(published, subscriptions).collect()
    assert rows_of(match(published, subscriptions, rejected="ignore")) == EXPECTED


def test_few_of_many_bad_rows_are_told(spark, events):
    asked = spark.range(2000).selectExpr("string(id) id", "'prise < 3' expression")
    with pytest.raises(PySparkException, match="2,000 of the subscriptions") as told:
        match(events, asked).collect()
    assert str(told.value).count("no attribute 'prise'") == 5
    assert "…" in str(told.value)


# What is refused before anything runs.


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"top": 0}, "top is 0"),
        ({"top": 2.0}, "top is 2.0"),
        ({"rejected": "drop"}, "expected 'raise' or 'ignore'"),
        ({"index": "skan"}, "did you mean 'scan'"),
        ({"id": "ID of it"}, "no column 'ID of it'"),
        ({"schema": {"price": "number", "prise": "number"}}, "no column 'prise'"),
        ({"schema": {"price": "string"}}, "expected a string.*got double"),
        ({"schema": {"price": "money"}}, "unknown type 'money'"),
        ({"schema": 7}, "say what the attributes are"),
        ({"snapshot": "somewhere"}, "one of the two"),
    ],
)
def test_a_wrong_setting_is_refused_at_once(spark, events, subscriptions, settings, problem):
    before = jobs(spark)
    with pytest.raises(SettingsError, match=problem):
        match(events, subscriptions, **settings)
    assert jobs(spark) == before


def test_wrong_frames_are_refused_at_once(spark, events, subscriptions, tmp_path):
    for asked, problem in (
        (subscriptions.drop("expression"), "no column 'expression'"),
        (subscriptions.drop("id"), "no column 'id'"),
        (subscriptions.withColumn("at", F.lit("here")), "column 'at': expected a place"),
        (subscriptions.withColumnRenamed("at", "untill"), "no column 'untill'"),
        (subscriptions.toPandas(), "expected a Spark DataFrame, got DataFrame"),
        (None, "one of the two"),
    ):
        with pytest.raises(SettingsError, match=problem):
            match(events, asked)
    with pytest.raises(SettingsError, match="this one is a stream"):
        match(spark.readStream.format("rate").load(), subscriptions)
    with pytest.raises(SettingsError, match="say what the attributes are"):
        build_snapshot(subscriptions, tmp_path / "s", schema=None)
    with pytest.raises(SettingsError, match="shards is 0"):
        build_snapshot(subscriptions, tmp_path / "s", schema=events, shards=0)


# Snapshots.


@pytest.fixture
def snapshot(events, subscriptions, tmp_path):
    return build_snapshot(subscriptions, tmp_path / "snapshot", schema=events, shards=2)


def test_events_must_have_what_a_snapshot_asks_about(events, snapshot):
    with pytest.raises(SettingsError, match="no column 'price'"):
        match(events.drop("price"), snapshot=snapshot)
    with pytest.raises(SettingsError, match=r"'price': expected a number.*got string"):
        match(events.withColumn("price", F.lit("much")), snapshot=snapshot)
    with pytest.raises(SettingsError, match="that it was built with"):
        match(events, snapshot=snapshot, index="scan")
    assert rows_of(match(events.drop("unused"), snapshot=snapshot)) == EXPECTED


def test_a_bad_snapshot_is_refused_at_once(events, snapshot, tmp_path):
    with pytest.raises(FolderError, match="there is no folder"):
        match(events, snapshot=tmp_path / "nowhere")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.txt").write_text("years of work")
    with pytest.raises(FolderError, match="another program's"):
        match(events, snapshot=tmp_path / "foreign")
    file = next(snapshot.path.rglob("columns.low.npy"))
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    with pytest.raises(FolderError, match="is damaged"):
        match(events, snapshot=snapshot.path)
    file.write_bytes(content)
    manifest = snapshot.path / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": 999}))
    with pytest.raises(FolderError, match=r"version 999.*upgrade Stentor"):
        match(events, snapshot=snapshot.path)


def test_a_snapshot_replaces_another_and_nothing_else(events, subscriptions, snapshot, tmp_path):
    earlier = match(events, snapshot=snapshot)
    build_snapshot(subscriptions.where("id = 'cy'"), snapshot.path, schema=events)
    assert rows_of(match(events, snapshot=snapshot.path)) == [
        one for one in EXPECTED if one[1] == "cy"
    ]
    with pytest.raises(PySparkException, match="was replaced or removed"):
        earlier.collect()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(FolderError, match="not replaced"):
        build_snapshot(subscriptions, tmp_path / "mine", schema=events)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_snapshot_that_cannot_be_finished_leaves_the_old_one(events, subscriptions, snapshot):
    broken = subscriptions.withColumn("expression", F.raise_error(F.lit("unreadable")))
    with pytest.raises(PySparkException, match="unreadable"):
        build_snapshot(broken, snapshot.path, schema=events)
    assert rows_of(match(events, snapshot=snapshot.path)) == EXPECTED
    assert [path.name for path in snapshot.path.parent.iterdir()] == ["snapshot"]
