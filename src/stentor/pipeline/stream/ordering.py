"""The second step of a micro-batch, on the driver: the place and the time of every record.

Changes and events of all parts become one order: the user's, where there is one (changes first
among equals, then as they arrived), else changes first. Logical time is the largest so far. What
cannot be admitted is marked: too late in the order, over already, or the id of a live event.

Cost: a sort of the records' places where the user names an order; otherwise linear, in arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stentor.encoding.columns import Int64, UInt8, UInt64
from stentor.index.array_file import read_array_file, write_array_file
from stentor.model.time import LATEST, NEVER, format_timestamp
from stentor.pipeline.commit.new_files import explaining
from stentor.pipeline.stream.live import LiveIds
from stentor.pipeline.stream.parts import EventPart, open_changes, open_events, open_rows
from stentor.pipeline.stream.reading import ReadPart
from stentor.wire.cells.layout import Booleans

ORDER = "order"

# Why a record is not admitted.
ADMITTED, LATE, OVER, DUPLICATE, AHEAD = 0, 1, 2, 3, 4


class Ordered(NamedTuple):
    """Records, part by part: where each stands, when it came, whether it is admitted."""

    seq: Int64
    time: Int64
    refused: UInt8

    def part(self, start: int, stop: int) -> Ordered:
        """The records from *start* to *stop*."""
        return Ordered(self.seq[start:stop], self.time[start:stop], self.refused[start:stop])

    def take(self, rows: Int64) -> Ordered:
        """The records *rows*, in that order."""
        return Ordered(self.seq[rows], self.time[rows], self.refused[rows])


@dataclass(frozen=True, slots=True)
class Order:
    """The order of one micro-batch."""

    changes: Ordered
    events: Ordered
    seq: int  # of the last record
    time: int  # after it
    order: int | None  # the largest of the user's places so far


_RECORDS = ("changes", "events")


def write_order(work: Path, order: Order) -> None:
    """Leave *order* for the later steps of the micro-batch."""
    arrays = {
        f"{records}.{field}": array
        for records in _RECORDS
        for field, array in getattr(order, records)._asdict().items()
    }
    with explaining(work):
        write_array_file(work / ORDER, arrays, kind=ORDER, durable=False)


def open_order(work: Path, records: str) -> Ordered:
    """The order of the *records*, "changes" or "events", part by part."""
    arrays, _ = read_array_file(work / ORDER, kind=ORDER)
    return Ordered(*(arrays[f"{records}.{field}"] for field in Ordered._fields))


class Marks(NamedTuple):
    """How far the order has come."""

    seq: int
    time: int
    order: int | None


def put_in_order(
    parts: Sequence[ReadPart],
    work: Path,
    marks: Marks,
    *,
    has_order: bool,
    live: LiveIds,
    latest: int = LATEST,
) -> Order:
    """The order of all records in *parts*, which follow *marks*; none is later than *latest*."""
    changes = [open_changes(work, part.name) for part in parts if not part.is_events]
    events = [open_events(work, part.name) for part in parts if part.is_events]
    split = sum(len(part.order) for part in changes)
    order = _joined([*(part.order for part in changes), *(part.order for part in events)])
    said = _joined([*(part.time for part in changes), *(part.columns.time for part in events)])
    until = _joined([part.columns.until for part in events])
    refused = np.zeros(len(order), np.uint8)
    if has_order and marks.order is not None:
        refused[order < marks.order] = LATE
    refused[said > latest] = AHEAD
    taken = np.flatnonzero(refused == ADMITTED)
    if has_order:
        taken = taken[np.argsort(order[taken], kind="stable")]
    seq = np.zeros(len(order), np.int64)
    seq[taken] = np.arange(marks.seq + 1, marks.seq + 1 + len(taken))
    time = np.full(len(order), marks.time, np.int64)
    time[taken] = np.maximum.accumulate(np.maximum(said[taken], marks.time))
    every = Ordered(seq, time, refused)
    ordered = every.part(split, len(seq))
    ordered.refused[(ordered.refused == ADMITTED) & (until <= ordered.time)] = OVER
    names = [part.name for part in parts if part.is_events]
    _refuse_duplicates(events, names, work, ordered, live)
    return Order(
        every.part(0, split),
        ordered,
        seq=marks.seq + len(taken),
        time=int(time[taken].max(initial=marks.time)),
        order=_largest(order[taken], marks.order) if has_order else None,
    )


def reason(refusal: int, id: str, until: int, time: int) -> str:
    """Why a record was not admitted; of one that is over, as the engine says it."""
    if refusal == LATE:
        return (
            f"order: {id!r} comes too late: records after it are committed already; "
            "send it again with a higher place, or let sources wait for one another longer"
        )
    if refusal == AHEAD:
        return (
            f"time: {id!r} is further ahead of the batch's own time than `most_ahead` allows; "
            "correct the clock of its source"
        )
    if refusal == OVER:
        return (
            f"until: the event {id!r} was over at {format_timestamp(until)}, "
            f"and it is {format_timestamp(time)} now"
        )
    return f"id: the event {id!r} is live already; publish a change under another id"


def _refuse_duplicates(
    events: Sequence[EventPart], names: Sequence[str], work: Path, ordered: Ordered, live: LiveIds
) -> None:
    """Mark events whose id a live event has; only ids that meet another one are looked at."""
    if not events:
        return
    hashes = np.concatenate([part.id_hash for part in events])
    until = _joined([part.columns.until for part in events])
    suspects = np.flatnonzero(live.may_hold(hashes) | _repeated(hashes, until != NEVER))
    suspects = suspects[ordered.refused[suspects] == ADMITTED]
    if not len(suspects):
        return
    starts = np.cumsum([0, *(len(part.order) for part in events)])
    part_of = np.searchsorted(starts, suspects, side="right") - 1
    ids = {part: open_rows(work, names[part])["id"].combine_chunks() for part in np.unique(part_of)}
    held = live.untils(hashes[suspects])
    for place in suspects[np.argsort(ordered.seq[suspects])].tolist():
        part = int(np.searchsorted(starts, place, side="right") - 1)
        id = ids[part][place - int(starts[part])].as_py()
        now = int(ordered.time[place])
        if held.get(id, now) > now:
            ordered.refused[place] = DUPLICATE
        elif until[place] != NEVER:
            held[id] = int(until[place])


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
