"""What somebody beyond a link wants: a subscription without its end, or ranges of a space."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.hilbert import Ranges
from stentor.encoding.subscriptions import Standing, encode_subscriptions
from stentor.index.mics.space import Space
from stentor.language.limits import ANY_SIZE
from stentor.language.normalise import normalise
from stentor.language.uses import needs_position
from stentor.model import Point, Schema, Subscription

#: Ranges of numbers, both ends included.
Pairs = tuple[tuple[int, int], ...]


class Interest:
    """What somebody beyond wants: a name that is unique in the overlay, and a subscription.

    It has no end: a neighbour's time may lag behind or run ahead, and where a wide subscription
    ended there before the narrow ones that it covers are told, events would be lost. Its home
    withdraws it.
    """

    __slots__ = ("name", "subscription")

    def __init__(self, name: str, subscription: Subscription) -> None:
        expression = subscription.expression
        at = subscription.at if needs_position(expression) else None
        self.name = name
        self.subscription = Subscription(name, expression, at)

    def moved(self, at: Point) -> Interest:
        """The same interest from another place."""
        return Interest(self.name, Subscription(self.name, self.subscription.expression, at))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Interest) and self.subscription == other.subscription

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<Interest {self.name!r}>"


@dataclass(frozen=True, slots=True)
class RangeInterest:
    """What lies in one of *ranges*, which hold all that somebody beyond wants, and maybe more."""

    name: str
    ranges: Pairs


AnyInterest = Interest | RangeInterest


class Interests:
    """Interests with different names that are told together: encoded once, for all links."""

    def __init__(
        self, interests: Iterable[AnyInterest], schema: Schema, space: Space | None
    ) -> None:
        self.by_name = {interest.name: interest for interest in interests}
        self._schema, self._space = schema, space
        self._projected: dict[int, tuple[list[str], Ranges]] = {}

    @cached_property
    def exact(self) -> dict[str, Interest]:
        """Those that are subscriptions."""
        return {name: one for name, one in self.by_name.items() if isinstance(one, Interest)}

    @cached_property
    def ranged(self) -> dict[str, RangeInterest]:
        """Those that are ranges."""
        return {name: one for name, one in self.by_name.items() if isinstance(one, RangeInterest)}

    @cached_property
    def columns(self) -> SubscriptionColumns:
        """A row for each that is exact; the schema must know their attributes."""
        subscriptions = (interest.subscription for interest in self.exact.values())
        standing = [Standing(normalise(one.expression, ANY_SIZE), one.at) for one in subscriptions]
        return encode_subscriptions(standing, self._schema)

    def projected(self, most: int) -> tuple[list[str], Ranges]:
        """All names, and the ranges of each: of a subscription about *most* an alternative."""
        assert self._space is not None, "who asks for ranges has a space"
        if most not in self._projected:
            parts = []
            if self.exact:
                projection = self._space.on(self._schema)
                parts.append(projection.of_subscriptions(self.columns, most))
            if self.ranged:
                parts.append(ranges_of(one.ranges for one in self.ranged.values()))
            self._projected[most] = [*self.exact, *self.ranged], _joined(parts)
        return self._projected[most]


def ranges_of(each: Iterable[Pairs]) -> Ranges:
    """*each* item's ranges as arrays."""
    items = list(each)
    starts = np.cumsum([0, *map(len, items)])
    ends = np.array([pair for item in items for pair in item], np.uint64).reshape(-1, 2)
    return Ranges(starts, np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1]))


def _joined(parts: list[Ranges]) -> Ranges:
    """The items of all *parts*, one after the other."""
    starts, before = [np.zeros(1, np.int64)], 0
    for part in parts:
        starts.append(before + part.starts[1:])
        before += len(part.low)
    low, high = ([np.zeros(0, np.uint64), *(part[end] for part in parts)] for end in (1, 2))
    return Ranges(np.concatenate(starts), np.concatenate(low), np.concatenate(high))
