"""What converters share: joining, negating as other systems do, words for errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NoReturn

from stentor.errors import ExpressionError
from stentor.language.builder import Column, col
from stentor.language.tree import all_of, any_of
from stentor.model.expression import And, Expression, IsNull, Not, Or, Truth, Weighted
from stentor.model.values.string import describe

TRUE: Final = Truth(True)
FALSE: Final = Truth(False)


def every(parts: Iterable[Expression]) -> Expression:
    """The AND of *parts*, without what is always true."""
    kept = [part for part in parts if part != TRUE]
    if FALSE in kept:
        return FALSE
    return all_of(kept) if kept else TRUE


def some(parts: Iterable[Expression]) -> Expression:
    """The OR of *parts*, without what is never true."""
    kept = [part for part in parts if part != FALSE]
    if TRUE in kept:
        return TRUE
    return any_of(kept) if kept else FALSE


def is_not_true(tree: Expression) -> Expression:
    """What is true exactly where *tree* is false or unknown.

    Other systems have no unknown: there, what is not price < 300 may have no price.
    """
    return _opposite(tree, where_unknown=True)


def _opposite(tree: Expression, *, where_unknown: bool) -> Expression:
    """NOT *tree*, which where *tree* is unknown is *where_unknown*."""
    match tree:
        case Truth(value):
            return Truth(not value)
        case And(children):
            return some(_opposite(child, where_unknown=where_unknown) for child in children)
        case Or(children):
            return every(_opposite(child, where_unknown=where_unknown) for child in children)
        case Not(child):
            return _itself(child, where_unknown=where_unknown)
        case IsNull():
            return Not(tree)
        case Weighted(predicate):
            return _opposite(predicate, where_unknown=where_unknown)
        case predicate:
            if not where_unknown:
                return Not(predicate)
            return some([IsNull(predicate.attribute), Not(predicate)])


def _itself(tree: Expression, *, where_unknown: bool) -> Expression:
    """*tree*, which where it is unknown is *where_unknown*."""
    match tree:
        case And(children):
            return every(_itself(child, where_unknown=where_unknown) for child in children)
        case Or(children):
            return some(_itself(child, where_unknown=where_unknown) for child in children)
        case Not(child):
            return _opposite(child, where_unknown=where_unknown)
        case Truth() | IsNull():
            return tree
        case Weighted(predicate):
            return _itself(predicate, where_unknown=where_unknown)
        case predicate:
            return some([IsNull(predicate.attribute), predicate]) if where_unknown else predicate


def column(name: Any) -> Column:
    """The attribute *name*."""
    if not isinstance(name, str):
        raise ExpressionError(f"a field is a name, got {describe(name)}")
    return col(name)


def wildcards_to_like(pattern: str, one: str | None) -> str:
    r"""A pattern of `*` (any text) and *one* (one character) as LIKE; after `\` they are plain."""
    written, plain = [], False
    for character in pattern:
        if plain:
            written.append(_plain(character))
            plain = False
        elif character == "\\":
            plain = True
        elif character == "*":
            written.append("%")
        else:
            written.append("_" if character == one else _plain(character))
    return "".join([*written, "\\\\"] if plain else written)


def plain_like(text: str) -> str:
    """*text* as a LIKE pattern that means just this text."""
    return "".join(map(_plain, text))


def _plain(character: str) -> str:
    return f"\\{character}" if character in "%_\\" else character


def the_object(raw: Any, what: str) -> dict[str, Any]:
    """*raw*, which must be a JSON object."""
    if not isinstance(raw, dict):
        raise ExpressionError(f"{what} is an object, got {describe(raw)}")
    return raw


def the_list(raw: Any, what: str) -> list[Any]:
    """*raw*, which must be a JSON array."""
    if not isinstance(raw, list):
        raise ExpressionError(f"{what} is an array, got {describe(raw)}")
    return raw


def the_text(raw: Any, what: str) -> str:
    """*raw*, which must be a string."""
    if not isinstance(raw, str):
        raise ExpressionError(f"{what} is a string, got {describe(raw)}")
    return raw


def the_pair(raw: dict[str, Any], what: str) -> tuple[str, Any]:
    """The one key of *raw* and its value."""
    if len(raw) != 1:
        raise ExpressionError(f"{what} has one key, got {len(raw)}: {', '.join(raw)}")
    ((name, value),) = raw.items()
    return name, value


def refuse(what: str, advice: str) -> NoReturn:
    """No expression says *what*."""
    raise ExpressionError(f"{what} cannot be said in an expression", hint=advice)
