"""The shape of an expression: its text with the constants taken out.

A constant that fills a slot is an ordinary float or string to the parser; only the template
compiler notices where it came from.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# Plain quoted strings and unsigned numbers that begin with a digit; a pattern that begins with a
# set of characters is searched for fastest. Where it reads a text differently from the parser
# (doubled quotes, say) the template compiler finds out and gives the shape up.
_CONSTANT = re.compile(
    r"""(['\d](?:(?<=')[^'\\]*'|(?<![\w.]\d)[\d.]*(?:[eE][+-]?\d+)?(?![\w.'])))"""
)
#: Integers of so many digits may not fit a double; they take the ordinary way.
_SAFE_DIGITS = 15


class NumberSlot(float):
    """A number that knows its slot, and whether a minus was before it."""

    slot: int
    sign: float

    def __new__(cls, value: float, slot: int, sign: float = 1.0) -> NumberSlot:
        """*value* in the slot number *slot*."""
        made = super().__new__(cls, value)
        made.slot, made.sign = slot, sign
        return made

    def __neg__(self) -> NumberSlot:
        return NumberSlot(-float(self), self.slot, -self.sign)


class TextSlot(str):
    """A string that remembers its slot."""

    __slots__ = ("slot",)
    slot: int

    def __new__(cls, value: str, slot: int) -> TextSlot:
        """*value* in the slot number *slot*."""
        made = super().__new__(cls, value)
        made.slot = slot
        return made


def in_slot(slot: int, value: float | str) -> float | str:
    """*value* as the constant of *slot*: the parser's `literal` hook."""
    return TextSlot(value, slot) if isinstance(value, str) else NumberSlot(value, slot)


class Shaped(NamedTuple):
    """A text taken apart: what lies between the constants, and the constants."""

    shape: tuple[str, ...]
    constants: list[float | str]


def split_shape(text: str) -> Shaped | None:
    """The shape of *text* and its constants; None where a constant needs a closer look.

    >>> split_shape("price < 300 AND brand = 'Huawei'")
    Shaped(shape=('price < ', ' AND brand = ', ''), constants=[300.0, 'Huawei'])
    """
    parts = _CONSTANT.split(text)
    constants: list[float | str] = []
    try:
        for part in parts[1::2]:
            if part[0] == "'":
                constants.append(part[1:-1])
            elif len(part) > _SAFE_DIGITS and part.isdigit():
                return None
            else:
                constants.append(float(part))
    except ValueError:  # 1.2.3
        return None
    return Shaped(tuple(parts[::2]), constants)
