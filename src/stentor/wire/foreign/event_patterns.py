"""Event patterns of Amazon EventBridge as expressions.

A pattern is an object: each field names the matchers of which one must hold, fields within fields
are attributes with dots, `$or` has patterns of which one must match. What a matcher says holds
only where the field is there, but for `exists: false` and `null`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from stentor.errors import ExpressionError
from stentor.language.builder import Column
from stentor.language.literals import constant_of
from stentor.language.regular import cases
from stentor.model.expression import Comparison, Expression, IsNull, Not
from stentor.model.values.string import describe
from stentor.wire.foreign.rule import (
    column,
    every,
    plain_like,
    refuse,
    some,
    the_list,
    the_object,
    the_pair,
    the_text,
    wildcards_to_like,
)
from stentor.wire.json_text import from_json

_OR: Final = "$or"


def rules_of(document: Any) -> Iterator[tuple[str | None, Any]]:
    """The patterns of *document*: a pattern, a rule, or what the service lists as `Rules`."""
    whole = the_object(document, "a rule")
    if isinstance(whole.get("Rules"), list):
        for rule in whole["Rules"]:
            yield from rules_of(rule)
    elif "EventPattern" in whole:
        pattern = whole["EventPattern"]
        if isinstance(pattern, str):
            pattern = from_json(pattern.encode())
        yield whole.get("Name", whole.get("id")), pattern
    else:
        yield None, whole


def expression_of(pattern: Any, types: Mapping[str, str]) -> Expression:
    """The expression of *pattern*; *types* are not needed: JSON's own tell."""
    return _fields(the_object(pattern, "an event pattern"), "")


def _fields(fields: dict[str, Any], path: str) -> Expression:
    if not fields:
        raise ExpressionError(f"{path or 'the pattern'} asks for nothing")
    return every(_field(name, wanted, path) for name, wanted in fields.items())


def _field(name: str, wanted: Any, path: str) -> Expression:
    if name == _OR:
        several = the_list(wanted, _OR)
        return some(_fields(the_object(one, "a pattern of $or"), path) for one in several)
    full = f"{path}.{name}" if path else name
    if isinstance(wanted, dict):
        return _fields(wanted, full)
    matchers = the_list(wanted, full)
    if not matchers:
        raise ExpressionError(f"{full} has no matcher")
    attribute = column(full)
    plain = [one for one in matchers if isinstance(one, str | int | float)]
    others = [one for one in matchers if not isinstance(one, str | int | float)]
    parts = [_one_of(attribute, plain)] if plain else []
    return some([*parts, *(_matcher(attribute, one) for one in others)])


def _one_of(attribute: Column, values: list[Any]) -> Expression:
    if len(values) > 1:
        return attribute.is_in(values).expression
    return Comparison(attribute.name, "=", constant_of(values[0], attribute.name))


def _matcher(attribute: Column, matcher: Any) -> Expression:
    if matcher is None:
        return IsNull(attribute.name)
    name, wanted = the_pair(the_object(matcher, "a matcher"), "a matcher")
    if name not in _MATCHERS:
        known = ", ".join(_MATCHERS)
        refuse(f"the matcher {describe(name)} of {attribute.name}", f"those known are {known}")
    return _MATCHERS[name](attribute, wanted)


_CASELESS: Final = "equals-ignore-case"


def _prefix(attribute: Column, wanted: Any) -> Expression:
    if isinstance(wanted, dict):
        return _in_any_case(attribute, _caseless(wanted, "prefix"), open_end=True)
    return attribute.like(plain_like(the_text(wanted, "prefix")) + "%").expression


def _suffix(attribute: Column, wanted: Any) -> Expression:
    if isinstance(wanted, dict):
        return _in_any_case(attribute, _caseless(wanted, "suffix"), open_start=True)
    return attribute.like("%" + plain_like(the_text(wanted, "suffix"))).expression


def _caseless(wanted: dict[str, Any], where: str) -> Any:
    name, text = the_pair(wanted, where)
    return text if name == _CASELESS else refuse(f"{where} {name}", f"{_CASELESS} can")


def _in_any_case(
    attribute: Column, wanted: Any, *, open_start: bool = False, open_end: bool = False
) -> Expression:
    """*wanted* in any case: to EventBridge each letter is its small or its capital one."""
    text = the_text(wanted, _CASELESS)
    for one in text:
        if one not in (one.lower(), one.upper()) or len(one.lower() + one.upper()) != 2:
            refuse(f"the letter {one} in any case", "name the spellings that occur")
    if all(set(cases(one)) == {one.lower(), one.upper()} for one in text):
        any_text = ("%" if open_start else "", "%" if open_end else "")
        return attribute.ilike(plain_like(text).join(any_text)).expression
    # ILIKE knows more capitals of some letters, such as the sign of the kelvin beside K.
    letters = (f"[{one.lower()}{one.upper()}]" if one.isalpha() else _exactly(one) for one in text)
    ends = ("" if open_start else "^", "" if open_end else "$")
    return attribute.rlike("".join(letters).join(ends)).expression


def _exactly(one: str) -> str:
    return f"\\x{{{ord(one):x}}}" if not one.isalnum() else one


def _wildcard(attribute: Column, wanted: Any) -> Expression:
    return attribute.like(wildcards_to_like(the_text(wanted, "wildcard"), None)).expression


def _exists(attribute: Column, wanted: Any) -> Expression:
    if not isinstance(wanted, bool):
        raise ExpressionError(f"exists is true or false, got {describe(wanted)}")
    return Not(IsNull(attribute.name)) if wanted else IsNull(attribute.name)


_COMPARED: Final[Mapping[str, Callable[[Column, Any], Any]]] = {
    "=": lambda attribute, bound: attribute == bound,
    "<": lambda attribute, bound: attribute < bound,
    "<=": lambda attribute, bound: attribute <= bound,
    ">": lambda attribute, bound: attribute > bound,
    ">=": lambda attribute, bound: attribute >= bound,
}


def _numeric(attribute: Column, wanted: Any) -> Expression:
    terms = the_list(wanted, "numeric")
    if len(terms) not in (2, 4):
        raise ExpressionError(f"numeric has one or two comparisons, got {describe(wanted)}")
    parts = []
    for sign, bound in zip(terms[::2], terms[1::2], strict=True):
        if sign not in _COMPARED:
            raise ExpressionError(f"numeric compares with {', '.join(_COMPARED)}, got {sign!r}")
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            raise ExpressionError(f"numeric compares with a number, got {describe(bound)}")
        parts.append(_COMPARED[sign](attribute, bound).expression)
    return every(parts)


def _anything_but(attribute: Column, wanted: Any) -> Expression:
    if isinstance(wanted, dict):
        name, patterns = the_pair(wanted, "anything-but")
        if name not in ("prefix", "suffix", "wildcard", _CASELESS):
            refuse(f"anything-but {name}", f"prefix, suffix, wildcard, {_CASELESS}, values can")
        several = patterns if isinstance(patterns, list) else [patterns]
        return every(Not(_MATCHERS[name](attribute, one)) for one in several)
    values = wanted if isinstance(wanted, list) else [wanted]
    if not values:
        raise ExpressionError("anything-but names no value")
    return Not(_one_of(attribute, values))


_MATCHERS: Final[Mapping[str, Callable[[Column, Any], Expression]]] = {
    "prefix": _prefix,
    "suffix": _suffix,
    "wildcard": _wildcard,
    _CASELESS: _in_any_case,
    "exists": _exists,
    "numeric": _numeric,
    "anything-but": _anything_but,
}
