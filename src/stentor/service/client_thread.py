"""A client of a service without `await`: an `AsyncClient` in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from stentor.model import Changes, EventChanges
from stentor.service.client import CONNECT_TIMEOUT, AsyncClient
from stentor.service.client_frames import ReceivedDelivery, ReceivedGap, RejectedRecord

Given = TypeVar("Given")


class Client:
    """What an `AsyncClient` does, without `await`."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        client: str = "default",
        deliveries: bool = True,
        connect_timeout: float = CONNECT_TIMEOUT,
        reconnect_timeout: float | None = None,
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

        async def made() -> AsyncClient:
            return AsyncClient(
                url,
                key=key,
                client=client,
                deliveries=deliveries,
                connect_timeout=connect_timeout,
                reconnect_timeout=reconnect_timeout,
            )

        try:
            self._client = self._done(made())
            self._done(self._client.__aenter__())
        except BaseException:
            self._stop()
            raise

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _done(self, step: Coroutine[Any, Any, Given]) -> Given:
        future: Future[Given] = asyncio.run_coroutine_threadsafe(step, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def close(self) -> None:
        """Acknowledge what was handed out, and end the connection."""
        try:
            self._done(self._client.close())
        finally:
            self._stop()

    def subscribe(self, id: str, expression: str, *, at: Any = None, until: Any = None) -> Changes:
        """Let *id* want *expression*; its deliveries come to this client."""
        return self._done(self._client.subscribe(id, expression, at=at, until=until))

    def move(self, id: str, at: Sequence[float]) -> Changes:
        """Put the subscriber *id* somewhere else."""
        return self._done(self._client.move(id, at))

    def unsubscribe(self, id: str) -> None:
        """Let *id* want nothing any more."""
        self._done(self._client.unsubscribe(id))

    def publish(
        self, events: Mapping[str, Any] | Iterable[Mapping[str, Any]]
    ) -> list[RejectedRecord]:
        """Publish *events*, in frames; those that were refused. All others are kept."""
        return self._done(self._client.publish(events))

    def update(self, event: Mapping[str, Any]) -> EventChanges:
        """Let *event* be instead of the live one of its id; whom it entered, left, stayed with."""
        return self._done(self._client.update(event))

    def withdraw(self, id: str) -> list[str]:
        """Let the live event *id* be over; those who had it."""
        return self._done(self._client.withdraw(id))

    def deliveries(self, timeout: float | None = None) -> Iterator[ReceivedDelivery | ReceivedGap]:
        """What comes, in order, each once; it ends where nothing comes for *timeout* seconds."""
        while True:
            try:
                one = self._done(self._client.next_delivery(timeout))
            except TimeoutError:
                return
            yield one
            self.acknowledge(one.seq if isinstance(one, ReceivedDelivery) else one.last)

    def acknowledge(self, seq: int) -> None:
        """Say that everything up to *seq* was taken in."""
        self._done(self._client.acknowledge(seq))

    def request(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Any other call of the service, like `request("POST", "/v1/match", {…})`."""
        return self._done(self._client.request(method, path, body, **query))
