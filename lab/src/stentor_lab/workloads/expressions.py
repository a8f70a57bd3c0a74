"""Weighted Boolean expressions over hundreds of dimensions: the workload of the BE*-Tree.

Events are drawn from a pool of profiles: each has values for some of many attributes, near one of a
few points to an attribute. A subscription is made for one profile: it asks for short intervals
around some of its values. So each event is wanted by about one in as many subscriptions as there
are profiles, which sets the share of matches. Weights are the rarer attributes' larger ones.

Paper: BE*-Tree, Table III and section VII (100K–1M expressions, 50–1400 dimensions, cardinality
up to 250M, 4 clusters of size 100, 8 predicates, 15 values, a match share of 0.01–9 %, uniform and
Zipf). Its generator is not public; the pool is our way to a given share of matches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    SubscriptionColumns,
    empty,
    read_only_columns,
)
from stentor.encoding.events import encode_attribute_columns
from stentor.encoding.kinds import INTERVAL
from stentor.errors import SettingsError
from stentor.model import Schema
from stentor.model.values.time import NEVER
from stentor_lab.workloads.conjunctions import at_once, numbers
from stentor_lab.workloads.distributions import Booleans, random_of, rounded, weighted_choices

#: Of weights: as many as their texts have.
DECIMALS: Final = 6
#: A profile's weight of an attribute is about this share of the attribute's own, give or take.
MEAN_SHARE, SHARE_DEVIATION = 0.8, 0.05

_PROFILES, _SUBSCRIPTIONS, _EVENTS = range(3)


class Profiles(NamedTuple):
    """What events have: one row for each profile, attributes ascending."""

    attribute: Int64  # (profiles, values)
    value: Float64  # (profiles, values)


@dataclass(frozen=True)
class Expressions:
    """The recipe; *alpha* is the exponent of the attributes' popularity, 0 where all are alike."""

    seed: int = 1
    dimensions: int = 400
    cardinality: int = 250_000_000
    clusters: int = 4
    cluster_size: int = 100
    predicates: int = 8
    values: int = 15
    match_share: float = 0.001
    alpha: float = 0.0
    longest: int = 10
    weighted_events: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.predicates <= self.values <= self.dimensions:
            raise SettingsError(
                f"{self.predicates} predicates, {self.values} values, {self.dimensions} "
                "dimensions; expected as many predicates as values at most, and these as dimensions"
            )
        if not 0.0 < self.match_share <= 1.0:
            raise SettingsError(f"a match share of {self.match_share}; take more than 0, at most 1")

    @property
    def attributes(self) -> list[str]:
        """The names of the attributes, in order."""
        width = len(str(self.dimensions - 1))
        return [f"a{number:0{width}}" for number in range(self.dimensions)]

    @property
    def schema(self) -> Schema:
        """The schema of both; a fresh one each time."""
        return Schema.declare(dict.fromkeys(self.attributes, "number"))

    def subscriptions(self, count: int) -> ExpressionSubscriptions:
        """*count* subscriptions. Cost: about two microseconds each."""
        random = random_of(self.seed, _SUBSCRIPTIONS)
        profile = random.integers(0, len(self._profiles.value), count)[:, np.newaxis]
        keys = random.random((count, self.values), np.float32)
        asked = np.sort(np.argpartition(keys, self.predicates - 1)[:, : self.predicates], axis=1)
        value = self._profiles.value[profile, asked]
        before, after = random.integers(0, self.longest // 2 + 1, (2, *value.shape))
        attribute = self._profiles.attribute[profile, asked]
        return ExpressionSubscriptions(
            self,
            attribute,
            np.maximum(value - before, 0.0),
            np.minimum(value + after, self.cardinality - 1.0),
            self._weights(random, attribute),
        )

    def events(self, count: int) -> ExpressionEvents:
        """*count* events."""
        random = random_of(self.seed, _EVENTS)
        profile = random.integers(0, len(self._profiles.value), count)
        attribute, value = self._profiles.attribute[profile], self._profiles.value[profile]
        weight = self._weights(random, attribute) if self.weighted_events else None
        return ExpressionEvents(self, attribute, value, weight)

    @cached_property
    def _profiles(self) -> Profiles:
        random = random_of(self.seed, _PROFILES)
        count = round(1.0 / self.match_share)
        popularity: Float64 = np.arange(1.0, self.dimensions + 1.0) ** -self.alpha
        has = weighted_choices(random, popularity, np.full(count, self.values))
        attribute = np.nonzero(has)[1].reshape(count, self.values)
        if not self.clusters:
            value = random.integers(0, self.cardinality, attribute.shape)
        else:
            middle = random.integers(0, self.cardinality, (self.dimensions, self.clusters))
            chosen = random.integers(0, self.clusters, attribute.shape)
            near = random.integers(-self.cluster_size, self.cluster_size + 1, attribute.shape)
            value = np.clip(middle[attribute, chosen] + near, 0, self.cardinality - 1)
        return Profiles(attribute, value.astype(np.float64))

    @cached_property
    def _rarity(self) -> Float64:
        """Of each attribute, its inverse frequency; 1 for the rarest."""
        frequency = np.bincount(self._profiles.attribute.reshape(-1), minlength=self.dimensions)
        used = np.maximum(frequency, 1)
        rarity: Float64 = used.min() / used
        return rarity

    def _weights(self, random: np.random.Generator, attribute: Int64) -> Float64:
        """Weights by inverse frequency, below it as a rule: the paper's max must be a min."""
        rarity = self._rarity[attribute]
        drawn = random.normal(MEAN_SHARE * rarity, SHARE_DEVIATION * rarity)
        return rounded(np.clip(drawn, 0.0, rarity), DECIMALS)


@dataclass(frozen=True)
class ExpressionSubscriptions:
    """Drawn subscriptions, in two forms that mean the same."""

    recipe: Expressions
    attribute: Int64  # (subscriptions, predicates) ascending
    low: Float64  # (subscriptions, predicates)
    high: Float64  # (subscriptions, predicates)
    weight: Float64  # (subscriptions, predicates)

    def __len__(self) -> int:
        return len(self.attribute)

    def columns(self) -> SubscriptionColumns:
        """What `encode_subscriptions` gives for `texts()`."""
        count, each = self.attribute.shape
        return read_only_columns(
            empty(SubscriptionColumns)._replace(
                alternative_start=np.arange(count + 1),
                predicate_start=np.arange(count + 1) * each,
                kind=np.full(count * each, INTERVAL, np.uint8),
                attribute=self.attribute.reshape(-1).astype(np.int32),
                low=self.low.reshape(-1),
                high=self.high.reshape(-1),
                weight=self.weight.reshape(-1),
                operand_start=np.zeros(count * each, np.int32),
                operand_stop=np.zeros(count * each, np.int32),
                position=np.full(2 * count, np.nan),
                until=np.full(count, NEVER),
            )
        )

    def texts(self) -> Iterator[str]:
        """Each subscription as the text of its expression."""
        names = self.recipe.attributes
        for row in zip(self.attribute, self.low, self.high, self.weight, strict=True):
            yield " AND ".join(
                f"weight({names[attribute]} BETWEEN {low:.0f} AND {high:.0f}, "
                f"{weight:.{DECIMALS}f})"
                for attribute, low, high, weight in zip(*row, strict=True)
            )


@dataclass(frozen=True)
class ExpressionEvents:
    """Drawn events, in three forms that mean the same."""

    recipe: Expressions
    attribute: Int64  # (events, values) ascending
    value: Float64  # (events, values)
    weight: Float64 | None  # (events, values)

    def __len__(self) -> int:
        return len(self.attribute)

    def columns(self) -> EventColumns:
        """What `encode_events` gives for `records()`."""
        attributes = [numbers(name, value, value, valid) for name, value, valid in self._by_name()]
        columns = encode_attribute_columns(attributes, at_once(len(self)), self.recipe.schema)
        if self.weight is not None:
            columns = columns._replace(
                weight_start=columns.value_start,
                weight_attribute=columns.attribute,
                weight=self.weight.reshape(-1),
            )
        return read_only_columns(columns)

    def records(self) -> Iterator[dict[str, Any]]:
        """Each event as a dict, as JSON would have it."""
        names = self.recipe.attributes
        for row, (attribute, value) in enumerate(zip(self.attribute, self.value, strict=True)):
            asked = [names[position] for position in attribute]
            record = {"id": f"e{row}", **dict(zip(asked, map(int, value), strict=True))}
            if self.weight is not None:
                record["weights"] = dict(zip(asked, self.weight[row].tolist(), strict=True))
            yield record

    def table(self) -> pa.Table:
        """The events as an Arrow table: a column for each attribute, null where it is missing."""
        columns = {name: pa.array(value, mask=~valid) for name, value, valid in self._by_name()}
        table = pa.table({"id": [f"e{row}" for row in range(len(self))], **columns})
        if self.weight is None:
            return table
        weights = [list(record["weights"].items()) for record in self.records()]
        kind = pa.map_(pa.string(), pa.float64())
        return table.append_column("weights", pa.array(weights, kind))

    def _by_name(self) -> Iterator[tuple[str, Float64, Booleans]]:
        """Each attribute's name, its values and which events have one."""
        shape = len(self), self.recipe.dimensions
        valid, value = np.zeros(shape, np.bool_), np.zeros(shape)
        rows = np.arange(len(self))[:, np.newaxis]
        valid[rows, self.attribute], value[rows, self.attribute] = True, self.value
        for position, name in enumerate(self.recipe.attributes):
            yield name, value[:, position], valid[:, position]
