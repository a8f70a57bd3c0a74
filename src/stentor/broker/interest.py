"""What somebody beyond a link wants: a subscription without its end, or ranges of a space.

Below it the names that interests go by: ids in one engine, names on links.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.hilbert.ranges import Ranges
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.errors import SettingsError
from stentor.index.mics.space import Space
from stentor.language.limits import ANY_SIZE
from stentor.language.normalise import normalise
from stentor.language.tree import needs_position
from stentor.model import Point, Schema, Subscription
from stentor.model.record import Move, Record, Subscribe, Unsubscribe
from stentor.model.values.labels import EVERY_LABEL
from stentor.model.values.string import describe

#: Ranges of numbers, both ends included.
Pairs = tuple[tuple[int, int], ...]
#: Where a message comes from that no neighbour sent.
CLIENT: Final = ""
#: Separates where a subscription came from and its name.
BETWEEN: Final = "|"


class Interest:
    """What somebody beyond wants: a name that is unique in the overlay, and a subscription.

    It has no end: a neighbour's time may lag behind or run ahead, and where a wide subscription
    ended there before the narrow ones that it covers are announced, events would be lost. Its home
    withdraws it.
    """

    __slots__ = ("fingerprint", "name", "subscription")

    def __init__(self, name: str, subscription: Subscription) -> None:
        expression = subscription.expression
        at = subscription.at if needs_position(expression) else None
        self.name = name
        self.subscription = Subscription(name, expression, at)
        self.fingerprint: tuple[int, int] | None = None  # once it was asked for

    def moved(self, at: Point) -> Interest:
        """The same interest from another location."""
        return Interest(self.name, Subscription(self.name, self.subscription.expression, at))

    def renamed(self, name: str) -> Interest:
        """The same interest under another name."""
        return self if name == self.name else Interest(name, self.subscription)

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

    def renamed(self, name: str) -> RangeInterest:
        """The same interest under another name."""
        return self if name == self.name else RangeInterest(name, self.ranges)


AnyInterest = Interest | RangeInterest


class InterestTable:
    """Interests with different names that are announced together: encoded once, for all links."""

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
        normalised = [
            NormalisedSubscription(normalise(one.expression, ANY_SIZE), one.at)
            for one in subscriptions
        ]
        return encode_subscriptions(normalised, self._schema)

    def projected(self, most: int) -> tuple[list[str], Ranges]:
        """All names, and the ranges of each: of a subscription about *most* an alternative."""
        assert self._space is not None, "who wants ranges has a space"
        if most not in self._projected:
            parts = []
            if self.exact:
                projection = self._space.on(self._schema)
                parts.append(projection.of_subscriptions(self.columns, most))
            if self.ranged:
                parts.append(ranges_of(one.ranges for one in self.ranged.values()))
            self._projected[most] = [*self.exact, *self.ranged], _joined(parts)
        return self._projected[most]


def check_ranges(ranges: Pairs, space: Space | None) -> None:
    """Raise a SettingsError where *ranges* are not of numbers in *space*."""
    if space is None:
        raise SettingsError(
            "ranges of a space that this broker does not have: give all brokers of an overlay "
            "the same `space`"
        )
    last = space.partition.curve.last_number
    if not all(0 <= low <= high <= last for low, high in ranges):
        raise SettingsError(f"ranges beyond 0 … {last}")


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


# Names.


def is_among(name: object, names: Container[object]) -> bool:
    """Whether *name*, which may be anything, is one of *names*."""
    return isinstance(name, str) and name in names


def check_broker_name(name: object) -> None:
    """Refuse what cannot be the name of a broker."""
    if not isinstance(name, str) or not name or BETWEEN in name or "/" in name:
        raise SettingsError(f"a broker's name has neither '|' nor '/', got {describe(name)}")


def check_link(link: object) -> tuple[str, str]:
    """*link*, a pair of names; they are looked up by others."""
    if not isinstance(link, tuple | list) or len(link) != 2:
        raise SettingsError(f"a link is a pair of brokers, got {describe(link)}")
    one, other = link
    check_broker_name(one)
    check_broker_name(other)
    return one, other


def engine_id(source: str, name: str) -> str:
    """The engine's id of what *source* calls *name*."""
    return f"{source}{BETWEEN}{name}"


def source_and_name(key: str) -> tuple[str, str]:
    """Who calls what so."""
    source, _, name = key.partition(BETWEEN)
    return source, name


def with_engine_id(source: str, record: Record) -> Record:
    """*record* as the engine takes it: what *source* calls by a name goes by its key."""
    match record:
        case Subscribe(subscription, time):
            # What a neighbour wants is for whoever is beyond it: each looks at its clients' labels.
            labels = subscription.labels if source == CLIENT else EVERY_LABEL
            key = engine_id(source, subscription.id)
            return Subscribe(replace(subscription, id=key, labels=labels), time)
        case Unsubscribe(name, time):
            return Unsubscribe(engine_id(source, name), time)
        case Move(name, at, time):
            return Move(engine_id(source, name), at, time)
    return record


class Names:
    """The names by which links are announced what *source* calls a name: each is one interest's.

    It is the source's own name wherever that is free. While a tree changes, or where a neighbour
    is wrong, two sources may have the same; then neither ends what is the other's.
    """

    def __init__(self) -> None:
        self._taken: dict[str, tuple[str, str]] = {}
        self._others: dict[tuple[str, str], str] = {}  # of those whose own name was taken

    def of(self, source: str, name: str) -> str:
        """The name of what *source* calls *name*, taken from now on."""
        own = source, name
        found = self._others.get(own, name)
        while self._taken.setdefault(found, own) != own:
            found = self._others[own] = engine_id(source, found)
        return found

    def free(self, source: str, name: str) -> str:
        """The name that what *source* calls *name* had, free from now on."""
        found = self.of(source, name)
        del self._taken[found]
        self._others.pop((source, name), None)
        return found
