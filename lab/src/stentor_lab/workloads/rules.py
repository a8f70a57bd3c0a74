"""Rules: a few tests on some of many attributes of whole numbers, all alike; no locations.

Every attribute is as likely as any other, values are drawn uniformly, and a test leaves a share of
the values: one alone by equality, or an interval of neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import EventColumns, Float64, Int32, Int64, SubscriptionColumns
from stentor.encoding.events import encode_attribute_columns
from stentor.encoding.kinds import INTERVAL
from stentor.errors import SettingsError
from stentor.model import Schema
from stentor_lab.workloads.conjunctions import Pairs, Predicates, at_once, conjunctions, numbers
from stentor_lab.workloads.distributions import Booleans, Random, random_of, weighted_choices

_SUBSCRIPTIONS, _EVENTS = range(2)
_NO_PAIRS: Final = Pairs(np.empty((0, 0)), np.empty((0, 0)))


@dataclass(frozen=True)
class Rules:
    """The recipe: *predicates* of so many *attributes*, each of whose tests spans *width* values.

    An event has *values* attributes, of *domain* values each.
    """

    seed: int = 1
    predicates: int = 4
    attributes: int = 20
    values: int = 20
    domain: int = 10
    width: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.predicates <= self.values <= self.attributes:
            raise SettingsError(
                f"{self.predicates} predicates, {self.values} values, {self.attributes} "
                "attributes; expected as many predicates as values at most, and these as attributes"
            )
        if not 1 <= self.width <= self.domain:
            raise SettingsError(f"tests that span {self.width} of {self.domain} values")

    @property
    def names(self) -> list[str]:
        """The names of the attributes, in order."""
        return [f"a{number:03}" for number in range(self.attributes)]

    @property
    def schema(self) -> Schema:
        """The schema of both; a fresh one each time."""
        return Schema.declare(dict.fromkeys(self.names, "number"))

    def subscriptions(self, count: int) -> RuleSubscriptions:
        """*count* subscriptions."""
        random = random_of(self.seed, _SUBSCRIPTIONS)
        chosen = self._chosen(random, count, self.predicates)
        attribute = np.nonzero(chosen)[1].astype(np.int32).reshape(count, self.predicates)
        low = random.integers(0, self.domain - self.width + 1, attribute.shape)
        return RuleSubscriptions(self, attribute, low)

    def events(self, count: int) -> RuleEvents:
        """*count* events."""
        random = random_of(self.seed, _EVENTS)
        valid = self._chosen(random, count, self.values)
        value = random.integers(0, self.domain, valid.shape).astype(np.float64)
        return RuleEvents(self, valid, value)

    def _chosen(self, random: Random, count: int, each: int) -> Booleans:
        """So many attributes of *each*, all as likely."""
        return weighted_choices(random, np.ones(self.attributes), np.full(count, each))


@dataclass(frozen=True)
class RuleSubscriptions:
    """Drawn subscriptions, in two forms that mean the same."""

    recipe: Rules
    attribute: Int32  # (subscriptions, predicates) ascending
    low: Int64  # (subscriptions, predicates)

    def __len__(self) -> int:
        return len(self.attribute)

    def columns(self) -> SubscriptionColumns:
        """What `encode_subscriptions` gives for `texts()`."""
        predicates = Predicates.unbounded(*self.attribute.shape)
        predicates.kind[:] = INTERVAL
        predicates.attribute[:] = self.attribute
        predicates.low[:] = self.low
        predicates.high[:] = self.low + self.recipe.width - 1
        return conjunctions(predicates, _NO_PAIRS)

    def texts(self) -> Iterator[str]:
        """Each subscription as the text of its expression."""
        names, beyond = self.recipe.names, self.recipe.width - 1
        for attributes, lows in zip(self.attribute.tolist(), self.low.tolist(), strict=True):
            yield " AND ".join(
                f"{names[attribute]} BETWEEN {low} AND {low + beyond}"
                for attribute, low in zip(attributes, lows, strict=True)
            )


@dataclass(frozen=True)
class RuleEvents:
    """Drawn events, in three forms that mean the same."""

    recipe: Rules
    valid: Booleans  # (events, attributes)
    value: Float64  # (events, attributes)

    def __len__(self) -> int:
        return len(self.value)

    def columns(self) -> EventColumns:
        """What `encode_events` gives for `records()`."""
        by_name = zip(self.recipe.names, self.value.T, self.valid.T, strict=True)
        attributes = [numbers(name, value, value, valid) for name, value, valid in by_name]
        return encode_attribute_columns(attributes, at_once(len(self)), self.recipe.schema)

    def records(self) -> Iterator[dict[str, Any]]:
        """Each event as a dict, as JSON would have it."""
        for row, (valid, value) in enumerate(zip(self.valid, self.value, strict=True)):
            has = np.flatnonzero(valid).tolist()
            yield {"id": f"e{row}"} | {self.recipe.names[one]: int(value[one]) for one in has}

    def table(self) -> pa.Table:
        """The events as an Arrow table: a column for each attribute, null where it is missing."""
        by_name = zip(self.recipe.names, self.value.T, self.valid.T, strict=True)
        columns = {name: pa.array(value, mask=~valid) for name, value, valid in by_name}
        return pa.table({"id": [f"e{row}" for row in range(len(self))], **columns})
