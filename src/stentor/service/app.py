"""The ASGI application: routes, and the door that everything comes through."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from stentor.errors import StentorError
from stentor.service import streams  # its handlers are registered
from stentor.service.auth import Gate
from stentor.service.handlers import HANDLED, Handlers
from stentor.service.hub import Hub
from stentor.service.links.transport import Links
from stentor.service.metrics import ServiceMetrics
from stentor.service.openapi import document
from stentor.service.refusals import RefusedError, not_found
from stentor.service.requests import Service, answer, refusal
from stentor.service.settings import MAP, ServeSettings
from stentor.service.sockets import serve_socket
from stentor.service.webhooks import Webhooks

_ACCESS: Final = logging.getLogger("stentor.service.access")
#: Everything comes from the server itself; nobody frames the page.
CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; worker-src 'self' blob:; font-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
#: What a page of one of the named origins may ask, and for how long it need not ask whether.
_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"GET, POST, PUT, DELETE"),
    (b"access-control-allow-headers", b"authorization, content-type, last-event-id"),
    (b"access-control-max-age", b"600"),
)
_MEDIA_TYPES: Final = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
    ".geojson": "application/geo+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".pmtiles": "application/octet-stream",
    ".pbf": "application/x-protobuf",
    ".txt": "text/plain",
}


class _IdConvertor(PathConvertor):
    """Any id: slashes and line ends too, which Starlette's own `path` passes over."""

    regex = r"[\s\S]*"


register_url_convertor("id", _IdConvertor())


def application(
    settings: ServeSettings,
    on_ready: Callable[[], Awaitable[None]] | None = None,
    clock: Callable[[], float] = time.time,
) -> ASGIApp:
    """The whole service; *on_ready* is awaited once it can be used."""
    hub = Hub(settings, clock)
    webhooks, gate = Webhooks(hub, settings.webhooks), Gate(settings)
    links = Links(hub, gate)
    service = Service(settings, hub, gate, ServiceMetrics(hub), webhooks)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            await hub.start()
        except StentorError as error:
            service.start_error = error
            raise
        await webhooks.start()
        await links.start()
        service.is_ready = True
        if on_ready is not None:
            await on_ready()
        try:
            yield
        finally:
            stop(service)
            await links.stop()
            await webhooks.stop()
            await hub.stop()

    app = Starlette(
        routes=_routes(service, links),
        lifespan=lifespan,
        exception_handlers={HTTPException: refused_by_starlette},
    )
    app.state.service = service
    return Door(app, service)


async def refused_by_starlette(request: Request, error: Exception) -> Response:
    """A method that a path does not have, in the form of every other refusal."""
    assert isinstance(error, HTTPException)
    refused = RefusedError(error.status_code, "not_allowed", f"{request.method}: {error.detail}")
    response = refusal(refused)
    response.headers.update(error.headers or {})
    return response


def stop(service: Service) -> None:
    """Take nothing new, and end the connections that wait for more."""
    service.is_stopping = True
    service.hub.close_feeds(1001, "the server stops")
    for socket in service.sockets:
        socket.wake()


def _routes(service: Service, links: Links) -> list[BaseRoute]:
    handlers, event_streams = Handlers(service), streams.EventStreams(service)
    described = document(service.settings)

    async def health(request: Request) -> Response:
        return answer({"status": "ok"})

    async def ready(request: Request) -> Response:
        failure = service.hub.owner.failure
        if service.is_ready and not service.is_stopping and not failure:
            return answer({"status": "ready"})
        return refusal(RefusedError(503, "not_ready", failure or "not ready", retry_after=1))

    async def metrics(request: Request) -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    async def openapi(request: Request) -> Response:
        return answer(described)

    async def socket(websocket: WebSocket) -> None:
        await serve_socket(service, websocket)

    async def unknown(request: Request) -> Response:
        return refusal(not_found("path", request.url.path))

    routes: list[BaseRoute] = [
        Route("/health", health),
        Route("/ready", ready),
        Route("/metrics", metrics),
        Route("/openapi.json", openapi),
        Route("/v1/stream", event_streams.deliveries),
        Route("/v1/stream/events", event_streams.events),
        WebSocketRoute("/v1/ws", socket),
        WebSocketRoute("/v1/link", links.accept),
    ]
    # Longer paths first: an id may be anything.
    for method, path in sorted(HANDLED, key=lambda one: (one[1].count("{"), -len(one[1]))):
        routes.append(Route(path, handlers.endpoint(method, path), methods=[method]))
    if service.settings.console:
        if service.settings.map is not None:
            routes.append(Route(f"/{MAP}", partial(map_file, Path(service.settings.map))))
        routes.append(Route("/{path:id}", console_file, methods=["GET"]))
    routes.append(Route("/{path:id}", unknown, methods=["GET", "POST", "PUT", "DELETE"]))
    return routes


def console_folder() -> Path:
    """Where the console's files are."""
    return Path(str(files("stentor.service").joinpath("console")))


async def map_file(path: Path, request: Request) -> Response:
    """The user's own map, or the ranges of it that are asked for."""
    kind = _MEDIA_TYPES[".pmtiles"]
    return FileResponse(path, media_type=kind, headers={"Cache-Control": "no-cache"})


async def console_file(request: Request) -> Response:
    """A file of the console; nothing outside its folder, and no type that is not known."""
    folder = console_folder()
    name = request.path_params["path"] or "index.html"
    if "\0" in name:
        return refusal(not_found("path", request.url.path))
    path = (folder / name).resolve()
    kind = _MEDIA_TYPES.get(path.suffix)
    if kind is None or not path.is_relative_to(folder.resolve()) or not path.is_file():
        return refusal(not_found("path", request.url.path))
    return FileResponse(path, media_type=kind, headers={"Cache-Control": "no-cache"})


class Door:
    """Looks at hosts and origins, adds headers, counts."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self.service = app, service
        settings = service.settings
        self._origins = frozenset(one.rstrip("/") for one in settings.origins)
        names = ("localhost", "127.0.0.1", "[::1]", settings.host, *settings.hosts)
        self._hosts = frozenset(one.lower() for one in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, one connection, or the start and the end of it all."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, partial(self._send_start, send))
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        is_foreign = self._is_foreign(headers)
        if scope["type"] == "websocket":
            self.service.metrics.requests.labels("websocket", "403" if is_foreign else "101").inc()
            if is_foreign:
                await send({"type": "websocket.close", "code": 4403})
                return
            await self._app(scope, receive, send)
            return
        added: tuple[tuple[bytes, bytes], ...] = _HEADERS
        if (origin := headers.get(b"origin", "").rstrip("/")) in self._origins:
            allowed = (b"access-control-allow-origin", origin.encode("latin-1"))
            added = (*_HEADERS, allowed, (b"vary", b"Origin"))
            if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
                start = {"type": "http.response.start", "status": 204}
                await send({**start, "headers": [*added, *_PREFLIGHT]})
                await send({"type": "http.response.body"})
                return
        await self._serve(scope, receive, send, is_foreign, added)

    async def _serve(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        is_foreign: bool,
        added: tuple[tuple[bytes, bytes], ...],
    ) -> None:
        start, status = time.perf_counter(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        try:
            if is_foreign:
                response = RefusedError(
                    403, "forbidden", "requests of other sites are refused; see origins"
                )
                await refusal(response)(scope, receive, sending)
            else:
                await self._app(scope, receive, sending)
        finally:
            self.service.metrics.requests.labels("http", str(status)).inc()
            if _ACCESS.isEnabledFor(logging.INFO):
                _ACCESS.info(
                    "%s %s %s %.1f ms",
                    scope["method"],
                    scope["path"],
                    status,
                    (time.perf_counter() - start) * 1000,
                )

    async def _send_start(self, send: Send, message: Message) -> None:
        """Leave the stack out of a failure that is raised, in a sentence, where it was started."""
        if self.service.start_error is not None and "message" in message:
            message = {**message, "message": ""}
        await send(message)

    def _is_foreign(self, headers: dict[bytes, str]) -> bool:
        """Whether another site's page asks, or one that has this server under another name.

        Where one has to say who one is, a name is no matter: a page that has it has no key.
        """
        host = headers.get(b"host", "").lower()
        is_open = self.service.settings.is_loopback and not self.service.gate.is_closed
        if is_open and host and _name_of(host) not in self._hosts:
            return True
        origin = headers.get(b"origin")
        if origin is None or origin.rstrip("/") in self._origins:
            return False
        try:
            return urlsplit(origin).netloc.lower() != host
        except ValueError:  # no address at all
            return True


def _name_of(host: str) -> str:
    """*host* without its port."""
    return (
        host[: host.index("]") + 1]
        if host.startswith("[") and "]" in host
        else host.partition(":")[0]
    )


def any_service(app: ASGIApp) -> Service:
    """The service that *app* is."""
    assert isinstance(app, Door)
    return app.service
