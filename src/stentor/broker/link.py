"""What a broker knows of a neighbour."""

from __future__ import annotations

from stentor.broker.interest import AnyInterest, RangeInterest, ranges_of
from stentor.broker.merging import MergedRanges
from stentor.broker.messages import Greeting
from stentor.broker.policies import Policy
from stentor.index.mics.space import Space


class Link:
    """A neighbour: what it wants, what it was told, which live events it is known to hold."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.wants: dict[str, AnyInterest] = {}  # the subscription table of this neighbour
        self.ranges = MergedRanges()  # of those that are ranges
        self.holds: set[str] = set()  # live events that went or came over this link
        self.up = False

    def want(self, interest: AnyInterest) -> None:
        """Let the neighbour want *interest*, in the place of what it wanted under that name."""
        name = interest.name
        self.wants[name] = interest
        if isinstance(interest, RangeInterest):
            self.ranges.put([name], ranges_of([interest.ranges]))
        elif name in self.ranges:
            self.ranges.drop(name)

    def forget(self, name: str) -> None:
        """Let the neighbour want nothing under *name*."""
        if isinstance(self.wants.pop(name), RangeInterest):
            self.ranges.drop(name)

    def greeting(self, held: frozenset[str], time: int, space: Space | None) -> Greeting:
        """What to say when the link comes up; until the neighbour says it holds nothing."""
        self.up, self.holds = True, set()
        return Greeting(tuple(self.policy.told.values()), held, time, space)

    def check(self) -> None:
        """Assert that the ranges are those of what is wanted, and what the policy asserts."""
        self.policy.check()
        self.ranges.check()
        ranged = {name for name, one in self.wants.items() if isinstance(one, RangeInterest)}
        assert set(self.ranges) == ranged
