"""What an event says that may be any of several values: alternatives, or all but some.

`{"in": ["red", "blue"]}` has one of these values, and which one is not known; `{"not": 5}` and
`{"not_in": [5, 7]}` any other number. Numbers, times, booleans; of strings only `in`: all strings
but some have no ranges that an index could hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from stentor.errors import RecordError
from stentor.model.kind import Kind
from stentor.model.values.constant import Constant, is_missing, python_scalar, read_constant
from stentor.model.values.members import members_length
from stentor.model.values.range import Range, beside
from stentor.model.values.string import describe

#: What objects call the values that it may be, and those that it is not.
IN, NOT, NOT_IN = "in", "not", "not_in"
NAMES: Final = frozenset((IN, NOT, NOT_IN))
_MOST_EXCLUDED: Final = 1 << 20


class OneOf(NamedTuple):
    """One of `members`, which are of one kind: each once, ascending; two of them at least."""

    kind: Kind
    members: tuple[Constant | Range, ...]


def read_one_of(
    raw: Mapping[str, Any], kind: Kind | None, field: str | None
) -> Constant | Range | OneOf:
    """What the object *raw*, which has one of `NAMES`, says; one value where no other is left."""
    (name,) = (name for name in raw if name in NAMES and not is_missing(raw[name]))
    given = raw[name]
    if getattr(given, "ndim", 0) == 1:
        given = given.tolist()
    if name == NOT:
        given = [given]
    if not isinstance(given, (list, tuple)):
        raise RecordError(
            f"{{{name!r}: …}} holds an array of values, got {describe(given)}", field=field
        )
    members = [_member(one, kind, field) for one in given]
    kinds = {one.kind for one in members}
    if len(kinds) != 1:
        what = " and ".join(sorted(kinds)) or "none"
        raise RecordError(f"{{{name!r}: …}} holds values of one kind, got {what}", field=field)
    (found,) = kinds
    if name != IN:
        return one_of(found, all_but(found, [one.value for one in members], field), field)
    return one_of(found, members, field)


def _member(raw: Any, kind: Kind | None, field: str | None) -> Constant:
    if getattr(raw, "ndim", None) == 0:
        raw = python_scalar(raw, field)
    if is_missing(raw) or isinstance(raw, (list, tuple, dict)) or hasattr(raw, "ndim"):
        raise RecordError(
            f"a value among several is a number, a string, true, false or a timestamp, "
            f"not {describe(raw)}",
            field=field,
        )
    return read_constant(raw, kind, field)


def one_of(
    kind: Kind, members: Iterable[Constant | Range], field: str | None = None
) -> Constant | Range | OneOf:
    """One of *members*, each once and in order; the only one by itself.

    >>> one_of(Kind.NUMBER, [Constant(Kind.NUMBER, 2.0), Constant(Kind.NUMBER, 1.0)]).members[0]
    Constant(kind=<Kind.NUMBER: 'number'>, value=1.0)
    """
    known = tuple(sorted(set(members), key=lambda one: one[1]))
    if not known:
        raise RecordError("no value is left that it could be", field=field)
    return known[0] if len(known) == 1 else OneOf(kind, known)


def all_but(
    kind: Kind, excluded: Iterable[float | str], field: str | None
) -> Iterator[Constant | Range]:
    """What is neither of *excluded*, in order."""
    if kind is Kind.STRING:
        raise RecordError(
            'all strings but some are no value of an event; name those that it may be: {"in": […]}',
            field=field,
        )
    known = sorted({float(one) for one in excluded})
    if kind is Kind.BOOLEAN:
        yield from (Constant(kind, one) for one in (0.0, 1.0) if one not in known)
        return
    if not all(map(math.isfinite, known)):
        raise RecordError("an infinite number cannot be left out", field=field)
    low = -math.inf
    for one in known:
        high = beside(kind, one, -1)
        if low <= high:
            yield Constant(kind, low) if low == high else Range(kind, low, high)
        low = beside(kind, one, 1)
    yield Constant(kind, low) if low == math.inf else Range(kind, low, math.inf)


def excluded_by(value: OneOf) -> list[float] | None:
    """The numbers that *value* leaves out; None where it names what it may be."""
    if all(isinstance(one, Constant) for one in value.members):
        return None
    ends = [one[1:] if isinstance(one, Range) else (one.value, one.value) for one in value.members]
    found: list[float] = []
    is_whole = ends[0][0] == -math.inf and ends[-1][1] == math.inf
    for (_, high), (low, _) in pairwise(ends):
        gap = float(high)
        while is_whole and (gap := beside(value.kind, gap, 1)) < float(low):
            found.append(gap)
            is_whole = len(found) <= _MOST_EXCLUDED
    if not is_whole:
        raise RecordError("one of several values names them, or is all but some")
    return found


def length_of(given: Any) -> int:
    """The bytes of the strings in *given*, if it is an object that holds values to choose from."""
    if not (isinstance(given, Mapping) and not NAMES.isdisjoint(given)):
        return 0
    found = (given[name] for name in NAMES if name in given)
    parts = (one if isinstance(one, (list, tuple)) else [one] for one in found)
    return sum(members_length(part) for part in parts)


def plain_one_of(value: OneOf, plain: Callable[[float | str], Any]) -> dict[str, Any]:
    """*value* as `read_one_of` reads it back; *plain* is what a single value becomes."""
    excluded = excluded_by(value)
    if excluded is None:
        return {IN: [plain(one.value) for one in value.members if isinstance(one, Constant)]}
    return {NOT_IN: [plain(one) for one in excluded]}


def choices(values: Iterable[Any]) -> int:
    """How many ways there are to choose one of each of *values* that are one of several."""
    return math.prod(len(one.members) for one in values if isinstance(one, OneOf))


def check_choices(values: Iterable[Any], most: int) -> None:
    """Refuse an event whose values could be chosen in more than *most* ways."""
    count = choices(values)
    if count > most:
        raise RecordError(
            f"its values could be chosen in {count:,} ways; the limit is {most:,}: "
            "make it several events"
        )
