"""Invariants of all columns: asserted by `check()` of an index, checked of columns from outside.

Every offset, slice, code and row number is looked at, so that no kernel leaves an array; what the
numbers mean is not. Cost: a pass over each array, about a gigabyte a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import (
    NO_STRING,
    Columns,
    EventColumns,
    Int32,
    Int64,
    SubscriptionColumns,
    dtypes,
)
from stentor.encoding.kinds import (
    KIND_MASK,
    KNOWN,
    NEGATABLE,
    NEGATED,
    WITH_PAIRS,
    WITH_STRINGS,
    PredicateKind,
    are_among,
    traits,
)

#: Operands that a kind has at least.
_LEAST_OPERANDS = np.zeros(KIND_MASK + 1, np.int64)
_LEAST_OPERANDS[list(PredicateKind)] = [traits(kind).least_operands for kind in PredicateKind]


def check(columns: Columns) -> None:
    """Assert that *columns* are sealed, that their arrays fit together and refer to what exists."""
    assert not any(array.flags.writeable for array in columns)
    found = fault(columns)
    assert found is None, found


def fault(columns: Columns, attributes: int | None = None) -> str | None:
    """What is wrong with *columns*, of a schema of so many *attributes*; None where nothing is."""
    for name, dtype in dtypes(type(columns)).items():
        if not is_plain(getattr(columns, name), dtype):
            return f"{name} is no plain array of {np.dtype(dtype)}"
    most = np.iinfo(np.int32).max if attributes is None else attributes
    if isinstance(columns, SubscriptionColumns):
        rules = _subscription_rules(columns, most)
    else:
        rules = _event_rules(columns, most)
    return next((what for what, holds in rules if not holds), None)


def is_plain(array: npt.NDArray[Any], dtype: npt.DTypeLike) -> bool:
    """Whether *array* is of the form that kernels take, read-only or not."""
    is_array = type(array) is np.ndarray and array.dtype == dtype
    return is_array and array.ndim == 1 and array.flags.c_contiguous


def _subscription_rules(columns: SubscriptionColumns, most: int) -> Iterator[tuple[str, bool]]:
    """Rules and whether they hold; each takes those before it for granted."""
    subscriptions = len(columns.until)
    alternatives = len(columns.predicate_start) - 1
    predicates, pairs = len(columns.kind), len(columns.pair_low)
    strings = len(columns.string_hash)
    yield "alternative_start", are_offsets(columns.alternative_start, subscriptions, alternatives)
    yield "predicate_start", are_offsets(columns.predicate_start, alternatives, predicates)
    yield "string_start", are_offsets(columns.string_start, strings, len(columns.string_bytes))
    yield "the length of position", len(columns.position) == 2 * subscriptions
    for name in ("attribute", "low", "high", "weight", "operand_start", "operand_stop"):
        yield f"the length of {name}", len(getattr(columns, name)) == predicates
    yield "the length of pair_high", len(columns.pair_high) == pairs
    yield "the length of string_mark", len(columns.string_mark) == strings
    yield "attribute", _are_within(columns.attribute, 0, most)
    which = columns.kind & KIND_MASK
    is_known = are_among(which, KNOWN) & (columns.kind & ~np.uint8(KIND_MASK | NEGATED) == 0)
    may_be_negated = are_among(which, NEGATABLE) | (columns.kind & NEGATED == 0)
    yield "kind", bool((is_known & may_be_negated).all())
    start, stop = columns.operand_start, columns.operand_stop
    count = np.where(are_among(which, WITH_PAIRS), pairs, 0)
    count += np.where(are_among(which, WITH_STRINGS), strings, 0)
    yield "operand_start", _are_slices(start, stop, count)
    yield "operand_stop", bool((stop - start >= _LEAST_OPERANDS[which]).all())


def _event_rules(columns: EventColumns, most: int) -> Iterator[tuple[str, bool]]:
    """Rules and whether they hold; each takes those before it for granted."""
    events, values, weights = len(columns.until), len(columns.attribute), len(columns.weight)
    strings, terms = len(columns.string_hash), len(columns.term_hash)
    yield "value_start", are_offsets(columns.value_start, events, values)
    yield "term_start", are_offsets(columns.term_start, events, terms)
    yield "weight_start", are_offsets(columns.weight_start, events, weights)
    yield "string_start", are_offsets(columns.string_start, strings, len(columns.string_bytes))
    for name, rows in (("time", events), ("seq", events), ("weight_attribute", weights)):
        yield f"the length of {name}", len(getattr(columns, name)) == rows
    for name in ("low", "high", "string"):
        yield f"the length of {name}", len(getattr(columns, name)) == values
    yield "attribute", _are_within(columns.attribute, 0, most)
    yield "weight_attribute", _are_within(columns.weight_attribute, 0, most)
    yield "string", _are_within(columns.string, NO_STRING, strings)
    yield "the length of term_byte_start", len(columns.term_byte_start) == terms
    yield "the length of term_byte_stop", len(columns.term_byte_stop) == terms
    start, stop = columns.term_byte_start, columns.term_byte_stop
    yield "term_byte_start", _are_slices(start, stop, len(columns.term_bytes))


def are_offsets(offsets: Int64, rows: int, children: int) -> bool:
    """Whether *offsets* cut *children* into *rows* slices."""
    fits = len(offsets) == rows + 1 and offsets[0] == 0 and offsets[-1] == children
    return bool(fits and (offsets[1:] >= offsets[:-1]).all())


def _are_slices(start: Int32 | Int64, stop: Int32 | Int64, count: int | Int64) -> bool:
    return bool(((start >= 0) & (start <= stop) & (stop <= count)).all())


def _are_within(numbers: Int32, least: int, stop: int) -> bool:
    return bool(((numbers >= least) & (numbers < stop)).all())
