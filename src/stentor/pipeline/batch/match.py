"""Matching as a join: two DataFrames in, one out.

    subscriptions ─encode─▶ parts ─build─▶ index in a folder ─┐ which columns it mentions
    events ─native columns────────────────────────────────────┴─match (mapInArrow)─▶ matches

Nothing runs before an action. The index is built on the workers and memory-mapped by them; what
goes through the driver is its name.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from stentor.errors import SettingsError
from stentor.index.catalog import AUTO, index_class
from stentor.index.storage import new_folder
from stentor.pipeline.batch.building import BUILT, BUILT_ONE, Builder, BuildOne, BuildShards, told
from stentor.pipeline.batch.encoding import ENCODED, EncodeSubscriptions
from stentor.pipeline.batch.frames import (
    SchemaLike,
    check_events,
    check_frame,
    event_columns,
    schema_from,
    subscription_columns,
)
from stentor.pipeline.batch.matching import MATCHES, RUN, MatchEvents
from stentor.pipeline.batch.rejects import Policy, Rejects, check_policy
from stentor.pipeline.batch.scratch import new_scratch
from stentor.pipeline.snapshots import Snapshot, read_snapshot, write_manifest
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits

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
    rejected: Policy = "raise",
    scratch: StrPath | None = None,
    limits: RecordLimits = DEFAULT_RECORD_LIMITS,
) -> DataFrame:
    """Which subscriptions want each event: the columns event, subscription and score.

    Lazy, as a join is. *subscriptions* have the columns id, expression, and perhaps `at` and
    `until`; or they stand in a *snapshot*. *events* have an *id*, perhaps `time` and `weights`, and
    every other column is an attribute. A subscription with an `until` wants events whose `time` is
    before it, and those that have none. With *top*, an event has its k best only; equal scores go
    by id.

    *schema* names the attributes that subscriptions may ask about, and their types: by default the
    columns of *events*. Bad rows of either side, and ids that two subscriptions have, are an error
    when the result is read, or are left out (*rejected*: "raise" or "ignore"). *scratch* is a
    folder that driver and workers see; what is put there goes when the session's process ends.

    Cost: each action encodes the subscriptions, and builds their index unless an earlier one found
    the same; build a snapshot where there are many or they are asked often.
    """
    check_policy(rejected)
    if top is not None and (type(top) is not int or top < 1):
        raise SettingsError(f"top is {top!r}; expected a whole number of at least 1, or None")
    check_frame(events, "events")
    step = MatchEvents((), "", top, rejected, limits)
    if snapshot is not None and subscriptions is None:
        if index != AUTO or schema is not None:
            raise SettingsError("a snapshot has the index and the schema that it was built with")
        path = snapshot.path if isinstance(snapshot, Snapshot) else Path(snapshot).resolve()
        return _match_snapshot(events, id, read_snapshot(path), step)
    if subscriptions is None or snapshot is not None:
        raise SettingsError("match takes subscriptions or a snapshot of them, one of the two")
    index_class(index)
    closed = schema_from(schema, events, id)
    check_events(events, id, closed, list(closed))
    folder = str(new_scratch(events.sparkSession, scratch))
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
    asked = event_columns(events, id, sorted(snapshot.mentioned), lambda _, column: column)
    folders = tuple(str(snapshot.path / name) for name in snapshot.shards)
    return _matched(events.select(*asked), replace(step, shards=folders))


def _match_built(
    events: DataFrame, id: str, attributes: list[str], building: DataFrame, step: MatchEvents
) -> DataFrame:
    """What is not mentioned is null: that turns out when the one row of *building* is there."""
    built = F.col(_BUILT)
    run, mentioned, problem = (built[name] for name in (RUN, "mentioned", "problem"))
    checked_run = F.when(problem.isNull(), run).otherwise(F.raise_error(problem))

    def where_mentioned(name: str, column: Column) -> Column:
        return F.when(mentioned[attributes.index(name)], column)

    asked = event_columns(events, id, attributes, where_mentioned)
    with_built = events.withColumn(_BUILT, building.scalar())
    return _matched(with_built.select(checked_run.alias(RUN), *asked), step)


def _matched(events: DataFrame, step: MatchEvents) -> DataFrame:
    """A condition raises what the step tells: no projection of the user's can prune it away."""
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
    rejected: Policy = "raise",
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
    asked = subscription_columns(subscriptions)
    path = Path(path).resolve()
    with new_folder(path) as fresh:
        parts = str(fresh / _PARTS)
        encode = EncodeSubscriptions(closed.to_dict(), parts, shards, limits)
        encoded = told(row.asDict() for row in asked.mapInArrow(encode, ENCODED).collect())
        encoded.rejects.check(rejected, "subscriptions")
        builder = Builder(closed.to_dict(), index, parts)
        build = BuildShards(builder, encoded.parts, str(fresh), rejected)
        spark = subscriptions.sparkSession
        built = spark.range(0, shards, 1, shards).mapInArrow(build, BUILT).collect()
        repeated = sum((Rejects(row.rejected, tuple(row.told)) for row in built), Rejects())
        repeated.check(rejected, "subscriptions")
        names = sorted(row.shard for row in built)
        for left in (one for one in fresh.iterdir() if one.name not in names):
            shutil.rmtree(left, ignore_errors=True)  # the parts, and what was tried in vain
        write_manifest(
            fresh,
            closed,
            names,
            {name for row in built for name in row.mentioned},
            count=sum(row["count"] for row in built),
            rejected=encoded.rejects.count + repeated.count,
        )
    return read_snapshot(path)
