"""Matching as a join: what it gives is what an engine gives, when it runs, and what it refuses."""

import json
import shutil

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812

from stentor.errors import FolderError, RecordError, SettingsError
from stentor.pipeline import build_snapshot, match
from stentor.wire.table_writers import subscriptions_to_table
from tests.pipeline import drawn_matches
from tests.pipeline.drawn_matches import best, defined
from tests.support import grid

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


@pytest.fixture(scope="module")
def snapshot(events, subscriptions, tmp_path_factory):
    """One that tests do not change."""
    path = tmp_path_factory.mktemp("snapshots") / "snapshot"
    return build_snapshot(subscriptions, path, schema=events, shards=2)


EXPECTED = [("e1", "ana", 1.0), ("e1", "bo", 2.0), ("e1", "cy", 1.0), ("e2", "cy", 1.0)]


def more(subscriptions, *rows):
    return subscriptions.union(
        subscriptions.sparkSession.createDataFrame(list(rows), subscriptions.schema)
    )


# What it gives.


@settings(max_examples=2, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(events=drawn_matches.events(25, 40), subscriptions=drawn_matches.subscriptions(25, 40))
def test_matches_are_those_of_the_definition(spark, tmp_path_factory, events, subscriptions):
    expected = defined(events, subscriptions)
    assume(len(expected) > 20)
    published = spark.createDataFrame(drawn_matches.table_of(events)).repartition(3)
    asked = spark.createDataFrame(subscriptions_to_table(subscriptions)).repartition(2)
    assert rows_of(match(published, asked, index="scan", schema=grid.KINDS)) == expected
    path = tmp_path_factory.mktemp("batch") / "snapshot"
    built = build_snapshot(asked, path, schema=published, shards=3)
    assert (built.count, len(built.shards)) == (len(subscriptions), 3)
    assert rows_of(match(published, snapshot=path)) == expected
    assert rows_of(match(published, snapshot=built, top=3)) == best(expected, 3)


def test_attributes_may_stand_in_one_struct_and_ids_be_numbers(spark, events, subscriptions):
    flat = events.where("id = 'e1'").withColumn("number", F.lit(7)).drop("id")
    nested = flat.select("number", F.struct("price", "text", "loc").alias("attributes"))
    expected = [("7", id, score) for event, id, score in EXPECTED if event == "e1"]
    assert rows_of(match(flat, subscriptions, id="number")) == expected
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
    told = "'e1': odd: 9007199254740993 is an integer that a double cannot hold"
    with pytest.raises(PySparkException, match=told):
        match(odd, asking).count()


# What is bad.


def test_bad_subscriptions_are_named_or_left_out(events, subscriptions, tmp_path):
    bad = ("dd", "prise < 3", None), (None, "", None), ("ana", "price > 1000", None)
    asked = more(subscriptions, *bad).coalesce(1)
    with pytest.raises(PySparkException) as told:
        match(events, asked).count()
    for part in ("4 of the subscriptions", "did you mean 'price'?", "2 subscriptions have this id"):
        assert part in str(told.value)
    assert "Traceback" not in str(told.value)
    without = [one for one in EXPECTED if one[1] != "ana"]
    assert rows_of(match(events, asked, rejected="ignore")) == without
    with pytest.raises(RecordError, match="2 of the subscriptions cannot be used"):
        build_snapshot(asked, tmp_path / "s", schema=events)
    twice = asked.where("expression like 'price%'")
    with pytest.raises(RecordError, match="'ana': 2 subscriptions have this id"):
        build_snapshot(twice, tmp_path / "s", schema=events, shards=2)
    assert list(tmp_path.iterdir()) == []
    built = build_snapshot(asked, tmp_path / "s", schema=events, rejected="ignore")
    assert (built.count, built.rejected) == (2, 4)


def test_bad_events_are_named_or_left_out(spark, events, snapshot):
    bad = [("e9", 10.0, "iPad", [0.0, 99.0], None), (None, 10.0, "", None, None)]
    published = events.union(spark.createDataFrame(bad, EVENTS)).coalesce(1)
    named = r"'e9': loc: \[0.0, 99.0\] is not on the globe"
    with pytest.raises(PySparkException, match=named) as told:
        match(published, snapshot=snapshot).count()
    assert "without an id" in str(told.value)
    assert "Traceback" not in str(told.value)
    assert rows_of(match(published, snapshot=snapshot, rejected="ignore")) == EXPECTED


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
    path = shutil.copytree(snapshot.path, tmp_path / "copy")
    file = next(path.rglob("columns.low.npy"))
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    with pytest.raises(FolderError, match="is damaged"):
        match(events, snapshot=path)
    file.write_bytes(content)
    manifest = path / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": 999}))
    with pytest.raises(FolderError, match=r"version 999.*upgrade Stentor"):
        match(events, snapshot=path)


def test_a_snapshot_replaces_another_and_nothing_else(events, subscriptions, snapshot, tmp_path):
    path = shutil.copytree(snapshot.path, tmp_path / "snapshot")
    broken = subscriptions.coalesce(1).withColumn("expression", F.raise_error(F.lit("unreadable")))
    with pytest.raises(PySparkException, match="unreadable"):
        build_snapshot(broken, path, schema=events)
    earlier = match(events.coalesce(1), snapshot=path)
    assert rows_of(earlier) == EXPECTED
    build_snapshot(subscriptions.where("id = 'cy'"), path, schema=events)
    assert rows_of(match(events, snapshot=path)) == [one for one in EXPECTED if one[1] == "cy"]
    assert [one.name for one in tmp_path.iterdir()] == ["snapshot"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(FolderError, match="not replaced"):
        build_snapshot(subscriptions, tmp_path / "mine", schema=events)
    assert [one.name for one in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
