"""Events from dicts and back: the one place that says what a plain event means."""

import math
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from stentor.errors import RecordError, TypeConflictError
from stentor.language.terms import fold_terms
from stentor.model import Constant, Event, Kind, Range, Schema
from stentor.model.values.time import parse_timestamp
from stentor.wire.events import event_from_dict, event_to_dict
from stentor.wire.limits import RecordLimits


def read(raw, schema=None, **limits):
    return event_from_dict(raw, Schema() if schema is None else schema, RecordLimits(**limits))


def value(raw, schema=None):
    return read({"id": "e", "x": raw}, schema).attributes.get("x")


def refused(raw, schema=None, **limits):
    with pytest.raises(RecordError) as caught:
        read(raw, schema, **limits)
    return caught.value


# What is an attribute


def test_what_is_not_reserved_is_an_attribute():
    raw = {"id": "e1", "price": 299, "until": 5, "time": 1, "seq": 4, "op": "publish", "note": None}
    event = read({**raw, "weights": {"price": 2}})
    assert event == Event("e1", {"price": Constant(Kind.NUMBER, 299.0)}, {"price": 2.0}, 5_000_000)


def test_in_the_nested_form_every_name_is_free():
    event = read({"id": "e1", "attributes": {"id": 1, "until": True, "attributes": "x"}})
    assert event.attributes == {
        "id": Constant(Kind.NUMBER, 1.0),
        "until": Constant(Kind.BOOLEAN, 1.0),
        "attributes": Constant(Kind.STRING, "x"),
    }
    assert event.until is None


def test_beside_nested_attributes_nothing_else_may_stand():
    error = refused({"id": "e1", "attributes": {}, "untill": 5})
    assert error.field == "untill"
    assert "did you mean 'until'?" in str(error)


def test_an_attribute_may_be_called_attributes_where_it_is_no_object():
    assert read({"id": "e", "attributes": 3}).attributes == {"attributes": Constant(Kind.NUMBER, 3)}


# Values, each with what happens


def test_nan_is_the_same_as_leaving_the_attribute_out():
    schema = Schema()
    assert value(math.nan, schema) is None
    assert "x" not in schema


def test_infinities_are_numbers():
    assert value(math.inf) == Constant(Kind.NUMBER, math.inf)
    assert value({"low": -math.inf, "high": 3}) == Range(Kind.NUMBER, -math.inf, 3.0)


def test_minus_zero_is_zero():
    assert math.copysign(1.0, value(-0.0).value) == 1.0
    assert math.copysign(1.0, value([-0.0, 0]).x) == 1.0


def test_an_integer_that_a_double_cannot_hold_is_refused_with_advice():
    error = refused({"id": "e", "x": 2**53 + 1})
    assert error.field == "x"
    assert "9007199254740993" in str(error)
    assert "send it as a string" in str(error)
    assert value(2**53) == Constant(Kind.NUMBER, 2.0**53)
    assert value(2**60) == Constant(Kind.NUMBER, 2.0**60)
    refused({"id": "e", "x": 10**400})


def test_an_empty_string_is_a_string_without_terms():
    assert value("") == Constant(Kind.STRING, "")
    assert fold_terms("") == []


def test_a_text_of_ten_thousand_terms_is_read_whole():
    text = " ".join(f"term{place}" for place in range(10_000))
    assert len(fold_terms(value(text).value)) == 10_000


def test_time_zones_are_kept_as_instants():
    schema = Schema.declare({"x": "timestamp"})
    noon = float(parse_timestamp("2026-07-01 12:00:00"))
    rome = datetime(2026, 7, 1, 14, tzinfo=ZoneInfo("Europe/Rome"))
    texts = ("2026-07-01T14:00:00+02:00", "2026-07-01 12:00:00Z", "2026-07-01 12:00:00")
    for raw in (*texts, "2026-07-01 14:00:00 Europe/Rome", rome, datetime(2026, 7, 1, 12)):
        assert value(raw, schema) == Constant(Kind.TIMESTAMP, noon)
    assert value(date(1970, 1, 2)) == Constant(Kind.TIMESTAMP, 86_400e6)


def test_half_of_a_surrogate_pair_is_refused():
    assert "surrogate" in str(refused({"id": "e", "x": "\ud800"}))
    assert refused({"id": "\ud800"}).field == "id"


def test_objects_and_lists_that_are_no_value_name_their_field():
    schema = Schema.declare({"x": "number"})
    for raw in ({"a": 1}, [1, 2, 3], ["a", "b"], {"low": 2, "high": 1}, b"x"):
        assert refused({"id": "e", "x": raw}, schema).field == "x"


# Ids, weights, instants


def test_an_integer_id_is_its_decimal_text():
    assert read({"id": -7}).id == "-7"


@pytest.mark.parametrize("id", [None, "", 1.5, True, ["a"], "x" * 513, "é" * 257, 10**600])
def test_other_ids_are_refused(id):
    assert refused({"id": id}).field == "id"


@pytest.mark.parametrize("weight", [-1, math.nan, math.inf, True, "1", 2**53 + 1])
def test_a_weight_is_finite_and_at_least_zero(weight):
    assert refused({"id": "e", "weights": {"price": weight}}).field == "weights.price"


def test_a_null_weight_is_left_out():
    assert read({"id": "e", "weights": {"price": None, "brand": 0}}).weights == {"brand": 0.0}
    assert refused({"id": "e", "weights": [1]}).field == "weights"


@pytest.mark.parametrize(
    "until", [True, "soon", math.inf, 1e13, -(10**400), 1_700_000_000_000, [5]]
)
def test_an_until_that_is_no_instant_is_refused(until):
    assert refused({"id": "e", "until": until}).field == "until"


def test_an_op_other_than_publish_is_refused():
    assert refused({"id": "e", "op": "subscribe"}).field == "op"


def test_what_is_no_object_is_refused():
    for raw in ([], "e", None, 5):
        refused(raw)
    refused({5: 1, "id": "e"})
    refused({"": 1, "id": "e"})


# Limits


def test_attributes_strings_and_the_whole_are_bounded():
    raw = {"id": "e", "a": "xxxx", "b": "éé"}
    assert read(raw, attributes=2, string_bytes=4, record_bytes=8)
    assert "attributes" in str(refused(raw, attributes=1))
    assert refused(raw, string_bytes=3).field == "a"
    assert "strings have 8 bytes" in str(refused(raw, record_bytes=7))


# What the schema learns


def test_a_valid_event_teaches_the_schema():
    schema = Schema()
    read({"id": "e", "price": 1, "loc": [0, 90], "weights": {"brand": 2}}, schema)
    assert {name: schema.kind(name) for name in schema} == {
        "price": Kind.NUMBER,
        "loc": Kind.POINT,
        "brand": None,  # a weight counts for `brand IS NULL` too
    }


def test_a_refused_event_teaches_nothing():
    schema = Schema()
    for raw in (
        {"price": 1},
        {"id": "e", "price": 1, "until": "soon"},
        {"id": "e", "price": 1, "other": {"low": 2, "high": 1}},
        {"id": "e", "price": 1, "weights": {"x": -1}},
    ):
        refused(raw, schema)
    assert len(schema) == 0


def test_a_conflict_names_both_uses_and_teaches_nothing():
    schema = Schema()
    read({"id": "e1", "price": 1}, schema)
    with pytest.raises(TypeConflictError) as caught:
        read({"id": "e2", "brand": "x", "price": "cheap"}, schema)
    assert "a string in event 'e2'" in str(caught.value)
    assert "a number in event 'e1'" in str(caught.value)
    assert "brand" not in schema


def test_a_declared_schema_ignores_other_attributes_unread():
    schema = Schema.declare({"price": "number"})
    event = read({"id": "e", "price": 1, "extra": {"deep": []}, "weights": {"extra": 2}}, schema)
    assert list(event.attributes) == ["price"]
    assert event.weights == {}
    assert list(schema) == ["price"]
    with pytest.raises(TypeConflictError):
        read({"id": "e", "price": "cheap"}, schema)


# Back out


def test_whole_numbers_are_written_as_integers():
    event = Event("e", {"a": Constant(Kind.NUMBER, 299.0), "b": Constant(Kind.NUMBER, 0.5)})
    assert repr(event_to_dict(event)) == "{'id': 'e', 'a': 299, 'b': 0.5}"


def test_the_offset_of_a_zone_is_not_kept():
    moment = datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    event = read({"id": "e", "x": moment})
    assert event_to_dict(event)["x"] == moment.astimezone(UTC).isoformat()
