"""Changes → segments: versions of subscriptions with the spans in which they were current."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
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
from stentor.encoding.ragged import concatenate, expand_slices, take
from stentor.engine.apply import EncodedRecords, text_of, version_columns, versions_to_match
from stentor.engine.ids import NO_ROW, StringArrays, StringStore
from stentor.engine.plan import (
    IN_INDEX,
    Plan,
    PlannedRecord,
    StateView,
    Version,
    plan_records,
)
from stentor.engine.state import State
from stentor.engine.texts import ShapedTexts
from stentor.model import Point
from stentor.model.record import Operation
from stentor.model.values.time import BEGINNING, NEVER
from stentor.pipeline.commit.manifests import Segment, TableFile
from stentor.pipeline.storage.folder import StreamFolder
from stentor.pipeline.stream.isolating import OF_THE_WORLD, isolated
from stentor.pipeline.stream.order import (
    ADMITTED,
    OrderedRecords,
    open_order,
    refusal_text,
    refused_rows,
)
from stentor.pipeline.stream.rejected import RejectedWriter
from stentor.pipeline.stream.segments import (
    ChangePart,
    LiveQueries,
    SegmentVersions,
    open_changes,
    open_rows,
    write_segment,
)
from stentor.pipeline.stream.shards import ShardState, replica
from stentor.pipeline.tables.files import moments, write_files


class OrderedChanges(NamedTuple):
    """Changes of subscriptions, in their order."""

    operation: UInt8
    ids: list[str]
    texts: list[str]
    position: Float64
    column: Int64  # of a new subscription among the columns
    until: Int64
    order: Int64  # what the user's own order says, where there is one
    ordered: OrderedRecords
    part: Int64  # which part each came in, and its row there
    row: Int64
    columns: SubscriptionColumns


class PlannedChanges(NamedTuple):
    """What changes amount to."""

    plan: Plan
    accepted: Int64  # the changes that did something
    versions: SegmentVersions
    queries: LiveQueries
    errors: dict[int, str]  # by change


def share_of(hashes: UInt64, shard: int, shards: int, share: int, shares: int) -> Int64:
    """The rows whose ids belong to a *share* of a *shard*."""
    mine = hashes % np.uint64(shards) == shard
    mine &= hashes // np.uint64(shards) % np.uint64(shares) == share
    return np.flatnonzero(mine)


def sorted_changes(
    parts: Sequence[ChangePart], ordered: OrderedRecords, rows: Int64
) -> OrderedChanges:
    """The changes *rows* of all *parts* together, sorted by their position in the order."""
    rows = rows[np.argsort(ordered.seq[rows], kind="stable")]
    starts = np.cumsum([0, *(len(part.order) for part in parts)])
    part = np.searchsorted(starts, rows, side="right") - 1
    columns = [one.columns for one in parts]
    shift = np.cumsum([0, *(subscription_count(one) for one in columns)])[part]
    position = np.concatenate([one.place for one in parts])[rows]
    return OrderedChanges(
        operation=np.concatenate([one.operation for one in parts])[rows],
        ids=_taken([one.ids for one in parts], rows),
        texts=_taken([one.texts for one in parts], rows),
        position=np.concatenate([one.position for one in parts])[rows],
        column=np.where(position < 0, position, position + shift),
        until=np.concatenate([one.until for one in parts])[rows],
        order=np.concatenate([one.order for one in parts])[rows],
        ordered=ordered.take(rows),
        part=part,
        row=rows - starts[part],
        columns=concatenate(columns) if columns else empty(SubscriptionColumns),
    )


def plan_each(changes: OrderedChanges, state: State, *, on_trial: bool) -> PlannedChanges:
    """What `plan_changes` gives, without the ids on whose changes it fails: these are errors.

    *on_trial* also inserts what is new into an index of its own: once that has failed in a worker.
    """

    def attempt(rows: Int64) -> PlannedChanges:
        planned = plan_changes(
            changes if len(rows) == len(changes.ids) else taken(changes, rows), state
        )
        if on_trial:
            new = planned.versions
            trial = State(type(state.index)())
            trial.insert(
                new.columns, list(StringStore(new.ids)), list(StringStore(new.texts)), new.since
            )
        return planned

    everything = np.arange(len(changes.ids))
    try:
        return attempt(everything)
    except OF_THE_WORLD:
        raise
    except Exception:  # noqa: BLE001 - some of them fail by themselves, or it is raised again
        return _planned_without(changes, state, attempt)


def _planned_without(
    changes: OrderedChanges, state: State, attempt: Callable[[Int64], PlannedChanges]
) -> PlannedChanges:
    """What changes do without those of the ids on which *attempt* fails.

    What the changes of one id amount to depends on no other id.
    """
    names, group = np.unique(np.array(changes.ids, object), return_inverse=True)
    by_id = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[by_id], np.arange(len(names) + 1))

    def of_ids(some: Int64) -> Int64:
        return np.sort(by_id[expand_slices(starts[some], starts[some + 1])[0]])

    _, failed = isolated(len(names), lambda some: attempt(of_ids(some)))
    bad = of_ids(np.array([one.position for one in failed], np.int64))
    good = np.setdiff1d(np.arange(len(changes.ids)), bad)
    planned = plan_changes(taken(changes, good), state)
    reasons = {names[one.position]: one.reason for one in failed}
    errors = {int(good[row]): error for row, error in planned.errors.items()}
    for row in bad.tolist():
        id = changes.ids[row]
        errors[row] = (
            f"the change of {id!r} cannot be applied ({reasons[id]}); report this, with it"
        )
    return planned._replace(accepted=good[planned.accepted], errors=errors)


def taken(changes: OrderedChanges, rows: Int64) -> OrderedChanges:
    """The changes *rows*, in that order."""
    return changes._replace(
        operation=changes.operation[rows],
        ids=[changes.ids[row] for row in rows.tolist()],
        texts=[changes.texts[row] for row in rows.tolist()],
        position=changes.position[rows],
        column=changes.column[rows],
        until=changes.until[rows],
        order=changes.order[rows],
        ordered=changes.ordered.take(rows),
        part=changes.part[rows],
        row=changes.row[rows],
    )


def plan_changes(changes: OrderedChanges, state: State) -> PlannedChanges:
    """What *changes* do to the subscriptions of *state*, which stays as it is."""
    admitted = np.flatnonzero(changes.ordered.refused == ADMITTED)
    steps = [_step(changes, row) for row in admitted.tolist()]
    # Only new subscriptions that are admitted keep their columns.
    new = np.array([step.column for step in steps if step.column >= 0], np.int64)
    arriving = EncodedRecords(
        [_at_column(step, number) for step, number in zip(steps, _count(steps), strict=True)],
        take(changes.columns, new),
        [changes.texts[row] for row in admitted.tolist() if changes.column[row] >= 0],
    )
    before = StateView(state.version, lambda _: None)
    plan = plan_records(arriving.steps, len(arriving.texts), 0, BEGINNING, before)
    columns = version_columns(state, plan, arriving)
    query_columns, positions = versions_to_match(state, plan.changes, columns)
    accepted = admitted[np.array([change.record for change in plan.changes], np.int64)]
    errors = {int(admitted[step]): str(error) for step, error in plan.errors.items()}
    refused = refused_rows(changes.ordered.refused)
    refusals = changes.ordered.refused[refused].tolist()
    for row, refusal in zip(refused.tolist(), refusals, strict=True):
        errors[row] = refusal_text(refusal, changes.ids[row], NEVER, 0)
    return PlannedChanges(
        plan,
        accepted,
        _versions(plan, columns, state, arriving.texts),
        _live_queries(plan, query_columns, positions, changes, accepted),
        errors,
    )


def _step(changes: OrderedChanges, row: int) -> PlannedRecord:
    x, y = changes.position[row].tolist()
    return PlannedRecord(
        Operation(int(changes.operation[row])),
        changes.ids[row],
        int(changes.ordered.time[row]),
        int(changes.column[row]),
        int(changes.until[row]),
        None if np.isnan(x) else Point(x, y),
        int(changes.ordered.seq[row]),
    )


def _count(steps: Sequence[PlannedRecord]) -> list[int]:
    """For each step how many new subscriptions came before it."""
    news = np.array([step.column >= 0 for step in steps], np.int64)
    counts: list[int] = (np.cumsum(news) - news).tolist()
    return counts


def _at_column(step: PlannedRecord, number: int) -> PlannedRecord:
    return step._replace(column=number) if step.column >= 0 else step


def _versions(
    plan: Plan, columns: SubscriptionColumns, state: State, texts: Sequence[str] | ShapedTexts
) -> SegmentVersions:
    new = plan.versions
    ended = [
        change.before
        for change in plan.changes
        if change.before is not None and change.before.column == IN_INDEX
    ]
    return SegmentVersions(
        columns=take(columns, np.array([version.column for version in new], np.int64)),
        ids=StringArrays.of([version.id for version in new]),
        texts=StringArrays.of([text_of(state, version, texts) for version in new]),
        since=np.array([version.since for version in new], np.int64),
        upto=np.array([_upto(version) for version in new], np.int64),
        ended=StringArrays.of([version.id for version in ended]),
        ended_upto=np.array([_upto(version) for version in ended], np.int64),
    )


def _live_queries(
    plan: Plan,
    columns: SubscriptionColumns,
    positions: dict[Version, int],
    changes: OrderedChanges,
    accepted: Int64,
) -> LiveQueries:
    both = zip(accepted.tolist(), plan.changes, strict=True)
    asking = [(row, change) for row, change in both if change.after is not None]

    def rows(versions: Sequence[Version | None]) -> Int64:
        return np.array([-1 if one is None else positions[one] for one in versions], np.int64)

    return LiveQueries(
        columns=columns,
        ids=StringArrays.of([changes.ids[row] for row, _ in asking]),
        seq=np.array([change.seq for _, change in asking], np.int64),
        time=np.array([change.time for _, change in asking], np.int64),
        order=changes.order[np.array([row for row, _ in asking], np.int64)],
        before=rows([change.before for _, change in asking]),
        after=rows([change.after for _, change in asking]),
    )


def _upto(version: Version) -> int:
    return NEVER if version.upto is None else version.upto


def _taken(arrays: Sequence[StringArrays], rows: Int64) -> list[str]:
    every = pa.chunked_array([one.arrow for one in arrays], pa.large_string())
    taken: list[str] = every.take(pa.array(rows)).to_pylist()
    return taken


class ChangeReport(msgspec.Struct, frozen=True):
    """What a share of the changes led to."""

    segments: list[Segment]
    files: dict[str, list[TableFile]]


@dataclass(frozen=True)
class PlanChangesStep:
    """The planning step of one micro-batch, in the workers or on the driver itself.

    The shards are in *groups*, and a task's number is its share: group by group, each in *shares*
    parts.
    """

    path: StreamFolder
    work: StreamFolder
    batch: int
    batch_time: int
    parts: tuple[str, ...]
    shards: tuple[ShardState, ...]  # as the batch before left them
    groups: int
    shares: int
    keep: int  # shards that a process holds
    has_order: bool
    on_trial: bool  # whether new subscriptions are inserted at once, to see if that can be done

    def shards_of(self, piece: int) -> tuple[ShardState, ...]:
        """The shards of which the task number *piece* plans a share."""
        return self.shards[piece // self.shares :: self.groups]

    def task(self, number: int) -> ChangeReport:
        """Plan one share of a group of shards."""
        segments: list[Segment] = []
        files: dict[str, list[TableFile]] = {"rejected": [], "subscriptions": []}
        for version in self.shards_of(number):
            self._plan(version, number % self.shares, segments, files)
        return ChangeReport(segments, files)

    def _plan(
        self,
        version: ShardState,
        share: int,
        segments: list[Segment],
        files: dict[str, list[TableFile]],
    ) -> None:
        changes = self._changes(version.shard, share)
        state = replica(version, self.keep).remove_closed()
        planned = plan_each(changes, state, on_trial=self.on_trial)
        if len(planned.accepted):
            batches = self.batch, self.batch
            # Those that are over count until the next base leaves them behind.
            growth = sum(
                (last is not None) - (state.subscribers.row(id) != NO_ROW)
                for id, last in planned.plan.touched.items()
            )
            segments.append(
                write_segment(
                    self.path,
                    version.shard,
                    batches,
                    planned.versions,
                    planned.queries,
                    growth=growth,
                )
            )
        files["rejected"] += self._rejected(changes, planned.errors)
        files["subscriptions"] += self._logged(changes, planned)

    def _changes(self, shard: int, share: int) -> OrderedChanges:
        work = self.work
        parts = [open_changes(work, name) for name in self.parts]
        hashes = np.concatenate([part.ids.hashes() for part in parts])
        rows = share_of(hashes, shard, len(self.shards), share, self.shares)
        return sorted_changes(parts, open_order(work, "changes"), rows)

    def _rejected(self, changes: OrderedChanges, errors: dict[int, str]) -> list[TableFile]:
        rejections = RejectedWriter()
        tables: dict[int, Any] = {}
        for change, reason in sorted(errors.items()):
            part = int(changes.part[change])
            if part not in tables:
                tables[part] = open_rows(self.work, self.parts[part])
            rejections.add_row(tables[part], int(changes.row[change]), reason)
            rejections.flush_if_large(self.path, self.batch, self.batch_time)
        return rejections.write(self.path, self.batch, self.batch_time)

    def _logged(self, changes: OrderedChanges, planned: PlannedChanges) -> list[TableFile]:
        """The changes that did something, for the table of subscriptions."""
        rows = planned.accepted
        if not len(rows):
            return []
        position = changes.position[rows]
        texts = [changes.texts[row] or None for row in rows.tolist()]
        table = pa.table(
            {
                "id": pa.array([changes.ids[row] for row in rows.tolist()], pa.string()),
                "change": [Operation(int(op)).word for op in changes.operation[rows]],
                "expression": pa.array(texts, pa.string()),
                "longitude": pa.array(position[:, 0], from_pandas=True),
                "latitude": pa.array(position[:, 1], from_pandas=True),
                "until": moments(changes.until[rows]),
                "seq": changes.ordered.seq[rows],
                "time": moments(changes.ordered.time[rows]),
            }
        )
        if self.has_order:
            table = table.append_column("order", pa.array(changes.order[rows]))
        return write_files(self.path, "subscriptions", table, self.batch)
