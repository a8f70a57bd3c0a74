"""A coarse grid of values: few of each kind, and those that are hard.

What is drawn from it touches, repeats, contradicts itself and comes to nothing far more often than
what is drawn at random.
"""

from __future__ import annotations

import math

from stentor.model import Kind, Point, Schema
from stentor.model.geometry import EARTH_RADIUS, distance

KINDS = {
    "price": Kind.NUMBER,
    "stock": Kind.NUMBER,
    "brand": Kind.STRING,
    "colour": Kind.STRING,
    "text": Kind.STRING,
    "title": Kind.STRING,
    "sold": Kind.BOOLEAN,
    "made": Kind.TIMESTAMP,
    "loc": Kind.POINT,
    "home": Kind.POINT,
    "tags": Kind.SET,
}
"""The attributes of everything on the grid."""

TEXTS = ("text", "title")
"""Those of them that hold words."""

_LARGEST = math.nextafter(math.inf, 0.0)
_NEXT_TO_ONE = math.nextafter(1.0, 2.0)
NUMBERS = (1.0, 2.0, 3.0, 0.0, -1.0, _NEXT_TO_ONE, 5e-324, 2.0**53, _LARGEST, -_LARGEST)

BOOLEANS = (0.0, 1.0)

INSTANTS = (0.0, 1.0, 1_000_000.0, -86_400_000_000.0, 253_402_300_799_000_000.0)
"""Microseconds since 1970 UTC, up to the last second of the year 9999."""

STRINGS = (
    *("", "a", "ab", "abc", "b", "B", "a\0", "a%b", "a_b", "\\"),
    *("abcdefgh", "abcdefgi", "abcdefghi"),
    *("é", "e\u0301", "ß", "東京", "🎉"),
)
"""Prefixes of one another, equal in their first bytes, composed and decomposed."""

PATTERNS = (
    *("%", "", "a", "a%", "%b", "_", "__", "a_c", "%a%b%", "a%b", "abcdefgh%"),
    *(r"a\%b", r"%\_%", r"\\", "é%", "_京"),
)

REGULAR = (
    "",
    "a",
    "^a",
    "b$",
    "[ab]b",
    "(?i)AB",
    "^.$",
    "a|é",
    r"\bab\b",
    "京",
    "^[^a]*$",
    r"\W",
    "a{2,}",
)
"""Patterns for RLIKE: at the edges of texts and words, without capitals, of several bytes."""

WORDS = (
    *("red", "RED", "ipad", "iPad 2", "red ipad", "e-reader"),
    *("Straße", "strasse", "東京", "京都"),
)
"""Each holds a term; some hold several, some fold to the same."""

LONGITUDES = (0.0, 0.01, 180.0, -180.0, -179.99)
LATITUDES = (0.0, 0.01, 90.0, -90.0)
POINTS = tuple(Point(x, y) for x in LONGITUDES for y in LATITUDES)

RADII = (
    0.0,
    distance(0.0, 0.0, 0.01, 0.0, plane=False),
    distance(0.0, 0.0, 0.01, 0.01, plane=False),
    math.pi / 2.0 * EARTH_RADIUS,
    math.pi * EARTH_RADIUS,
)
"""Metres: distances between points of the grid, a quarter and a half of the way round."""

WEIGHTS = (1.0, 0.0, 0.5, 0.1, 0.3, 2.0)

SUBSCRIBER_IDS = ("ana", "bo", "cé")
#: Labels of subscriptions, and what events are for.
LABELS = ({}, {"tenant": "a"}, {"tenant": "b"}, {"tenant": "a", "plan": "x"})
OWNERS = (None, "ada", "bob")
EVENT_IDS = ("e1", "e2", "e3", "e4")


MEMBERS = ("a", "A", "a b", "", "é", 1.0, 2.5, -1.0, "1")
"""What sets have: strings and numbers that look alike."""


def schema() -> Schema:
    """A fresh declared schema of the grid's attributes."""
    return Schema.declare(KINDS)


def constants(kind: Kind) -> tuple[float | str, ...]:
    """The values of the grid that an attribute of *kind*, not a point, can have."""
    by_kind: dict[Kind, tuple[float | str, ...]] = {
        Kind.NUMBER: NUMBERS,
        Kind.STRING: STRINGS,
        Kind.BOOLEAN: BOOLEANS,
        Kind.TIMESTAMP: INSTANTS,
        Kind.SET: MEMBERS,
    }
    return by_kind[kind]
