"""Matching as a join: two DataFrames in, one out.

    subscriptions ─encode─▶ parts ─build─▶ index in a folder ─┐ which columns it mentions
    events ─native columns────────────────────────────────────┴─match (mapInArrow)─▶ matches

Nothing runs before an action. The index is built on the workers and memory-mapped by them; what
goes through the driver is its name.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from stentor.errors import SettingsError
from stentor.index.catalog import AUTO, index_class
from stentor.index.storage.arrays import new_folder
from stentor.index.storage.folders import local_folder
from stentor.model import Kind, Schema
from stentor.pipeline.batch.build import (
    BUILT,
    BUILT_ONE,
    ENCODED,
    Builder,
    BuildOne,
    BuildShards,
    EncodeSubscriptions,
    read_reports,
    session_folder,
)
from stentor.pipeline.batch.matching import MATCHES, RUN, MatchEvents
from stentor.pipeline.batch.rejected import RejectedPolicy, RejectSummary, check_policy
from stentor.pipeline.snapshots import Snapshot, read_snapshot, write_manifest
from stentor.pipeline.sources import DEFAULT_COLUMNS, Columns
from stentor.pipeline.sources.attribute_types import kind_of_type, usable_types
from stentor.pipeline.sources.columns import attribute_columns, check_columns, column_of, is_nested
from stentor.pipeline.sources.shape import shaped
from stentor.wire.events import NESTED
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits

#: A schema as users give it: declared, or that of a frame of events.
SchemaLike = Schema | Mapping[str, str | Kind] | DataFrame

_SUBSCRIPTION = ("id", "expression", "at", "until")

_EVENT = ("time", "weights", "op")  # beside the id; `until` is for live events


def schema_from(
    given: SchemaLike | None, events: DataFrame | None = None, id: str = "id"
) -> Schema:
    """The closed schema that *given* means; without it, that of *events*."""
    if isinstance(given, Schema):
        return Schema.closed({name: _known(given, name) for name in given}, plane=given.plane)
    if isinstance(given, Mapping):
        return Schema.declare(given)
    frame = events if given is None else given
    if not isinstance(frame, DataFrame):
        raise SettingsError(
            'say what the attributes are: schema={"price": "number", "loc": "point"}, or '
            "schema=events, a DataFrame that has them"
        )
    frame = shaped(frame)
    types = attribute_columns(frame, "events", _columns(frame, id))
    usable, _ = usable_types(types, "the events")  # what no expression can test does not matter
    return Schema.closed({name: kind_of_type(of) or Kind.STRING for name, of in usable.items()})


def _known(schema: Schema, name: str) -> Kind:
    kind = schema.kind(name)
    if kind is None:
        raise SettingsError(f"the schema does not say of which type {name!r} is; declare it")
    return kind


def check_frame(frame: Any, what: str) -> None:
    """A SettingsError where *frame* is not a frame that can be read to its end."""
    if not isinstance(frame, DataFrame):
        raise SettingsError(f"{what}: expected a Spark DataFrame, got {type(frame).__name__}")
    if frame.isStreaming:
        raise SettingsError(f"{what}: this one is a stream, which stentor.pipeline.start takes")


def subscription_columns(subscriptions: DataFrame) -> DataFrame:
    """The columns of *subscriptions* that are encoded."""
    check_frame(subscriptions, "subscriptions")
    if "expression" not in subscriptions.columns:
        raise SettingsError(
            "the subscriptions have no column 'expression'; "
            f"they have {', '.join(subscriptions.columns) or 'no columns'}"
        )
    check_columns(subscriptions, "changes", DEFAULT_COLUMNS, "the subscriptions")
    names = [name for name in _SUBSCRIPTION if name in subscriptions.columns]
    return subscriptions.select(*map(_as_read, names))


def _as_read(name: str) -> Column:
    return column_of(name).cast("string").alias(name) if name == "id" else column_of(name)


def check_events(events: DataFrame, id: str, schema: Schema, needed: Collection[str]) -> None:
    """A SettingsError where *events* lack an attribute that is *needed*, or have another type."""
    check_frame(events, "events")
    columns = _columns(events, id)
    check_columns(events, "events", columns, "the events")
    types = attribute_columns(events, "events", columns)
    missing = sorted(name for name in needed if name not in types)
    if missing:
        raise SettingsError(
            f"the events have no column {', '.join(map(repr, missing))}, which subscriptions may "
            f"ask about; they have {', '.join(events.columns)}. Rename a column, or add one of "
            "nulls where no event has it"
        )
    _, mistakes = usable_types(
        {name: of for name, of in types.items() if name in needed}, "the events", schema
    )
    if mistakes:
        raise SettingsError("\n".join(mistakes))


def event_columns(
    events: DataFrame, id: str, attributes: Collection[str], seen: Callable[[str, Column], Column]
) -> list[Column]:
    """What `MatchEvents` reads of *events*; *seen* says what it sees of an attribute's column."""
    fields = _columns(events, id)
    nested = is_nested(events)

    def attribute(name: str) -> Column:
        column = column_of(NESTED).getField(name) if nested else column_of(name)
        return seen(name, column).alias(name)

    chosen = [column_of(id).cast("string").alias("id")]
    for field in _EVENT:
        name = fields.of(field)
        if name is not None and name in events.columns:
            chosen.append(column_of(name).alias(field))
    if attributes:
        chosen.append(F.struct(*map(attribute, attributes)).alias(NESTED))
    return chosen


def _columns(events: DataFrame, id: str) -> Columns:
    time = "time" if "time" in events.columns else None
    return replace(DEFAULT_COLUMNS, id=id, time=time)


StrPath = str | os.PathLike[str]

_PARTS = "parts"

_BUILT = "_stentor_built"


def match(
    events: DataFrame,
    subscriptions: DataFrame | None = None,
    *,
    snapshot: StrPath | Snapshot | None = None,
    index: str = AUTO,
    top: int | None = None,
    schema: SchemaLike | None = None,
    id: str = "id",
    rejected: RejectedPolicy = "raise",
    scratch: StrPath | None = None,
    limits: RecordLimits = DEFAULT_RECORD_LIMITS,
) -> DataFrame:
    """Which subscriptions want each event: the columns event, subscription and score.

    Lazy, as a join is. *subscriptions* have the columns id, expression, and perhaps `at` and
    `until`; or they are in a *snapshot*. *events* have an *id*, perhaps `time` and `weights`, and
    every other column is an attribute. A subscription with an `until` wants events whose `time` is
    before it, and those that have none. With *top*, an event has its k best only; equal scores go
    by id.

    *schema* names the attributes that subscriptions may test, and their types: by default the
    columns of *events*. Bad rows of either side, and ids that two subscriptions have, are an error
    when the result is read, or are left out (*rejected*: "raise" or "ignore"). *scratch* is a
    folder that driver and workers see; what is put there goes when the session's process ends.

    Cost: each action encodes the subscriptions, and builds their index unless an earlier one found
    the same; build a snapshot where there are many or they are matched often.
    """
    check_policy(rejected)
    if top is not None and (type(top) is not int or top < 1):
        raise SettingsError(f"top is {top!r}; expected a whole number of at least 1, or None")
    check_frame(events, "events")
    events = shaped(events)
    step = MatchEvents((), "", top, rejected, limits)
    if snapshot is not None and subscriptions is None:
        if index != AUTO or schema is not None:
            raise SettingsError("a snapshot has the index and the schema that it was built with")
        path = (
            snapshot.path
            if isinstance(snapshot, Snapshot)
            else local_folder(snapshot, "snapshot").resolve()
        )
        return _match_snapshot(events, id, read_snapshot(path), step)
    if subscriptions is None or snapshot is not None:
        raise SettingsError("match takes subscriptions or a snapshot of them, one of the two")
    index_class(index)
    closed = schema_from(schema, events, id)
    check_events(events, id, closed, list(closed))
    folder = str(session_folder(events.sparkSession, scratch))
    encode = EncodeSubscriptions(closed.to_dict(), folder, 1, limits)
    build = BuildOne(Builder(closed.to_dict(), index, folder), tuple(closed), rejected)
    building = (
        subscription_columns(subscriptions)
        .mapInArrow(encode, ENCODED)
        .repartition(1)
        .mapInArrow(build, BUILT_ONE)
        .select(F.struct("*"))
    )
    return _match_built(events, id, list(closed), building, replace(step, scratch=folder))


def _match_snapshot(events: DataFrame, id: str, snapshot: Snapshot, step: MatchEvents) -> DataFrame:
    """Only what is mentioned is selected: that is known beforehand."""
    check_events(events, id, snapshot.schema, snapshot.mentioned)
    selected = event_columns(events, id, sorted(snapshot.mentioned), lambda _, column: column)
    folders = tuple(str(snapshot.path / name) for name in snapshot.shards)
    return _matched(events.select(*selected), replace(step, shards=folders))


def _match_built(
    events: DataFrame, id: str, attributes: list[str], building: DataFrame, step: MatchEvents
) -> DataFrame:
    """What is not mentioned is null: that turns out when the one row of *building* is there."""
    built = F.col(_BUILT)
    run, mentioned, problem = (built[name] for name in (RUN, "mentioned", "problem"))
    checked_run = F.when(problem.isNull(), run).otherwise(F.raise_error(problem))

    def where_mentioned(name: str, column: Column) -> Column:
        return F.when(mentioned[attributes.index(name)], column)

    selected = event_columns(events, id, attributes, where_mentioned)
    with_built = events.withColumn(_BUILT, building.scalar())
    return _matched(with_built.select(checked_run.alias(RUN), *selected), step)


def _matched(events: DataFrame, step: MatchEvents) -> DataFrame:
    """A condition raises what the step reports: no projection of the user's can prune it away."""
    problem = F.raise_error(F.col("event")).cast("boolean")
    is_match = F.when(F.col("subscription").isNotNull(), F.lit(True)).otherwise(problem)
    return events.mapInArrow(step, MATCHES).where(is_match)


def build_snapshot(
    subscriptions: DataFrame,
    path: StrPath,
    *,
    schema: SchemaLike,
    index: str = AUTO,
    shards: int = 1,
    rejected: RejectedPolicy = "raise",
    limits: RecordLimits = DEFAULT_RECORD_LIMITS,
) -> Snapshot:
    """Put *subscriptions* into the folder *path*, which all workers see, for `match` to use.

    Encoded in parallel, built in parallel where there are several *shards*; at the end it appears
    at once, in place of a snapshot that was there before. *schema* names the attributes and their
    types, or is a DataFrame of events that has them as columns.
    """
    check_policy(rejected)
    index_class(index)
    if type(shards) is not int or shards < 1:
        raise SettingsError(f"shards is {shards!r}; expected a whole number of at least 1")
    closed = schema_from(schema)
    selected = subscription_columns(subscriptions)
    path = local_folder(path, "path").resolve()
    with new_folder(path) as fresh:
        parts = str(fresh / _PARTS)
        encode = EncodeSubscriptions(closed.to_dict(), parts, shards, limits)
        encoded = read_reports(
            row.asDict() for row in selected.mapInArrow(encode, ENCODED).collect()
        )
        encoded.rejects.check(rejected, "subscriptions")
        builder = Builder(closed.to_dict(), index, parts)
        build = BuildShards(builder, encoded.parts, str(fresh), rejected)
        spark = subscriptions.sparkSession
        built = spark.range(0, shards, 1, shards).mapInArrow(build, BUILT).collect()
        repeated = sum(
            (RejectSummary(row.rejected, tuple(row.sentences)) for row in built), RejectSummary()
        )
        repeated.check(rejected, "subscriptions")
        names = sorted(row.shard for row in built)
        for left in (one for one in fresh.iterdir() if one.name not in names):
            shutil.rmtree(left, ignore_errors=True)  # the parts, and what was tried in vain
        write_manifest(
            fresh,
            closed,
            names,
            {name for row in built for name in row.mentioned},
            (encoded.rejects + repeated).sentences,
            count=sum(row["count"] for row in built),
            rejected=encoded.rejects.count + repeated.count,
        )
    return read_snapshot(path)
