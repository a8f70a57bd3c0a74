"""Blocks in memory: what alternatives and live events have in common."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from stentor._jit import direct
from stentor.encoding.columns import Int32, Int64, UInt8, all_read_only, read_only
from stentor.index.packed.blocks.build import aligned, build_blocks
from stentor.index.packed.blocks.check import check_blocks
from stentor.index.packed.blocks.layout import (
    BLOCK,
    EVENT,
    FANOUT,
    MEMBER_INT,
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
from stentor.index.packed.blocks.move import find_slots, live_slots, remove_slots
from stentor.index.packed.homes import Found

#: Events that go down the tree together.
TILE = 2048

_match_events = direct(match_events)


class BlockStore:
    """Records in blocks of 512, ordered by where they are and by what they bound.

    Invariant: no line, head or box excludes what a live record may match.
    """

    def __init__(
        self, dimensions: BlockDimensions, arrays: BlockArrays, member: Int32, slot_of: Int32
    ) -> None:
        self.dimensions = dimensions
        self._arrays = arrays
        self.blocks = all_read_only(arrays)
        self.member = member  # what the records are of, ascending
        self._slot_of = slot_of  # of each of them
        self.lines = int(dimensions.line_start[-1])
        self.locations = int(dimensions.line_start[0]) - 1
        self._count = -1  # not known yet: an opened file is not read for it

    @classmethod
    def of_records(cls, dimensions: BlockDimensions, record: UInt8, signed: int) -> Self:
        """Blocks of records, of which so many are *signed*, in the order of their members."""
        arrays, slot_of = build_blocks(record, signed, dimensions)
        member = record.view(np.int32).reshape(-1, RECORD // 4)[:, MEMBER_INT].copy()
        return cls(dimensions, arrays, member, slot_of)

    @property
    def count(self) -> int:
        """Records that were not removed."""
        if self._count < 0:
            live = self._arrays.line.reshape(-1, self.lines, WORDS)[:, 0]
            self._count = int(np.bitwise_count(live).sum())
        return self._count

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    @property
    def is_writable(self) -> bool:
        """Whether it is not mapped from a file."""
        return self._arrays.line.flags.writeable

    def match_tile(
        self, memory: TileMemory, count: int, first: int, total: int, found: Found
    ) -> int:
        """*total*, and the pairs of the *count* events that are written in *memory*.

        They are numbered from *first* on; what does not fit is only counted.
        """
        return _match_events(
            self.blocks,
            self.lines,
            self.locations,
            memory.events,
            count,
            first,
            memory.scratch,
            total,
            found.event,
            found.alternative,
            found.covered,
        )

    def remove(self, members: Int64) -> None:
        """Clear the bits of *members*, where they are here and not mapped from a file."""
        if self.is_writable:
            slots, _ = self.slots(members)
            count = self.count
            self._count = count - remove_slots(self._arrays.line, self.lines, read_only(slots))

    def renumber(self, members: Int64) -> None:
        """Let each of *members* (ascending, all that are live among them) be its position there."""
        live = self.is_live(self._slot_of.astype(np.int64)) != 0
        slots = self._slot_of[live]
        self.member = np.searchsorted(members, self.member[live]).astype(np.int32)
        self._slot_of = slots
        self._arrays.record_int.reshape(-1, RECORD // 4)[slots, MEMBER_INT] = self.member

    def slots(self, members: Int64) -> tuple[Int64, Int64]:
        """The slots of those of *members* that have one, and which those are."""
        given = read_only(np.ascontiguousarray(members, np.int64))
        slots = np.empty(len(given), np.int64)
        if find_slots(read_only(self.member), read_only(self._slot_of), given, slots) < len(given):
            here = slots >= 0
            return slots[here], given[here]
        return slots, given

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, to be written to files; `over` takes it back."""
        views = ("record_int", "record_float")
        named = {name: array for name, array in self.blocks._asdict().items() if name not in views}
        own = {"member": self.member, "slot_of": self._slot_of}
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

    def is_live(self, slots: Int64) -> UInt8:
        """1 for each of *slots* whose record was not removed."""
        live = np.empty(len(slots), np.uint8)
        live_slots(self.blocks.line, self.lines, read_only(slots), live)
        return live

    def check_records(self, record: UInt8) -> None:
        """Assert every invariant of those of the records *record* that were not removed."""
        records = record.reshape(-1, RECORD)
        members = records.view(np.int32)[:, MEMBER_INT].astype(np.int64)
        slots, here = self.slots(members)
        assert np.array_equal(here, members), "each has a slot"
        live = self.is_live(slots) != 0
        check_blocks(self.dimensions, self.blocks, records[live], slots[live])


class TileMemory:
    """The memory that matching a tile of *count* events takes; *width* is that of their lines."""

    def __init__(self, blocks: BlockArrays, count: int, width: int) -> None:
        code = aligned(count * EVENT, np.uint8)
        levels = len(blocks.level_start) - 2
        self.written = BlockEvents(
            code=code,
            code_int=code.view(np.int32),
            code_float=code.view(np.float32),
            line=np.empty(count * width, np.uint16),
            last_line=np.empty(count * width, np.uint16),
            used=np.empty(count, np.int64),
            has_range=np.zeros(count, np.uint8),
        )
        self.events = all_read_only(self.written)
        self.scratch = BlockScratch(
            words=aligned(WORDS, np.uint64),
            events=np.empty((1 + levels * FANOUT) * count, np.int32),
            node=np.empty(levels * NODE_FIELDS, np.int64),
            slot=np.empty(PENDING + BLOCK, np.int64),
            event=np.empty(PENDING + BLOCK, np.int64),
        )
