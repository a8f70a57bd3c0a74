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
#: The SRID of longitude and latitude in degrees.
WGS84 = 4326
#: Every function of the language, in the spelling of its own documentation.
NAMES = [signature.partition("(")[0] for signature in _SIGNATURES]
#: How each is called, by its name in small letters.
SIGNATURES = {name.lower(): signature for name, signature in zip(NAMES, _SIGNATURES, strict=True)}
#: Read where PostGIS and Sedona write it, and never written: no function of Spark SQL.
SIGNATURES["st_setsrid"] = "ST_SetSRID(region or place, 4326)"


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
    """The arguments of a call that takes numbers, perhaps an SRID too, up to its end."""
    found = [cursor.number(whats[0])]
    for what in whats[1:]:
        take(cursor, ",", name)
        found.append(cursor.number(what))
    take_srid(cursor, name)
    return found


def take_srid(cursor: Cursor, name: str, *, is_needed: bool = False) -> None:
    """Go behind the SRID, if there is one, and the parenthesis that closes a call of *name*."""
    if is_needed or cursor.tokens[cursor.at] == ",":
        take(cursor, ",", name)
        at = cursor.at
        srid = cursor.number("an SRID")
        try:
            check_srid(srid, is_plane(cursor))
        except ExpressionError as error:
            raise cursor.with_position(error, at, cursor.at) from None
    take(cursor, ")", name)


def check_srid(srid: float, plane: bool) -> None:
    """Refuse every reference system but longitude and latitude; a plane has none."""
    if plane:
        raise ExpressionError(
            "this schema is a plane, which has no SRID", hint="leave the SRID out"
        )
    if srid != WGS84:
        raise ExpressionError(
            f"coordinates are longitude and latitude, SRID {WGS84}, got SRID {srid:g}",
            hint="transform the region first",
        )


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
