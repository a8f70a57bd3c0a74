"""`start`: what it takes, what it refuses, and what a folder without a batch leaves open."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from stentor.errors import FolderError, SettingsError
from stentor.pipeline import StreamSettings, start, tables
from stentor.pipeline.commit.manifests import Commits
from stentor.pipeline.stream import start as held_folders
from stentor.pipeline.stream.runner import SparkRunner

AT_ONCE = {"availableNow": True}


def lines(spark: SparkSession, folder: Path, columns: str, *records: dict[str, Any]) -> DataFrame:
    """A stream of *records*, in files of *folder*."""
    folder.mkdir(exist_ok=True)
    for record in records:
        file = folder / f"{len(list(folder.iterdir()))}.jsonl"
        file.write_text(json.dumps(record))
    return spark.readStream.schema(columns).json(str(folder))


def test_a_schema_may_change_until_the_first_batch(spark: SparkSession, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    events = lines(spark, folder, "id string, price double, until timestamp")
    start(events, None, out, trigger=AT_ONCE).awaitTermination()
    assert Commits(out).last() is None
    event = {"id": "e1", "cost": 5, "until": "2099-01-01T00:00:00Z"}
    events = lines(spark, folder, "id string, cost double, until timestamp", event)
    start(events, None, out, trigger=AT_ONCE).awaitTermination()
    (row,) = tables.read(spark, out, "events").collect()
    assert row.attributes.cost == 5.0
    events = lines(spark, folder, "id string, cost string, until timestamp")
    with pytest.raises(SettingsError, match="column 'cost': expected a number"):
        start(events, None, out, trigger=AT_ONCE)


def test_tables_without_manifests_are_not_written_over(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    change = {"id": "ana", "expression": "TRUE"}
    changes = lines(spark, tmp_path / "in", "id string, expression string", change)
    start(None, changes, out, trigger=AT_ONCE).awaitTermination()
    for file in (out / "manifests").iterdir():
        file.unlink()
    with pytest.raises(FolderError, match=r"holds rows, but no manifest .* restore"):
        start(None, changes, out, trigger=AT_ONCE)
    assert tables.read(spark, out, "subscriptions").count() == 1


def test_columns_of_other_names_are_told_by_a_mapping(spark: SparkSession, tmp_path: Path) -> None:
    changes = lines(
        spark,
        tmp_path / "changes",
        "who string, wish string, n long",
        {"who": "ana", "wish": "price < 9", "n": 1},
    )
    events = lines(
        spark,
        tmp_path / "events",
        "who string, price double, n long",
        {"who": "e1", "price": 5, "n": 2},
    )
    columns = {"id": "who", "expression": "wish"}
    query = start(events, changes, tmp_path / "out", columns=columns, order="n", trigger=AT_ONCE)
    query.awaitTermination()
    (row,) = tables.read(spark, tmp_path / "out", "deliveries").collect()
    assert (row.event, row.subscription, row.seq) == ("e1", "ana", 2)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            {"expresion": "wish"},
            r"'expresion' is no field of a record \(did you mean 'expression'\?\)",
        ),
        ({"colour": "wish"}, "'colour' is no field of a record; there are at, expression, id"),
        ({"id": 7}, "columns, id: expected the name of a column, got 7"),
    ],
)
def test_a_misspelled_field_is_named(
    spark: SparkSession, tmp_path: Path, columns: dict[str, Any], sentence: str
) -> None:
    events = lines(spark, tmp_path / "in", "id string")
    with pytest.raises(SettingsError, match=sentence):
        start(events, None, tmp_path / "out", columns=columns)
    assert not (tmp_path / "out").exists()


def test_keyword_arguments_win_over_settings(spark: SparkSession, tmp_path: Path) -> None:
    events = lines(spark, tmp_path / "in", "id string", {"id": "e1"})
    settings = StreamSettings(index="scan", plan="sharded", shards=3)
    query = start(events, None, tmp_path / "out", trigger=AT_ONCE, settings=settings, shards=2)
    query.awaitTermination()
    last = Commits(tmp_path / "out").last()
    assert last is not None
    assert (last.index, last.shards) == ("scan", 2)


def test_a_query_that_has_ended_is_not_kept(spark: SparkSession, tmp_path: Path) -> None:
    events = lines(spark, tmp_path / "in", "id string")
    for _ in range(2):
        start(events, None, tmp_path / "out", trigger=AT_ONCE).awaitTermination()
    held_folders.wait_for_ended(tmp_path / "out")
    assert tmp_path / "out" not in held_folders.RUNNING


def test_a_batch_of_no_known_query_is_refused() -> None:
    context = SimpleNamespace(getLocalProperty=lambda name: None)
    spark: Any = SimpleNamespace(sparkContext=context)
    with pytest.raises(SettingsError, match=r"which query .* PYSPARK_PIN_THREAD"):
        _ = SparkRunner(spark).query
