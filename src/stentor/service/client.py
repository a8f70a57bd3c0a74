"""Clients of a service: they reconnect, go on where they stopped, and know doubles.

    async with AsyncClient("http://127.0.0.1:8731", client="phone") as client:
        await client.subscribe("ana", "price < 300 AND ST_DWithin(loc, here(), 500)", at=(1, 2))
        await client.publish([{"id": "e1", "price": 299, "loc": [1, 2]}])
        async for delivery in client.deliveries():
            ...                                   # acknowledged when the next one is asked for

Frames that were not answered when a connection broke are sent again: an event may then come twice,
under the same id. Deliveries come once: those that were seen are known by their sequence.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from stentor.errors import ServiceError, SettingsError
from stentor.model import Changes, EventChanges

#: Records of one frame, seconds between two tries, and deliveries between two acknowledgements.
FRAME: Final = 500
_FIRST_WAIT, _LAST_WAIT = 0.05, 2.0
_ACKNOWLEDGE_EVERY: Final = 100
_ACKNOWLEDGE_AFTER: Final = 0.2
#: Codes with which the server refuses for good.
_FINAL: Final = {4401: "unauthorised", 4403: "forbidden", 4409: "conflict"}

Given = TypeVar("Given")


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


class AsyncClient:
    """A connection to the service at *url*, made again whenever it breaks.

    *key* is an API key or a token, *client* the name under which deliveries are kept. Whoever gives
    `deliveries=False` only sends.
    """

    def __init__(
        self, url: str, *, key: str | None = None, client: str = "default", deliveries: bool = True
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise SettingsError(f"expected a URL like http://127.0.0.1:8731, got {url!r}")
        self.url, self.client = url.rstrip("/"), client
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        query = urlencode(
            {"client": client, "format": "msgpack", "deliveries": str(deliveries).lower()}
        )
        self._socket_url = f"ws{self.url[4:]}/v1/ws?{query}"
        self._unanswered: dict[int, tuple[dict[str, Any], asyncio.Future[dict[str, Any]]]] = {}
        self._ref = 0
        self._seen = 0
        self._acknowledged = 0
        self._arrived: asyncio.Queue[ReceivedDelivery | ReceivedGap | ServiceError] = (
            asyncio.Queue()
        )
        self._connection: ClientConnection | None = None
        self._connected = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._late_ack: asyncio.TimerHandle | None = None
        self._end: ServiceError | None = None

    async def __aenter__(self) -> AsyncClient:
        """Connect; a ServiceError where the service refuses this client."""
        self._running = asyncio.ensure_future(self._run())
        waiting = asyncio.ensure_future(self._connected.wait())
        await asyncio.wait((waiting, self._running), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._end is not None:
            raise self._end
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Acknowledge what was handed out, and end the connection."""
        await self._send_ack()
        self._end = self._end or ServiceError("the client is closed", kind="closed")
        if self._connection is not None:
            await self._connection.close()
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
        self._fail(self._end)

    # Records.

    async def subscribe(
        self, id: str, expression: str, *, at: Any = None, until: Any = None
    ) -> Changes:
        """Let *id* want *expression*; its deliveries come to this client."""
        raw = {"op": "subscribe", "id": id, "expression": expression}
        raw |= {name: one for name, one in (("at", at), ("until", until)) if one is not None}
        return _changes(await self._one({**raw, "client": self.client}))

    async def move(self, id: str, at: Sequence[float]) -> Changes:
        """Put the subscriber *id* somewhere else."""
        return _changes(await self._one({"op": "move", "id": id, "at": list(at)}))

    async def unsubscribe(self, id: str) -> None:
        """Let *id* want nothing any more."""
        await self._one({"op": "unsubscribe", "id": id})

    async def publish(
        self, events: Mapping[str, Any] | Iterable[Mapping[str, Any]]
    ) -> list[RejectedRecord]:
        """Publish *events*, in frames; those that were refused. All others are kept."""
        given = [events] if isinstance(events, Mapping) else list(events)
        named = [one if "id" in one or "specversion" in one else _named(one) for one in given]
        frames = [named[start : start + FRAME] for start in range(0, len(named), FRAME)]
        answers = await asyncio.gather(
            *(self._ask({"op": "publish", "events": frame}) for frame in frames)
        )
        return [
            RejectedRecord(number * FRAME + one["index"], _error(one["error"]))
            for number, answer in enumerate(answers)
            for one in answer["rejected"]
        ]

    async def update(self, event: Mapping[str, Any]) -> EventChanges:
        """Let *event* be instead of the live one of its id; whom it entered, left, stayed with."""
        return _event_changes(await self._one({**event, "op": "update"}))

    async def withdraw(self, id: str) -> list[str]:
        """Let the live event *id* be over; those who had it."""
        return _event_changes(await self._one({"op": "withdraw", "id": id})).left

    async def _one(self, record: dict[str, Any]) -> dict[str, Any]:
        answer = await self._ask({"op": "records", "records": [record], "results": True})
        if answer["rejected"]:
            raise _error(answer["rejected"][0]["error"])
        result: dict[str, Any] = answer["results"][0]
        return result

    async def _ask(self, frame: dict[str, Any]) -> dict[str, Any]:
        """The answer to *frame*, whichever connection it comes over."""
        if self._end is not None:
            raise self._end
        self._ref += 1
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        sent = {**frame, "ref": self._ref}
        self._unanswered[self._ref] = sent, future
        if self._connection is not None:
            with suppress(ConnectionClosed):
                await self._connection.send(msgspec.msgpack.encode(sent))
        return await future

    # Deliveries.

    async def deliveries(self) -> AsyncIterator[ReceivedDelivery | ReceivedGap]:
        """What comes, in order, each once; one is acknowledged when the next one is asked for."""
        while True:
            one = await self.next_delivery()
            yield one
            await self.acknowledge(one.seq if isinstance(one, ReceivedDelivery) else one.last)

    async def next_delivery(self, timeout: float | None = None) -> ReceivedDelivery | ReceivedGap:
        """What comes next; a TimeoutError where that takes longer. It is not acknowledged."""
        one = await asyncio.wait_for(self._arrived.get(), timeout)
        if isinstance(one, ServiceError):
            self._arrived.put_nowait(one)
            raise one
        return one

    async def acknowledge(self, seq: int) -> None:
        """Say that everything up to *seq* was taken in; it is sent for several at once."""
        self._seen = max(self._seen, seq)
        if self._seen - self._acknowledged >= _ACKNOWLEDGE_EVERY:
            await self._send_ack()
        elif self._late_ack is None:
            loop = asyncio.get_running_loop()
            self._late_ack = loop.call_later(
                _ACKNOWLEDGE_AFTER, lambda: asyncio.ensure_future(self._send_ack())
            )

    async def _send_ack(self) -> None:
        if self._late_ack is not None:
            self._late_ack.cancel()
            self._late_ack = None
        if self._connection is not None and self._seen > self._acknowledged:
            self._acknowledged = self._seen
            with suppress(ConnectionClosed):
                frame = {"op": "ack", "seq": self._seen}
                await self._connection.send(msgspec.msgpack.encode(frame))

    # Questions.

    async def request(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Any other call of the service, like `request("POST", "/v1/match", {…})`."""
        return await asyncio.to_thread(self._request, method, path, body, query)

    def _request(self, method: str, path: str, body: Any, query: dict[str, Any]) -> Any:
        url = self.url + quote(path, safe="/:@") + (f"?{urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "Content-Type": "application/json"}
        try:
            with urlopen(Request(url, data, headers, method=method), timeout=60) as answer:
                found = answer.read()
        except HTTPError as error:
            raise _http_error(error) from None
        except (URLError, OSError) as error:
            raise ServiceError(f"{self.url} does not answer: {error}", kind="unreachable") from None
        return json.loads(found) if found else None

    # The connection.

    async def _run(self) -> None:
        wait = _FIRST_WAIT
        while self._end is None:
            try:
                async with connect(
                    self._socket_url,
                    additional_headers=self._headers,
                    compression=None,
                    max_size=None,
                ) as connection:
                    await self._serve(connection)
                    wait = _FIRST_WAIT
            except (OSError, InvalidHandshake, TimeoutError, ConnectionClosed, InvalidURI):
                pass
            finally:
                self._connection = None
                self._connected.clear()
            if self._end is None:
                await asyncio.sleep(wait * random.uniform(0.5, 1.0))
                wait = min(_LAST_WAIT, wait * 2)
        self._fail(self._end)

    async def _serve(self, connection: ClientConnection) -> None:
        try:
            async for data in connection:
                if isinstance(data, bytes):
                    await self._take(connection, msgspec.msgpack.decode(data))
        except ConnectionClosed:
            pass
        code, reason = connection.close_code, connection.close_reason
        if code in _FINAL:
            self._end = ServiceError(reason or _FINAL[code], kind=_FINAL[code])

    async def _take(self, connection: ClientConnection, frame: dict[str, Any]) -> None:
        match frame["type"]:
            case "hello":
                if frame["last"] < self._seen:  # another store: its sequences begin anew
                    self._seen = self._acknowledged = 0
                self._delivered = max(frame["acknowledged"], self._seen)
                self._connection = connection
                for sent, _ in list(self._unanswered.values()):
                    await connection.send(msgspec.msgpack.encode(sent))
                self._acknowledged = frame["acknowledged"]
                self._connected.set()
            case "deliveries":
                for one in frame["deliveries"]:
                    if one["seq"] > self._delivered:
                        self._delivered = one["seq"]
                        wanted = (one[name] for name in ReceivedDelivery._fields)
                        self._arrived.put_nowait(ReceivedDelivery(*wanted))
            case "gap":
                self._delivered = max(self._delivered, frame["to"])
                self._arrived.put_nowait(ReceivedGap(frame["from"], frame["to"], frame["reason"]))
            case "answer" | "error":
                self._resolve(frame)

    def _resolve(self, frame: dict[str, Any]) -> None:
        """Give the answer to who waits for it."""
        waiting = self._unanswered.pop(int(frame.get("ref") or 0), None)
        if waiting is None or waiting[1].done():
            return
        if frame["type"] == "error":
            waiting[1].set_exception(_error(frame["error"]))
        else:
            waiting[1].set_result(frame)

    def _fail(self, error: ServiceError) -> None:
        """Tell everybody who waits that nothing more will come."""
        for _, future in self._unanswered.values():
            if not future.done():
                future.set_exception(error)
        self._unanswered.clear()
        self._arrived.put_nowait(error)

    _delivered = 0


class Client:
    """The same without `await`: an `AsyncClient` in a thread of its own."""

    def __init__(
        self, url: str, *, key: str | None = None, client: str = "default", deliveries: bool = True
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

        async def made() -> AsyncClient:
            return AsyncClient(url, key=key, client=client, deliveries=deliveries)

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
        self._done(self._client.close())
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


def _named(event: Mapping[str, Any]) -> dict[str, Any]:
    """*event* with an id: sent again, it is known to be the same."""
    if event.get("type") in ("Feature", "FeatureCollection"):
        return dict(event)
    return {**event, "id": uuid.uuid4().hex}


def _event_changes(result: dict[str, Any]) -> EventChanges:
    return EventChanges(result["entered"], result["left"], result["stayed"])


def _changes(result: dict[str, Any]) -> Changes:
    return Changes(result["added"], result["removed"])


def _error(response: Mapping[str, Any]) -> ServiceError:
    return ServiceError(str(response.get("message")), kind=str(response.get("kind")))


def _http_error(error: HTTPError) -> ServiceError:
    try:
        return _error(json.loads(error.read())["error"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(f"status {error.code}", kind="status")
