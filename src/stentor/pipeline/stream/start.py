"""`start`: what must be as before, the folder locked while the stream runs, the query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.streaming.query import StreamingQuery

from stentor._files import explain_os_errors
from stentor.errors import FolderError, SettingsError
from stentor.model import Schema
from stentor.pipeline.commit.housekeeping import Housekeeping
from stentor.pipeline.commit.manifests import Commits
from stentor.pipeline.sources import What
from stentor.pipeline.sources.attribute_types import check_still_fit, schema_of
from stentor.pipeline.sources.columns import named_columns
from stentor.pipeline.sources.frames import (
    FRAME,
    Frame,
    attribute_types,
    canonical,
    packed,
    packed_types,
    union,
)
from stentor.pipeline.sources.parquet_files import FileExpansion
from stentor.pipeline.sources.shape import shaped
from stentor.pipeline.spark.failures import java_ended
from stentor.pipeline.spark.s3 import let_spark_reach
from stentor.pipeline.spark.sessions import is_of_connect, of_connect
from stentor.pipeline.storage.credentials import storage_options
from stentor.pipeline.storage.folder import StreamFolder, stream_folder
from stentor.pipeline.storage.writers import FolderLock, lock_folder
from stentor.pipeline.stream.batch_loop import BatchLoop
from stentor.pipeline.stream.progress import BatchProgress
from stentor.pipeline.stream.runner import SparkRunner
from stentor.pipeline.stream.settings import (
    MOST_FIRST_REJECTED,
    FrameSettings,
    PlanName,
    StreamSettings,
    check_unchanged,
)
from stentor.pipeline.tables.delta import DeltaTables
from stentor.pipeline.tables.files import TIME, table_folder, table_schemas
from stentor.wire.limits import RecordLimits


def discard_empty_tables(path: StreamFolder, schemas: Mapping[str, pa.Schema]) -> None:
    """Remove the tables that a start before the first batch made for other columns than *schemas*.

    Only where no batch is committed. A table that has rows then has lost its manifests, and new
    batches would not be added to it: a FolderError.
    """
    from deltalake import Schema as DeltaSchema

    from stentor.pipeline.tables.delta_log import APPLICATION, is_table, open_table

    for name, schema in schemas.items():
        folder = table_folder(path, name)
        if not is_table(folder):
            continue
        table = open_table(folder)
        if table.transaction_version(APPLICATION) is not None:
            raise FolderError(
                f"{folder} holds rows, but no manifest of their batches is left in "
                f"{path / 'manifests'}; restore those from a backup, or choose another folder"
            )
        if table.schema() != DeltaSchema.from_arrow(schema):
            _discard(folder)


def _discard(table: StreamFolder) -> None:
    """Remove a *table* of no rows, as a whole: half a log does not say what it was."""
    if table.is_local:
        with explain_os_errors(table.local):
            gone = table.local.parent.parent / "work" / f"{table.title}-{uuid4().hex}"
            table.local.rename(gone)
        return
    # The first entry of a log says what a table is, and goes last.
    table.remove(sorted(table.names(), reverse=True))


#: What is done when a query has ended, and how long that may take; None: as long as it takes.
Ending = Callable[[timedelta | None], None]


class LockingQuery(StreamingQuery):
    """A query that has terminated once its folder is tidied up and given back.

    What waits for slower sources, and bases that are being built, are taken in first where it comes
    to its end by itself; where it is stopped, or fails, the former goes on waiting, and the latter
    are given up, unless they are ready.
    """

    def __init__(self, query: StreamingQuery, path: StreamFolder, lock: FolderLock) -> None:
        super().__init__(query._jsq)
        self._path = path
        self._lock = lock
        self._is_stopped = False
        self._guard: Thread | None = None
        self._error: Exception | None = None

    def release_at_the_end(self, finish: Callable[[], None], endings: Sequence[Ending]) -> None:
        """Let the next writer in once the query has ended, however it ends, and *endings* too.

        *finish* comes before them, where it has ended by itself; whoever waits gets its error.
        """
        self._guard = Thread(
            target=self._release, args=(finish, endings), name="stentor-lock", daemon=True
        )
        RUNNING[self._path] = self
        self._guard.start()

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802
        """Wait until all is done; where a *timeout* is given, whether it is after these seconds."""
        stop = None if timeout is None else monotonic() + timeout
        try:
            # It takes fractions of a second, whatever its type says.
            if super().awaitTermination(timeout) is False:  # type: ignore[arg-type]
                return False
        except BaseException as error:
            self._join(None)
            ended = java_ended(error)
            if ended is not None:
                raise ended from error
            raise
        is_over = self._join(None if stop is None else max(0.0, stop - monotonic()))
        if is_over and self._error is not None:
            raise self._error
        return None if timeout is None else is_over

    def stop(self) -> None:
        """Stop, and wait until the folder is given back."""
        self._is_stopped = True
        super().stop()
        self._join(None)

    def _join(self, seconds: float | None) -> bool:
        """Whether the folder is given back, after so many *seconds* at the most."""
        if self._guard is None:
            return True
        self._guard.join(seconds)
        return not self._guard.is_alive()

    def _release(self, finish: Callable[[], None], endings: Sequence[Ending]) -> None:
        try:
            super().awaitTermination()
        except Exception:  # noqa: BLE001 - whoever waits for the query gets it
            self._is_stopped = True
        finally:
            try:
                with self._lock:
                    if not self._is_stopped:
                        try:
                            finish()
                        except Exception as error:  # noqa: BLE001 - likewise
                            self._error = error
                    for ending in endings:
                        ending(timedelta(0) if self._is_stopped else None)
            finally:
                if RUNNING.get(self._path) is self:  # the next one may have begun already
                    del RUNNING[self._path]


#: The queries that run, or have ended and are tidying up.
RUNNING: Final[dict[StreamFolder, LockingQuery]] = {}


def wait_for_ended(path: StreamFolder) -> None:
    """Wait until a query of this process that has ended in *path* has tidied up after itself."""
    running = RUNNING.get(path)
    if running is not None and not running.isActive:
        running._join(None)


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
    (subscribe where it is null), `expression`, `at`, `until`. *records* mix both, distinguished by
    `op`. *order* names the column that says a record's position among all of them, *time* the
    one that says when it happened; without them a batch's changes come before its events, at the
    batch's own time. *columns* gives other names of columns by field: `{"id": "event_id"}`.

    *path* is a folder that the driver and all workers see, or an address of a store, such as
    `s3://bucket/alerts`. What is in it goes on where it stopped.
    *settings* are all settings of a stream; those that are arguments here too count as these
    say. *most_rejected* is the share of bad records at which the stream stops; of the first records
    of each frame at most half may be bad, or that share if it is larger: 1.0 stops at none.
    *trigger* is what `DataStreamWriter.trigger` takes. *listeners* are called after each batch.
    """
    for df in (events, changes, records):
        if df is not None and is_of_connect(df.sparkSession):
            raise of_connect("start")
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
    first = max(chosen.most_rejected or 0.0, MOST_FIRST_REJECTED)
    frames = [
        Frame(df if what == "changes" else shaped(df), what, what, named, most_rejected=first)
        for df, what in sides
        if df is not None
    ]
    return run(frames, path, chosen, schema, trigger, checkpoint, listeners)


def _given(**arguments: Any) -> dict[str, Any]:
    """Those of *arguments* that say something."""
    return {name: value for name, value in arguments.items() if value is not None}


def run(
    frames: Sequence[Frame],
    path: str | Path | StreamFolder,
    settings: StreamSettings,
    schema: Schema | Mapping[str, str] | None = None,
    trigger: Mapping[str, Any] | None = None,
    checkpoint: str | Path | StreamFolder | None = None,
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
    # Of texts that mix records nobody knows before they are read which are events.
    if any(frame.texts is not None and frame.what == "records" for frame in frames):
        settings = replace(settings, keeps_events=True)
    spark = frames[0].df.sparkSession
    options = storage_options(spark, settings.storage, path)
    path = stream_folder(path, options=options, cache=settings.local_cache)
    path = replace(path, most_copies=settings.local_cache_gb << 30)
    kept = checkpoint or path / "checkpoint"
    options = storage_options(spark, settings.storage, kept)
    folder = stream_folder(kept, "checkpoint", options=options)
    let_spark_reach(spark, folder.address, options)
    wait_for_ended(path)
    lock = lock_folder(path)
    try:
        prepared = _prepare(frames, path, settings, schema)
        for follow in after_recovery:
            follow()
        loop = BatchLoop(
            SparkRunner(spark, folder),
            prepared.housekeeping.path,
            prepared.schema,
            settings,
            prepared.housekeeping,
            prepared.fixed,
            listeners,
            tuple(FrameSettings(frame.name, frame.texts, frame.most_rejected) for frame in frames),
            FileExpansion(frames, prepared.attributes),
        )
        writer = prepared.records.writeStream.foreachBatch(loop)
        writer = writer.option("checkpointLocation", folder.spark_address)
        writer = writer.trigger(**trigger) if trigger else writer
        started = writer.queryName(f"stentor {path.title}").start()
    except BaseException:
        lock.release()
        raise
    query = LockingQuery(started, path, lock)
    # What ends by itself has read all that is there: nobody is waited for any more.
    close = prepared.housekeeping.close
    endings = [loop.close, lambda patience: close(is_over=patience is None)]
    query.release_at_the_end(loop.flush, endings)
    return query


@dataclass(frozen=True)
class _Prepared:
    """What a stream runs on."""

    records: DataFrame
    schema: Schema
    housekeeping: Housekeeping
    fixed: dict[str, Any]
    attributes: T.StructType


def _prepare(
    frames: Sequence[Frame],
    path: StreamFolder,
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
        new = set(known.grow(declared)) if declared is not None else set()
        types = attribute_types(frames, known)
        check_still_fit(types, attributes)
        added = [one for one in types.fields if one.name in new - set(attributes.names)]
        attributes = T.StructType([*attributes.fields, *added])
    fixed = {
        "attributes": attributes.jsonValue(),
        "has_order": settings.has_order,
        "has_time": settings.has_time,
        "partition": settings.partition,
    }
    for folder in ("bases", "segments", "live", "work", "waiting", "recent"):
        (path / folder).make()
    types = _arrow_type(packed_types(attributes))
    schemas = table_schemas(types, has_dates=settings.partition is not None)
    if last is None:
        discard_empty_tables(path, schemas)
    tables = DeltaTables(path, schemas, retention=settings.retention, keep=settings.keep)
    housekeeping = Housekeeping(path, tables, settings)
    housekeeping.recover()
    records = union(
        *(
            canonical(frame, attributes).withColumn(FRAME, F.lit(number))
            for number, frame in enumerate(frames)
        )
    )
    records = packed(records, attributes, frames)
    return _Prepared(records, known, housekeeping, fixed, attributes)


def _arrow_type(of: T.DataType) -> Any:
    """The type of attributes in the table of events."""
    if isinstance(of, T.TimestampType):
        return TIME  # Spark's own function wants a zone, in forms that vary
    if isinstance(of, T.StructType):
        return pa.struct([(one.name, _arrow_type(one.dataType)) for one in of.fields])
    return to_arrow_type(of)
