"""Where Prometheus finds a stream's metrics: a port of this machine, an address, or a file."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from stentor._files import replaced
from stentor.cli.screen import print_line
from stentor.errors import SettingsError

if TYPE_CHECKING:
    from stentor.pipeline.stream.metrics import Metrics
    from stentor.pipeline.stream.progress import BatchProgress

#: Where nothing else is said: only this machine can ask.
_HOST: Final = "127.0.0.1"
_HIGHEST_PORT: Final = 65_535
_IP_VERSION: Final = 4
_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@contextmanager
def published(where: str | None) -> Iterator[list[Any]]:
    """The listeners that publish a stream's metrics at *where*; none for None.

    *where* is a port, an address with a port (`0.0.0.0:9464`), or a file.
    """
    if where is None:
        yield []
        return
    from stentor.pipeline.stream.metrics import Metrics

    metrics = Metrics()
    host, _, port = where.rpartition(":")
    if port.isdecimal() and (not host or _is_address(host)):
        with _serving(metrics, host or _HOST, int(port)):
            yield [metrics]
    else:
        file = _MetricsFile(metrics, Path(where))
        file.write()
        yield [file]


class _MetricsFile:
    """Writes the metrics after each batch; a reader finds either the old text or the new one."""

    def __init__(self, metrics: Metrics, path: Path) -> None:
        self._metrics = metrics
        self._path = path

    def __call__(self, progress: BatchProgress) -> None:
        self._metrics(progress)
        self.write()

    def write(self) -> None:
        with replaced(self._path) as partial:
            partial.write_text(self._metrics.text(), "utf-8")


def _is_address(text: str) -> bool:
    """Whether *text* is one, and no drive or folder whose name holds a colon."""
    try:
        return ipaddress.ip_address(text).version == _IP_VERSION
    except ValueError:
        return False


@contextmanager
def _serving(metrics: Metrics, host: str, port: int) -> Iterator[None]:
    """One request at a time, so that no crowd of readers can slow the stream down."""
    if port > _HIGHEST_PORT:
        raise SettingsError(f"--metrics is {port}; a port is at most {_HIGHEST_PORT}")
    try:
        server = HTTPServer((host, port), _handler(metrics))
    except OSError as error:
        raise SettingsError(
            f"--metrics: cannot listen on {host}:{port}: {error.strerror}; choose another port"
        ) from None
    with server:
        thread = Thread(target=server.serve_forever, name="stentor-metrics", daemon=True)
        thread.start()
        print_line(
            f"Metrics at http://{host}:{server.server_address[1]}/metrics, /health beside it"
        )
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def _handler(metrics: Metrics) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers /metrics and /health; a client that says nothing is dropped after *timeout* s."""

        timeout = 2

        def do_GET(self) -> None:
            path, kind = self.path.partition("?")[0], _CONTENT_TYPE
            if path == "/metrics":
                body = metrics.text().encode()
            elif path == "/health":
                body, kind = json.dumps(metrics.health()).encode(), "application/json"
            else:
                self.send_error(404, "there are /metrics and /health")
                return
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing: standard error is for the stream."""

    return Handler
