"""What a subscription asks for on the map: the regions of its predicates, and how they are told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_never

from stentor.language.printer import to_text
from stentor.model import Expression, Point, Subscription
from stentor.model.expression import And, Not, Or, Weighted, Within
from stentor.model.region import Box, Circle, Polygon
from stentor.model.values.time import time_text


def subscription_json(subscription: Subscription, client: str) -> dict[str, Any]:
    """*subscription* as its owner is told."""
    at = subscription.at
    return {
        "id": subscription.id.partition("/")[2],
        "expression": to_text(subscription.expression),
        "at": None if at is None else [at.x, at.y],
        "until": time_text(subscription.until),
        "client": client,
        "regions": regions_of(subscription.expression, at),
    }


def regions_of(expression: Expression, at: Point | None) -> list[dict[str, Any]]:
    """The regions that *expression* names, in their order; a subscriber stands *at*."""
    return [
        {**_region(leaf.region, at), "attribute": leaf.attribute, "negated": negated}
        for leaf, negated in _withins(expression)
    ]


def _withins(expression: Expression) -> Iterator[tuple[Within, bool]]:
    """The predicates on locations, in the order of the text, and whether each is negated."""
    waiting = [(expression, False)]
    while waiting:
        node, negated = waiting.pop()
        match node:
            case And(children) | Or(children):
                waiting += [(child, negated) for child in reversed(children)]
            case Not(child):
                waiting.append((child, not negated))
            case Weighted(predicate):
                waiting.append((predicate, negated))
            case Within():
                yield node, negated


def _region(region: Box | Circle | Polygon, at: Point | None) -> dict[str, Any]:
    match region:
        case Circle(centre, radius):
            where = at if centre is None else centre
            response = None if where is None else [where.x, where.y]
            return {"kind": "circle", "centre": response, "radius": radius, "here": centre is None}
        case Box(west, south, east, north):
            return {"kind": "box", "west": west, "south": south, "east": east, "north": north}
        case Polygon():
            ring_lists = [[[point.x, point.y] for point in ring] for ring in region.rings]
            return {"kind": "polygon", "rings": ring_lists}
        case _:
            assert_never(region)
