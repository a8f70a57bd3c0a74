"""Spark's own readers, and what they complain of in the words of a source."""

from __future__ import annotations

from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from stentor.errors import SettingsError
from stentor.pipeline.sources.settings import Source


def reader_of(spark: SparkSession, source: Source, *, streaming: bool = False) -> Any:
    """Spark's reader with the options of *source*; with its limits where it is a stream."""
    reader: Any = spark.readStream if streaming else spark.read
    if source.format == "csv":  # quotes as RFC 4180 has them
        reader = reader.options(header="true", escape='"')
    reader = reader.options(**source.options)
    if streaming and source.format == "kafka" and source.max_records is not None:
        reader = reader.option("maxOffsetsPerTrigger", source.max_records)
    if streaming and source.format != "kafka" and source.max_files is not None:
        reader = reader.option("maxFilesPerTrigger", source.max_files)
    return reader


def load(reader: Any, of: str, source: Source) -> DataFrame:
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
        'settings={"spark.jars": ",".join(stentor.pipeline.kafka.deliveries.connector_jars())})'
    ),
    "delta": (
        "to stream from a Delta table, Spark needs Delta's own jars (spark.jars.packages = "
        "io.delta:delta-spark_2.13 in the version for this Spark); or stream its Parquet files"
    ),
}
