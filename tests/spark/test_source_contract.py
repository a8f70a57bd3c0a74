"""What every kind of source promises: read once, read as a stream, bad records by their origin."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from stentor.errors import SettingsError
from stentor.pipeline import tables
from stentor.pipeline.sources import SOURCES, SourceSettings, open_source
from stentor.pipeline.sources.frames import canonical
from stentor.pipeline.stream.settings import StreamSettings
from stentor.pipeline.stream.start import run
from tests.spark.test_kafka import produce

KINDS = {"price": "number", "brand": "string"}
GOOD = [{"id": "a", "price": 1.0, "brand": "x"}, {"id": "b", "price": 2.5, "brand": "y"}]
BAD = {"id": "", "price": 3.0, "brand": "z"}
ROWS = [*GOOD, BAD]
Written = tuple[SourceSettings, str]
Fixture = Callable[[Path, pytest.FixtureRequest], Written]


def in_folder(word: str, write: Callable[[Path], Any]) -> Fixture:
    def made(folder: Path, request: pytest.FixtureRequest) -> Written:
        path = folder / "in"
        path.mkdir()
        write(path)
        settings = SourceSettings(format=word, kind="events", path=str(path))
        return settings, path.name

    return made


def kafka_topic(folder: Path, request: pytest.FixtureRequest) -> Written:
    address, name = (request.getfixturevalue(one) for one in ("servers", "topic"))
    produce(address, name, ROWS)
    return SourceSettings(format="kafka", kind="events", topic=name, servers=address), name


CSV = "id,price,brand\na,1.0,x\nb,2.5,y\n,3.0,z\n"
FIXTURES: dict[str, Fixture] = {
    "json": in_folder(
        "json", lambda path: (path / "a.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    ),
    "csv": in_folder("csv", lambda path: (path / "a.csv").write_text(CSV)),
    "parquet": in_folder(
        "parquet", lambda path: pq.write_table(pa.Table.from_pylist(ROWS), path / "a.parquet")
    ),
    "delta": in_folder("delta", lambda path: write_deltalake(path, pa.Table.from_pylist(ROWS))),
    "kafka": kafka_topic,
}


def test_every_source_has_a_fixture() -> None:
    assert list(FIXTURES) == list(SOURCES)


@pytest.mark.parametrize("word", SOURCES)
def test_a_source_is_read_once(
    spark: SparkSession, tmp_path: Path, word: str, request: pytest.FixtureRequest
) -> None:
    settings, origin = FIXTURES[word](tmp_path, request)
    rows = canonical(open_source(spark, settings, KINDS, streaming=False)).collect()
    read = {row.id: row for row in rows if row.problem is None and row.id}
    assert sorted(read) == ["a", "b"]
    assert len(rows) == 3
    assert all(origin in row.source for row in rows)
    brands = {id: row.attributes.brand for id, row in read.items()}
    assert brands == {"a": "x", "b": "y"}


@pytest.mark.parametrize("word", SOURCES)
def test_a_source_is_read_as_a_stream_and_a_bad_record_is_told_by_its_origin(
    spark: SparkSession, tmp_path: Path, word: str, request: pytest.FixtureRequest
) -> None:
    settings, origin = FIXTURES[word](tmp_path, request)
    if word == "delta":
        with pytest.raises(SettingsError, match="Spark needs Delta's own jars"):
            open_source(spark, settings, KINDS)
        return
    frame = open_source(spark, settings, KINDS)
    query = run([frame], tmp_path / "out", StreamSettings(), KINDS, trigger={"availableNow": True})
    query.awaitTermination()
    [bad] = tables.read(spark, tmp_path / "out", "rejected").collect()
    assert origin in bad.source
    assert bad.reason.startswith("id: ")
