"""Subscriptions and records of all kinds from dicts and back."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.broker.messages import kind_of
from stentor.errors import (
    ExpressionSyntaxError,
    LimitError,
    RecordError,
    StentorError,
    TypeConflictError,
    UnknownAttributeError,
)
from stentor.language.limits import Limits
from stentor.model import Comparison, Constant, Event, Kind, Point, Schema, Subscription
from stentor.model.record import (
    OPERATIONS,
    OPS,
    EventRecord,
    Move,
    Op,
    Operation,
    Publish,
    Record,
    Subscribe,
    Unsubscribe,
)
from stentor.wire.limits import RecordLimits
from stentor.wire.records import (
    record_from_dict,
    record_to_dict,
    subscription_from_dict,
    subscription_to_dict,
)

CHEAP = Comparison("price", "<", Constant(Kind.NUMBER, 300.0))


def read(raw, schema=None, default_op=None):
    return record_from_dict(raw, Schema() if schema is None else schema, default_op=default_op)


def test_each_op_is_read():
    event = Event("e", {"price": Constant(Kind.NUMBER, 1.0)})
    assert read({"op": "publish", "id": "e", "price": 1, "time": 2}) == Publish(event, 2_000_000)
    assert read(
        {"op": "subscribe", "id": "ana", "expression": "price < 300", "at": [1, 2], "until": 3}
    ) == Subscribe(Subscription("ana", CHEAP, Point(1.0, 2.0), 3_000_000))
    assert read({"op": "unsubscribe", "id": 7}) == Unsubscribe("7")
    place = {"type": "Point", "coordinates": [1, 2, 99]}
    assert read({"op": "move", "id": "ana", "at": place, "time": 0}) == Move("ana", Point(1, 2), 0)


def test_a_record_without_an_op_does_the_default():
    assert read({"id": "ana"}, default_op="unsubscribe") == Unsubscribe("ana")
    with pytest.raises(RecordError, match=r"op: expected one of subscribe, .*, got nothing"):
        read({"id": "ana"})
    with pytest.raises(RecordError, match="got 'destroy'"):
        read({"id": "ana", "op": "destroy"})
    with pytest.raises(RecordError, match="op: "):
        read({"id": "ana", "op": ["move"]})


def test_a_null_field_is_left_out():
    raw = {"op": "unsubscribe", "id": "ana", "at": None, "expression": None, "price": None}
    assert read(raw) == Unsubscribe("ana")


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"op": "subscribe", "id": "a"}, "expression"),
        ({"op": "subscribe", "id": "a", "expression": 5}, "expression"),
        ({"op": "subscribe", "id": "a", "expression": "x = 1", "untill": 5}, "untill"),
        ({"op": "subscribe", "id": "a", "expression": "x = 1", "at": "here"}, "at"),
        ({"op": "subscribe", "id": "a", "expression": "x = 1", "at": [1]}, "at"),
        ({"op": "subscribe", "id": "a", "expression": "x = 1", "at": [33.9, 151.2]}, "at"),
        ({"op": "subscribe", "id": "a", "expression": "x = 1", "at": {"low": 1, "high": 2}}, "at"),
        ({"op": "subscribe", "expression": "x = 1"}, "id"),
        ({"op": "move", "id": "a"}, "at"),
        ({"op": "move", "id": "a", "at": [1, 2], "expression": "x = 1"}, "expression"),
        ({"op": "unsubscribe", "id": "a", "until": 5}, "until"),
        ({"op": "unsubscribe", "id": "a", "time": "soon"}, "time"),
        ({"op": "unsubscribe", "id": "a", "seq": 1.5}, "seq"),
        ({"op": "unsubscribe", "id": "a", "seq": -1}, "seq"),
    ],
)
def test_a_bad_field_is_named(raw, field):
    with pytest.raises(RecordError) as caught:
        read(raw)
    assert caught.value.field == field


def test_swapped_coordinates_get_a_hint():
    with pytest.raises(RecordError, match=r"the order is \[longitude, latitude"):
        read({"op": "move", "id": "a", "at": [-33.9, 151.2]})


def test_a_bad_expression_is_underlined():
    with pytest.raises(ExpressionSyntaxError, match=r"\^"):
        read({"op": "subscribe", "id": "a", "expression": "price <"})


def test_the_limits_of_expressions_are_part_of_the_limits_of_records():
    limits = RecordLimits(expression=Limits(bytes=5))
    with pytest.raises(LimitError):
        subscription_from_dict({"id": "a", "expression": "price < 300"}, Schema(), limits)


def test_a_subscription_teaches_the_schema_only_where_all_of_it_is_valid():
    schema = Schema()
    for raw in (
        {"id": "a", "expression": "price < 300", "at": "x"},
        {"id": "a", "expression": "price < 300", "until": "x"},
        {"expression": "price < 300"},
    ):
        with pytest.raises(StentorError):
            subscription_from_dict(raw, schema)
        assert len(schema) == 0
    subscription_from_dict({"id": "a", "expression": "price < 300"}, schema)
    assert schema.kind("price") is Kind.NUMBER


def test_a_conflict_between_an_event_and_a_subscription_names_both():
    schema = Schema()
    subscription_from_dict({"id": "ana", "expression": "price < 300"}, schema)
    with pytest.raises(TypeConflictError) as caught:
        read({"op": "publish", "id": "e1", "price": "cheap"}, schema)
    assert "event 'e1'" in str(caught.value)
    assert "subscription 'ana'" in str(caught.value)


def test_a_declared_schema_refuses_other_names_in_expressions():
    schema = Schema.declare({"price": "number"})
    with pytest.raises(UnknownAttributeError, match="did you mean 'price'"):
        subscription_from_dict({"id": "ana", "expression": "pirce < 300"}, schema)


ids = st.text(min_size=1, max_size=6)
times = st.none() | st.integers(-(10**15), 10**15)
places = st.builds(Point, st.floats(-180, 180), st.floats(-90, 90)).map(
    lambda one: Point(one.x + 0.0, one.y + 0.0)
)
subscriptions = st.builds(Subscription, ids, st.just(CHEAP), st.none() | places, times)
records = (
    st.builds(Subscribe, subscriptions, times)
    | st.builds(Unsubscribe, ids, times)
    | st.builds(Move, ids, places, times)
    | st.builds(Publish, st.builds(Event, ids, st.just({}), until=times), times)
)


@given(subscriptions)
def test_a_subscription_comes_back_from_its_dict(subscription):
    assert subscription_from_dict(subscription_to_dict(subscription), Schema()) == subscription


@given(records)
def test_a_record_comes_back_from_its_dict(record):
    assert record_from_dict(record_to_dict(record), Schema()) == record


def test_one_table_says_what_operations_there_are():
    assert {rule.record for rule in OPERATIONS.values()} == set(get_args(Record))
    assert set(OPERATIONS) == set(Operation)
    assert get_args(Op) == OPS
    for operation, rule in OPERATIONS.items():
        assert Operation.of(rule.word) is operation
        assert operation.word == rule.record.__name__.lower() == operation.name.lower()
        assert operation.is_event == issubclass(rule.record, get_args(EventRecord))
    assert kind_of(Move("ana", Point(0, 0))) == "move"
