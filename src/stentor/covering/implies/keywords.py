"""What is known of a text's terms: each is there, or not, or nobody knows; groups over columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from stentor._jit import inner_kernel
from stentor.covering.implies.operands import same_string
from stentor.encoding.columns import LAST, SubscriptionColumns
from stentor.language.normal_predicates import Keywords

Group = frozenset[str]


#: Beyond this many cases only what single tests say is used.
MOST_CASES = 4096


class KeywordCases(NamedTuple):
    """The possible cases, and the groups of which no text has all terms."""

    cases: tuple[Group, ...]
    forbidden: tuple[Group, ...]

    @property
    def never(self) -> bool:
        """Whether no text at all satisfies the tests."""
        return not self.cases

    def implies(self, test: Keywords) -> bool:
        """Whether every text that is left satisfies *test*."""
        groups = [frozenset(group) for group in test.groups]
        if test.negated:
            return all(self._excludes(case | group) for group in groups for case in self.cases)
        return all(any(group <= case for group in groups) for case in self.cases)

    def _excludes(self, terms: Group) -> bool:
        return any(group <= terms for group in self.forbidden)


def keyword_cases(tests: Iterable[Keywords]) -> KeywordCases:
    """What *tests* on one attribute say together."""
    tests = list(tests)
    forbidden = tuple(frozenset(g) for test in tests if test.negated for g in test.groups)
    cases: set[Group] = {frozenset()}
    for test in tests:
        if test.negated or len(cases) * len(test.groups) > MOST_CASES:
            continue  # leaving a test out leaves more cases: sound
        cases = {case | frozenset(group) for case in cases for group in test.groups}
    words = KeywordCases((), forbidden)
    return words._replace(cases=tuple(case for case in cases if not words._excludes(case)))


@inner_kernel
def groups_imply(columns: SubscriptionColumns, narrow: int, wide: int, refused: bool) -> bool:
    """Whether each group of *narrow* holds one of *wide*; of negated tests the reverse."""
    inner, outer = (wide, narrow) if refused else (narrow, wide)
    start = columns.operand_start[inner]
    for string in range(start, columns.operand_stop[inner]):
        if columns.string_mark[string] == LAST:
            if not holds_a_group(columns, start, string + 1, outer):
                return False
            start = string + 1
    return True


@inner_kernel
def holds_a_group(columns: SubscriptionColumns, start: int, stop: int, predicate: int) -> bool:
    """Whether the words *start* … *stop* hold all words of some group of *predicate*."""
    matches = True
    for string in range(columns.operand_start[predicate], columns.operand_stop[predicate]):
        if matches:
            found = False
            for word in range(start, stop):
                found = found or same_string(columns, word, string)
            matches = found
        if columns.string_mark[string] == LAST:
            if matches:
                return True
            matches = True
    return False
