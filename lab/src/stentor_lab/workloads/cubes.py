"""Ranges of one size on each attribute: the workload of the MICS paper.

A subscription's lower bounds are drawn, uniformly or by Zipf's law, and its size is added to them;
a publication is a point. Paper: section 7 (domains of 256, size 4, 2 to 4 dimensions).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from stentor.encoding.columns import Int64
from stentor.errors import SettingsError
from stentor.model import Schema
from stentor_lab.workloads.distributions import random_of, zipf_ranks

#: Values are whole numbers below this.
DOMAIN: Final = 256
DISTRIBUTIONS: Final = ("uniform", "zipf")
_SUBSCRIPTIONS, _EVENTS = range(2)


@dataclass(frozen=True)
class Cubes:
    """The recipe; a subscription's size is one of the first *sizes* multiples of *size*."""

    seed: int = 1
    distribution: str = "uniform"
    dimensions: int = 2
    size: int = 4
    sizes: int = 1

    def __post_init__(self) -> None:
        if self.distribution not in DISTRIBUTIONS:
            raise SettingsError(
                f"no distribution {self.distribution!r}; there are {', '.join(DISTRIBUTIONS)}"
            )
        if not 1 <= self.dimensions <= 16 or not 1 <= self.size * self.sizes < DOMAIN:
            raise SettingsError(f"take 1 to 16 dimensions, and sizes below {DOMAIN}")

    @property
    def schema(self) -> Schema:
        """The schema of the attributes; a fresh one each time."""
        return Schema.declare(dict.fromkeys(self.names, "number"))

    @property
    def names(self) -> list[str]:
        """The attributes' names."""
        return [f"x{number}" for number in range(self.dimensions)]

    def texts(self, count: int) -> Iterator[str]:
        """*count* expressions."""
        random = random_of(self.seed, _SUBSCRIPTIONS)
        lows = self._drawn(_SUBSCRIPTIONS, count)
        sizes = self.size * random.integers(1, self.sizes + 1, count)
        for low, size in zip(lows.tolist(), sizes.tolist(), strict=True):
            yield " AND ".join(
                f"{name} BETWEEN {start} AND {start + size - 1}"
                for name, start in zip(self.names, low, strict=True)
            )

    def events(self, count: int) -> Iterator[dict[str, Any]]:
        """*count* publications."""
        for number, point in enumerate(self._drawn(_EVENTS, count).tolist()):
            yield {"id": f"e{number}", **dict(zip(self.names, point, strict=True))}

    def _drawn(self, stream: int, count: int) -> Int64:
        random = random_of(self.seed, stream, 1)
        shape = (count, self.dimensions)
        if self.distribution == "zipf":
            return zipf_ranks(random, shape, DOMAIN)
        return random.integers(0, DOMAIN, shape)
