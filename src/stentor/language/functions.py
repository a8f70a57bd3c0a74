"""The functions that are predicates: has_all, has_any, and the tests of places.

Each reader starts behind the opening parenthesis and stops behind the closing one.
"""

from __future__ import annotations

from collections.abc import Callable

from stentor.errors import ExpressionError, ExpressionSyntaxError, LimitError
from stentor.language import mistakes
from stentor.language.cursor import Cursor
from stentor.language.regions import checked_box, checked_circle, checked_point
from stentor.language.terms import has_term
from stentor.language.wkt import read_polygon
from stentor.model.expression import HERE, Has, Within
from stentor.model.region import Region
from stentor.model.value import Point

_SIGNATURES = (
    "has_all(attribute, 'word', …)",
    "has_any(attribute, 'word', …)",
    "here()",
    "ST_Contains(region, attribute)",
    "ST_CoveredBy(attribute, region)",
    "ST_Covers(region, attribute)",
    "ST_DWithin(attribute, ST_Point(lon, lat) or here(), metres)",
    "ST_GeomFromText('POLYGON((x y, …))')",
    "ST_MakeEnvelope(west, south, east, north)",
    "ST_Point(lon, lat)",
    "ST_Within(attribute, region)",
    "weight(predicate, number)",
)
#: Every function of the language, in the spelling of its own documentation.
NAMES = [signature.partition("(")[0] for signature in _SIGNATURES]
_BY_LOWER = {name.lower(): signature for name, signature in zip(NAMES, _SIGNATURES, strict=True)}


def take(cursor: Cursor, token: str, name: str) -> None:
    """Go behind *token*, a comma or a parenthesis in a call of *name*."""
    got = cursor.tokens[cursor.at]
    if got != token:
        error = mistakes.expected(repr(token), got)
        if got in (",", ")"):
            error = ExpressionSyntaxError(
                f"too {'many' if got == ',' else 'few'} arguments: expected {_BY_LOWER[name]}"
            )
        raise cursor.placed(error, cursor.at)
    cursor.at += 1


def read_has_all(cursor: Cursor) -> Has:
    """`has_all(attribute, 'word', …)`."""
    return _has(cursor, "has_all", every=True)


def read_has_any(cursor: Cursor) -> Has:
    """`has_any(attribute, 'word', …)`."""
    return _has(cursor, "has_any", every=False)


def _has(cursor: Cursor, name: str, every: bool) -> Has:
    attribute = cursor.attribute()
    words: list[str] = []
    while not words or cursor.tokens[cursor.at] != ")":
        take(cursor, ",", name)
        if len(words) == cursor.limits.words:
            error = LimitError(f"more than {len(words):,} words, which is the limit")
            raise cursor.placed(error, cursor.at)
        at = cursor.at
        words.append(cursor.string("a word"))
        if not has_term(words[-1]):
            raise cursor.placed(mistakes.no_term(words[-1]), at)
    cursor.at += 1
    return Has(attribute, tuple(words), every)


def read_within(cursor: Cursor) -> Within:
    """`ST_Within(attribute, region)`, and `ST_CoveredBy`, which is the same here."""
    attribute = cursor.attribute()
    take(cursor, ",", "st_within")
    region = _region(cursor)
    take(cursor, ")", "st_within")
    return Within(attribute, region)


def read_contains(cursor: Cursor) -> Within:
    """`ST_Contains(region, attribute)`, and `ST_Covers`, which is the same here."""
    region = _region(cursor)
    take(cursor, ",", "st_contains")
    attribute = cursor.attribute()
    take(cursor, ")", "st_contains")
    return Within(attribute, region)


def read_dwithin(cursor: Cursor) -> Within:
    """`ST_DWithin(attribute, point, metres)`, or with the point before the attribute."""
    if cursor.tokens[cursor.at + 1] == "(":
        centre = _centre(cursor)
        take(cursor, ",", "st_dwithin")
        attribute = cursor.attribute()
    else:
        attribute = cursor.attribute()
        take(cursor, ",", "st_dwithin")
        centre = _centre(cursor)
    take(cursor, ",", "st_dwithin")
    at = cursor.at
    radius = cursor.number("a distance in metres")
    try:
        circle = checked_circle(centre, radius)
    except ExpressionError as error:
        raise cursor.placed(error, at, cursor.at) from None
    take(cursor, ")", "st_dwithin")
    return Within(attribute, circle)


#: Names in small letters, to readers.
PREDICATES: dict[str, Callable[[Cursor], Has | Within]] = {
    "has_all": read_has_all,
    "has_any": read_has_any,
    "st_contains": read_contains,
    "st_coveredby": read_within,
    "st_covers": read_contains,
    "st_dwithin": read_dwithin,
    "st_within": read_within,
}


def _centre(cursor: Cursor) -> Point | None:
    at = cursor.at
    function = _opened(cursor)
    if function == "st_point":
        x, y = _numbers(cursor, function, ("a longitude", "a latitude"))
        try:
            return checked_point(x, y, _plane(cursor))
        except ExpressionError as error:
            raise cursor.placed(error, at, cursor.at) from None
    if function == "here":
        take(cursor, ")", function)
        return HERE
    raise cursor.placed(mistakes.expected("ST_Point(lon, lat) or here()", cursor.tokens[at]), at)


def _region(cursor: Cursor) -> Region:
    at = cursor.at
    function = _opened(cursor)
    if function == "st_makeenvelope":
        sides = _numbers(cursor, function, ("west", "south", "east", "north"))
        west, south, east, north = sides
        try:
            return checked_box(west, south, east, north, _plane(cursor))
        except ExpressionError as error:
            raise cursor.placed(error, at, cursor.at) from None
    if function == "st_geomfromtext":
        text = cursor.string("well-known text")
        try:
            polygon = read_polygon(text, _plane(cursor), cursor.limits.polygon_points)
        except ExpressionError as error:
            raise cursor.placed(error, at + 2) from None
        take(cursor, ")", function)
        return polygon
    misplaced = mistakes.expected("a region", cursor.tokens[at])
    misplaced.hint = f"a region is {_BY_LOWER['st_makeenvelope']} or {_BY_LOWER['st_geomfromtext']}"
    raise cursor.placed(misplaced, at)


def _opened(cursor: Cursor) -> str:
    """The name, in small letters, of the function called here, behind whose ( the cursor goes."""
    if cursor.tokens[cursor.at + 1] != "(":
        return ""
    name = cursor.tokens[cursor.at].lower()
    cursor.at += 2
    return name


def _numbers(cursor: Cursor, name: str, whats: tuple[str, ...]) -> list[float]:
    """The arguments of a call that takes numbers only, up to behind its parenthesis."""
    numbers = [cursor.number(whats[0])]
    for what in whats[1:]:
        take(cursor, ",", name)
        numbers.append(cursor.number(what))
    take(cursor, ")", name)
    return numbers


def _plane(cursor: Cursor) -> bool:
    return cursor.schema is not None and cursor.schema.plane
