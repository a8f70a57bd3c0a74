"""Live events in files: what changed subscriptions are matched with, and whose ids are taken.

Each task of a micro-batch writes the events that stay live to a segment. A segment goes as a whole
once its last event is over; small ones are joined (`joined`).
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stentor.encoding.columns import EventColumns, Int64, UInt64, sealed
from stentor.encoding.ragged import concatenate, slices, take
from stentor.engine.names import IdOrder, StringArrays, Strings
from stentor.index.array_file import read_array_file, write_array_file
from stentor.index.bundles import bundle_of, with_prefix
from stentor.index.catalog import structure_class
from stentor.index.folders import sync
from stentor.index.structure import Structure
from stentor.pipeline.commit.manifests import LiveSegment
from stentor.pipeline.commit.new_files import explaining
from stentor.wire.cells.layout import Booleans

LIVE = "live"


def write_live(path: Path, batch: int, columns: EventColumns, ids: StringArrays) -> LiveSegment:
    """Write a segment of live events; what the manifest says of it."""
    name = f"{batch}-{secrets.token_hex(8)}"
    arrays = {
        **with_prefix("columns", columns),
        **with_prefix("ids", ids),
        **with_prefix("order", IdOrder.of(ids)),
    }
    with explaining(path / LIVE / name):
        write_array_file(path / LIVE / name, arrays, kind=LIVE)
        sync(path / LIVE)
    ends = np.sort(columns.until)
    half = int(ends[(len(ends) - 1) // 2])
    return LiveSegment(name=name, events=len(ends), until=int(ends[-1]), half=half)


class LiveEvents(NamedTuple):
    """The events of a segment, memory-mapped."""

    columns: EventColumns
    ids: Strings
    order: IdOrder


def open_live(path: Path, name: str) -> LiveEvents:
    """The events of the segment *name*."""
    arrays, _ = read_array_file(path / LIVE / name, kind=LIVE)
    return LiveEvents(
        sealed(bundle_of(EventColumns, "columns", arrays)),
        Strings(bundle_of(StringArrays, "ids", arrays)),
        bundle_of(IdOrder, "order", arrays),
    )


_OPEN: dict[tuple[str, str], tuple[Structure, Strings]] = {}


def live_index(path: str, name: str, structure: str) -> tuple[Structure, Strings]:
    """An index of a segment's events, and their ids; kept open in this process."""
    if (path, name) not in _OPEN:
        events = open_live(Path(path), name)
        index = structure_class(structure).over_events(events.columns)
        _OPEN[path, name] = index, events.ids
    return _OPEN[path, name]


def keep_open(path: str, names: Collection[str]) -> None:
    """Close what this process holds open of segments of *path* that are not among *names*."""
    for key in [key for key in _OPEN if key[0] != path or key[1] not in names]:
        del _OPEN[key]


def joined(
    path: Path, batch: int, segments: Sequence[LiveSegment], time: int
) -> LiveSegment | None:
    """One segment of what is still live at *time* in several; None where nothing is."""
    columns: list[EventColumns] = []
    names = Strings()
    for segment in segments:
        events = open_live(path, segment.name)
        live = np.flatnonzero(events.columns.until > time)
        columns.append(take(events.columns, live))
        names.extend(events.ids.take(live).to_pylist())
    if not len(names):
        return None
    everyone: Int64 = np.arange(len(names))
    return write_live(path, batch, concatenate(columns), names.arrays(everyone))


class LiveIds:
    """The ids of all live events, on the driver: no two live events have the same."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._segments: dict[str, LiveEvents] = {}

    def keep(self, names: Collection[str]) -> None:
        """Know the segments *names*, and no others."""
        self._segments = {
            name: self._segments.get(name) or open_live(self._path, name) for name in names
        }

    def may_hold(self, hashes: UInt64) -> Booleans:
        """Which of *hashes* are those of a live event's id."""
        found = np.zeros(len(hashes), np.bool_)
        for events in self._segments.values():
            known = events.order.hash
            place = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            found |= known[place] == hashes
        return found

    def untils(self, hashes: UInt64) -> dict[str, int]:
        """Until when the events are live, or were, whose ids have one of *hashes*."""
        found: dict[str, int] = {}
        wanted = np.unique(hashes)
        for events in self._segments.values():
            known = events.order.hash
            start, stop = (np.searchsorted(known, wanted, side) for side in ("left", "right"))
            rows = events.order.row[slices(start, stop)[0]]
            ids = events.ids.take(rows).to_pylist()
            for id, until in zip(ids, events.columns.until[rows].tolist(), strict=True):
                found[id] = max(until, found.get(id, until))
        return found
