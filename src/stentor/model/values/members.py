"""What a set is: the strings and numbers that an event has, all of them.

It comes as an array, or as the JSON text of one where the schema knows a set. Its own text (JSON,
members in order, each once) is what columns and tables keep of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from stentor.errors import RecordError
from stentor.model.kind import Kind
from stentor.model.values.constant import Constant, is_missing, python_scalar, read_constant
from stentor.model.values.number import EXACT
from stentor.model.values.string import describe, utf8_length


class Set(NamedTuple):
    """Strings and numbers, each once: numbers first, both in ascending order."""

    members: tuple[Constant, ...]

    @property
    def kind(self) -> Kind:
        """Every set is of this kind, whatever its members are."""
        return Kind.SET


def set_of(members: Iterable[Constant]) -> Set:
    """The set of *members*, strings and numbers.

    >>> set_of([Constant(Kind.STRING, "b"), Constant(Kind.STRING, "b")])
    Set(members=(Constant(kind=<Kind.STRING: 'string'>, value='b'),))
    """
    return Set(tuple(sorted(set(members), key=lambda one: (one.kind is Kind.STRING, one.value))))


def read_set(raw: Any, field: str | None = None) -> Set:
    """The set of an array, or of the text of one; a null in it is left out."""
    if isinstance(raw, str):
        raw = _array(raw, field)
    if not isinstance(raw, (list, tuple)):
        raise RecordError(
            f"a set is an array of strings or numbers, got {describe(raw)}", field=field
        )
    members = []
    for one in raw:
        cell = python_scalar(one, field) if getattr(one, "ndim", None) == 0 else one
        if not is_missing(cell):
            members.append(_member(cell, field))
    return set_of(members)


def _member(raw: Any, field: str | None) -> Constant:
    if isinstance(raw, (list, tuple, dict)) or hasattr(raw, "ndim"):
        raise _no_member(raw, field)
    member = read_constant(raw, None, field)
    if member.kind not in (Kind.STRING, Kind.NUMBER):
        raise _no_member(raw, field)
    return member


def _no_member(raw: Any, field: str | None) -> RecordError:
    kind = "an array" if isinstance(raw, (list, tuple)) else describe(raw)
    return RecordError(f"an array holds strings and numbers, not {kind}", field=field)


def _array(text: str, field: str | None) -> Any:
    try:
        return json.loads(text) if text.lstrip()[:1] == "[" else text
    except (ValueError, RecursionError):
        return text


def members_length(cells: Iterable[Any]) -> int:
    """The bytes of an array's strings; whatever else it holds counts as eight."""
    return sum(utf8_length(one) if isinstance(one, str) else 8 for one in cells)


def set_text(value: Set) -> str:
    """The text of *value*, the same for equal sets.

    >>> set_text(read_set(["b", 2, "a", 2.0]))
    '[2,"a","b"]'
    """
    return json.dumps(plain_members(value), ensure_ascii=False, separators=(",", ":"))


def plain_members(value: Set) -> list[int | float | str]:
    """The members of *value* as JSON has them: whole numbers as integers."""
    return [_plain(one.value) for one in value.members]


def _plain(value: float | str) -> int | float | str:
    if isinstance(value, str):
        return value
    return int(value) if value.is_integer() and abs(value) <= EXACT else value
