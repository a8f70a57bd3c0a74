"""A batch of events → columns, an attribute at a time; events of the model, one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stentor._jit import kernel
from stentor.encoding.choices import joined_choices
from stentor.encoding.columns import (
    NO_STRING,
    EventColumns,
    Float64,
    Int32,
    Int64,
    UInt8,
    UInt64,
    read_only,
    read_only_columns,
)
from stentor.encoding.event import EventBuffer
from stentor.encoding.hashing import BASIS, PREFIX_BYTES, attribute_seed, hash_slices
from stentor.encoding.terms import TermColumns, terms_of_column, terms_of_sets
from stentor.model import Event, Kind, OneOf, Schema, Value
from stentor.model.values.time import BEGINNING


class StringColumn(NamedTuple):
    """One string for each event, as Arrow lays them out; empty where there is none."""

    offsets: Int64  # (events + 1,)
    data: UInt8  # (bytes,)


class AttributeColumn(NamedTuple):
    """One attribute of a batch of events; either `low` and `high` or `strings` hold the values."""

    name: str
    valid: npt.NDArray[np.bool_]  # (events,) whether the event has the attribute
    low: Float64  # (events,) or (0,)
    high: Float64  # (events,) or (0,)
    strings: StringColumn | None
    one_of: Mapping[int, OneOf] = {}  # event → the value, where that is one of several


class EventTimes(NamedTuple):
    """When each event of a batch came, where in the order, and until when it lives."""

    until: Int64  # (events,)
    time: Int64  # (events,)
    seq: Int64  # (events,)


class EventWeights(NamedTuple):
    """Weights of attributes, event by event."""

    start: Int64  # (events + 1,)
    attribute: Int32  # (weights,)
    weight: Float64  # (weights,)


def encode_attribute_columns(
    attributes: Sequence[AttributeColumn],
    times: EventTimes,
    schema: Schema,
    weights: EventWeights | None = None,
    *,
    searched: frozenset[str] | None = None,
) -> EventColumns:
    """The columns of a batch; attributes that *schema* does not know are left out.

    *searched* names the attributes whose terms are wanted: all strings where it is None.

    Cost: one pass over the values and the bytes of each attribute.
    """
    if any(one.one_of for one in attributes):
        plain = encode_attribute_columns(
            [_without_choices(one) for one in attributes], times, schema, weights, searched=searched
        )
        return joined_choices(plain, _choices_alone(attributes, len(times.until), schema))
    known = sorted((a for a in attributes if a.name in schema), key=lambda a: schema.code(a.name))
    value_start = _starts(len(times.until), [one.valid for one in known])
    filled = _Values.of(int(value_start[-1]))
    strings: list[StringColumn] = []
    terms: list[TermColumns] = []
    cursor = value_start[:-1].copy()
    for one in known:
        low, high, first_string = one.low, one.high, NO_STRING
        if one.strings is not None:
            first_string = len(strings) * len(times.until)
            strings.append(one.strings)
            low = high = _prefixes(one.strings)
            if searched is None or one.name in searched:
                is_set = schema.kind(one.name) is Kind.SET
                terms_of = terms_of_sets if is_set else terms_of_column
                terms.append(terms_of(*one.strings[::-1], attribute_seed(one.name)))
        ends = read_only(low), read_only(high)
        _fill_values(
            cursor, read_only(one.valid), schema.code(one.name), *ends, first_string, filled
        )
    if weights is None:
        none = np.zeros(len(times.until) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
        weights = EventWeights(*none)
    parts = (
        (value_start,),
        filled,
        _joined_strings(strings),
        _joined_terms(len(times.until), terms),
        weights,
        times,
    )
    arrays: list[Any] = [array for part in parts for array in part]
    return read_only_columns(EventColumns(*arrays))


def _without_choices(column: AttributeColumn) -> AttributeColumn:
    valid = column.valid.copy()
    valid[list(column.one_of)] = False
    return column._replace(valid=read_only(valid), one_of={})


def _choices_alone(
    attributes: Sequence[AttributeColumn], events: int, schema: Schema
) -> EventColumns:
    """As many *events*, with the attributes alone that are one of several values."""
    values: list[dict[str, Value]] = [{} for _ in range(events)]
    for column in attributes:
        for event, value in column.one_of.items():
            values[event][column.name] = value
    return encode_events((TimedEvent(Event("", one)) for one in values), schema)


class _Values(NamedTuple):
    attribute: Int32
    low: Float64
    high: Float64
    string: Int32

    @classmethod
    def of(cls, values: int) -> _Values:
        return cls(
            np.empty(values, np.int32),
            np.empty(values),
            np.empty(values),
            np.empty(values, np.int32),
        )


def _starts(events: int, counts: Sequence[npt.NDArray[np.bool_]] | Sequence[Int64]) -> Int64:
    """Where each event's children start, given how many each part contributes."""
    starts = np.zeros(events + 1, np.int64)
    for count in counts:
        starts[1:] += count
    np.cumsum(starts, out=starts)
    return starts


@kernel
def _fill_values(
    cursor: Int64,
    valid: npt.NDArray[np.bool_],
    attribute: int,
    low: Float64,
    high: Float64,
    first_string: int,
    filled: _Values,
) -> None:
    """Write one attribute's values at each event's *cursor* and advance it."""
    for event in range(len(valid)):
        if valid[event]:
            position = cursor[event]
            filled.attribute[position] = attribute
            filled.low[position] = low[event]
            filled.high[position] = high[event]
            filled.string[position] = first_string + event if first_string >= 0 else NO_STRING
            cursor[event] = position + 1


def _prefixes(strings: StringColumn) -> Float64:
    prefixes = np.empty(len(strings.offsets) - 1)
    _fill_prefixes(strings.data, strings.offsets, prefixes)
    return prefixes


@kernel
def _fill_prefixes(data: UInt8, offsets: Int64, out: Float64) -> None:
    """`prefix` of each string."""
    for row in range(len(out)):
        start, length = offsets[row], offsets[row + 1] - offsets[row]
        number = 0.0
        for position in range(PREFIX_BYTES):
            byte = float(data[start + position]) if position < length else 0.0
            number = number * 256.0 + byte
        out[row] = number


def _joined_strings(strings: Sequence[StringColumn]) -> tuple[UInt64, Int64, UInt8]:
    """Hashes, offsets and bytes of all *strings*, one column after another."""
    offsets = [np.zeros(1, np.int64)]
    bytes_before = 0
    for one in strings:
        offsets.append(one.offsets[1:] - one.offsets[0] + bytes_before)
        bytes_before += int(one.offsets[-1] - one.offsets[0])
    data = [one.data[one.offsets[0] : one.offsets[-1]] for one in strings]
    start = np.concatenate(offsets)
    joined = np.concatenate([np.zeros(0, np.uint8), *data])
    hashes = np.empty(len(start) - 1, np.uint64)
    hash_slices(read_only(joined), read_only(start), np.uint64(BASIS), hashes)
    return hashes, start, joined


def _joined_terms(
    events: int, terms: Sequence[TermColumns]
) -> tuple[Int64, UInt64, Int64, Int64, UInt8]:
    """The terms of all attributes, event by event."""
    start = _starts(events, [np.diff(one.start) for one in terms])
    count = int(start[-1])
    hashes, byte_start = np.empty(count, np.uint64), np.empty(count, np.int64)
    byte_stop = np.empty(count, np.int64)
    cursor = start[:-1].copy()
    bytes_before = 0
    for one in terms:
        _fill_terms(cursor, one, bytes_before, hashes, byte_start, byte_stop)
        bytes_before += len(one.data)
    data = np.concatenate([np.zeros(0, np.uint8), *(one.data for one in terms)])
    return start, hashes, byte_start, byte_stop, data


@kernel
def _fill_terms(
    cursor: Int64,
    terms: TermColumns,
    bytes_before: int,
    hashes: UInt64,
    byte_start: Int64,
    byte_stop: Int64,
) -> None:
    """Write one attribute's terms at each event's *cursor* and advance it."""
    for event in range(len(cursor)):
        position = cursor[event]
        for term in range(terms.start[event], terms.start[event + 1]):
            hashes[position] = terms.hash[term]
            byte_start[position] = terms.byte_start[term] + bytes_before
            byte_stop[position] = terms.byte_stop[term] + bytes_before
            position += 1
        cursor[event] = position


class TimedEvent(NamedTuple):
    """An event and when it came: its logical time and its position in the order of records."""

    event: Event
    time: int = BEGINNING
    seq: int = 0


def encode_events(arrivals: Iterable[TimedEvent], schema: Schema) -> EventColumns:
    """The columns of *arrivals*; attributes that *schema* does not know are left out."""
    buffer = EventBuffer()
    for event, time, seq in arrivals:
        buffer.add_event(event, schema)
        buffer.time[len(buffer) - 1], buffer.seq[len(buffer) - 1] = time, seq
    return buffer.batch()
