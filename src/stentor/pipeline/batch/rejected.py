"""Rows that cannot be used: counted, the first few shown with their reasons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, Final, Literal

from stentor.errors import RecordError, SettingsError

#: What happens where rows cannot be used: an error, or they are left out.
RejectedPolicy = Literal["raise", "ignore"]
POLICIES: Final = ("raise", "ignore")

#: How many bad rows an error shows.
MOST_SENTENCES: Final = 5


@dataclass(frozen=True, slots=True)
class RejectSummary:
    """How many rows are bad, and what is wrong with the first of them, by id."""

    count: int = 0
    sentences: tuple[str, ...] = ()

    @classmethod
    def of(cls, reasons: Iterable[tuple[str | None, str]]) -> RejectSummary:
        """Those of rows that have these ids and are bad for these *reasons*."""
        sentences = [
            f"{'a row without an id' if id is None else repr(id)}: {reason}"
            for id, reason in reasons
        ]
        return cls(len(sentences), _first(sentences))

    def __add__(self, other: RejectSummary) -> RejectSummary:
        return RejectSummary(self.count + other.count, _first((*self.sentences, *other.sentences)))

    def check(self, policy: RejectedPolicy, what: str) -> None:
        """A RecordError where `problem` finds one."""
        problem = self.problem(policy, what)
        if problem is not None:
            raise RecordError(problem)

    def problem(self, policy: RejectedPolicy, what: str) -> str | None:
        """What is to be said where *policy* is to raise; *what* the rows are."""
        if not self.count or policy == "ignore":
            return None
        lines = "".join(f"\n  {sentence}" for sentence in self.sentences)
        is_all = len(self.sentences) < MOST_SENTENCES or self.count == len(self.sentences)
        return (
            f"{self.count:,} of the {what} cannot be used "
            f'(rejected="ignore" leaves them out):{lines}' + ("" if is_all else "\n  …")
        )


def id_in(table: Any, row: int) -> str | None:
    """The id of a row that may be bad; None where it has none that can be shown."""
    try:
        found = table["id"][row].as_py()
    except ValueError:  # no UTF-8
        return None
    return None if found is None else str(found)


def check_policy(given: str) -> None:
    """A SettingsError where *given* is no policy."""
    if given not in POLICIES:
        raise SettingsError(f"rejected is {given!r}; expected 'raise' or 'ignore'")


def _first(sentences: Iterable[str]) -> tuple[str, ...]:
    return tuple(nsmallest(MOST_SENTENCES, set(sentences)))
