"""What a regular expression is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Code points: disjoint, ascending, both ends included.
CodePoints = tuple[tuple[int, int], ...]

#: Every character that UTF-8 has.
EVERY_CHARACTER: CodePoints = ((0, 0xD7FF), (0xE000, 0x10FFFF))

#: Where in a text: its begin and end, those of lines, at the edge of a word or not.
Edge = Literal["begin", "end", "line begin", "line end", "word edge", "no word edge"]


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of these."""

    points: CodePoints


@dataclass(frozen=True, slots=True)
class AnyByte:
    """One byte, whatever it is."""


@dataclass(frozen=True, slots=True)
class At:
    """Nothing, at a certain location."""

    edge: Edge


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after another; nothing where it is empty."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of them."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """At least so often; at most as often as `most` says, or as often as one likes."""

    part: Node
    least: int
    most: int | None


Node = Characters | AnyByte | At | Sequence | AnyOf | Repeat
