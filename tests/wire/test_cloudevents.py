"""CloudEvents 1.0 in the structured JSON format."""

import io
import json

import pytest

from stentor.errors import RecordError
from stentor.model import Constant, Event, Kind, Match, Schema
from stentor.model.record import Publish
from stentor.model.values.time import parse_timestamp
from stentor.wire.cloudevents import delivery_to_cloudevent, event_to_cloudevent
from stentor.wire.events import event_to_dict
from stentor.wire.files import read_records
from stentor.wire.formats import ReadSettings, record_from_object
from stentor.wire.json_text import to_json

OFFER = {
    "specversion": "1.0",
    "id": "A-1",
    "source": "/shop#west",
    "type": "com.example.offer",
    "subject": "ipad",
    "time": "2026-04-05T17:31:00Z",
    "expirytime": "2026-04-06T00:00:00+02:00",
    "datacontenttype": "application/json",
    "priority": 3,
    "urgent": True,
    "data": {"price": 299, "time": "later"},
}


def read(raw, schema=None):
    return record_from_object(raw, Schema() if schema is None else schema, ReadSettings())


def test_a_cloudevent_is_an_event():
    assert read(OFFER) == Publish(
        Event(
            "/shop#west#A-1",
            {
                "price": Constant(Kind.NUMBER, 299.0),
                "time": Constant(Kind.STRING, "later"),
                "ce_source": Constant(Kind.STRING, "/shop#west"),
                "ce_type": Constant(Kind.STRING, "com.example.offer"),
                "ce_subject": Constant(Kind.STRING, "ipad"),
                "ce_datacontenttype": Constant(Kind.STRING, "application/json"),
                "ce_priority": Constant(Kind.NUMBER, 3.0),
                "ce_urgent": Constant(Kind.BOOLEAN, 1.0),
            },
            until=parse_timestamp("2026-04-05 22:00:00"),
        ),
        parse_timestamp("2026-04-05 17:31:00"),
    )


def test_the_same_id_from_two_sources_is_two_events():
    assert read({**OFFER, "source": "/other"}).event.id == "/other#A-1"


def test_data_may_be_missing():
    assert "price" not in read({**OFFER, "data": None}).event.attributes


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"specversion": "0.3"}, "specversion"),
        ({"specversion": 1.0}, "specversion"),
        ({"id": ""}, "id"),
        ({"id": 5}, "id"),
        ({"source": None}, "source"),
        ({"type": 5}, "type"),
        ({"subject": ""}, "subject"),
        ({"data": "text"}, "data"),
        ({"data": [1, 2]}, "data"),
        ({"data_base64": "AAAA"}, "data_base64"),
        ({"Priority": 3}, "Priority"),
        ({"extension": {"a": 1}}, "extension"),
        ({"extension": 1.5}, "extension"),
        ({"extension": 2**31}, "extension"),
        ({"data": {"ce_type": "x"}}, "ce_type"),
        ({"time": "soon"}, "time"),
        ({"expirytime": "soon"}, "until"),
        ({"id": "x" * 512}, "id"),
    ],
)
def test_a_cloudevent_that_is_no_event_names_the_field(change, field):
    with pytest.raises(RecordError) as caught:
        read({**OFFER, **change})
    assert caught.value.field == field


def test_a_batch_is_an_array():
    text = json.dumps([OFFER, {**OFFER, "id": "A-2"}, {**OFFER, "id": ""}])
    first, second, rejected = read_records(io.BytesIO(text.encode()), Schema())
    assert [first.event.id, second.event.id] == ["/shop#west#A-1", "/shop#west#A-2"]
    assert rejected.reason.startswith("id: ")


def test_what_came_as_a_cloudevent_goes_out_as_the_same():
    record = read(OFFER)
    written = event_to_cloudevent(record.event, time=record.time)
    expected = {**OFFER, "time": "2026-04-05T17:31:00+00:00"}
    assert written == {**expected, "expirytime": "2026-04-05T22:00:00+00:00"}
    assert read(written) == record


def test_what_is_no_context_attribute_stays_in_the_data():
    event = Event("e", {"ce_Name": Constant(Kind.NUMBER, 1.0), "ce_x": Constant(Kind.NUMBER, 1.5)})
    assert event_to_cloudevent(event)["data"] == {"ce_Name": 1, "ce_x": 1.5}


def test_a_delivery_is_a_cloudevent_for_the_subscription():
    event = Event("e1", {"price": Constant(Kind.NUMBER, 299.0)}, until=0)
    delivery = delivery_to_cloudevent(Match("e1", "ana", 2.0), event, source="/broker", time=0)
    assert delivery == {
        "specversion": "1.0",
        "id": "e1#ana",
        "source": "/broker",
        "type": "stentor.delivery",
        "subject": "ana",
        "time": "1970-01-01T00:00:00+00:00",
        "expirytime": "1970-01-01T00:00:00+00:00",
        "datacontenttype": "application/json",
        "data": {"event": event_to_dict(event), "score": 2.0},
    }
    assert to_json(delivery)
