"""What holds for all columns, asserted: for tests and for `check()` of an index."""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import (
    KIND_MASK,
    NO_STRING,
    Columns,
    EventColumns,
    Int32,
    Int64,
    SubscriptionColumns,
    dtypes,
)
from stentor.encoding.ragged import PAIR_KINDS, STRING_KINDS


def check(columns: Columns) -> None:
    """Assert that *columns* are sealed, that their arrays fit together and refer to what exists."""
    for (name, dtype), array in zip(dtypes(type(columns)).items(), columns, strict=True):
        assert type(array) is np.ndarray, name
        assert array.dtype == dtype, name
        assert array.ndim == 1, name
        assert array.flags.c_contiguous, name
        assert not array.flags.writeable, name
    if isinstance(columns, SubscriptionColumns):
        _check_subscriptions(columns)
    else:
        _check_events(columns)


def _check_subscriptions(columns: SubscriptionColumns) -> None:
    subscriptions = len(columns.until)
    alternatives = len(columns.predicate_start) - 1
    predicates = len(columns.kind)
    strings = len(columns.string_hash)
    _check_offsets(columns.alternative_start, subscriptions, alternatives)
    _check_offsets(columns.predicate_start, alternatives, predicates)
    _check_offsets(columns.string_start, strings, len(columns.string_bytes))
    assert len(columns.position) == 2 * subscriptions
    for array in (columns.attribute, columns.low, columns.high, columns.weight):
        assert len(array) == predicates
    assert len(columns.pair_low) == len(columns.pair_high)
    assert len(columns.string_mark) == strings
    kinds = columns.kind & KIND_MASK
    has_pairs, has_strings = np.isin(kinds, PAIR_KINDS), np.isin(kinds, STRING_KINDS)
    start, stop = columns.operand_start, columns.operand_stop
    _check_slices(start[has_pairs], stop[has_pairs], len(columns.pair_low))
    _check_slices(start[has_strings], stop[has_strings], strings)
    unused = ~(has_pairs | has_strings)
    assert not start[unused].any()
    assert not stop[unused].any()


def _check_events(columns: EventColumns) -> None:
    events = len(columns.until)
    values = len(columns.attribute)
    strings = len(columns.string_hash)
    terms = len(columns.term_hash)
    weights = len(columns.weight)
    _check_offsets(columns.value_start, events, values)
    _check_offsets(columns.term_start, events, terms)
    _check_offsets(columns.weight_start, events, weights)
    _check_offsets(columns.string_start, strings, len(columns.string_bytes))
    assert len(columns.time) == len(columns.seq) == events
    assert len(columns.low) == len(columns.high) == len(columns.string) == values
    assert len(columns.weight_attribute) == weights
    assert ((columns.string >= NO_STRING) & (columns.string < strings)).all()
    _check_slices(columns.term_byte_start, columns.term_byte_stop, len(columns.term_bytes))


def _check_offsets(offsets: Int64, rows: int, children: int) -> None:
    assert len(offsets) == rows + 1
    assert offsets[0] == 0
    assert offsets[-1] == children
    assert (np.diff(offsets) >= 0).all()


def _check_slices(start: Int32 | Int64, stop: Int32 | Int64, count: int) -> None:
    assert len(start) == len(stop)
    assert ((start >= 0) & (start <= stop) & (stop <= count)).all()
