"""The kinds of predicates, a file each: how it is read and written, and its normal form.

Other modules call the functions here: each is one `match` over the closed union, which ends in
`assert_never`, so that mypy names what a new kind still lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from stentor.errors import LimitError, SettingsError
from stentor.language import syntax_errors
from stentor.language.cursor import Cursor
from stentor.language.limits import Limits
from stentor.language.literals import quote_name
from stentor.language.normal_predicates import Inside, RegularPattern, Test
from stentor.language.predicates import (
    box,
    circle,
    comparison,
    elements,
    keywords,
    membership,
    null_test,
    pattern,
    polygon,
)
from stentor.language.predicates.calls import SIGNATURES, opened, take, take_srid
from stentor.language.regular import TableBudget
from stentor.language.terms import fold_terms, has_wildcard
from stentor.model.expression import (
    Between,
    Comparison,
    Expression,
    Has,
    HasPhrase,
    In,
    IsNull,
    Like,
    Overlaps,
    Predicate,
    Regular,
    Within,
)
from stentor.model.kind import Kind, PredicateWord
from stentor.model.region import Box, Circle, Polygon, Region


def word_of(predicate: Predicate) -> PredicateWord:
    """The kind of *predicate*: the name of its file in each layer.

    >>> word_of(Like("brand", "i%"))
    'pattern'
    """
    match predicate:
        case Comparison() | Between():
            return "comparison"
        case In():
            return "membership"
        case Like() | Regular():
            return "pattern"
        case Has() | HasPhrase() | Overlaps():
            return "keywords"
        case Within(_, region):
            return word_of_region(region)
        case IsNull():
            return "null_test"
    assert_never(predicate)


def word_of_region(region: Region) -> PredicateWord:
    """The kind of predicates that test points against *region*."""
    match region:
        case Box():
            return "box"
        case Circle():
            return "circle"
        case Polygon():
            return "polygon"
    assert_never(region)


def to_text(predicate: Predicate, negation: str = "") -> str:
    """The text of *predicate*; *negation* (`NOT `) goes before its keyword if it may."""
    if not isinstance(predicate, Predicate):
        raise SettingsError(f"expected an expression, got {type(predicate).__name__}")
    name = quote_name(predicate.attribute)
    match predicate:
        case Comparison() | Between():
            return comparison.to_text(predicate, name, negation)
        case In():
            return membership.to_text(predicate, name, negation)
        case Like():
            return pattern.to_text(predicate, name, negation)
        case Regular():
            return pattern.regular_text(predicate, name, negation)
        case Has():
            return keywords.to_text(predicate, name)
        case HasPhrase():
            return keywords.phrase_text(predicate, name)
        case Overlaps():
            return elements.to_text(predicate, name)
        case Within(_, region):
            return _within_text(region, name)
        case IsNull():
            return null_test.to_text(predicate, name, negation)
    assert_never(predicate)


def _within_text(region: Region, name: str) -> str:
    match region:
        case Box():
            return box.to_text(region, name)
        case Circle():
            return circle.to_text(region, name)
        case Polygon():
            return polygon.to_text(region, name)
    assert_never(region)


def attribute_kind(predicate: Predicate) -> Kind | None:
    """The kind of attribute that *predicate* can be true of; None where it is any."""
    match predicate:
        case Comparison() | Between():
            return comparison.attribute_kind(predicate)
        case In():
            return membership.attribute_kind(predicate)
        case Like() | Regular():
            return pattern.attribute_kind(predicate)
        case Has():
            return keywords.attribute_kind(predicate)
        case HasPhrase():
            return Kind.STRING
        case Overlaps():
            return Kind.SET
        case Within():
            return Kind.POINT
        case IsNull():
            return None  # whatever there is may be missing
    assert_never(predicate)


def normal_form(predicate: Predicate, negated: bool) -> Test:
    """The normal form of *predicate*, or of its negation: a test of its attribute."""
    match predicate:
        case Comparison() | Between():
            return comparison.normal_form(predicate, negated)
        case In():
            return membership.normal_form(predicate, negated)
        case Like():
            return pattern.normal_form(predicate, negated)
        case Regular(_, syntax, text):
            return RegularPattern(syntax, text, negated)
        case Has():
            return keywords.normal_form(predicate, negated)
        case HasPhrase():
            return keywords.phrase_form(predicate, negated)
        case Overlaps():
            return elements.normal_form(predicate, negated)
        case Within(_, region):
            return Inside(region, negated)
        case IsNull():
            return null_test.normal_form(predicate, negated)
    assert_never(predicate)


def size_of(predicate: Predicate) -> int:
    """What *predicate* holds: values of a list, words, points of a polygon; else nothing."""
    match predicate:
        case In(_, values) | Overlaps(_, values):
            return len(values)
        case Has(_, words, _):
            return len(words)
        case HasPhrase(_, phrase):
            return len(fold_terms(phrase))
        case Within(_, region):
            return sum(map(len, region.rings)) if isinstance(region, Polygon) else 0
        case Comparison() | Between() | Like() | Regular() | IsNull():
            return 0
    assert_never(predicate)


def check_size(predicate: Predicate, limits: Limits, tables: TableBudget) -> None:
    """Refuse a predicate that *limits* or the rules of the language forbid."""
    match predicate:
        case In() | Overlaps():
            check_limit("values in a list", size_of(predicate), limits.list_length)
        case Like(_, text):
            check_limit("characters in a pattern", len(text), limits.pattern_length)
        case Regular(_, _, text):
            check_limit("characters in a pattern", len(text), limits.pattern_length)
            tables.add(predicate)
        case Has(_, words, _):
            check_limit("words", size_of(predicate), limits.words)
            for word in filter(has_wildcard, words):
                raise syntax_errors.part_of_a_word(word)
        case HasPhrase():
            check_limit("words", size_of(predicate), limits.words)
        case Within():
            check_limit("points in a polygon", size_of(predicate), limits.polygon_points)
        case Comparison() | Between() | IsNull():
            return
        case _:
            assert_never(predicate)


def check_limit(what: str, found: int, limit: int) -> None:
    """Refuse an expression that has more of something than it may."""
    if found > limit:
        raise LimitError(f"the expression has {found:,} {what}; the limit is {limit:,}")


#: Keywords behind an attribute's name, to readers of what follows them.
AFTER_ATTRIBUTE: dict[str, Callable[[Cursor, str, int], Expression]] = {
    "BETWEEN": comparison.read_between,
    "ILIKE": pattern.read_ilike,
    "IN": membership.read,
    "IS": null_test.read,
    "LIKE": pattern.read,
    "RLIKE": pattern.read_rlike,
}


def _read_within(cursor: Cursor, name: str) -> Within:
    """`ST_Within(attribute, region)`, and `ST_CoveredBy`, which is the same here."""
    attribute = cursor.attribute()
    take(cursor, ",", name)
    region = _read_region(cursor)
    take(cursor, ")", name)
    return Within(attribute, region)


def _read_contains(cursor: Cursor, name: str) -> Within:
    """`ST_Contains(region, attribute)`, and `ST_Covers`, which is the same here."""
    region = _read_region(cursor)
    take(cursor, ",", name)
    attribute = cursor.attribute()
    take(cursor, ")", name)
    return Within(attribute, region)


def _read_intersects(cursor: Cursor, name: str) -> Within:
    """`ST_Intersects` of an attribute and a region, in either order: a point in the region."""
    is_region = cursor.tokens[cursor.at + 1] == "("
    return (_read_contains if is_region else _read_within)(cursor, name)


def _read_region(cursor: Cursor, *, may_have_srid: bool = True) -> Region:
    at = cursor.at
    function = opened(cursor)
    if function == "st_setsrid" and may_have_srid:
        region = _read_region(cursor, may_have_srid=False)
        take_srid(cursor, function, is_needed=True)
        return region
    read = REGIONS.get(function)
    if read is not None:
        return read(cursor, at)
    error = syntax_errors.expected("a region", cursor.tokens[at])
    error.hint = f"a region is {SIGNATURES['st_makeenvelope']} or {SIGNATURES['st_geomfromtext']}"
    raise cursor.with_position(error, at)


#: Functions that are predicates, in small letters, to readers: from behind the opening parenthesis
#: to behind the closing one.
FUNCTIONS: dict[str, Callable[[Cursor, str], Predicate]] = {
    "array_contains": elements.read,
    "arrays_overlap": elements.read,
    "has_all": keywords.read,
    "has_any": keywords.read,
    "has_phrase": keywords.read_phrase,
    "st_contains": _read_contains,
    "st_coveredby": _read_within,
    "st_covers": _read_contains,
    "st_dwithin": circle.read,
    "st_intersects": _read_intersects,
    "st_within": _read_within,
}
#: Functions that are regions, likewise.
REGIONS: dict[str, Callable[[Cursor, int], Region]] = {
    "st_geomfromgeojson": polygon.read_geojson,
    "st_geomfromtext": polygon.read,
    "st_makeenvelope": box.read,
}
