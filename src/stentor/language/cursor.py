"""Reading tokens from left to right: values, names, and errors that know their position."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from stentor.errors import ExpressionError, TypeConflictError, UnknownAttributeError
from stentor.language import syntax_errors
from stentor.language.lexer import RESERVED, is_plain_name, is_word, token_span, tokenize
from stentor.language.limits import Limits
from stentor.language.literals import (
    FALSE,
    TRUE,
    constant_of,
    is_string,
    mixed,
    read_number,
    timestamp_constant,
    unquote,
    unquote_name,
)
from stentor.language.regular import TableBudget
from stentor.model.kind import Kind
from stentor.model.record import RECORD_FIELDS
from stentor.model.schema import Schema
from stentor.model.values import Constant

#: Called with a literal's number in the text and its value; gives what goes into the tree.
LiteralHook = Callable[[int, float | str], float | str]

_Literal = TypeVar("_Literal", float, str)

_NUMBER_STARTS = frozenset("0123456789.")
_STRING_STARTS = frozenset("'\"")
_FIELDS = frozenset(RECORD_FIELDS)
# Looking a member up in an Enum takes longer than reading a number.
_NUMBER = Kind.NUMBER
_STRING = Kind.STRING
_new_tuple = tuple.__new__


class Cursor:
    """A position in the tokens of a text, what its values may be, and of which kind attributes are.

    One name has one kind: each predicate is checked against the expression's earlier ones and the
    schema. *start* is always the number of the predicate's first token.

    Literals and parameters reach the tree as the objects they are, or as their negatives: whoever
    gives floats or strings of a class of their own finds them there.
    """

    __slots__ = (
        "at",
        "limits",
        "literal",
        "literals",
        "parameters",
        "schema",
        "tables",
        "text",
        "tokens",
        "uses",
    )

    def __init__(
        self,
        text: str,
        schema: Schema | None,
        limits: Limits,
        parameters: Mapping[str, object] | None,
        literal: LiteralHook | None,
    ) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0
        self.schema = schema
        self.limits = limits
        self.parameters = parameters
        self.literal = literal
        self.literals = 0
        self.tables = TableBudget(limits.pattern_work)
        self.uses: dict[str, tuple[Kind, int, int]] = {}  # first predicate: kind, start, stop

    def with_position(
        self, error: ExpressionError, start: int, stop: int | None = None
    ) -> ExpressionError:
        """*error*, underlining the tokens from *start* to *stop* (one, where it is not said).

        An error that already has its position keeps it: the innermost knows best.
        """
        if error.start is not None:
            return error
        error.text = self.text
        error.start, error.stop = token_span(self.text, start)
        if stop is not None and stop > start + 1:
            error.stop = token_span(self.text, stop - 1)[1]
        return error

    def starts_constant(self) -> bool:
        """Whether the next token is a value."""
        token = self.tokens[self.at]
        if token[:1] in _NUMBER_STARTS or token[:1] in ("-", ":") or is_string(token):
            return True
        if is_string(self.tokens[self.at + 1]):  # TIMESTAMP '…'
            return token.isidentifier()
        return RESERVED.get(token) in ("TRUE", "FALSE")

    def constant(self) -> Constant:
        """The value here, behind which the cursor goes."""
        token = self.tokens[self.at]
        start = token[:1]
        if start in _NUMBER_STARTS:
            return _new_tuple(Constant, (_NUMBER, self._literal(read_number, token)))
        if start in _STRING_STARTS or is_string(token):
            return _new_tuple(Constant, (_STRING, self._literal(unquote, token)))
        try:
            return self._rare_constant(token)
        except ExpressionError as error:
            raise self.with_position(error, self.at) from None

    def number(self, what: str) -> float:
        """The number here; *what* says in an error what it is for."""
        at = self.at
        token = self.tokens[at]
        if token[:1] in _NUMBER_STARTS:
            return self._literal(read_number, token)
        constant = self.constant()
        if isinstance(constant.value, str) or constant.kind is not _NUMBER:
            unfit = ExpressionError(f"{what} is a number, got a {constant.kind}")
            raise self.with_position(unfit, at, self.at)
        return constant.value

    def string(self, what: str) -> str:
        """The string here; *what* says in an error what it is for."""
        at = self.at
        token = self.tokens[at]
        if token[:1] in _STRING_STARTS:
            return self._literal(unquote, token)
        constant = self.constant()
        if not isinstance(constant.value, str):
            unfit = ExpressionError(
                f"{what} is a string, got a {constant.kind}", hint="put it in quotes: 'text'"
            )
            raise self.with_position(unfit, at, self.at)
        return constant.value

    def _literal(self, read: Callable[[str], _Literal], token: str) -> _Literal:
        """The value of the literal *token*, passed through the hook."""
        try:
            value = read(token)
        except ExpressionError as error:
            raise self.with_position(error, self.at) from None
        self.at += 1
        if self.literal is not None:
            value = self.literal(self.literals, value)  # type: ignore[assignment]  # of its kind
            self.literals += 1
        return value

    def _rare_constant(self, token: str) -> Constant:
        word = RESERVED.get(token)
        if word in ("TRUE", "FALSE"):
            self.at += 1
            return TRUE if word == "TRUE" else FALSE
        if token == "-":
            return self._negative()
        if token[:1] == ":" and token[1:2].isidentifier():
            constant = self._parameter(token)
            self.at += 1
            return constant
        following = self.tokens[self.at + 1]
        if is_word(token, "TIMESTAMP") and is_string(following):
            return self._timestamp()
        raise syntax_errors.no_value(token, following)

    def _negative(self) -> Constant:
        minus = self.at
        self.at += 1
        token = self.tokens[self.at]
        if token[:1] not in _NUMBER_STARTS and token[:1] != ":":
            raise syntax_errors.expected("a number after the minus", token)
        constant = self.constant()
        value = constant.value
        if isinstance(value, str) or constant.kind is not _NUMBER:
            unfit = ExpressionError(f"a {constant.kind} has no negative")
            raise self.with_position(unfit, minus, self.at)
        return Constant(_NUMBER, 0.0 - value if type(value) is float else -value)  # never -0.0

    def _timestamp(self) -> Constant:
        at = self.at
        self.at += 1
        text = self.string("what TIMESTAMP takes")
        try:
            return timestamp_constant(text)
        except ExpressionError as error:
            raise self.with_position(error, at, self.at) from None

    def _parameter(self, token: str) -> Constant:
        name = token[1:]
        if self.parameters is None or name not in self.parameters:
            known = ", ".join(f":{given}" for given in self.parameters or ())
            raise ExpressionError(
                f"the parameter {token} has no value",
                hint=f"the parameters given are {known}" if known else "pass it in parameters",
            )
        raw = self.parameters[name]
        constant = constant_of(raw, token)
        if isinstance(raw, float) and type(raw) is not float and not hasattr(raw, "item"):
            # A class of the caller's own, not NumPy's: it wants to find its object in the tree.
            return Constant(_NUMBER, raw)
        return constant

    def attribute(self) -> str:
        """The attribute that is named here."""
        token = self.tokens[self.at]
        if is_plain_name(token):
            return self.known(token)
        if token[:1] != "`":
            raise self.with_position(syntax_errors.no_attribute(token), self.at)
        try:
            return self.known(unquote_name(token))
        except ExpressionError as error:
            raise self.with_position(error, self.at) from None

    def known(self, name: str) -> str:
        """The attribute *name*, whose token is next; a declared schema has it."""
        if name in _FIELDS and not self.limits.are_of_our_own:
            raise self.with_position(syntax_errors.field_asked_for(name), self.at)
        schema = self.schema
        if schema is not None and schema.declared and name not in schema:
            nearest = schema.nearest(name)
            unknown = UnknownAttributeError(
                f"no attribute {name[:60]!r} in this schema",
                hint=f"did you mean {nearest!r}?" if nearest else None,
            )
            raise self.with_position(unknown, self.at)
        self.at += 1
        return name

    def listed(self, attribute: str, kind: Kind | None) -> Constant:
        """The constant here, of the *kind* of those before it."""
        at = self.at
        constant = self.constant()
        if self.schema is not None and constant.kind is _STRING:
            constant = self.fitted(attribute, constant, at)
        if kind is not None and constant.kind is not kind:
            raise self.with_position(mixed(constant.kind, kind), at, self.at)
        return constant

    def fitted(self, attribute: str, constant: Constant, at: int) -> Constant:
        """*constant*, a string, as the schema wants it: perhaps as a timestamp."""
        if self.schema is None or self.schema.kind(attribute) is not Kind.TIMESTAMP:
            return constant
        try:
            return timestamp_constant(str(constant.value))
        except ExpressionError as error:
            raise self.with_position(error, at) from None

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
        return self.with_position(error, start, self.at)

    def shown(self, start: int, stop: int, width: int = 60) -> str:
        """The text of the tokens from *start* to *stop*, cut short."""
        text = self.text[token_span(self.text, start)[0] : token_span(self.text, stop - 1)[1]]
        return text if len(text) <= width else text[:width] + "…"
