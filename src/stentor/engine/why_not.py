"""Which predicate rejected whom, at the speed of the index: no expression is parsed or printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from stentor.encoding.columns import EventColumns, Int64, MatchPairs, read_only
from stentor.engine.state import State
from stentor.index.table import RowSpans
from stentor.index.verify import Reasons, reasons_of
from stentor.index.verify.reasons import (
    ATTRIBUTE_MISSING,
    ATTRIBUTE_PRESENT,
    LOCATION_INSIDE,
    LOCATION_OUTSIDE,
    LOCATION_UNKNOWN,
    MATCHES,
    NEVER_MATCHES,
    NO_PREDICATE,
    NUMBER_OUTSIDE,
    OVER,
    STRING_DIFFERS,
    TERM_MISSING,
    TERM_PRESENT,
)
from stentor.model import Schema

_REASONS: Final = {
    OVER: "the subscription is over",
    NEVER_MATCHES: "it asks for a contradiction",
    ATTRIBUTE_MISSING: "the event has no such attribute",
    ATTRIBUTE_PRESENT: "the attribute should be missing",
    NUMBER_OUTSIDE: "the value is outside what is asked for",
    STRING_DIFFERS: "the string is not one that is asked for",
    TERM_MISSING: "a word is missing",
    TERM_PRESENT: "a word is there that should not be",
    LOCATION_OUTSIDE: "the location is outside the region",
    LOCATION_INSIDE: "the location is inside the region",
    LOCATION_UNKNOWN: "nobody knows where the subscriber is",
}


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a subscription does not want an event: on which attribute a predicate failed, and how.

    Of several alternatives the one speaks that got furthest, of its predicates the first that
    fails, by the names of their attributes. `attribute` is None where no predicate is to blame.
    """

    subscription: str
    attribute: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class RejectionCount:
    """How many subscriptions an event was rejected by for one reason on one attribute."""

    attribute: str | None
    reason: str
    count: int


def rejections(
    state: State, schema: Schema, event: EventColumns, ids: list[str], rows: Int64
) -> list[Rejection | None]:
    """Why each of *rows* does not want *event*; None where it does."""
    codes, attributes = _causes(state, event, rows)
    names = schema.by_code
    return [
        None
        if code == MATCHES
        else Rejection(id, None if attribute < 0 else names[attribute], _REASONS[code])
        for id, code, attribute in zip(ids, codes.tolist(), attributes.tolist(), strict=True)
    ]


def rejection_counts(
    state: State, schema: Schema, event: EventColumns, rows: Int64
) -> list[RejectionCount]:
    """How many of *rows* do not want *event* for each reason, the most frequent first."""
    codes, attributes = _causes(state, event, rows)
    rejected = codes != MATCHES
    pairs = np.stack([attributes[rejected], codes[rejected]], axis=1)
    kinds, counts = np.unique(pairs, axis=0, return_counts=True)
    names = schema.by_code
    found = [
        RejectionCount(None if attribute < 0 else names[attribute], _REASONS[code], count)
        for (attribute, code), count in zip(kinds.tolist(), counts.tolist(), strict=True)
    ]
    return sorted(found, key=lambda one: (-one.count, one.attribute or "", one.reason))


def _causes(state: State, event: EventColumns, rows: Int64) -> tuple[Int64, Int64]:
    """The code of each of *rows*, and the attribute of the predicate that failed, or −1."""
    columns, positions = state.index.columns_with(rows)
    none = read_only(np.zeros(0, np.int64))
    validity = RowSpans(read_only(np.zeros(len(columns.until), np.uint8)), none, none)
    pairs = MatchPairs(np.array([0, len(rows)], np.int64), np.ascontiguousarray(positions))
    found: Reasons = reasons_of(columns, validity, event, pairs)
    failed = found.predicate != NO_PREDICATE
    attributes = np.full(len(rows), -1, np.int64)
    attributes[failed] = columns.attribute[found.predicate[failed]]
    return found.code.astype(np.int64), attributes
