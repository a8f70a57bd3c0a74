"""What clients send and are given: frames of records that a server takes, deliveries, refusals."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError

import msgspec

from stentor.errors import RecordError, ServiceError
from stentor.model import Changes, EventChanges
from stentor.model.values.number import read_number
from stentor.service.json_values import check_shape, pack
from stentor.wire.json_text import MOST_DEPTH

#: Records of one frame.
FRAME: Final = 500
#: Of a frame beside its records, at most.
_AROUND: Final = 200
#: A record lies in a list, which lies in a frame.
_MOST_DEPTH: Final = MOST_DEPTH - 2


class ReceivedDelivery(NamedTuple):
    """An event that a subscription matches now, or no longer.

    *change* is `added` or `removed` where the subscription came or changed, `entered`, `left` or
    `stayed` where the event was updated or withdrawn.
    """

    seq: int
    subscription: str
    change: str
    time: str
    event: dict[str, Any]


class ReceivedGap(NamedTuple):
    """Deliveries that will never come: the queue was full, or they were too old."""

    first: int
    last: int
    reason: str


class RejectedRecord(NamedTuple):
    """An event or change that was refused: its position among those given, and why."""

    position: int
    error: ServiceError


class RecordFrame(NamedTuple):
    """Records ready to be sent together, and where they were among those given."""

    records: list[msgspec.Raw]
    positions: list[int]


def packed_record(record: Mapping[str, Any], most: int) -> msgspec.Raw:
    """*record* as MessagePack; a ServiceError where no server takes it, or none of *most* bytes."""
    try:
        data = pack(check_shape(dict(record), _MOST_DEPTH), read_number)
    except RecordError as error:
        raise ServiceError(str(error), kind="record") from None
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ServiceError(f"it cannot be sent: {error}", kind="record") from None
    if len(data) + _AROUND > most:
        message = f"the record has {len(data):,} bytes, and the server's frames at most {most:,}"
        raise ServiceError(message, kind="too_large")
    return msgspec.Raw(data)


def frames_of(
    events: list[Mapping[str, Any]], most: int, rejected: list[RejectedRecord]
) -> Iterator[RecordFrame]:
    """*events* in frames of at most *most* bytes; those that cannot be sent go to *rejected*."""
    frame, size = RecordFrame([], []), _AROUND
    for position, event in enumerate(events):
        try:
            raw = packed_record(_named(event), most)
        except ServiceError as error:
            rejected.append(RejectedRecord(position, error))
            continue
        length = len(memoryview(raw))
        if frame.records and (len(frame.records) >= FRAME or size + length > most):
            yield frame
            frame, size = RecordFrame([], []), _AROUND
        frame.records.append(raw)
        frame.positions.append(position)
        size += length
    if frame.records:
        yield frame


def _named(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """*event* with an id: sent again, it is known to be the same."""
    if not isinstance(event, Mapping):
        raise ServiceError(f"expected an object, got {type(event).__name__}", kind="record")
    is_named = "id" in event or "specversion" in event
    if is_named or event.get("type") in ("Feature", "FeatureCollection"):
        return event
    return {**event, "id": uuid.uuid4().hex}


def read_changes(result: dict[str, Any]) -> Changes:
    """What a change of a subscription led to."""
    return Changes(result["added"], result["removed"])


def read_event_changes(result: dict[str, Any]) -> EventChanges:
    """What a change of an event led to."""
    return EventChanges(result["entered"], result["left"], result["stayed"])


def read_error(response: Mapping[str, Any]) -> ServiceError:
    """What the server has refused."""
    return ServiceError(str(response.get("message")), kind=str(response.get("kind")))


def read_http_error(error: HTTPError) -> ServiceError:
    """The same, of an HTTP answer."""
    try:
        return read_error(json.loads(error.read())["error"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(f"status {error.code}", kind="status")
