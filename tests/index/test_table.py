"""Tables that grow, hide, close and move rows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.encoding.columns import EventColumns, SubscriptionColumns, empty
from stentor.encoding.kinds import CIRCLE, INTERVAL, MEMBERSHIP, NEGATED, OWN_CIRCLE
from stentor.errors import ReadOnlyError
from stentor.index.table import FROM_THE_START, EventTable, SubscriptionTable
from stentor.model.geometry import circle_box, circle_terms
from stentor.model.values.time import NEVER
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


def circle(kind, x, y, radius, plane=False):
    west, south, east, north = circle_box(x, y, radius, plane)
    pairs = ((west, east), (south, north), (x, y), circle_terms(y, radius, plane))
    own = ((radius, float(plane)),) if kind & ~NEGATED == OWN_CIRCLE else ()
    return PlainPredicate(kind, 0, -math.inf, math.inf, 1.0, pairs + own)


def subscription(number, x=0.0, y=0.0, plane=False):
    """One that holds every form of operand; *number* tells it from others."""
    span = PlainPredicate(INTERVAL, 1, float(number), number + 1.0, 0.5)
    one_of = PlainPredicate(MEMBERSHIP, 2, 0.0, 1.0, 1.0, ((number, 0, b"a" * (number % 5)),))
    here = circle(OWN_CIRCLE, x, y, 10.0 + number, plane)
    not_here = circle(OWN_CIRCLE | NEGATED, x, y, 5.0, plane)
    return PlainSubscription(
        ((span, here), (circle(CIRCLE, 1.0, 2.0, 3.0, plane), one_of, not_here)),
        (x, y),
        number,
    )


def event(number):
    return PlainEvent(
        (PlainValue(0, float(number), 1.0), PlainValue(1, 0.0, 0.0, (number, b"b" * number))),
        ((number, b"term"),),
        ((0, 2.0),),
        seq=number,
    )


batches = st.lists(st.integers(0, 3) | st.just(20), max_size=8)


@given(batches)
def test_batches_of_subscriptions_stand_one_after_the_other(sizes):
    table, everyone = SubscriptionTable(), []
    for size in sizes:
        batch = [subscription(len(everyone) + i) for i in range(size)]
        assert table.append(subscription_columns(batch)) == len(everyone)
        everyone += batch
        table.check()
        assert table.count == table.current_count == len(everyone)
        assert subscriptions_from(table.columns) == everyone


@given(batches)
def test_batches_of_events_stand_one_after_the_other(sizes):
    table, everyone = EventTable(), []
    for size in sizes:
        batch = [event(len(everyone) + i) for i in range(size)]
        assert table.append(event_columns(batch)) == len(everyone)
        everyone += batch
        table.check()
        assert table.count == table.current_count == len(everyone)
        assert events_from(table.columns) == everyone


def test_a_view_handed_out_earlier_stays_as_it_was():
    table = SubscriptionTable()
    table.append(subscription_columns([subscription(0)]))
    before = table.columns
    assert table.columns is before
    for number in range(1, 100):
        table.append(subscription_columns([subscription(number)]))
    assert subscriptions_from(before) == [subscription(0)]


def test_hidden_rows_are_counted_once():
    table = SubscriptionTable()
    table.append(subscription_columns([subscription(i) for i in range(4)]))
    table.hide(np.array([1, 1]))
    table.hide(np.array([1, 3]))
    assert table.validity.hidden.tolist() == [0, 1, 0, 1]
    assert (table.count, table.current_count) == (4, 2)
    assert table.current_rows().tolist() == [0, 2]


def test_hidden_events_are_counted_once():
    table = EventTable()
    table.append(event_columns([event(i) for i in range(3)]))
    table.hide(np.array([2, 2]))
    assert table.hidden.tolist() == [0, 0, 1]
    assert (table.count, table.current_count) == (3, 2)
    assert table.current_rows().tolist() == [0, 1]


def test_spans_of_records_take_no_memory_until_a_row_has_one():
    table = SubscriptionTable()
    table.append(subscription_columns([subscription(0)]))
    assert [len(array) for array in table.validity] == [1, 0, 0]
    table.append(subscription_columns([subscription(1)]), since=5)
    table.append(subscription_columns([subscription(2), subscription(3)]), np.array([6, 7]))
    assert table.validity.since.tolist() == [FROM_THE_START, 5, 6, 7]
    assert len(table.validity.upto) == 0
    table.close(np.array([3, 0]), np.array([9, 8]))
    assert table.validity.upto.tolist() == [8, NEVER, NEVER, 9]
    table.append(subscription_columns([subscription(4)]))
    assert table.validity.since.tolist() == [FROM_THE_START, 5, 6, 7, FROM_THE_START]
    assert table.validity.upto.tolist() == [8, NEVER, NEVER, 9, NEVER]
    assert table.current_rows().tolist() == [1, 2, 4]
    assert [table.is_current(row) for row in range(5)] == [False, True, True, False, True]
    table.check()


places = st.tuples(
    st.sampled_from([-180.0, -179.99999, 0.0, 1 / 3, 151.2, 180.0]),
    st.sampled_from([-90.0, -89.9999, 0.0, 1 / 3, -33.9, 90.0]),
)


@given(st.lists(places, min_size=3, max_size=3), st.lists(places, max_size=4), st.booleans())
def test_moved_rows_are_what_would_be_encoded_at_the_new_place(first, then, plane):
    table = SubscriptionTable()
    expected = [subscription(i, x, y, plane) for i, (x, y) in enumerate(first)]
    table.append(subscription_columns(expected))
    view = table.columns
    rows = np.array([2, 0, 0, 1])[: len(then)]
    table.move(rows, np.array(then, np.float64).reshape(-1, 2))
    for row, (x, y) in zip(rows, then, strict=True):
        expected[row] = subscription(int(row), x, y, plane)
    assert subscriptions_from(table.columns) == expected
    assert table.columns is view
    table.check()


def test_a_table_over_mapped_columns_copies_nothing_and_can_only_hide():
    columns = subscription_columns([subscription(i) for i in range(3)])
    table = SubscriptionTable.over(columns)
    table.check()
    for own, given_array in zip(table.columns, columns, strict=True):
        assert np.shares_memory(own, given_array) or not len(own)
    table.hide(np.array([1]))
    assert table.validity.hidden.tolist() == [0, 1, 0]
    assert (table.count, table.current_count) == (3, 2)
    assert table.nbytes >= sum(array.nbytes for array in columns)
    with pytest.raises(ReadOnlyError, match="layered"):
        table.append(columns)
    with pytest.raises(ReadOnlyError, match="layered"):
        table.move(np.array([0]), np.zeros((1, 2)))
    with pytest.raises(ReadOnlyError, match="layered"):
        table.close(np.array([0]), np.array([1]))


def test_tables_of_nothing_are_sound():
    for table, kind in (
        (SubscriptionTable(), SubscriptionColumns),
        (EventTable(), EventColumns),
        (SubscriptionTable.over(empty(SubscriptionColumns)), SubscriptionColumns),
    ):
        table.check()
        assert (table.count, table.current_count, len(table.current_rows())) == (0, 0, 0)
        assert isinstance(table.columns, kind)


def test_no_array_that_a_table_shows_can_be_written():
    table, live = SubscriptionTable(), EventTable()
    table.append(subscription_columns([subscription(0)]), since=3)
    table.close(np.array([0]), 4)
    live.append(event_columns([event(0)]))
    for array in (*table.columns, *table.validity, *live.columns, live.hidden):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
