"""A step: what a table of mixed records does to the state, and what is reported.

    records ─walk─▶ plan ─file─▶ versions in the index ─match─▶ deliveries
                                 live events ─match_back─▶ changes

The result is exactly that of feeding the records one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from stentor.encoding.columns import (
    EventColumns,
    Int64,
    MatchPairs,
    ScoredPairs,
    SubscriptionColumns,
    empty,
    event_count,
    subscription_count,
)
from stentor.encoding.ragged import concatenate, take
from stentor.encoding.readonly import read_only
from stentor.engine.plan import STANDING, Before, Change, Plan, Step, Version, walk
from stentor.engine.ranking import Best, k_best
from stentor.engine.state import EXPIRED_PER_RECORD, State
from stentor.errors import StentorError
from stentor.index.table import SubscriptionTable
from stentor.model import Changes
from stentor.model.time import NEVER

NO_SUBSCRIPTIONS = empty(SubscriptionColumns)
NO_EVENTS = empty(EventColumns)
NO_PAIRS = MatchPairs(read_only(np.zeros(1, np.int64)), read_only(np.zeros(0, np.int64)))


@dataclass(slots=True)
class Arriving:
    """Records of one step, with what they bring already encoded."""

    steps: list[Step]
    columns: SubscriptionColumns = NO_SUBSCRIPTIONS
    texts: list[str] = field(default_factory=list)  # of the subscriptions in columns
    events: EventColumns = NO_EVENTS


@dataclass(slots=True)
class Outcome:
    """What a step reports, by the number of the step."""

    published: Sequence[int] | Int64  # the steps whose events were matched
    pairs: MatchPairs | ScoredPairs  # for each of them the rows that want it
    changes: dict[int, Changes]
    errors: dict[int, StentorError]
    never: list[int]  # the steps that brought a subscription which no event can match


def run(state: State, arriving: Arriving, *, top: Best | None = None, threads: int = 1) -> Outcome:
    """Let *arriving* happen to *state*; with *top*, an event is for its best only.

    Cost: one match of all events, one backwards match of all changed subscriptions.
    """
    plan = walk(
        arriving.steps,
        len(arriving.texts),
        state.seq,
        state.time,
        Before(state.version, state.event_until),
    )
    if _only_moves(plan):
        changes = _moved(state, plan.changes)
        return _finished(state, plan, Outcome([], NO_PAIRS, changes, plan.errors, []))
    versions = version_columns(state, plan, arriving)
    events = _timed_events(plan, arriving)
    is_live = bool(state.index.live.live_count) or bool((events.until != NEVER).any())
    asked = to_match_back(state, plan.changes if is_live else [], versions)
    if plan.published:
        pairs = _matched_while_changing(state, plan, versions, arriving.texts, events, top, threads)
    else:
        pairs = NO_PAIRS
        _settle_changes(state, plan, versions, arriving.texts)
    _hold(state, plan, arriving, events)
    changes = _changes(state, plan.changes, asked)
    never = _never(plan, arriving)
    return _finished(state, plan, Outcome(plan.published, pairs, changes, plan.errors, never))


def _finished(state: State, plan: Plan, outcome: Outcome) -> Outcome:
    """*outcome*, after the time of its records has passed."""
    if plan.seqs:
        state.seq, state.time = plan.seqs[-1], plan.times[-1]
    state.expire(EXPIRED_PER_RECORD * len(plan.seqs))
    return outcome


def _only_moves(plan: Plan) -> bool:
    """Whether nothing happens but moves of standing subscriptions, each once."""
    return (
        bool(plan.changes)
        and not plan.published
        and len(plan.touched) == len(plan.changes)
        and all(
            change.after is not None and _is_moved_in_place(change.after) for change in plan.changes
        )
    )


def _moved(state: State, changes: list[Change]) -> dict[int, Changes]:
    """Move subscribers, and how that changes their answers: the index knows by itself."""
    moved = [change.after for change in changes if change.after is not None]
    rows = np.array([version.root.row for version in moved if version.root is not None], np.int64)
    positions = np.array([version.at for version in moved], np.float64)
    if not state.index.live.live_count:
        state.index.move(rows, positions)
        return {change.record: Changes() for change in changes}
    relocation = state.index.relocate(rows, positions)
    until = state.index.live.columns.until

    def event_ids(pairs: MatchPairs, place: int, time: int) -> list[str]:
        events = pairs.rows[pairs.starts[place] : pairs.starts[place + 1]]
        return _event_ids(state, events[until[events] > time])

    return {
        change.record: Changes(
            added=event_ids(relocation.added, place, change.time),
            removed=event_ids(relocation.removed, place, change.time),
        )
        for place, change in enumerate(changes)
    }


def _never(plan: Plan, arriving: Arriving) -> list[int]:
    """The records whose new subscriptions have no alternative left."""
    alternatives = np.diff(arriving.columns.alternative_start)
    return [
        change.record
        for change in plan.changes
        if change.after is not None
        and change.after.root is None
        and not alternatives[change.after.column]
    ]


def version_columns(state: State, plan: Plan, arriving: Arriving) -> SubscriptionColumns:
    """The columns of all versions of this step: the new ones, then the moved ones."""
    moved = [version for version in plan.versions if version.root is not None]
    if not moved:
        return arriving.columns
    roots = [version.root for version in moved if version.root is not None]
    rows = np.array(sorted({root.row for root in roots if root.column == STANDING}), np.int64)
    pool = concatenate([arriving.columns, state.index.columns_of(rows)])
    places = [
        len(arriving.texts) + int(np.searchsorted(rows, root.row))
        if root.column == STANDING
        else root.column
        for root in roots
    ]
    table = SubscriptionTable()
    table.append(take(pool, np.array(places, np.int64)), 0)
    positions = np.array([version.at for version in moved], np.float64)
    table.move(np.arange(len(moved), dtype=np.int64), positions)
    return concatenate([arriving.columns, table.columns])


def to_match_back(
    state: State, changes: list[Change], versions: SubscriptionColumns
) -> tuple[SubscriptionColumns, dict[Version, int]]:
    """The versions that are to be matched backwards, taken before the index changes."""
    reporting = [change for change in changes if change.after is not None]
    wanted = dict.fromkeys(
        version
        for change in reporting
        for version in (change.before, change.after)
        if version is not None
    )
    rows = np.array([v.row for v in wanted if v.column == STANDING], np.int64)
    columns = np.array([v.column for v in wanted if v.column != STANDING], np.int64)
    order = [v for v in wanted if v.column == STANDING] + [
        v for v in wanted if v.column != STANDING
    ]
    if not order:
        return NO_SUBSCRIPTIONS, {}
    taken = concatenate([state.index.columns_of(rows), take(versions, columns)])
    return taken, {version: place for place, version in enumerate(order)}


def _timed_events(plan: Plan, arriving: Arriving) -> EventColumns:
    """The events that were admitted, with the time and the place in the order they came at."""
    places = np.array([arriving.steps[record].place for record in plan.published], np.int64)
    events = arriving.events
    if len(places) != len(events.until):
        events = take(events, places)
    time = np.array([plan.times[record] for record in plan.published], np.int64)
    seq = np.array([plan.seqs[record] for record in plan.published], np.int64)
    return events._replace(time=read_only(time), seq=read_only(seq))


def _matched_while_changing(
    state: State,
    plan: Plan,
    versions: SubscriptionColumns,
    texts: list[str],
    events: EventColumns,
    top: Best | None,
    threads: int,
) -> MatchPairs | ScoredPairs:
    """Match *events* while every version stands with the span of records that it held for."""
    ended = [change.before for change in plan.changes if change.before is not None]
    _file(state, plan.versions, versions, texts)
    if ended:
        state.index.close(
            np.array([version.row for version in ended], np.int64),
            np.array([version.upto for version in ended], np.int64),
        )
    pairs = match(state, events, top, threads)
    state.remove([version.row for version in ended])
    return pairs


def match(
    state: State, events: EventColumns, top: Best | None, threads: int
) -> MatchPairs | ScoredPairs:
    """For each event the rows that want it, or its best, as *top* says."""
    if top is None:
        return state.index.match(events, threads=threads)
    found = state.index.top(events, top.k, threads=threads, scoring=top.scoring)
    return k_best(found, top.k, state.subscribers.ids)


def run_events(
    state: State, events: EventColumns, *, top: Best | None = None, threads: int = 1
) -> Outcome:
    """`run` for events alone that are not kept while nothing is live: nothing to walk."""
    count = event_count(events)
    time = np.maximum.accumulate(np.maximum(events.time, state.time))
    seq = np.arange(state.seq + 1, state.seq + 1 + count)
    timed = events._replace(time=read_only(time), seq=read_only(seq))
    pairs = match(state, timed, top, threads)
    if count:
        state.seq, state.time = int(seq[-1]), int(time[-1])
    state.expire(EXPIRED_PER_RECORD * count)
    return Outcome(np.arange(count), pairs, {}, {}, [])


def _settle_changes(
    state: State, plan: Plan, versions: SubscriptionColumns, texts: list[str]
) -> None:
    """Bring the index to the last version of each subscription; a move happens in place."""
    last = [version for version in plan.touched.values() if version is not None]
    moved = [version for version in last if _is_moved_in_place(version)]
    in_place = {v.root.row for v in moved if v.root is not None}
    gone = {
        change.before.row
        for change in plan.changes
        if change.before is not None and change.before.column == STANDING
    }
    state.remove(sorted(gone - in_place))
    filed = [version for version in last if not _is_moved_in_place(version)]
    _file(state, filed, versions, texts)
    if moved:
        rows = np.array([v.root.row for v in moved if v.root is not None], np.int64)
        state.index.move(rows, np.array([version.at for version in moved], np.float64))


def _is_moved_in_place(version: Version) -> bool:
    return version.root is not None and version.root.column == STANDING


def _file(
    state: State, filed: list[Version], versions: SubscriptionColumns, texts: list[str]
) -> None:
    """Insert the versions *filed* into the index."""
    if not filed:
        return
    columns = [version.column for version in filed]
    is_all = columns == list(range(subscription_count(versions)))  # the rule, and a copy less
    rows = state.insert(
        versions if is_all else take(versions, np.array(columns, np.int64)),
        [version.id for version in filed],
        [text_of(state, version, texts) for version in filed],
        np.array([version.since for version in filed], np.int64),
    )
    for version, row in zip(filed, rows.tolist(), strict=True):
        version.row = row


def text_of(state: State, version: Version, texts: Sequence[str]) -> str:
    """The text of a version: that of the subscription it started from."""
    origin = version.root or version
    return state.texts[origin.row] if origin.column == STANDING else texts[origin.column]


def _hold(state: State, plan: Plan, arriving: Arriving, events: EventColumns) -> None:
    kept = np.flatnonzero(events.until != NEVER).astype(np.int64)
    if len(kept):
        ids = [arriving.steps[plan.published[place]].id for place in kept.tolist()]
        state.hold(take(events, kept), ids)


def _changes(
    state: State,
    changes: list[Change],
    asked: tuple[SubscriptionColumns, dict[Version, int]],
) -> dict[int, Changes]:
    """How each change changed its subscriber's answer among the events that were live then."""
    columns, places = asked
    if not places or not state.index.live.live_count:
        return {change.record: Changes() for change in changes}
    pairs = state.index.match_back(columns)
    live = state.index.live.columns

    def answer(version: Version | None, change: Change) -> Int64:
        if version is None:
            return np.zeros(0, np.int64)
        place = places[version]
        rows = pairs.rows[pairs.starts[place] : pairs.starts[place + 1]]
        return rows[(live.seq[rows] < change.seq) & (live.until[rows] > change.time)]

    reported: dict[int, Changes] = {}
    for change in changes:
        if change.after is None:
            reported[change.record] = Changes()
            continue
        before, after = answer(change.before, change), answer(change.after, change)
        reported[change.record] = Changes(
            added=_event_ids(state, np.setdiff1d(after, before)),
            removed=_event_ids(state, np.setdiff1d(before, after)),
        )
    return reported


def _event_ids(state: State, rows: Int64) -> list[str]:
    return sorted(state.events.ids[row] for row in rows.tolist())
