"""Functions in expressions: names, parentheses, and the numbers and points that they take."""

from __future__ import annotations

from stentor.errors import ExpressionError, ExpressionSyntaxError, RecordError
from stentor.language import syntax_errors
from stentor.language.cursor import Cursor
from stentor.model.values import Point
from stentor.model.values.point import is_on_globe, read_point

_SIGNATURES = (
    "array('x', 'y', …)",
    "array_contains(attribute, value)",
    "arrays_overlap(attribute, array('x', 'y', …))",
    "has_all(attribute, 'word', …)",
    "has_any(attribute, 'word', …)",
    "has_phrase(attribute, 'several words')",
    "here()",
    "ST_Contains(region, attribute)",
    "ST_CoveredBy(attribute, region)",
    "ST_Covers(region, attribute)",
    "ST_DWithin(attribute, ST_Point(lon, lat) or here(), metres)",
    "ST_GeomFromGeoJSON('{…}')",
    "ST_GeomFromText('POLYGON((x y, …))')",
    "ST_Intersects(attribute, region)",
    "ST_MakeEnvelope(west, south, east, north)",
    "ST_Point(lon, lat)",
    "ST_Within(attribute, region)",
    "weight(predicate, number)",
)
#: Every function of the language, in the spelling of its own documentation.
NAMES = [signature.partition("(")[0] for signature in _SIGNATURES]
#: How each is called, by its name in small letters.
SIGNATURES = {name.lower(): signature for name, signature in zip(NAMES, _SIGNATURES, strict=True)}


def take(cursor: Cursor, token: str, name: str) -> None:
    """Go behind *token*, a comma or a parenthesis in a call of *name*."""
    got = cursor.tokens[cursor.at]
    if got != token:
        error = syntax_errors.expected(repr(token), got)
        if got in (",", ")"):
            error = ExpressionSyntaxError(
                f"too {'many' if got == ',' else 'few'} arguments: expected {SIGNATURES[name]}"
            )
        raise cursor.with_position(error, cursor.at)
    cursor.at += 1


def opened(cursor: Cursor) -> str:
    """The name, in small letters, of the function called here, behind whose ( the cursor goes."""
    if cursor.tokens[cursor.at + 1] != "(":
        return ""
    name = cursor.tokens[cursor.at].lower()
    cursor.at += 2
    return name


def numbers(cursor: Cursor, name: str, whats: tuple[str, ...]) -> list[float]:
    """The arguments of a call that takes numbers only, up to behind its parenthesis."""
    found = [cursor.number(whats[0])]
    for what in whats[1:]:
        take(cursor, ",", name)
        found.append(cursor.number(what))
    take(cursor, ")", name)
    return found


def is_plane(cursor: Cursor) -> bool:
    """Whether coordinates here are of a plane."""
    return cursor.schema is not None and cursor.schema.plane


def checked_point(x: float, y: float, plane: bool) -> Point:
    """The point (x, y); on the globe longitude is −180…180 and latitude −90…90.

    Coordinates stay the very objects that were given: whoever follows a literal into the tree
    recognises it there.
    """
    if is_on_globe(x, y):
        return Point(x, y)
    try:
        read_point((x, y), plane=plane)
    except RecordError as error:
        raise ExpressionError(str(error)) from None
    return Point(x, y)
