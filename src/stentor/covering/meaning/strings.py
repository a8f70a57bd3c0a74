"""Sets of strings: half-open ranges in the order of code points.

No string lies between s and s + "\\0", so `> s` is `>= s + "\\0"`, `<= s` is `< s + "\\0"`, and
one string is a range too: comparisons, IN, BETWEEN, their negations and LIKE 'abc%' all become
disjoint ranges `low <= text < high`, on which intersection and complement are exact.
"""

from __future__ import annotations

from stentor.language.conditions import OneOf, StringSpan

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


def ranges_of(test: OneOf | StringSpan) -> Ranges:
    """The strings that satisfy *test*."""
    if isinstance(test, OneOf):
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
