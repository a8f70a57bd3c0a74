"""Columns joined and cut: rows change their positions, and all offsets that refer to them follow.

subscription ─alternative_start▶ alternative ─predicate_start▶ predicate
predicate ─operand_start, operand_stop▶ pair, or string ─string_start▶ byte
event ─value_start▶ value ─string▶ string ─string_start▶ byte
event ─term_start▶ term ─term_byte_start, term_byte_stop▶ byte
event ─weight_start▶ weight
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import (
    NO_STRING,
    Columns,
    EventColumns,
    Int32,
    Int64,
    SubscriptionColumns,
    empty,
    read_only_columns,
)
from stentor.encoding.kinds import (
    WITH_PAIRS,
    WITH_STRINGS,
    are_among,
)
from stentor.errors import CapacityError


def _non_empty(columns: Columns) -> frozenset[str]:
    return frozenset(name for name, array in columns._asdict().items() if len(array))


#: Arrays of offsets: one entry more than they have rows, the first of them 0.
OFFSETS = {
    SubscriptionColumns: _non_empty(empty(SubscriptionColumns)),
    EventColumns: _non_empty(empty(EventColumns)),
}

_LARGEST_ROW = int(np.iinfo(np.int32).max)


def events_between(events: EventColumns, start: int, stop: int | None) -> EventColumns:
    """The events *start* … *stop* of *events*, without a copy."""
    offset_stop = None if stop is None else stop + 1
    return events._replace(
        value_start=events.value_start[start:offset_stop],
        term_start=events.term_start[start:offset_stop],
        weight_start=events.weight_start[start:offset_stop],
        until=events.until[start:stop],
        time=events.time[start:stop],
        seq=events.seq[start:stop],
    )


def concatenate(parts: Sequence[Columns]) -> Columns:
    """The rows of all *parts*, of which there is at least one, in order.

    Cost: one copy; and a few microseconds for each part, so prefer few and large ones.
    """
    kind = type(parts[0])
    sizes = dict.fromkeys(kind._fields, 0)
    pieces: dict[str, list[npt.NDArray[Any]]] = {
        name: [np.zeros(1, np.int64)] if name in OFFSETS[kind] else [] for name in sizes
    }
    for part in parts:
        for name, array in with_offsets(part, sizes)._asdict().items():
            pieces[name].append(array)
            sizes[name] += len(array)
    return read_only_columns(
        kind(**{name: np.concatenate(arrays) for name, arrays in pieces.items()})
    )


def with_offsets(columns: Columns, sizes: Mapping[str, int]) -> Columns:
    """*columns* as they continue columns whose arrays have *sizes* entries already.

    Neither the sizes nor the result count the 0 with which an array of offsets begins.
    """
    if isinstance(columns, SubscriptionColumns):
        return _shifted_subscriptions(columns, sizes)
    return _shifted_events(columns, sizes)


def take(columns: Columns, rows: Int64) -> Columns:
    """The given *rows* of *columns*, in that order, repeated where *rows* repeat.

    Nothing is kept that these rows do not refer to.

    Cost: proportional to what is taken, whatever it is taken from.
    """
    if isinstance(columns, SubscriptionColumns):
        return _take_subscriptions(columns, rows)
    return _take_events(columns, rows)


def _shifted_subscriptions(
    columns: SubscriptionColumns, sizes: Mapping[str, int]
) -> SubscriptionColumns:
    pairs, strings = sizes["pair_low"], sizes["string_hash"]
    refuse_too_many(columns, sizes)
    has_pairs, has_strings = (
        are_among(columns.kind, kinds) for kinds in (WITH_PAIRS, WITH_STRINGS)
    )
    operand_shift = has_pairs * np.int32(pairs) + has_strings * np.int32(strings)
    return columns._replace(
        alternative_start=columns.alternative_start[1:] + sizes["predicate_start"],
        predicate_start=columns.predicate_start[1:] + sizes["kind"],
        operand_start=columns.operand_start + operand_shift,
        operand_stop=columns.operand_stop + operand_shift,
        string_start=columns.string_start[1:] + sizes["string_bytes"],
    )


def refuse_too_many(columns: SubscriptionColumns, sizes: Mapping[str, int]) -> None:
    """A CapacityError where what *columns* refer to cannot be numbered behind *sizes* others."""
    _refuse_beyond_int32("pairs", sizes["pair_low"] + len(columns.pair_low))
    _refuse_beyond_int32("strings", sizes["string_hash"] + len(columns.string_hash))


def _shifted_events(columns: EventColumns, sizes: Mapping[str, int]) -> EventColumns:
    strings, term_bytes = sizes["string_hash"], sizes["term_bytes"]
    _refuse_beyond_int32("strings", strings + len(columns.string_hash))
    is_string = columns.string != NO_STRING
    return columns._replace(
        value_start=columns.value_start[1:] + sizes["attribute"],
        string=columns.string + is_string * np.int32(strings),
        string_start=columns.string_start[1:] + sizes["string_bytes"],
        term_start=columns.term_start[1:] + sizes["term_hash"],
        term_byte_start=columns.term_byte_start + term_bytes,
        term_byte_stop=columns.term_byte_stop + term_bytes,
        weight_start=columns.weight_start[1:] + sizes["weight"],
    )


def _take_subscriptions(columns: SubscriptionColumns, rows: Int64) -> SubscriptionColumns:
    alternatives, alternative_start = children(columns.alternative_start, rows)
    predicates, predicate_start = children(columns.predicate_start, alternatives)
    kind = columns.kind[predicates]
    start, stop = columns.operand_start[predicates], columns.operand_stop[predicates]
    has_pairs = are_among(kind, WITH_PAIRS)
    has_strings = are_among(kind, WITH_STRINGS)
    pairs, pair_start = expand_slices(start[has_pairs], stop[has_pairs])
    strings, operand_string_start = expand_slices(start[has_strings], stop[has_strings])
    _refuse_beyond_int32("pairs", len(pairs))
    _refuse_beyond_int32("strings", len(strings))
    operand_start, operand_stop = np.zeros_like(start), np.zeros_like(stop)
    operand_start[has_pairs], operand_stop[has_pairs] = pair_start[:-1], pair_start[1:]
    operand_start[has_strings] = operand_string_start[:-1]
    operand_stop[has_strings] = operand_string_start[1:]
    string_bytes, string_start = children(columns.string_start, strings)
    return read_only_columns(
        SubscriptionColumns(
            alternative_start=alternative_start,
            predicate_start=predicate_start,
            kind=kind,
            attribute=columns.attribute[predicates],
            low=columns.low[predicates],
            high=columns.high[predicates],
            weight=columns.weight[predicates],
            operand_start=operand_start,
            operand_stop=operand_stop,
            pair_low=columns.pair_low[pairs],
            pair_high=columns.pair_high[pairs],
            string_hash=columns.string_hash[strings],
            string_mark=columns.string_mark[strings],
            string_start=string_start,
            string_bytes=columns.string_bytes[string_bytes],
            position=columns.position.reshape(-1, 2)[rows].reshape(-1),
            until=columns.until[rows],
        )
    )


def _take_events(columns: EventColumns, rows: Int64) -> EventColumns:
    values, value_start = children(columns.value_start, rows)
    string, strings = _renumbered(columns.string[values])
    string_bytes, string_start = children(columns.string_start, strings)
    terms, term_start = children(columns.term_start, rows)
    term_bytes, term_byte_start = expand_slices(
        columns.term_byte_start[terms], columns.term_byte_stop[terms]
    )
    weights, weight_start = children(columns.weight_start, rows)
    return read_only_columns(
        EventColumns(
            value_start=value_start,
            attribute=columns.attribute[values],
            low=columns.low[values],
            high=columns.high[values],
            string=string,
            string_hash=columns.string_hash[strings],
            string_start=string_start,
            string_bytes=columns.string_bytes[string_bytes],
            term_start=term_start,
            term_hash=columns.term_hash[terms],
            term_byte_start=term_byte_start[:-1],
            term_byte_stop=term_byte_start[1:],
            term_bytes=columns.term_bytes[term_bytes],
            weight_start=weight_start,
            weight_attribute=columns.weight_attribute[weights],
            weight=columns.weight[weights],
            until=columns.until[rows],
            time=columns.time[rows],
            seq=columns.seq[rows],
        )
    )


def children(offsets: Int64, rows: Int64) -> tuple[Int64, Int64]:
    """The children of *rows*, one after the other, and their new offsets."""
    return expand_slices(offsets[rows], offsets[rows + 1])


def expand_slices(start: Int64 | Int32, stop: Int64 | Int32) -> tuple[Int64, Int64]:
    """All positions in the slices *start* … *stop*, one after the other, and the new offsets."""
    if len(start) == 1:
        first, last = int(start[0]), int(stop[0])
        return np.arange(first, last), np.array([0, last - first])
    offsets = np.zeros(len(start) + 1, np.int64)
    np.cumsum(stop - start, out=offsets[1:])
    positions = np.arange(offsets[-1])
    positions += np.repeat(start - offsets[:-1], np.diff(offsets))
    return positions, offsets


def _renumbered(strings: Int32) -> tuple[Int32, Int64]:
    """*strings* as rows of those that occur, and those; what several values share stays shared."""
    is_string = strings != NO_STRING
    kept, renumbered = np.unique(strings[is_string], return_inverse=True)
    result = np.full_like(strings, NO_STRING)
    result[is_string] = renumbered
    return result, kept.astype(np.int64)


def _refuse_beyond_int32(what: str, count: int) -> None:
    if count > _LARGEST_ROW:
        raise CapacityError(
            f"{count:,} {what} of predicates or events in one set of columns; at most "
            f"{_LARGEST_ROW:,} can be numbered: split them over several indexes"
        )
