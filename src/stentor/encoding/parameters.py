"""One expression with `:name` parameters, and a table of their values → columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stentor.encoding.columns import Int64
from stentor.encoding.slots import in_slot
from stentor.encoding.template import (
    EncodedSubscriptions,
    SubscriptionCollector,
    SubscriptionHeads,
    Template,
    compile_template,
)
from stentor.errors import ExpressionError, SettingsError, StentorError
from stentor.language.check import check_and_learn
from stentor.language.lexer import parameter_spans
from stentor.language.limits import DEFAULT_LIMITS, Limits
from stentor.language.literals import constant_of, constant_text
from stentor.language.parser import parse
from stentor.language.printer import to_text
from stentor.model import Expression, Schema

#: What Arrow raises for a cell that Python has no value for: a timestamp beyond the year 9999, or
#: in a zone that nobody knows, text that is not UTF-8.
UNREADABLE: Final = (pa.ArrowException, ArithmeticError, LookupError, TypeError, ValueError)
#: What stands before a parameter that is all the words of a `has_all`.
_ALL_OF: Final = re.compile(r"(?i)\bhas_all\([ \t\n\r]*[a-z_]\w*[ \t\n\r]*,[ \t\n\r]*\Z")
#: Words that are terms as they stand but for their case, with single spaces between them.
_PLAIN_WORDS: Final = "^[A-Za-z0-9]+( [A-Za-z0-9]+){0,7}$"


class ParameterEncoder:
    """An expression in which every subscriber has constants of its own.

    >>> ParameterEncoder("price < :most AND brand = ':brand'", Schema()).names
    ['most']
    """

    def __init__(self, expression: str, schema: Schema, limits: Limits = DEFAULT_LIMITS) -> None:
        self._expression = expression
        self._schema = schema
        self._limits = limits
        locations = parameter_spans(expression)
        self.names = list(dict.fromkeys(expression[start + 1 : stop] for start, stop in locations))
        """The parameters, in the order in which they first occur."""

    def encode(self, values: Mapping[str, Any], heads: SubscriptionHeads) -> EncodedSubscriptions:
        """The columns of the expression with each row of *values* (Arrow arrays by name).

        Cost: a few passes over the arrays, whatever their types; odd rows are done one by one.
        """
        for name in self.names:
            if name not in values:
                known = ", ".join(map(repr, values)) or "none"
                raise SettingsError(
                    f"the expression has the parameter :{name}, but the table has no column of "
                    f"that name for parameters; it has {known}"
                )
        arrays = [plain_constants(values[name]) for name in self.names]
        collected = SubscriptionCollector(self._schema, self._limits, heads)
        rows = list(range(len(heads.ids)))
        columns = [_constants(array) for array in arrays]
        template = None
        if rows and columns and all(column is not None for column in columns):
            template = self._template([array[0].as_py() for array in arrays], heads.ids[0])
        if template is not None:
            rows = collected.add_filled(template, rows, columns)
            rows = self._add_by_words(collected, dict(zip(self.names, arrays, strict=True)), rows)
        for row in rows:
            try:
                given = zip(self.names, arrays, strict=True)
                own = {name: _plain(name, array, row) for name, array in given}
                collected.add_ordinary(row, self.bound(own))
            except StentorError as error:
                collected.refuse(row, error)
        return collected.encoded()

    def _add_by_words(
        self, collected: SubscriptionCollector, values: Mapping[str, Any], rows: list[int]
    ) -> list[int]:
        """Fill *rows* in which a `has_all` asks for several words, as for one word each.

        Rows with equally many words have one template. The rows that are left.
        """
        text = self._expression
        spans = [
            (start, stop)
            for start, stop in parameter_spans(text)
            if _ALL_OF.search(text, 0, start) and text[stop:].lstrip(" \t\n\r").startswith(")")
        ]
        if not spans or not rows:
            return rows
        chosen = pa.array(rows)
        own = {name: array.take(chosen) for name, array in values.items()}
        strings = [own[text[start + 1 : stop]].cast(pa.large_string()) for start, stop in spans]
        counts = np.column_stack([_word_counts(column) for column in strings])
        groups, group_of = np.unique(counts, axis=0, return_inverse=True)
        left: list[int] = []
        for number, group in enumerate(groups.tolist()):
            among = np.flatnonzero(group_of.ravel() == number)
            part = [rows[position] for position in among.tolist()]
            if 0 not in group and max(group) > 1:
                here = pa.array(among)
                given = {name: array.take(here) for name, array in own.items()}
                pieces, last = [], 0
                for (start, stop), column, count in zip(spans, strings, group, strict=True):
                    words = pc.split_pattern(column.take(here), " ")
                    names = [f"{text[start + 1 : stop]}_{start}_{word}" for word in range(count)]
                    given |= {one: pc.list_element(words, at) for at, one in enumerate(names)}
                    pieces += [text[last:start], ", ".join(f":{one}" for one in names)]
                    last = stop
                shape = ParameterEncoder(
                    "".join([*pieces, text[last:]]), self._schema, self._limits
                )
                part = shape._add_filled(collected, given, part)
            left += part
        return sorted(left)

    def _add_filled(
        self, collected: SubscriptionCollector, values: Mapping[str, Any], rows: list[int]
    ) -> list[int]:
        """Fill *rows*, whose constants *values* are; the rows that are left."""
        columns = [_constants(values[name]) for name in self.names]
        template = self._template([values[name][0].as_py() for name in self.names], str(rows[0]))
        return rows if template is None else collected.add_filled(template, rows, columns)

    def bound(self, values: Mapping[str, Any]) -> Expression:
        """The tree of the expression with *values* instead of its parameters."""
        for name in self.names:
            if values[name] is None:
                raise ExpressionError(f"the parameter :{name} has no value here")
        return parse(self._expression, schema=self._schema, limits=self._limits, parameters=values)

    def texts(self, values: Mapping[str, Any], rows: Int64) -> list[str]:
        """The expression's text with the values of each of *rows* (which are good) written in."""
        if not len(rows):
            return []
        if any(part.rstrip().endswith("-") for part in _split(self._expression)[::2]):
            arrays = {name: plain_constants(values[name]) for name in self.names}
            each = (
                {name: _plain(name, arrays[name], row) for name in arrays} for row in rows.tolist()
            )
            return [to_text(self.bound(one)) for one in each]
        written = {
            name: [
                constant_text(constant_of(value))
                for value in plain_constants(values[name]).take(pa.array(rows)).to_pylist()
            ]
            for name in self.names
        }
        columns = [
            written[part[1:]] if position % 2 else [part] * len(rows)
            for position, part in enumerate(_split(self._expression))
        ]
        return list(map("".join, zip(*columns, strict=True)))

    def _template(self, first: list[Any], id: str) -> Template | None:
        if any(value is None for value in first):
            return None
        slots = {
            name: in_slot(slot, value if isinstance(value, str) else float(value))
            for slot, (name, value) in enumerate(zip(self.names, first, strict=True))
        }
        try:
            tree = self.bound(slots)
            check_and_learn(tree, self._schema, where=f"subscription {id!r}", limits=self._limits)
        except StentorError:
            return None  # the ordinary way says what is wrong
        return compile_template(tree, len(self.names))


def _split(expression: str) -> list[str]:
    """*expression* cut so that every second part is a parameter."""
    parts, last = [], 0
    for start, stop in parameter_spans(expression):
        parts += [expression[last:start], expression[start:stop]]
        last = stop
    return [*parts, expression[last:]]


def _word_counts(column: Any) -> Int64:
    """How many plain words each string of *column* is; 0 where it is anything else."""
    counts = pc.add(pc.count_substring(column, " "), 1)
    plain = pc.if_else(pc.match_substring_regex(column, _PLAIN_WORDS), counts, 0)
    found: Int64 = plain.to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def plain_constants(array: Any) -> Any:
    """*array* in one piece, of a type that Arrow's functions know."""
    one = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return one.cast(pa.large_string()) if pa.types.is_string_view(one.type) else one


def _plain(name: str, array: Any, row: int) -> Any:
    """The parameter *name* of one row as Python has it."""
    try:
        return array[row].as_py()
    except UNREADABLE as error:
        raise ExpressionError(f"the parameter :{name} has no value in Python: {error}") from None


def _constants(array: Any) -> Any:
    """*array* as a template takes it: doubles or strings; None where it is of another type.

    A number that is missing, or that has no exact double, becomes NaN: such a row does not fit a
    template and takes the ordinary way. Where strings are missing, all rows do.
    """
    kind = array.type
    if pa.types.is_integer(kind):
        doubles = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).copy()
        whole = array.fill_null(0).to_numpy(zero_copy_only=False)
        inexact = np.abs(doubles) >= 2**53
        for row in np.flatnonzero(inexact).tolist():
            if int(doubles[row]) != int(whole[row]):
                doubles[row] = np.nan
        return doubles
    if pa.types.is_floating(kind):
        return array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        if pa.types.is_dictionary(kind) and not pa.types.is_string(kind.value_type):
            return None
        return array if array.null_count == 0 else None
    return None
