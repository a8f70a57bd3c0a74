"""Of which kinds the attributes of a source are, where nobody declared them.

Looked up once, by the driver: what the pipeline began with, or what the first records hold.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

from stentor.errors import SettingsError, StentorError
from stentor.model import Range, Schema
from stentor.model.record import Publish
from stentor.pipeline.commit.manifests import Commits
from stentor.pipeline.frames.attribute_types import kind_of_type, kinds_of_types
from stentor.pipeline.frames.columns import FIELDS
from stentor.pipeline.sources.readers import load, reader_of
from stentor.pipeline.sources.settings import RANGE, Source, What
from stentor.wire.events import RESERVED
from stentor.wire.formats import ReadSettings, record_from_object
from stentor.wire.json_text import from_json
from stentor.wire.records import Op

#: How many lines the kinds are inferred from.
SAMPLE: Final = 1_000

_DEFAULT_OP: Final[dict[What, Op | None]] = {
    "events": "publish",
    "changes": "subscribe",
    "records": None,
}


def committed_kinds(path: Path) -> dict[str, str] | None:
    """The kinds of attributes that the pipeline *path* began with; None before its first batch."""
    last = Commits(path).last()
    if last is None:
        return None
    return kinds_of_types(T.StructType.fromJson(last.settings["attributes"]))


def inferred_kinds(spark: SparkSession, source: Source) -> dict[str, str]:
    """The kinds of the attributes of *source*, from the first records that are there."""
    if source.kind == "changes":
        return {}
    if source.format == "kafka":
        raise SettingsError(f"{source.name}: declare the schema; it is not inferred from Kafka")
    kinds = _csv_kinds(spark, source) if source.format == "csv" else _json_kinds(spark, source)
    if not kinds:
        raise SettingsError(
            f"{source.name}: no attribute was found in the first {SAMPLE:,} records; declare the "
            "schema, or put events there before the stream is started"
        )
    return kinds


def _json_kinds(spark: SparkSession, source: Source) -> dict[str, str]:
    """What `stentor.wire` learns of the first lines; bad ones teach nothing."""
    lines = load(reader_of(spark, source), "text", source).limit(SAMPLE)
    settings = ReadSettings(format="json", default_op=_DEFAULT_OP[source.kind])
    schema, ranges = Schema(), set()
    for row in lines.collect():
        try:
            record = record_from_object(from_json(row.value.encode()), schema, settings)
        except StentorError:
            continue
        if isinstance(record, Publish):
            values = record.event.attributes.items()
            ranges |= {name for name, value in values if isinstance(value, Range)}
    taken = {source.columns.of(field) for field in FIELDS[source.kind]}
    return {
        name: f"{kind}{RANGE if name in ranges else ''}"
        for name in schema
        if (kind := schema.kind(name)) is not None and name not in taken
    }


def _csv_kinds(spark: SparkSession, source: Source) -> dict[str, str]:
    sample = reader_of(spark, source).options(inferSchema="true", mode="DROPMALFORMED")
    taken = {*RESERVED, *(source.columns.of(field) for field in FIELDS[source.kind])}
    return {
        one.name: str(kind_of_type(one.dataType))
        for one in load(sample, "csv", source).schema
        if one.name not in taken and kind_of_type(one.dataType) is not None
    }
