"""Sets of strings: half-open ranges in the order of code points, with patterns and keywords.

A list, a range, a pattern and keywords on one attribute form one set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from stentor._jit import inner_kernel
from stentor.covering.implies import pattern as patterns
from stentor.covering.implies.keywords import KeywordCases, groups_imply, keyword_cases
from stentor.covering.implies.membership import list_implies, string_is_one_of
from stentor.covering.implies.operands import (
    COVERED,
    NOT_COVERED,
    UNDECIDED,
    same_operands,
    same_string,
)
from stentor.covering.implies.pattern import is_anything, is_wild, pattern_implies
from stentor.encoding.columns import UNBOUNDED, SubscriptionColumns
from stentor.encoding.kinds import (
    KEYWORDS,
    KIND_MASK,
    MEMBERSHIP,
    NEGATED,
    PATTERN,
    PHRASE,
    REGULAR,
    STRING_INTERVAL,
)
from stentor.index.verify.pattern import is_accepted
from stentor.language.normal_predicates import (
    Keywords,
    Membership,
    Pattern,
    StringInterval,
)
from stentor.language.predicates.pattern import like
from stentor.language.terms import fold_terms

Range = tuple[str, str | None]  # None: unbounded

Ranges = tuple[Range, ...]

ALL: Ranges = (("", None),)

LAST_CHARACTER = "\U0010ffff"


def one(text: str) -> Range:
    """The range that holds *text* alone."""
    return text, text + "\0"


def beginning(prefix: str) -> Ranges:
    """Everything that begins with *prefix*.

    >>> beginning("ab")
    (('ab', 'ac'),)
    """
    stem = prefix.rstrip(LAST_CHARACTER)
    return ((prefix, stem[:-1] + chr(ord(stem[-1]) + 1) if stem else None),)


def ranges_of(test: Membership | StringInterval) -> Ranges:
    """The strings that satisfy *test*."""
    if isinstance(test, Membership):
        found: Ranges = tuple(one(text) for text in test.strings)
    else:
        low = "" if test.low is None else one(test.low)[1] if test.low_open else test.low
        high = None if test.high is None else test.high if test.high_open else one(test.high)[1]
        assert low is not None
        found = ((low, high),) if high is None or low < high else ()
    return without(ALL, found) if test.negated else joined(found)


def joined(ranges: Ranges) -> Ranges:
    """The same strings in as few ranges as can be; *ranges* ascend."""
    found: list[Range] = []
    for low, high in ranges:
        if found and found[-1][1] == low:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return tuple(found)


def common(left: Ranges, right: Ranges) -> Ranges:
    """What lies in both."""
    both: list[Range] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low = max(left[i][0], right[j][0])
        high = _lower(left[i][1], right[j][1])
        if high is None or low < high:
            both.append((low, high))
        if high == left[i][1]:
            i += 1
        else:
            j += 1
    return tuple(both)


def without(ranges: Ranges, removed: Ranges) -> Ranges:
    """What lies in *ranges* and in none of *removed*."""
    rest: list[Range] = []
    low: str | None = ""
    for start, stop in removed:
        if low is not None and low < start:
            rest.append((low, start))
        low = stop
    if low is not None:
        rest.append((low, None))
    return joined(common(ranges, tuple(rest)))


def _lower(left: str | None, right: str | None) -> str | None:
    if left is None or right is None:
        return right if left is None else left
    return min(left, right)


def listed(ranges: Ranges) -> list[str] | None:
    """Every string of *ranges*; None where there are infinitely many.

    >>> listed((("a", "a" + chr(0)),)), listed((("a", "b"),))
    (['a'], None)
    """
    found: list[str] = []
    for low, high in ranges:
        if high is None or not high.startswith(low) or high[len(low) :].strip("\0"):
            return None
        found += [low + "\0" * step for step in range(len(high) - len(low))]
    return found


def shared_prefix(ranges: Ranges) -> str:
    """The longest text that every string of *ranges*, which are not empty, begins with."""
    low, high = ranges[0][0], ranges[-1][1]
    if high is None:
        return low if low and set(low) == {LAST_CHARACTER} else ""
    length = 0
    while length < len(low):
        longer = beginning(low[: length + 1])[0][1]
        if longer is not None and high > longer:
            break
        length += 1
    return low[:length]


#: The tests of strings: together they are decided as one set.
StringTest = Membership | StringInterval | Pattern | Keywords


@dataclass(frozen=True, slots=True)
class StringSet:
    """Which strings will do.

    All of them are in `ranges`; where `texts` are listed they are these. Patterns and words want
    more, unless the texts are listed.
    """

    tests: tuple[StringTest, ...]
    ranges: Ranges
    texts: tuple[str, ...] | None
    liked: tuple[tuple[str, ...], ...]  # patterns that say more than a range does
    disliked: tuple[tuple[str, ...], ...]
    words: KeywordCases

    @property
    def never(self) -> bool:
        return not (self.ranges if self.texts is None else self.texts) or self.words.never

    def satisfied_by(self, text: str) -> bool:
        """Whether *text* will do."""
        return all(_holds(test, text) for test in self.tests)


def _strings(tests: tuple[StringTest, ...]) -> StringSet:
    ranges = ALL
    liked: list[tuple[str, ...]] = []
    disliked: list[tuple[str, ...]] = []
    for test in tests:
        if isinstance(test, (Membership, StringInterval)):
            ranges = common(ranges, ranges_of(test))
        elif isinstance(test, Pattern):
            symbols = patterns.symbols(test.pattern)
            exact = patterns.prefix_only(symbols)
            if exact and test.negated:
                ranges = without(ranges, _matching(symbols))
            elif not test.negated:
                ranges = common(ranges, _matching(symbols))
            if not exact:
                (disliked if test.negated else liked).append(symbols)
        elif not isinstance(test, Keywords):
            assert_never(test)
    found = listed(ranges)
    texts = None if found is None else tuple(t for t in found if all(_holds(x, t) for x in tests))
    words = keyword_cases(test for test in tests if isinstance(test, Keywords))
    return StringSet(tests, ranges, texts, tuple(liked), tuple(disliked), words)


def _matching(pattern: tuple[str, ...]) -> Ranges:
    """Ranges that hold everything of the form *pattern*."""
    start = patterns.plain_ends(pattern)[0]
    return (one(start),) if len(start) == len(pattern) else beginning(start)


def _holds(test: StringTest, text: str) -> bool:
    match test:
        case Membership(strings, negated):
            return (text in strings) != negated
        case StringInterval():
            return test.contains(text)
        case Pattern(pattern, negated):
            return like(text, pattern) != negated
        case Keywords(groups, negated):
            terms = set(fold_terms(text))
            return any(terms.issuperset(group) for group in groups) != negated
    assert_never(test)


def _strings_imply(narrow: StringSet, wide: StringSet) -> bool:
    if narrow.texts is not None:
        return all(map(wide.satisfied_by, narrow.texts))
    if wide.texts is not None or common(narrow.ranges, wide.ranges) != narrow.ranges:
        return False
    liked = [*narrow.liked, (*shared_prefix(narrow.ranges), patterns.TEXT)]
    return (
        all(any(patterns.inside(mine, wanted) for mine in liked) for wanted in wide.liked)
        and all(_is_disliked(wanted, narrow, liked) for wanted in wide.disliked)
        and all(narrow.words.implies(test) for test in wide.tests if isinstance(test, Keywords))
    )


def _is_disliked(
    wanted: tuple[str, ...], narrow: StringSet, liked: Sequence[tuple[str, ...]]
) -> bool:
    """Whether *narrow* has nothing of the form *wanted*."""
    return (
        any(patterns.inside(wanted, mine) for mine in narrow.disliked)
        or any(patterns.ends_differ(wanted, mine) for mine in liked)
        or not common(narrow.ranges, beginning(patterns.plain_ends(wanted)[0]))
    )


@inner_kernel
def form_implies(columns: SubscriptionColumns, narrow: int, wide: int) -> int:
    """The same where one of them is an ILIKE, an RLIKE or a phrase."""
    if same_operands(columns, narrow, wide):
        return COVERED
    kind, wanted = columns.kind[narrow] & KIND_MASK, columns.kind[wide] & KIND_MASK
    negated = (columns.kind[narrow] & NEGATED) != 0
    refused = (columns.kind[wide] & NEGATED) != 0
    if kind == PHRASE and wanted == PHRASE and negated == refused:
        found = has_run_of(columns, wide, narrow) if refused else has_run_of(columns, narrow, wide)
        return COVERED if found else NOT_COVERED
    if kind in (REGULAR, PHRASE):  # of which no string is known
        if wanted == PATTERN:
            first = columns.operand_start[wide]
            start, stop = columns.string_start[first], columns.string_start[first + 1]
            is_any = not refused and is_anything(columns.string_bytes[start:stop])
            return COVERED if is_any else NOT_COVERED
        return UNDECIDED if wanted == STRING_INTERVAL else NOT_COVERED
    if wanted != REGULAR or negated:
        return NOT_COVERED
    if kind in (STRING_INTERVAL, PATTERN):
        return UNDECIDED if has_one_string(columns, narrow) else NOT_COVERED
    if kind != MEMBERSHIP:
        return NOT_COVERED
    starts, table = columns.string_start, columns.operand_start[wide] + 1
    automaton = columns.string_bytes[starts[table] : starts[table + 1]]
    for string in range(columns.operand_start[narrow], columns.operand_stop[narrow]):
        text = columns.string_bytes[starts[string] : starts[string + 1]]
        if is_accepted(text, automaton) == refused:
            return NOT_COVERED
    return COVERED


@inner_kernel
def has_one_string(columns: SubscriptionColumns, predicate: int) -> bool:
    """Whether an interval or a LIKE may hold of one string alone."""
    first = columns.operand_start[predicate]
    if columns.kind[predicate] & KIND_MASK == PATTERN:
        start, stop = columns.string_start[first], columns.string_start[first + 1]
        return not is_wild(columns.string_bytes[start:stop])
    marks = columns.string_mark
    return bool(marks[first] != UNBOUNDED and marks[first + 1] != UNBOUNDED)


@inner_kernel
def has_run_of(columns: SubscriptionColumns, one: int, other: int) -> bool:
    """Whether the phrase *one* has the terms of *other* in it, one after another."""
    start, wanted = columns.operand_start[one], columns.operand_start[other]
    length = columns.operand_stop[other] - wanted
    for at in range(start, columns.operand_stop[one] - length + 1):
        same = 0
        while same < length and same_string(columns, at + same, wanted + same):
            same += 1
        if same == length:
            return True
    return False


@inner_kernel
def string_implies(columns: SubscriptionColumns, narrow: int, wide: int) -> int:
    """Whether the test of strings *narrow* implies *wide*; COVERED also where both are the same."""
    kind, wanted = columns.kind[narrow] & KIND_MASK, columns.kind[wide] & KIND_MASK
    negated = (columns.kind[narrow] & NEGATED) != 0
    refused = (columns.kind[wide] & NEGATED) != 0
    if kind in (REGULAR, PHRASE) or wanted in (REGULAR, PHRASE):
        return form_implies(columns, narrow, wide)
    if kind == MEMBERSHIP and not negated:
        return UNDECIDED if wanted == KEYWORDS else list_implies(columns, narrow, wide)
    if same_operands(columns, narrow, wide):
        return COVERED
    if kind == MEMBERSHIP and wanted == MEMBERSHIP:
        if not refused:
            return NOT_COVERED  # all but a few are not among a few
        for string in range(columns.operand_start[wide], columns.operand_stop[wide]):
            if not string_is_one_of(columns, narrow, string):
                return NOT_COVERED
        return COVERED
    if kind == KEYWORDS and wanted == KEYWORDS:
        return (
            COVERED
            if negated == refused and groups_imply(columns, narrow, wide, refused)
            else NOT_COVERED
        )
    if kind in (MEMBERSHIP, KEYWORDS) and wanted in (MEMBERSHIP, KEYWORDS):
        return NOT_COVERED
    if kind == PATTERN and wanted == PATTERN:
        return pattern_implies(columns, narrow, negated, wide, refused)
    return UNDECIDED
