"""A step: what a table of mixed records does to the state, and what is reported.

    records ─plan─▶ versions ─insert─▶ index ─match─▶ deliveries
                                       live events ─match_live─▶ changes

The result is exactly that of feeding the records one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    read_only,
    subscription_count,
)
from stentor.encoding.ragged import concatenate, take
from stentor.engine.among import match_among
from stentor.engine.clock import Clock
from stentor.engine.passages import Passages, ended_events, ended_rows, passages_of
from stentor.engine.plan import (
    IN_INDEX,
    Change,
    Plan,
    PlannedRecord,
    StateView,
    Version,
    plan_records,
)
from stentor.engine.safe_region import SafeRegion, remembered_regions
from stentor.engine.state import EXPIRED_PER_RECORD, State
from stentor.engine.tags import NO_TAGS, Among, Tags
from stentor.engine.texts import ShapedTexts
from stentor.engine.top_k import TopK, k_best
from stentor.errors import StentorError
from stentor.index.table import moved as with_positions
from stentor.index.verify.candidates import current_counts
from stentor.model import Changes
from stentor.model.record import Operation
from stentor.model.values.time import NEVER

NO_SUBSCRIPTIONS = empty(SubscriptionColumns)
NO_EVENTS = empty(EventColumns)
NO_PAIRS = MatchPairs(read_only(np.zeros(1, np.int64)), read_only(np.zeros(0, np.int64)))


@dataclass(slots=True)
class EncodedRecords:
    """Records of one step, with what they bring already encoded."""

    steps: list[PlannedRecord]
    columns: SubscriptionColumns = NO_SUBSCRIPTIONS
    texts: list[str] | ShapedTexts = field(default_factory=list)  # of what is in columns
    events: EventColumns = NO_EVENTS
    tags: Sequence[Tags] | None = None  # of what is in columns; None: they have none


@dataclass(slots=True)
class StepResult:
    """What a step reports, by the number of the step."""

    published: Sequence[int] | Int64  # the steps whose events were matched
    pairs: MatchPairs | ScoredPairs  # for each of them the rows that want it
    changes: Mapping[int, Changes]
    errors: dict[int, StentorError]
    never: list[int]  # the steps that brought a subscription which no event can match
    shrunk: list[tuple[int, SafeRegion]] = field(default_factory=list)  # and by which step
    passages: Passages | None = None
    plan: Plan | None = None  # None where there was nothing to plan


def apply(
    state: State,
    arriving: EncodedRecords,
    clock: Clock,
    *,
    top: TopK | None = None,
    threads: int = 1,
) -> StepResult:
    """Let *arriving* happen to *state*; with *top*, an event is for its best only.

    Cost: one `match` of all events, one `match_live` of all changed subscriptions.
    """
    if isinstance(arriving.texts, ShapedTexts):
        arriving.texts = arriving.texts.of(np.arange(len(arriving.texts)))
    plan = plan_records(
        arriving.steps,
        len(arriving.texts),
        state.seq,
        state.time,
        StateView(state.version, state.event),
        clock,
    )
    if _only_moves(plan):
        with state.change():
            changes = _moved(state, plan.changes)
            _pass_time(state, plan)
        return StepResult([], NO_PAIRS, changes, plan.errors, [], plan=plan)
    versions = version_columns(state, plan, arriving)
    events = admitted_events(plan, arriving)
    matched = events
    if plan.ended:
        matched = concatenate([events, ended_events(state, plan, arriving.steps, arriving.events)])
    has_events = bool(event_count(matched))
    among = _among(plan, arriving.steps)
    is_live = bool(state.index.live.current_count) or bool((events.until != NEVER).any())
    to_match = versions_to_match(state, plan.changes if is_live else [], versions)
    never = _never(plan, arriving)
    kept = np.flatnonzero(events.until != NEVER).astype(np.int64)
    live = take(events, kept) if len(kept) else NO_EVENTS
    shrunk = state.regions.shrunk(live, state.index.columns_with, _endings(plan))
    pairs: MatchPairs | ScoredPairs = NO_PAIRS
    if has_events and not plan.changes:
        pairs = match(state, matched, top, threads, among)
    with state.change():
        if shrunk is not None:
            state.shrink_regions(shrunk)
        if not has_events:
            apply_changes(state, plan, versions, arriving)
        elif plan.changes:
            pairs = _matched_while_changing(
                state, plan, versions, arriving, matched, top, threads, among
            )
        first = state.index.live.count
        if len(kept):
            held = [arriving.steps[plan.published[position]] for position in kept.tolist()]
            state.hold(live, [step.id for step in held], [step.among for step in held])
        ended = ended_rows(plan, kept, first)
        changes = _changes(state, plan, to_match, ended, arriving.tags)
        state.drop([*ended])
        _pass_time(state, plan)
    regions: list[tuple[int, SafeRegion]] = []
    if shrunk is not None:
        records = [plan.published[kept[event]] for event in shrunk.event.tolist()]
        regions = list(zip(records, remembered_regions(state, shrunk), strict=True))
    published: Sequence[int] = plan.published
    passages = None
    if any(step.operation in (Operation.UPDATE, Operation.WITHDRAW) for step in arriving.steps):
        published, pairs, passages = passages_of(plan, arriving.steps, pairs)
    return StepResult(published, pairs, changes, plan.errors, never, regions, passages, plan)


def apply_again(state: State, arriving: EncodedRecords) -> None:
    """`apply` of what was accepted and answered before: nobody is to be told of it again.

    Each of *arriving* has the time and the seq that it was given then.
    """
    known = StateView(state.version, state.event)
    plan = plan_records(arriving.steps, len(arriving.texts), state.seq, state.time, known)
    if plan.errors:
        raise next(iter(plan.errors.values()))
    versions = version_columns(state, plan, arriving)
    events = admitted_events(plan, arriving)
    kept = np.flatnonzero(events.until != NEVER).astype(np.int64)
    with state.change():
        apply_changes(state, plan, versions, arriving)
        first = state.index.live.count
        if len(kept):
            held = [arriving.steps[plan.published[position]] for position in kept.tolist()]
            state.hold(
                take(events, kept), [step.id for step in held], [step.among for step in held]
            )
        state.drop([*ended_rows(plan, kept, first)])
        _pass_time(state, plan)


def _endings(plan: Plan) -> dict[int, int]:
    """From which record on each row of the index that changes has no region any more."""
    endings: dict[int, int] = {}
    for change in plan.changes:
        if change.before is not None and change.before.column == IN_INDEX:
            endings.setdefault(change.before.row, change.seq)
    return endings


def _pass_time(state: State, plan: Plan) -> None:
    """Let the time of the records pass."""
    if plan.seqs:
        state.seq, state.time = plan.seqs[-1], plan.times[-1]
    state.expire(EXPIRED_PER_RECORD * len(plan.seqs))


def _only_moves(plan: Plan) -> bool:
    """Whether nothing happens but moves of subscriptions in the index, each once."""
    return (
        bool(plan.changes)
        and not plan.published
        and not plan.ended
        and len(plan.touched) == len(plan.changes)
        and all(
            change.after is not None and _is_moved_in_index(change.after) for change in plan.changes
        )
    )


def _moved(state: State, changes: list[Change]) -> dict[int, Changes]:
    """Move subscribers, and how that changes their answers: the index knows by itself."""
    moved = [change.after for change in changes if change.after is not None]
    rows = np.array([version.root.row for version in moved if version.root is not None], np.int64)
    positions = np.array([version.at for version in moved], np.float64)
    if not state.index.live.current_count:
        state.move(rows, positions)
        return {change.record: Changes() for change in changes}
    relocation = state.move_and_match(rows, positions)
    until = state.index.live.columns.until

    def ids_of(pairs: MatchPairs, position: int, time: int) -> list[str]:
        events = pairs.rows[pairs.starts[position] : pairs.starts[position + 1]]
        is_live = until[events] > time
        if state.among:
            is_live &= state.are_for(events, state.tags[int(rows[position])])
        return event_ids(state, events[is_live])

    return {
        change.record: Changes(
            added=ids_of(relocation.added, position, change.time),
            removed=ids_of(relocation.removed, position, change.time),
        )
        for position, change in enumerate(changes)
    }


def _never(plan: Plan, arriving: EncodedRecords) -> list[int]:
    """The records whose new subscriptions have no alternative left."""
    alternatives = np.diff(arriving.columns.alternative_start)
    return [
        change.record
        for change in plan.changes
        if change.after is not None
        and change.after.root is None
        and not alternatives[change.after.column]
    ]


def version_columns(state: State, plan: Plan, arriving: EncodedRecords) -> SubscriptionColumns:
    """The columns of all versions of this step: the new ones, then the moved ones."""
    moved = [version for version in plan.versions if version.root is not None]
    if not moved:
        return arriving.columns
    roots = [version.root for version in moved if version.root is not None]
    rows = np.array(sorted({root.row for root in roots if root.column == IN_INDEX}), np.int64)
    pool = concatenate([arriving.columns, state.index.columns_of(rows)])
    positions = [
        len(arriving.texts) + int(np.searchsorted(rows, root.row))
        if root.column == IN_INDEX
        else root.column
        for root in roots
    ]
    started = take(pool, np.array(positions, np.int64))
    moved_to = np.array([version.at for version in moved], np.float64)
    every = np.arange(len(moved), dtype=np.int64)
    return concatenate([arriving.columns, with_positions(started, every, moved_to)])


def versions_to_match(
    state: State, changes: list[Change], versions: SubscriptionColumns
) -> tuple[SubscriptionColumns, dict[Version, int]]:
    """The versions that `match_live` is to match, taken before the index changes."""
    reporting = [change for change in changes if change.after is not None]
    wanted = dict.fromkeys(
        version
        for change in reporting
        for version in (change.before, change.after)
        if version is not None
    )
    rows = np.array([v.row for v in wanted if v.column == IN_INDEX], np.int64)
    columns = np.array([v.column for v in wanted if v.column != IN_INDEX], np.int64)
    order = [v for v in wanted if v.column == IN_INDEX] + [
        v for v in wanted if v.column != IN_INDEX
    ]
    if not order:
        return NO_SUBSCRIPTIONS, {}
    taken = concatenate([state.index.columns_of(rows), take(versions, columns)])
    return taken, {version: position for position, version in enumerate(order)}


def admitted_events(plan: Plan, arriving: EncodedRecords) -> EventColumns:
    """The events that were admitted, with the time and the seq they came at."""
    columns = np.array([arriving.steps[record].column for record in plan.published], np.int64)
    events = arriving.events
    if len(columns) != len(events.until):
        events = take(events, columns)
    time = np.array([plan.times[record] for record in plan.published], np.int64)
    seq = np.array([plan.seqs[record] for record in plan.published], np.int64)
    return events._replace(time=read_only(time), seq=read_only(seq))


def _matched_while_changing(
    state: State,
    plan: Plan,
    versions: SubscriptionColumns,
    arriving: EncodedRecords,
    events: EventColumns,
    top: TopK | None,
    threads: int,
    among: Sequence[Among | None] | None,
) -> MatchPairs | ScoredPairs:
    """Match *events* with every version in the index, each for the records that it held for."""
    ended = [change.before for change in plan.changes if change.before is not None]
    insert_versions(state, plan.versions, versions, arriving)
    if ended:
        state.close(
            np.array([version.row for version in ended], np.int64),
            np.array([version.upto for version in ended], np.int64),
        )
    pairs = match(state, events, top, threads, among)
    state.remove([version.row for version in ended])
    return pairs


def match(
    state: State,
    events: EventColumns,
    top: TopK | None,
    threads: int,
    among: Sequence[Among | None] | None = None,
) -> MatchPairs | ScoredPairs:
    """For each event the rows that want it, or its best, as *top* says.

    *among* says for each event which labels it is for; None where all are for everybody.
    """
    if among is not None:
        return match_among(state, events, among, lambda some: match(state, some, top, threads), top)
    if top is None:
        pairs = state.index.match(events, threads=threads)
        if (counts := current_counts()) is not None:
            counts.sum_up(events.seq)
        return pairs
    found = state.index.top(events, top.k, threads=threads, scoring=top.scoring)
    return k_best(found, top.k, state.subscribers.ids)


def apply_changes(
    state: State,
    plan: Plan,
    versions: SubscriptionColumns,
    arriving: EncodedRecords,
) -> None:
    """Bring the index to the last version of each subscription; a moved one keeps its row."""
    last = [version for version in plan.touched.values() if version is not None]
    moved = [version for version in last if _is_moved_in_index(version)]
    staying = {v.root.row for v in moved if v.root is not None}
    gone = {
        change.before.row
        for change in plan.changes
        if change.before is not None and change.before.column == IN_INDEX
    }
    state.remove(sorted(gone - staying))
    inserted = [version for version in last if not _is_moved_in_index(version)]
    insert_versions(state, inserted, versions, arriving)
    if moved:
        rows = np.array([v.root.row for v in moved if v.root is not None], np.int64)
        state.move(rows, np.array([version.at for version in moved], np.float64))


def _is_moved_in_index(version: Version) -> bool:
    return version.root is not None and version.root.column == IN_INDEX


def insert_versions(
    state: State,
    inserted: list[Version],
    versions: SubscriptionColumns,
    arriving: EncodedRecords,
) -> None:
    """Insert some versions, whose columns are among *versions*."""
    if not inserted:
        return
    columns = [version.column for version in inserted]
    is_all = columns == list(range(subscription_count(versions)))  # the rule, and a copy less
    rows = state.insert(
        versions if is_all else take(versions, np.array(columns, np.int64)),
        [version.id for version in inserted],
        [text_of(state, version, arriving.texts) for version in inserted],
        np.array([version.since for version in inserted], np.int64),
        tags=None
        if arriving.tags is None and state.tags.is_empty
        else [tags_of(state, version, arriving.tags) for version in inserted],
    )
    for version, row in zip(inserted, rows.tolist(), strict=True):
        version.row = row


def text_of(state: State, version: Version, texts: Sequence[str] | ShapedTexts) -> str:
    """The text of a version: that of the subscription it started from."""
    origin = version.root or version
    return state.texts[origin.row] if origin.column == IN_INDEX else texts[origin.column]


def tags_of(state: State, version: Version, tags: Sequence[Tags] | None) -> Tags:
    """The tags of a version: those of the subscription it started from."""
    origin = version.root or version
    if origin.column == IN_INDEX:
        return state.tags[origin.row]
    return NO_TAGS if tags is None else tags[origin.column]


def _among(plan: Plan, steps: Sequence[PlannedRecord]) -> list[Among | None] | None:
    """Which labels the events are for that are matched; None where all are for everybody."""
    among = [steps[record].among for record in plan.published]
    among += [one.before.among for one in plan.ended]
    return among if any(among) else None


def _changes(
    state: State,
    plan: Plan,
    to_match: tuple[SubscriptionColumns, dict[Version, int]],
    ended: dict[int, int],
    tags: Sequence[Tags] | None,
) -> dict[int, Changes]:
    """How each change changed its subscriber's answer among the events that were live then.

    *ended* are the rows of live events that ended in this step, by the seq of their end.
    """
    changes = plan.changes
    columns, positions = to_match
    if not positions or not state.index.live.current_count:
        return {change.record: Changes() for change in changes}
    pairs = state.index.match_live(columns)
    live = state.index.live.columns
    upto = np.full(len(live.seq) if ended else 0, NEVER, np.int64)
    upto[[*ended]] = [*ended.values()]

    def answer(version: Version | None, change: Change) -> Int64:
        if version is None:
            return np.zeros(0, np.int64)
        position = positions[version]
        rows = pairs.rows[pairs.starts[position] : pairs.starts[position + 1]]
        is_live = (live.seq[rows] < change.seq) & (live.until[rows] > change.time)
        if ended:
            is_live &= upto[rows] > change.seq
        if state.among:
            is_live &= state.are_for(rows, tags_of(state, version, tags))
        return rows[is_live]

    reported: dict[int, Changes] = {}
    for change in changes:
        if change.after is None:
            reported[change.record] = Changes()
            continue
        before, after = answer(change.before, change), answer(change.after, change)
        reported[change.record] = Changes(
            added=event_ids(state, np.setdiff1d(after, before)),
            removed=event_ids(state, np.setdiff1d(before, after)),
        )
    return reported


def event_ids(state: State, rows: Int64) -> list[str]:
    """The ids of the live events *rows*, sorted."""
    return sorted(state.events.ids[row] for row in rows.tolist())
