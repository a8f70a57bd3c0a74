"""The second step of a micro-batch, on the driver: position and time of every record.

Changes and events of all parts become one order: the user's, where there is one (changes first
among equals, then as they arrived), else changes first. Logical time is the largest so far. What
cannot be admitted is marked: too late in the order, over already, or the id of a live event.

What a producer sends at least once is taken in once: a record is a repeat where one of the same
position in the order, operation, id and content (its time aside) is among the last `REMEMBERED`
that were taken in. Their 64-bit hashes are in a file that the manifest names.

Cost: a sort of the records' positions where the user names an order; otherwise linear, in arrays.

Sources of one order that are read at different paces: none is taken in beyond the slowest.

A lane is a frame, or one partition of a topic. A batch takes in records up to what its slowest lane
has reached, less the lateness that is allowed; the others wait, encoded, in files that the manifest
names, and are parts of the next batch. A lane that has brought nothing for a while is idle, and
nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stentor.encoding.columns import Float64, Int64, UInt8, UInt64
from stentor.encoding.ragged import take
from stentor.engine.ids import StringArrays
from stentor.engine.plan import (
    check_event_change,
)
from stentor.errors import DuplicateEventError, StentorError
from stentor.index.storage.array_file import read_array_file
from stentor.model.record import Operation
from stentor.model.values.time import LATEST, NEVER, format_timestamp
from stentor.pipeline.commit.manifests import Lane, WaitingPart
from stentor.pipeline.storage.folder import StreamFolder
from stentor.pipeline.stream.read_records import ReadPart
from stentor.pipeline.stream.segments import (
    ChangePart,
    EventPart,
    LiveIdIndex,
    LiveVersion,
    open_changes,
    open_events,
    open_rows,
    write_changes,
    write_events,
    write_kept,
)
from stentor.pipeline.stream.settings import lane_frame
from stentor.wire.cells.layout import Booleans
from stentor.wire.tables import take_rows

WAITING = "waiting"


class Alignment(NamedTuple):
    """How far a batch may go: up to and with *frontier*, nowhere where it is None."""

    lanes: dict[str, Lane]
    frontier: int | None


def aligned(
    lanes: Mapping[str, Lane],
    frames: Sequence[str],
    reached: Mapping[str, int],
    *,
    now: int,
    idle: int,
    lateness: int,
) -> Alignment:
    """The lanes after a batch in which some have *reached* positions, and how far it goes.

    *frames* are the names of all frames: one that was never heard of is waited for too. *now* is
    when the batch began, *idle* how long a lane may say nothing, both in microseconds.
    """
    after = dict(lanes)
    for name in frames:
        if not any(lane_frame(lane) == name for lane in (*after, *reached)):
            after[name] = Lane(None, now)
    for lane, position in reached.items():
        before = after[lane].reached if lane in after else None
        after[lane] = Lane(position if before is None else max(position, before), now)
        if lane != (frame := lane_frame(lane)) and frame in after:
            del after[frame]  # its partitions are known now
    waited_for = [
        one.reached for lane, one in after.items() if lane in reached or now - one.seen <= idle
    ]
    positions = [position for position in waited_for if position is not None]
    if len(positions) < len(waited_for) or not positions:
        return Alignment(after, None)
    return Alignment(after, min(positions) - lateness)


def seen_at(lanes: Mapping[str, Lane], reached: Mapping[str, int], time: int) -> dict[str, Lane]:
    """*lanes*, of which those that have *reached* something were last heard of at *time*."""
    return {
        name: Lane(lane.reached, time) if name in reached else lane for name, lane in lanes.items()
    }


def set_apart(
    path: StreamFolder,
    work: StreamFolder,
    parts: Sequence[ReadPart],
    frontier: int | None,
    before: Sequence[WaitingPart] = (),
) -> tuple[list[ReadPart], list[WaitingPart]]:
    """*parts* as far as the *frontier* goes, and what waits, in files that last.

    Those that waited *before*, and still do as a whole, stay where they are.
    """
    files = {part.name: part for part in before}
    ready: list[ReadPart] = []
    waiting: list[WaitingPart] = []
    for part in parts:
        opened = (open_events if part.is_events else open_changes)(work, part.name)
        is_ready = opened.order <= frontier if frontier is not None else opened.order < opened.order
        if is_ready.all():
            ready.append(part)
            continue
        if not is_ready.any() and part.name in files:
            waiting.append(files[part.name])
            continue
        rows = open_rows(work, part.name)
        if is_ready.any():
            name = f"{part.name}-r"
            _write(work, name, opened, rows, np.flatnonzero(is_ready))
            ready.append(ReadPart(name, part.is_events, int(is_ready.sum())))
        name = path.fresh("w")
        _write(path / WAITING, name, opened, rows, np.flatnonzero(~is_ready))
        waiting.append(WaitingPart(name, part.is_events, int((~is_ready).sum())))
        (path / WAITING).keep(*waiting[-1].files)
    return ready, waiting


def taken_up(
    path: StreamFolder, work: StreamFolder, waiting: Sequence[WaitingPart]
) -> list[ReadPart]:
    """What has waited, as parts of the batch in the folder *work*."""
    for part in waiting:
        for name in part.files:
            work.take_over(name, path / WAITING)
    return [ReadPart(part.name, part.is_events, part.rows) for part in waiting]


def _write(
    folder: StreamFolder, name: str, part: EventPart | ChangePart, table: object, rows: Int64
) -> None:
    own = take_rows(table, rows)
    if isinstance(part, EventPart):
        taken = EventPart(
            take(part.columns, rows), part.order[rows], part.id_hash[rows], part.operation[rows]
        )
        write_events(folder, name, taken, own)
        return
    position = part.place[rows]
    is_new = position >= 0
    changes = ChangePart(
        operation=part.operation[rows],
        ids=StringArrays.of(part.ids.arrow.take(pa.array(rows))),
        texts=StringArrays.of(part.texts.arrow.take(pa.array(rows))),
        order=part.order[rows],
        time=part.time[rows],
        until=part.until[rows],
        position=part.position[rows],
        place=np.where(is_new, np.cumsum(is_new) - 1, -1),
        columns=take(part.columns, position[is_new]),
    )
    write_changes(folder, name, changes, own)


RECENT: Final = "recent"
#: So many records are remembered.
REMEMBERED: Final = 1 << 16
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
ORDER = "order"
# Why a record is not admitted.
ADMITTED, LATE, OVER, DUPLICATE, AHEAD, REPEAT, UNKNOWN = 0, 1, 2, 3, 4, 5, 6
_RECORDS = ("changes", "events")


class OrderedRecords(NamedTuple):
    """Records, part by part: position, time, whether it is admitted."""

    seq: Int64
    time: Int64
    refused: UInt8
    upto: Int64  # of an event that ended in the same batch: at which seq; else NEVER

    def part(self, start: int, stop: int) -> OrderedRecords:
        """The records from *start* to *stop*."""
        return self.take(np.arange(start, stop))

    def take(self, rows: Int64) -> OrderedRecords:
        """The records *rows*, in that order."""
        return OrderedRecords(self.seq[rows], self.time[rows], self.refused[rows], self.upto[rows])


class EndedInBatch(NamedTuple):
    """A live event that the event at *position* of the batch replaced or withdrew, as *seq*."""

    position: int
    before: LiveVersion
    seq: int


@dataclass(frozen=True, slots=True)
class Order:
    """The order of one micro-batch."""

    changes: OrderedRecords
    events: OrderedRecords
    seq: int  # of the last record
    time: int  # after it
    order: int | None  # the largest of the user's positions so far
    taken: UInt64 | None = None  # hashes of the records that were taken in, where there is an order
    ended: Sequence[EndedInBatch] = ()  # live events that were updated or withdrawn


def write_order(work: StreamFolder, order: Order) -> None:
    """Leave *order* for the later steps of the micro-batch."""
    arrays = {
        f"{records}.{field}": array
        for records in _RECORDS
        for field, array in getattr(order, records)._asdict().items()
    }
    write_kept(work, ORDER, arrays, kind=ORDER, durable=False)


def open_order(work: StreamFolder, records: str) -> OrderedRecords:
    """The order of the *records*, "changes" or "events", part by part."""
    arrays, _ = read_array_file(work.file(ORDER), kind=ORDER)
    return OrderedRecords(*(arrays[f"{records}.{field}"] for field in OrderedRecords._fields))


class OrderPosition(NamedTuple):
    """How far the order has come."""

    seq: int
    time: int
    order: int | None


def order_records(
    parts: Sequence[ReadPart],
    work: StreamFolder,
    position: OrderPosition,
    *,
    has_order: bool,
    live: LiveIdIndex,
    latest: int = LATEST,
    recent: UInt64 | None = None,
) -> Order:
    """The order of all records in *parts*, which follow *position*; none is later than *latest*.

    *recent* are the hashes of records that were taken in before: one that comes again is a repeat.
    """
    changes = [open_changes(work, part.name) for part in parts if not part.is_events]
    events = [open_events(work, part.name) for part in parts if part.is_events]
    split = sum(len(part.order) for part in changes)
    order = _joined([*(part.order for part in changes), *(part.order for part in events)])
    said = _joined([*(part.time for part in changes), *(part.columns.time for part in events)])
    until = _joined([part.columns.until for part in events])
    refused = np.zeros(len(order), np.uint8)
    if has_order and position.order is not None:
        refused[order < position.order] = LATE
    refused[said > latest] = AHEAD
    hashes = hashes_of(changes, events) if has_order else None
    if hashes is not None:
        refused[_is_repeat(hashes, recent)] = REPEAT
    taken = np.flatnonzero(refused == ADMITTED)
    if has_order:
        taken = taken[np.argsort(order[taken], kind="stable")]
    seq = np.zeros(len(order), np.int64)
    seq[taken] = np.arange(position.seq + 1, position.seq + 1 + len(taken))
    time = np.full(len(order), position.time, np.int64)
    time[taken] = np.maximum.accumulate(np.maximum(said[taken], position.time))
    every = OrderedRecords(seq, time, refused, np.full(len(seq), NEVER, np.int64))
    ordered = every.part(split, len(seq))
    ordered.refused[(ordered.refused == ADMITTED) & (until <= ordered.time)] = OVER
    names = [part.name for part in parts if part.is_events]
    ended = _apply_events(events, names, work, ordered, live)
    return Order(
        every.part(0, split),
        ordered,
        seq=position.seq + len(taken),
        time=int(time[taken].max(initial=position.time)),
        order=_largest(order[taken], position.order) if has_order else None,
        taken=None if hashes is None else hashes[taken],
        ended=ended,
    )


def _is_repeat(hashes: UInt64, recent: UInt64 | None) -> Booleans:
    """Which records are among the *recent* ones, or come twice here: the first of those counts."""
    is_repeat = np.ones(len(hashes), np.bool_)
    is_repeat[np.unique(hashes, return_index=True)[1]] = False
    if recent is not None and len(recent):
        is_repeat |= np.isin(hashes, recent)
    return is_repeat


def refused_rows(refused: UInt8) -> Int64:
    """The records that are rejected: what was not admitted, but for repeats."""
    return np.flatnonzero((refused != ADMITTED) & (refused != REPEAT))


def refusal_text(refusal: int, id: str, until: int, time: int) -> str:
    """Why a record was not admitted; of one that is over, as the engine says it."""
    if refusal == LATE:
        return (
            f"order: {id!r} comes too late: records after it are committed already; "
            "send it again with a higher place, or let sources wait for one another longer"
        )
    if refusal == AHEAD:
        return (
            f"time: {id!r} is further ahead of the batch's own time than `most_ahead` allows; "
            "correct the clock of its source, or allow more (a file: `ahead` in [limits])"
        )
    if refusal == OVER:
        return (
            f"until: the event {id!r} was over at {format_timestamp(until)}, "
            f"and it is {format_timestamp(time)} now"
        )
    if refusal == UNKNOWN:
        return f"no live event has the id {id!r}"
    return f"id: the event {id!r} is live already; update it, or publish it under another id"


def _apply_events(
    events: Sequence[EventPart],
    names: Sequence[str],
    work: StreamFolder,
    ordered: OrderedRecords,
    live: LiveIdIndex,
) -> list[EndedInBatch]:
    """Mark events whose id a live event has, and what ends live events; those that end, in order.

    Only what updates or withdraws is looked at, and ids that meet another one.
    """
    if not events:
        return []
    hashes = np.concatenate([part.id_hash for part in events])
    until = _joined([part.columns.until for part in events])
    operation = np.concatenate([part.operation for part in events])
    is_suspect = live.may_hold(hashes) | _repeated(hashes, until != NEVER)
    suspects = np.flatnonzero(is_suspect | (operation != Operation.PUBLISH))
    suspects = suspects[ordered.refused[suspects] == ADMITTED]
    if not len(suspects):
        return []
    starts = np.cumsum([0, *(len(part.order) for part in events)])
    part_of = np.searchsorted(starts, suspects, side="right") - 1
    ids = {part: open_rows(work, names[part])["id"].combine_chunks() for part in np.unique(part_of)}
    found: dict[str, LiveVersion | None] = {**live.versions(hashes[suspects])}
    ended: list[EndedInBatch] = []
    for position in suspects[np.argsort(ordered.seq[suspects])].tolist():
        part = int(np.searchsorted(starts, position, side="right") - 1)
        id = ids[part][position - int(starts[part])].as_py()
        before, now = found.get(id), int(ordered.time[position])
        if before is not None and before.until <= now:
            before = None
        doing = Operation(int(operation[position]))
        try:
            check_event_change(doing, id, None if before is None else before.until)
        except StentorError as error:
            is_twice = isinstance(error, DuplicateEventError)
            ordered.refused[position] = DUPLICATE if is_twice else UNKNOWN
            continue
        if before is not None:
            seq = int(ordered.seq[position])
            ended.append(EndedInBatch(position, before, seq))
            found[id] = None
            if not before.segment:
                ordered.upto[before.row] = seq
        if doing is not Operation.WITHDRAW and until[position] != NEVER:
            found[id] = LiveVersion("", position, int(until[position]))
    return ended


def _repeated(hashes: UInt64, is_kept: Booleans) -> Booleans:
    """Which of *hashes* occur several times and at least once among those kept."""
    kept = np.unique(hashes[is_kept])
    if not len(kept):
        return np.zeros(len(hashes), np.bool_)
    among = np.isin(hashes, kept)
    values, counts = np.unique(hashes[among], return_counts=True)
    return np.isin(hashes, values[counts > 1])


def _joined(arrays: Sequence[Int64]) -> Int64:
    return np.concatenate([np.zeros(0, np.int64), *arrays])


def _largest(values: Int64, before: int | None) -> int | None:
    if not len(values):
        return before
    largest = int(values.max())
    return largest if before is None else max(largest, before)


def read_recent(path: StreamFolder, name: str) -> UInt64:
    """The hashes under *name*; none where it is empty."""
    if not name:
        return np.zeros(0, np.uint64)
    arrays, _ = read_array_file((path / RECENT).file(name), kind=RECENT)
    found: UInt64 = arrays["hash"]
    return found


def write_recent(path: StreamFolder, before: UInt64, new: UInt64) -> str:
    """Remember *new* after *before*; the name for the manifest."""
    name = path.fresh()
    kept = np.concatenate([before, new])[-REMEMBERED:]
    write_kept(path / RECENT, name, {"hash": kept}, kind=RECENT)
    return name


def hashes_of(changes: Sequence[ChangePart], events: Sequence[EventPart]) -> UInt64:
    """A hash of each record, position and content: those of *changes*, then those of *events*."""
    found = [*map(_of_changes, changes), *map(_of_events, events)]
    return np.concatenate([np.zeros(0, np.uint64), *found])


def _of_changes(part: ChangePart) -> UInt64:
    x, y = np.ascontiguousarray(part.position.T)
    texts = part.texts.hashes()
    return _mixed(
        part.operation, part.order, part.until, part.ids.hashes(), _bits(x), _bits(y), texts
    )


def _of_events(part: EventPart) -> UInt64:
    columns = part.columns
    has_string = columns.string >= 0
    strings = np.zeros(len(columns.string), np.uint64)
    strings[has_string] = columns.string_hash[columns.string[has_string]]
    values = _mixed(columns.attribute, _bits(columns.low), _bits(columns.high), strings)
    weights = _mixed(columns.weight_attribute, _bits(columns.weight))
    return _mixed(
        np.uint8(255) - part.operation,  # no operation of a change
        part.order,
        columns.until,
        part.id_hash,
        _sums(values, columns.value_start),
        _sums(weights, columns.weight_start),
    )


def _sums(of: UInt64, start: Int64) -> UInt64:
    """The sum over each event's children; what is beyond 64 bits does not matter."""
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(of, dtype=np.uint64)])
    sums: UInt64 = total[start[1:]] - total[start[:-1]]
    return sums


def _mixed(*columns: npt.NDArray[np.integer[Any]]) -> UInt64:
    """One hash of several columns, row by row."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.uint64)) * _ODD
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _bits(numbers: Float64) -> UInt64:
    bits: UInt64 = np.ascontiguousarray(numbers, np.float64).view(np.uint64)
    return bits
