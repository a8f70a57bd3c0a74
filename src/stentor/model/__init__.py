"""What Stentor talks about: schemas, events, regions, predicates, subscriptions, matches.

Frozen dataclasses and the standard library only; everything else translates from or to these.
"""

from stentor.model.expression import (
    HERE,
    And,
    Between,
    Comparison,
    Expression,
    Has,
    HasPhrase,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Overlaps,
    Predicate,
    Regular,
    Truth,
    Weighted,
    Within,
)
from stentor.model.kind import Kind
from stentor.model.record import Changes, Event, EventChanges, Match, Subscription
from stentor.model.region import Box, Circle, Polygon, Region
from stentor.model.schema import Schema
from stentor.model.scoring import Scoring
from stentor.model.values import Constant, OneOf, Point, Range, Set, Value

__all__ = [
    "HERE",
    "And",
    "Between",
    "Box",
    "Changes",
    "Circle",
    "Comparison",
    "Constant",
    "Event",
    "EventChanges",
    "Expression",
    "Has",
    "HasPhrase",
    "In",
    "IsNull",
    "Kind",
    "Like",
    "Match",
    "Not",
    "OneOf",
    "Or",
    "Overlaps",
    "Point",
    "Polygon",
    "Predicate",
    "Range",
    "Region",
    "Regular",
    "Schema",
    "Scoring",
    "Set",
    "Subscription",
    "Truth",
    "Value",
    "Weighted",
    "Within",
]
