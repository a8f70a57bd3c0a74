"""What clients ask without changing anything: what would match, why, why not, what there is."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import asdict
from itertools import islice
from typing import Any, Final

import msgspec

from stentor.engine.explanation import explain
from stentor.errors import RecordError, StentorError
from stentor.language.check import check_expression
from stentor.language.evaluate import evaluate
from stentor.language.printer import to_text
from stentor.language.tree import missing_position, needs_position
from stentor.model import Event, Expression, Point, Schema
from stentor.model.values import read_location
from stentor.model.values.string import describe
from stentor.model.values.time import time_text
from stentor.service.core import Core, checked_body
from stentor.service.hub import Hub
from stentor.service.recent import Seen
from stentor.service.refusals import not_found
from stentor.service.regions import regions_of, subscription_json
from stentor.wire.events import event_from_dict
from stentor.wire.formats import ReadSettings, plain_object

#: Of one page, and of one answer to why not.
MOST_PAGE: Final = 1_000
#: Subscriptions of an owner that one question looks at.
MOST_LOOKED_AT: Final = 20_000
_PUBLISH: Final = ReadSettings(default_op="publish")


def subscriptions_page(
    core: Core, owner: str, after: str, limit: int, client: str | None
) -> dict[str, Any]:
    """The subscriptions of *owner* after an id, in the order of their ids."""
    store = core.store
    owned = store.owned.get(owner, {})
    wanted = (
        id
        for id in owned
        if id > after and (client is None or store.client_of(f"{owner}/{id}") == client)
    )
    ids = heapq.nsmallest(limit + 1, wanted)
    found = [
        response for id in ids[:limit] if (response := subscription_of(core, owner, id)) is not None
    ]
    return {"subscriptions": found, "next": ids[limit - 1] if len(ids) > limit else None}


def subscription_of(core: Core, owner: str, id: str) -> dict[str, Any] | None:
    """The subscription *id* of *owner* as it is told; None where there is none."""
    name = f"{owner}/{id}"
    found = core.subscription(name)
    return None if found is None else subscription_json(found, core.store.client_of(name))


def live_page(core: Core, owner: str, after: str, limit: int) -> dict[str, Any]:
    """The live events that *owner* may see, after an id, in the order of their ids."""
    events = core.broker.tables.events
    prefix = owner + "/"
    is_shared = core.settings.shared_events
    names = (one for one in events if is_shared or one.startswith(prefix))
    wanted = ((one.partition("/")[2], one) for one in names)
    found = heapq.nsmallest(limit + 1, (pair for pair in wanted if pair[0] > after))
    bodies = [msgspec.Raw(core.event_body(events[name])) for _, name in found[:limit]]
    return {"events": bodies, "next": found[limit - 1][0] if len(found) > limit else None}


def event_of(core: Core, owner: str, id: str) -> dict[str, Any]:
    """The event *id* of *owner*, live or remembered."""
    live = core.event(f"{owner}/{id}")
    if live is not None:
        return {"event": msgspec.Raw(core.event_body(live)), "live": True}
    seen = core.recent.find(owner, id)
    if seen is None:
        raise not_found("event", id)
    return {"event": msgspec.Raw(seen.body), "live": False}


def schema_of(core: Core) -> dict[str, Any]:
    """The attributes that are known, and of which kind they are."""
    schema = core.broker.schema
    names = sorted(name for name in schema.by_code if name)
    attributes = [{"name": name, "kind": schema.kind(name)} for name in names]
    return {"attributes": attributes, "plane": schema.plane}


def brokers_of(core: Core) -> dict[str, Any]:
    """The tree of brokers as this one knows it."""
    book = core.links
    book.report()
    states = book.tree.reached()
    known = {one.name for one in states}
    down = {link.to for one in states for link in one.links if not link.up}
    brokers = [
        {
            "name": one.name,
            "self": one.name == core.broker.name,
            "up": one.name == core.broker.name or one.name not in down,
            "subscriptions": one.subscriptions,
            "live_events": one.live_events,
        }
        for one in states
    ]
    silent = sorted({link.to for one in states for link in one.links} - known)
    brokers += [{"name": name, "self": False, "up": False} for name in silent]
    links = [
        {"from": one.name, **msgspec.to_builtins(link)} for one in states for link in one.links
    ]
    return {"brokers": brokers, "links": links, "refused": dict(book.refusals)}


def would_match(
    core: Core, owner: str, expression: Any, at: Any, minutes: float, limit: int
) -> dict[str, Any]:
    """What *expression* would have matched among the remembered events, the newest first.

    It may run in any thread: it looks at copies.
    """
    schema = core.broker.schema.frozen()
    tree, here, never = _question(schema, expression, at)
    looked_at = matched = 0
    found: list[dict[str, Any]] = []
    newest = core.recent.newest(owner, core.now(), minutes, shared=core.settings.shared_events)
    for seen in newest:
        looked_at += 1
        event = _remembered(seen, schema)
        if event is not None and evaluate(tree, event, here=here, plane=schema.plane).truth:
            matched += 1
            if len(found) < limit:
                found.append(seen.to_dict(owner))
    return {
        "looked_at": looked_at,
        "matched": matched,
        "events": found,
        "expression": to_text(tree),
        "regions": regions_of(tree, here),
        "never": never,
    }


def _question(schema: Schema, expression: Any, at: Any) -> tuple[Expression, Point | None, bool]:
    if not isinstance(expression, str):
        raise RecordError(f"expected a text, got {describe(expression)}", field="expression")
    checked = check_expression(expression, schema, where="the expression")
    schema.check(checked.uses)
    here = read_location(at, plane=schema.plane)
    if here is None and needs_position(checked.tree):
        raise missing_position()
    return checked.tree, here, checked.form.never


def _remembered(seen: Seen, schema: Schema) -> Event | None:
    try:
        return event_from_dict(msgspec.json.decode(seen.body), schema)
    except StentorError:  # the schema has learned something else since
        return None


def explanation(core: Core, owner: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Why a subscription, or an expression, wants an event or not."""
    schema = core.broker.schema.frozen()
    event = _event(core, owner, asked.get("event"), schema)
    id = asked.get("subscription")
    if id is None:
        tree, here, _ = _question(schema, asked.get("expression"), asked.get("at"))
        id = "the expression"
    else:
        subscription = core.subscription(f"{owner}/{id}")
        if subscription is None:
            raise not_found("subscription", str(id))
        tree, here = subscription.expression, subscription.at
    return asdict(explain(str(id), tree, event, schema, here))


def why_not(core: Core, owner: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Which predicate of whom rejects an event, and how many for which reason."""
    schema = core.broker.schema.frozen()
    event = _event(core, owner, asked.get("event"), schema)
    ids = asked.get("subscriptions")
    owned = core.store.owned.get(owner, {})
    if ids is None:
        ids = list(islice(owned, MOST_LOOKED_AT))
    elif not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
        raise RecordError("expected a list of ids", field="subscriptions")
    for id in ids[:MOST_LOOKED_AT]:
        if id not in owned:
            raise not_found("subscription", id)
    ids = ids[:MOST_LOOKED_AT]
    found = core.broker.tables.why_not(event, [f"{owner}/{id}" for id in ids])
    rejections = [
        {"subscription": id, "attribute": one.attribute, "reason": one.reason}
        for id, one in zip(ids, found, strict=True)
        if one is not None
    ]
    return {
        "event": event.id,
        "matched": [id for id, one in zip(ids, found, strict=True) if one is None][:MOST_PAGE],
        "rejections": rejections[:MOST_PAGE],
        "counts": _counts(rejections),
        "looked_at": len(ids),
    }


def _counts(rejections: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    counts: dict[tuple[Any, Any], int] = {}
    for one in rejections:
        kind = one["attribute"], one["reason"]
        counts[kind] = counts.get(kind, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    return [{"attribute": a, "reason": r, "count": count} for (a, r), count in ordered]


def _event(core: Core, owner: str, raw: Any, schema: Schema) -> Event:
    """The event that a question is about: an id of *owner*, or an event itself."""
    if isinstance(raw, str):
        body = event_of(core, owner, raw)["event"]
        return event_from_dict(msgspec.json.decode(bytes(body)), schema)
    if not isinstance(raw, dict):
        raise RecordError(f"expected an id or an event, got {describe(raw)}", field="event")
    plain = {**checked_body(plain_object(raw, _PUBLISH)[0], "an event")}
    for name in ("time", "seq", "op"):
        plain.pop(name, None)
    return event_from_dict({**plain, "id": plain.get("id") or "the event"}, schema)


def stats_of(core: Core, hub: Hub, owner: str) -> dict[str, Any]:
    """What is going on, for *owner*."""
    latencies = sorted(hub.owner.latencies.copy())
    counts = core.counts
    return {
        "time": time_text(core.now()),
        "uptime": round(hub.uptime, 1),
        "broker": core.broker.name,
        "ready": True,
        "subscriptions": len(core.store.owned.get(owner, ())),
        "live_events": core.broker.stats()["live events"],
        "events": counts["events"],
        "rejected": counts["rejected"],
        "deliveries": counts["deliveries"],
        "connections": sum(hub.connections.values()),
        "rates": {
            "events": hub.event_rate.per_second(),
            "deliveries": hub.delivery_rate.per_second(),
        },
        "latency_ms": {"p50": _quantile(latencies, 0.5), "p99": _quantile(latencies, 0.99)},
        "inbox": hub.owner.waiting,
        "clients": [
            {
                "client": key[1],
                "queued": queue.queued,
                "acknowledged": queue.acknowledged,
                "last": queue.last,
                "connected": hub.is_fed(key),
            }
            for key, queue in core.store.queues.items()
            if key[0] == owner
        ][:MOST_PAGE],
    }


def _quantile(ordered: list[float], share: float) -> float | None:
    if not ordered:
        return None
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000, 2)
