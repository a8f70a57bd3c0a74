"""Clients of a service: they reconnect, go on where they stopped, and know doubles.

    async with AsyncClient("http://127.0.0.1:8731", client="phone") as client:
        await client.subscribe("ana", "price < 300 AND ST_DWithin(loc, here(), 500)", at=(1, 2))
        await client.publish([{"id": "e1", "price": 299, "loc": [1, 2]}])
        async for delivery in client.deliveries():
            ...                                   # acknowledged when the next one is asked for

Frames that were not answered when a connection broke are sent again, in order: an event may then
come twice, under the same id. Deliveries come once: those that came before are known by their
sequence. A frame with which the server ends the connection is refused by itself: where it may be
one of several they are sent one by one.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import ssl
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus

from stentor.errors import ServiceError, SettingsError
from stentor.model import Changes, EventChanges
from stentor.service.client_frames import (
    ReceivedDelivery,
    ReceivedGap,
    RecordFrame,
    RejectedRecord,
    frames_of,
    packed_record,
    read_changes,
    read_error,
    read_event_changes,
    read_http_error,
)

#: Seconds for the first connection, for the close of one, and between two tries.
CONNECT_TIMEOUT: Final = 10.0
_CLOSE_TIMEOUT: Final = 5.0
_FIRST_WAIT, _LAST_WAIT = 0.05, 2.0
#: Deliveries, and seconds, between two acknowledgements.
_ACKNOWLEDGE_EVERY: Final = 100
_ACKNOWLEDGE_AFTER: Final = 0.2
#: Codes with which the server refuses for good, with which it refuses a frame, and for now.
_FINAL: Final = {4401: "unauthorised", 4403: "forbidden", 4409: "conflict"}
_FRAME: Final = {1007: "record", 1009: "too_large"}
_TOO_MUCH: Final = 1013
#: Statuses of an HTTP server before it that has lost it.
_GATEWAY: Final = (500, 502, 503, 504)


class AsyncClient:
    """A connection to the service at *url*, made again whenever it breaks.

    *key* is an API key or a token, *client* the name under which deliveries are kept. Whoever gives
    `deliveries=False` only sends. The first connection must be there within *connect_timeout*
    seconds, later ones within *reconnect_timeout* (None: it is tried for ever).
    """

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
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise SettingsError(f"expected a URL like http://127.0.0.1:8731, got {url!r}")
        self.url, self.client, self._host = url.rstrip("/"), client, parts.netloc
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        query = urlencode(
            {"client": client, "format": "msgpack", "deliveries": str(deliveries).lower()}
        )
        self._socket_url = f"ws{self.url[4:]}/v1/ws?{query}"
        self._connect_timeout, self._reconnect_timeout = connect_timeout, reconnect_timeout
        self._most_bytes = 0  # of a frame, as the server says
        self._unanswered: dict[int, tuple[bytes, asyncio.Future[dict[str, Any]]]] = {}
        self._ref = 0
        self._to_send: deque[int] = deque()
        self._sent: set[int] = set()  # over this connection, and not answered
        self._is_careful = False  # whether each is answered before the next one is sent
        self._wake = asyncio.Event()
        self._delivered = self._seen = self._acknowledged = 0  # the last that came, was taken in
        self._strange = 0  # of what waits, those of a store that is no more
        self._may_acknowledge = True
        self._arrived: asyncio.Queue[ReceivedDelivery | ReceivedGap | ServiceError] = (
            asyncio.Queue()
        )
        self._connection: ClientConnection | None = None
        self._connected = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._late_ack: asyncio.TimerHandle | None = None
        self._trouble = "it says nothing"
        self._end: ServiceError | None = None

    async def __aenter__(self) -> AsyncClient:
        """Connect; a ServiceError where the service refuses this client, or does not answer."""
        self._running = asyncio.ensure_future(self._run())
        waiting = asyncio.ensure_future(self._connected.wait())
        try:
            await asyncio.wait(
                (waiting, self._running),
                timeout=self._connect_timeout,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if self._end is None and not self._connected.is_set():
                self._end = self._no_answer()
            if self._end is not None:
                raise self._end
        except BaseException:
            self._running.cancel()
            raise
        finally:
            waiting.cancel()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Acknowledge what was handed out, and end the connection."""
        self._end = self._end or ServiceError("the client is closed", kind="closed")
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await self._send_ack()
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
        return read_changes(await self._one({**raw, "client": self.client}))

    async def move(self, id: str, at: Sequence[float]) -> Changes:
        """Put the subscriber *id* somewhere else."""
        return read_changes(await self._one({"op": "move", "id": id, "at": list(at)}))

    async def unsubscribe(self, id: str) -> None:
        """Let *id* want nothing any more."""
        await self._one({"op": "unsubscribe", "id": id})

    async def publish(
        self, events: Mapping[str, Any] | Iterable[Mapping[str, Any]]
    ) -> list[RejectedRecord]:
        """Publish *events*, in frames; those that were refused. All others are kept."""
        given = [events] if isinstance(events, Mapping) else list(events)
        rejected: list[RejectedRecord] = []
        frames = [*frames_of(given, self._limit(), rejected)]
        for some in await asyncio.gather(*(self._publish(frame) for frame in frames)):
            rejected += some
        return sorted(rejected, key=lambda one: one.position)

    async def _publish(self, frame: RecordFrame) -> list[RejectedRecord]:
        try:
            answer = await self._ask({"op": "publish", "events": frame.records})
        except ServiceError as error:
            if error is self._end:
                raise
            return [RejectedRecord(position, error) for position in frame.positions]
        return [
            RejectedRecord(frame.positions[one["index"]], read_error(one["error"]))
            for one in answer["rejected"]
        ]

    async def update(self, event: Mapping[str, Any]) -> EventChanges:
        """Let *event* be instead of the live one of its id; whom it entered, left, stayed with."""
        return read_event_changes(await self._one({**event, "op": "update"}))

    async def withdraw(self, id: str) -> list[str]:
        """Let the live event *id* be over; those who had it."""
        return read_event_changes(await self._one({"op": "withdraw", "id": id})).left

    async def _one(self, record: dict[str, Any]) -> dict[str, Any]:
        raws = [packed_record(record, self._limit())]
        answer = await self._ask({"op": "records", "records": raws, "results": True})
        if answer["rejected"]:
            raise read_error(answer["rejected"][0]["error"])
        result: dict[str, Any] = answer["results"][0]
        return result

    def _limit(self) -> int:
        """The bytes of a frame; what ended the client is raised."""
        if self._end is not None:
            raise self._end
        if self._running is None:
            raise ServiceError("it is not connected: use it in a `with` block", kind="closed")
        return self._most_bytes

    async def _ask(self, frame: dict[str, Any]) -> dict[str, Any]:
        """The answer to *frame*, whichever connection it comes over."""
        self._ref = ref = self._ref + 1
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._unanswered[ref] = msgspec.msgpack.encode({**frame, "ref": ref}), future
        self._to_send.append(ref)
        self._wake.set()
        try:
            return await future
        finally:  # who has given up is not answered, nor sent for again
            self._unanswered.pop(ref, None)

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
        self._may_acknowledge = not self._strange
        self._strange = max(self._strange - 1, 0)
        return one

    async def acknowledge(self, seq: int) -> None:
        """Say that everything up to *seq* was taken in; it is sent for several at once."""
        if not self._may_acknowledge:
            return
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
            raise read_http_error(error) from None
        except (URLError, OSError) as error:
            raise self._no_answer(getattr(error, "reason", error)) from None
        return json.loads(found) if found else None

    # The connection.

    async def _run(self) -> None:
        now = asyncio.get_running_loop().time
        wait, deadline = _FIRST_WAIT, now() + self._connect_timeout
        is_first = True
        while self._end is None:
            try:
                async with connect(
                    self._socket_url,
                    additional_headers=self._headers,
                    compression=None,
                    max_size=None,
                    open_timeout=min(CONNECT_TIMEOUT, max(deadline - now(), 0.1)),
                    close_timeout=_CLOSE_TIMEOUT,
                ) as connection:
                    code = await self._serve(connection)
            except Exception as error:  # noqa: BLE001 – whatever it is, somebody waits to be told
                self._take_note(error, is_first=is_first)
                code = None
            if self._connected.is_set():
                self._connected.clear()
                is_first = False
                if code != _TOO_MUCH:
                    wait = _FIRST_WAIT
                limit = self._reconnect_timeout
                deadline = math.inf if limit is None else now() + limit
            if self._end is None:
                if now() >= deadline:
                    self._end = self._no_answer()
                    break
                await asyncio.sleep(min(wait * random.uniform(0.5, 1.0), deadline - now()))
                wait = min(_LAST_WAIT, wait * 2)
        self._fail(self._end)

    def _take_note(self, error: Exception, *, is_first: bool) -> None:
        """Remember why there is no connection; end where another try would end like this one."""
        status = error.response.status_code if isinstance(error, InvalidStatus) else None
        self._trouble = f"HTTP {status}" if status else str(error) or type(error).__name__
        if isinstance(error, ConnectionError) and error.errno:
            self._trouble = os.strerror(error.errno)
        if isinstance(error, ssl.SSLCertVerificationError):
            message = f"the certificate of {self._host} is not trusted: {error.verify_message}"
            hint = "name the file of its authority in SSL_CERT_FILE"
            self._end = ServiceError(f"{message}; {hint}", kind="untrusted")
        elif isinstance(error, OSError | ConnectionClosed | InvalidMessage) or status in _GATEWAY:
            return
        elif is_first:
            self._end = self._no_answer("no service of Stentor is there: " + self._trouble)

    def _no_answer(self, reason: object = None) -> ServiceError:
        message = f"{self._host} does not answer: {reason or self._trouble}"
        return ServiceError(message, kind="unreachable")

    async def _serve(self, connection: ClientConnection) -> int | None:
        """Take what comes, until it ends; the code with which it did."""
        sending: asyncio.Task[None] | None = None
        try:
            async for data in connection:
                frame = msgspec.msgpack.decode(data) if isinstance(data, bytes) else {}
                if frame["type"] == "hello":
                    self._greet(frame)
                    self._connection = connection
                    sending = asyncio.ensure_future(self._send_waiting(connection))
                    self._connected.set()
                else:
                    self._take(frame)
        except ConnectionClosed:
            pass
        finally:
            self._connection = None
            if sending is not None:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
        code, reason = connection.close_code, connection.close_reason or ""
        self._trouble = reason or "the connection breaks"
        if code in _FINAL:
            self._end = ServiceError(reason or _FINAL[code], kind=_FINAL[code])
        elif code in _FRAME:
            self._blame(ServiceError(reason or "the server takes no such frame", kind=_FRAME[code]))
        return code

    def _blame(self, error: ServiceError) -> None:
        """Refuse the frame with which the connection ended; find out which, where it is not known.

        Before the greeting nothing was sent: it is the client itself that is refused.
        """
        if not self._connected.is_set():
            self._end = error
        elif len(self._sent) == 1:
            self._resolve(self._sent.pop(), error)
        else:
            self._is_careful = True

    def _greet(self, hello: dict[str, Any]) -> None:
        self._most_bytes = hello["limits"]["frame"]
        if hello["last"] < self._delivered:  # another store: its sequences begin anew
            self._strange, self._may_acknowledge = self._arrived.qsize(), False
            self._seen = self._delivered = 0
        self._acknowledged = hello["acknowledged"]
        self._delivered = max(self._delivered, self._acknowledged)
        self._to_send = deque(self._unanswered)
        self._sent.clear()
        self._wake.set()

    async def _send_waiting(self, connection: ClientConnection) -> None:
        """Send what is not answered, in order, as it comes."""
        with suppress(ConnectionClosed):
            await self._send_ack()
            while True:
                while self._to_send:
                    ref = self._to_send.popleft()
                    if ref in self._unanswered:
                        await self._send_one(connection, ref)
                self._is_careful = False
                self._wake.clear()
                await self._wake.wait()

    async def _send_one(self, connection: ClientConnection, ref: int) -> None:
        data, future = self._unanswered[ref]
        if len(data) > self._most_bytes:  # it was made for a server that takes larger ones
            message = f"the frame has {len(data):,} bytes, the server takes {self._most_bytes:,}"
            self._resolve(ref, ServiceError(message, kind="too_large"))
            return
        self._sent.add(ref)
        await connection.send(data)
        if self._is_careful:
            await asyncio.wait((future,))

    def _take(self, frame: dict[str, Any]) -> None:
        match frame["type"]:
            case "deliveries":
                for one in frame["deliveries"]:
                    if one["seq"] > self._delivered:
                        self._delivered = one["seq"]
                        wanted = (one[name] for name in ReceivedDelivery._fields)
                        self._arrived.put_nowait(ReceivedDelivery(*wanted))
            case "gap":
                if frame["to"] > self._delivered:
                    first = max(frame["from"], self._delivered + 1)
                    self._delivered = frame["to"]
                    self._arrived.put_nowait(ReceivedGap(first, frame["to"], frame["reason"]))
            case "answer" | "error":
                ref = int(frame.get("ref") or 0)
                self._sent.discard(ref)
                is_error = frame["type"] == "error"
                self._resolve(ref, read_error(frame["error"]) if is_error else frame)

    def _resolve(self, ref: int, answer: dict[str, Any] | ServiceError) -> None:
        """Give the answer to who waits for it."""
        _, future = self._unanswered.pop(ref, (b"", None))
        if future is None or future.done():
            return
        if isinstance(answer, ServiceError):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def _fail(self, error: ServiceError) -> None:
        """Tell everybody who waits that nothing more will come."""
        for ref in [*self._unanswered]:
            self._resolve(ref, error)
        self._arrived.put_nowait(error)
