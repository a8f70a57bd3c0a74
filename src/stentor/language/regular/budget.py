"""What the tables of one expression take together: many small patterns weigh as one large one."""

from __future__ import annotations

from stentor.errors import LimitError
from stentor.language.regular.automaton import compiled
from stentor.model.expression import Regular


class TableBudget:
    """The work that is left for the tables of one expression; each pattern counts once."""

    __slots__ = ("_limit", "_patterns", "_work")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._patterns: set[Regular] = set()
        self._work = 0

    def add(self, predicate: Regular) -> None:
        """Build the table of *predicate*; a LimitError where all together are too much work."""
        if predicate in self._patterns:
            return
        self._patterns.add(predicate)
        self._work += compiled(predicate.syntax, predicate.pattern).work
        if self._work > self._limit:
            raise LimitError(
                f"the tables of the expression's ILIKEs and RLIKEs take {self._work:,} steps or "
                f"more to build; the limit is {self._limit:,}",
                hint="write a choice as one pattern, a|b, or split the subscription",
            )
