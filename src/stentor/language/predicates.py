"""Reading what follows an attribute's name: comparisons, BETWEEN, IN, LIKE, IS NULL.

One name has one kind: each predicate is held against the expression's earlier ones and the schema.
"""

from __future__ import annotations

from collections.abc import Mapping

from stentor.errors import ExpressionError, LimitError, TypeConflictError
from stentor.language import mistakes
from stentor.language.constants import mixed, timestamp_constant, unordered
from stentor.language.cursor import Cursor, LiteralHook
from stentor.language.lexer import RESERVED, is_word, place
from stentor.language.limits import Limits
from stentor.language.pattern import tree_pattern
from stentor.model.expression import (
    Between,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Not,
    Operator,
)
from stentor.model.kind import Kind
from stentor.model.schema import Schema
from stentor.model.value import Constant

_STRING = Kind.STRING
_BOOLEAN = Kind.BOOLEAN


class PredicateCursor(Cursor):
    """A cursor that knows of which kind each attribute is.

    *start* is always the number of the predicate's first token.
    """

    __slots__ = ("uses",)

    def __init__(
        self,
        text: str,
        schema: Schema | None,
        limits: Limits,
        parameters: Mapping[str, object] | None,
        literal: LiteralHook | None,
    ) -> None:
        super().__init__(text, schema, limits, parameters, literal)
        self.uses: dict[str, tuple[Kind, int, int]] = {}  # first predicate: kind, start, stop

    def comparison(
        self, attribute: str, operator: Operator, constant: Constant, start: int, at: int
    ) -> Comparison:
        """`attribute operator constant`, all of it read; the constant is the *at*-th token."""
        kind = constant.kind
        if self.schema is not None and kind is _STRING:
            constant = self.fitted(attribute, constant, at)
            kind = constant.kind
        elif kind is _BOOLEAN and operator not in ("=", "!="):
            raise self.placed(unordered(), start, self.at)
        self.use(attribute, kind, start)
        return Comparison(attribute, operator, constant)

    def between(self, attribute: str, start: int) -> Between:
        """`low AND high`, after BETWEEN."""
        low = self.listed(attribute, None)
        if RESERVED.get(self.tokens[self.at]) != "AND":
            error = mistakes.expected("AND and the upper end of BETWEEN", self.tokens[self.at])
            raise self.placed(error, self.at)
        self.at += 1
        high = self.listed(attribute, low.kind)
        if low.kind is _BOOLEAN:
            raise self.placed(unordered(), start, self.at)
        self.use(attribute, low.kind, start)
        return Between(attribute, low, high)

    def in_list(self, attribute: str, start: int) -> In:
        """`(constant, …)`, after IN."""
        tokens = self.tokens
        if tokens[self.at] != "(":
            error = mistakes.expected("a list in parentheses after IN", tokens[self.at])
            raise self.placed(error, self.at)
        values: list[Constant] = []
        kind: Kind | None = None
        more = True
        while more:
            self.at += 1
            if len(values) == self.limits.list_length:
                large = LimitError(f"more than {len(values):,} values, which is the limit")
                raise self.placed(large, self.at)
            constant = self.listed(attribute, kind)
            kind = constant.kind
            values.append(constant)
            more = tokens[self.at] == ","
        if tokens[self.at] != ")":
            raise self.placed(mistakes.expected("',' or ')'", tokens[self.at]), self.at)
        self.at += 1
        self.use(attribute, values[0].kind, start)
        return In(attribute, tuple(values))

    def like(self, attribute: str, start: int) -> Like:
        """`'pattern' [ESCAPE 'c']`, after LIKE."""
        at = self.at
        pattern = self.string("a LIKE pattern")
        escape = "\\"
        if is_word(self.tokens[self.at], "ESCAPE"):
            self.at += 1
            escape = self.string("what ESCAPE takes")
        try:
            pattern = tree_pattern(pattern, escape, self.limits.pattern_length)
        except ExpressionError as error:
            raise self.placed(error, at, self.at) from None
        self.use(attribute, _STRING, start)
        return Like(attribute, pattern)

    def is_null(self, attribute: str, start: int) -> Expression:
        """`[NOT] NULL`, after IS."""
        tokens = self.tokens
        negated = RESERVED.get(tokens[self.at]) == "NOT"
        self.at += negated
        word = RESERVED.get(tokens[self.at])
        if word != "NULL":
            error = mistakes.expected("NULL or NOT NULL after IS", tokens[self.at])
            if word in ("TRUE", "FALSE"):
                error.hint = "compare a boolean with =, as in attribute = TRUE"
            raise self.placed(error, self.at)
        self.at += 1
        return Not(IsNull(attribute)) if negated else IsNull(attribute)

    def listed(self, attribute: str, kind: Kind | None) -> Constant:
        """The constant that stands here, of the *kind* of those before it."""
        at = self.at
        constant = self.constant()
        if self.schema is not None and constant.kind is _STRING:
            constant = self.fitted(attribute, constant, at)
        if kind is not None and constant.kind is not kind:
            raise self.placed(mixed(constant.kind, kind), at, self.at)
        return constant

    def fitted(self, attribute: str, constant: Constant, at: int) -> Constant:
        """*constant*, a string, as the schema wants it: perhaps as a timestamp."""
        if self.schema is None or self.schema.kind(attribute) is not Kind.TIMESTAMP:
            return constant
        try:
            return timestamp_constant(str(constant.value))
        except ExpressionError as error:
            raise self.placed(error, at) from None

    def use(self, attribute: str, kind: Kind, start: int) -> None:
        """Note that the predicate from *start* to here takes *attribute* as a *kind*."""
        known = self.uses.get(attribute)
        if known is None:
            if self.schema is not None:
                declared = self.schema.kind(attribute)
                if declared is not None and declared is not kind:
                    where = self.schema.where(attribute)
                    raise self.conflict(attribute, kind, start, declared, where)
            self.uses[attribute] = kind, start, self.at
        elif known[0] is not kind:
            other, first_start, first_stop = known
            where = self.shown(first_start, first_stop)
            raise self.conflict(attribute, kind, start, other, where)

    def conflict(
        self, attribute: str, kind: Kind, start: int, other: Kind, where: str
    ) -> ExpressionError:
        """The error for *attribute* as a *kind* here and as another *where*."""
        hint = "one name has one type: rename one of them"
        if other is Kind.TIMESTAMP or kind is Kind.TIMESTAMP:
            hint = "a timestamp is written TIMESTAMP '2026-11-15 12:00:00+01:00'"
        elif other is Kind.STRING and kind is Kind.NUMBER:
            hint = "put the value in quotes to compare strings"
        elif other is Kind.NUMBER and kind is Kind.STRING:
            hint = "leave the quotes out to compare numbers"
        error = TypeConflictError(
            f"attribute {attribute[:60]!r} is a {kind} in {self.shown(start, self.at)}, "
            f"but a {other} in {where}",
            hint=hint,
        )
        return self.placed(error, start, self.at)

    def shown(self, start: int, stop: int, width: int = 60) -> str:
        """The text of the tokens from *start* to *stop*, cut short."""
        text = self.text[place(self.text, start)[0] : place(self.text, stop - 1)[1]]
        return text if len(text) <= width else text[:width] + "…"
