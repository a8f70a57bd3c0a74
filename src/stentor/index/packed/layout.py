"""Alternatives in their homes, built at once: what the index has several of while it grows."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Self

import numpy as np

from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns
from stentor.index.packed.blocks import Blocks
from stentor.index.packed.cost_model import choose_homes
from stentor.index.packed.homes import Found, Home, HomeArrays, between
from stentor.index.packed.lists import Lists
from stentor.index.packed.nodes import Nodes
from stentor.index.packed.settings import COST

#: Said of what is saved: of another layout it is built anew.
LAYOUT: Final = 2

#: The homes by name; a segment has those that hold something.
HOMES: Final[dict[str, type[Home]]] = {"lists": Lists, "nodes": Nodes, "blocks": Blocks}
_HELD: Final = "alternatives"


class PackedSegment(NamedTuple):
    """Homes, and the alternatives that each was built of."""

    homes: tuple[Home, ...]
    held: tuple[Int64, ...]  # ascending

    @classmethod
    def build(cls, columns: SubscriptionColumns, alternatives: Int64, home: str = COST) -> Self:
        """A segment of *alternatives* (ascending), each in the home that suits it, or in *home*."""
        chosen = choose_homes(columns, alternatives, home)
        homes = {name: some for name, some in chosen.items() if len(some)}
        built = tuple(HOMES[name].build(columns, some) for name, some in homes.items())
        return cls(built, tuple(homes.values()))

    @property
    def size(self) -> int:
        """How many alternatives it was built of."""
        return sum(len(one) for one in self.held)

    @property
    def alternatives(self) -> Int64:
        """Those that it was built of, ascending."""
        return np.sort(np.concatenate([np.zeros(0, np.int64), *self.held]))

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self.held) + sum(home.nbytes for home in self.homes)

    @property
    def nodes(self) -> tuple[Nodes, ...]:
        """The homes that find the best by themselves."""
        return tuple(home for home in self.homes if isinstance(home, Nodes))

    def match(
        self, events: EventColumns, found: Found, count: int, *, with_nodes: bool = True
    ) -> int:
        """Append the pairs of *events* after the first *count*; how many there are then."""
        for home in self.homes:
            if with_nodes or not isinstance(home, Nodes):
                count += home.match(events, between(found, count, None))
        return count

    def match_one(self, events: EventColumns, found: Found, count: int) -> int:
        """`match` for the first of *events*."""
        for home in self.homes:
            count += home.match_one(events, between(found, count, None))
        return count

    def remove(self, alternatives: Int64) -> None:
        """Remove *alternatives*, where they are here."""
        for home in self.homes:
            home.remove(alternatives)

    def here(self, alternatives: Int64) -> list[Int64]:
        """Those of *alternatives* (ascending) that each home was built of."""
        found = [np.zeros(0, np.int64)] * len(self.held)
        for number, held in enumerate(self.held):
            if len(held):
                at = np.minimum(np.searchsorted(held, alternatives), len(held) - 1)
                found[number] = alternatives[held[at] == alternatives]
        return found

    def move(self, columns: SubscriptionColumns, alternatives: Int64) -> Int64:
        """Move those of *alternatives* (ascending) that are here; those that still are."""
        here = zip(self.homes, self.here(alternatives), strict=True)
        placed = [home.move(columns, some) for home, some in here if len(some)]
        return np.concatenate([np.zeros(0, np.int64), *placed])

    def arrays(self) -> HomeArrays:
        """All homes' arrays, to be written to files."""
        named: HomeArrays = {}
        for home, held in zip(self.homes, self.held, strict=True):
            named |= {f"{home.name}.{name}": array for name, array in home.arrays().items()}
            named[f"{home.name}.{_HELD}"] = held
        return named

    @classmethod
    def over(cls, arrays: HomeArrays) -> Self:
        """A read-only segment over *arrays*, of which nothing is copied."""
        homes, held = [], []
        for name, kind in HOMES.items():
            own = {
                key.removeprefix(f"{name}."): np.asarray(array)
                for key, array in arrays.items()
                if key.startswith(f"{name}.")
            }
            if own:
                held.append(own.pop(_HELD))
                homes.append(kind.over(own))
        return cls(tuple(homes), tuple(held))

    def stats(self) -> dict[str, Any]:
        """Figures for people, by home."""
        return {home.name: home.stats() for home in self.homes}
