"""Many subscriptions of one shape → columns at once.

Subscriptions come in few shapes with other constants. A template is one shape: a conjunction in
which constants fill slots. It is compiled from a tree that the ordinary parser built, and
filled with whole columns of constants. Whatever does not fit (other shapes, odd constants) takes
the ordinary way, one by one; both ways give equal columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import (
    Float64,
    Int64,
    SubscriptionColumns,
    UInt8,
    UInt64,
    empty,
    read_only_columns,
)
from stentor.encoding.predicates import filler, slots_of
from stentor.encoding.predicates.filled import Constants, FilledPredicate, Filler, TemplateRows
from stentor.encoding.ragged import concatenate, take
from stentor.encoding.slots import NumberSlot
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.errors import StentorError
from stentor.language.check import check_and_learn
from stentor.language.evaluate import by_attribute
from stentor.language.limits import Limits
from stentor.language.negation import Literal, to_negation_normal_form
from stentor.model import And, Expression, Point, Schema
from stentor.model.scoring import MOST_WEIGHT
from stentor.model.values.time import NEVER

Kept = slice | npt.NDArray[np.bool_]


class _Part(NamedTuple):
    """One attribute: how to fill in its predicates, and their weights."""

    attribute: str
    fill: Filler
    weights: tuple[float, ...]


class Template(NamedTuple):
    """A compiled shape; its parts are in the order of the attributes' names."""

    parts: tuple[_Part, ...]

    def fill(
        self, constants: Constants, position: Float64, until: Int64, schema: Schema
    ) -> tuple[SubscriptionColumns, Int64]:
        """The columns of all rows that fit, and which rows these are.

        *constants* has a column for each slot, *position* (n, 2) and *until* (n,) a row for each
        subscription.
        """
        rows = TemplateRows(len(until), position, constants, schema.plane)
        filled = [part.fill(rows) for part in self.parts]
        given = [[rows.number(weight) for weight in part.weights] for part in self.parts]
        fits = np.ones(rows.count, np.bool_)
        for one, numbers in zip(filled, given, strict=True):
            fits &= ~one.odd
            for weight in numbers:
                fits &= (weight >= 0) & (weight <= MOST_WEIGHT)
        weights = [_weight(part, numbers) for part, numbers in zip(self.parts, given, strict=True)]
        codes = [schema.code(part.attribute) for part in self.parts]
        kept = slice(None) if fits.all() else fits  # a slice copies nothing
        columns = _assembled(filled, weights, codes, kept, position[kept], until[kept])
        return columns, np.flatnonzero(fits)


def compile_template(expression: Expression, slots: int) -> Template | None:
    """The template of *expression*; None where it has none, or loses one of its *slots*."""
    children = expression.children if isinstance(expression, And) else (expression,)
    literals = [
        literal
        for literal in map(to_negation_normal_form, children)
        if isinstance(literal, Literal)
    ]
    if len(literals) < len(children):
        return None
    if {slot for literal in literals for slot in _slots(literal)} != set(range(slots)):
        return None
    groups = sorted(by_attribute(tuple(literals)).items())
    parts = [_part(attribute, group) for attribute, group in groups]
    fitting = tuple(part for part in parts if part is not None)
    return Template(fitting) if len(fitting) == len(parts) else None


def _slots(literal: Literal) -> list[int]:
    weight = [literal.weight.slot] if isinstance(literal.weight, NumberSlot) else []
    return slots_of(literal.predicate) + weight


def _part(attribute: str, group: list[Literal]) -> _Part | None:
    """How to fill in the tests of *group* on one attribute; None where they must be parsed."""
    weights = tuple(literal.weight for literal in group)
    if len(weights) > 2 and any(isinstance(weight, NumberSlot) for weight in weights):
        return None
    fill = filler(group)
    return None if fill is None else _Part(attribute, fill, weights)


def _weight(part: _Part, numbers: Sequence[Float64]) -> Float64:
    """The sum of an attribute's weights; more than two are summed exactly, as `fsum` does."""
    if len(numbers) <= 2:
        with np.errstate(over="ignore"):  # in rows that do not fit
            total: Float64 = np.sum(numbers, axis=0)
        return total
    return np.full_like(numbers[0], math.fsum(part.weights))


def _assembled(
    filled: Sequence[FilledPredicate],
    weights: Sequence[Float64],
    codes: Sequence[int],
    kept: Kept,
    position: Float64,
    until: Int64,
) -> SubscriptionColumns:
    """The columns of the rows *kept*, predicate after predicate, subscription by subscription."""
    count, predicates = len(until), len(filled)
    pair_stop = np.cumsum([one.pair_low.shape[1] for one in filled])
    string_stop = np.cumsum([len(one.marks) for one in filled])
    pairs, strings = int(pair_stop[-1]), int(string_stop[-1])
    operand_start = np.zeros((count, predicates), np.int32)
    operand_stop = np.zeros((count, predicates), np.int32)
    for number, one in enumerate(filled):
        width, stops = (pairs, pair_stop) if one.pair_low.shape[1] else (strings, string_stop)
        size = one.pair_low.shape[1] or len(one.marks)
        if size:
            operand_stop[:, number] = np.arange(count) * width + stops[number]
            operand_start[:, number] = operand_stop[:, number] - size

    def by_row(columns: Sequence[Float64]) -> Float64:
        return np.column_stack([column[kept] for column in columns]).ravel()

    string_hash, string_start, string_bytes = _strings(filled, kept)
    return read_only_columns(
        SubscriptionColumns(
            alternative_start=np.arange(count + 1),
            predicate_start=np.arange(count + 1) * predicates,
            kind=np.tile(np.array([one.kind for one in filled], np.uint8), count),
            attribute=np.tile(np.array(codes, np.int32), count),
            low=by_row([one.low for one in filled]),
            high=by_row([one.high for one in filled]),
            weight=by_row(weights),
            operand_start=operand_start.ravel(),
            operand_stop=operand_stop.ravel(),
            pair_low=by_row([one.pair_low for one in filled]),
            pair_high=by_row([one.pair_high for one in filled]),
            string_hash=string_hash,
            string_mark=np.tile(
                np.array([mark for one in filled for mark in one.marks], np.uint8), count
            ),
            string_start=string_start,
            string_bytes=string_bytes,
            position=position.ravel(),
            until=until,
        )
    )


def _strings(filled: Sequence[FilledPredicate], kept: Kept) -> tuple[UInt64, Int64, UInt8]:
    """Hashes, offsets and bytes of all strings, subscription by subscription."""
    tables = [one.words for one in filled if one.words is not None]
    if not tables:
        return np.zeros(0, np.uint64), np.zeros(1, np.int64), np.zeros(0, np.uint8)
    words_before = np.cumsum([0, *(len(table.hash) for table in tables)])
    coded = [one for one in filled if one.words is not None]
    codes = np.column_stack(
        [one.codes[kept] + before for one, before in zip(coded, words_before, strict=False)]
    ).ravel()
    lengths = np.concatenate([np.diff(table.start) for table in tables])
    word_start = np.concatenate([[0], np.cumsum(lengths)])
    start = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(lengths[codes], out=start[1:])
    data = np.concatenate([table.data for table in tables])
    bytes_from = np.repeat(word_start[codes] - start[:-1], lengths[codes])
    string_bytes = data[bytes_from + np.arange(start[-1])]
    return np.concatenate([table.hash for table in tables])[codes], start, string_bytes


class SubscriptionHeads(NamedTuple):
    """The ids of subscriptions to be encoded, their locations, and until when each is current."""

    ids: Sequence[str]
    position: Float64  # (n, 2) NaN where there is none
    until: Int64  # (n,) NEVER where there is no end


class EncodedSubscriptions(NamedTuple):
    """What could be encoded, in order; which rows these are; what was wrong with the others."""

    columns: SubscriptionColumns
    rows: Int64
    errors: dict[int, StentorError]


class SubscriptionCollector:
    """Groups of encoded subscriptions that become one `EncodedSubscriptions`."""

    def __init__(self, schema: Schema, limits: Limits, heads: SubscriptionHeads) -> None:
        self._schema = schema
        self._limits = limits
        self._heads = heads
        self._columns: list[SubscriptionColumns] = []
        self._rows: list[Int64] = []
        self._ordinary: dict[int, NormalisedSubscription] = {}  # by row
        self._errors: dict[int, StentorError] = {}

    def add_filled(self, template: Template, rows: list[int], constants: Constants) -> list[int]:
        """Fill *template* for *rows*; the rows that it does not fit."""
        at = np.array(rows, np.int64)
        columns, fitting = template.fill(
            constants, self._heads.position[at], self._heads.until[at], self._schema
        )
        self._columns.append(columns)
        self._rows.append(at[fitting])
        odd: list[int] = np.delete(at, fitting).tolist()
        return odd

    def add_joined(self, joined: tuple[SubscriptionColumns, Int64, list[int]] | None) -> list[int]:
        """Add columns that were filled elsewhere, and their rows; the rows that did not fit."""
        if joined is None:
            return []
        columns, rows, odd = joined
        self._columns.append(columns)
        self._rows.append(rows)
        return odd

    def add_ordinary(self, row: int, expression: str | Expression) -> bool:
        """Add one row by parsing it; what is wrong with it becomes its error, and the answer no."""
        x, y = self._heads.position[row].tolist()
        until = int(self._heads.until[row])
        try:
            where = f"subscription {self._heads.ids[row]!r}"
            _, form = check_and_learn(expression, self._schema, where=where, limits=self._limits)
            at = None if math.isnan(x) else Point(x, y)
            subscription = NormalisedSubscription(
                form, at, None if until == NEVER else until
            ).checked()
        except StentorError as error:
            self.refuse(row, error)
            return False
        self._ordinary[row] = subscription
        return True

    def refuse(self, row: int, error: StentorError) -> None:
        """Note what is wrong with *row*."""
        self._errors[row] = error

    def encoded(self) -> EncodedSubscriptions:
        """Everything that was added, in the order of rows."""
        if self._ordinary:
            self._columns.append(encode_subscriptions(self._ordinary.values(), self._schema))
            self._rows.append(np.array(list(self._ordinary), np.int64))
        if len(self._columns) == 1:
            return EncodedSubscriptions(self._columns[0], self._rows[0], self._errors)
        columns = concatenate(self._columns) if self._columns else empty(SubscriptionColumns)
        rows = np.concatenate([np.zeros(0, np.int64), *self._rows])
        order = np.argsort(rows, kind="stable").astype(np.int64)
        if not np.array_equal(order, np.arange(len(order))):
            columns, rows = take(columns, order), rows[order]
        return EncodedSubscriptions(columns, rows, self._errors)
