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
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Truth,
    Weighted,
    Within,
)
from stentor.model.kind import Kind
from stentor.model.record import Changes, Event, Match, Subscription
from stentor.model.region import Box, Circle, Polygon, Region
from stentor.model.schema import Schema
from stentor.model.scoring import Scoring
from stentor.model.values import Constant, Point, Range, Value

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
    "Expression",
    "Has",
    "In",
    "IsNull",
    "Kind",
    "Like",
    "Match",
    "Not",
    "Or",
    "Point",
    "Polygon",
    "Predicate",
    "Range",
    "Region",
    "Schema",
    "Scoring",
    "Subscription",
    "Truth",
    "Value",
    "Weighted",
    "Within",
]
