"""`apply` for what needs no plan: one subscription or move, new subscriptions, events alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stentor.encoding.columns import (
    EventColumns,
    Int64,
    SubscriptionColumns,
    event_count,
    read_only,
)
from stentor.encoding.ragged import concatenate, take
from stentor.engine.apply import NO_PAIRS, StepResult, event_ids, match
from stentor.engine.clock import Clock
from stentor.engine.ids import NO_ROW
from stentor.engine.passages import Passages
from stentor.engine.plan import Admitted
from stentor.engine.state import EXPIRED_PER_RECORD, State
from stentor.engine.tags import NO_TAGS, Among, Tags
from stentor.engine.texts import ShapedTexts
from stentor.engine.top_k import TopK
from stentor.index.pairs import pairs_of, set_changes
from stentor.model import Changes, Point
from stentor.model.values.time import NEVER


def subscribe_one(
    state: State, id: str, columns: SubscriptionColumns, text: str, admitted: Admitted, tags: Tags
) -> None:
    """Let *id* want what *columns* say, instead of what it wanted, while nothing is live."""
    before = state.version(id)
    with state.change():
        if before is not None and before.until > admitted.time:
            state.remove([before.row])
        own = None if tags == NO_TAGS else [tags]
        state.insert(columns, [id], [text], np.array([admitted.seq], np.int64), tags=own)
        state.seq, state.time = admitted.seq, admitted.time
        state.expire(EXPIRED_PER_RECORD)


def move_one(state: State, row: int, at: Point, admitted: Admitted) -> Changes:
    """Move the subscriber in *row*, and how that changes its answer."""
    rows, positions = np.array([row], np.int64), np.array([at], np.float64)
    changes = Changes()
    with state.change():
        if not state.index.live.current_count:
            state.move(rows, positions)
        else:
            relocation = state.move_and_match(rows, positions)
            until = state.index.live.columns.until
            own = state.tags[row]
            added, removed = (
                event_ids(
                    state,
                    pairs.rows[
                        (until[pairs.rows] > admitted.time) & state.are_for(pairs.rows, own)
                    ],
                )
                for pairs in relocation
            )
            changes = Changes(added=added, removed=removed)
        state.seq, state.time = admitted.seq, admitted.time
        state.expire(EXPIRED_PER_RECORD)
    return changes


class Unchanged(Mapping[int, Changes]):
    """No answer of the steps 0 to *count* was changed."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __getitem__(self, step: int) -> Changes:
        if not 0 <= step < self._count:
            raise KeyError(step)
        return Changes()

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._count))

    def __len__(self) -> int:
        return self._count


def apply_new(
    state: State,
    columns: SubscriptionColumns,
    ids: list[str],
    texts: list[str] | ShapedTexts,
    times: Int64,
    tags: Sequence[Tags] | None,
    clock: Clock,
) -> StepResult | None:
    """`apply` for subscriptions under new ids while nothing is live: nothing to plan.

    None where it is not as simple as that.
    """
    if not ids or state.index.live.current_count or not state.subscribers.are_new(ids):
        return None
    time = np.maximum.accumulate(np.maximum(times, state.time))
    if not clock.allows_all(times, state.time) or (columns.until <= time).any():
        return None
    seq = np.arange(state.seq + 1, state.seq + 1 + len(ids))
    with state.change():
        state.insert(columns, ids, texts, seq, tags=tags, are_new=True)
        state.seq, state.time = int(seq[-1]), int(time[-1])
        state.expire(EXPIRED_PER_RECORD * len(ids))
    never = np.flatnonzero(np.diff(columns.alternative_start) == 0).tolist()
    return StepResult([], NO_PAIRS, Unchanged(len(ids)), {}, never)


def apply_events(
    state: State,
    events: EventColumns,
    clock: Clock,
    top: TopK | None = None,
    threads: int = 1,
    among: Sequence[Among | None] | None = None,
) -> StepResult | None:
    """`apply` for events alone that are not kept while nothing is live: nothing to plan.

    None where it is not as simple as that.
    """
    if len(state.events) or (events.until != NEVER).any():
        return None
    if not clock.allows_all(events.time, state.time):
        return None
    count = event_count(events)
    time = np.maximum.accumulate(np.maximum(events.time, state.time))
    seq = np.arange(state.seq + 1, state.seq + 1 + count)
    timed = events._replace(time=read_only(time), seq=read_only(seq))
    pairs = match(state, timed, top, threads, among)
    with state.change():
        if count:
            state.seq, state.time = int(seq[-1]), int(time[-1])
        state.expire(EXPIRED_PER_RECORD * count)
    return StepResult(np.arange(count), pairs, {}, {}, [])


def apply_updates(
    state: State,
    events: EventColumns,
    given: Any,
    among: Sequence[Among | None] | None,
    clock: Clock,
) -> StepResult | None:
    """`apply` for updates of events under different ids, in a list or an Arrow array, for all.

    None where it is not as simple as that.
    """
    count = event_count(events)
    ids: list[str] = given if isinstance(given, list) else given.to_pylist()
    if not count or among or state.among or not state.regions.is_empty or len(set(ids)) < count:
        return None
    time = np.maximum.accumulate(np.maximum(events.time, state.time))
    if not clock.allows_all(events.time, state.time) or (events.until <= time).any():
        return None
    seq = np.arange(state.seq + 1, state.seq + 1 + count)
    timed = events._replace(time=read_only(time), seq=read_only(seq))
    live = state.index.live.columns
    rows = np.array([state.events.row(id) for id in ids], np.int64)
    is_live = rows != NO_ROW
    is_live[is_live] = live.until[rows[is_live]] > time[is_live]
    ended = rows[is_live]
    before = take(live, ended)._replace(time=read_only(time[is_live]), seq=read_only(seq[is_live]))
    pairs = match(state, concatenate([timed, before]), None, 1)
    was = np.where(is_live, count - 1 + np.cumsum(is_live), -1)
    changes = set_changes(pairs_of(pairs, was), pairs_of(pairs, np.arange(count)))
    with state.change():
        state.hold(timed, ids)
        state.drop(ended.tolist())
        state.seq, state.time = int(seq[-1]), int(time[-1])
        state.expire(EXPIRED_PER_RECORD * count)
    passages = Passages(np.arange(count), *changes)
    return StepResult([], NO_PAIRS, {}, {}, [], passages=passages)
