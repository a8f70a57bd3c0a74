"""A city's afternoon: an ordered stream of records as JSON has them.

People come with their interests, walk about and leave; shops publish coupons that hold for a while
and offer jobs; some records are wrong. Saturday 16 May 2026 in Saltmere, 11:00 to 18:00: half of
the people are there before noon, everything else is spread evenly over the afternoon.

Memory: some numbers for each person and each shop, however many records follow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from stentor.demo.street import (
    EVENING,
    NOON,
    OPENING,
    PEOPLE_PER_VISITOR,
    Happening,
    Record,
    Street,
)
from stentor.errors import SettingsError

#: The kinds of a declared schema; a learned one comes to the same.
KINDS: Final = {
    "kind": "string",
    "category": "string",
    "shop": "string",
    "district": "string",
    "text": "string",
    "price": "number",
    "discount": "number",
    "role": "string",
    "pay": "number",
    "hours": "number",
    "evenings": "boolean",
    "loc": "point",
}


@dataclass(frozen=True)
class Afternoon:
    """How much happens; *leaving* is a share of the people, *bad* a share of the good records."""

    people: int = 2_000
    shops: int = 150
    events: int = 1_000
    moves: int = 5_000
    leaving: float = 0.1
    bad: float = 0.01
    seed: int = 1

    def __post_init__(self) -> None:
        if self.people < 1 or self.shops < 1:
            raise SettingsError("an afternoon needs at least one person and one shop")
        if min(self.events, self.moves, self.bad) < 0 or not 0 <= self.leaving < 1:
            raise SettingsError(
                "events, moves and the bad share are at least 0; the leaving share is below 1"
            )

    @property
    def happenings(self) -> dict[Happening, int]:
        """How many records there are of each kind."""
        walkers = self.people - self.people // PEOPLE_PER_VISITOR
        leaving = min(int(self.leaving * self.people), walkers - 1)
        good = self.people + self.events + self.moves + leaving
        return {
            "arrive": self.people,
            "publish": self.events,
            "move": self.moves,
            "leave": leaving,
            "fault": round(self.bad * good),
        }

    def __len__(self) -> int:
        return sum(self.happenings.values())

    def records(self) -> Iterator[Record]:
        """The records in order, their times ascending. Cost: about 15 µs each."""
        street = Street(Random(self.seed), self.shops)
        left = self.happenings
        early = math.ceil(self.people / 2)
        for number in range(early):
            yield street.record("arrive", OPENING + (NOON - OPENING) * number / early)
        left["arrive"] -= early
        total = sum(left.values())
        for number in range(total):
            happening = self._next(street, left)
            left[happening] -= 1
            yield street.record(happening, NOON + (EVENING - NOON) * number / total)

    @staticmethod
    def _next(street: Street, left: dict[Happening, int]) -> Happening:
        """What happens next: each of the records that are *left* is as likely as any other."""
        happening = street.random.choices(list(left), weights=list(left.values()))[0]
        # Fewer leave than ever come: where nobody is there, somebody is still to come.
        nobody = not street.walkers and happening in ("move", "leave")
        return "arrive" if nobody else happening
