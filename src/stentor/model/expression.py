"""The expression tree: what the parser, the builder and the printer agree on.

A leaf is a predicate on one attribute; `NOT IN`, `NOT LIKE`, `IS NOT NULL` are `Not` around one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stentor.model.region import Region
from stentor.model.values import Constant

Operator = Literal["=", "!=", "<", "<=", ">", ">="]

#: The centre of a circle that follows its subscriber.
HERE = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`attribute operator value`; a bare boolean attribute is `attribute = TRUE`."""

    attribute: str
    operator: Operator
    value: Constant


@dataclass(frozen=True, slots=True)
class Between:
    """`attribute BETWEEN low AND high`, both included."""

    attribute: str
    low: Constant
    high: Constant


@dataclass(frozen=True, slots=True)
class In:
    """`attribute IN (values)`, in the order in which they were written."""

    attribute: str
    values: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """`attribute LIKE pattern`: `%` any text, `_` one character, a backslash: the next is plain."""

    attribute: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Regular:
    """`attribute RLIKE pattern`: RE2 finds the pattern in it; or ILIKE: LIKE, whatever capitals."""

    attribute: str
    syntax: Literal["ILIKE", "RLIKE"]
    pattern: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """`attribute IS NULL`: the event does not have it."""

    attribute: str


@dataclass(frozen=True, slots=True)
class Has:
    """`has_all(attribute, words…)` or, with *every* false, `has_any(attribute, words…)`.

    A word that folds to several terms wants all of them.
    """

    attribute: str
    words: tuple[str, ...]
    every: bool


@dataclass(frozen=True, slots=True)
class HasPhrase:
    """`has_phrase(attribute, phrase)`: the terms of the phrase one after another."""

    attribute: str
    phrase: str


@dataclass(frozen=True, slots=True)
class Overlaps:
    """`array_contains(attribute, value)`, or `arrays_overlap(attribute, array(values…))`.

    The set has at least one of the values, strings or numbers.
    """

    attribute: str
    values: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class Within:
    """The attribute's point lies in the region (`ST_Within`, `ST_DWithin`, `ST_Contains`)."""

    attribute: str
    region: Region


Predicate = (
    Comparison | Between | In | Like | Regular | IsNull | Has | HasPhrase | Overlaps | Within
)


@dataclass(frozen=True, slots=True)
class Weighted:
    """`weight(predicate, weight)`; a predicate without one counts 1."""

    predicate: Predicate
    weight: float


@dataclass(frozen=True, slots=True)
class Truth:
    """`TRUE` or `FALSE`."""

    value: bool


@dataclass(frozen=True, slots=True)
class Not:
    """`NOT child`."""

    child: Expression


@dataclass(frozen=True, slots=True)
class And:
    """All of two or more children; never directly inside another `And`."""

    children: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of two or more children; never directly inside another `Or`."""

    children: tuple[Expression, ...]


Expression = Predicate | Weighted | Truth | Not | And | Or
