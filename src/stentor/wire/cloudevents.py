"""CloudEvents 1.0 in the structured JSON format ↔ events.

- The event's id is `source` + "#" + `id`: CloudEvents promise that only the two together are
  unique.
- The members of `data`, a JSON object, are the attributes. A context attribute is the attribute of
  its name after `ce_`, as in the Kafka binding: `ce_type`, `ce_source`, `ce_subject`, and every
  extension.
- `time` is the record's time, and the extension `expirytime` is the event's `until`.

A batch (application/cloudevents-batch+json) is an array of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from stentor.errors import RecordError
from stentor.model import Event, Match
from stentor.model.values.object import Raw, check_object, says
from stentor.model.values.string import describe
from stentor.model.values.time import time_text
from stentor.wire.events import NESTED, event_to_dict, plain

PREFIX: Final = "ce_"
SPEC_VERSION: Final = "1.0"
#: What says who sends, and what, where nothing else does.
SOURCE: Final = "stentor"
EVENT_TYPE: Final = "stentor.event"
DELIVERY_TYPE: Final = "stentor.delivery"

#: Context attributes that are fields of an event.
_FIELDS: Final = frozenset({"specversion", "id", "time", "expirytime", "data", "data_base64"})
_NAME: Final = re.compile(r"[a-z0-9]+", re.ASCII)
_MOST_INTEGER: Final = 2**31 - 1


def is_cloudevent(raw: Raw) -> bool:
    """Whether *raw* carries the marks of a CloudEvent."""
    return "specversion" in raw and "type" in raw


def cloudevent_to_plain(raw: Any) -> dict[str, Any]:
    """The nested dict (see `events.py`) of the event that the CloudEvent *raw* describes.

    >>> cloudevent_to_plain({"specversion": "1.0", "id": "7", "source": "/shop", "type": "offer",
    ...                      "data": {"price": 299}})
    ... # doctest: +NORMALIZE_WHITESPACE
    {'id': '/shop#7',
     'attributes': {'price': 299, 'ce_source': '/shop', 'ce_type': 'offer'},
     'time': None, 'until': None}
    """
    raw = check_object(raw, "a CloudEvent")
    version = raw.get("specversion")
    if not says(version, SPEC_VERSION):
        raise RecordError(
            f"expected {SPEC_VERSION!r}, got {describe(version)}", field="specversion"
        )
    for name in ("id", "source", "type"):
        if not isinstance(raw.get(name), str) or not raw[name]:
            raise RecordError("a CloudEvent needs one: a non-empty string", field=name)
    attributes = _data(raw)
    for name, value in raw.items():
        if name not in _FIELDS and value is not None:
            _check_context_attribute(name, value)
            if attributes.get(PREFIX + name) is not None:
                raise RecordError(
                    f"the context attribute {name!r} and a member of data are both called so; "
                    "rename the member",
                    field=PREFIX + name,
                )
            attributes[PREFIX + name] = value
    return {
        "id": f"{raw['source']}#{raw['id']}",
        NESTED: attributes,
        "time": raw.get("time"),
        "until": raw.get("expirytime"),
    }


def event_to_cloudevent(
    event: Event, *, source: str = SOURCE, event_type: str = EVENT_TYPE, time: int | None = None
) -> dict[str, Any]:
    """*event* as a CloudEvent; *source* and *event_type* serve where it did not come as one.

    A CloudEvent has no weights: they are left out.
    """
    data = {name: plain(value) for name, value in event.attributes.items()}
    context: dict[str, Any] = {"source": source, "type": event_type}
    for name in list(data):
        if name.startswith(PREFIX) and _is_context_attribute(name[len(PREFIX) :], data[name]):
            context[name[len(PREFIX) :]] = data.pop(name)
    return _cloudevent(
        id=event.id.removeprefix(f"{context['source']}#"),
        **context,
        time=time_text(time),
        expirytime=time_text(event.until),
        data=data,
    )


def delivery_to_cloudevent(
    match: Match, event: Event, *, source: str = SOURCE, time: int | None = None
) -> dict[str, Any]:
    """The delivery of *event* to a subscription, as a CloudEvent of type `stentor.delivery`.

    Its `subject` is the subscription; its `data` hold the event (as `event_to_dict` writes it) and
    the score.
    """
    return _cloudevent(
        id=f"{match.event}#{match.subscription}",
        source=source,
        type=DELIVERY_TYPE,
        subject=match.subscription,
        time=time_text(time),
        expirytime=time_text(event.until),
        data={"event": event_to_dict(event), "score": match.score},
    )


def _cloudevent(*, data: dict[str, Any], **context: Any) -> dict[str, Any]:
    given = {name: value for name, value in context.items() if value is not None}
    return {
        "specversion": SPEC_VERSION,
        "datacontenttype": "application/json",
        **given,
        "data": data,
    }


def _data(raw: Raw) -> dict[str, Any]:
    if raw.get("data_base64") is not None:
        raise RecordError(
            "binary data have no attributes; send a JSON object in data", field="data_base64"
        )
    data = raw.get("data")
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise RecordError(
            f"expected a JSON object, whose members are the attributes, got {describe(data)}",
            field="data",
        )
    return dict(data)


def _check_context_attribute(name: str, value: Any) -> None:
    if not _is_context_attribute(name, value):
        raise RecordError(
            "a context attribute has a name of a–z and 0–9 and is a non-empty string, a boolean "
            "or an integer of 32 bits; put other things into data",
            field=str(name),
        )


def _is_context_attribute(name: str, value: Any) -> bool:
    if not _NAME.fullmatch(name) or name in _FIELDS:
        return False
    if isinstance(value, str):
        return value != ""
    return isinstance(value, int) and -_MOST_INTEGER - 1 <= value <= _MOST_INTEGER
