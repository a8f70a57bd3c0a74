"""Changes of subscriptions in their order → the versions that they amount to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import (
    Float64,
    Int64,
    SubscriptionColumns,
    UInt8,
    UInt64,
    empty,
    subscription_count,
)
from stentor.encoding.ragged import concatenate, take
from stentor.engine.core import Arriving, text_of, to_match_back, version_columns
from stentor.engine.names import StringArrays
from stentor.engine.plan import STANDING, Before, Operation, Plan, Step, Version, walk
from stentor.engine.state import State
from stentor.model import Point
from stentor.model.time import BEGINNING, NEVER
from stentor.pipeline.stream.ordering import ADMITTED, Ordered, reason
from stentor.pipeline.stream.parts import ChangePart
from stentor.pipeline.stream.segments import Asked, Versions


class Changes(NamedTuple):
    """Changes of subscriptions, in their order."""

    operation: UInt8
    ids: list[str]
    texts: list[str]
    position: Float64
    place: Int64  # of a new subscription among the columns
    until: Int64
    ordered: Ordered
    part: Int64  # which part each came in, and its row there
    row: Int64
    columns: SubscriptionColumns


class Settled(NamedTuple):
    """What changes amount to."""

    plan: Plan
    accepted: Int64  # the changes that did something
    versions: Versions
    asked: Asked
    errors: dict[int, str]  # by change


def share_of(hashes: UInt64, shard: int, shards: int, share: int, shares: int) -> Int64:
    """The rows whose ids belong to a *share* of a *shard*."""
    mine = hashes % np.uint64(shards) == shard
    mine &= hashes // np.uint64(shards) % np.uint64(shares) == share
    return np.flatnonzero(mine)


def sorted_changes(parts: Sequence[ChangePart], ordered: Ordered, rows: Int64) -> Changes:
    """The changes *rows* of all *parts* together, sorted by their place in the order."""
    rows = rows[np.argsort(ordered.seq[rows], kind="stable")]
    starts = np.cumsum([0, *(len(part.order) for part in parts)])
    part = np.searchsorted(starts, rows, side="right") - 1
    columns = [one.columns for one in parts]
    shift = np.cumsum([0, *(subscription_count(one) for one in columns)])[part]
    place = np.concatenate([one.place for one in parts])[rows]
    return Changes(
        operation=np.concatenate([one.operation for one in parts])[rows],
        ids=_taken([one.ids for one in parts], rows),
        texts=_taken([one.texts for one in parts], rows),
        position=np.concatenate([one.position for one in parts])[rows],
        place=np.where(place < 0, place, place + shift),
        until=np.concatenate([one.until for one in parts])[rows],
        ordered=ordered.take(rows),
        part=part,
        row=rows - starts[part],
        columns=concatenate(columns) if columns else empty(SubscriptionColumns),
    )


def settle(changes: Changes, state: State) -> Settled:
    """What *changes* do to the subscriptions of *state*, which stays as it is."""
    admitted = np.flatnonzero(changes.ordered.refused == ADMITTED)
    steps = [_step(changes, row) for row in admitted.tolist()]
    # Only new subscriptions that are admitted keep their columns.
    new = np.array([step.place for step in steps if step.place >= 0], np.int64)
    arriving = Arriving(
        [_placed(step, number) for step, number in zip(steps, _count(steps), strict=True)],
        take(changes.columns, new),
        [changes.texts[row] for row in admitted.tolist() if changes.place[row] >= 0],
    )
    before = Before(state.version, lambda _: None)
    plan = walk(arriving.steps, len(arriving.texts), 0, BEGINNING, before)
    columns = version_columns(state, plan, arriving)
    asked_columns, places = to_match_back(state, plan.changes, columns)
    accepted = admitted[np.array([change.record for change in plan.changes], np.int64)]
    errors = {int(admitted[step]): str(error) for step, error in plan.errors.items()}
    refused = np.flatnonzero(changes.ordered.refused != ADMITTED)
    refusals = changes.ordered.refused[refused].tolist()
    for row, refusal in zip(refused.tolist(), refusals, strict=True):
        errors[row] = reason(refusal, changes.ids[row], NEVER, 0)
    return Settled(
        plan,
        accepted,
        _versions(plan, columns, state, arriving.texts),
        _asked(plan, asked_columns, places, [changes.ids[row] for row in accepted.tolist()]),
        errors,
    )


def _step(changes: Changes, row: int) -> Step:
    x, y = changes.position[row].tolist()
    return Step(
        Operation(int(changes.operation[row])),
        changes.ids[row],
        int(changes.ordered.time[row]),
        int(changes.place[row]),
        int(changes.until[row]),
        None if np.isnan(x) else Point(x, y),
        int(changes.ordered.seq[row]),
    )


def _count(steps: Sequence[Step]) -> list[int]:
    """For each step how many new subscriptions came before it."""
    news = np.array([step.place >= 0 for step in steps], np.int64)
    counts: list[int] = (np.cumsum(news) - news).tolist()
    return counts


def _placed(step: Step, number: int) -> Step:
    return step._replace(place=number) if step.place >= 0 else step


def _versions(
    plan: Plan, columns: SubscriptionColumns, state: State, texts: Sequence[str]
) -> Versions:
    new = plan.versions
    ended = [
        change.before
        for change in plan.changes
        if change.before is not None and change.before.column == STANDING
    ]
    return Versions(
        columns=take(columns, np.array([version.column for version in new], np.int64)),
        ids=StringArrays.of([version.id for version in new]),
        texts=StringArrays.of([text_of(state, version, texts) for version in new]),
        since=np.array([version.since for version in new], np.int64),
        upto=np.array([_upto(version) for version in new], np.int64),
        ended=StringArrays.of([version.id for version in ended]),
        ended_upto=np.array([_upto(version) for version in ended], np.int64),
    )


def _asked(
    plan: Plan, columns: SubscriptionColumns, places: dict[Version, int], ids: Sequence[str]
) -> Asked:
    asking = [(id, c) for id, c in zip(ids, plan.changes, strict=True) if c.after is not None]

    def rows(versions: Sequence[Version | None]) -> Int64:
        return np.array([-1 if one is None else places[one] for one in versions], np.int64)

    return Asked(
        columns=columns,
        ids=StringArrays.of([id for id, _ in asking]),
        seq=np.array([change.seq for _, change in asking], np.int64),
        time=np.array([change.time for _, change in asking], np.int64),
        before=rows([change.before for _, change in asking]),
        after=rows([change.after for _, change in asking]),
    )


def _upto(version: Version) -> int:
    return NEVER if version.upto is None else version.upto


def _taken(arrays: Sequence[StringArrays], rows: Int64) -> list[str]:
    every = pa.chunked_array([one.arrow for one in arrays], pa.large_string())
    taken: list[str] = every.take(pa.array(rows)).to_pylist()
    return taken
