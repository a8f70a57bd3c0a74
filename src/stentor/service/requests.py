"""What an HTTP request says: who asks, its body as records, its numbers; all bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from stentor.errors import RecordError, StentorError
from stentor.service.auth import Gate, Principal
from stentor.service.core import checked_client
from stentor.service.hub import Hub
from stentor.service.rates import RateLimits
from stentor.service.refusals import RefusedError, error_json, status_of
from stentor.service.settings import ServeSettings
from stentor.wire.formats import ReadSettings, objects_of, plain_object
from stentor.wire.json_text import from_json

if TYPE_CHECKING:
    from stentor.service.metrics import ServiceMetrics
    from stentor.service.sockets import Socket
    from stentor.service.webhooks import Webhooks

#: Within which a body has come.
BODY_SECONDS: Final = 60.0
NDJSON: Final = "application/x-ndjson"
_JSON_TYPES: Final = (
    "application/json",
    "application/geo+json",
    "application/cloudevents+json",
    "application/cloudevents-batch+json",
)
_ANY: Final = ReadSettings()


class Service:
    """What all handlers share."""

    def __init__(
        self,
        settings: ServeSettings,
        hub: Hub,
        gate: Gate,
        metrics: ServiceMetrics,
        webhooks: Webhooks,
    ) -> None:
        self.settings, self.hub, self.gate = settings, hub, gate
        self.metrics, self.webhooks = metrics, webhooks
        limits = settings.limits
        self.requests = RateLimits(limits.requests_per_second, "requests")
        self.records = RateLimits(limits.records_per_second, "records")
        self.is_ready = False
        self.is_stopping = False
        self.start_error: StentorError | None = None
        self.sockets: set[Socket] = set()

    def principal(self, request: Request, scope: str) -> Principal:
        """Who asks, which must have *scope*; each request counts."""
        who = self.gate.admit(request.headers.get("authorization"))
        self.requests.take(who.owner)
        who.need(scope)
        if not self.is_ready:
            raise RefusedError(503, "not_ready", "the server is starting", retry_after=1)
        return who

    def open_connection(self, owner: str) -> None:
        """Count one more connection of *owner*; a RefusedError where that is too many."""
        counts, limits = self.hub.connections, self.settings.limits
        if (
            sum(counts.values()) >= limits.connections
            or counts.get(owner, 0) >= limits.connections_per_owner
        ):
            raise RefusedError(429, "too_many", "too many connections", retry_after=5)
        counts[owner] = counts.get(owner, 0) + 1

    def close_connection(self, owner: str) -> None:
        """Count one less."""
        counts = self.hub.connections
        counts[owner] -= 1
        if not counts[owner]:
            del counts[owner]


def answer(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """*content* as JSON."""
    body = msgspec.json.encode(content)
    return Response(body, status, dict(headers or {}), media_type="application/json")


def refusal(error: StentorError, owner: str = "") -> Response:
    """The answer to what is refused."""
    headers = {}
    if isinstance(error, RefusedError) and error.retry_after:
        headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, RefusedError) and error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return answer(error_json(error, owner), status_of(error), headers)


async def body_of(request: Request, most: int) -> bytes:
    """The body; a RefusedError where it is larger than *most* bytes, before it is all read."""
    declared = request.headers.get("content-length", "")
    too_large = RefusedError(413, "too_large", f"a body has at most {most:,} bytes")
    if declared.isdecimal() and int(declared) > most:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        late = f"the body did not come within {BODY_SECONDS:g} seconds"
        raise RefusedError(408, "too_slow", late) from None
    return b"".join(parts)


async def object_of(request: Request, most: int) -> dict[str, Any]:
    """The body, which is a JSON object."""
    raw = from_json(await body_of(request, most))
    if not isinstance(raw, dict):
        raise RecordError("expected a JSON object")
    return raw


def content_type(request: Request) -> str:
    """The media type of the body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def events_of(request: Request, most: int) -> list[Any]:
    """The events of a body in any of the formats; a line that is no JSON is its error."""
    kind, headers = content_type(request), request.headers
    if "ce-specversion" in headers:
        return [_binary_cloudevent(headers, kind, await body_of(request, most))]
    if kind == NDJSON:
        return lines_of(await body_of(request, most))
    if kind not in _JSON_TYPES:
        raise RefusedError(
            415,
            "unsupported",
            f"no events are read from {kind or 'a body without Content-Type'}; expected "
            f"{', '.join((*_JSON_TYPES, NDJSON))}, or CloudEvents' ce-… headers",
        )
    raw = from_json(await body_of(request, most))
    found = list(objects_of(raw, _ANY))
    if kind == "application/cloudevents-batch+json" and not isinstance(raw, list):
        raise RecordError("a batch of CloudEvents is an array")
    return found


def event_object(raw: Any) -> dict[str, Any]:
    """*raw*, an event in any of the formats, as a plain one; an error is raised."""
    if isinstance(raw, StentorError):
        raise raw
    return dict(plain_object(raw, _ANY)[0])


def lines_of(body: bytes) -> list[Any]:
    """The lines of a body of NDJSON; one that is no JSON is its error, an empty one is none."""
    found: list[Any] = []
    for line in body.splitlines():
        if line.strip():
            try:
                found.append(from_json(line))
            except RecordError as error:
                found.append(error)
    return found


def _binary_cloudevent(headers: Mapping[str, str], kind: str, body: bytes) -> dict[str, Any]:
    if kind not in ("application/json", ""):
        raise RefusedError(415, "unsupported", "the data of a CloudEvent are read from JSON only")
    context = {name[3:]: value for name, value in headers.items() if name.startswith("ce-")}
    return {**context, "data": from_json(body) if body else None}


def number(request: Request, name: str, default: float, low: float, high: float) -> float:
    """A number of the query, within its bounds."""
    given = request.query_params.get(name)
    if given is None:
        return default
    try:
        found = float(given)
    except ValueError:
        found = float("nan")
    if not low <= found <= high:
        raise RecordError(
            f"expected a number from {low:g} to {high:g}, got {given[:40]!r}", field=name
        )
    return found


def client_of(request: Request) -> str:
    """The client that the query names."""
    return checked_client(request.query_params.get("client"))
