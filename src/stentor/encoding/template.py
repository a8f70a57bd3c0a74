"""Many subscriptions of one shape → columns at once.

Subscriptions come in few shapes with other constants. A template is one shape: a conjunction in
which constants stand in slots. It is compiled from a tree that the ordinary parser built, and
filled with whole columns of constants. Whatever does not fit (other shapes, odd constants) takes
the ordinary way, one by one; both ways give equal columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import (
    Float64,
    Int64,
    SubscriptionColumns,
    UInt8,
    UInt64,
    sealed,
)
from stentor.encoding.fillers import (
    Constants,
    Filled,
    Rows,
    fill_box,
    fill_circle,
    fill_gaps,
    fill_number_list,
    fill_presence,
    fill_span,
    fill_strings,
    fill_terms,
    slots_of,
)
from stentor.encoding.slots import NumberSlot
from stentor.language.evaluate import by_attribute
from stentor.language.negation import Literal, push_inward
from stentor.model import (
    And,
    Between,
    Box,
    Circle,
    Comparison,
    Constant,
    Expression,
    Has,
    In,
    IsNull,
    Kind,
    Schema,
    Within,
)

Filler = Callable[[Rows], Filled]
Kept = slice | npt.NDArray[np.bool_]


class _Part(NamedTuple):
    """What stands on one attribute: how to fill it in, and the weights of its predicates."""

    attribute: str
    filler: Filler
    weights: tuple[float, ...]


class Template(NamedTuple):
    """A compiled shape; its parts stand in the order of the attributes' names."""

    parts: tuple[_Part, ...]

    def fill(
        self, constants: Constants, position: Float64, until: Int64, schema: Schema
    ) -> tuple[SubscriptionColumns, Int64]:
        """The columns of all rows that fit, and which rows these are.

        *constants* has a column for each slot, *position* (n, 2) and *until* (n,) a row for each
        subscription.
        """
        rows = Rows(len(until), position, constants, schema.plane)
        filled = [part.filler(rows) for part in self.parts]
        weights = [_weight(part.weights, rows) for part in self.parts]
        fits = np.ones(rows.count, np.bool_)
        for one, weight in zip(filled, weights, strict=True):
            fits &= ~one.odd & np.isfinite(weight) & (weight >= 0)
        codes = [schema.code(part.attribute) for part in self.parts]
        kept = slice(None) if fits.all() else fits  # a slice copies nothing
        columns = _assembled(filled, weights, codes, kept, position[kept], until[kept])
        return columns, np.flatnonzero(fits)


def compile_template(expression: Expression, slots: int) -> Template | None:
    """The template of *expression*; None where it has none, or loses one of its *slots*."""
    children = expression.children if isinstance(expression, And) else (expression,)
    literals = [literal for literal in map(push_inward, children) if isinstance(literal, Literal)]
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
    """How to fill in what *group* asks of one attribute; None where it takes the ordinary way."""
    weights = tuple(literal.weight for literal in group)
    if len(weights) > 2 and any(isinstance(weight, NumberSlot) for weight in weights):
        return None
    filler = _span_filler(group) if len(group) > 1 else _filler(group[0])
    return None if filler is None else _Part(attribute, filler, weights)


def _filler(literal: Literal) -> Filler | None:
    negated = literal.negated
    match literal.predicate:
        case IsNull():
            return partial(fill_presence, not negated)
        case Comparison(_, "=" | "!=" as operator, constant) if isinstance(constant.value, str):
            return partial(fill_strings, (constant,), operator == "!=")
        case Comparison(_, "!=", Constant(Kind.BOOLEAN)) | In(_, (Constant(Kind.BOOLEAN), *_)):
            return None  # there are but two, which the ordinary way knows
        case Comparison(_, "!=", constant):
            return partial(fill_gaps, (constant,))
        case In(_, values):
            if isinstance(values[0].value, str):
                return partial(fill_strings, values, negated)
            return partial(fill_gaps if negated else fill_number_list, values)
        case Has() as predicate:
            return partial(fill_terms, predicate, negated)
        case Within(_, Box() as box):
            return partial(fill_box, box, negated)
        case Within(_, Circle() as circle):
            return partial(fill_circle, circle, negated)
        case _:
            return _span_filler([literal])


def _span_filler(group: list[Literal]) -> Filler | None:
    """Numeric comparisons with different operators; equal ones might be one predicate repeated."""
    predicates: list[Comparison | Between] = []
    operators: list[str] = []
    for literal in group:
        predicate = literal.predicate
        if isinstance(predicate, Comparison) and isinstance(predicate.value.value, float):
            operators.append(predicate.operator)
        elif isinstance(predicate, Between) and isinstance(predicate.low.value, float):
            operators.append("between")
        else:
            return None
        if literal.negated:
            return None
        predicates.append(predicate)
    if "!=" in operators or len(set(operators)) < len(operators):
        return None
    return partial(fill_span, predicates)


def _weight(weights: tuple[float, ...], rows: Rows) -> Float64:
    """The sum of an attribute's weights; more than two are summed exactly, as `fsum` does."""
    if len(weights) <= 2:
        total: Float64 = np.sum([rows.number(weight) for weight in weights], axis=0)
        return total
    return np.full(rows.count, math.fsum(weights))


def _assembled(
    filled: Sequence[Filled],
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
    for place, one in enumerate(filled):
        width, stops = (pairs, pair_stop) if one.pair_low.shape[1] else (strings, string_stop)
        size = one.pair_low.shape[1] or len(one.marks)
        if size:
            operand_stop[:, place] = np.arange(count) * width + stops[place]
            operand_start[:, place] = operand_stop[:, place] - size

    def by_row(columns: Sequence[Float64]) -> Float64:
        return np.column_stack([column[kept] for column in columns]).ravel()

    string_hash, string_start, string_bytes = _strings(filled, kept)
    return sealed(
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


def _strings(filled: Sequence[Filled], kept: Kept) -> tuple[UInt64, Int64, UInt8]:
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
