"""The kinds of predicates in the columns: a closed set, and what is true of each.

The numbers are on disk: none is changed, none is used again, and their order says nothing. Whoever
wants to know whether a kind is about numbers, strings or points asks for its traits: in Python
`traits`, in kernels a bit mask made of them (`is_region(kind)`). A kind that is not known has none.
"""

from __future__ import annotations

import functools
from enum import IntEnum
from typing import Any, Final, Literal, NamedTuple, assert_never

import numpy as np
import numpy.typing as npt

from stentor._jit import kernel_inline
from stentor.model.kind import PredicateWord


class PredicateKind(IntEnum):
    """The kind of a predicate: the low six bits of `SubscriptionColumns.kind`."""

    INTERVAL = 0  # low <= number <= high; of a range, some value
    INTERVALS = 1  # the same for several: pairs (low, high), ascending; low and high: their hull
    MISSING = 2
    PRESENT = 3
    MEMBERSHIP = 4  # strings, by ascending hash
    STRING_INTERVAL = 5  # strings: low, high; string_mark says open, closed or unbounded
    PATTERN = 6  # one string: the pattern
    KEYWORDS = 7  # strings: terms, hashed with their attribute; string_mark ends a group
    BOX = 8  # pairs: (west, east), (south, north); west > east crosses 180°
    CIRCLE = 9  # pairs: (west, east), (south, north) around it, (x, y), (cosine or PLANE, limit)
    OWN_CIRCLE = 10  # a circle around the subscriber: as CIRCLE, then (radius, plane)
    POLYGON = 11  # pairs: (west, east), (south, north), points; NaN ends a ring, with PART a part
    REGULAR = 12  # strings: `ILIKE` or `RLIKE` and the pattern; its table (`language/regular`)
    PHRASE = 13  # strings: terms, hashed with their attribute, in the order of the phrase


#: Beside the NaN that ends a ring: another part of the polygon begins.
PART: Final = 0.0
KIND_MASK: Final = 63
NEGATED: Final = 64  # a flag beside the kind

# The kinds as plain numbers: what kernels take.
INTERVAL: Final = PredicateKind.INTERVAL.value
INTERVALS: Final = PredicateKind.INTERVALS.value
MISSING: Final = PredicateKind.MISSING.value
PRESENT: Final = PredicateKind.PRESENT.value
MEMBERSHIP: Final = PredicateKind.MEMBERSHIP.value
STRING_INTERVAL: Final = PredicateKind.STRING_INTERVAL.value
PATTERN: Final = PredicateKind.PATTERN.value
KEYWORDS: Final = PredicateKind.KEYWORDS.value
BOX: Final = PredicateKind.BOX.value
CIRCLE: Final = PredicateKind.CIRCLE.value
OWN_CIRCLE: Final = PredicateKind.OWN_CIRCLE.value
POLYGON: Final = PredicateKind.POLYGON.value
REGULAR: Final = PredicateKind.REGULAR.value
PHRASE: Final = PredicateKind.PHRASE.value


class Traits(NamedTuple):
    """What is true of a kind."""

    word: PredicateWord  # the file of that name, in each layer, is about it
    about: Literal["number", "string", "point", "any value"]
    operands: Literal["none", "pairs", "strings"]
    least_operands: int
    negatable: bool  # may carry NEGATED


def traits(kind: PredicateKind) -> Traits:
    """What is true of *kind*.

    >>> traits(PredicateKind.OWN_CIRCLE).word
    'circle'
    """
    match kind:
        case PredicateKind.INTERVAL:
            return Traits("comparison", "number", "none", 0, negatable=False)
        case PredicateKind.INTERVALS:
            return Traits("comparison", "number", "pairs", 0, negatable=False)
        case PredicateKind.STRING_INTERVAL:
            return Traits("comparison", "string", "strings", 2, negatable=True)
        case PredicateKind.MEMBERSHIP:
            return Traits("membership", "string", "strings", 0, negatable=True)
        case PredicateKind.PATTERN:
            return Traits("pattern", "string", "strings", 1, negatable=True)
        case PredicateKind.REGULAR:
            return Traits("pattern", "string", "strings", 2, negatable=True)
        case PredicateKind.PHRASE:
            return Traits("keywords", "string", "strings", 2, negatable=True)
        case PredicateKind.KEYWORDS:
            return Traits("keywords", "string", "strings", 0, negatable=True)
        case PredicateKind.BOX:
            return Traits("box", "point", "pairs", 2, negatable=True)
        case PredicateKind.CIRCLE:
            return Traits("circle", "point", "pairs", 4, negatable=True)
        case PredicateKind.OWN_CIRCLE:
            return Traits("circle", "point", "pairs", 5, negatable=True)
        case PredicateKind.POLYGON:
            return Traits("polygon", "point", "pairs", 2, negatable=True)
        case PredicateKind.MISSING | PredicateKind.PRESENT:
            return Traits("null_test", "any value", "none", 0, negatable=False)
    assert_never(kind)


def _mask(*kinds: PredicateKind) -> int:
    return sum(1 << kind for kind in kinds)


# Sets of kinds as bits.
KNOWN: Final = _mask(*PredicateKind)
NUMBERS: Final = _mask(*(kind for kind in PredicateKind if traits(kind).about == "number"))
STRINGS: Final = _mask(*(kind for kind in PredicateKind if traits(kind).about == "string"))
REGIONS: Final = _mask(*(kind for kind in PredicateKind if traits(kind).about == "point"))
CIRCLES: Final = _mask(*(kind for kind in PredicateKind if traits(kind).word == "circle"))
WITH_PAIRS: Final = _mask(*(kind for kind in PredicateKind if traits(kind).operands == "pairs"))
WITH_STRINGS: Final = _mask(*(kind for kind in PredicateKind if traits(kind).operands == "strings"))
NEGATABLE: Final = _mask(*(kind for kind in PredicateKind if traits(kind).negatable))


def is_among(kind: int, kinds: int) -> bool:
    """Whether *kind*, negated or not, is one of the set *kinds*.

    >>> is_among(BOX | NEGATED, REGIONS), is_among(BOX, STRINGS)
    (True, False)
    """
    return kinds >> (kind & KIND_MASK) & 1 == 1


def are_among(kind: npt.NDArray[np.integer[Any]], kinds: int) -> npt.NDArray[np.bool_]:
    """`is_among` for each of many.

    >>> are_among(np.array([INTERVAL, BOX, POLYGON | NEGATED], np.uint8), REGIONS).tolist()
    [False, True, True]
    """
    found: npt.NDArray[np.bool_] = _members(kinds)[kind & KIND_MASK]
    return found


@functools.cache
def _members(kinds: int) -> npt.NDArray[np.bool_]:
    return np.array([is_among(kind, kinds) for kind in range(KIND_MASK + 1)])


@kernel_inline
def is_known(kind: int) -> bool:
    """Whether there is such a kind."""
    return (KNOWN >> (int(kind) & KIND_MASK)) & 1 == 1


@kernel_inline
def is_number_test(kind: int) -> bool:
    """Whether *kind* tests numbers."""
    return (NUMBERS >> (int(kind) & KIND_MASK)) & 1 == 1


@kernel_inline
def is_string_test(kind: int) -> bool:
    """Whether *kind*, negated or not, tests strings or what is in them."""
    return (STRINGS >> (int(kind) & KIND_MASK)) & 1 == 1


@kernel_inline
def is_region(kind: int) -> bool:
    """Whether *kind*, negated or not, tests points; its first two pairs are a box around it."""
    return (REGIONS >> (int(kind) & KIND_MASK)) & 1 == 1


@kernel_inline
def has_pairs(kind: int) -> bool:
    """Whether the operands of *kind*, negated or not, are pairs."""
    return (WITH_PAIRS >> (int(kind) & KIND_MASK)) & 1 == 1


@kernel_inline
def is_circle(kind: int) -> bool:
    """Whether *kind*, negated or not, is a circle, a subscriber's own or not."""
    return (CIRCLES >> (int(kind) & KIND_MASK)) & 1 == 1


@kernel_inline
def is_negated(kind: int) -> bool:
    """Whether *kind* is negated."""
    return (kind & NEGATED) != 0
