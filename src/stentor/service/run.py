"""`stentor serve`: uvicorn around the application, from `ready` to a clean stop."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, Final

import msgspec
import uvicorn

from stentor._logs import configure_logs
from stentor.errors import SettingsError
from stentor.service.app import any_service, application, stop
from stentor.service.heads import bounded_http
from stentor.service.settings import ServeSettings

_LOG: Final = logging.getLogger("stentor.service")
#: Seconds that open requests are given to end.
_GRACE: Final = 5
_BACKLOG: Final = 2048
#: Connections of single requests, beside those that stay.
_SHORT: Final = 1_000
#: Seconds in which connections that stay say why they end.
_FAREWELL: Final = 1.0
#: Seconds after which another thread may run: the owner's and the loop's wait for each other.
_SWITCH: Final = 0.0005


def say_ready(settings: ServeSettings) -> None:
    """Tell who has started it where it is."""
    print(f"stentor: ready at {settings.url} (folder {settings.folder})", flush=True)


def serve(settings: ServeSettings, on_ready: Callable[[ServeSettings], None] = say_ready) -> None:
    """Serve until it is told to stop; *on_ready* hears of the settings that hold."""
    configure_service_logs(settings.log)
    sys.setswitchinterval(_SWITCH)
    bound = _bind(settings)
    settings = msgspec.structs.replace(settings, port=bound.getsockname()[1])

    async def ready() -> None:
        """Compile what the first records would wait for, then say so."""
        await asyncio.to_thread(warm, settings.index)
        on_ready(settings)

    app = application(settings, ready)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        http=bounded_http(settings.limits.connections + _SHORT),
        ws="websockets-sansio",
        ws_max_size=settings.limits.frame,
        ws_per_message_deflate=False,
        ws_ping_interval=20.0,
        ws_ping_timeout=20.0,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_GRACE,
        ssl_certfile=settings.tls.certificate,
        ssl_keyfile=settings.tls.key,
    )
    service = any_service(app)
    server = _Server(config, service)
    try:
        server.run(sockets=[bound])
    except SystemExit:  # uvicorn's own, where it did not start
        if service.start_error is None:
            raise
    if service.start_error is not None:
        raise service.start_error


class _Server(uvicorn.Server):
    """Ends the connections that wait for more before it waits for them."""

    def __init__(self, config: uvicorn.Config, service: Any) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        stop(self._service)
        end = time.monotonic() + _FAREWELL
        while self._service.sockets and time.monotonic() < end:
            await asyncio.sleep(0.01)  # they say 1001; uvicorn would say 1012
        await super().shutdown(sockets)
        self._captured_signals.clear()  # it has done what the signal asked for


def warm(index: str = "auto") -> None:
    """Match with a small engine: kernels are compiled, or read from where they are kept."""
    from stentor.engine import Engine

    with warnings.catch_warnings(action="ignore"):
        engine = Engine(index, clock=None)
        engine.subscribe("ana", "price < 300")
        engine.publish_batch([{"id": "e1", "price": 1}, {"id": "e2", "price": 2, "until": 9}])
        engine.step([{"op": "subscribe", "id": "ben", "expression": "price < 3"}])


def _bind(settings: ServeSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((settings.host, settings.port))
        bound.listen(_BACKLOG)  # who hears that it is ready can connect
    except OSError as error:
        bound.close()
        raise SettingsError(
            f"{settings.host}:{settings.port} cannot be bound: {error.strerror}; give another "
            "--port, or end what has it"
        ) from None
    return bound


def configure_service_logs(form: str) -> None:
    """Write logs to the error output: lines for people, or JSON for machines."""
    configure_logs(form, ("stentor", "uvicorn"))
    logging.getLogger("stentor.service.access").setLevel(
        logging.INFO if form == "json" else logging.WARNING
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
