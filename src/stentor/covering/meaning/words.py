"""What is known of a text's terms: each is there, or not, or nobody knows.

A positive test says "all terms of some group", a negated one "of no group". Choosing a group of
each positive test gives the cases; a case that holds a forbidden group cannot happen. The least
text of a case has its terms and no others, so both questions below are decided exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from stentor.language.conditions import Terms

Group = frozenset[str]
#: Beyond this many cases only what single tests say is used.
MOST_CASES = 4096


class Words(NamedTuple):
    """The possible cases, and the groups of which no text has all terms."""

    cases: tuple[Group, ...]
    forbidden: tuple[Group, ...]

    @property
    def never(self) -> bool:
        """Whether no text at all satisfies the tests."""
        return not self.cases

    def implies(self, test: Terms) -> bool:
        """Whether every text that is left satisfies *test*."""
        groups = [frozenset(group) for group in test.groups]
        if test.negated:
            return all(self._excludes(case | group) for group in groups for case in self.cases)
        return all(any(group <= case for group in groups) for case in self.cases)

    def _excludes(self, terms: Group) -> bool:
        return any(group <= terms for group in self.forbidden)


def words_asked(tests: Iterable[Terms]) -> Words:
    """What *tests* on one attribute say together."""
    tests = list(tests)
    forbidden = tuple(frozenset(g) for test in tests if test.negated for g in test.groups)
    cases: set[Group] = {frozenset()}
    for test in tests:
        if test.negated or len(cases) * len(test.groups) > MOST_CASES:
            continue  # leaving a test out leaves more cases: sound
        cases = {case | frozenset(group) for case in cases for group in test.groups}
    words = Words((), forbidden)
    return words._replace(cases=tuple(case for case in cases if not words._excludes(case)))
