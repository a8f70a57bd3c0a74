"""A subscription as links know it: without its end, which only its home broker watches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.subscriptions import Standing, encode_subscriptions
from stentor.language.limits import ANY_SIZE
from stentor.language.normalise import normalise
from stentor.language.uses import needs_position
from stentor.model import Point, Schema, Subscription


class Interest:
    """What somebody beyond wants: a name that is unique in the overlay, and a subscription.

    It has no end: a neighbour's time may lag behind or run ahead, and where a wide subscription
    ended there before the narrow ones that it covers are told, events would be lost. Its home
    withdraws it.
    """

    def __init__(self, name: str, subscription: Subscription, schema: Schema) -> None:
        at = subscription.at if needs_position(subscription.expression) else None
        self.name = name
        self.subscription = replace(subscription, id=name, at=at, until=None)
        self._schema = schema

    def moved(self, at: Point) -> Interest:
        """The same interest from another place."""
        return Interest(self.name, replace(self.subscription, at=at), self._schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Interest) and self.subscription == other.subscription

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<Interest {self.name!r}>"


class Interests:
    """Interests with different names that are told together: encoded once, for all links."""

    def __init__(self, interests: Iterable[Interest], schema: Schema) -> None:
        self.by_name = {interest.name: interest for interest in interests}
        self._schema = schema

    @cached_property
    def columns(self) -> SubscriptionColumns:
        """A row for each of them; the schema must know their attributes."""
        subscriptions = (interest.subscription for interest in self.by_name.values())
        standing = [Standing(normalise(one.expression, ANY_SIZE), one.at) for one in subscriptions]
        return encode_subscriptions(standing, self._schema)
