"""Where records come from: JSON lines, CSV, Parquet, Delta and Kafka, as frames for `run`.

    files of JSON lines ──text──▶ json_frames ─┐
    Kafka (JSON values) ──text──▶ json_frames ─┤
    CSV ──────────cells─────────▶ csv_frames ──┼──▶ Frame
    Parquet, Delta ──────────────columns───────┘

Each row carries where it came from: its file, or `kafka:topic/partition`, and its offset there (of
Parquet the row's number, of Kafka the message's offset).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from stentor.errors import SettingsError
from stentor.pipeline.frames.attribute_types import types_of_kinds
from stentor.pipeline.frames.canonical import Frame
from stentor.pipeline.frames.columns import Origin, alike_names, column_of
from stentor.pipeline.sources.csv import CORRUPT, csv_frame
from stentor.pipeline.sources.json_lines import json_frame
from stentor.pipeline.sources.kinds import inferred_kinds
from stentor.pipeline.sources.readers import load, reader_of
from stentor.pipeline.sources.settings import Columns, Source

_MISMATCH: Final = "PARQUET_COLUMN_DATA_TYPE_MISMATCH"


def open_source(
    spark: SparkSession,
    source: Source,
    kinds: Mapping[str, str] | None = None,
    *,
    streaming: bool = True,
) -> Frame:
    """The records of *source* as a frame; a stream, or what is there now.

    *kinds* are those of the attributes ("number", …, "number range"). Without them they are
    inferred from the records that are there: once, by the driver.
    """
    if source.format in ("parquet", "delta"):
        df = _columns_with_origin(spark, source, streaming)
        return Frame(df, source.kind, source.name, source.columns)
    types = types_of_kinds(inferred_kinds(spark, source) if kinds is None else kinds)
    alike = alike_names(spark, types.names, source.name)
    if alike:
        raise SettingsError("\n".join(alike))
    if source.format == "csv":
        df = csv_frame(_csv_cells(spark, source, streaming), types, source.kind, source.columns)
    else:
        df = json_frame(_texts(spark, source, streaming), types, source.kind, source.columns)
    # The fields now have their own names, and what the source does not say stays open.
    columns = Columns(
        order=None if source.columns.order is None else "order",
        time=None if source.columns.time is None else "time",
    )
    return Frame(df, source.kind, source.name, columns)


def explained(error: BaseException) -> SettingsError | None:
    """What a user should know where *error*, Spark's, says that a source's files changed."""
    text = str(error)
    if _MISMATCH not in text and "SchemaColumnConvertNotSupportedException" not in text:
        return None
    return SettingsError(
        "a new Parquet file has a column of another type than the files that the stream began "
        "with; write it again with the old types, or start a new pipeline in another folder. "
        f"Spark says: {text.splitlines()[0][:500]}"
    )


def _texts(spark: SparkSession, source: Source, streaming: bool) -> DataFrame:
    if source.format == "kafka":
        return _kafka_texts(spark, source, streaming)
    df = load(reader_of(spark, source, streaming=streaming), "text", source)
    return df.select("value", F.col("_metadata.file_path").alias(Origin.SOURCE))


def _kafka_texts(spark: SparkSession, source: Source, streaming: bool) -> DataFrame:
    if not (source.topic and source.servers):
        raise SettingsError(f"{source.name}: Kafka needs a topic and servers (host:port)")
    reader = reader_of(spark, source, streaming=streaming)
    reader = reader.option("kafka.bootstrap.servers", source.servers)
    reader = reader.option("subscribe", source.topic)
    if "startingOffsets" not in source.options:
        reader = reader.option("startingOffsets", "earliest")
    df = load(reader, "kafka", source)
    place = F.concat(F.lit("kafka:"), "topic", F.lit("/"), F.col("partition").cast("string"))
    return df.select(
        F.col("value").cast("string").alias("value"),
        place.alias(Origin.SOURCE),
        F.col("offset").alias(Origin.OFFSET),
    )


def _csv_cells(spark: SparkSession, source: Source, streaming: bool) -> DataFrame:
    header = _header(spark, source)
    schema = T.StructType([T.StructField(name, T.StringType()) for name in (*header, CORRUPT)])
    reader = reader_of(spark, source, streaming=streaming).schema(schema)
    for name, value in _CSV_OPTIONS.items():
        reader = reader.option(name, value)
    df = load(reader, "csv", source)
    return df.select("*", F.col("_metadata.file_path").alias(Origin.SOURCE))


_CSV_OPTIONS: Final = {
    "enforceSchema": "false",  # a file with other columns is an error, not a mixture
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": CORRUPT,
}


def _header(spark: SparkSession, source: Source) -> list[str]:
    return list(load(reader_of(spark, source), "csv", source).columns)


def _columns_with_origin(spark: SparkSession, source: Source, streaming: bool) -> DataFrame:
    if source.format == "delta":
        df = _delta(spark, source, streaming)
    else:
        schema = load(reader_of(spark, source), "parquet", source).schema
        df = load(reader_of(spark, source, streaming=streaming).schema(schema), "parquet", source)
    missing = [name for name in source.drop if name not in df.columns]
    if missing:
        raise SettingsError(
            f"{source.name}: there is no column {missing[0]!r} to drop; "
            f"it has {', '.join(df.columns)}"
        )
    kept = [column_of(name) for name in df.columns if name not in source.drop]
    return df.select(
        *kept,
        F.col("_metadata.file_path").alias(Origin.SOURCE),
        F.col("_metadata.row_index").alias(Origin.OFFSET),
    )


def _delta(spark: SparkSession, source: Source, streaming: bool) -> DataFrame:
    """A Delta table as it is now; as a stream only where Spark has Delta's own jars."""
    if streaming:
        return load(reader_of(spark, source, streaming=streaming), "delta", source)
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        table = DeltaTable(str(source.path))
    except TableNotFoundError as error:
        raise SettingsError(f"{source.name}: there is no Delta table: {error}") from None
    except (DeltaError, OSError) as error:
        raise SettingsError(f"{source.name}: the Delta table cannot be read: {error}") from None
    features = table.protocol().reader_features or []
    if table.metadata().partition_columns or "deletionVectors" in features:
        raise SettingsError(
            f"{source.name}: a partitioned table, or one with deletion vectors, is read with "
            'Delta\'s own jars only: pass spark.read.format("delta").load(path) as a DataFrame'
        )
    files = table.file_uris()
    if not files:
        raise SettingsError(f"{source.name}: the Delta table is empty")
    return spark.read.parquet(*files)
