"""A stream through real Spark equals one engine that is fed record by record."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from stentor.demo.afternoon import KINDS
from stentor.pipeline import start, tables
from stentor.pipeline.sources import Columns, SourceSettings, open_source
from stentor.pipeline.sources.frames import Frame
from stentor.pipeline.stream.settings import StreamSettings
from stentor.pipeline.stream.start import run
from tests.programs.afternoons import (
    SOURCE_KINDS,
    afternoon,
    batches_of,
    expected_tables,
    fits_columns,
    found_tables,
    write_json,
    write_parquet,
)

#: So small that all of it happens within a few batches.
UPKEEP = {"fold_after": 2, "merge_least": 20, "merge_share": 0.1, "compact_after": 2}
REPLICATED: dict[str, Any] = {"plan": "replicated"}
SHARDED: dict[str, Any] = {"plan": "sharded", "shards": 3}


def json_frame(spark: SparkSession, folder: Path, files: int) -> Frame:
    source = SourceSettings(
        format="json",
        kind="records",
        path=str(folder),
        columns=Columns(order="seq", time="time"),
        max_files=files,
    )
    return open_source(spark, source, SOURCE_KINDS)


def read_all(spark: SparkSession, folder: Path, path: Path, **settings: Any) -> None:
    """Stream all JSON lines of *folder*, a file at a time."""
    chosen = StreamSettings(has_order=True, has_time=True, **UPKEEP, **settings)
    query = run(
        [json_frame(spark, folder, 1)], path, chosen, schema=KINDS, trigger={"availableNow": True}
    )
    query.awaitTermination()


def read_all_parquet(spark: SparkSession, folder: Path, path: Path, **settings: Any) -> None:
    """Stream all Parquet files of *folder* through the public door, a file at a time."""
    schema = spark.read.parquet(str(folder)).schema
    records = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    query = start(
        None,
        None,
        path,
        records=records,
        schema=KINDS,
        order="seq",
        time="time",
        trigger={"availableNow": True},
        settings=StreamSettings(**UPKEEP),
        **settings,
    )
    query.awaitTermination()


@pytest.mark.parametrize(("top", "plan"), [(None, REPLICATED), (2, SHARDED)])
def test_json_lines_in_micro_batches_with_a_restart_equal_the_engine(
    spark: SparkSession, tmp_path: Path, plan: dict[str, Any], top: int | None
) -> None:
    batches = batches_of(afternoon(seed=3), 6)
    for stop in (4, 6):
        write_json(tmp_path / "in", batches[:stop])
        read_all(spark, tmp_path / "in", tmp_path / "out", top=top, **plan)
    expected = expected_tables(batches, top=top)
    assert all(map(len, expected))
    assert found_tables(tmp_path / "out") == expected


@pytest.mark.parametrize(
    ("top", "first", "then"), [(None, SHARDED, REPLICATED), (2, REPLICATED, SHARDED)]
)
def test_parquet_files_and_another_plan_after_a_restart_equal_the_engine(
    spark: SparkSession,
    tmp_path: Path,
    top: int | None,
    first: dict[str, Any],
    then: dict[str, Any],
) -> None:
    records = [record for record in afternoon(seed=4) if fits_columns(record)]
    batches = batches_of(records, 6)
    for stop, plan in ((3, first), (6, then)):
        write_parquet(tmp_path / "in", batches[:stop])
        read_all_parquet(spark, tmp_path / "in", tmp_path / "out", top=top, **plan)
    expected = expected_tables(batches, top=top)
    assert all(map(len, expected))
    assert found_tables(tmp_path / "out") == expected


def test_lines_that_are_no_json_are_rejected_as_they_stand(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = [
        '{"seq": 1, "op": "subscribe", "id": "ana", "expression": "price < 5", "time": 1}',
        '{"seq": 2, "op": "publish", "id": "e1"',
        "nonsense",
        '{"seq": 4, "op": "publish", "id": "e2", "price": 4, "time": 2}',
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("\n".join(lines))
    read_all(spark, tmp_path / "in", tmp_path / "out")
    rejected = tables.read(spark, tmp_path / "out", "rejected").collect()
    assert {row.record for row in rejected} == set(lines[1:3])
    assert all(row.source.endswith("a.jsonl") and "JSON" in row.reason for row in rejected)
    delivered = tables.read(spark, tmp_path / "out", "deliveries").collect()
    assert [(row.event, row.subscription, row.seq) for row in delivered] == [("e2", "ana", 2)]
