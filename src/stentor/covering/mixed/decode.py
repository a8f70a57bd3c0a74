"""Columns → what a row asks for, as the definition takes it; and which alternatives are odd."""

from __future__ import annotations

import math

from stentor._jit import kernel, kernel_part
from stentor.covering.meaning.asked import Asked, Places, asked_of
from stentor.covering.meaning.covers import Alternative, Interest, possible
from stentor.covering.meaning.places import Area, Disc, everywhere
from stentor.encoding.columns import (
    BOX,
    CLOSED,
    HERE,
    KIND_MASK,
    LAST,
    LIKE,
    MISSING,
    NEGATED,
    ONE_OF,
    POLYGON,
    PRESENT,
    SPAN,
    SPANS,
    STRING_SPAN,
    TERMS,
    UNBOUNDED,
    SubscriptionColumns,
    UInt8,
)
from stentor.language.conditions import (
    Missing,
    OneOf,
    Pattern,
    Present,
    Spans,
    StringSpan,
    Terms,
    Test,
)
from stentor.model import Box, Kind, Point, Polygon, Schema

# What `find_odd` says of an alternative.
SIMPLE, NOWHERE, ODD = 0, 1, 2


def interest_of_row(
    columns: SubscriptionColumns, row: int, names: list[str], schema: Schema
) -> Interest:
    """What *row* asks for; *names* are the attributes by code."""
    found = (
        alternative_of(columns, alternative, names, schema)
        for alternative in range(*columns.alternative_start[row : row + 2].tolist())
    )
    return tuple(one for one in found if possible(one))


def alternative_of(
    columns: SubscriptionColumns, alternative: int, names: list[str], schema: Schema
) -> Alternative:
    """What one alternative asks for, by attribute."""
    by_code: dict[int, list[int]] = {}
    start, stop = columns.predicate_start[alternative : alternative + 2].tolist()
    for predicate in range(start, stop):
        by_code.setdefault(int(columns.attribute[predicate]), []).append(predicate)
    return {
        names[code]: _asked(columns, predicates, schema.kind(names[code]), schema.plane)
        for code, predicates in by_code.items()
    }


def _asked(
    columns: SubscriptionColumns, predicates: list[int], kind: Kind | None, plane: bool
) -> Asked:
    if columns.kind[predicates[0]] & KIND_MASK >= BOX:
        return _places(columns, predicates, plane)
    return asked_of([_test(columns, one) for one in predicates], kind, None, plane)


def _test(columns: SubscriptionColumns, predicate: int) -> Test:
    kind = int(columns.kind[predicate])
    negated = bool(kind & NEGATED)
    start, stop = int(columns.operand_start[predicate]), int(columns.operand_stop[predicate])
    if kind == SPAN:
        return Spans(((float(columns.low[predicate]), float(columns.high[predicate])),))
    if kind == SPANS:
        pairs = columns.pair_low[start:stop].tolist(), columns.pair_high[start:stop].tolist()
        return Spans(tuple(zip(*pairs, strict=True)))
    if kind <= PRESENT:
        return Missing() if kind == MISSING else Present()
    texts = [_text(columns, string) for string in range(start, stop)]
    marks = columns.string_mark[start:stop].tolist()
    which = kind & KIND_MASK
    if which == ONE_OF:
        return OneOf(tuple(sorted(texts)), negated)
    if which == STRING_SPAN:
        low, high = (None if m == UNBOUNDED else t for t, m in zip(texts, marks, strict=True))
        return StringSpan(low, marks[0] != CLOSED, high, marks[1] != CLOSED, negated)
    if which == LIKE:
        return Pattern(texts[0], negated)
    groups: list[tuple[str, ...]] = []
    first = 0
    for place, mark in enumerate(marks, start=1):
        if mark == LAST:
            groups.append(tuple(texts[first:place]))
            first = place
    return Terms(tuple(groups), negated)


def _text(columns: SubscriptionColumns, string: int) -> str:
    start, stop = columns.string_start[string : string + 2].tolist()
    return columns.string_bytes[start:stop].tobytes().decode()


def _places(columns: SubscriptionColumns, predicates: list[int], plane: bool) -> Places:
    within: list[Area] = []
    without: list[Area] = []
    for predicate in predicates:
        kind = int(columns.kind[predicate])
        area = _area(columns, predicate, kind & KIND_MASK)
        if isinstance(area, Disc) and math.isnan(area.x):
            return Places((), (), unknown=True)
        (without if kind & NEGATED else within).append(area)
    return Places(tuple(within) or (everywhere(plane),), tuple(without))


def _area(columns: SubscriptionColumns, predicate: int, kind: int) -> Area:
    start, stop = int(columns.operand_start[predicate]), int(columns.operand_stop[predicate])
    low, high = columns.pair_low[start:stop].tolist(), columns.pair_high[start:stop].tolist()
    box = Box(low[0], low[1], high[0], high[1])
    if kind == BOX:
        return box
    if kind != POLYGON:
        return Disc(low[2], high[2], low[3], high[3], box)
    rings: list[tuple[Point, ...]] = []
    ring: list[Point] = []
    for x, y in zip(low[2:], high[2:], strict=True):
        if math.isnan(x):
            rings.append(tuple(ring))
            ring = []
        else:
            ring.append(Point(x, y))
    return Polygon(tuple(rings))


@kernel
def find_odd(
    columns: SubscriptionColumns, first: int, last: int, has_words: UInt8, found: UInt8
) -> None:
    """Into *found*: for each alternative *first* … *last* whether the definition must be asked.

    ODD: several tests of one string, a list of strings on an attribute that is searched for words,
    a range or a pattern that comes down to a few strings or none. NOWHERE: around an unknown place.
    """
    for alternative in range(first, last):
        state = SIMPLE
        start, stop = columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        for predicate in range(start, stop):
            kind = columns.kind[predicate] & KIND_MASK
            attribute = columns.attribute[predicate]
            operand = columns.operand_start[predicate]
            if kind == HERE and math.isnan(columns.pair_low[operand + 2]):
                state = NOWHERE
                break
            if kind < ONE_OF or kind > TERMS:
                continue
            if predicate > start and columns.attribute[predicate - 1] == attribute:
                state = ODD
            elif kind == LIKE:
                begin, end = columns.string_start[operand], columns.string_start[operand + 1]
                pattern = columns.string_bytes[begin:end]
                if columns.kind[predicate] & NEGATED:
                    state = max(state, ODD if is_anything(pattern) else SIMPLE)
                elif not is_wild(pattern):
                    state = ODD
            elif columns.kind[predicate] & NEGATED:
                continue
            elif (kind == ONE_OF and has_words[attribute] != 0) or (
                kind == STRING_SPAN and is_few(columns, operand)
            ):
                state = ODD
        found[alternative - first] = state


@kernel_part
def is_wild(pattern: UInt8) -> bool:
    """Whether *pattern* has a wildcard that is not escaped."""
    plain = False
    for byte in pattern:
        if not plain and (byte == ord("%") or byte == ord("_")):
            return True
        plain = not plain and byte == ord("\\")
    return False


@kernel_part
def is_anything(pattern: UInt8) -> bool:
    """Whether every string is of the form *pattern*."""
    for byte in pattern:
        if byte != ord("%"):
            return False
    return len(pattern) > 0


@kernel_part
def is_few(columns: SubscriptionColumns, operand: int) -> bool:
    """Whether nothing lies between the two strings but the lower one, with zeros behind it."""
    if columns.string_mark[operand + 1] == UNBOUNDED:
        return False
    start, middle = columns.string_start[operand], columns.string_start[operand + 1]
    length = middle - start
    stop = columns.string_start[operand + 2]
    if stop - middle < length:
        return False
    for place in range(stop - middle):
        byte = columns.string_bytes[middle + place]
        if place < length:
            if byte != columns.string_bytes[start + place]:
                return False
        elif byte != 0:
            return False
    return True
