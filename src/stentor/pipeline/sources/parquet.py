"""Parquet files: columns as they are, each file with columns of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from stentor.errors import SettingsError
from stentor.pipeline.sources import FIELDS, Columns, SourceSettings
from stentor.pipeline.sources.base import SAMPLE, FileSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql import types as T  # noqa: N812

    from stentor.pipeline.sources.frames import Frame
    from stentor.pipeline.sources.parquet_files import Group, ParquetFiles


class Parquet(FileSource):
    """Parquet files."""

    word = "parquet"
    title: ClassVar[str] = "Parquet"
    keys = frozenset({"path", "max_files", "drop"})
    suffixes = (".parquet",)
    has_schema = True

    def content_mistakes(
        self, settings: SourceSettings, path: str, has_pattern: bool, is_inferred: bool
    ) -> Iterator[str]:
        """Also that no file has a column that the settings name."""
        yield from super().content_mistakes(settings, path, has_pattern, is_inferred)
        yield from _missing_columns(settings, self.local_files(settings)[:SAMPLE])

    def open(
        self,
        spark: SparkSession,
        settings: SourceSettings,
        kinds: Mapping[str, str] | None,
        *,
        streaming: bool,
    ) -> Frame:
        """The files that are there, or the names of those that come."""
        from stentor.pipeline.sources.parquet_files import ParquetFiles

        paths = ParquetFiles(settings).here(spark)
        return open_files(spark, settings, paths, kinds, streaming=streaming)

    def kinds(self, spark: SparkSession, settings: SourceSettings) -> dict[str, str]:
        """Those of the columns."""
        from stentor.pipeline.sources.attribute_types import kinds_of_types

        attributes = self.open(spark, settings, None, streaming=True).attributes
        return {} if attributes is None else kinds_of_types(attributes)

    def explain_failure(self, text: str) -> SettingsError | None:
        """That a file has a column of another type than those before it."""
        if not any(sign in text for sign in _MISMATCH):
            return None
        return SettingsError(
            "a new Parquet file has a column of another type than the files that the stream began "
            "with; write it again with the old types, or start a new pipeline in another folder. "
            f"Spark says: {text.splitlines()[0][:500]}"
        )


def _missing_columns(settings: SourceSettings, files: Iterable[Path]) -> Iterator[str]:
    """A sentence for each column that *settings* name and none of *files* has.

    A folder like day=2026-01-01 above the files is a column too.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names: dict[str, None] = {}
    for file in files:
        if "=" in str(file.parent):
            return
        try:
            names |= dict.fromkeys(pq.read_schema(file).names)
        except (OSError, pa.ArrowException):
            continue  # one bad record
    if not names:
        return
    named = {
        field: name
        for field in FIELDS[settings.kind]
        if (name := settings.columns.of(field)) is not None and settings.columns.is_named(field)
    }
    uses = [(name, f", which holds the {field}") for field, name in named.items()]
    for name, use in [*uses, *((name, " to drop") for name in settings.drop)]:
        if name not in names:
            yield f"{settings.name}: there is no column {name!r}{use}; it has {', '.join(names)}"


_MISMATCH = ("PARQUET_COLUMN_DATA_TYPE_MISMATCH", "SchemaColumnConvertNotSupportedException")


def open_files(
    spark: SparkSession,
    settings: SourceSettings,
    paths: Sequence[str],
    kinds: Mapping[str, str] | None,
    *,
    streaming: bool,
) -> Frame:
    """Parquet files, those of a Delta table among them: each with columns of its own."""
    from stentor.pipeline.sources.frames import Frame
    from stentor.pipeline.sources.parquet_files import ParquetFiles
    from stentor.pipeline.sources.readers import NOTHING_YET

    files = ParquetFiles(settings)
    groups, bad = files.groups(spark, paths[:SAMPLE] if streaming else paths)
    if bad and (not streaming or not groups):
        path, reason = next(iter(bad.items()))
        raise SettingsError(f"{settings.name}: {path}: {reason}")
    if not groups and (kinds is None or not streaming) and settings.kind != "changes":
        raise SettingsError(f"{settings.name}: {NOTHING_YET}")
    files.check_dropped(groups)
    attributes = files.attributes(spark, groups, kinds)
    if streaming:
        names = files.names(spark, streaming=True)
        own = settings.columns
        return Frame(names, settings.kind, settings.name, own, None, attributes, files)
    if len(groups) == 1:
        df = files.columns(spark, groups[0])
        return Frame(df, settings.kind, settings.name, settings.columns)
    return _together(spark, settings, files, groups, attributes)


def _together(
    spark: SparkSession,
    settings: SourceSettings,
    files: ParquetFiles,
    groups: Sequence[Group],
    attributes: T.StructType,
) -> Frame:
    """The records of files that differ in their columns, as one frame."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F  # noqa: N812

    from stentor.pipeline.sources.columns import Origin
    from stentor.pipeline.sources.frames import Frame
    from stentor.pipeline.sources.parquet_files import in_columns

    columns = settings.columns
    if columns.time is None and any("time" in group.schema.names for group in groups):
        columns = replace(columns, time="time")
    nothing = spark.createDataFrame([], "id string")
    frame = Frame(nothing, settings.kind, settings.name, columns)
    parts = [in_columns(spark, frame, files, group, attributes) for group in groups]
    df = reduce(DataFrame.unionByName, parts)
    origin = dict(zip(("source", "offset", "problem", "raw"), Origin.ALL, strict=True))
    left_out = {"order"} if columns.order is None else set()
    left_out |= {"time"} if columns.time is None else set()
    left_out |= {"expression", "at"} if settings.kind == "events" else set()
    left_out |= {"weights", "attributes"} if settings.kind == "changes" else set()
    df = df.select(
        *(F.col(name).alias(origin.get(name, name)) for name in df.columns if name not in left_out)
    )
    own = Columns(order="order" if columns.order else None, time="time" if columns.time else None)
    return Frame(df, settings.kind, settings.name, own)
