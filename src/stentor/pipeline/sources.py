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
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from stentor.errors import SettingsError, StentorError
from stentor.model import Range, Schema
from stentor.model.record import Publish
from stentor.pipeline.attribute_types import RANGE, kind_of_type, types_of_kinds
from stentor.pipeline.csv_frames import CORRUPT, csv_frame
from stentor.pipeline.frame_columns import (
    DEFAULT_COLUMNS,
    FIELDS,
    Columns,
    Origin,
    What,
    column_of,
)
from stentor.pipeline.frames import Frame
from stentor.pipeline.json_frames import json_frame
from stentor.wire.events import RESERVED
from stentor.wire.formats import ReadSettings, record_from_object
from stentor.wire.json_text import from_json
from stentor.wire.records import Op

Format = Literal["json", "csv", "parquet", "delta", "kafka"]

#: How many lines the types of attributes are inferred from.
SAMPLE: Final = 1_000

_DEFAULT_OP: Final[dict[What, Op | None]] = {
    "events": "publish",
    "changes": "subscribe",
    "records": None,
}
_MISMATCH: Final = "PARQUET_COLUMN_DATA_TYPE_MISMATCH"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One place that records come from."""

    format: Format
    kind: What
    path: str | None = None
    """Of files: a folder, or a pattern. Delta: the table's folder."""
    topic: str | None = None
    servers: str | None = None
    """Of Kafka: host:port, several with commas."""
    columns: Columns = DEFAULT_COLUMNS
    drop: tuple[str, ...] = ()
    """Columns of Parquet or Delta that are neither fields nor attributes."""
    max_files: int | None = None
    """Of a batch."""
    max_records: int | None = None
    """Of a batch; Kafka only."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Further options of Spark's reader, by their own names."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"kafka:{self.topic}" if self.format == "kafka" else f"{self.format} {self.path}"


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
    types = types_of_kinds(kinds) if kinds is not None else _inferred(spark, source)
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
    df = _load(_reader(spark, source, streaming), "text", source)
    return df.select("value", F.col("_metadata.file_path").alias(Origin.SOURCE))


def _kafka_texts(spark: SparkSession, source: Source, streaming: bool) -> DataFrame:
    if not (source.topic and source.servers):
        raise SettingsError(f"{source.name}: Kafka needs a topic and servers (host:port)")
    reader = _reader(spark, source, streaming)
    reader = reader.option("kafka.bootstrap.servers", source.servers)
    reader = reader.option("subscribe", source.topic)
    if "startingOffsets" not in source.options:
        reader = reader.option("startingOffsets", "earliest")
    df = _load(reader, "kafka", source)
    place = F.concat(F.lit("kafka:"), "topic", F.lit("/"), F.col("partition").cast("string"))
    return df.select(
        F.col("value").cast("string").alias("value"),
        place.alias(Origin.SOURCE),
        F.col("offset").alias(Origin.OFFSET),
    )


def _csv_cells(spark: SparkSession, source: Source, streaming: bool) -> DataFrame:
    header = _header(spark, source)
    schema = T.StructType([T.StructField(name, T.StringType()) for name in (*header, CORRUPT)])
    reader = _reader(spark, source, streaming).schema(schema)
    for name, value in _CSV_OPTIONS.items():
        reader = reader.option(name, value)
    df = _load(reader, "csv", source)
    return df.select("*", F.col("_metadata.file_path").alias(Origin.SOURCE))


_CSV_OPTIONS: Final = {
    "header": "true",
    "enforceSchema": "false",  # a file with other columns is an error, not a mixture
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": CORRUPT,
}


def _header(spark: SparkSession, source: Source) -> list[str]:
    reader = spark.read.options(**source.options).option("header", "true")
    return list(_load(reader, "csv", source).columns)


def _columns_with_origin(spark: SparkSession, source: Source, streaming: bool) -> DataFrame:
    if source.format == "delta":
        df = _delta(spark, source, streaming)
    else:
        schema = _load(spark.read.options(**source.options), "parquet", source).schema
        df = _load(_reader(spark, source, streaming).schema(schema), "parquet", source)
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
        return _load(_reader(spark, source, streaming), "delta", source)
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


def _reader(spark: SparkSession, source: Source, streaming: bool) -> Any:
    reader: Any = spark.readStream if streaming else spark.read
    reader = reader.options(**source.options)
    if streaming and source.format == "kafka" and source.max_records is not None:
        reader = reader.option("maxOffsetsPerTrigger", source.max_records)
    if streaming and source.format != "kafka" and source.max_files is not None:
        reader = reader.option("maxFilesPerTrigger", source.max_files)
    return reader


def _load(reader: Any, of: str, source: Source) -> DataFrame:
    """What *reader* finds; Spark's own complaints in the words of a source."""
    try:
        reader = reader.format(of)
        loaded: DataFrame = reader.load() if of == "kafka" else reader.load(source.path)
        return loaded
    except (AnalysisException, Py4JJavaError) as error:
        said = str(error)
        if of in _JARS and ("DATA_SOURCE_NOT_FOUND" in said or "find data source" in said):
            raise SettingsError(f"{source.name}: {_JARS[of]}") from None
        if "PATH_NOT_FOUND" in said or "UNABLE_TO_INFER_SCHEMA" in said:
            raise SettingsError(
                f"{source.name}: there is nothing to read yet; the first file tells what the "
                "columns are, so put one there, or correct the path"
            ) from None
        raise SettingsError(f"{source.name}: {said.splitlines()[0]}") from None


_JARS: Final = {
    "kafka": (
        "this session lacks Spark's connector for Kafka; make it with stentor.pipeline.session("
        'settings={"spark.jars": ",".join(stentor.pipeline.kafka.connector_jars())})'
    ),
    "delta": (
        "to stream from a Delta table, Spark needs Delta's own jars (spark.jars.packages = "
        "io.delta:delta-spark_2.13 in the version for this Spark); or stream its Parquet files"
    ),
}


def _inferred(spark: SparkSession, source: Source) -> T.StructType:
    """The attributes' types, from the first records that are there."""
    if source.kind == "changes":
        return T.StructType()
    if source.format == "kafka":
        raise SettingsError(f"{source.name}: declare the schema; it is not inferred from Kafka")
    kinds = _csv_kinds(spark, source) if source.format == "csv" else _json_kinds(spark, source)
    if not kinds:
        raise SettingsError(
            f"{source.name}: no attribute was found in the first {SAMPLE:,} records; declare the "
            "schema, or put events there before the stream is started"
        )
    return types_of_kinds(kinds)


def _json_kinds(spark: SparkSession, source: Source) -> dict[str, str]:
    """What `stentor.wire` learns of the first lines; bad ones teach nothing."""
    lines = _load(spark.read.options(**source.options), "text", source).limit(SAMPLE)
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
    reader = spark.read.options(**source.options).option("header", "true")
    sample = reader.option("inferSchema", "true").option("mode", "DROPMALFORMED")
    taken = {*RESERVED, *(source.columns.of(field) for field in FIELDS[source.kind])}
    return {
        one.name: str(kind_of_type(one.dataType))
        for one in _load(sample, "csv", source).schema
        if one.name not in taken and kind_of_type(one.dataType) is not None
    }
