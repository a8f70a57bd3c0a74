"""Joining and cutting columns, against lists of plain Python values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.encoding.check import check
from stentor.encoding.columns import EventColumns, SubscriptionColumns, empty, read_only_columns
from stentor.encoding.kinds import (
    NEGATABLE,
    NEGATED,
    WITH_PAIRS,
    WITH_STRINGS,
    PredicateKind,
    is_among,
    traits,
)
from stentor.encoding.ragged import concatenate, take, with_offsets
from stentor.errors import CapacityError
from tests.support.plain import (
    PlainEvent,
    PlainPredicate,
    PlainSubscription,
    PlainValue,
    event_columns,
    events_from,
    subscription_columns,
    subscriptions_from,
)

numbers = st.sampled_from([-1.5, 0.0, 1.0, 2.0, np.inf])
hashes = st.sampled_from([0, 1, 2**63, 2**64 - 1])
codes = st.integers(0, 3)
times = st.integers(-3, 3)
short_bytes = st.binary(max_size=3)
hashed_bytes = st.tuples(hashes, short_bytes)


def short_tuples(items):
    return st.lists(items, max_size=3).map(tuple)


def predicates_of(kinds, operands):
    return st.builds(
        PlainPredicate, st.sampled_from(kinds), codes, numbers, numbers, numbers, operands
    )


def with_operands(kind, operand):
    least = max(1, traits(PredicateKind(kind)).least_operands)
    some = st.lists(operand, min_size=least, max_size=least + 2).map(tuple)
    return predicates_of([kind, kind | NEGATED] if is_among(kind, NEGATABLE) else [kind], some)


pairs, strings = (
    st.tuples(numbers, numbers),
    st.tuples(hashes, st.integers(0, 2), short_bytes),
)
predicates = st.one_of(
    predicates_of([0, 2, 3], st.just(())),
    *(with_operands(int(kind), pairs) for kind in PredicateKind if is_among(kind, WITH_PAIRS)),
    *(with_operands(int(kind), strings) for kind in PredicateKind if is_among(kind, WITH_STRINGS)),
)
subscriptions = st.lists(
    st.builds(
        PlainSubscription,
        short_tuples(short_tuples(predicates)),
        st.tuples(numbers, numbers),
        times,
    ),
    max_size=4,
)
events = st.lists(
    st.builds(
        PlainEvent,
        short_tuples(
            st.builds(PlainValue, codes, numbers, numbers, st.none() | hashed_bytes),
        ),
        short_tuples(hashed_bytes),
        short_tuples(st.tuples(codes, numbers)),
        times,
        times,
        times,
    ),
    max_size=4,
)


def chosen_rows(data, count):
    rows = data.draw(st.lists(st.integers(0, count - 1), max_size=6)) if count else []
    return np.array(rows, np.int64)


@given(st.lists(subscriptions, min_size=1, max_size=3), st.data())
def test_taking_from_joined_subscriptions_is_taking_from_a_joined_list(parts, data):
    everyone = [one for part in parts for one in part]
    joined = concatenate([subscription_columns(part) for part in parts])
    check(joined)
    assert subscriptions_from(joined) == everyone
    rows = chosen_rows(data, len(everyone))
    taken = take(joined, rows)
    check(taken)
    assert subscriptions_from(taken) == [everyone[row] for row in rows]


@given(st.lists(events, min_size=1, max_size=3), st.data())
def test_taking_from_joined_events_is_taking_from_a_joined_list(parts, data):
    everyone = [one for part in parts for one in part]
    joined = concatenate([event_columns(part) for part in parts])
    check(joined)
    assert events_from(joined) == everyone
    rows = chosen_rows(data, len(everyone))
    taken = take(joined, rows)
    check(taken)
    assert events_from(taken) == [everyone[row] for row in rows]


@given(subscriptions, events)
def test_taking_every_row_gives_the_same_arrays(some_subscriptions, some_events):
    for columns in (subscription_columns(some_subscriptions), event_columns(some_events)):
        again = take(columns, np.arange(len(columns.until)))
        for name, before, after in zip(columns._fields, columns, again, strict=True):
            np.testing.assert_array_equal(before, after, err_msg=name)


@given(subscriptions)
def test_nothing_is_kept_that_no_row_refers_to(some):
    columns = take(subscription_columns(some * 2), np.arange(len(some)))
    for name, alone, cut in zip(columns._fields, subscription_columns(some), columns, strict=True):
        assert len(alone) == len(cut), name


def test_a_string_that_events_share_stays_shared():
    columns = event_columns(
        [PlainEvent((PlainValue(0, 0.0, 0.0, (7, b"Oslo")),)) for _ in range(3)]
    )
    shared = read_only_columns(
        columns._replace(
            string=np.zeros(3),
            string_hash=columns.string_hash[:1],
            string_start=columns.string_start[:2],
            string_bytes=columns.string_bytes[:4],
        )
    )
    taken = take(shared, np.array([2, 0]))
    check(taken)
    assert taken.string.tolist() == [0, 0]
    assert taken.string_bytes.tobytes() == b"Oslo"


def test_terms_may_overlap_in_their_bytes():
    columns = read_only_columns(
        event_columns([PlainEvent((), ((1, b"ab"), (2, b"bc")))])._replace(
            term_bytes=np.frombuffer(b"abc", np.uint8),
            term_byte_start=np.array([0, 1]),
            term_byte_stop=np.array([2, 3]),
        )
    )
    joined = concatenate([columns, take(columns, np.array([0, 0]))])
    check(joined)
    assert [one.terms for one in events_from(joined)] == [((1, b"ab"), (2, b"bc"))] * 3


@pytest.mark.parametrize("kind", [SubscriptionColumns, EventColumns])
def test_no_rows_joined_with_no_rows_are_no_rows(kind):
    joined = concatenate([empty(kind), empty(kind)])
    check(joined)
    for one, other in zip(joined, empty(kind), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("kind", "heap"),
    [
        (SubscriptionColumns, "pair_low"),
        (SubscriptionColumns, "string_hash"),
        (EventColumns, "string_hash"),
    ],
)
def test_more_operands_than_a_number_can_count_are_refused(kind, heap):
    sizes = dict.fromkeys(kind._fields, 0)
    columns = empty(kind)
    with_offsets(columns, sizes | {heap: 2**31 - 1})
    with pytest.raises(CapacityError, match="split"):
        with_offsets(columns, sizes | {heap: 2**31})
