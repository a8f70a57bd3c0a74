"""Delta tables: their files as they are now; a stream where Spark has Delta's own jars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from stentor.errors import SettingsError
from stentor.index.storage.folders import has_scheme
from stentor.pipeline.sources import SourceSettings
from stentor.pipeline.sources.base import FileSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stentor.pipeline.sources.frames import Frame


class Delta(FileSource):
    """A Delta table."""

    word = "delta"
    title: ClassVar[str] = "the Delta table"
    keys = frozenset({"path", "max_files", "drop"})
    has_schema = True

    def content_mistakes(
        self, settings: SourceSettings, path: str, has_pattern: bool, is_inferred: bool
    ) -> Iterator[str]:
        """That there is no table."""
        if not Path(path, "_delta_log").is_dir():
            yield f"{settings.name}: this is no Delta table; it has no folder _delta_log"

    def local_files(self, settings: SourceSettings) -> list[Path]:
        """None: its log says which of them count."""
        return []

    def open(
        self,
        spark: SparkSession,
        settings: SourceSettings,
        kinds: Mapping[str, str] | None,
        *,
        streaming: bool,
    ) -> Frame:
        """The table's rows."""
        from stentor.pipeline.sources.parquet import open_files

        if streaming:
            return _stream(spark, settings)
        return open_files(spark, settings, _files(settings), kinds, streaming=False)

    def kinds(self, spark: SparkSession, settings: SourceSettings) -> dict[str, str]:
        """Those of the columns."""
        from stentor.pipeline.sources.attribute_types import kinds_of_types
        from stentor.pipeline.sources.parquet_files import ParquetFiles

        files = ParquetFiles(settings)
        groups, _ = files.groups(spark, _files(settings))
        return kinds_of_types(files.attributes(spark, groups, None))


def _stream(spark: SparkSession, settings: SourceSettings) -> Frame:
    """A stream: only where Spark has Delta's own jars, which know its columns."""
    from pyspark.sql import functions as F  # noqa: N812

    from stentor.pipeline.sources.columns import Origin, column_of
    from stentor.pipeline.sources.frames import Frame
    from stentor.pipeline.sources.readers import file_reader, load
    from stentor.pipeline.sources.shape import shaped

    reader = file_reader(spark, settings, streaming=True)
    df = load(reader, "delta", settings, _NO_JARS)
    missing = [name for name in settings.drop if name not in df.columns]
    if missing:
        raise SettingsError(
            f"{settings.name}: there is no column {missing[0]!r} to drop; "
            f"it has {', '.join(df.columns)}"
        )
    kept = [column_of(name) for name in df.columns if name not in settings.drop]
    df = df.select(
        *kept,
        F.col("_metadata.file_path").alias(Origin.SOURCE),
        F.col("_metadata.row_index").alias(Origin.OFFSET),
    )
    df = shaped(df, settings.attributes)
    return Frame(df, settings.kind, settings.name, settings.columns)


def _files(settings: SourceSettings) -> list[str]:
    """The files of the table as it is now."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        table = DeltaTable(str(settings.path))
    except TableNotFoundError as error:
        raise SettingsError(f"{settings.name}: there is no Delta table: {error}") from None
    except (DeltaError, OSError) as error:
        raise SettingsError(f"{settings.name}: the Delta table cannot be read: {error}") from None
    features = table.protocol().reader_features or []
    if table.metadata().partition_columns or "deletionVectors" in features:
        raise SettingsError(
            f"{settings.name}: a partitioned table, or one with deletion vectors, is read with "
            'Delta\'s own jars only: pass spark.read.format("delta").load(path) as a DataFrame'
        )
    files = table.file_uris()
    if not files:
        raise SettingsError(f"{settings.name}: the Delta table is empty")
    return [file if has_scheme(file) else Path(file).absolute().as_uri() for file in files]


_NO_JARS = (
    "to stream from a Delta table, Spark needs Delta's own jars (spark.jars.packages = "
    "io.delta:delta-spark_2.13 in the version for this Spark); or stream its Parquet files"
)
