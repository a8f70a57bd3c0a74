"""Blocks as a home of alternatives."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from stentor._jit import direct
from stentor.encoding.columns import (
    EventColumns,
    Int32,
    Int64,
    SubscriptionColumns,
    UInt8,
    event_count,
    read_only,
)
from stentor.index.packed.blocks.build import aligned
from stentor.index.packed.blocks.dimensions import choose_dimensions
from stentor.index.packed.blocks.encode import write_events, write_records
from stentor.index.packed.blocks.layout import (
    BLOCK,
    BOX_FLOAT,
    EVENT_LINES,
    FANOUT,
    RECORD,
    BlockDimensions,
)
from stentor.index.packed.blocks.match import match_event
from stentor.index.packed.blocks.move import move_slots
from stentor.index.packed.blocks.store import TILE, BlockStore, TileMemory
from stentor.index.packed.homes import Found

_write_events, _match_event = direct(write_events), direct(match_event)


class Blocks(BlockStore):
    """Alternatives in blocks, for events."""

    name = "blocks"
    _kept: tuple[TileMemory, Int32] | None = None  # of one event

    @classmethod
    def build(cls, columns: SubscriptionColumns, alternatives: Int64) -> Self:
        """Blocks of *alternatives*, which ascend. Cost: one to two microseconds each."""
        dimensions = choose_dimensions(columns, alternatives)
        return cls.of_records(dimensions, *_records(columns, alternatives, dimensions))

    def match(self, events: EventColumns, found: Found) -> int:
        """The number of pairs that may match, or surely do; those that do not fit are counted.

        Cost: some lines for each event and block that it reaches, a record for what they leave.
        """
        total, count = 0, event_count(events)
        if not len(self.member) or not count:
            return 0
        memory = TileMemory(self.blocks, min(count, TILE), EVENT_LINES)
        for start in range(0, count, TILE):
            number = min(TILE, count - start)
            self._write(events, start, number, memory)
            total = self.match_tile(memory, number, start, total, found)
        return total

    def match_one(self, events: EventColumns, found: Found) -> int:
        """`match` of one event, by one thread at a time: memory is kept."""
        if not len(self.member):
            return 0
        if self._kept is None:
            blocks = len(self.blocks.record) // (BLOCK * RECORD)
            front = np.empty(2 * (blocks + FANOUT), np.int32)
            self._kept = TileMemory(self.blocks, 1, EVENT_LINES), front
        memory, front = self._kept
        return _match_event(
            events,
            self.dimensions,
            self.blocks,
            self.locations,
            memory.written,
            memory.events,
            front,
            memory.scratch,
            found.event,
            found.alternative,
            found.covered,
        )

    def _write(self, events: EventColumns, start: int, count: int, memory: TileMemory) -> None:
        """Write *count* events from *start* on into *memory*."""
        has_signatures = bool(self.blocks.signed[0])
        _write_events(
            events, start, count, self.dimensions, self.blocks.left, has_signatures, memory.written
        )

    def move(self, columns: SubscriptionColumns, alternatives: Int64) -> Int64:
        """Write the boxes of *alternatives* anew; those whose blocks could keep them.

        Others are removed. Cost: 0.1 µs each.
        """
        slots, here = self.slots(alternatives)
        if not self.is_writable:
            return np.zeros(0, np.int64)
        is_live = self.is_live(slots) != 0
        slots, here = slots[is_live], here[is_live]
        is_moved = np.empty(len(slots), np.uint8)
        record = aligned(RECORD, np.uint8)
        move_slots(
            columns,
            read_only(here),
            read_only(slots),
            self.dimensions,
            self._arrays,
            record,
            record.view(np.float32)[BOX_FLOAT:],
            is_moved,
        )
        self.remove(here[is_moved == 0])
        placed: Int64 = here[is_moved != 0]
        return placed

    def stats(self) -> dict[str, Any]:
        """Figures for people."""
        blocks = len(self.blocks.record) // (BLOCK * RECORD)
        selective = self.blocks.is_selective[len(self.blocks.is_selective) - blocks :]
        return {
            "alternatives": self.count,
            "bytes": self.nbytes,
            "blocks": blocks,
            "dimensions": len(self.dimensions.attribute),
            "lines": self.lines,
            "selective blocks": int(np.count_nonzero(selective)),
        }

    def check(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        """Assert every invariant of those of *alternatives* that were not removed."""
        self.check_records(_records(columns, alternatives, self.dimensions)[0])


def _records(
    columns: SubscriptionColumns, alternatives: Int64, dimensions: BlockDimensions
) -> tuple[UInt8, int]:
    """The records of *alternatives*, and how many have a signature."""
    record = aligned(len(alternatives) * RECORD, np.uint8)
    views = record.view(np.int32), record.view(np.float32)
    slots = read_only(np.arange(len(alternatives)))
    given = read_only(np.ascontiguousarray(alternatives, np.int64))
    return record, write_records(columns, given, dimensions, slots, record, *views)
