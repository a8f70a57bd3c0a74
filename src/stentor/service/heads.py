"""Uvicorn's HTTP protocol with bounds on what comes before a request can be refused.

A connection that says nothing, or a head that never ends, holds memory and a descriptor for free.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Seconds from the first byte that is waited for, or the connection, to the end of the head.
HEAD_SECONDS: Final = 10.0
#: Of a request line and its headers.
MOST_HEAD: Final = 65_536


def bounded_http(most: int, seconds: float = HEAD_SECONDS) -> type[HttpToolsProtocol]:
    """What `uvicorn.Config` takes as `http`, of a server with at most so many connections."""

    class BoundedHttp(HttpToolsProtocol):
        """Closes what is late, too long, or one too many."""

        _late: TimerHandle | None = None
        _head = 0

        def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > most:
                transport.abort()
                return
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._late is not None:
                self._head += len(data)
                if self._head > MOST_HEAD:
                    self._give_up()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._wait()

        def on_headers_complete(self) -> None:
            self._stop_waiting()
            super().on_headers_complete()

        def _wait(self) -> None:
            self._stop_waiting()
            self._late = self.loop.call_later(seconds, self._give_up)

        def _stop_waiting(self) -> None:
            if self._late is not None:
                self._late.cancel()
            self._late, self._head = None, 0

        def _give_up(self) -> None:
            self._stop_waiting()
            self.transport.abort()

    return BoundedHttp
