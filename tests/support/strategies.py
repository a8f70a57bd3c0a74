"""Hypothesis strategies for the whole language, drawn from the grid of `grid.py`."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import accumulate

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError(
        "tests.support.strategies needs Hypothesis, which is not installed: pip install hypothesis"
    ) from error

from stentor.language.tree import all_of, any_of, predicates_of
from stentor.model import (
    Between,
    Box,
    Circle,
    Comparison,
    Constant,
    Event,
    Expression,
    Has,
    HasPhrase,
    In,
    IsNull,
    Kind,
    Like,
    Not,
    Overlaps,
    Point,
    Polygon,
    Predicate,
    Range,
    Region,
    Regular,
    Subscription,
    Truth,
    Value,
    Weighted,
    Within,
)
from stentor.model.expression import Operator
from stentor.model.record import Move, Publish, Record, Subscribe, Unsubscribe, Update, Withdraw
from stentor.model.region import Ring
from stentor.model.values.members import set_of
from stentor.model.values.one_of import all_but, one_of
from tests.support import grid

_EQUALITY: tuple[Operator, ...] = ("=", "!=")
_ORDER: tuple[Operator, ...] = (*_EQUALITY, "<", "<=", ">", ">=")
SECOND = 1_000_000
#: Steps of a history's time: forwards, none, and back.
_STEPS = (0, SECOND, 2 * SECOND, -3 * SECOND)
#: How often a history holds each kind of record.
_MIX = (
    *("subscribe",) * 4,
    *("publish",) * 4,
    *("update",) * 3,
    "withdraw",
    *("move",) * 2,
    "unsubscribe",
)


# What events hold.


def constants(kind: Kind) -> st.SearchStrategy[Constant]:
    """What an expression can compare an attribute of *kind* with."""
    return st.sampled_from([Constant(kind, value) for value in grid.constants(kind)])


def members() -> st.SearchStrategy[Constant]:
    """Strings and numbers that sets have."""
    return st.sampled_from(
        [
            Constant(Kind.STRING if isinstance(one, str) else Kind.NUMBER, one)
            for one in grid.MEMBERS
        ]
    )


def points() -> st.SearchStrategy[Point]:
    """Places on a small grid: at the equator, at 180° and at the poles."""
    return st.sampled_from(grid.POINTS)


@cache
def values(attribute: str) -> st.SearchStrategy[Value]:
    """What an event can have as *attribute*: infinities, ranges, one of several values too."""
    kind = grid.KINDS[attribute]
    single = _single_values(attribute)
    if kind in (Kind.POINT, Kind.SET):
        return single
    constant = single.filter(lambda value: isinstance(value, Constant))
    several = st.lists(constant, min_size=1, max_size=3).map(lambda some: one_of(kind, some))
    if kind in (Kind.NUMBER, Kind.TIMESTAMP):
        finite = st.sampled_from([float(value) for value in grid.constants(kind)])
        several |= st.lists(finite, min_size=1, max_size=2).map(
            lambda some: one_of(kind, all_but(kind, some, None))
        )
    return st.one_of(single, single, several)


@cache
def _single_values(attribute: str) -> st.SearchStrategy[Value]:
    kind = grid.KINDS[attribute]
    if kind is Kind.POINT:
        return points()
    if kind is Kind.SET:
        return st.lists(members(), max_size=3).map(set_of)
    if attribute in grid.TEXTS:
        sentences = st.lists(st.sampled_from(grid.WORDS), max_size=4).map(" ".join)
        return (sentences | st.sampled_from(grid.STRINGS)).map(
            lambda text: Constant(Kind.STRING, text)
        )
    if kind in (Kind.STRING, Kind.BOOLEAN):
        return constants(kind)
    infinities = (math.inf, -math.inf) if kind is Kind.NUMBER else ()
    ends = st.sampled_from([float(value) for value in (*grid.constants(kind), *infinities)])
    ranges = st.tuples(ends, ends).map(lambda two: Range(kind, min(two), max(two)))
    return ends.map(lambda end: Constant(kind, end)) | ranges


@st.composite
def _attributes(draw: st.DrawFn, several: bool) -> dict[str, Value]:
    """Most of the attributes. (Drawn one by one: as one strategy its name is too long.)"""
    found, of = {}, values if several else _single_values
    for name in grid.KINDS:
        value = draw(st.one_of(st.none(), of(name), of(name)))
        if value is not None:
            found[name] = value
    return found


@cache
def events(
    *, id: str | None = None, until: bool = False, several: bool = True
) -> st.SearchStrategy[Event]:
    """Events with most of the attributes and a few weights; with *until*, some stay live.

    Unless they are to have one value of each attribute, some have one of *several*.
    """
    weights = st.dictionaries(
        st.sampled_from(list(grid.KINDS)), st.sampled_from(grid.WEIGHTS), max_size=3
    )
    return st.builds(
        Event,
        st.sampled_from(grid.EVENT_IDS) if id is None else st.just(id),
        _attributes(several),
        weights,
        st.one_of(instants(), st.none()) if until else st.none(),
    )


def instants() -> st.SearchStrategy[int]:
    """The first seconds of 1970, in microseconds."""
    return st.integers(1, 12).map(lambda seconds: seconds * SECOND)


# What subscriptions ask.


@cache
def regions() -> st.SearchStrategy[Region]:
    """Boxes, some across 180°; circles, some around `here()`; polygons, some with a hole."""
    circles = st.builds(Circle, points() | st.none(), st.sampled_from(grid.RADII))
    return st.one_of(st.builds(_box, points(), points()), circles, polygons())


def _box(one: Point, other: Point) -> Box:
    return Box(one.x, min(one.y, other.y), other.x, max(one.y, other.y))


def polygons() -> st.SearchStrategy[Polygon]:
    """Triangles and rectangles, with a rectangular hole or without; some have no area."""
    rectangles = st.builds(_rectangle, points(), points())
    triangles = st.builds(lambda a, b, c: (a, b, c, a), points(), points(), points())
    holes = st.lists(rectangles, max_size=1).map(tuple)
    single = st.builds(lambda outer, holes: Polygon((outer, *holes)), rectangles | triangles, holes)
    several = st.lists(single, min_size=2, max_size=3).map(_together)
    return single | single | several


def _together(polygons: list[Polygon]) -> Polygon:
    """One polygon whose parts are *polygons*."""
    outer = accumulate([0, *(len(one.rings) for one in polygons[:-1])])
    return Polygon(tuple(ring for one in polygons for ring in one.rings), tuple(outer))


def _rectangle(one: Point, other: Point) -> Ring:
    return (one, Point(other.x, one.y), other, Point(one.x, other.y), one)


def predicates(names: tuple[str, ...] = tuple(grid.KINDS)) -> st.SearchStrategy[Predicate]:
    """Every kind of predicate, on every one of *names* that can have it."""
    return st.sampled_from(names).flatmap(_predicates_on)


@cache
def _predicates_on(attribute: str) -> st.SearchStrategy[Predicate]:
    name, kind = st.just(attribute), grid.KINDS[attribute]
    if kind is Kind.POINT:
        places = st.builds(Within, name, regions())
        return st.one_of(places, places, places, st.builds(IsNull, name))
    if kind is Kind.SET:
        several = st.lists(members(), min_size=1, max_size=3).map(tuple)
        overlaps = st.builds(Overlaps, name, several)
        return st.one_of(overlaps, overlaps, overlaps, st.builds(IsNull, name))
    constant = constants(kind)
    operators = st.sampled_from(_EQUALITY if kind is Kind.BOOLEAN else _ORDER)
    lists = st.lists(constant, min_size=1, max_size=3).map(tuple)
    found: list[st.SearchStrategy[Predicate]] = [
        st.builds(Comparison, name, operators, constant),
        st.builds(In, name, lists),
        st.builds(IsNull, name),
    ]
    if kind is not Kind.BOOLEAN:
        found.append(st.builds(Between, name, constant, constant))
    if kind is Kind.STRING:
        found.append(st.builds(Like, name, st.sampled_from(grid.PATTERNS)))
        found.append(st.builds(Regular, name, st.just("ILIKE"), st.sampled_from(grid.PATTERNS)))
        found.append(st.builds(Regular, name, st.just("RLIKE"), st.sampled_from(grid.REGULAR)))
    if attribute in grid.TEXTS:
        words = st.lists(st.sampled_from(grid.WORDS), min_size=1, max_size=3).map(tuple)
        found += [st.builds(Has, name, words, st.booleans())] * 3
        phrases = st.lists(st.sampled_from(grid.WORDS), min_size=1, max_size=2).map(" ".join)
        found += [st.builds(HasPhrase, name, phrases)] * 2
    return st.one_of(found)


@cache
def expressions(max_predicates: int = 8) -> st.SearchStrategy[Expression]:
    """Expressions of every form up to a moderate depth, each on few attributes."""
    few = st.lists(st.sampled_from(list(grid.KINDS)), min_size=1, max_size=3)
    return few.flatmap(lambda names: _expressions_on(tuple(sorted(set(names))), max_predicates))


@cache
def _expressions_on(names: tuple[str, ...], max_predicates: int) -> st.SearchStrategy[Expression]:
    plain = predicates(names)
    weighted = st.builds(Weighted, plain, st.sampled_from(grid.WEIGHTS))
    truths = st.builds(Truth, st.booleans())
    leaves = st.one_of(plain, plain, weighted, weighted, truths)
    return st.recursive(leaves, _joined, max_leaves=max_predicates)


def _joined(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(several.map(all_of), several.map(any_of), inner.map(Not))


def uses_here(expression: Expression) -> bool:
    """Whether *expression* needs to know where its subscriber is."""
    return any(
        isinstance(predicate, Within)
        and isinstance(predicate.region, Circle)
        and predicate.region.centre is None
        for predicate in predicates_of(expression)
    )


@st.composite
def subscriptions(
    draw: st.DrawFn, *, id: str | None = None, until: bool = False, max_predicates: int = 8
) -> Subscription:
    """Subscriptions with a position where they need one; with *until*, some are over one day."""
    expression = draw(expressions(max_predicates))
    return Subscription(
        draw(st.sampled_from(grid.SUBSCRIBER_IDS)) if id is None else id,
        expression,
        draw(points() if uses_here(expression) else st.none() | points()),
        draw(st.none() | instants()) if until else None,
    )


# What happens.


@st.composite
def histories(
    draw: st.DrawFn, *, max_size: int = 16, max_predicates: int = 4, labelled: bool = False
) -> list[Record]:
    """Records of every kind in order; there are few ids, so that many replace or collide.

    Time mostly goes on; some records carry none, or one that is past, and some are over already.
    Where they are *labelled*, subscriptions have owners and labels, and events are for some.
    """
    history: list[Record] = []
    now = 0
    for _ in range(draw(st.integers(1, max_size))):
        record = draw(_records(draw(st.sampled_from(_MIX)), max_predicates))
        time = None
        if draw(st.integers(0, 3)):
            time = max(0, now + draw(st.sampled_from(_STEPS)))
            now = max(now, time)
        if labelled:
            record = draw(_labelled(record))
        history.append(_dated(record, time, now))
    return history


def _labelled(record: Record) -> st.SearchStrategy[Record]:
    """*record* with labels."""
    labels = st.sampled_from(grid.LABELS)
    if isinstance(record, Publish | Update):
        return labels.map(lambda one: replace(record, event=replace(record.event, among=one)))
    if isinstance(record, Subscribe):
        return st.builds(
            lambda owner, one: replace(
                record, subscription=replace(record.subscription, owner=owner, labels=one)
            ),
            st.sampled_from(grid.OWNERS),
            labels,
        )
    return st.just(record)


@cache
def _records(op: str, max_predicates: int) -> st.SearchStrategy[Record]:
    if op == "publish":
        return st.builds(Publish, events(until=True))
    if op == "update":
        return st.builds(Update, events(until=True))
    if op == "withdraw":
        return st.builds(Withdraw, st.sampled_from(grid.EVENT_IDS))
    if op == "subscribe":
        return st.builds(Subscribe, subscriptions(until=True, max_predicates=max_predicates))
    ids = st.sampled_from(grid.SUBSCRIBER_IDS)
    return st.builds(Move, ids, points()) if op == "move" else st.builds(Unsubscribe, ids)


def _dated(record: Record, time: int | None, now: int) -> Record:
    """*record* at *time*; its `until`, drawn as if it began at 1 s, is shifted to *now*."""
    if isinstance(record, Publish | Update) and record.event.until is not None:
        event = replace(record.event, until=record.event.until + now - SECOND)
        return type(record)(event, time)
    if isinstance(record, Subscribe) and record.subscription.until is not None:
        until = record.subscription.until + now - SECOND
        return Subscribe(replace(record.subscription, until=until), time)
    return replace(record, time=time)
