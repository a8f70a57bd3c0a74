"""`start`: events and changes of subscriptions through Structured Streaming into the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.streaming.query import StreamingQuery

from stentor.errors import SettingsError
from stentor.model import Schema
from stentor.pipeline.commit.housekeeping import Housekeeping
from stentor.pipeline.commit.lock import hold
from stentor.pipeline.commit.manifests import Commits
from stentor.pipeline.frames.attribute_types import check_still_fit, schema_of
from stentor.pipeline.frames.canonical import Frame, attribute_types, canonical, union
from stentor.pipeline.frames.columns import What, named_columns
from stentor.pipeline.frames.packing import packed, packed_types
from stentor.pipeline.stream.batch_loop import BatchLoop
from stentor.pipeline.stream.held_folders import let_the_last_one_end, release_at_the_end
from stentor.pipeline.stream.progress import BatchProgress
from stentor.pipeline.stream.restarts import check_unchanged, discard_empty_tables
from stentor.pipeline.stream.runner import SparkRunner
from stentor.pipeline.stream.settings import PlanName, StreamSettings
from stentor.pipeline.tables.delta import DeltaTables
from stentor.pipeline.tables.files import TIME, table_schemas
from stentor.wire.limits import RecordLimits

Listener = Callable[[BatchProgress], None]


def start(
    events: DataFrame | None,
    changes: DataFrame | None,
    path: str | Path,
    *,
    records: DataFrame | None = None,
    order: str | None = None,
    time: str | None = None,
    columns: Mapping[str, str] | None = None,
    schema: Schema | Mapping[str, str] | None = None,
    index: str | None = None,
    top: int | None = None,
    plan: PlanName | None = None,
    shards: int | None = None,
    limits: RecordLimits | None = None,
    most_rejected: float | None = None,
    retention: timedelta | None = None,
    settings: StreamSettings | None = None,
    trigger: Mapping[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    listeners: Sequence[Listener] = (),
) -> StreamingQuery:
    """Run *events* and *changes* of subscriptions, streaming DataFrames, into the tables of *path*.

    *events* have a column `id`, perhaps `until`, and attributes. *changes* have `id`, `op`
    (subscribe where it is null), `expression`, `at`, `until`. *records* mix both, told apart by
    `op`. *order* names the column that says where a record stands among all of them, *time* the
    one that says when it happened; without them a batch's changes come before its events, at the
    batch's own time. *columns* gives other names of columns by field: `{"id": "event_id"}`.

    *path* is a folder that the driver and all workers see. What is in it goes on where it stopped.
    *settings* are all that a stream can be told; those that are arguments here too count as these
    say. *trigger* is what `DataStreamWriter.trigger` takes. *listeners* are told of each batch.
    """
    named = named_columns({**(columns or {}), **_given(order=order, time=time)})
    chosen = replace(
        settings or StreamSettings(),
        has_order=named.order is not None,
        has_time=named.time is not None,
        **_given(
            index=index,
            top=top,
            plan=plan,
            shards=shards,
            limits=limits,
            most_rejected=most_rejected,
            retention=retention,
        ),
    )
    sides: list[tuple[DataFrame | None, What]] = [
        (changes, "changes"),
        (events, "events"),
        (records, "records"),
    ]
    frames = [Frame(df, what, what, named) for df, what in sides if df is not None]
    return run(frames, Path(path), chosen, schema, trigger, checkpoint, listeners)


def _given(**arguments: Any) -> dict[str, Any]:
    """Those of *arguments* that say something."""
    return {name: value for name, value in arguments.items() if value is not None}


def run(
    frames: Sequence[Frame],
    path: Path,
    settings: StreamSettings,
    schema: Schema | Mapping[str, str] | None = None,
    trigger: Mapping[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    listeners: Sequence[Listener] = (),
    after_recovery: Sequence[Callable[[], None]] = (),
) -> StreamingQuery:
    """Run *frames*, whatever their columns are called, into the tables of *path*.

    *after_recovery* is called once this process holds the folder and the tables are what the
    manifests say, before the first batch: what a writer does that must not be done by two.
    """
    if not frames:
        raise SettingsError("there is nothing to read; give events, changes or records")
    for frame in frames:
        if not frame.df.isStreaming:
            raise SettingsError(
                f"{frame.name} is no streaming DataFrame; make it with spark.readStream, or match "
                "batches with stentor.pipeline.match"
            )
    keeps_events = any(
        frame.what != "changes" and frame.columns.until in frame.df.columns for frame in frames
    )
    settings = replace(settings, keeps_events=keeps_events)
    spark = frames[0].df.sparkSession
    path = path.resolve()
    # Without a scheme Spark may put it into HDFS, apart from what belongs to it.
    location = str(checkpoint or f"file:{(path / 'checkpoint').as_posix()}")
    let_the_last_one_end(path)
    lock = hold(path)
    try:
        prepared = _prepare(frames, path, settings, schema)
        for follow in after_recovery:
            follow()
        loop = BatchLoop(
            SparkRunner(spark, _local_folder(location)),
            path,
            prepared.schema,
            settings,
            prepared.housekeeping,
            prepared.fixed,
            listeners,
        )
        writer = prepared.records.writeStream.foreachBatch(loop)
        writer = writer.option("checkpointLocation", location)
        writer = writer.trigger(**trigger) if trigger else writer
        query = writer.queryName(f"stentor {path.name}").start()
    except BaseException:
        lock.release()
        raise
    release_at_the_end(query, path, lock, [loop.close, prepared.housekeeping.close])
    return query


@dataclass(frozen=True)
class _Prepared:
    """What a stream runs on."""

    records: DataFrame
    schema: Schema
    housekeeping: Housekeeping
    fixed: dict[str, Any]


def _prepare(
    frames: Sequence[Frame],
    path: Path,
    settings: StreamSettings,
    schema: Schema | Mapping[str, str] | None,
) -> _Prepared:
    last = Commits(path).last()
    declared = Schema.declare(schema) if isinstance(schema, Mapping) else schema
    if last is None:
        attributes = attribute_types(frames, declared)
        known = declared or schema_of(attributes)
    else:
        attributes = T.StructType.fromJson(last.settings["attributes"])
        known = Schema.from_dict(last.schema)
        check_unchanged(last, path, settings, declared)
        check_still_fit(attribute_types(frames, known), attributes)
    fixed = {
        "attributes": attributes.jsonValue(),
        "has_order": settings.has_order,
        "has_time": settings.has_time,
    }
    for folder in ("bases", "segments", "live", "work"):
        (path / folder).mkdir(exist_ok=True)
    schemas = table_schemas(_arrow_type(packed_types(attributes)))
    if last is None:
        discard_empty_tables(path, schemas)
    tables = DeltaTables(path, schemas, retention=settings.retention)
    housekeeping = Housekeeping(path, tables, settings)
    housekeeping.recover()
    records = union(*(canonical(frame, attributes) for frame in frames))
    records = packed(records, attributes, frames)
    return _Prepared(records, known, housekeeping, fixed)


def _local_folder(location: str) -> Path | None:
    """The folder that *location* names for Spark, where it is one of this machine."""
    if location.startswith("file:"):
        return Path(location.removeprefix("file:"))
    return None if "://" in location else Path(location)


def _arrow_type(of: T.DataType) -> Any:
    """The type of attributes in the table of events."""
    if isinstance(of, T.TimestampType):
        return TIME  # Spark's own function asks for a zone, in a way that varies
    if isinstance(of, T.StructType):
        return pa.struct([(one.name, _arrow_type(one.dataType)) for one in of.fields])
    return to_arrow_type(of)
