"""WebSocket connections: records and acknowledgements in, answers and deliveries out."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

import stentor
from stentor.errors import RecordError, StentorError
from stentor.model.values.string import describe
from stentor.model.values.time import time_text
from stentor.service import questions
from stentor.service.auth import Principal
from stentor.service.core import checked_client
from stentor.service.hub import Feed, FeedClosedError, Watcher
from stentor.service.json_values import check_shape, pack
from stentor.service.outbox import Gap
from stentor.service.records import Records, RecordsAnswer
from stentor.service.refusals import RefusedError, error_answer
from stentor.service.requests import Service
from stentor.service.settings import MAP
from stentor.service.streams import checked_seq
from stentor.wire.json_text import from_json

#: Frames of one connection that wait for their answers; then no more is read from it.
MOST_UNANSWERED: Final = 64
_WATCH: Final = 0.05
#: Seconds between two looks of a connection that watches nothing.
_IDLE: Final = 5.0
_UNAUTHORISED, _FORBIDDEN, _NOT_UNDERSTOOD, _TOO_MUCH, _GOING = 4401, 4403, 1007, 1013, 1001


class Socket:
    """One connection."""

    def __init__(self, service: Service, websocket: WebSocket, who: Principal) -> None:
        query = websocket.query_params
        self._service, self._hub, self._who = service, service.hub, who
        self._websocket = websocket
        self._key = who.owner, checked_client(query.get("client"))
        form = query.get("format", "json")
        if form not in ("json", "msgpack"):
            raise RecordError(f"expected json or msgpack, got {form[:40]!r}", field="format")
        self._is_binary = form == "msgpack"
        self._wants_deliveries = query.get("deliveries", "true") != "false"
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._unanswered = asyncio.Semaphore(MOST_UNANSWERED)
        self._feed: Feed | None = None
        self._watcher: Watcher | None = None
        self._is_watching = asyncio.Event()
        self._stats_every = 0.0

    def wake(self) -> None:
        """Look now whether the server stops."""
        self._is_watching.set()

    async def run(self) -> None:
        """Serve it until it ends."""
        self._service.sockets.add(self)
        try:
            await self._run()
        finally:
            self._service.sockets.discard(self)

    async def _run(self) -> None:
        last = 0
        if self._wants_deliveries and self._may("subscribe"):
            window = self._service.settings.limits.in_flight
            self._feed, last = await self._hub.open_feed(self._key, None, window)
        try:
            await self._send(self._hello(last))
            steps: list[Coroutine[Any, Any, None]] = [self._read(), self._answer(), self._watch()]
            if self._feed is not None:
                steps.append(self._deliver(self._feed))
            tasks = [asyncio.ensure_future(step) for step in steps]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            if self._feed is not None:
                self._hub.close_feed(self._feed)
            if self._watcher is not None:
                self._hub.watchers.discard(self._watcher)

    def _may(self, scope: str) -> bool:
        return scope in self._who.record_scopes

    def _hello(self, last: int) -> dict[str, Any]:
        limits = self._service.settings.limits
        return {
            "type": "hello",
            "owner": self._key[0],
            "client": self._key[1],
            "acknowledged": 0 if self._feed is None else self._feed.acknowledged,
            "last": last,
            "server": "stentor",
            "version": stentor.__version__,
            "broker": self._service.settings.broker,
            "map": None if self._service.settings.map is None else MAP,
            "limits": {
                "frame": limits.frame,
                "subscriptions": limits.subscriptions_per_owner,
                "in_flight": limits.in_flight,
            },
        }

    # Out.

    async def _send(self, frame: Any) -> None:
        if self._is_binary:
            await self._write(pack(_without_raw(frame)))
        else:
            await self._write(msgspec.json.encode(frame).decode())

    async def _write(self, content: str | bytes) -> None:
        """Send *content*; a connection that ended meanwhile, say by its silence, is none to log."""
        try:
            if isinstance(content, str):
                await self._websocket.send_text(content)
            else:
                await self._websocket.send_bytes(content)
        except RuntimeError:
            raise WebSocketDisconnect(1006) from None

    def _admit_again(self) -> None:
        """End the connection of a key that was revoked, before anything more is told or done."""
        try:
            self._service.gate.admit_again(self._who)
        except RefusedError as error:
            raise FeedClosedError(_UNAUTHORISED, str(error)) from None

    async def _deliver(self, feed: Feed) -> None:
        while True:
            for one in await feed.next():
                self._admit_again()
                if isinstance(one, Gap):
                    await self._send({"type": "gap", **one.to_dict()})
                elif self._is_binary:
                    deliveries = msgspec.json.decode(b"[%b]" % one.body)
                    await self._send({"type": "deliveries", "deliveries": deliveries})
                else:
                    text = b'{"type":"deliveries","deliveries":[%b]}' % one.body
                    await self._write(text.decode())

    async def _answer(self) -> None:
        while True:
            frame = await self._answers.get()
            await self._send(frame)
            self._unanswered.release()

    async def _watch(self) -> None:
        """Tell who watches, at most 20 times a second."""
        since_stats = 0.0
        while not self._service.is_stopping:
            self._admit_again()
            watcher, owner = self._watcher, self._key[0]
            if watcher is None:  # most never do: ten thousand of them are not to wake the loop
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._is_watching.wait(), _IDLE)
                continue
            await asyncio.sleep(_WATCH)
            since_stats += _WATCH
            if watcher.events or watcher.withdrawn:
                seen, watcher.events = watcher.events, []
                skipped, watcher.skipped = watcher.skipped, 0
                withdrawn, watcher.withdrawn = watcher.withdrawn, []
                news = {"events": [one.to_dict(owner) for one in seen], "withdrawn": withdrawn}
                await self._send({"type": "events", **news, "skipped": skipped})
            if watcher.changed:
                changed, watcher.changed = watcher.changed, {}
                await self._send(await self._changes(owner, changed))
            if self._stats_every and since_stats >= self._stats_every:
                since_stats = 0.0
                stats = await self._hub.ask(
                    lambda core: questions.stats_of(core, self._hub, self._key[0])
                )
                await self._send({"type": "stats", **stats})

    async def _changes(self, owner: str, changed: dict[str, bool]) -> dict[str, Any]:
        found = await self._hub.ask(
            lambda core: {id: questions.subscription_of(core, owner, id) for id in changed}
        )
        there = [response for response in found.values() if response is not None]
        gone = [id for id, response in found.items() if response is None]
        return {"type": "subscriptions", "changed": there, "removed": gone}

    # In.

    async def _read(self) -> None:
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code", 1005))
            self._admit_again()
            self._service.requests.take(self._key[0])
            raw = self._decoded(message)
            for frame in raw if isinstance(raw, list) else [raw]:
                await self._unanswered.acquire()
                self._take(frame)

    def _decoded(self, message: Any) -> Any:
        text, data = message.get("text"), message.get("bytes")
        try:
            if text is not None:
                return from_json(text.encode())
            return check_shape(msgspec.msgpack.decode(data or b""))
        except (RecordError, msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
            raise FeedClosedError(_NOT_UNDERSTOOD, f"{error}"[:100]) from None

    def _take(self, frame: Any) -> None:
        """Let *frame* happen; its answer is put where answers wait."""
        ref = frame.get("ref") if isinstance(frame, dict) else None
        try:
            if not isinstance(frame, dict):
                raise RecordError(f"a frame is an object, got {describe(frame)}")
            if isinstance(ref, dict | list):
                raise RecordError("expected a number or a text", field="ref")
            if not self._act(frame, ref):
                self._unanswered.release()
        except StentorError as error:
            response = error_answer(error, self._key[0])
            self._answers.put_nowait({"type": "error", "ref": ref, "error": response})

    def _act(self, frame: dict[str, Any], ref: Any) -> bool:
        """Whether *frame* will be answered."""
        match frame.get("op"):
            case "publish":
                self._submit(frame.get("events"), "events", "publish", frame, ref)
            case "records":
                self._submit(frame.get("records"), "records", None, frame, ref)
            case "ack":
                self._who.need("subscribe")
                self._hub.acknowledge(self._key, checked_seq(frame.get("seq")))
                return False
            case "watch":
                self._who.need("subscribe")
                self._watch_for(frame)
                return False
            case "ping":
                core = self._hub.owner.core
                now = None if core is None else time_text(core.now())
                self._answers.put_nowait({"type": "pong", "ref": ref, "time": now})
            case op:
                expected = "expected one of publish, records, ack, watch, ping"
                raise RecordError(f"{expected}, got {describe(op)}", field="op")
        return True

    def _submit(self, raws: Any, field: str, op: Any, frame: dict[str, Any], ref: Any) -> None:
        if not isinstance(raws, list):
            raise RecordError(f"expected a list, got {describe(raws)}", field=field)
        owner, client = self._key
        self._service.records.take(owner, len(raws))
        wants = frame.get("results", op is None) is True
        records = Records(owner, client, raws, op, self._who.record_scopes, wants)

        def reply(answer: RecordsAnswer) -> None:
            response = answer.to_dict(owner, with_results=wants)
            self._answers.put_nowait({"type": "answer", "ref": ref, **response})

        self._hub.submit_soon(records, reply)

    def _watch_for(self, frame: dict[str, Any]) -> None:
        if self._watcher is None:
            shared = self._service.settings.shared_events
            self._watcher = Watcher(self._key[0], sees_all=shared)
            self._hub.watchers.add(self._watcher)
            self._is_watching.set()
        watcher, stats = self._watcher, frame.get("stats", 0)
        watcher.wants_events = frame.get("events", False) is True
        watcher.wants_subscriptions = frame.get("subscriptions", False) is True
        if isinstance(stats, bool) or not isinstance(stats, int | float) or not 0 <= stats <= 3600:
            stats = 1.0 if stats is True else 0.0
        self._stats_every = max(float(stats), 0.2) if stats else 0.0


async def serve_socket(service: Service, websocket: WebSocket) -> None:
    """Serve a connection from its first to its last frame."""
    try:
        ticket = websocket.query_params.get("ticket")
        who = service.gate.admit(websocket.headers.get("authorization"), ticket)
        if not who.scopes:
            raise RefusedError(403, "forbidden", "the key may do nothing here")
        if not service.is_ready:
            raise RefusedError(503, "not_ready", "the server is starting")
        service.open_connection(who.owner)
    except RefusedError as error:
        codes = {401: _UNAUTHORISED, 403: _FORBIDDEN}
        await _refuse(websocket, codes.get(error.status, _TOO_MUCH), str(error))
        return
    try:
        await websocket.accept()
        code, reason = await _served(service, websocket, who)
        with suppress(RuntimeError, WebSocketDisconnect):
            await websocket.close(code, reason[:100])
    finally:
        service.close_connection(who.owner)


async def _served(service: Service, websocket: WebSocket, who: Principal) -> tuple[int, str]:
    """Why the connection is to be closed, once it is."""
    try:
        await Socket(service, websocket, who).run()
    except WebSocketDisconnect:
        return 1000, ""
    except FeedClosedError as end:
        return end.code, end.reason
    except RefusedError as error:
        return _TOO_MUCH, str(error)
    except StentorError as error:
        return _NOT_UNDERSTOOD, str(error)
    return _GOING, "the server stops"


async def _refuse(websocket: WebSocket, code: int, reason: str) -> None:
    """Accept, so that a browser hears why, and close."""
    with suppress(RuntimeError, WebSocketDisconnect):
        await websocket.accept()
        await websocket.close(code, reason[:100])


def _without_raw(frame: Any) -> Any:
    """*frame* where JSON that was kept as it came is read: MessagePack cannot hold it."""
    return msgspec.json.decode(msgspec.json.encode(frame))
