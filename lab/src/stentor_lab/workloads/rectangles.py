"""Rectangles that come and go: the workload of Indexing for Subscription Covering.

A subscription is an interval on each of a few attributes, its ends drawn uniformly. A command is an
unsubscription with probability p, of a random one of those that stand, else a new subscription.

Paper: section V.A (10,000 to 100,000 commands, p = 5 to 40 %, 3 to 8 attributes). It does not say
how wide its domain is; ours has 2^16 values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from stentor.encoding.columns import Float64, Int64, SubscriptionColumns
from stentor.encoding.kinds import INTERVAL
from stentor.errors import SettingsError
from stentor.model import Schema
from stentor_lab.workloads.conjunctions import Pairs, Predicates, conjunctions
from stentor_lab.workloads.distributions import random_of

#: Values are whole numbers below this.
DOMAIN: Final = 1 << 16
MOST_ATTRIBUTES: Final = 16
_RECTANGLES, _COMMANDS = range(2)


class Commands(NamedTuple):
    """What happens: rectangle `rows[i]` subscribes, or ~row unsubscribes; sides by rectangle."""

    rows: Int64  # (commands,)
    low: Float64  # (rectangles, attributes)
    high: Float64  # (rectangles, attributes)


@dataclass(frozen=True)
class Rectangles:
    """The recipe; *unsubscribing* is the paper's p."""

    seed: int = 1
    attributes: int = 5
    unsubscribing: float = 0.15

    def __post_init__(self) -> None:
        if not 1 <= self.attributes <= MOST_ATTRIBUTES:
            raise SettingsError(f"{self.attributes} attributes; take 1 to {MOST_ATTRIBUTES}")
        if not 0.0 <= self.unsubscribing < 0.5:
            raise SettingsError(
                f"{self.unsubscribing} of all commands unsubscribe; take less than half, for "
                "nobody can leave who has not come"
            )

    @property
    def schema(self) -> Schema:
        """The schema of the attributes; a fresh one each time."""
        return Schema.declare(dict.fromkeys(self._names, "number"))

    def commands(self, count: int) -> Commands:
        """*count* commands and the rectangles that they speak of."""
        random = random_of(self.seed, _COMMANDS)
        leaves = random.random(count) < self.unsubscribing
        chosen = random.random(count)
        rows = np.empty(count, np.int64)
        standing: list[int] = []
        arrived = 0
        for command, (leaving, share) in enumerate(
            zip(leaves.tolist(), chosen.tolist(), strict=True)
        ):
            if leaving and standing:
                position = int(share * len(standing))
                standing[position], standing[-1] = standing[-1], standing[position]
                rows[command] = ~standing.pop()
            else:
                rows[command] = arrived
                standing.append(arrived)
                arrived += 1
        sides = random_of(self.seed, _RECTANGLES).integers(0, DOMAIN, (2, arrived, self.attributes))
        return Commands(rows, sides.min(axis=0).astype(float), sides.max(axis=0).astype(float))

    def columns(self, commands: Commands) -> SubscriptionColumns:
        """The rectangles as subscriptions: an interval on each attribute."""
        predicates = Predicates.unbounded(*commands.low.shape)
        predicates.kind[:] = INTERVAL
        predicates.attribute[:] = np.arange(self.attributes)
        predicates.low[:] = commands.low
        predicates.high[:] = commands.high
        nothing = np.zeros((len(commands.low), 0))
        return conjunctions(predicates, Pairs(nothing, nothing))

    @property
    def _names(self) -> list[str]:
        return [f"a{number:02}" for number in range(1, self.attributes + 1)]
