"""What a subscription that matches scores, from what each of its attributes contributes.

An attribute contributes the weights that the subscription gives it times the event's weight of it.
How contributions are put together is a choice. Any way will do that grows with each contribution
and never exceeds their sum: then the bounds by which indexes prune hold.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from stentor.errors import SettingsError

#: Of a predicate, and of an attribute of an event. The product of two, summed over all predicates
#: that an expression can have, is far from the largest double: no score overflows.
MOST_WEIGHT: Final = 1e100


class Scoring(IntEnum):
    """Ways to put contributions together; to add one, give `combined` a branch for it."""

    SUM = 0
    """All of them count: the paper's weighted sum, and the default."""
    MAX = 1
    """The largest counts alone."""

    @classmethod
    def named(cls, name: Scoring | str) -> Scoring:
        """The scoring called *name*.

        >>> Scoring.named("max")
        <Scoring.MAX: 1>
        """
        if isinstance(name, Scoring):
            return name
        try:
            return cls[name.upper()]
        except (KeyError, AttributeError, TypeError):
            known = ", ".join(repr(one.name.lower()) for one in cls)
            raise SettingsError(f"no scoring {name!r}; there are {known}") from None


def combined(scoring: int, score: float, contribution: float) -> float:
    """*score*, which begins at 0, with one more *contribution*, which is at least 0."""
    if scoring == 1:
        return max(score, contribution)
    return score + contribution
