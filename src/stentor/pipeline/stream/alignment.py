"""Sources of one order that are read at different paces: none is taken in beyond the slowest.

A lane is a frame, or one partition of a topic. A batch takes in records up to what its slowest lane
has reached, less the lateness that is allowed; the others wait, encoded, in files that the manifest
names, and are parts of the next batch. A lane that has brought nothing for a while is idle, and
nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from stentor._files import sync
from stentor.encoding.columns import Int64
from stentor.encoding.ragged import take
from stentor.engine.ids import StringArrays
from stentor.pipeline.commit.manifests import Lane, WaitingPart
from stentor.pipeline.stream.parts import (
    ChangePart,
    EventPart,
    open_changes,
    open_events,
    open_rows,
    write_changes,
    write_events,
)
from stentor.pipeline.stream.read_records import ReadPart
from stentor.pipeline.stream.settings import lane_frame
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
    path: Path,
    work: Path,
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
        name = f"{part.name}-w"
        (path / WAITING).mkdir(exist_ok=True)
        _write(path / WAITING, name, opened, rows, np.flatnonzero(~is_ready))
        waiting.append(WaitingPart(name, part.is_events, int((~is_ready).sum())))
        for file in waiting[-1].files:
            sync(path / WAITING / file)
    if waiting:
        sync(path / WAITING)
    return ready, waiting


def taken_up(path: Path, work: Path, waiting: Sequence[WaitingPart]) -> list[ReadPart]:
    """What has waited, as parts of the batch in the folder *work*."""
    for part in waiting:
        for name in part.files:
            (work / name).symlink_to((path / WAITING / name).resolve())
    return [ReadPart(part.name, part.is_events, part.rows) for part in waiting]


def _write(
    folder: Path, name: str, part: EventPart | ChangePart, table: object, rows: Int64
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
