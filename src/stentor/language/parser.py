"""Text → tree: a recursive descent that refuses what is too large before it goes deeper."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from stentor.errors import ExpressionError, LimitError, SettingsError
from stentor.language import syntax_errors
from stentor.language.cursor import Cursor, LiteralHook
from stentor.language.lexer import END, RESERVED, is_plain_name
from stentor.language.limits import DEFAULT_LIMITS, Limits, check_text
from stentor.language.literals import TRUE, is_string, shown_value
from stentor.language.predicates import AFTER_ATTRIBUTE, FUNCTIONS, attribute_kind, comparison
from stentor.language.predicates.calls import NAMES, take
from stentor.language.tree import all_of, any_of, tree_depth, weighted
from stentor.model.expression import Expression, Not, Operator, Truth
from stentor.model.kind import Kind
from stentor.model.schema import Schema
from stentor.model.scoring import MOST_WEIGHT

_OPERATORS: dict[str, Operator] = {
    "=": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="
}  # fmt: skip
_TURNED: dict[Operator, Operator] = {
    "=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="
}  # fmt: skip


def parse(
    text: str,
    *,
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    parameters: Mapping[str, object] | None = None,
    literal: LiteralHook | None = None,
) -> Expression:
    """The tree of *text*; an ExpressionError that underlines what is wrong where there is none.

    *schema* checks names and kinds, and reads a string as a timestamp where one is expected.
    *parameters* gives the values of `:name` markers. *literal* is called with the number (from 0)
    and the value of each number or string literal in turn; what it returns goes into the tree.

    >>> parse("price < 3300")
    Comparison(attribute='price', operator='<', value=Constant(kind=<Kind.NUMBER: 'number'>, \
value=3300.0))
    """
    if not (schema is None or isinstance(schema, Schema)):
        raise SettingsError(f"a schema is a Schema, got {shown_value(schema)}")
    if not isinstance(limits, Limits):
        raise SettingsError(f"limits are Limits, got {shown_value(limits)}")
    check_text(text, limits.bytes)
    if parameters is not None and not isinstance(parameters, Mapping):
        raise ExpressionError(f"parameters are a mapping of names, got {shown_value(parameters)}")
    parser = _Parser(text, schema, limits, parameters, literal)
    expression = parser.expression(0)
    if parser.tokens[parser.at] != END:
        raise parser.no_joint("the end")
    if 2 * parser.deepest + 2 > limits.depth:  # a group is at most an AND inside an OR
        parser.check_depth(expression)
    return expression


class _Parser(Cursor):
    __slots__ = ("deepest", "deepest_at", "predicates", "weighing")

    def __init__(
        self,
        text: str,
        schema: Schema | None,
        limits: Limits,
        parameters: Mapping[str, object] | None,
        literal: LiteralHook | None,
    ) -> None:
        super().__init__(text, schema, limits, parameters, literal)
        self.deepest = 0
        self.deepest_at = 0
        self.predicates = 0
        self.weighing = False

    def expression(self, depth: int) -> Expression:
        """Predicates and groups, joined by NOT, then AND, then OR."""
        tokens = self.tokens
        alternatives: list[Expression] = []
        while True:
            factors: list[Expression] = []
            while True:
                token = tokens[self.at]
                plain = token != "(" and RESERVED.get(token) != "NOT"
                factors.append(self.predicate(depth) if plain else self.factor(depth))
                joint = RESERVED.get(tokens[self.at])
                if joint != "AND":
                    break
                self.at += 1
            alternatives.append(all_of(factors))
            if joint != "OR":
                break
            self.at += 1
        return any_of(alternatives)

    def factor(self, depth: int) -> Expression:
        """A predicate or a group in parentheses, after any number of NOTs."""
        tokens = self.tokens
        outside = depth
        while RESERVED.get(tokens[self.at]) == "NOT":
            depth = self.deeper(depth)
            self.at += 1
        negations = depth - outside
        if tokens[self.at] == "(":
            depth = self.deeper(depth)
            self.at += 1
            child = self.expression(depth)
            if tokens[self.at] != ")":
                raise self.no_joint("a closing )")
            self.at += 1
        else:
            child = self.predicate(depth)
        for _ in range(negations):
            child = Not(child)
        return child

    def no_joint(self, closing: str) -> ExpressionError:
        """The error for the next token, after a whole predicate or group."""
        before, token = self.tokens[self.at - 1], self.tokens[self.at]
        return self.with_position(syntax_errors.no_joint(before, token, closing), self.at)

    def deeper(self, depth: int) -> int:
        """The depth one level further in, where that is allowed."""
        if depth >= self.limits.depth:
            raise self.too_deep(self.at)
        if depth >= self.deepest:
            self.deepest, self.deepest_at = depth + 1, self.at
        return depth + 1

    def check_depth(self, expression: Expression) -> None:
        """Refuse a tree that whoever walks it by recursion could not walk."""
        if tree_depth(expression) > self.limits.depth:
            raise self.too_deep(self.deepest_at)

    def too_deep(self, at: int) -> ExpressionError:
        """The error for what is nested too deep around the *at*-th token."""
        large = LimitError(f"nested deeper than {self.limits.depth} levels, which is the limit")
        return self.with_position(large, at)

    def predicate(self, depth: int) -> Expression:
        """One predicate, from its attribute, its value or its function's name on."""
        start = self.at
        if self.predicates == self.limits.predicates:
            large = LimitError(f"more than {self.predicates:,} predicates, which is the limit")
            raise self.with_position(large, start)
        self.predicates += 1
        token = self.tokens[start]
        following = self.tokens[start + 1]
        operator = _OPERATORS.get(following)
        if is_plain_name(token):
            if operator is None and following == "(":
                return self.call(token, depth)
            if operator is None and is_string(following):  # TIMESTAMP '…'
                return self.turned_comparison()
            attribute = self.known(token)
        elif token[:1] == "`":
            attribute = self.attribute()
        else:
            return self.turned_comparison()
        if operator is not None:
            self.at = start + 2
            constant = self.constant()
            return comparison.read(self, attribute, operator, constant, start, start + 2)
        return self.worded(attribute, start)

    def worded(self, attribute: str, start: int) -> Expression:
        """A keyword's predicate, from behind its attribute on; or a boolean attribute alone."""
        token = self.tokens[self.at]
        word = RESERVED.get(token, "")
        if word in ("AND", "OR") or token in (END, ")", ","):
            return comparison.read(self, attribute, "=", TRUE, start, start)
        read = AFTER_ATTRIBUTE.get(word)
        if read is None and word != "NOT":
            error = syntax_errors.no_operator(attribute, token, self.tokens[self.at + 1])
            raise self.with_position(error, self.at)
        self.at += 1
        return Not(self.negated(attribute, start)) if read is None else read(self, attribute, start)

    def negated(self, attribute: str, start: int) -> Expression:
        """`IN (…)`, `BETWEEN …` or `LIKE …`, after NOT."""
        token = self.tokens[self.at]
        word = RESERVED.get(token, "")
        if word not in ("IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE"):
            error = syntax_errors.expected("IN, BETWEEN, LIKE, ILIKE or RLIKE after NOT", token)
            raise self.with_position(error, self.at)
        self.at += 1
        return AFTER_ATTRIBUTE[word](self, attribute, start)

    def turned_comparison(self) -> Expression:
        """`constant operator attribute`, or TRUE or FALSE alone."""
        start = self.at
        if not self.starts_constant():
            raise self.with_position(syntax_errors.no_predicate(self.tokens[start]), start)
        constant = self.constant()
        operator = _OPERATORS.get(self.tokens[self.at])
        if operator is None:
            if constant.kind is Kind.BOOLEAN:
                return Truth(bool(constant.value))
            raise self.with_position(syntax_errors.lone_value(self.tokens[self.at]), start, self.at)
        self.at += 1
        if self.starts_constant():
            raise self.with_position(syntax_errors.two_values(), start, self.at + 1)
        attribute = self.attribute()
        return comparison.read(self, attribute, _TURNED[operator], constant, start, start)

    def call(self, token: str, depth: int) -> Expression:
        """A function's predicate, from its name on."""
        start = self.at
        name = token.lower()
        if name == "weight":
            return self.weight(depth)
        read = FUNCTIONS.get(name)
        if read is None:
            raise self.with_position(syntax_errors.no_such_predicate(token, NAMES), start)
        self.at = start + 2
        predicate = read(self, name)
        kind = attribute_kind(predicate)
        if kind is not None:
            self.use(predicate.attribute, kind, start)
        return predicate

    def weight(self, depth: int) -> Expression:
        """`weight(predicate, number)`, from its name on."""
        start = self.at
        if self.weighing:
            raise self.with_position(syntax_errors.nested_weight(), start)
        self.weighing = True
        self.predicates -= 1  # the one inside counts
        self.at = start + 2
        expression = self.expression(depth)
        self.weighing = False
        take(self, ",", "weight")
        number = self.number("a weight")
        take(self, ")", "weight")
        try:
            return weighted(expression, number, inf if self.limits.are_of_our_own else MOST_WEIGHT)
        except ExpressionError as error:
            raise self.with_position(error, start, self.at) from None
