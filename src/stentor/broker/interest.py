"""A subscription as links know it: without its end, which only its home broker watches."""

from __future__ import annotations

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

    @cached_property
    def columns(self) -> SubscriptionColumns:
        """Its one row of columns, encoded once for all links."""
        form = normalise(self.subscription.expression, ANY_SIZE)
        return encode_subscriptions([Standing(form, self.subscription.at)], self._schema)

    def moved(self, at: Point) -> Interest:
        """The same interest from another place."""
        return Interest(self.name, replace(self.subscription, at=at), self._schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Interest) and self.subscription == other.subscription

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<Interest {self.name!r}>"
