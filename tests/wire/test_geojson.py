"""GeoJSON features are events."""

import io
import json

import pytest

from stentor.errors import RecordError
from stentor.model import Constant, Event, Kind, Point, Schema
from stentor.model.record import Publish
from stentor.wire.files import read_records
from stentor.wire.formats import ReadSettings, record_from_object
from stentor.wire.geojson import event_to_feature, events_to_feature_collection, feature_to_plain
from stentor.wire.rejected import Rejected

QUAKE = {
    "type": "Feature",
    "id": "nn1",
    "properties": {"mag": 1.2, "time": 1388620296020, "type": "earthquake", "tsunami": None},
    "geometry": {"type": "Point", "coordinates": [-118.8, 38.4, 7.5]},
    "bbox": [-118.8, 38.4, -118.8, 38.4],
}


def read(raw, **settings):
    return record_from_object(raw, Schema(), ReadSettings(**settings))


def test_a_feature_is_an_event_and_its_properties_are_the_attributes():
    assert read(QUAKE) == Publish(
        Event(
            "nn1",
            {
                "mag": Constant(Kind.NUMBER, 1.2),
                "time": Constant(Kind.NUMBER, 1388620296020.0),
                "type": Constant(Kind.STRING, "earthquake"),
                "loc": Point(-118.8, 38.4),
            },
        )
    )


def test_until_time_and_weights_stand_beside_the_properties():
    record = read({**QUAKE, "until": 5, "time": 2, "weights": {"mag": 3}})
    assert (record.event.until, record.time) == (5_000_000, 2_000_000)
    assert record.event.weights == {"mag": 3.0}


def test_the_attribute_of_the_geometry_can_be_named():
    assert "place" in read(QUAKE, point="place").event.attributes


def test_the_id_may_be_a_property():
    raw = {"type": "Feature", "properties": {"id": 7, "mag": 1}, "geometry": None}
    assert read(raw).event == Event("7", {"mag": Constant(Kind.NUMBER, 1.0)})


def test_beside_the_features_own_id_a_property_id_is_an_attribute():
    raw = {"type": "Feature", "id": "a", "properties": {"id": 7}, "geometry": None}
    assert read(raw).event == Event("a", {"id": Constant(Kind.NUMBER, 7.0)})


def test_null_properties_and_a_null_geometry_are_fine():
    assert read({"type": "Feature", "id": 1, "properties": None, "geometry": None}).event == Event(
        "1", {}
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"geometry": {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}}, "centroid"),
        ({"geometry": {"type": "Point"}}, "coordinates"),
        ({"geometry": {"type": "Point", "coordinates": []}}, "two coordinates"),
        ({"geometry": {"type": "Point", "coordinates": [0, 91]}}, "not on the globe"),
        ({"geometry": 5}, "is an object"),
        ({"properties": [1]}, "is an object"),
        ({"properties": {"loc": 5}}, "choose another name"),
        ({"id": None}, "every record needs one"),
        ({"id": 1.5}, "expected a string or an integer"),
    ],
)
def test_a_feature_that_is_no_event_says_why(change, message):
    with pytest.raises(RecordError, match=message):
        read({**QUAKE, **change})


def test_other_types_are_refused_where_geojson_is_expected():
    with pytest.raises(RecordError, match="type: expected 'Feature'"):
        feature_to_plain({"type": "Point", "coordinates": [0, 0]})


def test_the_poles_and_the_antimeridian_are_places():
    for place in ([0, 90], [0, -90], [180, 0], [-180, 0]):
        raw = {**QUAKE, "geometry": {"type": "Point", "coordinates": place}}
        assert read(raw).event.attributes["loc"] == Point(*map(float, place))


def test_a_plain_event_may_have_a_type_called_feature():
    record = read({"id": "e", "type": "Feature"}, default_op="publish")
    assert record.event.attributes == {"type": Constant(Kind.STRING, "Feature")}


def test_the_format_can_be_forced():
    event = read({**QUAKE, "geometry": None}, format="json", default_op="publish").event
    assert "properties.mag" in event.attributes


def test_a_collection_gives_its_features_and_rejects_the_bad_ones():
    collection = {"type": "FeatureCollection", "features": [QUAKE, {"type": "Feature"}, 5]}
    first, *others = read_records(io.BytesIO(json.dumps(collection).encode()), Schema())
    assert first.event.id == "nn1"
    assert [type(one) for one in others] == [Rejected, Rejected]
    [bad] = read_records(io.BytesIO(b'{"type": "FeatureCollection", "features": 5}'), Schema())
    assert bad.reason.startswith("features: ")


def test_a_point_of_another_name_stays_a_property():
    feature = event_to_feature(Event("e", {"home": Point(1.0, 2.0)}))
    assert feature["geometry"] is None
    assert feature["properties"] == {"home": [1.0, 2.0]}
    assert event_to_feature(Event("e", {"home": Point(1.0, 2.0)}), "home")["geometry"] == {
        "type": "Point",
        "coordinates": [1.0, 2.0],
    }


def test_many_events_are_one_collection():
    collection = events_to_feature_collection([Event("a", {}), Event("b", {})])
    found = read_records(io.BytesIO(json.dumps(collection).encode()), Schema())
    assert [one.event.id for one in found] == ["a", "b"]
