"""The OpenAPI document of a service: what is handled, with bodies and answers."""

from __future__ import annotations

import re
from typing import Any, Final

import stentor
from stentor.service.handlers import HANDLED
from stentor.service.settings import ServeSettings

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_NUMBER: Final = {"type": "number"}
_TRUTH: Final = {"type": "boolean"}
_LOCATION: Final = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}
_EVENT: Final = {"type": "object", "additionalProperties": True}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object(required: str, optional: str = "", **kinds: dict[str, Any]) -> dict[str, Any]:
    """An object whose fields are texts where *kinds* says nothing else."""
    names = [*required.split(), *optional.split()]
    found = {name: kinds.get(name, _TEXT) for name in names}
    return {"type": "object", "required": required.split(), "properties": found}


_UNTIL: Final = {"anyOf": [_TEXT, _NUMBER, {"type": "null"}]}
_SCHEMAS: Final[dict[str, Any]] = {
    "Error": _object(
        "error",
        error=_object(
            "kind message",
            "field start stop hint",
            field=_or_null(_TEXT),
            start=_or_null(_COUNT),
            stop=_or_null(_COUNT),
            hint=_or_null(_TEXT),
        ),
    ),
    "Event": _EVENT,
    "Region": _object("kind attribute negated", negated=_TRUTH),
    "NewSubscription": _object(
        "expression", "at until client", at=_or_null(_LOCATION), until=_UNTIL
    ),
    "Subscription": _object(
        "id expression at until client regions",
        at=_or_null(_LOCATION),
        until=_or_null(_TEXT),
        regions=_list(_ref("Region")),
    ),
    "Changes": _object("added removed", added=_list(_TEXT), removed=_list(_TEXT)),
    "Put": _object(
        "subscription added removed",
        subscription=_or_null(_ref("Subscription")),
        added=_list(_TEXT),
        removed=_list(_TEXT),
    ),
    "One": _object("subscription", subscription=_ref("Subscription")),
    "Subscriptions": _object(
        "subscriptions next", subscriptions=_list(_ref("Subscription")), next=_or_null(_TEXT)
    ),
    "Accepted": _object(
        "accepted rejected",
        "results",
        accepted=_COUNT,
        rejected=_list(_EVENT),
        results=_list(_EVENT),
    ),
    "Seen": _object(
        "number time event matched matched_count",
        number=_COUNT,
        event=_ref("Event"),
        matched=_list(_TEXT),
        matched_count=_COUNT,
    ),
    "Recent": _object("events", events=_list(_ref("Seen"))),
    "Live": _object("events next", events=_list(_ref("Event")), next=_or_null(_TEXT)),
    "OneEvent": _object("event live", event=_ref("Event"), live=_TRUTH),
    "EventChanges": _object(
        "id entered left stayed",
        entered=_list(_TEXT),
        left=_list(_TEXT),
        stayed=_list(_TEXT),
    ),
    "Delivery": _object(
        "seq subscription client owner change time event",
        seq=_COUNT,
        change={"enum": ["added", "removed", "entered", "left", "stayed"]},
        event=_or_null(_ref("Event")),
    ),
    "Deliveries": _object(
        "deliveries next gap",
        deliveries=_list(_ref("Delivery")),
        next=_COUNT,
        gap=_or_null(_EVENT),
    ),
    "Acknowledgement": _object("seq", "client", seq=_COUNT),
    "Match": _object(
        "expression", "at minutes limit", at=_or_null(_LOCATION), minutes=_NUMBER, limit=_NUMBER
    ),
    "Matched": _object(
        "looked_at matched events expression regions never",
        looked_at=_COUNT,
        matched=_COUNT,
        events=_list(_ref("Seen")),
        regions=_list(_ref("Region")),
        never=_TRUTH,
    ),
    "Explain": _object(
        "event",
        "subscription expression at",
        event={"anyOf": [_TEXT, _EVENT]},
        at=_or_null(_LOCATION),
    ),
    "Explanation": _object(
        "subscription event matches score note alternatives",
        matches=_TRUTH,
        score=_NUMBER,
        alternatives=_list(_EVENT),
    ),
    "WhyNot": _object(
        "event", "subscriptions", event={"anyOf": [_TEXT, _EVENT]}, subscriptions=_list(_TEXT)
    ),
    "Rejections": _object(
        "event matched rejections counts looked_at",
        matched=_list(_TEXT),
        rejections=_list(_EVENT),
        counts=_list(_EVENT),
        looked_at=_COUNT,
    ),
    "Schema": _object("attributes plane", attributes=_list(_EVENT), plane=_TRUTH),
    "Stats": _object("time broker ready", ready=_TRUTH),
    "Brokers": _object(
        "brokers links refused", brokers=_list(_EVENT), links=_list(_EVENT), refused=_EVENT
    ),
    "Move": _object("at", at=_LOCATION),
    "Ticket": _object("ticket seconds", seconds=_NUMBER),
    "Keys": _object("keys", keys=_list(_EVENT)),
    "NewKey": _object("owner scopes", "note", scopes=_list(_TEXT)),
    "Key": _object("key"),
    "File": _object("file"),
    "NewWebhook": _object("url"),
    "Webhook": _object("client url secret"),
    "Webhooks": _object("webhooks", webhooks=_list(_EVENT)),
    "DeadLetters": _object("dead_letters", dead_letters=_list(_EVENT)),
    "SentAgain": _object("taken left", taken=_COUNT, left=_COUNT),
}
_RECORDS: Final = ("application/x-ndjson",)
_EVENT_TYPES: Final = (
    "application/json",
    "application/x-ndjson",
    "application/geo+json",
    "application/cloudevents+json",
    "application/cloudevents-batch+json",
)
#: Parameters of a query, by name.
_QUERY: Final[dict[str, dict[str, Any]]] = {
    "after": _TEXT,
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
    "client": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    "minutes": {"type": "number", "minimum": 0, "maximum": 10000},
    "results": _TRUTH,
    "wait": {"type": "number", "minimum": 0, "maximum": 30},
    "seq": _COUNT,
}
#: What a call takes and gives: query, body, its types, statuses and answers.
_CALLS: Final[dict[tuple[str, str], tuple[str, str, tuple[str, ...], dict[int, str]]]] = {
    ("PUT", "/v1/subscriptions/{id}"): ("", "NewSubscription", (), {200: "Put", 201: "Put"}),
    ("GET", "/v1/subscriptions/{id}"): ("", "", (), {200: "One"}),
    ("DELETE", "/v1/subscriptions/{id}"): ("", "", (), {204: ""}),
    ("POST", "/v1/subscriptions/{id}/move"): ("", "Move", (), {200: "Changes"}),
    ("GET", "/v1/subscriptions"): ("after limit client", "", (), {200: "Subscriptions"}),
    ("POST", "/v1/subscriptions"): ("client", "", _RECORDS, {200: "Accepted"}),
    ("DELETE", "/v1/clients/{client}"): ("", "", (), {204: ""}),
    ("POST", "/v1/events"): ("results", "Event", _EVENT_TYPES, {200: "Accepted"}),
    ("GET", "/v1/events/recent"): ("limit minutes", "", (), {200: "Recent"}),
    ("GET", "/v1/events/live"): ("after limit", "", (), {200: "Live"}),
    ("GET", "/v1/events/{id}"): ("", "", (), {200: "OneEvent"}),
    ("PUT", "/v1/events/{id}"): ("", "Event", _EVENT_TYPES[:4], {200: "EventChanges"}),
    ("DELETE", "/v1/events/{id}"): ("", "", (), {200: "EventChanges"}),
    ("GET", "/v1/deliveries"): ("client after limit wait", "", (), {200: "Deliveries"}),
    ("POST", "/v1/deliveries/ack"): ("", "Acknowledgement", (), {204: ""}),
    ("POST", "/v1/match"): ("", "Match", (), {200: "Matched"}),
    ("POST", "/v1/explain"): ("", "Explain", (), {200: "Explanation"}),
    ("POST", "/v1/why-not"): ("", "WhyNot", (), {200: "Rejections"}),
    ("GET", "/v1/schema"): ("", "", (), {200: "Schema"}),
    ("GET", "/v1/stats"): ("", "", (), {200: "Stats"}),
    ("GET", "/v1/brokers"): ("", "", (), {200: "Brokers"}),
    ("DELETE", "/v1/links/{broker}"): ("", "", (), {204: ""}),
    ("POST", "/v1/tickets"): ("", "", (), {201: "Ticket"}),
    ("GET", "/v1/keys"): ("", "", (), {200: "Keys"}),
    ("POST", "/v1/keys"): ("", "NewKey", (), {201: "Key"}),
    ("DELETE", "/v1/keys/{id}"): ("", "", (), {204: ""}),
    ("POST", "/v1/backup"): ("", "", (), {201: "File"}),
    ("PUT", "/v1/webhooks/{client}"): ("", "NewWebhook", (), {201: "Webhook"}),
    ("GET", "/v1/webhooks"): ("", "", (), {200: "Webhooks"}),
    ("DELETE", "/v1/webhooks/{client}"): ("", "", (), {204: ""}),
    ("POST", "/v1/webhooks/{client}/send-again"): ("", "", (), {200: "SentAgain"}),
    ("GET", "/v1/dead-letters"): ("client limit", "", (), {200: "DeadLetters"}),
    ("DELETE", "/v1/dead-letters"): ("client", "", (), {204: ""}),
}
_STREAMS: Final = {
    "/v1/stream": "Deliveries of a client as server-sent events",
    "/v1/stream/events": "What is published, as server-sent events",
}


def document(settings: ServeSettings) -> dict[str, Any]:
    """The document; a call that is handled and not described here is a defect."""
    paths: dict[str, dict[str, Any]] = {}
    for (method, route), (scope, handler) in HANDLED.items():
        path = route.replace(":id", "")
        summary = (handler.__doc__ or "").strip().partition("\n")[0]
        paths.setdefault(path, {})[method.lower()] = _operation(method, path, scope, summary)
    for path, summary in _STREAMS.items():
        body = {"content": {"text/event-stream": {"schema": _TEXT}}, "description": summary}
        paths[path] = {"get": {"summary": summary, "responses": {"200": body}}}
    for path in ("/health", "/ready"):
        paths[path] = {
            "get": {"responses": {"200": _answer(_EVENT), "503": _answer(_ref("Error"))}}
        }
    scheme = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Stentor",
            "version": stentor.__version__,
            "description": "Which of the standing subscriptions want an event; told by sequence.",
        },
        "servers": [{"url": settings.url}],
        "paths": paths,
        "components": {"schemas": _SCHEMAS, "securitySchemes": {"key": scheme}},
        "security": [{"key": []}, {}],
    }


def _operation(method: str, path: str, scope: str, summary: str) -> dict[str, Any]:
    query, body, types, answers = _CALLS[method, path]
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {**_TEXT, "minLength": 1}}
        for name in re.findall(r"{(\w+)}", path)
    ]
    parameters += [{"name": name, "in": "query", "schema": _QUERY[name]} for name in query.split()]
    responses = {
        str(status): _answer(_ref(name)) if name else {"description": "done"}
        for status, name in answers.items()
    }
    responses["default"] = _answer({"anyOf": [_ref("Error"), _ref("Accepted")]})
    found: dict[str, Any] = {
        "operationId": f"{method.lower()}{re.sub('[^a-z]+', '_', path)}",
        "summary": f"{summary} Scope: {scope}.",
        "parameters": parameters,
        "responses": responses,
    }
    if body or types:
        schema = _ref(body) if body else _TEXT
        content = {
            one: {"schema": schema if one.endswith("json") and body else _TEXT} for one in types
        }
        found["requestBody"] = {
            "required": True,
            "content": content or {"application/json": {"schema": schema}},
        }
    return found


def _answer(schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": "as JSON", "content": {"application/json": {"schema": schema}}}
