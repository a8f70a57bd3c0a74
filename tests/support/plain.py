"""Columns as plain Python values and back: slow and obvious, to compare and to read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from stentor.encoding.columns import (
    NO_STRING,
    Columns,
    EventColumns,
    SubscriptionColumns,
    dtypes,
    read_only_columns,
)
from stentor.encoding.kinds import WITH_PAIRS, is_among
from stentor.encoding.ragged import OFFSETS
from stentor.model.values.time import NEVER


class PlainPredicate(NamedTuple):
    """A predicate; its operands are pairs (low, high) or strings (hash, mark, bytes)."""

    kind: int
    attribute: int
    low: float
    high: float
    weight: float
    operands: tuple[tuple[Any, ...], ...] = ()


class PlainSubscription(NamedTuple):
    """A subscription: alternatives of predicates."""

    alternatives: tuple[tuple[PlainPredicate, ...], ...]
    position: tuple[float, float] = (np.nan, np.nan)
    until: int = NEVER


class PlainValue(NamedTuple):
    """The value of one attribute; its string is (hash, bytes)."""

    attribute: int
    low: float
    high: float
    string: tuple[int, bytes] | None = None


class PlainEvent(NamedTuple):
    """An event: values, terms (hash, bytes) and weights (attribute, weight)."""

    values: tuple[PlainValue, ...]
    terms: tuple[tuple[int, bytes], ...] = ()
    weights: tuple[tuple[int, float], ...] = ()
    until: int = NEVER
    time: int = 0
    seq: int = 0


def subscriptions_from(columns: SubscriptionColumns) -> list[PlainSubscription]:
    """The subscriptions that *columns* hold."""
    c = SubscriptionColumns(*(array.tolist() for array in columns))
    data = columns.string_bytes.tobytes()

    def operand(kind: int, row: int) -> tuple[Any, ...]:
        if is_among(kind, WITH_PAIRS):
            return c.pair_low[row], c.pair_high[row]
        text = data[c.string_start[row] : c.string_start[row + 1]]
        return c.string_hash[row], c.string_mark[row], text

    def predicate(row: int) -> PlainPredicate:
        kind = c.kind[row]
        operands = range(c.operand_start[row], c.operand_stop[row])
        return PlainPredicate(
            kind,
            c.attribute[row],
            c.low[row],
            c.high[row],
            c.weight[row],
            tuple(operand(kind, one) for one in operands),
        )

    def alternative(row: int) -> tuple[PlainPredicate, ...]:
        return tuple(map(predicate, range(c.predicate_start[row], c.predicate_start[row + 1])))

    return [
        PlainSubscription(
            tuple(map(alternative, range(c.alternative_start[row], c.alternative_start[row + 1]))),
            (c.position[2 * row], c.position[2 * row + 1]),
            c.until[row],
        )
        for row in range(len(c.until))
    ]


def subscription_columns(subscriptions: Iterable[PlainSubscription]) -> SubscriptionColumns:
    """The columns of *subscriptions*."""
    c = _no_rows(SubscriptionColumns)
    for subscription in subscriptions:
        for predicates in subscription.alternatives:
            for predicate in predicates:
                _add_predicate(c, predicate)
            c["predicate_start"].append(len(c["kind"]))
        c["alternative_start"].append(len(c["predicate_start"]) - 1)
        c["position"].extend(subscription.position)
        c["until"].append(subscription.until)
    return _as_columns(SubscriptionColumns, c)


def _add_predicate(c: dict[str, list[Any]], predicate: PlainPredicate) -> None:
    has_pairs = is_among(predicate.kind, WITH_PAIRS)
    heap = c["pair_low"] if has_pairs else c["string_hash"]
    start = len(heap) if predicate.operands else 0
    for operand in predicate.operands:
        if has_pairs:
            c["pair_low"].append(operand[0])
            c["pair_high"].append(operand[1])
        else:
            c["string_hash"].append(operand[0])
            c["string_mark"].append(operand[1])
            c["string_bytes"].extend(operand[2])
            c["string_start"].append(len(c["string_bytes"]))
    for name in ("kind", "attribute", "low", "high", "weight"):
        c[name].append(getattr(predicate, name))
    c["operand_start"].append(start)
    c["operand_stop"].append(start + len(predicate.operands))


def events_from(columns: EventColumns) -> list[PlainEvent]:
    """The events that *columns* hold."""
    c = EventColumns(*(array.tolist() for array in columns))
    strings, terms = columns.string_bytes.tobytes(), columns.term_bytes.tobytes()

    def value(row: int) -> PlainValue:
        string = None
        if c.string[row] != NO_STRING:
            at = c.string[row]
            string = c.string_hash[at], strings[c.string_start[at] : c.string_start[at + 1]]
        return PlainValue(c.attribute[row], c.low[row], c.high[row], string)

    def term(row: int) -> tuple[int, bytes]:
        return c.term_hash[row], terms[c.term_byte_start[row] : c.term_byte_stop[row]]

    def weight(row: int) -> tuple[int, float]:
        return c.weight_attribute[row], c.weight[row]

    return [
        PlainEvent(
            tuple(map(value, range(c.value_start[row], c.value_start[row + 1]))),
            tuple(map(term, range(c.term_start[row], c.term_start[row + 1]))),
            tuple(map(weight, range(c.weight_start[row], c.weight_start[row + 1]))),
            c.until[row],
            c.time[row],
            c.seq[row],
        )
        for row in range(len(c.until))
    ]


def event_columns(events: Iterable[PlainEvent]) -> EventColumns:
    """The columns of *events*."""
    c = _no_rows(EventColumns)
    for event in events:
        for value in event.values:
            c["attribute"].append(value.attribute)
            c["low"].append(value.low)
            c["high"].append(value.high)
            c["string"].append(len(c["string_hash"]) if value.string else NO_STRING)
            if value.string:
                c["string_hash"].append(value.string[0])
                c["string_bytes"].extend(value.string[1])
                c["string_start"].append(len(c["string_bytes"]))
        for code, term in event.terms:
            c["term_hash"].append(code)
            c["term_byte_start"].append(len(c["term_bytes"]))
            c["term_bytes"].extend(term)
            c["term_byte_stop"].append(len(c["term_bytes"]))
        for attribute, weight in event.weights:
            c["weight_attribute"].append(attribute)
            c["weight"].append(weight)
        c["value_start"].append(len(c["attribute"]))
        c["term_start"].append(len(c["term_hash"]))
        c["weight_start"].append(len(c["weight"]))
        for name in ("until", "time", "seq"):
            c[name].append(getattr(event, name))
    return _as_columns(EventColumns, c)


def _no_rows(kind: type[Columns]) -> dict[str, list[Any]]:
    return {name: [0] if name in OFFSETS[kind] else [] for name in kind._fields}


def _as_columns(kind: type[Columns], lists: dict[str, list[Any]]) -> Columns:
    return read_only_columns(
        kind(*(np.array(lists[name], dtype) for name, dtype in dtypes(kind).items()))
    )
