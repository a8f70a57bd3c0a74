"""The kinds of predicates in columns, a file each: appended one by one, or filled in by the batch.

Both ways give equal columns. Each question is one `match` over the closed union, which ends in
`assert_never`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, assert_never

from stentor.encoding.predicates import (
    box,
    circle,
    comparison,
    keywords,
    membership,
    null_test,
    pattern,
    polygon,
)
from stentor.encoding.predicates.filled import Filler
from stentor.encoding.predicates.growing import Appended, AppendedColumns
from stentor.encoding.slots import NumberSlot, TextSlot
from stentor.language.negation import Literal
from stentor.language.normal_predicates import (
    Inside,
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
from stentor.model import (
    Between,
    Box,
    Circle,
    Comparison,
    Has,
    HasPhrase,
    In,
    IsNull,
    Like,
    Overlaps,
    Point,
    Polygon,
    Predicate,
    Region,
    Regular,
    Within,
)


def append(
    columns: AppendedColumns, attribute: str, test: Test, at: Point | None, plane: bool
) -> Appended:
    """Append the operands of *test*, of a subscriber *at* some point; what else is to be said."""
    match test:
        case Intervals():
            return comparison.append(columns, test)
        case Membership():
            return membership.append(columns, test)
        case Keywords():
            return keywords.append(columns, test, attribute)
        case Phrase():
            return keywords.append_phrase(columns, test, attribute)
        case Inside(region, _):
            return _append_region(columns, region, at, plane)
        case StringInterval():
            return comparison.append_strings(columns, test)
        case Pattern():
            return pattern.append(columns, test)
        case RegularPattern():
            return pattern.append_regular(columns, test)
        case IsMissing() | IsPresent():
            return null_test.append(test)
    assert_never(test)


def _append_region(
    columns: AppendedColumns, region: Region, at: Point | None, plane: bool
) -> Appended:
    match region:
        case Box():
            return box.append(columns, region)
        case Circle():
            return circle.append(columns, region, at, plane)
        case Polygon():
            return polygon.append(columns, region)
    assert_never(region)


def filler(literals: Sequence[Literal]) -> Filler | None:
    """How to fill in the tests of *literals* on one attribute; None where they must be parsed."""
    if len(literals) == 1:
        return _filler(literals[0].predicate, literals[0].negated)
    compared = [
        one.predicate for one in literals if isinstance(one.predicate, Comparison | Between)
    ]
    if len(compared) < len(literals):
        return None
    return comparison.filler(compared, any(literal.negated for literal in literals))


def _filler(predicate: Predicate, negated: bool) -> Filler | None:
    match predicate:
        case Comparison(_, "=" | "!=" as operator, constant) if isinstance(constant.value, str):
            return partial(membership.fill, (constant,), operator == "!=")
        case Comparison() | Between():
            return comparison.filler([predicate], negated)
        case In():
            return membership.filler(predicate, negated)
        case Has():
            return partial(keywords.fill, predicate, negated)
        case Within(_, region):
            return _region_filler(region, negated)
        case IsNull():
            return partial(null_test.fill, not negated)
        case Like() | Regular() | HasPhrase() | Overlaps():
            return None
    assert_never(predicate)


def _region_filler(region: Region, negated: bool) -> Filler | None:
    match region:
        case Box():
            return partial(box.fill, region, negated)
        case Circle():
            return partial(circle.fill, region, negated)
        case Polygon():
            return None
    assert_never(region)


def slots_of(predicate: Predicate) -> list[int]:
    """The slots whose constants *predicate* takes when it is filled in."""
    values: list[Any]
    match predicate:
        case Comparison() | Between():
            values = [constant.value for constant in comparison.constants_of([predicate])]
        case In(_, constants):
            values = [constant.value for constant in constants]
        case Has(_, words, _):
            values = list(words)
        case Within(_, region):
            values = _region_constants(region)
        case Like() | Regular() | HasPhrase() | Overlaps() | IsNull():
            values = []
        case _:
            assert_never(predicate)
    return [value.slot for value in values if isinstance(value, (NumberSlot, TextSlot))]


def _region_constants(region: Region) -> list[float]:
    match region:
        case Box(west, south, east, north):
            return [west, south, east, north]
        case Circle(centre, radius):
            return [radius, *(centre or ())]
        case Polygon():
            return []
    assert_never(region)
