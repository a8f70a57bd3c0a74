"""Nodes → a deterministic automaton over the bytes of UTF-8, as a table: one look-up for a byte.

The table is bounded: a pattern whose table would be larger is refused, never run slowly.

    bytes of a table:  states (2), classes (2), class of each byte (256), whether each state accepts
                       at the end (states), the next state by state and class (2 × states × classes)

State 0 is where nothing can be found any more, state 1 where all is found, state 2 the first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from stentor.errors import LimitError
from stentor.language.regular.nodes import (
    AnyByte,
    AnyOf,
    At,
    Characters,
    Edge,
    Node,
    Repeat,
    Sequence,
)
from stentor.language.regular.syntax import folded_like, node_of_pattern

#: Of a table: more are refused.
MOST_STATES: Final = 1_000
#: Of a pattern once its repetitions are written out.
MOST_STEPS: Final = 5_000
#: Steps that are looked at while one table is built: a fifth of a second.
MOST_WORK: Final = 500_000
#: States that every table has.
NOTHING, FOUND, FIRST = 0, 1, 2

Syntax = Literal["ILIKE", "RLIKE"]
#: What is on one side of a location in a text.
_Side = Literal["word", "other", "line", "edge"]


class Automaton(NamedTuple):
    """The table, as kernels read it."""

    table: bytes
    states: int
    work: int  # that building it took, however often it was asked for


class _Step(NamedTuple):
    """Of the nondeterministic automaton: a byte of a range, a choice, or a location; then where."""

    low: int  # of a byte, or −1
    high: int
    edge: Edge | None
    following: tuple[int, ...]


@lru_cache(maxsize=4096)
def compiled(syntax: Syntax, pattern: str) -> Automaton:
    """The automaton of *pattern*; a LimitError where it would be too large.

    >>> compiled("RLIKE", "a+b").states
    5
    """
    node, work = (
        (folded_like(pattern), 0) if syntax == "ILIKE" else node_of_pattern(pattern, MOST_WORK)
    )
    steps = _Steps(node).steps
    return _Builder(steps, syntax, work + len(steps)).build()


class _Steps:
    """The steps of a node; the last one is where all is found."""

    def __init__(self, node: Node) -> None:
        self.steps: list[_Step] = []
        found = self._add(_Step(-1, -1, None, ()))
        self.first = self._before(node, found)
        self.steps.append(_Step(-1, -1, None, (self.first,)))

    def _add(self, step: _Step) -> int:
        if len(self.steps) >= MOST_STEPS:
            raise _too_large()
        self.steps.append(step)
        return len(self.steps) - 1

    def _before(self, node: Node, following: int) -> int:
        """The step from which *node* leads to *following*."""
        match node:
            case Sequence(parts):
                for part in reversed(parts):
                    following = self._before(part, following)
                return following
            case AnyOf(parts):
                starts = tuple(self._before(part, following) for part in parts)
                return self._add(_Step(-1, -1, None, starts))
            case At(edge):
                return self._add(_Step(-1, -1, edge, (following,)))
            case AnyByte():
                return self._add(_Step(0, 255, None, (following,)))
            case Characters(points):
                starts = tuple(self._bytes(points, following))
                return starts[0] if len(starts) == 1 else self._add(_Step(-1, -1, None, starts))
            case Repeat(part, least, most):
                return self._repeated(part, least, most, following)

    def _repeated(self, part: Node, least: int, most: int | None, following: int) -> int:
        start = following
        if most is None:
            start = self._add(_Step(-1, -1, None, ()))
            inner = self._before(part, start)
            self.steps[start] = _Step(-1, -1, None, (inner, following))
        else:
            for _ in range(max(0, most - least)):
                inner = self._before(part, start)
                start = self._add(_Step(-1, -1, None, (inner, following)))
        for _ in range(least):
            start = self._before(part, start)
        return start

    def _bytes(self, points: tuple[tuple[int, int], ...], following: int) -> Iterator[int]:
        """Steps over the bytes of characters; those that end alike share their ends."""
        shared: dict[tuple[int, int, int], int] = {}
        for low, high in points:
            for spans in _utf8_ranges(low, high):
                after = following
                for one in reversed(spans):
                    key = (*one, after)
                    if key not in shared:
                        shared[key] = self._add(_Step(*one, None, (after,)))
                    after = shared[key]
                yield after
        if not points:
            yield self._add(_Step(-1, -1, None, ()))  # no character at all


def _utf8_ranges(low: int, high: int) -> Iterator[list[tuple[int, int]]]:
    """Ranges of bytes that, one after another, are the characters from *low* to *high*."""
    for first, last in ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, 0x10FFFF)):
        start, stop = max(low, first), min(high, last)
        if start <= stop:
            yield from _same_length(start, stop)


def _same_length(low: int, high: int) -> Iterator[list[tuple[int, int]]]:
    """The same where all characters have as many bytes."""
    first, last = (
        chr(low).encode("utf-8", "surrogatepass"),
        chr(high).encode("utf-8", "surrogatepass"),
    )
    for position in range(len(first) - 1, 0, -1):
        mask = (1 << 6 * position) - 1
        if low & ~mask == high & ~mask:
            continue
        if low & mask:
            yield from _same_length(low, low | mask)
            yield from _same_length((low | mask) + 1, high)
            return
        if high & mask != mask:
            yield from _same_length(low, (high & ~mask) - 1)
            yield from _same_length(high & ~mask, high)
            return
    yield list(zip(first, last, strict=True))


def _side_of(byte: int) -> _Side:
    if byte == 10:
        return "line"
    return "word" if byte < 128 and (chr(byte).isalnum() or byte == 95) else "other"


class _Builder:
    """Subset construction: a state is a set of steps, and what was before it where that counts."""

    def __init__(self, steps: list[_Step], syntax: Syntax, work: int) -> None:
        self._steps = steps
        self._syntax = syntax
        self._work = work
        self._has_edges = any(one.edge is not None for one in steps)
        self._class_of, self._bytes = self._classes()

    def build(self) -> Automaton:
        """The table."""
        first = (frozenset({len(self._steps) - 1}), self._before("edge"))
        numbers: dict[tuple[frozenset[int], _Side], int] = {first: FIRST}
        waiting = [first]
        width = len(self._bytes)
        rows: list[list[int]] = [[NOTHING] * width, [FOUND] * width]
        accepts = [0, 1]
        for steps, before in waiting:
            accepts.append(int(0 in self._closure(steps, before, "edge")))
            row = []
            for number, following in enumerate(self._following(steps, before)):
                if not following:
                    row.append(NOTHING)
                    continue
                state = (frozenset(following), self._before(_side_of(self._bytes[number])))
                if state not in numbers:
                    if self._is_found(*state):
                        row.append(FOUND)
                        continue
                    if len(numbers) + FIRST >= MOST_STATES:
                        raise _too_large()
                    numbers[state] = len(numbers) + FIRST
                    waiting.append(state)
                row.append(numbers[state])
            rows.append(row)
        head = struct.pack("<HH", len(rows), width) + bytes(self._class_of) + bytes(accepts)
        body = b"".join(struct.pack(f"<{width}H", *row) for row in rows)
        return Automaton(head + body, len(rows), self._work)

    def _following(self, steps: frozenset[int], before: _Side) -> list[set[int]]:
        """The steps after a byte of each class."""
        found: list[set[int]] = [set() for _ in self._bytes]
        self._work += len(found)
        sides = {_side_of(byte) for byte in self._bytes} if self._has_edges else {None}
        for side in sides:
            for one in self._closure(steps, before, side or "other"):
                step = self._steps[one]
                if step.low < 0:
                    continue
                first, last = self._class_of[step.low], self._class_of[step.high]
                self._count(last - first + 1)
                for number in range(first, last + 1):
                    if side is None or _side_of(self._bytes[number]) == side:
                        found[number].update(step.following)
        return found

    def _count(self, work: int) -> None:
        self._work += work
        if self._work > MOST_WORK:
            raise _too_large()

    def _before(self, side: _Side) -> _Side:
        return side if self._has_edges else "other"

    def _is_found(self, steps: frozenset[int], before: _Side) -> bool:
        """Whether every text that begins so is accepted: what follows is any text at all."""
        if self._syntax == "ILIKE":
            return False
        sides: tuple[_Side, ...] = ("word", "other", "line", "edge")
        ends = [self._closure(steps, before, side) for side in sides]
        return all(0 in one for one in ends) and self._has_loop(ends[0])

    def _has_loop(self, closure: frozenset[int]) -> bool:
        """Whether all may be found here and after each further character."""
        return self._last_loop in closure

    @property
    def _last_loop(self) -> int:
        return 1  # the first step after the end: the loop behind what is looked for

    def _closure(self, steps: frozenset[int], before: _Side, after: _Side) -> frozenset[int]:
        """All steps that are reached without a byte."""
        found = set(steps)
        waiting = list(steps)
        while waiting:
            step = self._steps[waiting.pop()]
            if step.low >= 0 or (step.edge is not None and not _holds(step.edge, before, after)):
                continue
            fresh = [one for one in step.following if one not in found]
            found.update(fresh)
            waiting += fresh
        self._count(len(found))
        return frozenset(found)

    def _classes(self) -> tuple[list[int], list[int]]:
        """The class of each byte, and a byte of each class: bytes that no step tells apart."""
        cuts = {0, 256}
        for step in self._steps:
            if step.low >= 0:
                cuts |= {step.low, step.high + 1}
        if self._has_edges:
            cuts |= {10, 11, 48, 58, 65, 91, 95, 96, 97, 123}
        starts = sorted(cuts - {256})
        class_of = [0] * 256
        for number, start in enumerate(starts):
            for byte in range(start, 256):
                class_of[byte] = number
        return class_of, starts


def _holds(edge: Edge, before: _Side, after: _Side) -> bool:
    match edge:
        case "begin":
            return before == "edge"
        case "end":
            return after == "edge"
        case "line begin":
            return before in ("edge", "line")
        case "line end":
            return after in ("edge", "line")
    is_edge = (before == "word") != (after == "word")
    return is_edge if edge == "word edge" else not is_edge


def _too_large() -> LimitError:
    return LimitError(
        f"the pattern needs more than {MOST_STATES:,} states; shorten it: fewer repetitions {{n}}, "
        "fewer characters of which any will do before one that matters"
    )
