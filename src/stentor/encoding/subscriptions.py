"""Subscriptions in normal form → columns."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from typing import NamedTuple

from stentor.encoding.columns import (
    BOX,
    CIRCLE,
    CLOSED,
    HERE,
    INNER,
    LAST,
    LIKE,
    MISSING,
    NEGATED,
    ONE_OF,
    OPEN,
    POLYGON,
    PRESENT,
    SPAN,
    SPANS,
    STRING_SPAN,
    TERMS,
    UNBOUNDED,
    SubscriptionColumns,
    array_over,
    sealed,
)
from stentor.encoding.hashing import attribute_seed, hash_bytes
from stentor.encoding.prefix import prefix
from stentor.language.conditions import (
    Condition,
    Interval,
    Missing,
    OneOf,
    Pattern,
    Place,
    Present,
    Spans,
    StringSpan,
    Terms,
    Test,
)
from stentor.language.like import plain_prefix
from stentor.language.normalise import NormalForm
from stentor.language.uses import missing_position
from stentor.model import Box, Circle, Point, Polygon, Schema
from stentor.model.geometry import circle_box, circle_terms
from stentor.model.region import surrounding_box
from stentor.model.time import NEVER

UNBOUNDED_HULL: Interval = (-math.inf, math.inf)


class Standing(NamedTuple):
    """A subscription as it is encoded: its normal form, where it stands, until when."""

    form: NormalForm
    at: Point | None = None
    until: int | None = None

    def checked(self) -> Standing:
        """Itself; a RecordError where the expression uses here() and there is no position."""
        if self.at is None and any(
            isinstance(condition.test, Place)
            and isinstance(condition.test.region, Circle)
            and condition.test.region.centre is None
            for conditions in self.form.alternatives
            for condition in conditions
        ):
            raise missing_position()
        return self


def encode_subscriptions(standing: Iterable[Standing], schema: Schema) -> SubscriptionColumns:
    """The columns of *standing*; their attributes must be known to *schema*."""
    builder = _Builder(schema)
    for one in standing:
        builder.add(one)
    return builder.columns()


class _Builder:
    """Growing columns; Python's `array` appends a number in a few nanoseconds."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._alternative_start = array("q", [0])
        self._predicate_start = array("q", [0])
        self._kind = array("B")
        self._attribute = array("i")
        self._low = array("d")
        self._high = array("d")
        self._weight = array("d")
        self._operand_start = array("i")
        self._operand_stop = array("i")
        self._pair_low = array("d")
        self._pair_high = array("d")
        self._string_hash = array("Q")
        self._string_mark = array("B")
        self._string_start = array("q", [0])
        self._string_bytes = bytearray()
        self._position = array("d")
        self._until = array("q")

    def columns(self) -> SubscriptionColumns:
        arrays = [getattr(self, f"_{name}") for name in SubscriptionColumns._fields]
        return sealed(SubscriptionColumns(*(array_over(one) for one in arrays)))

    def add(self, one: Standing) -> None:
        for conditions in one.form.alternatives:
            for condition in conditions:
                self._add_condition(condition, one.at)
            self._predicate_start.append(len(self._kind))
        self._alternative_start.append(len(self._predicate_start) - 1)
        at = one.at or Point(math.nan, math.nan)
        self._position.extend(at)
        self._until.append(NEVER if one.until is None else one.until)

    def _add_condition(self, condition: Condition, at: Point | None) -> None:
        attribute, test, weight = condition
        kind, hull, start, stop = self._add_test(attribute, test, at)
        negated = not isinstance(test, (Spans, Missing, Present)) and test.negated
        low, high = UNBOUNDED_HULL if negated else hull
        self._kind.append(kind | NEGATED if negated else kind)
        self._attribute.append(self._schema.code(attribute))
        self._low.append(low)
        self._high.append(high)
        self._weight.append(weight)
        self._operand_start.append(start)
        self._operand_stop.append(stop)

    def _add_test(
        self, attribute: str, test: Test, at: Point | None
    ) -> tuple[int, Interval, int, int]:
        """Kind, hull and the operands' slice of *test*."""
        pairs, strings = len(self._pair_low), len(self._string_hash)
        match test:
            case Spans(intervals):
                hull = (intervals[0][0], intervals[-1][1])
                if len(intervals) == 1:
                    return SPAN, hull, 0, 0
                self._add_pairs(intervals)
                return SPANS, hull, pairs, len(self._pair_low)
            case Missing():
                return MISSING, UNBOUNDED_HULL, 0, 0
            case Present():
                return PRESENT, UNBOUNDED_HULL, 0, 0
            case Place(region, _):
                kind = self._add_region(region, at)
                return kind, UNBOUNDED_HULL, pairs, len(self._pair_low)
            case OneOf(wanted, _):
                kind, hull = self._add_one_of([one.encode() for one in wanted])
            case StringSpan():
                kind, hull = self._add_string_span(test)
            case Pattern(pattern, _):
                self._add_string(pattern.encode(), 0)
                begin = plain_prefix(pattern).encode()
                kind, hull = LIKE, (prefix(begin), prefix(begin, b"\xff"))
            case Terms(groups, _):
                kind, hull = self._add_groups(attribute, groups), UNBOUNDED_HULL
        return kind, hull, strings, len(self._string_hash)

    def _add_pairs(self, pairs: Iterable[Interval]) -> None:
        for low, high in pairs:
            self._pair_low.append(low)
            self._pair_high.append(high)

    def _add_string(self, data: bytes, mark: int, hashed: int | None = None) -> None:
        self._string_hash.append(hash_bytes(data) if hashed is None else hashed)
        self._string_mark.append(mark)
        self._string_bytes += data
        self._string_start.append(len(self._string_bytes))

    def _add_one_of(self, wanted: list[bytes]) -> tuple[int, Interval]:
        for hashed, data in sorted((hash_bytes(data), data) for data in wanted):
            self._add_string(data, 0, hashed)
        prefixes = [prefix(data) for data in wanted]
        return ONE_OF, (min(prefixes), max(prefixes))

    def _add_string_span(self, span: StringSpan) -> tuple[int, Interval]:
        low, high = UNBOUNDED_HULL
        for end, is_open in ((span.low, span.low_open), (span.high, span.high_open)):
            mark = UNBOUNDED if end is None else OPEN if is_open else CLOSED
            self._add_string((end or "").encode(), mark)
        if span.low is not None:
            low = prefix(span.low.encode())
        if span.high is not None:
            high = prefix(span.high.encode())
        return STRING_SPAN, (low, high)

    def _add_groups(self, attribute: str, groups: tuple[tuple[str, ...], ...]) -> int:
        seed = attribute_seed(attribute)
        for terms in groups:
            for position, term in enumerate(terms, start=1):
                data = term.encode()
                mark = LAST if position == len(terms) else INNER
                self._add_string(data, mark, hash_bytes(data, seed))
        return TERMS

    def _add_region(self, region: Box | Circle | Polygon, at: Point | None) -> int:
        match region:
            case Box(west, south, east, north):
                self._add_pairs([(west, east), (south, north)])
                return BOX
            case Circle(centre, radius):
                place = centre or at
                assert place is not None, "Standing.checked() was not asked"
                self._add_pairs(circle_pairs(place, radius, self._schema.plane))
                if centre is not None:
                    return CIRCLE
                self._add_pairs([(radius, float(self._schema.plane))])
                return HERE
            case Polygon(rings):
                box = surrounding_box(region)
                self._add_pairs([(box.west, box.east), (box.south, box.north)])
                for ring in rings:
                    self._add_pairs([(point.x, point.y) for point in ring])
                    self._add_pairs([(math.nan, math.nan)])
                return POLYGON


def circle_pairs(centre: Point, radius: float, plane: bool) -> list[Interval]:
    """The four pairs of a circle: the box around it, its centre, and what `in_circle` needs."""
    west, south, east, north = circle_box(centre.x, centre.y, radius, plane)
    return [
        (west, east),
        (south, north),
        (centre.x, centre.y),
        circle_terms(centre.y, radius, plane),
    ]
