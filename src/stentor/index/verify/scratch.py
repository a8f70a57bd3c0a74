"""One event, spread out so that each predicate is one look-up.

Values and weights are kept by attribute code, terms in a small open-addressing set. A word
whose hash another word of the event has goes on from a slot that its bytes choose: no event makes
look-ups long, whatever its words were made for (`encoding/spread.py`).

Whatever does not carry the current stamp is void: nothing is cleared between events, for twenty
attributes or ten thousand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor._jit import inner_kernel, kernel_inline
from stentor.encoding.columns import EventColumns, Float64, Int32, Int64, UInt8, UInt64
from stentor.encoding.spread import first_slot, slot_of_bytes, spread_over

#: Up to so many terms look-ups are worth more than memory.
_MANY_TERMS = 4_096


class EventScratch(NamedTuple):
    """Mutable arrays for one event at a time, each thread has its own; and the events' bytes."""

    stamp: Int64  # (1,) marks equal to it belong to the event that is spread out
    value_mark: Int64  # (attributes,)
    low: Float64  # (attributes,)
    high: Float64  # (attributes,)
    string: Int32  # (attributes,)
    weight_mark: Int64  # (attributes,)
    weight: Float64  # (attributes,)
    term_mark: Int64  # (slots,) a power of two, more than twice an event's terms
    term_hash: UInt64  # (slots,)
    term_start: Int64  # (slots,) a slice of the term's bytes
    term_stop: Int64  # (slots,)
    spread: UInt64  # where the look-up of a term starts
    terms: Int64  # (2,) the event's terms: from the first to behind the last
    ordered_hash: UInt64  # the events' own, as are the following: terms in the order of texts
    ordered_start: Int64
    ordered_stop: Int64
    term_bytes: UInt8
    string_hash: UInt64
    string_start: Int64
    string_bytes: UInt8


class ScratchSize(NamedTuple):
    """How large a scratch must be."""

    attributes: int = 0
    terms: int = 0

    def joined(self, other: ScratchSize) -> ScratchSize:
        """The size that suffices for both."""
        return ScratchSize(max(self.attributes, other.attributes), max(self.terms, other.terms))


def scratch_size(events: EventColumns) -> ScratchSize:
    """What each of *events* fits into. Cost: one pass over their attribute codes."""
    values = events.attribute[events.value_start[0] : events.value_start[-1]]
    weights = events.weight_attribute[events.weight_start[0] : events.weight_start[-1]]
    attributes = 1 + max(values.max(initial=-1), weights.max(initial=-1))
    return ScratchSize(int(attributes), int(np.diff(events.term_start).max(initial=0)))


def scratch_for(events: EventColumns, widest: ScratchSize | None = None) -> EventScratch:
    """A scratch that each of *events* fits into; an attribute beyond it is one they all lack.

    Cost: one pass over the attribute codes of *events*, where *widest* is not known.
    """
    attributes, terms = widest or scratch_size(events)
    capacity = 8 if terms <= _MANY_TERMS else 2
    slots = 1 << (capacity * terms + 1).bit_length()  # two at least
    return EventScratch(
        stamp=np.zeros(1, np.int64),
        value_mark=np.zeros(attributes, np.int64),
        low=np.empty(attributes),
        high=np.empty(attributes),
        string=np.empty(attributes, np.int32),
        weight_mark=np.zeros(attributes, np.int64),
        weight=np.empty(attributes),
        term_mark=np.zeros(slots, np.int64),
        term_hash=np.empty(slots, np.uint64),
        term_start=np.empty(slots, np.int64),
        term_stop=np.empty(slots, np.int64),
        spread=spread_over(slots),
        terms=np.zeros(2, np.int64),
        ordered_hash=events.term_hash,
        ordered_start=events.term_byte_start,
        ordered_stop=events.term_byte_stop,
        term_bytes=events.term_bytes,
        string_hash=events.string_hash,
        string_start=events.string_start,
        string_bytes=events.string_bytes,
    )


def reused(scratch: EventScratch, events: EventColumns) -> EventScratch:
    """*scratch* for other *events*, which fit into it."""
    return scratch._replace(
        ordered_hash=events.term_hash,
        ordered_start=events.term_byte_start,
        ordered_stop=events.term_byte_stop,
        term_bytes=events.term_bytes,
        string_hash=events.string_hash,
        string_start=events.string_start,
        string_bytes=events.string_bytes,
    )


@inner_kernel
def load_event(events: EventColumns, event: int, scratch: EventScratch) -> None:
    """Spread *event* out over *scratch*, replacing the event before."""
    stamp = scratch.stamp[0] + 1
    scratch.stamp[0] = stamp
    attributes = len(scratch.value_mark)
    for value in range(events.value_start[event], events.value_start[event + 1]):
        attribute = events.attribute[value]
        if 0 <= attribute < attributes:
            scratch.value_mark[attribute] = stamp
            scratch.low[attribute] = events.low[value]
            scratch.high[attribute] = events.high[value]
            scratch.string[attribute] = events.string[value]
    for position in range(events.weight_start[event], events.weight_start[event + 1]):
        attribute = events.weight_attribute[position]
        if 0 <= attribute < attributes:
            scratch.weight_mark[attribute] = stamp
            scratch.weight[attribute] = events.weight[position]
    scratch.terms[0], scratch.terms[1] = events.term_start[event], events.term_start[event + 1]
    for term in range(events.term_start[event], events.term_start[event + 1]):
        hashed = events.term_hash[term]
        start, stop = events.term_byte_start[term], events.term_byte_stop[term]
        slot = term_slot(scratch, hashed, events.term_bytes[start:stop])
        scratch.term_mark[slot] = stamp
        scratch.term_hash[slot] = hashed
        scratch.term_start[slot] = start
        scratch.term_stop[slot] = stop


@kernel_inline
def term_slot(scratch: EventScratch, hashed: np.uint64, term: UInt8) -> int:
    """The slot of *term*, which has the hash *hashed*: marked where the event has it, else free."""
    stamp, last_slot = scratch.stamp[0], len(scratch.term_mark) - 1
    slot = first_slot(scratch.spread, hashed)
    is_first_with_hash = True
    while scratch.term_mark[slot] == stamp:
        if scratch.term_hash[slot] == hashed:
            known = scratch.term_bytes[scratch.term_start[slot] : scratch.term_stop[slot]]
            if same_bytes(known, term):
                return slot
            if is_first_with_hash:
                is_first_with_hash = False
                slot = slot_of_bytes(scratch.spread, term)
                continue
        slot = (slot + 1) & last_slot
    return slot


@kernel_inline
def same_bytes(left: UInt8, right: UInt8) -> bool:
    """Whether *left* and *right* hold the same bytes."""
    if len(left) != len(right):
        return False
    for position in range(len(left)):
        if left[position] != right[position]:
            return False
    return True


@kernel_inline
def has_value(scratch: EventScratch, attribute: int) -> bool:
    """Whether the event has *attribute*."""
    return attribute < len(scratch.value_mark) and scratch.value_mark[attribute] == scratch.stamp[0]


@kernel_inline
def weight_of(scratch: EventScratch, attribute: int) -> float:
    """The event's weight of *attribute*; 1 where it gives none."""
    if attribute >= len(scratch.weight_mark):
        return 1.0
    return scratch.weight[attribute] if scratch.weight_mark[attribute] == scratch.stamp[0] else 1.0
