"""Columns → the alternatives that the definition compares; which are odd; and rows compared."""

from __future__ import annotations

import math

from stentor._jit import inner_kernel, kernel
from stentor.covering.covers import Alternative, Alternatives, possible
from stentor.covering.implies.operands import COVERED, NOT_COVERED, UNDECIDED
from stentor.covering.implies.pattern import is_anything, is_wild
from stentor.covering.implies.predicates import LocationSet, ValueSet, predicate_implies, value_set
from stentor.covering.implies.regions import Area, KnownCircle, everywhere
from stentor.covering.trie.tokens import IMPOSSIBLE
from stentor.encoding.columns import CLOSED, LAST, UNBOUNDED, SubscriptionColumns, UInt8
from stentor.encoding.kinds import (
    BOX,
    CIRCLE,
    INTERVAL,
    INTERVALS,
    KEYWORDS,
    KIND_MASK,
    MEMBERSHIP,
    MISSING,
    NEGATED,
    OWN_CIRCLE,
    PART,
    PATTERN,
    PHRASE,
    POLYGON,
    PRESENT,
    REGIONS,
    REGULAR,
    STRING_INTERVAL,
    WITH_STRINGS,
    is_among,
    is_region,
    is_string_test,
)
from stentor.errors import DisagreementError
from stentor.language.normal_predicates import (
    Intervals,
    IsMissing,
    IsPresent,
    Keywords,
    Membership,
    Pattern,
    Phrase,
    RegularPattern,
    StringInterval,
    Test,
)
from stentor.model import Box, Kind, Point, Polygon, Schema

# What `find_odd` says of an alternative.
SIMPLE, NOWHERE, ODD = 0, 1, 2


def alternatives_of_row(
    columns: SubscriptionColumns, row: int, names: list[str], schema: Schema
) -> Alternatives:
    """The possible alternatives of *row*; *names* are the attributes by code."""
    found = (
        alternative_of(columns, alternative, names, schema)
        for alternative in range(*columns.alternative_start[row : row + 2].tolist())
    )
    return tuple(one for one in found if possible(one))


def alternative_of(
    columns: SubscriptionColumns, alternative: int, names: list[str], schema: Schema
) -> Alternative:
    """The value sets of one alternative, by attribute."""
    by_code: dict[int, list[int]] = {}
    start, stop = columns.predicate_start[alternative : alternative + 2].tolist()
    for predicate in range(start, stop):
        by_code.setdefault(int(columns.attribute[predicate]), []).append(predicate)
    return {
        names[code]: _value_set(columns, predicates, schema.kind(names[code]), schema.plane)
        for code, predicates in by_code.items()
    }


def _value_set(
    columns: SubscriptionColumns, predicates: list[int], kind: Kind | None, plane: bool
) -> ValueSet:
    if is_among(int(columns.kind[predicates[0]]), REGIONS):
        return _location_set(columns, predicates, plane)
    return value_set([_test(columns, one) for one in predicates], kind, None, plane)


def _test(columns: SubscriptionColumns, predicate: int) -> Test:
    kind = int(columns.kind[predicate])
    negated = bool(kind & NEGATED)
    start, stop = int(columns.operand_start[predicate]), int(columns.operand_stop[predicate])
    if kind == INTERVAL:
        return Intervals(((float(columns.low[predicate]), float(columns.high[predicate])),))
    if kind == INTERVALS:
        pairs = columns.pair_low[start:stop].tolist(), columns.pair_high[start:stop].tolist()
        return Intervals(tuple(zip(*pairs, strict=True)))
    if kind == MISSING:
        return IsMissing()
    if kind == PRESENT:
        return IsPresent()
    if kind & KIND_MASK == REGULAR:
        syntax, _, pattern = _text(columns, start).partition(" ")
        return RegularPattern("ILIKE" if syntax == "ILIKE" else "RLIKE", pattern, negated)
    strings = range(start, stop) if is_among(kind, WITH_STRINGS) else range(0)
    texts = [_text(columns, string) for string in strings]
    marks = columns.string_mark[strings.start : strings.stop].tolist()
    which = kind & KIND_MASK
    if which == MEMBERSHIP:
        return Membership(tuple(sorted(texts)), negated)
    if which == STRING_INTERVAL:
        low, high = (None if m == UNBOUNDED else t for t, m in zip(texts, marks, strict=True))
        return StringInterval(low, marks[0] != CLOSED, high, marks[1] != CLOSED, negated)
    if which == PATTERN:
        return Pattern(texts[0], negated)
    if which == PHRASE:
        return Phrase(tuple(texts), negated)
    if which != KEYWORDS:
        raise DisagreementError(f"covering does not know predicates of the kind {which}")
    groups: list[tuple[str, ...]] = []
    first = 0
    for position, mark in enumerate(marks, start=1):
        if mark == LAST:
            groups.append(tuple(texts[first:position]))
            first = position
    return Keywords(tuple(groups), negated)


def _text(columns: SubscriptionColumns, string: int) -> str:
    start, stop = columns.string_start[string : string + 2].tolist()
    return columns.string_bytes[start:stop].tobytes().decode()


def _location_set(columns: SubscriptionColumns, predicates: list[int], plane: bool) -> LocationSet:
    within: list[Area] = []
    without: list[Area] = []
    for predicate in predicates:
        kind = int(columns.kind[predicate])
        area = _area(columns, predicate, kind & KIND_MASK)
        if isinstance(area, KnownCircle) and math.isnan(area.x):
            return LocationSet((), (), unknown=True)
        (without if kind & NEGATED else within).append(area)
    return LocationSet(tuple(within) or (everywhere(plane),), tuple(without))


def _area(columns: SubscriptionColumns, predicate: int, kind: int) -> Area:
    start, stop = int(columns.operand_start[predicate]), int(columns.operand_stop[predicate])
    low, high = columns.pair_low[start:stop].tolist(), columns.pair_high[start:stop].tolist()
    box = Box(low[0], low[1], high[0], high[1])
    if kind == BOX:
        return box
    if kind in (CIRCLE, OWN_CIRCLE):
        return KnownCircle(low[2], high[2], low[3], high[3], box)
    if kind != POLYGON:
        raise DisagreementError(f"covering does not know regions of the kind {kind}")
    rings: list[tuple[Point, ...]] = []
    ring: list[Point] = []
    outer = [0]
    for x, y in zip(low[2:], high[2:], strict=True):
        if math.isnan(x):
            rings.append(tuple(ring))
            ring = []
            if y == PART:
                outer.append(len(rings))
        else:
            ring.append(Point(x, y))
    return Polygon(tuple(rings), tuple(outer))


@kernel
def find_odd(
    columns: SubscriptionColumns, first: int, last: int, has_words: UInt8, found: UInt8
) -> None:
    """Into *found*: for each alternative *first* … *last* whether the definition must decide.

    ODD: several tests of one string, a list of strings on an attribute that is searched for words,
    a range or a pattern that comes down to a few strings or none. NOWHERE: around an unknown
    location.
    """
    for alternative in range(first, last):
        state = SIMPLE
        start, stop = columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        for predicate in range(start, stop):
            kind = columns.kind[predicate] & KIND_MASK
            attribute = columns.attribute[predicate]
            operand = columns.operand_start[predicate]
            if kind == OWN_CIRCLE and math.isnan(columns.pair_low[operand + 2]):
                state = NOWHERE
                break
            if not is_string_test(kind):
                continue
            if predicate > start and columns.attribute[predicate - 1] == attribute:
                state = ODD
            elif kind == PATTERN:
                begin, end = columns.string_start[operand], columns.string_start[operand + 1]
                pattern = columns.string_bytes[begin:end]
                if columns.kind[predicate] & NEGATED:
                    state = max(state, ODD if is_anything(pattern) else SIMPLE)
                elif not is_wild(pattern):
                    state = ODD
            elif columns.kind[predicate] & NEGATED:
                continue
            elif (kind == MEMBERSHIP and has_words[attribute] != 0) or (
                kind == STRING_INTERVAL and is_few(columns, operand)
            ):
                state = ODD
        found[alternative - first] = state


@inner_kernel
def is_few(columns: SubscriptionColumns, operand: int) -> bool:
    """Whether nothing lies between the two strings but the lower one, with zeros behind it."""
    if columns.string_mark[operand + 1] == UNBOUNDED:
        return False
    start, middle = columns.string_start[operand], columns.string_start[operand + 1]
    length = middle - start
    stop = columns.string_start[operand + 2]
    if stop - middle < length:
        return False
    for position in range(stop - middle):
        byte = columns.string_bytes[middle + position]
        if position < length:
            if byte != columns.string_bytes[start + position]:
                return False
        elif byte != 0:
            return False
    return True


@kernel
def row_covers(
    columns: SubscriptionColumns, kinds: UInt8, plane: bool, states: UInt8, wide: int, narrow: int
) -> int:
    """The verdict whether each possible alternative of *narrow* implies one of *wide*."""
    result = COVERED
    for inner in range(columns.alternative_start[narrow], columns.alternative_start[narrow + 1]):
        if states[inner] == IMPOSSIBLE:
            continue
        best = NOT_COVERED
        for outer in range(columns.alternative_start[wide], columns.alternative_start[wide + 1]):
            if states[outer] != IMPOSSIBLE:
                verdict = alternative_covers(columns, kinds, plane, outer, inner)
                if verdict == COVERED:
                    best = COVERED
                    break
                if verdict == UNDECIDED:
                    best = UNDECIDED
        if best == NOT_COVERED:
            return NOT_COVERED
        if best == UNDECIDED:
            result = UNDECIDED
    return result


@inner_kernel
def alternative_covers(
    columns: SubscriptionColumns, kinds: UInt8, plane: bool, wide: int, narrow: int
) -> int:
    """The verdict whether *narrow* implies every predicate of *wide*."""
    result = COVERED
    start, stop = columns.predicate_start[narrow], columns.predicate_start[narrow + 1]
    for predicate in range(columns.predicate_start[wide], columns.predicate_start[wide + 1]):
        attribute = columns.attribute[predicate]
        tests = 0
        best = NOT_COVERED
        for other in range(start, stop):
            if columns.attribute[other] == attribute:
                tests += 1
                verdict = predicate_implies(columns, kinds, plane, other, predicate)
                if verdict == COVERED:
                    best = COVERED
                    break
                if verdict == UNDECIDED:
                    best = UNDECIDED
        # Several tests of one string may together mean what none means alone.
        if best == NOT_COVERED and tests > 1 and not is_region(columns.kind[predicate]):
            best = UNDECIDED
        if best == NOT_COVERED:
            return NOT_COVERED
        if best == UNDECIDED:
            result = UNDECIDED
    return result
