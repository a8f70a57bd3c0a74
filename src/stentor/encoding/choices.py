"""Events whose attributes are one of several values → plain events, one for each choice.

An alternative asks of each attribute by itself, so that an event matches it exactly where some
choice of a value for each attribute does. Structures see plain events alone.

Terms are in the order of values, and say of which string they are where that makes a difference: an
empty term goes before those of a string that is `ONE_OF` several, and before those of any other
string that follows.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from stentor._jit import kernel
from stentor.encoding.columns import (
    NO_STRING,
    EventColumns,
    Int64,
    MatchPairs,
    event_count,
    read_only,
    read_only_columns,
)
from stentor.encoding.event import ONE_OF
from stentor.encoding.ragged import concatenate, expand_slices


class Choices(NamedTuple):
    """Plain events, and the event that each is a choice of."""

    events: EventColumns
    of: Int64  # (events,)


def with_choices(events: EventColumns) -> Int64:
    """The *events* that have an attribute which is one of several values."""
    found = np.empty(event_count(events), np.int64)
    return found[: find_choices(events, found)]


@kernel
def find_choices(events: EventColumns, found: Int64) -> int:
    """Fill *found*; how many there are."""
    count = 0
    for event in range(len(events.value_start) - 1):
        start, stop = events.value_start[event], events.value_start[event + 1]
        for value in range(start + 1, stop):
            if events.attribute[value] == events.attribute[value - 1]:
                found[count] = event
                count += 1
                break
    return count


def spread_choices(events: EventColumns) -> Choices:
    """Every choice of each of *events*, which are in their order.

    Cost: what the choices hold; their strings are not copied.
    """
    values: list[Int64] = []
    terms: list[Int64] = []
    of: list[int] = []
    for event in range(event_count(events)):
        for chosen, own in _choices_of(events, event):
            values.append(chosen)
            terms.append(own)
            of.append(event)
    value, term = _joined(values), _joined(terms)
    choice = np.array(of, np.int64)
    weights, weight_start = expand_slices(
        events.weight_start[choice], events.weight_start[choice + 1]
    )
    found = events._replace(
        value_start=_starts(values),
        attribute=events.attribute[value],
        low=events.low[value],
        high=events.high[value],
        string=events.string[value],
        term_start=_starts(terms),
        term_hash=events.term_hash[term],
        term_byte_start=events.term_byte_start[term],
        term_byte_stop=events.term_byte_stop[term],
        weight_start=weight_start,
        weight_attribute=events.weight_attribute[weights],
        weight=events.weight[weights],
        until=events.until[choice],
        time=events.time[choice],
        seq=events.seq[choice],
    )
    return Choices(read_only_columns(found), read_only(choice))


def _choices_of(events: EventColumns, event: int) -> list[tuple[Int64, Int64]]:
    """The values and the terms of each choice of *event*."""
    start, stop = int(events.value_start[event]), int(events.value_start[event + 1])
    first, last = int(events.term_start[event]), int(events.term_start[event + 1])
    groups: dict[int, list[int]] = {}
    for value, attribute in enumerate(events.attribute[start:stop].tolist(), start):
        groups.setdefault(attribute, []).append(value)
    strings = iter(
        value
        for one in groups.values()
        if len(one) > 1
        for value in one
        if events.string[value] != NO_STRING
    )
    empty = events.term_byte_start[first:last] == events.term_byte_stop[first:last]
    marks = (first + np.flatnonzero(empty)).tolist()
    bounds = [*marks, last]
    always, own = [np.arange(first, bounds[0])], dict[int, Int64]()
    for mark, end in zip(marks, bounds[1:], strict=True):
        terms = np.arange(mark + 1, end)
        if events.term_hash[mark] == ONE_OF:
            own[next(strings)] = terms
        else:
            always.append(terms)
    return [
        (np.array(chosen, np.int64), _joined([*always, *(own[i] for i in chosen if i in own)]))
        for chosen in product(*groups.values())
    ]


def choices_of_pairs(
    events: EventColumns, pairs: MatchPairs
) -> tuple[EventColumns, MatchPairs, Int64]:
    """The choices of *events* with the rows of *pairs*, and of which pair each of these is."""
    choices, of = spread_choices(events)
    position, starts = expand_slices(pairs.starts[of], pairs.starts[of + 1])
    return choices, MatchPairs(starts, pairs.rows[position]), position


def joined_choices(plain: EventColumns, rest: EventColumns) -> EventColumns:
    """Events of which each has the values of one of *plain* and of one of *rest*, both together.

    Their attributes are different ones; weights and times are those of *plain*.
    """
    count = event_count(plain)
    both = concatenate([plain, rest._replace(until=plain.until)])
    event = np.repeat(np.arange(2 * count), np.diff(both.value_start)) % count
    value = np.lexsort((both.attribute, event))
    term_event = np.repeat(np.arange(2 * count), np.diff(both.term_start)) % count
    term = np.argsort(term_event, kind="stable")
    weights = int(both.weight_start[count])
    return read_only_columns(
        both._replace(
            value_start=_counted(event, count),
            attribute=both.attribute[value],
            low=both.low[value],
            high=both.high[value],
            string=both.string[value],
            term_start=_counted(term_event, count),
            term_hash=both.term_hash[term],
            term_byte_start=both.term_byte_start[term],
            term_byte_stop=both.term_byte_stop[term],
            weight_start=both.weight_start[: count + 1],
            weight_attribute=both.weight_attribute[:weights],
            weight=both.weight[:weights],
            until=both.until[:count],
            time=both.time[:count],
            seq=both.seq[:count],
        )
    )


def hulls(events: EventColumns) -> EventColumns:
    """*events* with the range around the values of each attribute, where these are several."""
    if not len(with_choices(events)):
        return events
    event = np.repeat(np.arange(event_count(events)), np.diff(events.value_start))
    is_first = np.ones(len(event), np.bool_)
    is_first[1:] = (event[1:] != event[:-1]) | (np.diff(events.attribute) != 0)
    first = np.flatnonzero(is_first)
    return read_only_columns(
        events._replace(
            value_start=_counted(event[first], event_count(events)),
            attribute=events.attribute[first],
            low=np.minimum.reduceat(events.low, first),
            high=np.maximum.reduceat(events.high, first),
            string=events.string[first],
        )
    )


def _counted(of: Int64, count: int) -> Int64:
    return np.append(0, np.cumsum(np.bincount(of, minlength=count)))


def _joined(parts: list[Int64]) -> Int64:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _starts(parts: list[Int64]) -> Int64:
    return np.cumsum([0, *map(len, parts)])
