"""Spark's own readers, their errors in the words of a source; texts as a frame of columns.

A stream's workers read texts themselves; `read_texts` is for queries other than a stream's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from stentor.errors import SettingsError
from stentor.model import Kind, Schema
from stentor.pipeline.secrets import resolved, without_secrets
from stentor.pipeline.sources import FIELDS, SourceSettings
from stentor.pipeline.sources.columns import Origin
from stentor.pipeline.sources.text_records import TextFormat, TextReader
from stentor.pipeline.sources.values import NUMBER_RANGE, SET, TIME_RANGE
from stentor.wire.events import NESTED
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits
from stentor.wire.rejected import raw_text

NOTHING_YET: Final = (
    "there is nothing to read yet; the first file tells what the columns are, so put one there, or "
    "correct the path"
)
_POINT: Final = T.StructType(
    [T.StructField("x", T.DoubleType()), T.StructField("y", T.DoubleType())]
)
_ATTRIBUTES: Final = {
    Kind.NUMBER: NUMBER_RANGE,
    Kind.TIMESTAMP: TIME_RANGE,
    Kind.STRING: T.StringType(),
    Kind.BOOLEAN: T.BooleanType(),
    Kind.POINT: _POINT,
    Kind.SET: SET,
}
_FIELDS: Final = {
    "op": T.StringType(),
    "id": T.StringType(),
    "order": T.LongType(),
    "time": T.TimestampType(),
    "until": T.TimestampType(),
    "weights": T.MapType(T.StringType(), T.DoubleType()),
    "expression": T.StringType(),
    "at": _POINT,
}
_ORIGIN: Final = {
    Origin.SOURCE: (T.StringType(), pa.string()),
    Origin.OFFSET: (T.LongType(), pa.int64()),
    Origin.RAW: (T.StringType(), pa.string()),
    Origin.PROBLEM: (T.StringType(), pa.string()),
}


def reader_of(
    spark: SparkSession, settings: SourceSettings, *, streaming: bool, **defaults: str
) -> Any:
    """Spark's reader with the options of *settings*, which go before the *defaults*."""
    reader: Any = spark.readStream if streaming else spark.read
    return reader.options(**defaults).options(**resolved(settings.options))


def file_reader(
    spark: SparkSession, settings: SourceSettings, *, streaming: bool, **defaults: str
) -> Any:
    """The same for files; with their limit where it is a stream."""
    reader = reader_of(spark, settings, streaming=streaming, **defaults)
    if streaming and settings.max_files is not None:
        reader = reader.option("maxFilesPerTrigger", settings.max_files)
    return reader


def load(reader: Any, of: str, settings: SourceSettings, no_jars: str | None = None) -> DataFrame:
    """What *reader* finds; Spark's own complaints in the words of a source.

    *no_jars* is what is said where Spark lacks the jars for it.
    """
    try:
        reader = reader.format(of)
        found: DataFrame = reader.load() if settings.path is None else reader.load(settings.path)
        return found
    except (AnalysisException, Py4JJavaError) as error:
        said = str(getattr(error, "java_exception", error))
        if no_jars and ("DATA_SOURCE_NOT_FOUND" in said or "find data source" in said):
            raise SettingsError(f"{settings.name}: {no_jars}") from None
        if "PATH_NOT_FOUND" in said or "UNABLE_TO_INFER_SCHEMA" in said:
            raise SettingsError(f"{settings.name}: {NOTHING_YET}") from None
        raise SettingsError(f"{settings.name}: {without_secrets(said.splitlines()[0])}") from None


def read_texts(
    df: DataFrame, texts: TextFormat, schema: Schema, limits: RecordLimits = DEFAULT_RECORD_LIMITS
) -> DataFrame:
    """The records of *df*, whose column `Origin.RAW` holds their texts; bad ones have a problem.

    The frame has each field under its own name, all attributes in one struct, numbers and
    timestamps as ranges, and the columns of `Origin`.
    """
    fields = [name for name in _FIELDS if name in FIELDS[texts.kind]]
    if texts.columns.order is None:
        fields.remove("order")
    if texts.columns.time is None:
        fields.remove("time")
    types = T.StructType([T.StructField(name, _FIELDS[name]) for name in fields])
    if texts.kind != "changes" and len(schema):
        inner = [
            T.StructField(name, _ATTRIBUTES[schema.kind(name) or Kind.STRING]) for name in schema
        ]
        types = types.add(NESTED, T.StructType(inner))
    for name, (of, _) in _ORIGIN.items():
        types = types.add(name, of)
    step = _ReadTexts(texts, schema.to_dict(), limits, tuple(types.names))
    return df.mapInArrow(step, types)


@dataclass(frozen=True)
class _ReadTexts:
    """What `mapInArrow` runs on each partition."""

    texts: TextFormat
    schema: dict[str, Any]
    limits: RecordLimits
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        reader = TextReader(self.texts, Schema.from_dict(self.schema), self.limits)
        for batch in batches:
            yield from self._read(reader, batch).to_batches()

    def _read(self, reader: TextReader, batch: Any) -> Any:
        sources = batch.column(Origin.SOURCE)
        bad: list[tuple[int, str, str]] = []
        table, rows = reader.read(
            batch.column(Origin.RAW).cast(pa.binary()),
            sources.to_pylist(),
            lambda row, reason, raw: bad.append((row, raw_text(raw), reason)),
        )
        every = np.concatenate([rows, np.array([row for row, _, _ in bad], np.int64)])
        order = pa.array(np.argsort(every, kind="stable"))
        origin = pa.array(np.sort(every))
        columns = {
            name: _extended(table[name], len(bad)).take(order) for name in table.column_names
        }
        has_offset = Origin.OFFSET in batch.schema.names
        offsets = batch.column(Origin.OFFSET) if has_offset else pa.nulls(len(batch), pa.int64())
        columns |= {Origin.SOURCE: sources.take(origin), Origin.OFFSET: offsets.take(origin)}
        for name, position in ((Origin.RAW, 1), (Origin.PROBLEM, 2)):
            cells = [None] * len(rows) + [one[position] for one in bad]
            columns[name] = pa.array(cells, pa.string()).take(order)
        return pa.table({name: columns[name] for name in self.names})


def _extended(column: Any, nulls: int) -> Any:
    return pa.chunked_array([*column.chunks, pa.nulls(nulls, column.type)]).combine_chunks()
