"""Events → alternatives: the events of a tile go down the tree together.

A block is visited once for all events that reach it, so that its lines stay in the cache. In a
batch nothing ends early: a branch that is guessed wrong costs more than a line. For one event it
is the other way round: lines come from memory, so fewer are better.
"""

from __future__ import annotations

import numpy as np

from stentor._intrinsics import prefetch, trailing_zeros
from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor._lines import (
    Line,
    both,
    boxes_meeting,
    cuts_up_to,
    either,
    filled_words,
    has_bits,
    line_at,
    put_line,
)
from stentor.encoding.columns import EventColumns, Int32, Int64, UInt8
from stentor.index.packed.blocks.compare import head_meets, verdict
from stentor.index.packed.blocks.encode import write_events
from stentor.index.packed.blocks.layout import (
    ALTERNATIVE_LOCATIONS,
    BLOCK,
    EVENT,
    FANOUT,
    HEAD,
    LIVE,
    LOCATION_CELLS,
    LOCATION_CUTS,
    MAY_MATCH,
    MEMBER_INT,
    NODE_FIELDS,
    PENDING,
    POINT_FLOAT,
    RECORD,
    WORDS,
    BlockArrays,
    BlockDimensions,
    BlockEvents,
    BlockScratch,
    whole,
)

_NONE, _ONE = np.uint64(0), np.uint64(1)
_INTS, _EVENT_FLOATS = RECORD // 4, EVENT // 4


@kernel
def match_events(
    blocks: BlockArrays,
    lines: int,
    locations: int,
    events: BlockEvents,
    count: int,
    first: int,
    scratch: BlockScratch,
    found: int,
    found_event: Int64,
    found_alternative: Int64,
    covered: UInt8,
) -> int:
    """*found*, and the pairs of the *count* events, which are numbered from *first* on.

    What does not fit is only counted. *locations* are the lines of locations.
    """
    levels = len(blocks.level_start) - 2
    span = len(scratch.events) // (1 + levels * FANOUT)
    for event in range(count):
        scratch.events[event] = event
    send_down(blocks, 0, 0, scratch.events, count, span, events, scratch)
    level, pending = 0, 0
    while level >= 0:
        node = scratch.node[level * NODE_FIELDS : (level + 1) * NODE_FIELDS]
        child = node[1]
        if child == FANOUT:
            level -= 1
            continue
        node[1] = child + 1
        number = node[2 + child]
        if number == 0:
            continue
        at = (1 + level * FANOUT + child) * span
        to = scratch.events[at : at + number]
        below = node[0] * FANOUT + child
        if level + 1 < levels:
            level += 1
            send_down(blocks, level, below, to, number, span, events, scratch)
            continue
        head = blocks.level_start[levels] + below
        is_selective = blocks.is_selective[head] != 0
        for event in to:
            if is_selective and not head_meets(
                blocks.head, head * HEAD, events.code, event * EVENT
            ):
                continue
            left = intersection(blocks, lines, locations, below, events, event)
            if has_bits(left):
                pending = list_slots(blocks, below, left, event, pending, scratch)
                if pending >= PENDING:
                    found = compare_records(
                        blocks,
                        pending,
                        first,
                        events,
                        scratch,
                        found,
                        found_event,
                        found_alternative,
                        covered,
                    )
                    pending = 0
    return compare_records(
        blocks, pending, first, events, scratch, found, found_event, found_alternative, covered
    )


@kernel
def match_event(
    given: EventColumns,
    dimensions: BlockDimensions,
    blocks: BlockArrays,
    locations: int,
    written: BlockEvents,
    events: BlockEvents,
    front: Int32,
    scratch: BlockScratch,
    found_event: Int64,
    found_alternative: Int64,
    covered: UInt8,
) -> int:
    """The pairs of the first of *given*; what does not fit is only counted.

    *written* and *events* are the same memory, writable and read-only; *front* is scratch for the
    nodes of two levels.
    """
    write_events(given, 0, 1, dimensions, blocks.left, blocks.signed[0] != 0, written)
    lines = dimensions.line_start[len(dimensions.line_start) - 1]
    levels = len(blocks.level_start) - 2
    current, following = front[: len(front) // 2], front[len(front) // 2 :]
    current[0] = 0
    count = 1
    for level in range(levels):
        reached = 0
        for position in range(count):
            number = whole(current[position])
            children = children_around(blocks, blocks.level_start[level] + number, events, 0)
            while children != _NONE:
                following[reached] = number * FANOUT + whole(trailing_zeros(children))
                children &= children - _ONE
                reached += 1
        current, following, count = following, current, reached
    reached = 0
    for position in range(count):
        head = blocks.level_start[levels] + whole(current[position])
        current[reached] = current[position]
        reached += blocks.is_selective[head] == 0 or head_meets(
            blocks.head, head * HEAD, events.code, 0
        )
    pending = found = 0
    for position in range(reached):
        block = whole(current[position])
        if position + 1 < reached:
            prefetch_lines(blocks, lines, locations, whole(current[position + 1]), events)
        left = intersection(blocks, lines, locations, block, events, 0)
        if has_bits(left):
            pending = list_slots(blocks, block, left, 0, pending, scratch)
            if pending >= PENDING:
                found = compare_records(
                    blocks,
                    pending,
                    0,
                    events,
                    scratch,
                    found,
                    found_event,
                    found_alternative,
                    covered,
                )
                pending = 0
    return compare_records(
        blocks, pending, 0, events, scratch, found, found_event, found_alternative, covered
    )


@kernel_inline
def prefetch_lines(
    blocks: BlockArrays, lines: int, locations: int, block: int, events: BlockEvents
) -> None:
    """Prefetch all lines of *block* that the only event selects: some of them would not help."""
    base = block * lines * WORDS
    prefetch(blocks.line, base)
    if locations > 0:
        cuts = block * LOCATION_CUTS
        x = 1 + cuts_up_to(blocks.location_cut, cuts, events.code_float[POINT_FLOAT])
        y = 1 + cuts_up_to(
            blocks.location_cut, cuts + LOCATION_CELLS, events.code_float[POINT_FLOAT + 1]
        )
        prefetch(blocks.line, base + x * WORDS)
        prefetch(blocks.line, base + ((locations >> 1) + y) * WORDS)
    for position in range(events.used[0]):
        prefetch(blocks.line, base + whole(events.line[position]) * WORDS)


@kernel_inline
def children_around(blocks: BlockArrays, node: int, events: BlockEvents, event: int) -> np.uint64:
    """A bit for each child of *node* whose box meets *event*; none where its head does not."""
    if blocks.is_selective[node] != 0 and not head_meets(
        blocks.head, node * HEAD, events.code, event * EVENT
    ):
        return _NONE
    at = event * _EVENT_FLOATS + POINT_FLOAT
    return boxes_meeting(
        blocks.box,
        node * 4 * FANOUT,
        -events.code_float[at + 2],
        -events.code_float[at + 3],
        events.code_float[at],
        events.code_float[at + 1],
    )


@inner_kernel
def send_down(
    blocks: BlockArrays,
    level: int,
    number: int,
    listed: Int32,
    count: int,
    span: int,
    events: BlockEvents,
    scratch: BlockScratch,
) -> None:
    """List the events of a node under each child whose box has them."""
    node = scratch.node[level * NODE_FIELDS : (level + 1) * NODE_FIELDS]
    node[0], node[1] = number, 0
    for child in range(FANOUT):
        node[2 + child] = 0
    to = scratch.events[(1 + level * FANOUT) * span :]
    for position in range(count):
        event = whole(listed[position])
        children = children_around(blocks, blocks.level_start[level] + number, events, event)
        while children != _NONE:
            child = whole(trailing_zeros(children))
            children &= children - _ONE
            to[child * span + node[2 + child]] = event
            node[2 + child] += 1


@kernel_inline
def intersection(
    blocks: BlockArrays, lines: int, locations: int, block: int, events: BlockEvents, event: int
) -> Line:
    """The slots of *block* that all lines of *event* leave."""
    base = block * lines * WORDS
    left = line_at(blocks.line, base + LIVE * WORDS)
    if locations > 0:
        left = both(left, location_lines(blocks, base, locations, block, events, event))
    first = event * (len(events.line) // len(events.used))
    stop = first + events.used[event]
    if events.has_range[event] != 0:
        for position in range(first, stop):
            left = both(left, joined_lines(blocks, base, events, position))
        return left
    for position in range(first, stop, 4):
        left = both(
            both(left, selected(blocks, base, events, position)),
            both(
                selected(blocks, base, events, position + 1),
                both(
                    selected(blocks, base, events, position + 2),
                    selected(blocks, base, events, position + 3),
                ),
            ),
        )
    return left


@kernel_inline
def location_lines(
    blocks: BlockArrays, base: int, locations: int, block: int, events: BlockEvents, event: int
) -> Line:
    """The slots whose boxes may meet the location of *event*."""
    at, cuts = event * _EVENT_FLOATS + POINT_FLOAT, block * LOCATION_CUTS
    x = 1 + cuts_up_to(blocks.location_cut, cuts, events.code_float[at])
    y = 1 + cuts_up_to(blocks.location_cut, cuts + LOCATION_CELLS, events.code_float[at + 1])
    left = both(
        line_at(blocks.line, base + x * WORDS),
        line_at(blocks.line, base + ((locations >> 1) + y) * WORDS),
    )
    if locations == ALTERNATIVE_LOCATIONS:
        return left
    x = 1 + LOCATION_CELLS + cuts_up_to(blocks.location_cut, cuts, -events.code_float[at + 2])
    y = (
        1
        + LOCATION_CELLS
        + cuts_up_to(blocks.location_cut, cuts + LOCATION_CELLS, -events.code_float[at + 3])
    )
    return both(
        left,
        both(
            line_at(blocks.line, base + x * WORDS),
            line_at(blocks.line, base + ((locations >> 1) + y) * WORDS),
        ),
    )


@kernel_inline
def selected(blocks: BlockArrays, base: int, events: BlockEvents, position: int) -> Line:
    """A line that an event selects."""
    return line_at(blocks.line, base + whole(events.line[position]) * WORDS)


@kernel_inline
def joined_lines(blocks: BlockArrays, base: int, events: BlockEvents, position: int) -> Line:
    """All lines of the cells that a range meets."""
    line = selected(blocks, base, events, position)
    for number in range(whole(events.line[position]) + 1, whole(events.last_line[position]) + 1):
        line = either(line, line_at(blocks.line, base + number * WORDS))
    return line


@kernel_inline
def list_slots(
    blocks: BlockArrays, block: int, left: Line, event: int, pending: int, scratch: BlockScratch
) -> int:
    """Append the slots of *left* to the candidates, whose records are prefetched."""
    put_line(scratch.words, 0, left)
    some = filled_words(left)
    while some != _NONE:
        word = whole(trailing_zeros(some))
        some &= some - _ONE
        bits = scratch.words[word]
        while bits != _NONE:
            slot = block * BLOCK + 64 * word + whole(trailing_zeros(bits))
            bits &= bits - _ONE
            prefetch(blocks.record, slot * RECORD)
            scratch.slot[pending] = slot
            scratch.event[pending] = event
            pending += 1
    return pending


@inner_kernel
def compare_records(
    blocks: BlockArrays,
    pending: int,
    first: int,
    events: BlockEvents,
    scratch: BlockScratch,
    found: int,
    found_event: Int64,
    found_alternative: Int64,
    covered: UInt8,
) -> int:
    """Compare the records of the *pending* candidates; *found*, and those that may match.

    Without a branch for each where all fit.
    """
    if found + pending <= len(found_event):
        for position in range(pending):
            slot, event = scratch.slot[position], scratch.event[position]
            said = verdict(blocks.record, slot * RECORD, events.code, event * EVENT)
            found_event[found] = first + event
            found_alternative[found] = blocks.record_int[slot * _INTS + MEMBER_INT]
            covered[found] = said >> 1
            found += said & MAY_MATCH
        return found
    for position in range(pending):
        slot, event = scratch.slot[position], scratch.event[position]
        said = verdict(blocks.record, slot * RECORD, events.code, event * EVENT)
        if said & MAY_MATCH:
            if found < len(found_event):
                found_event[found] = first + event
                found_alternative[found] = blocks.record_int[slot * _INTS + MEMBER_INT]
                covered[found] = said >> 1
            found += 1
    return found
