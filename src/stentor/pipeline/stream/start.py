"""`start`: events and changes of subscriptions through Structured Streaming into the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.streaming.query import StreamingQuery

from stentor.errors import SettingsError
from stentor.model import Schema
from stentor.pipeline.commit.housekeeping import Housekeeping
from stentor.pipeline.commit.lock import FolderLock, hold
from stentor.pipeline.commit.manifests import Commits, Manifest
from stentor.pipeline.frames.attribute_types import check_still_fit, schema_of
from stentor.pipeline.frames.canonical import Frame, attribute_types, canonical, union
from stentor.pipeline.frames.columns import Columns, What
from stentor.pipeline.frames.packing import packed, packed_types
from stentor.pipeline.stream.batch_loop import BatchLoop
from stentor.pipeline.stream.progress import BatchProgress
from stentor.pipeline.stream.runner import SparkRunner
from stentor.pipeline.stream.settings import PlanName, StreamSettings
from stentor.pipeline.tables.delta import DeltaTables
from stentor.pipeline.tables.files import TIME, table_schemas
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits

Listener = Callable[[BatchProgress], None]


def start(
    events: DataFrame | None,
    changes: DataFrame | None,
    path: str | Path,
    *,
    records: DataFrame | None = None,
    schema: Schema | Mapping[str, str] | None = None,
    index: str = "auto",
    top: int | None = None,
    plan: PlanName = "auto",
    shards: int | None = None,
    order: str | None = None,
    time: str | None = None,
    limits: RecordLimits = DEFAULT_RECORD_LIMITS,
    most_rejected: float | None = None,
    retention: timedelta = timedelta(days=7),
    trigger: Mapping[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    listeners: Sequence[Listener] = (),
    **fine: Any,
) -> StreamingQuery:
    """Run *events* and *changes* of subscriptions, streaming DataFrames, into the tables of *path*.

    *events* have a column `id`, perhaps `until`, and attributes. *changes* have `id`, `op`
    (subscribe where it is null), `expression`, `at`, `until`. *records* mix both, told apart by
    `op`. *order* names the column that says where a record stands among all of them, *time* the
    one that says when it happened; without them a batch's changes come before its events, at the
    batch's own time.

    *path* is a folder that the driver and all workers see. What is in it goes on where it stopped.
    *trigger* is what `DataStreamWriter.trigger` takes, *fine* the other fields of
    `StreamSettings`. *listeners* are told of each batch.
    """
    settings = StreamSettings(
        index=index,
        top=top,
        plan=plan,
        shards=shards,
        has_order=order is not None,
        has_time=time is not None,
        limits=limits,
        most_rejected=most_rejected,
        retention=retention,
        **fine,
    )
    columns = Columns(order=order, time=time)
    given: list[tuple[DataFrame | None, What]] = [
        (changes, "changes"),
        (events, "events"),
        (records, "records"),
    ]
    frames = [Frame(df, what, what, columns) for df, what in given if df is not None]
    return run(frames, Path(path), settings, schema, trigger, checkpoint, listeners)


def run(
    frames: Sequence[Frame],
    path: Path,
    settings: StreamSettings,
    schema: Schema | Mapping[str, str] | None = None,
    trigger: Mapping[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    listeners: Sequence[Listener] = (),
) -> StreamingQuery:
    """Run *frames*, whatever their columns are called, into the tables of *path*."""
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
    _let_the_last_one_end(path)
    lock = hold(path)
    try:
        prepared = _prepare(frames, path, settings, schema)
        loop = BatchLoop(
            SparkRunner(spark),
            path,
            prepared.schema,
            settings,
            prepared.housekeeping,
            prepared.fixed,
            listeners,
        )
        writer = prepared.records.writeStream.foreachBatch(loop)
        # Without a scheme Spark may put it into HDFS, apart from what belongs to it.
        location = checkpoint or f"file:{(path / 'checkpoint').as_posix()}"
        writer = writer.option("checkpointLocation", str(location))
        writer = writer.trigger(**trigger) if trigger else writer
        query = writer.queryName(f"stentor {path.name}").start()
    except BaseException:
        lock.release()
        raise
    _release_at_the_end(query, path, lock, [loop.close, prepared.housekeeping.close])
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
        _check_same(last, path, settings, declared)
        check_still_fit(attribute_types(frames, known), attributes)
    fixed = {
        "attributes": attributes.jsonValue(),
        "has_order": settings.has_order,
        "has_time": settings.has_time,
    }
    for folder in ("bases", "segments", "live", "work"):
        (path / folder).mkdir(exist_ok=True)
    schemas = table_schemas(_arrow_type(packed_types(attributes)))
    tables = DeltaTables(path, schemas, retention=settings.retention)
    housekeeping = Housekeeping(path, tables, settings)
    housekeeping.recover()
    records = union(*(canonical(frame, attributes) for frame in frames))
    records = packed(records, attributes, frames)
    return _Prepared(records, known, housekeeping, fixed)


def _check_same(
    last: Manifest, path: Path, settings: StreamSettings, declared: Schema | None
) -> None:
    """Refuse what cannot change once a pipeline has begun."""
    for name, meaning in (("has_order", "order"), ("has_time", "time")):
        if last.settings[name] != getattr(settings, name):
            was = "named" if last.settings[name] else "did not name"
            raise SettingsError(
                f"{path} began with a pipeline that {was} a column for the {meaning}, and this "
                "cannot change; start it as before, or choose another folder"
            )
    if declared is not None and declared.to_dict() != last.schema:
        raise SettingsError(
            f"{path} began with the schema {Schema.from_dict(last.schema)}, which is not the one "
            f"declared now, {declared}; start it as before, or choose another folder"
        )


def _arrow_type(of: T.DataType) -> Any:
    """The type of attributes in the table of events."""
    if isinstance(
        of, T.TimestampType
    ):  # Spark's own function asks for a zone, in a way that varies
        return TIME
    if isinstance(of, T.StructType):
        return pa.struct([(one.name, _arrow_type(one.dataType)) for one in of.fields])
    return to_arrow_type(of)


#: The streams of this process that hold their folders, and who gives those back.
_HELD: dict[Path, tuple[StreamingQuery, Thread]] = {}


def _let_the_last_one_end(path: Path) -> None:
    """Wait until a query of this process that has ended in *path* has tidied up after itself."""
    if path in _HELD:
        query, guard = _HELD[path]
        if guard.is_alive() and not query.isActive:
            guard.join()


def _release_at_the_end(
    query: StreamingQuery, path: Path, lock: FolderLock, close: Sequence[Callable[[], None]]
) -> None:
    """Let the next writer in once *query* has ended, however it ends, and *close* is done."""

    def wait() -> None:
        try:
            query.awaitTermination()
        except Exception:  # noqa: BLE001 - whoever waits for the query is told
            return
        finally:
            with lock:
                for one in close:
                    one()

    guard = Thread(target=wait, name="stentor-lock", daemon=True)
    _HELD[path] = query, guard
    guard.start()
