"""A stream whose declared schema has new attributes after a restart."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from stentor.errors import SettingsError
from stentor.pipeline import tables
from stentor.pipeline.config.file import load, start_from

FILE = """
[[source]]
format = "json"
kind = "changes"
path = "changes"
[[source]]
format = "json"
kind = "events"
path = "events"
[schema]
{schema}
[tables]
path = "out"
[trigger]
available_now = true
"""


class Grown:
    """A stream of lines of JSON in *folder*."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        for name in ("changes", "events"):
            (folder / name).mkdir()

    def run(self, schema: str, changes: list[Any], events: list[Any]) -> None:
        number = len(list((self.folder / "events").iterdir()))
        for name, records in (("changes", changes), ("events", events)):
            lines = "".join(f"{json.dumps(one)}\n" for one in records)
            (self.folder / name / f"{number}.jsonl").write_text(lines)
        (self.folder / "stentor.toml").write_text(FILE.format(schema=schema))
        config = load(self.folder / "stentor.toml")
        start_from(config, self.spark).awaitTermination()

    def rows(self, table: str, *names: str) -> list[tuple[Any, ...]]:
        found = tables.read(self.spark, self.folder / "out", table).select(*names).collect()
        return sorted(tuple(row) for row in found)


def test_new_attributes_come_at_a_restart_and_a_changed_type_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = Grown(spark, tmp_path)
    until = "2100-01-01T00:00:00Z"
    ana = {"op": "subscribe", "id": "ana", "expression": "price < 3"}
    stream.run('price = "number"', [ana], [{"id": "e1", "price": 1, "until": until}])
    bo = {"op": "subscribe", "id": "bo", "expression": "size > 3"}
    grown = 'price = "number"\nsize = "number"'
    stream.run(grown, [bo], [{"id": "e2", "price": 1, "size": 4, "until": until}])
    stream.run(grown, [], [{"id": "e3", "price": 9, "size": 4}])
    assert stream.rows("deliveries", "event", "subscription") == [
        *(("e1", "ana"), ("e2", "ana"), ("e2", "bo"), ("e3", "bo"))
    ]
    sizes = stream.rows("events", "id", "attributes.size")
    assert sizes == [("e1", None), ("e2", 4.0)]
    with pytest.raises(SettingsError, match=r"declared as a string now.*another name"):
        stream.run('price = "string"', [], [])
