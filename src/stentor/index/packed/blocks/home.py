"""Blocks as a home of alternatives."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from stentor._jit import direct
from stentor.encoding.columns import (
    EventColumns,
    Int32,
    Int64,
    SubscriptionColumns,
    all_read_only,
    event_count,
    read_only,
)
from stentor.index.packed.blocks.build import aligned, build_blocks
from stentor.index.packed.blocks.check import check_blocks
from stentor.index.packed.blocks.dimensions import choose_dimensions
from stentor.index.packed.blocks.encode import write_events
from stentor.index.packed.blocks.layout import (
    BLOCK,
    EVENT,
    EVENT_LINES,
    FANOUT,
    NODE_FIELDS,
    PENDING,
    RECORD,
    WORDS,
    BlockArrays,
    BlockDimensions,
    BlockEvents,
    BlockScratch,
)
from stentor.index.packed.blocks.match import match_events
from stentor.index.packed.blocks.move import find_slots, live_slots, move_slots, remove_slots
from stentor.index.packed.homes import Found

#: Events that go down the tree together.
TILE = 2048

_write_events, _match_events = direct(write_events), direct(match_events)


class Blocks:
    """Alternatives in blocks of 512, ordered by where they are and by what they bound.

    Invariant: no line, head or box excludes an event that a live record may match.
    """

    name = "blocks"

    def __init__(
        self, dimensions: BlockDimensions, arrays: BlockArrays, member: Int32, slot_of: Int32
    ) -> None:
        self.dimensions = dimensions
        self._arrays = arrays
        self.blocks = all_read_only(arrays)
        self._member = member  # ascending
        self._slot_of = slot_of  # of each of them
        self.lines = int(dimensions.line_start[-1])
        self._has_places = bool(dimensions.line_start[0] > 1)
        self._count = int(np.bitwise_count(self._live_line()).sum())
        self._kept: _TileMemory | None = None

    @classmethod
    def build(cls, columns: SubscriptionColumns, alternatives: Int64) -> Self:
        """Blocks of *alternatives*, which ascend. Cost: one to two microseconds each."""
        dimensions = choose_dimensions(columns, alternatives)
        arrays, slot_of = build_blocks(columns, alternatives, dimensions)
        return cls(dimensions, arrays, alternatives.astype(np.int32), slot_of)

    @property
    def count(self) -> int:
        """Alternatives that were not removed."""
        return self._count

    @property
    def nbytes(self) -> int:
        kept = {id(array): array.nbytes for array in self.arrays().values()}
        return sum(kept.values())

    def match(self, events: EventColumns, found: Found) -> int:
        """The number of pairs that may match, or surely do; those that do not fit are counted.

        Cost: some lines for each event and block that it reaches, a record for what they leave.
        """
        total, count = 0, event_count(events)
        if not len(self._member) or not count:
            return 0
        memory = _TileMemory(self.blocks, min(count, TILE))
        for start in range(0, count, TILE):
            total = self._match_tile(
                events, start, min(TILE, count - start), memory, total, found
            )
        return total

    def match_one(self, events: EventColumns, found: Found) -> int:
        """`match` of one event, by one thread at a time: memory is kept."""
        if not len(self._member):
            return 0
        if self._kept is None:
            self._kept = _TileMemory(self.blocks, 1)
        return self._match_tile(events, 0, 1, self._kept, 0, found)

    def _match_tile(
        self,
        events: EventColumns,
        start: int,
        count: int,
        memory: _TileMemory,
        total: int,
        found: Found,
    ) -> int:
        blocks = self.blocks
        _write_events(
            events,
            start,
            count,
            self.dimensions,
            blocks.left,
            bool(blocks.signed[0]),
            memory.written,
        )
        return _match_events(
            blocks,
            self.lines,
            self._has_places,
            memory.events,
            count,
            start,
            memory.scratch,
            total,
            found.event,
            found.alternative,
            found.covered,
        )

    # Changes.

    def remove(self, alternatives: Int64) -> None:
        """Clear the bits of *alternatives*, where they are here and not mapped from a file."""
        slots, _ = self._slots(alternatives)
        if self._arrays.line.flags.writeable:
            self._count -= remove_slots(self._arrays.line, self.lines, read_only(slots))

    def move(self, columns: SubscriptionColumns, alternatives: Int64) -> Int64:
        """Write the boxes of *alternatives* anew; what no longer fits its block is removed.

        What was removed, which the caller keeps elsewhere. Cost: 0.1 µs each.
        """
        slots, here = self._slots(alternatives)
        if not self._arrays.line.flags.writeable:
            return here[:0]
        is_live = np.empty(len(slots), np.uint8)
        live_slots(self.blocks.line, self.lines, read_only(slots), is_live)
        slots, here = slots[is_live != 0], here[is_live != 0]
        is_moved = np.empty(len(slots), np.uint8)
        record = aligned(RECORD, np.uint8)
        move_slots(
            columns,
            read_only(here),
            read_only(slots),
            self.dimensions,
            self._arrays,
            record,
            record.view(np.float32)[12:],
            is_moved,
        )
        far = here[is_moved == 0]
        self.remove(far)
        return far

    def _slots(self, alternatives: Int64) -> tuple[Int64, Int64]:
        """The slots of those of *alternatives* that have one, and which those are."""
        given = read_only(np.ascontiguousarray(alternatives, np.int64))
        slots = np.empty(len(given), np.int64)
        if find_slots(read_only(self._member), read_only(self._slot_of), given, slots) < len(given):
            here = slots >= 0
            return slots[here], given[here]
        return slots, given

    def _live_line(self) -> npt.NDArray[np.uint64]:
        """The live bits of all blocks."""
        return self._arrays.line.reshape(-1, self.lines, WORDS)[:, 0]

    # Files, figures, invariants.

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, to be written to files; `over` takes it back."""
        views = ("record_int", "record_float")
        named = {
            name: array for name, array in self.blocks._asdict().items() if name not in views
        }
        own = {"member": self._member, "slot_of": self._slot_of}
        return {**named, **self.dimensions._asdict(), **own}

    @classmethod
    def over(cls, arrays: dict[str, npt.NDArray[Any]]) -> Self:
        """Read-only blocks over *arrays*, of which nothing is copied."""
        record = arrays["record"]
        views = {"record_int": record.view(np.int32), "record_float": record.view(np.float32)}
        every = {**arrays, **views}
        dimensions = BlockDimensions(*(every[name] for name in BlockDimensions._fields))
        blocks = BlockArrays(*(every[name] for name in BlockArrays._fields))
        return cls(
            all_read_only(dimensions), all_read_only(blocks), every["member"], every["slot_of"]
        )

    def stats(self) -> dict[str, Any]:
        """Figures for people."""
        blocks = len(self.blocks.record) // (BLOCK * RECORD)
        return {
            "alternatives": self.count,
            "bytes": self.nbytes,
            "blocks": blocks,
            "dimensions": len(self.dimensions.attribute),
            "lines": self.lines,
            "selective blocks": int(np.count_nonzero(self.blocks.is_selective[-blocks:])),
        }

    def check(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        """Assert every invariant; *alternatives* are those that are live here."""
        slots, here = self._slots(alternatives)
        assert np.array_equal(here, alternatives), "each alternative has a slot"
        check_blocks(self.dimensions, self.blocks, columns, alternatives, slots)
        if self._arrays.line.flags.writeable:  # in an opened home the table hides what is removed
            assert self._count == len(alternatives)


class _TileMemory:
    """The memory that matching a tile of *count* events takes."""

    def __init__(self, blocks: BlockArrays, count: int) -> None:
        code = aligned(count * EVENT, np.uint8)
        levels = len(blocks.level_start) - 2
        self.written = BlockEvents(
            code=code,
            code_int=code.view(np.int32),
            code_float=code.view(np.float32),
            line=np.empty(count * EVENT_LINES, np.uint16),
            last_line=np.empty(count * EVENT_LINES, np.uint16),
            used=np.empty(count, np.int64),
            has_range=np.empty(count, np.uint8),
        )
        self.events = all_read_only(self.written)
        self.scratch = BlockScratch(
            words=aligned(WORDS, np.uint64),
            events=np.empty((1 + levels * FANOUT) * count, np.int32),
            node=np.empty(levels * NODE_FIELDS, np.int64),
            slot=np.empty(PENDING + BLOCK, np.int64),
            event=np.empty(PENDING + BLOCK, np.int64),
        )
