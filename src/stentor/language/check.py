"""An expression from a user, checked against a schema that may learn from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stentor.errors import UnknownAttributeError
from stentor.language.builder import Built, as_expression
from stentor.language.limits import DEFAULT_LIMITS, Limits
from stentor.language.normalise import NormalForm, check_size, normalise
from stentor.language.parser import parse
from stentor.language.tree import uses
from stentor.model import Expression, Schema
from stentor.model.schema import AttributeUse


class CheckedExpression(NamedTuple):
    """An expression that can be used: its tree, its normal form, what it would teach a schema."""

    tree: Expression
    form: NormalForm
    uses: list[AttributeUse]


def check_and_learn(
    expression: str | Expression | Built,
    schema: Schema,
    *,
    where: str,
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[Expression, NormalForm]:
    """The tree and the normal form of *expression*; *schema* has learned its attributes."""
    checked = check_expression(expression, schema, where=where, limits=limits)
    schema.learn(checked.uses)
    return checked.tree, checked.form


def check_expression(
    expression: str | Expression | Built,
    schema: Schema,
    *,
    where: str,
    limits: Limits = DEFAULT_LIMITS,
    parameters: Mapping[str, object] | None = None,
) -> CheckedExpression:
    """*expression* checked against *schema*, which has learned nothing yet.

    *where* names it in later conflicts; *parameters* are the values of `:name` markers in a text.
    """
    if isinstance(expression, str):
        tree = parse(expression, schema=schema, limits=limits, parameters=parameters)
    else:
        tree = as_expression(expression)
        check_size(tree, limits)
    found = uses(tree, where)
    if schema.declared:
        for use in found:
            if use.name not in schema:
                nearest = schema.nearest(use.name)
                raise UnknownAttributeError(
                    f"no attribute {use.name!r} in this schema",
                    hint=f"did you mean {nearest!r}?" if nearest else None,
                )
    schema.check(found)
    return CheckedExpression(tree, normalise(tree, limits, is_checked=True), found)
