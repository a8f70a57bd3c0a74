"""The tables as a Spark user reads them."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from stentor.errors import FolderError, SettingsError
from stentor.pipeline import tables
from stentor.pipeline.tables.delta import DeltaTables
from stentor.pipeline.tables.files import TABLES, TIME, table_schemas, write_file, write_files
from tests.programs.commit_batches import SCHEMAS, new_manifest, rows, write_batch


def test_spark_reads_what_is_committed_and_nothing_else(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "a {folder}, with * and ?"
    opened = DeltaTables(path, SCHEMAS)
    types = {table: tables.read(spark, path, table).schema for table in TABLES}
    assert tables.read(spark, path, "events").collect() == []
    for batch in range(3):
        opened.roll_forward([new_manifest(batch, files=write_batch(path, batch))])
    opened.compact(limit=3)
    write_file(path, "events", rows("events", 0, 5), 3)  # not committed
    assert {table: tables.read(spark, path, table).schema for table in TABLES} == types
    assert tables.read(spark, str(path), "rejected").count() == 20
    events = tables.read(spark, path, "events").orderBy("seq")
    assert events.select("seq", "batch", "attributes.price").collect() == [
        (n, n // 20, float(n)) for n in range(60)
    ]
    first = events.selectExpr("unix_micros(time) AS time", "id").first()
    assert first == (0, "0")


def test_spark_reads_a_partitioned_table_with_its_days(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a {folder}, with * and ?"
    opened = DeltaTables(path, table_schemas(pa.struct([("price", pa.float64())]), has_dates=True))
    assert tables.read(spark, path, "events").collect() == []
    days = pa.array([0, 86_400_000_000, None], pa.int64()).cast(TIME)
    new = rows("deliveries", 0, 3).set_column(5, "time", days)
    files = write_files(path, "deliveries", new, 0)
    opened.roll_forward([new_manifest(0, files={"deliveries": files})])
    read = tables.read(spark, path, "deliveries")
    assert read.columns[-1] == "date"
    found = read.selectExpr("seq", "`order`", "CAST(date AS string)").orderBy("seq").collect()
    assert found == [(0, 0, "1970-01-01"), (1, 1, "1970-01-02"), (2, 2, None)]


def test_a_table_to_which_others_gave_features_that_hide_rows_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    opened = DeltaTables(tmp_path, SCHEMAS)
    opened.roll_forward([new_manifest(0, files=write_batch(tmp_path, 0))])
    log = tmp_path / "tables" / "events" / "_delta_log"
    features = ["deletionVectors"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    known = {"readerFeatures": features, "writerFeatures": features}
    (log / f"{2:020d}.json").write_text(json.dumps({"protocol": {**protocol, **known}}))
    with pytest.raises(FolderError, match=r"does not know \(deletionVectors\); drop them"):
        tables.read(spark, tmp_path, "events")
    assert tables.read(spark, tmp_path, "deliveries").count() == 20


def test_an_unknown_table_and_a_folder_that_is_no_pipeline_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=r"no table 'matches'; a pipeline has deliveries, "):
        tables.read(spark, tmp_path, "matches")
    with pytest.raises(FolderError, match=r"has no table 'events', so it is no pipeline"):
        tables.read(spark, tmp_path, "events")
