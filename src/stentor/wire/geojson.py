"""GeoJSON (RFC 7946) ↔ events: a Feature is an event, its properties are the attributes.

- The geometry, a Point, becomes the attribute `loc`, or the one that the setting *point* names.
- The event's id is the feature's `id`; where it has none, `properties.id`, which then is no
  attribute.
- `until`, `time`, `weights`, `seq` and `op` are beside the properties (foreign members, RFC 7946
  section 6.1): a property of such a name is an attribute, which no subscription can name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from stentor.errors import RecordError
from stentor.model import Event, Point
from stentor.model.values.object import Raw, check_object, says
from stentor.model.values.string import describe
from stentor.wire.events import NESTED, RESERVED, event_to_dict, plain

#: The attribute that a geometry becomes where nothing else is said.
POINT: Final = "loc"


def is_geojson(raw: Raw) -> bool:
    """Whether *raw* carries the marks of a Feature or a FeatureCollection."""
    kind = raw.get("type")
    if says(kind, "Feature"):
        return "geometry" in raw or "properties" in raw
    return says(kind, "FeatureCollection") and "features" in raw


def features_of(raw: Raw) -> Iterator[Any]:
    """The features of a FeatureCollection, or the one Feature itself."""
    if not says(raw.get("type"), "FeatureCollection"):
        yield raw
        return
    features = raw.get("features")
    if not isinstance(features, list):
        raise RecordError("a FeatureCollection has a list of them", field="features")
    yield from features


def feature_to_plain(raw: Any, point: str = POINT) -> dict[str, Any]:
    """The nested dict (see `events.py`) of the event that the Feature *raw* describes."""
    feature = check_object(raw, "a GeoJSON Feature")
    kind = feature.get("type")
    if not says(kind, "Feature"):
        raise RecordError(
            f"expected 'Feature' or 'FeatureCollection', got {describe(kind)}",
            field="type",
        )
    properties = feature.get("properties")
    if properties is None:
        properties = {}
    attributes = dict(check_object(properties, "a feature's properties"))
    found = {name: feature[name] for name in RESERVED if feature.get(name) is not None}
    if "id" not in found:
        found["id"] = attributes.pop("id", None)
    geometry = _point(feature.get("geometry"))
    if geometry is not None:
        if attributes.get(point) is not None:
            raise RecordError(
                f"the geometry becomes the attribute {point!r}, and the properties have one too; "
                "choose another name for the geometry",
                field=point,
            )
        attributes[point] = geometry
    return {**found, NESTED: attributes}


def event_to_feature(event: Event, point: str = POINT) -> dict[str, Any]:
    """*event* as a Feature, with the attribute *point* for its geometry, null where it has none.

    >>> event_to_feature(Event("e1", {"loc": Point(151.2, -33.9)}))
    ... # doctest: +NORMALIZE_WHITESPACE
    {'type': 'Feature', 'id': 'e1',
     'geometry': {'type': 'Point', 'coordinates': [151.2, -33.9]}, 'properties': {}}
    """
    location = event.attributes.get(point)
    geometry = None
    if isinstance(location, Point):
        geometry = {"type": "Point", "coordinates": [location.x, location.y]}
    head = event_to_dict(Event(event.id, {}, event.weights, event.until))
    return {
        "type": "Feature",
        "id": head.pop("id"),
        "geometry": geometry,
        "properties": {
            name: plain(value)
            for name, value in event.attributes.items()
            if name != point or geometry is None
        },
        **head,
    }


def events_to_feature_collection(events: Iterable[Event], point: str = POINT) -> dict[str, Any]:
    """*events* as one FeatureCollection."""
    features = [event_to_feature(event, point) for event in events]
    return {"type": "FeatureCollection", "features": features}


def _point(geometry: Any) -> Raw | None:
    if geometry is None:
        return None
    raw = check_object(geometry, "a feature's geometry")
    if not says(raw.get("type"), "Point"):
        raise RecordError(
            f"an event is at a Point, got {describe(raw.get('type'))}; send one place of it, "
            "for example its centroid",
            field="geometry",
        )
    if not isinstance(raw.get("coordinates"), (list, tuple)):
        raise RecordError("a Point has coordinates [longitude, latitude]", field="geometry")
    return raw
