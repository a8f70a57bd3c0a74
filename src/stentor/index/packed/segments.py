"""Alternatives in their homes, built at once: what the index has several of while it grows."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns
from stentor.index.packed.blocks import Blocks
from stentor.index.packed.cost_model import choose_homes
from stentor.index.packed.homes import Found, Home, HomeArrays
from stentor.index.packed.lists import Lists

#: The homes by name; a segment has those that hold something.
#: Said of what is saved: of another layout it is built anew.
LAYOUT = 1

HOMES: dict[str, type[Home]] = {"lists": Lists, "blocks": Blocks}


class Segment(NamedTuple):
    """Homes, and the alternatives that they were built of."""

    homes: tuple[Home, ...]
    alternatives: Int64  # ascending

    @classmethod
    def build(cls, columns: SubscriptionColumns, alternatives: Int64) -> Self:
        """A segment of *alternatives* (ascending), each in the home that suits it."""
        chosen = choose_homes(columns, alternatives)
        homes = (HOMES[name].build(columns, some) for name, some in chosen.items() if len(some))
        return cls(tuple(homes), alternatives)

    @property
    def nbytes(self) -> int:
        return self.alternatives.nbytes + sum(home.nbytes for home in self.homes)

    def match(self, events: EventColumns, found: Found, count: int) -> int:
        """Append the pairs of *events* after the first *count*; how many there are then."""
        for home in self.homes:
            count += home.match(events, _from(found, count))
        return count

    def match_one(self, events: EventColumns, found: Found, count: int) -> int:
        """`match` for the first of *events*."""
        for home in self.homes:
            count += home.match_one(events, _from(found, count) if count else found)
        return count

    def remove(self, alternatives: Int64) -> None:
        """Remove *alternatives*, where they are here."""
        for home in self.homes:
            home.remove(alternatives)

    def arrays(self) -> HomeArrays:
        """All homes' arrays, to be written to files."""
        named: HomeArrays = {"alternatives": self.alternatives}
        for home in self.homes:
            named |= {f"{home.name}.{name}": array for name, array in home.arrays().items()}
        return named

    @classmethod
    def over(cls, arrays: HomeArrays) -> Self:
        """A read-only segment over *arrays*, of which nothing is copied."""
        homes = []
        for name, kind in HOMES.items():
            own = {
                key.removeprefix(f"{name}."): array
                for key, array in arrays.items()
                if key.startswith(f"{name}.")
            }
            if own:
                homes.append(kind.over(own))
        return cls(tuple(homes), np.asarray(arrays["alternatives"]))

    def stats(self) -> dict[str, Any]:
        """Figures for people, by home."""
        return {home.name: home.stats() for home in self.homes}


def _from(found: Found, count: int) -> Found:
    """The part of *found* after the first *count*."""
    return Found(*(array[count:] for array in found))
