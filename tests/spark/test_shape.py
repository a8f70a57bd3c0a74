"""Columns of DataFrames as attributes: nested structs, arrays, points of two columns."""

# ruff: noqa: E501

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from stentor.pipeline import match
from stentor.pipeline.sources import SourceSettings, open_source
from stentor.pipeline.sources.shape import shaped
from stentor.wire.mapping import ColumnMapping

ROWS = [
    {"id": "e1", "lon": 1.0, "lat": 2.0, "Preis": 5, "who": {"age": 7, "home": {"x": 0.0, "y": 0.0}}, "tags": ["a"], "odd": [[1]]},
    {"id": "e2", "lon": None, "lat": None, "Preis": 6, "who": None, "tags": [], "odd": None},
]  # fmt: skip
MAPPING = ColumnMapping.of({"loc": ["lon", "lat"], "price": "Preis"})
WISHES = [
    ("near", "ST_DWithin(loc, ST_Point(1, 2), 10)"),
    ("old", "who.age > 5 AND ST_DWithin(who.home, ST_Point(0, 0), 10)"),
    ("tagged", "array_contains(tags, 'a')"),
    ("bare", "NOT array_contains(tags, 'a') AND price = 6"),
]
EXPECTED = [("e1", "near"), ("e1", "old"), ("e1", "tagged"), ("e2", "bare")]


def matches(spark: SparkSession, events: object) -> list[tuple[str, str]]:
    wishes = spark.createDataFrame(WISHES, "id string, expression string")
    found = match(events, wishes, index="scan").toArrow()  # type: ignore[arg-type]
    return sorted(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))


def test_a_frame_is_matched_by_what_is_nested_and_what_is_made(spark: SparkSession) -> None:
    frame = spark.createDataFrame(pa.Table.from_pylist(ROWS))
    assert matches(spark, shaped(frame, MAPPING)) == EXPECTED


def test_files_are_mapped(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "a.json").write_text("\n".join(map(json.dumps, ROWS)))
    (tmp_path / "parquet").mkdir()
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "parquet" / "a.parquet")
    for word in ("json", "parquet"):
        source = SourceSettings(
            format=word, kind="events", path=str(tmp_path / word), attributes=MAPPING
        )
        assert matches(spark, open_source(spark, source, streaming=False).df) == EXPECTED, word
