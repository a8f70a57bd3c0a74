"""What a broker knows of a neighbour."""

from __future__ import annotations

from stentor.broker.interest import Interest
from stentor.broker.messages import Greeting
from stentor.broker.policies import Policy


class Link:
    """A neighbour: what it wants, what it was told, which live events it is known to hold."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.wants: dict[str, Interest] = {}  # the subscription table of this neighbour
        self.holds: set[str] = set()  # live events that went or came over this link
        self.up = False

    def greeting(self, held: frozenset[str], time: int) -> Greeting:
        """What to say when the link comes up; until the neighbour says it holds nothing."""
        self.up, self.holds = True, set()
        told = tuple(interest.subscription for interest in self.policy.told.values())
        return Greeting(told, held, time)
