"""State of a stream in files: segments of versions of subscriptions, segments of live events.

A segment of versions holds what one or several micro-batches brought: versions of subscriptions,
each with the span of records in which it was current, and the ids whose earlier versions ended. A
worker applies it to its index after the base. That of a batch in progress also says which versions
are to be matched with the live events.

A segment of live events holds those that a batch brought, memory-mapped by whoever matches them.

What the reading step leaves for the later steps of a micro-batch: encoded records in files.

    NAME.events    the events' columns, their positions in the user's order, the hashes of their ids
    NAME.changes   operations, ids, texts, positions, ends; the columns of new subscriptions
    NAME.rows      the records as they came, in Arrow's file format: ids, attributes, where from

Workers write and memory-map them; they go when the batch is committed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from stentor._files import explain_os_errors
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    SubscriptionColumns,
    UInt8,
    UInt64,
    empty,
    read_only_columns,
)
from stentor.encoding.ragged import concatenate, expand_slices, take
from stentor.engine.ids import HashOrder, StringArrays, StringStore
from stentor.index.catalog import structure_class
from stentor.index.storage.array_file import read_array_file, write_array_file
from stentor.index.storage.arrays import bundle_of, with_prefix
from stentor.index.structure import Structure
from stentor.index.table import FROM_THE_START
from stentor.model.values.time import NEVER
from stentor.pipeline.commit.manifests import LiveSegment, Segment
from stentor.pipeline.storage.folder import StreamFolder
from stentor.wire.cells.layout import Booleans

EVENTS, CHANGES, ROWS = "events", "changes", "rows"


class EventPart(NamedTuple):
    """Events of one file, in the order in which they arrived."""

    columns: EventColumns  # time is what the record said
    order: Int64
    id_hash: UInt64
    operation: UInt8  # engine.plan.Operation; what withdraws an event has no attributes


class ChangePart(NamedTuple):
    """Changes of subscriptions of one file, in the order in which they arrived."""

    operation: UInt8  # engine.plan.Operation
    ids: StringArrays
    texts: StringArrays  # empty but for new subscriptions
    order: Int64
    time: Int64
    until: Int64
    position: Float64  # (changes, 2) NaN where there is none
    place: Int64  # of a new subscription among the columns, −1 otherwise
    columns: SubscriptionColumns


def write_events(folder: StreamFolder, name: str, part: EventPart, rows: Any) -> None:
    """Write events and the table of *rows* that they were."""
    arrays = {
        **with_prefix("columns", part.columns),
        "order": part.order,
        "id_hash": part.id_hash,
        "operation": part.operation,
    }
    _write(folder, name, EVENTS, arrays, rows)


def open_events(folder: StreamFolder, name: str) -> EventPart:
    """The events that were written under *name*."""
    arrays, _ = read_array_file(folder.file(f"{name}.{EVENTS}"), kind=EVENTS)
    columns = read_only_columns(bundle_of(EventColumns, "columns", arrays))
    operation = arrays.get("operation")  # what waits since an older version publishes
    if operation is None:
        operation = np.zeros(len(arrays["order"]), np.uint8)
    return EventPart(columns, arrays["order"], arrays["id_hash"], operation)


def write_changes(folder: StreamFolder, name: str, part: ChangePart, rows: Any) -> None:
    """Write changes and the table of *rows* that they were."""
    arrays = {
        **with_prefix("ids", part.ids),
        **with_prefix("texts", part.texts),
        **with_prefix("columns", part.columns),
        **{field: getattr(part, field) for field in _PLAIN},
    }
    _write(folder, name, CHANGES, arrays, rows)


def open_changes(folder: StreamFolder, name: str) -> ChangePart:
    """The changes that were written under *name*."""
    arrays, _ = read_array_file(folder.file(f"{name}.{CHANGES}"), kind=CHANGES)
    return ChangePart(
        ids=bundle_of(StringArrays, "ids", arrays),
        texts=bundle_of(StringArrays, "texts", arrays),
        columns=read_only_columns(bundle_of(SubscriptionColumns, "columns", arrays)),
        **{field: arrays[field] for field in _PLAIN},
    )


def open_rows(folder: StreamFolder, name: str) -> Any:
    """The records as they came: an Arrow table over the mapped file."""
    with pa.memory_map(str(folder.file(f"{name}.{ROWS}"))) as file:
        return pa.ipc.open_file(file).read_all()


_PLAIN = ("operation", "order", "time", "until", "position", "place")


def _write(folder: StreamFolder, name: str, kind: str, arrays: dict[str, Any], rows: Any) -> None:
    path = str(folder.new(f"{name}.{ROWS}"))
    with explain_os_errors(folder.local):
        write_array_file(folder.new(f"{name}.{kind}"), arrays, kind=kind, durable=False)
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows)
    folder.keep(f"{name}.{kind}", f"{name}.{ROWS}", durable=False)


def write_kept(
    folder: StreamFolder, name: str, arrays: dict[str, Any], *, kind: str, durable: bool = True
) -> int:
    """Write *arrays* as the file *name* of *folder*, which is kept on return; its size."""
    file = folder.new(name)
    with explain_os_errors(file):
        written = write_array_file(file, arrays, kind=kind, durable=False)
        folder.keep(name, durable=durable)
    return written


SEGMENTS = "segments"
_VERSION_ARRAYS = ("since", "upto", "ended_upto")
_QUERY_ARRAYS = ("seq", "time", "order", "before", "after")
LIVE, ENDED = "live", "ended"
_OPEN: dict[tuple[StreamFolder, str], tuple[Structure, StringStore]] = {}


class SegmentVersions(NamedTuple):
    """New versions of subscriptions, those of one id in order, and what ended."""

    columns: SubscriptionColumns
    ids: StringArrays
    texts: StringArrays
    since: Int64  # each holds for records after this
    upto: Int64  # and before this; NEVER where it still holds
    ended: StringArrays  # ids of versions that were current before
    ended_upto: Int64


class LiveQueries(NamedTuple):
    """Changes that report how their subscriber's answer among the live events changed."""

    columns: SubscriptionColumns  # of versions before and after the changes
    ids: StringArrays  # whose change
    seq: Int64
    time: Int64
    order: Int64  # what the user's own order says, where there is one
    before: Int64  # the version's row among the columns, −1 where there was none
    after: Int64

    def take(self, rows: Int64) -> LiveQueries:
        """The changes *rows*, with the columns of their versions."""
        versions = np.concatenate([self.before[rows], self.after[rows]])
        kept, positions = np.unique(versions[versions >= 0], return_inverse=True)
        versions[versions >= 0] = positions
        before, after = np.split(versions, 2)
        return LiveQueries(
            take(self.columns, kept),
            StringArrays.of(self.ids.arrow.take(pa.array(rows))),
            self.seq[rows],
            self.time[rows],
            self.order[rows],
            before,
            after,
        )


def write_segment(
    path: StreamFolder,
    shard: int,
    batches: tuple[int, int],
    versions: SegmentVersions,
    queries: LiveQueries | None = None,
    tier: int = 0,
    growth: int = 0,
    applied: int | None = None,
    origin: str = "",
) -> Segment:
    """Write the changes of *batches* (first, last); what the manifest says of the segment."""
    name = path.fresh(batches[1])
    arrays = {
        **with_prefix("columns", versions.columns),
        **with_prefix("ids", versions.ids),
        **with_prefix("texts", versions.texts),
        **with_prefix("ended", versions.ended),
        **{field: getattr(versions, field) for field in _VERSION_ARRAYS},
    }
    if queries is not None:
        arrays |= with_prefix("asked.columns", queries.columns)
        arrays |= with_prefix("asked.ids", queries.ids)
        arrays |= {f"asked.{field}": getattr(queries, field) for field in _QUERY_ARRAYS}
    written = write_kept(path / SEGMENTS, name, arrays, kind=SEGMENTS)
    return Segment(
        name=name,
        first=batches[0],
        last=batches[1],
        versions=len(versions.since),
        bytes=written,
        shard=shard,
        tier=tier,
        growth=growth,
        applied=len(versions.since) if applied is None else applied,
        origin=origin,
    )


def open_versions(path: StreamFolder, name: str) -> SegmentVersions:
    """The versions of the segment *name*."""
    arrays, _ = read_array_file((path / SEGMENTS).file(name), kind=SEGMENTS)
    return SegmentVersions(
        columns=read_only_columns(bundle_of(SubscriptionColumns, "columns", arrays)),
        ids=bundle_of(StringArrays, "ids", arrays),
        texts=bundle_of(StringArrays, "texts", arrays),
        ended=bundle_of(StringArrays, "ended", arrays),
        **{field: arrays[field] for field in _VERSION_ARRAYS},
    )


def open_live_queries(path: StreamFolder, name: str) -> LiveQueries:
    """The changes of the segment *name* that report to their subscribers."""
    arrays, _ = read_array_file((path / SEGMENTS).file(name), kind=SEGMENTS)
    return LiveQueries(
        columns=read_only_columns(bundle_of(SubscriptionColumns, "asked.columns", arrays)),
        ids=bundle_of(StringArrays, "asked.ids", arrays),
        **{field: arrays[f"asked.{field}"] for field in _QUERY_ARRAYS},
    )


def folded(path: StreamFolder, shard: int, segments: Sequence[Segment]) -> Segment:
    """One segment instead of several consecutive ones: only what is current at their end."""
    columns: list[SubscriptionColumns] = []
    ids, texts, ended = StringStore(), StringStore(), StringStore()
    current: dict[str, int] = {}  # the last version of each id among all columns
    touched: dict[str, None] = {}
    count = 0
    for segment in segments:
        versions = open_versions(path, segment.name)
        columns.append(versions.columns)
        own, old = StringStore(versions.ids), StringStore(versions.ended)
        ids.extend(own)
        texts.extend(StringStore(versions.texts))
        for id in old:
            touched[id] = None
            current.pop(id, None)
        for position, (id, upto) in enumerate(zip(own, versions.upto.tolist(), strict=True)):
            current.pop(id, None)
            if upto == NEVER:
                current[id] = count + position
        count += len(versions.upto)
    ended.extend(touched)
    rows = np.array(sorted(current.values()), np.int64)
    every = concatenate(columns) if columns else empty(SubscriptionColumns)
    result = SegmentVersions(
        columns=take(every, rows),
        ids=ids.arrays(rows),
        texts=texts.arrays(rows),
        since=np.full(len(rows), FROM_THE_START, np.int64),
        upto=np.full(len(rows), NEVER, np.int64),
        ended=ended.arrays(np.arange(len(ended))),
        ended_upto=np.zeros(len(ended), np.int64),
    )
    batches = segments[0].first, segments[-1].last
    tier = 1 + max(segment.tier for segment in segments)
    growth = sum(segment.growth for segment in segments)
    return write_segment(
        path,
        shard,
        batches,
        result,
        tier=tier,
        growth=growth,
        applied=sum(segment.applied for segment in segments),
        origin=segments[-1].origin or segments[-1].name,
    )


def write_live(
    path: StreamFolder, batch: int, columns: EventColumns, ids: StringArrays
) -> LiveSegment:
    """Write a segment of live events; what the manifest says of it."""
    name = path.fresh(batch)
    arrays = {
        **with_prefix("columns", columns),
        **with_prefix("ids", ids),
        **with_prefix("order", HashOrder.of(ids)),
    }
    write_kept(path / LIVE, name, arrays, kind=LIVE)
    ends = np.sort(columns.until)
    half = int(ends[(len(ends) - 1) // 2])
    return LiveSegment(name=name, events=len(ends), until=int(ends[-1]), half=half)


class StreamLiveEvents(NamedTuple):
    """The events of a segment, memory-mapped."""

    columns: EventColumns
    ids: StringStore
    order: HashOrder


def open_live(path: StreamFolder, name: str) -> StreamLiveEvents:
    """The events of the segment *name*."""
    arrays, _ = read_array_file((path / LIVE).file(name), kind=LIVE)
    return StreamLiveEvents(
        read_only_columns(bundle_of(EventColumns, "columns", arrays)),
        StringStore(bundle_of(StringArrays, "ids", arrays)),
        bundle_of(HashOrder, "order", arrays),
    )


def live_index(path: StreamFolder, name: str, structure: str) -> tuple[Structure, StringStore]:
    """An index of a segment's events, and their ids; kept open in this process."""
    if (path, name) not in _OPEN:
        events = open_live(path, name)
        index = structure_class(structure).of_events(events.columns)
        _OPEN[path, name] = index, events.ids
    return _OPEN[path, name]


def keep_open(path: StreamFolder, names: Collection[str]) -> None:
    """Close what this process holds open of segments of *path* that are not among *names*."""
    for key in [key for key in _OPEN if key[0] != path or key[1] not in names]:
        del _OPEN[key]


def merge_live(
    path: StreamFolder, batch: int, segments: Sequence[LiveSegment], time: int
) -> LiveSegment | None:
    """One segment of what is still live at *time* in several; None where nothing is."""
    columns: list[EventColumns] = []
    names = StringStore()
    for segment in segments:
        events = open_live(path, segment.name)
        is_live = events.columns.until > time
        is_live[ended_rows(path, segment.ended)] = False
        live = np.flatnonzero(is_live)
        columns.append(take(events.columns, live))
        names.extend(events.ids.take(live).to_pylist())
    if not len(names):
        return None
    everyone: Int64 = np.arange(len(names))
    return write_live(path, batch, concatenate(columns), names.arrays(everyone))


def ended_rows(path: StreamFolder, name: str) -> Int64:
    """The rows of a segment that the file *name* says have ended; none where it has no name."""
    if not name:
        return np.zeros(0, np.int64)
    arrays, _ = read_array_file((path / LIVE).file(name), kind=ENDED)
    rows: Int64 = arrays["row"]
    return rows


class LiveVersion(NamedTuple):
    """A live event: its segment and its row there, or its position among a batch's events."""

    segment: str  # empty where it came in the same batch
    row: int
    until: int


class LiveIdIndex:
    """The ids of all live events, on the driver: no two live events have the same."""

    def __init__(self, path: StreamFolder) -> None:
        self._path = path
        self._segments: dict[str, StreamLiveEvents] = {}
        self._ended: dict[str, Int64] = {}

    def keep(self, segments: Sequence[LiveSegment]) -> None:
        """Know these *segments*, and no others."""
        self._segments = {
            one.name: self._segments.get(one.name) or open_live(self._path, one.name)
            for one in segments
        }
        self._ended = {one.name: ended_rows(self._path, one.ended) for one in segments}

    def may_hold(self, hashes: UInt64) -> Booleans:
        """Which of *hashes* are those of a live event's id."""
        found = np.zeros(len(hashes), np.bool_)
        for events in self._segments.values():
            known = events.order.hash
            position = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            found |= known[position] == hashes
        return found

    def versions(self, hashes: UInt64) -> dict[str, LiveVersion]:
        """The events that are live, or were, whose ids have one of *hashes*, by id."""
        found: dict[str, LiveVersion] = {}
        wanted = np.unique(hashes)
        for name, events in self._segments.items():
            known = events.order.hash
            start, stop = (np.searchsorted(known, wanted, side) for side in ("left", "right"))
            rows = events.order.row[expand_slices(start, stop)[0]]
            rows = rows[~np.isin(rows, self._ended[name])]
            ids = events.ids.take(rows).to_pylist()
            untils = events.columns.until[rows].tolist()
            for id, row, until in zip(ids, rows.tolist(), untils, strict=True):
                if id not in found or found[id].until < until:
                    found[id] = LiveVersion(name, row, until)
        return found
