"""Parquet files, each with the columns and types of its own.

A stream knows the names of its files; what is in them is looked up batch by batch. Files with the
same columns are read together. What of a file does not fit is null, and a record that has something
there has a problem: no file stops the stream, and none hides a column of another. `FileExpansion`
replaces names of files by records, `ParquetFiles` knows what is in the files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from stentor.errors import SettingsError, StentorError
from stentor.model import Schema
from stentor.pipeline.sources import FIELDS, RANGE, Columns, SourceSettings, What
from stentor.pipeline.sources.attribute_types import (
    first_kinds,
    kind_of_type,
    kinds_of_types,
    types_of_kinds,
    usable_types,
)
from stentor.pipeline.sources.columns import (
    Origin,
    attribute_columns,
    check_columns,
    column_of,
    field_mistake,
    is_nested,
    types_of,
    unknown_columns,
)
from stentor.pipeline.sources.frames import FRAME, Frame, canonical, packed
from stentor.pipeline.sources.readers import file_reader, load
from stentor.pipeline.sources.shape import shaped
from stentor.pipeline.sources.values import is_range, problem_where
from stentor.wire.events import NESTED

#: Without it Spark refuses files with timestamps in nanoseconds.
_NANOS: Final = "spark.sql.legacy.parquet.nanosAsLong"
_FILES: Final = "path string, modificationTime timestamp, length bigint, content binary"
#: Fields without which no frame is read, and the types of their nulls.
_NEEDED = {"id": "string", "order": "bigint", "time": "timestamp", "op": "string"}


class Group(NamedTuple):
    """Files whose columns and types are the same."""

    paths: tuple[str, ...]
    schema: T.StructType
    nanoseconds: frozenset[str]  # columns of timestamps that Spark reads as integers
    empty: frozenset[str]  # columns of which a file's footer says that all of it is null


class FileExpansion:
    """Replaces the names of files by their records, batch by batch."""

    def __init__(self, frames: Sequence[Frame], attributes: T.StructType) -> None:
        """*frames* are those of the stream, *attributes* the types that they share."""
        self._frames = frames
        self._attributes = attributes
        self._files = {n: one.files for n, one in enumerate(frames) if one.files is not None}

    def __call__(self, records: DataFrame) -> DataFrame:
        """*records* with what is in their files."""
        if not self._files:
            return records
        is_file = column_of(FRAME).isin(*self._files)
        named = records.where(is_file).select(FRAME, "source").collect()
        parts = [] if len(self._files) == len(self._frames) else [records.where(~is_file)]
        for number, files in self._files.items():
            paths = sorted(row.source for row in named if row[FRAME] == number)
            if paths:
                parts += self._records(records, number, files, paths)
        if not parts:
            return records.where(F.lit(False))
        return reduce(DataFrame.unionByName, parts)

    def _records(
        self, records: DataFrame, number: int, files: ParquetFiles, paths: list[str]
    ) -> list[DataFrame]:
        spark = records.sparkSession
        groups, bad = files.groups(spark, paths)
        found = []
        for group in groups:
            try:
                rows = in_columns(spark, self._frames[number], files, group, self._attributes)
            except (SettingsError, PySparkException) as error:
                bad |= dict.fromkeys(group.paths, str(error))
                continue
            rows = packed(rows.withColumn(FRAME, F.lit(number)), self._attributes, self._frames)
            found.append(rows.select(*map(column_of, records.columns)))
        return [*found, *([self._bad_records(records, number, bad)] if bad else [])]

    def _bad_records(self, records: DataFrame, number: int, bad: Mapping[str, str]) -> DataFrame:
        """A bad record for each file that cannot be read."""
        rows = [(path, reason, path, number) for path, reason in bad.items()]
        bad_rows = records.sparkSession.createDataFrame(
            rows, f"source string, problem string, raw string, {FRAME} int"
        )
        missing = [one for one in records.schema.fields if one.name not in bad_rows.columns]
        for one in missing:
            bad_rows = bad_rows.withColumn(one.name, F.lit(None).cast(one.dataType))
        return bad_rows.select(*map(column_of, records.columns))


def in_columns(
    spark: SparkSession, frame: Frame, files: ParquetFiles, group: Group, attributes: T.StructType
) -> DataFrame:
    """The canonical records of the files of *group*."""
    df = fitted(files.columns(spark, group), frame.what, frame.columns, attributes)
    return canonical(frame._replace(df=df, files=None), attributes)


def fitted(df: DataFrame, what: What, columns: Columns, attributes: T.StructType) -> DataFrame:
    """*df* with columns that `canonical` takes, whatever it has; *attributes* are those of all."""
    types = types_of(df)
    problems: list[Column] = []
    replaced: dict[str, Column] = {}
    for field in FIELDS[what]:
        name = columns.of(field)
        if name is None:
            continue
        if name not in types:
            if field in _NEEDED:
                replaced[name] = F.lit(None).cast(_NEEDED[field])
            elif columns.is_named(field):
                replaced[name] = F.lit(None)
            continue
        mistake = field_mistake(field, types[name])
        if mistake is not None:
            problems.append(problem_where(column_of(name).isNotNull(), name, mistake))
            replaced[name] = F.lit(None)
    unknown = unknown_columns(df, what, columns)
    problems += [
        problem_where(column_of(name).isNotNull(), name, mistake)
        for name, mistake in unknown.items()
    ]
    if what != "changes":
        wanted = {one.name: one.dataType for one in attributes.fields}
        _fit_attributes(df, what, columns, wanted, problems, replaced)
    shown = [column_of(name) for name in df.columns if name not in Origin.ALL]
    problem = F.coalesce(F.lit(None).cast("string"), *problems)
    kept = [name for name in df.columns if name not in replaced and name not in unknown]
    return df.select(
        *map(column_of, kept),
        *(column.alias(name) for name, column in replaced.items()),
        problem.alias(Origin.PROBLEM),
        F.when(problem.isNotNull(), F.to_json(F.struct(*shown))).alias(Origin.RAW),
    )


def _fit_attributes(
    df: DataFrame,
    what: What,
    columns: Columns,
    wanted: dict[str, T.DataType],
    problems: list[Column],
    replaced: dict[str, Column],
) -> None:
    """Replace the attributes of *df* that are not of the kind that is *wanted*."""
    nested = is_nested(df)
    own = attribute_columns(df, what, columns)
    cells: dict[str, Column] = {}
    for name, of in own.items():
        given = column_of(NESTED).getField(name) if nested else column_of(name)
        cells[name] = given
        if name not in wanted or isinstance(of, T.NullType):
            continue
        kind = kind_of_type(wanted[name])
        if kind_of_type(of, kind) is not kind:
            got = f"expected a {kind}, got {of.simpleString()}; write the file with that type"
            problems.append(problem_where(given.isNotNull(), name, got))
            cells[name] = F.lit(None)
        elif is_range(of) and not is_range(wanted[name]):
            low, high = given.getField("low"), given.getField("high")
            got = "expected single values, got a range; declare the attribute as one of ranges"
            problems.append(problem_where(given.isNotNull() & ~low.eqNullSafe(high), name, got))
            cells[name] = low
    if nested:
        replaced[NESTED] = F.struct(*(cell.alias(name) for name, cell in cells.items()))
    else:
        replaced |= cells


class ParquetFiles:
    """The files of one source, on the driver."""

    def __init__(self, source: SourceSettings) -> None:
        """The files of *source*; nothing is read yet."""
        self.source = source
        self._schemas: dict[Any, T.StructType] = {}

    def names(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """A row for each file, which says where it is."""
        reader = file_reader(spark, self.source, streaming=streaming)
        if streaming:
            reader = reader.schema(_FILES)
        df = load(reader, "binaryFile", self.source)
        return df.select(F.col("_metadata.file_path").alias(Origin.SOURCE), "modificationTime")

    def here(self, spark: SparkSession) -> list[str]:
        """The files that are there now, oldest first."""
        rows = self.names(spark, streaming=False).orderBy("modificationTime", Origin.SOURCE)
        return [row[Origin.SOURCE] for row in rows.collect()]

    def groups(
        self, spark: SparkSession, paths: Sequence[str]
    ) -> tuple[list[Group], dict[str, str]]:
        """*paths* by their columns, and why some cannot be read at all."""
        spark.conf.set(_NANOS, "true")
        found: dict[Any, list[str]] = {}
        footers: dict[Any, _Footer] = {}
        bad: dict[str, str] = {}
        for path in paths:
            try:
                footer = _footer(path)
                key = path if footer is None else footer.key
                if key not in self._schemas:
                    self._schemas[key] = _schema_of(spark, path, self._base)
            except StentorError as error:
                bad[path] = str(error)
                continue
            if footer is None:
                schema = self._schemas.pop(path)
                key = schema.json()
                self._schemas[key] = schema
            else:
                footers[key] = footer
            found.setdefault(key, []).append(path)
        groups = [
            Group(
                tuple(own),
                self._schemas[key],
                footers[key].nanoseconds if key in footers else frozenset(),
                footers[key].empty if key in footers else frozenset(),
            )
            for key, own in found.items()
        ]
        return groups, bad

    def columns(self, spark: SparkSession, group: Group) -> DataFrame:
        """The rows of *group*, and where each was."""
        reader = spark.read.schema(group.schema).options(**self._base)
        df = reader.parquet(*map(_escaped, group.paths))
        kept = [
            F.timestamp_micros(F.floor(column_of(name) / 1000)).alias(name)
            if name in group.nanoseconds
            else column_of(name)
            for name in df.columns
            if name not in self.source.drop
        ]
        rows = df.select(
            *kept,
            F.col("_metadata.file_path").alias(Origin.SOURCE),
            F.col("_metadata.row_index").alias(Origin.OFFSET),
        )
        return rows if self.source.kind == "changes" else shaped(rows, self.source.attributes)

    @property
    def _base(self) -> dict[str, str]:
        """The option by which folders like day=2026-01-01 become columns."""
        path = self.source.path or ""
        is_folder = "=" not in path and not any(one in path for one in "*?[{")
        return {"basePath": path} if is_folder and not Path(path).is_file() else {}

    def attributes(
        self, spark: SparkSession, groups: Sequence[Group], kinds: Mapping[str, str] | None
    ) -> T.StructType:
        """The attributes of files of these *groups*; of one that two differ about, the first's.

        A SettingsError where neither one group nor all together can be used: then a setting is to
        blame.
        """
        columns = [self._types(spark, group) for group in groups]
        found = [self._usable(spark, types, kinds) for types in columns]
        if groups and all(mistakes for _, mistakes in found):
            every: dict[str, T.DataType] = {}
            for types in columns:
                for one, of in types.items():
                    if isinstance(every.get(one), (T.NullType, type(None))):
                        every[one] = of
            mistakes = self._usable(spark, every, kinds)[1]
            if mistakes:
                raise SettingsError("\n".join(mistakes))
        if kinds is not None:
            return types_of_kinds(kinds)
        return types_of_kinds(kinds_of_types(first_kinds(types for types, _ in found)))

    def _types(self, spark: SparkSession, group: Group) -> dict[str, T.DataType]:
        """The columns of *group*; those that are null throughout may be of any type."""
        return {
            one.name: T.NullType() if one.name in group.empty else one.dataType
            for one in self.columns(spark, group).schema
            if one.name not in Origin.ALL
        }

    def _usable(
        self, spark: SparkSession, types: dict[str, T.DataType], kinds: Mapping[str, str] | None
    ) -> tuple[dict[str, T.DataType], list[str]]:
        """The attributes among columns of these *types*, and what is wrong with them."""
        kind, columns, name = self.source.kind, self.source.columns, self.source.name
        df = spark.createDataFrame([], T.StructType([T.StructField(*one) for one in types.items()]))
        own = {} if kind == "changes" else attribute_columns(df, kind, columns)
        declared = None
        if kinds is not None:
            plain = {one: of.removesuffix(RANGE) for one, of in kinds.items()}
            declared = Schema.declare(plain)
        given = {one: of for one, of in own.items() if not isinstance(of, T.NullType)}
        usable, mistakes = usable_types(given, name, declared)
        try:
            check_columns(df, kind, columns, name)
        except SettingsError as error:
            mistakes = [str(error), *mistakes]
        return usable, mistakes

    def check_dropped(self, groups: Sequence[Group]) -> None:
        """A SettingsError where no file has a column that is to be dropped."""
        names = dict.fromkeys(name for group in groups for name in group.schema.names)
        missing = [name for name in self.source.drop if names and name not in names]
        if missing:
            raise SettingsError(
                f"{self.source.name}: there is no column {missing[0]!r} to drop; "
                f"it has {', '.join(names)}"
            )


class _Footer(NamedTuple):
    key: str
    nanoseconds: frozenset[str]
    empty: frozenset[str]


def _footer(path: str) -> _Footer | None:
    """What the footer of a file says; None where it is on no disk of this machine."""
    address = urlparse(path)
    if address.scheme not in ("file", ""):
        return None
    file = Path(unquote(address.path))
    try:
        footer = pq.read_metadata(file)
        schema = footer.schema.to_arrow_schema()
    except (OSError, pa.ArrowException) as error:
        raise SettingsError(f"the file cannot be read: {error}") from None
    nanoseconds = frozenset(
        one.name for one in schema if pa.types.is_timestamp(one.type) and one.type.unit == "ns"
    )
    # What Spark wrote into the footer says of some types more than their columns do.
    own = (footer.metadata or {}).get(b"org.apache.spark.sql.parquet.row.metadata", b"")
    empty = _all_null(footer, schema)
    partitions = "/".join(part for part in file.parts[:-1] if "=" in part)
    key = f"{schema.remove_metadata()}|{own!r}|{sorted(empty)}|{partitions}|{footer.schema}"
    return _Footer(key, nanoseconds, empty)


def _all_null(footer: Any, schema: Any) -> frozenset[str]:
    """The plain columns of which every row group says that it is null throughout."""
    plain = {one.name for one in schema if not pa.types.is_nested(one.type)}
    seen: dict[str, bool] = {}
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        for position in range(group.num_columns):
            column = group.column(position)
            if column.path_in_schema in plain:
                statistics = column.statistics
                is_null = statistics is not None and statistics.null_count == group.num_rows
                seen[column.path_in_schema] = seen.get(column.path_in_schema, True) and is_null
    return frozenset(name for name, is_null in seen.items() if is_null)


def _schema_of(spark: SparkSession, path: str, base: dict[str, str]) -> T.StructType:
    try:
        return spark.read.options(**base).parquet(_escaped(path)).schema
    except (PySparkException, Py4JJavaError) as error:
        raise SettingsError(f"the file cannot be read: {str(error).splitlines()[0]}") from None


def _escaped(path: str) -> str:
    """*path*, an address as Spark gives it, as Spark takes it: these it takes for a pattern."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", unquote(path))
