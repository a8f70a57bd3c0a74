"""What the builder's functions take, checked: plain Python values become the tree's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stentor.errors import ExpressionError, RecordError
from stentor.language.constants import constant_of, mixed
from stentor.model.kind import Kind
from stentor.model.value import Constant, text


def checked_constant(value: Any) -> Constant:
    """The constant that *value* stands for."""
    if value is None:
        raise ExpressionError("nothing compares with None", hint="use is_null() or is_not_null()")
    if hasattr(value, "expression"):
        raise ExpressionError("two attributes cannot be compared, nor two expressions")
    return constant_of(value)


def checked_constants(values: Iterable[Any]) -> tuple[Constant, ...]:
    """The constants that *values* stand for, all of one kind."""
    constants = tuple([checked_constant(value) for value in values])
    for constant in constants:
        if constant.kind is not constants[0].kind:
            raise mixed(constant.kind, constants[0].kind)
    return constants


def checked_number(value: Any, what: str) -> float:
    """*value* as a double; *what* says in an error what it is for."""
    constant = checked_constant(value)
    if constant.kind is not Kind.NUMBER or isinstance(constant.value, str):
        raise ExpressionError(f"{what} is a number, got {value!r:.60}")
    return constant.value


def checked_pair(place: Any) -> tuple[float, float]:
    """The two coordinates of *place*."""
    if not isinstance(place, (list, tuple)) or len(place) != 2:
        raise ExpressionError(f"a place is a pair (longitude, latitude), got {place!r:.60}")
    x, y = place
    return checked_number(x, "a coordinate"), checked_number(y, "a coordinate")


def checked_words(words: Iterable[Any]) -> tuple[str, ...]:
    """One word or more."""
    checked = tuple([checked_text(word, "a word") for word in words])
    if not checked:
        raise ExpressionError("expected at least one word")
    return checked


def checked_text(value: Any, what: str) -> str:
    """*value*, which is a string that has a UTF-8 form; *what* says in an error what it is for."""
    if not isinstance(value, str):
        raise ExpressionError(f"{what} is a string, got {value!r:.60}")
    try:
        return text(value)
    except RecordError as error:
        raise ExpressionError(f"{what}: {error}") from None
