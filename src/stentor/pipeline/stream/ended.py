"""Live events of a stream that were updated or withdrawn.

    live/NAME     which events of a segment have ended: a file for each segment that has such
    work/ended    of the batch in progress: what the ended events were, and by which record

The segments themselves stay as they are: workers have them mapped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stentor.encoding.columns import EventColumns, Int64, empty, read_only_columns
from stentor.encoding.ragged import concatenate, take
from stentor.index.storage.array_file import read_array_file
from stentor.index.storage.arrays import bundle_of, with_prefix
from stentor.model.values.time import BEGINNING, NEVER
from stentor.pipeline.commit.manifests import LiveSegment
from stentor.pipeline.storage.folder import StreamFolder
from stentor.pipeline.stream.order import EndedInBatch
from stentor.pipeline.stream.read_records import ReadPart
from stentor.pipeline.stream.segments import (
    ENDED,
    LIVE,
    ended_rows,
    open_events,
    open_live,
    write_kept,
)


class EndedPart(NamedTuple):
    """Events that ended in a batch, in the order of what ended them."""

    columns: EventColumns
    position: Int64  # of the event that replaced or withdrew it, ascending
    segment: Int64  # its segment among the live ones; −1 where it came in the same batch
    row: Int64  # its row there
    seq: Int64  # of its end


def write_ended(
    work: StreamFolder,
    path: StreamFolder,
    ended: Sequence[EndedInBatch],
    parts: Sequence[ReadPart],
    live: Sequence[LiveSegment],
) -> dict[str, LiveSegment]:
    """Leave what *ended* for the later steps of the batch; the *live* segments that lost some."""
    ended = sorted(ended)
    numbers = {segment.name: number for number, segment in enumerate(live)}
    segment = np.array([numbers.get(one.before.segment, -1) for one in ended], np.int64)
    row = np.array([one.before.row for one in ended], np.int64)
    found = EndedPart(
        _columns(work, path, segment, row, parts, live),
        np.array([one.position for one in ended], np.int64),
        segment,
        row,
        np.array([one.seq for one in ended], np.int64),
    )
    arrays = {**with_prefix("columns", found.columns)}
    arrays |= {field: getattr(found, field) for field in EndedPart._fields[1:]}
    write_kept(work, ENDED, arrays, kind=ENDED, durable=False)
    return {
        live[number].name: _without(path, live[number], row[segment == number])
        for number in np.unique(segment[segment >= 0]).tolist()
    }


def open_ended(work: StreamFolder) -> EndedPart:
    """What `write_ended` left."""
    arrays, _ = read_array_file(work.file(ENDED), kind=ENDED)
    columns = read_only_columns(bundle_of(EventColumns, "columns", arrays))
    return EndedPart(columns, *(arrays[field] for field in EndedPart._fields[1:]))


def _columns(
    work: StreamFolder,
    path: StreamFolder,
    segment: Int64,
    row: Int64,
    parts: Sequence[ReadPart],
    live: Sequence[LiveSegment],
) -> EventColumns:
    """The events at the given rows, in that order, each part and segment opened once."""
    starts = np.cumsum([0, *(part.rows for part in parts)])
    sources: dict[tuple[int, int], list[int]] = defaultdict(list)  # positions by where they are
    inner = row.copy()
    for position, (of, at) in enumerate(zip(segment.tolist(), row.tolist(), strict=True)):
        part = -1
        if of < 0:
            part = int(np.searchsorted(starts, at, side="right") - 1)
            inner[position] -= starts[part]
        sources[of, part].append(position)
    columns, order = [empty(EventColumns)], []
    for (of, part), positions in sources.items():
        if of < 0:
            opened = open_events(work, parts[part].name).columns
        else:
            opened = open_live(path, live[of].name).columns
        columns.append(take(opened, inner[positions]))
        order += positions
    return take(concatenate(columns), np.argsort(np.array(order, np.int64)))


def _without(path: StreamFolder, segment: LiveSegment, rows: Int64) -> LiveSegment:
    """*segment* without *rows*: what the manifest says of it."""
    ended = np.unique(np.concatenate([ended_rows(path, segment.ended), rows]))
    name = path.fresh("ended")
    write_kept(path / LIVE, name, {"row": ended}, kind=ENDED)
    return LiveSegment(segment.name, segment.events, segment.until, segment.half, name, len(ended))


def uptos(
    path: StreamFolder,
    work: StreamFolder,
    names: Mapping[str, str],
    name: str,
    count: int,
    *,
    has_ended: bool,
) -> Int64 | None:
    """At which seq each of the *count* events of the live segment *name* ended; None: none did.

    *names* are the files of what ended before, by segment, in the order of the segments;
    *has_ended* says whether some ended in this batch.
    """
    before = ended_rows(path, names[name])
    found = np.full(count, NEVER, np.int64)
    found[before] = BEGINNING
    if has_ended:
        ended = open_ended(work)
        own = np.flatnonzero(ended.segment == list(names).index(name))
        found[ended.row[own]] = ended.seq[own]
    return found if (found != NEVER).any() else None
