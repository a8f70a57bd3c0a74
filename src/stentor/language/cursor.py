"""Reading tokens from left to right: values, names, and errors that know their place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from stentor.errors import ExpressionError, UnknownAttributeError
from stentor.language import mistakes
from stentor.language.constants import FALSE, TRUE, constant_of, timestamp_constant
from stentor.language.lexer import RESERVED, is_plain_name, is_word, place, tokenize
from stentor.language.limits import Limits
from stentor.language.numbers import read_number
from stentor.language.strings import is_string, unquote, unquote_name
from stentor.model.kind import Kind
from stentor.model.schema import Schema
from stentor.model.value import Constant

#: Called with a literal's number in the text and its value; gives what goes into the tree.
LiteralHook = Callable[[int, float | str], float | str]

_Literal = TypeVar("_Literal", float, str)

_NUMBER_STARTS = frozenset("0123456789.")
_STRING_STARTS = frozenset("'\"")
# Looking a member up in an Enum takes longer than reading a number.
_NUMBER = Kind.NUMBER
_STRING = Kind.STRING
_new_tuple = tuple.__new__


class Cursor:
    """A position in the tokens of a text, and what its values may be.

    Literals and parameters reach the tree as the objects they are, or as their negatives: whoever
    gives floats or strings of a class of their own finds them there.
    """

    __slots__ = ("at", "limits", "literal", "literals", "parameters", "schema", "text", "tokens")

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

    def placed(
        self, error: ExpressionError, start: int, stop: int | None = None
    ) -> ExpressionError:
        """*error*, underlining the tokens from *start* to *stop* (one, where it is not said).

        An error that already has its place keeps it: the innermost knows best.
        """
        if error.start is not None:
            return error
        error.text = self.text
        error.start, error.stop = place(self.text, start)
        if stop is not None and stop > start + 1:
            error.stop = place(self.text, stop - 1)[1]
        return error

    def starts_constant(self) -> bool:
        """Whether a value stands here."""
        token = self.tokens[self.at]
        if token[:1] in _NUMBER_STARTS or token[:1] in ("-", ":") or is_string(token):
            return True
        if is_string(self.tokens[self.at + 1]):  # TIMESTAMP '…'
            return token.isidentifier()
        return RESERVED.get(token) in ("TRUE", "FALSE")

    def constant(self) -> Constant:
        """The value that stands here, behind which the cursor goes."""
        token = self.tokens[self.at]
        start = token[:1]
        if start in _NUMBER_STARTS:
            return _new_tuple(Constant, (_NUMBER, self._literal(read_number, token)))
        if start in _STRING_STARTS or is_string(token):
            return _new_tuple(Constant, (_STRING, self._literal(unquote, token)))
        try:
            return self._rare_constant(token)
        except ExpressionError as error:
            raise self.placed(error, self.at) from None

    def number(self, what: str) -> float:
        """The number that stands here; *what* says in an error what it is for."""
        at = self.at
        token = self.tokens[at]
        if token[:1] in _NUMBER_STARTS:
            return self._literal(read_number, token)
        constant = self.constant()
        if isinstance(constant.value, str) or constant.kind is not _NUMBER:
            unfit = ExpressionError(f"{what} is a number, got a {constant.kind}")
            raise self.placed(unfit, at, self.at)
        return constant.value

    def string(self, what: str) -> str:
        """The string that stands here; *what* says in an error what it is for."""
        at = self.at
        token = self.tokens[at]
        if token[:1] in _STRING_STARTS:
            return self._literal(unquote, token)
        constant = self.constant()
        if not isinstance(constant.value, str):
            unfit = ExpressionError(
                f"{what} is a string, got a {constant.kind}", hint="put it in quotes: 'text'"
            )
            raise self.placed(unfit, at, self.at)
        return constant.value

    def _literal(self, read: Callable[[str], _Literal], token: str) -> _Literal:
        """The value of the literal *token*, passed through the hook."""
        try:
            value = read(token)
        except ExpressionError as error:
            raise self.placed(error, self.at) from None
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
        raise mistakes.no_value(token, following)

    def _negative(self) -> Constant:
        minus = self.at
        self.at += 1
        token = self.tokens[self.at]
        if token[:1] not in _NUMBER_STARTS and token[:1] != ":":
            raise mistakes.expected("a number after the minus", token)
        constant = self.constant()
        value = constant.value
        if isinstance(value, str) or constant.kind is not _NUMBER:
            unfit = ExpressionError(f"a {constant.kind} has no negative")
            raise self.placed(unfit, minus, self.at)
        return Constant(_NUMBER, 0.0 - value if type(value) is float else -value)  # never -0.0

    def _timestamp(self) -> Constant:
        at = self.at
        self.at += 1
        text = self.string("what TIMESTAMP takes")
        try:
            return timestamp_constant(text)
        except ExpressionError as error:
            raise self.placed(error, at, self.at) from None

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
            raise self.placed(mistakes.no_attribute(token), self.at)
        try:
            return self.known(unquote_name(token))
        except ExpressionError as error:
            raise self.placed(error, self.at) from None

    def known(self, name: str) -> str:
        """The attribute *name*, whose token stands here; a declared schema has it."""
        schema = self.schema
        if schema is not None and schema.declared and name not in schema:
            nearest = schema.nearest(name)
            unknown = UnknownAttributeError(
                f"no attribute {name[:60]!r} in this schema",
                hint=f"did you mean {nearest!r}?" if nearest else None,
            )
            raise self.placed(unknown, self.at)
        self.at += 1
        return name
