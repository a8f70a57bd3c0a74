"""The same trees from Python: `(col("price") < 3300) & col("brand").is_in("Huawei", "Xiaomi")`.

A `Built` wraps a tree, so that `&`, `|` and `~` join whole expressions. A `Column` is one too:
alone it is the boolean attribute itself. Limits and the schema are checked where it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from stentor.errors import ExpressionError, RecordError
from stentor.language.literals import TRUE, constant_of, mixed, shown_value, unordered
from stentor.language.predicates.box import checked_box
from stentor.language.predicates.calls import checked_point
from stentor.language.predicates.circle import checked_circle
from stentor.language.predicates.pattern import canonical_pattern
from stentor.language.predicates.polygon import checked_polygon
from stentor.language.printer import to_text
from stentor.language.regular import compiled
from stentor.language.tree import all_of, any_of, weighted
from stentor.model.expression import (
    HERE,
    Between,
    Comparison,
    Expression,
    Has,
    HasPhrase,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Overlaps,
    Regular,
    Within,
)
from stentor.model.kind import Kind
from stentor.model.region import Box, Polygon
from stentor.model.values import Constant
from stentor.model.values.string import read_string


class Built:
    """An expression, to be joined with others by `&`, `|` and `~`."""

    __slots__ = ("expression",)

    def __init__(self, expression: Expression) -> None:
        self.expression = expression
        """The tree, equal to what `parse` makes of the same text."""

    def __and__(self, other: Built | Expression) -> Built:
        tree = _operand(other)
        return NotImplemented if tree is None else Built(all_of([self.expression, tree]))

    def __rand__(self, other: Expression) -> Built:
        tree = _operand(other)
        return NotImplemented if tree is None else Built(all_of([tree, self.expression]))

    def __or__(self, other: Built | Expression) -> Built:
        tree = _operand(other)
        return NotImplemented if tree is None else Built(any_of([self.expression, tree]))

    def __ror__(self, other: Expression) -> Built:
        tree = _operand(other)
        return NotImplemented if tree is None else Built(any_of([tree, self.expression]))

    def __invert__(self) -> Built:
        return Built(Not(self.expression))

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an expression is neither true nor false before it meets an event: join expressions "
            "with & | ~ instead of and, or, not, each in parentheses, and write "
            "col('x').between(1, 5) instead of 1 <= col('x') <= 5"
        )

    def __repr__(self) -> str:
        return f"<expression {to_text(self.expression)}>"


class Column(Built):
    """An attribute of events, to be compared and tested; alone, `attribute = TRUE`."""

    __slots__ = ("name",)
    __hash__ = None  # type: ignore[assignment]  # == makes an expression

    def __init__(self, name: str) -> None:
        self.name = _checked_text(name, "an attribute's name")
        if not name:
            raise ExpressionError("an attribute's name cannot be empty")
        super().__init__(Comparison(name, "=", TRUE))

    def __eq__(self, value: Any) -> Built:  # type: ignore[override]
        return self._compared("=", value)

    def __ne__(self, value: Any) -> Built:  # type: ignore[override]
        return self._compared("!=", value)

    def __lt__(self, value: Any) -> Built:
        return self._compared("<", value)

    def __le__(self, value: Any) -> Built:
        return self._compared("<=", value)

    def __gt__(self, value: Any) -> Built:
        return self._compared(">", value)

    def __ge__(self, value: Any) -> Built:
        return self._compared(">=", value)

    def _compared(self, operator: Operator, value: Any) -> Built:
        constant = _checked_constant(value)
        if constant.kind is Kind.BOOLEAN and operator not in ("=", "!="):
            raise unordered()
        return Built(Comparison(self.name, operator, constant))

    def between(self, low: Any, high: Any) -> Built:
        """`attribute BETWEEN low AND high`, both included."""
        first, last = _checked_constants([low, high])
        if first.kind is Kind.BOOLEAN:
            raise unordered()
        return Built(Between(self.name, first, last))

    def is_in(self, *values: Any) -> Built:
        """`attribute IN (values)`; one list or tuple of them will do."""
        if len(values) == 1 and isinstance(values[0], (list, tuple)):
            values = tuple(values[0])
        if not values:
            raise ExpressionError("is_in needs at least one value")
        return Built(In(self.name, _checked_constants(values)))

    def like(self, pattern: str, escape: str = "\\") -> Built:
        """`attribute LIKE pattern ESCAPE escape`."""
        pattern = _checked_text(pattern, "a LIKE pattern")
        escape = _checked_text(escape, "an escape")
        return Built(Like(self.name, canonical_pattern(pattern, escape, sys.maxsize)))

    def ilike(self, pattern: str, escape: str = "\\") -> Built:
        """`attribute ILIKE pattern ESCAPE escape`: LIKE, whatever the capitals."""
        liked = as_expression(self.like(pattern, escape))
        assert isinstance(liked, Like)
        compiled("ILIKE", liked.pattern)
        return Built(Regular(self.name, "ILIKE", liked.pattern))

    def rlike(self, pattern: str) -> Built:
        """`attribute RLIKE pattern`: RE2 finds the pattern in it."""
        pattern = _checked_text(pattern, "an RLIKE pattern")
        compiled("RLIKE", pattern)
        return Built(Regular(self.name, "RLIKE", pattern))

    def array_contains(self, value: Any) -> Built:
        """`array_contains(attribute, value)`."""
        return self.arrays_overlap(value)

    def arrays_overlap(self, *values: Any) -> Built:
        """`arrays_overlap(attribute, array(values…))`."""
        constants = tuple(map(_checked_constant, values))
        if not constants or any(one.kind not in (Kind.STRING, Kind.NUMBER) for one in constants):
            raise ExpressionError("a set has strings and numbers")
        return Built(Overlaps(self.name, constants))

    def is_null(self) -> Built:
        """`attribute IS NULL`."""
        return Built(IsNull(self.name))

    def is_not_null(self) -> Built:
        """`attribute IS NOT NULL`."""
        return Built(Not(IsNull(self.name)))

    def has_all(self, *words: str) -> Built:
        """`has_all(attribute, words…)`."""
        return Built(Has(self.name, _checked_words(words), every=True))

    def has_any(self, *words: str) -> Built:
        """`has_any(attribute, words…)`."""
        return Built(Has(self.name, _checked_words(words), every=False))

    def has_phrase(self, phrase: str) -> Built:
        """`has_phrase(attribute, phrase)`."""
        [checked] = _checked_words([phrase])
        return Built(HasPhrase(self.name, checked))

    def within(self, region: Box | Polygon) -> Built:
        """`ST_Within(attribute, region)`, of a `box` or a `polygon`."""
        if not isinstance(region, (Box, Polygon)):
            raise ExpressionError(
                f"expected box(…) or polygon(…), got {shown_value(region)}",
                hint="a distance is tested by within_distance(point, metres)",
            )
        return Built(Within(self.name, region))

    def within_distance(
        self, centre: tuple[float, float] | Here, metres: float, *, plane: bool = False
    ) -> Built:
        """`ST_DWithin(attribute, centre, metres)`, around a (lon, lat) pair or `here()`."""
        radius = _checked_number(metres, "a distance")
        location = (
            HERE if isinstance(centre, Here) else checked_point(*_checked_pair(centre), plane)
        )
        return Built(Within(self.name, checked_circle(location, radius)))


class Here:
    """The subscriber's own position, wherever it moves."""

    __slots__ = ()


def col(name: str) -> Column:
    """The attribute *name* of events.

    >>> (col("price") < 3300) & ~(col("colour") == "red")
    <expression price < 3300 AND NOT colour = 'red'>
    """
    return Column(name)


def here() -> Here:
    """The subscriber's own position, for `within_distance`."""
    return Here()


def box(west: float, south: float, east: float, north: float, *, plane: bool = False) -> Box:
    """`ST_MakeEnvelope(west, south, east, north)`; on the globe it may cross 180°."""
    what = "a side of a box"
    return checked_box(
        _checked_number(west, what),
        _checked_number(south, what),
        _checked_number(east, what),
        _checked_number(north, what),
        plane,
    )


def polygon(*rings: Iterable[tuple[float, float]], plane: bool = False) -> Polygon:
    """The polygon of an outer ring and its holes, each closed: its last point is its first."""
    try:
        checked = [[_checked_pair(location) for location in ring] for ring in rings]
    except TypeError:
        raise ExpressionError("a ring is a list of places (longitude, latitude)") from None
    return checked_polygon(checked, plane, sys.maxsize)


def multipolygon(*parts: Polygon) -> Polygon:
    """The polygon whose parts are *parts*: a location is in it that is in one of them."""
    if not parts or not all(isinstance(part, Polygon) for part in parts):
        raise ExpressionError("a multipolygon is made of polygons: multipolygon(polygon(…), …)")
    rings = tuple(ring for part in parts for ring in part.rings)
    outer: list[int] = []
    before = 0
    for part in parts:
        outer += [before + one for one in part.outer]
        before += len(part.rings)
    return Polygon(rings, tuple(outer))


def weight(expression: Built | Expression, number: float) -> Built:
    """`weight(predicate, number)`, of one predicate or its negation."""
    return Built(weighted(as_expression(expression), _checked_number(number, "a weight")))


def as_expression(expression: Built | Expression) -> Expression:
    """The tree of *expression*, which may be built or a tree already."""
    tree = _operand(expression)
    if tree is None:
        raise ExpressionError(
            f"expected an expression, got {shown_value(expression)}",
            hint="col('price') < 3300 makes one",
        )
    return tree


def _operand(expression: object) -> Expression | None:
    if isinstance(expression, Built):
        return expression.expression
    return expression if isinstance(expression, Expression) else None


def _checked_constant(value: Any) -> Constant:
    """The constant of *value*."""
    if value is None:
        raise ExpressionError("nothing compares with None", hint="use is_null() or is_not_null()")
    if hasattr(value, "expression"):
        raise ExpressionError("two attributes cannot be compared, nor two expressions")
    return constant_of(value)


def _checked_constants(values: Iterable[Any]) -> tuple[Constant, ...]:
    """The constants of *values*, all of one kind."""
    constants = tuple([_checked_constant(value) for value in values])
    for constant in constants:
        if constant.kind is not constants[0].kind:
            raise mixed(constant.kind, constants[0].kind)
    return constants


def _checked_number(value: Any, what: str) -> float:
    """*value* as a double; *what* says in an error what it is for."""
    constant = _checked_constant(value)
    if constant.kind is not Kind.NUMBER or isinstance(constant.value, str):
        raise ExpressionError(f"{what} is a number, got {shown_value(value)}")
    return constant.value


def _checked_pair(location: Any) -> tuple[float, float]:
    """The two coordinates of *location*."""
    if not isinstance(location, (list, tuple)) or len(location) != 2:
        raise ExpressionError(
            f"a place is a pair (longitude, latitude), got {shown_value(location)}"
        )
    x, y = location
    return _checked_number(x, "a coordinate"), _checked_number(y, "a coordinate")


def _checked_words(words: Iterable[Any]) -> tuple[str, ...]:
    """One word or more."""
    checked = tuple([_checked_text(word, "a word") for word in words])
    if not checked:
        raise ExpressionError("expected at least one word")
    return checked


def _checked_text(value: Any, what: str) -> str:
    """*value*, which is a string that has a UTF-8 form; *what* says in an error what it is for."""
    if not isinstance(value, str):
        raise ExpressionError(f"{what} is a string, got {shown_value(value)}")
    try:
        return read_string(value)
    except RecordError as error:
        raise ExpressionError(f"{what}: {error}") from None
