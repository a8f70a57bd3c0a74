"""Which format a record is in, and the record that it describes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from stentor.errors import SettingsError
from stentor.model import Schema
from stentor.model.record import OPS, Op, Record
from stentor.model.values.object import Raw, check_object
from stentor.wire.cloudevents import cloudevent_to_plain, is_cloudevent
from stentor.wire.geojson import POINT, feature_to_plain, features_of, is_geojson
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits
from stentor.wire.mapping import NO_MAPPING, ColumnMapping
from stentor.wire.records import (
    record_from_dict,
)

Format = Literal["auto", "json", "geojson", "cloudevents"]


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How records are read."""

    format: Format = "auto"
    """`auto` decides record by record: `specversion` and `type` mark a CloudEvent, `"type":
    "Feature"` with geometry or properties marks GeoJSON, everything else is plain."""
    default_op: Op | None = None
    """What a plain record does that has no `op`; None refuses it."""
    point: str = POINT
    """The attribute that a GeoJSON geometry becomes."""
    limits: RecordLimits = DEFAULT_RECORD_LIMITS
    columns: ColumnMapping = NO_MAPPING
    """What plain records and tables call their fields and attributes, where it is otherwise."""

    def __post_init__(self) -> None:
        if self.format not in get_args(Format):
            raise SettingsError(
                f"no format {self.format!r}; expected one of {', '.join(get_args(Format))}"
            )
        if self.default_op is not None and self.default_op not in OPS:
            raise SettingsError(f"no op {self.default_op!r}; expected one of {', '.join(OPS)}")
        if not self.point:
            raise SettingsError("a geometry needs the name of an attribute, got an empty one")


def objects_of(raw: Any, settings: ReadSettings) -> Iterator[Any]:
    """The records that one JSON value holds: the members of an array or a FeatureCollection."""
    if isinstance(raw, list):
        yield from raw
    elif isinstance(raw, dict) and _format(raw, settings) == "geojson":
        yield from features_of(raw)
    else:
        yield raw


def record_from_object(raw: Any, schema: Schema, settings: ReadSettings) -> Record:
    """The record that *raw*, one object in any of the formats, describes."""
    raw, default_op = plain_object(raw, settings)
    return record_from_dict(raw, schema, settings.limits, default_op)


def plain_object(raw: Any, settings: ReadSettings) -> tuple[Raw, Op | None]:
    """*raw*, one object in any of the formats, as a plain one; what it does if it does not say."""
    raw = check_object(raw, "a record")
    marked_as = _format(raw, settings)
    op: Op = "update" if settings.default_op == "update" else "publish"
    if marked_as == "geojson":
        return feature_to_plain(raw, settings.point), op
    if marked_as == "cloudevents":
        return cloudevent_to_plain(raw), op
    return settings.columns.object(raw), settings.default_op


def _format(raw: Any, settings: ReadSettings) -> Format:
    if settings.format != "auto":
        return settings.format
    if is_cloudevent(raw):
        return "cloudevents"
    return "geojson" if is_geojson(raw) else "json"
