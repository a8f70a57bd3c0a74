"""Deliveries over HTTP: pages by cursor, acknowledgements, server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from stentor.errors import RecordError, StentorError
from stentor.service.auth import Principal
from stentor.service.core import checked_client
from stentor.service.handlers import handles
from stentor.service.hub import Feed, FeedClosedError, Watcher, after
from stentor.service.outbox import Gap, Key, OutboxRow
from stentor.service.refusals import RefusedError
from stentor.service.requests import (
    Service,
    answer,
    client_of,
    number,
    object_of,
    refusal,
)

_HEARTBEAT: Final = 15.0
_MOST_WAIT: Final = 30.0
_MOST_SEQ: Final = 2**62
_PIECES: Final = msgspec.json.Decoder(list[msgspec.Raw])
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@handles("GET", "/v1/deliveries", "subscribe")
async def page(handlers: Any, request: Request, who: Principal) -> Response:
    """A page of deliveries after a sequence, which acknowledges up to there."""
    hub, key = handlers.hub, (who.owner, client_of(request))
    limit = int(number(request, "limit", 100, 1, 1_000))
    wait = number(request, "wait", 0, 0, _MOST_WAIT)
    position = _after(request)
    if position is not None:
        hub.acknowledge(key, position)
    found = await _page(hub, key, position, limit)
    if wait and not found["deliveries"] and not found["gap"]:
        await hub.wait_for(key, wait)
        found = await _page(hub, key, position, limit)
    return answer(found)


async def _page(hub: Any, key: Key, position: int | None, limit: int) -> dict[str, Any]:
    if position is None:
        position = await hub.ask(
            lambda core: queue.acknowledged if (queue := core.store.queues.get(key)) else 0
        )
    gap, rows = await hub.rows_after(key, position)
    start = position if gap is None else gap.last
    pieces: list[msgspec.Raw] = []
    last = start
    for row in rows:
        wanted = after(row, start)
        found = _PIECES.decode(b"[%b]" % wanted.body)[: limit - len(pieces)]
        pieces += found
        last = wanted.first + len(found) - 1 if found else last
        if len(pieces) >= limit:
            break
    return {"deliveries": pieces, "next": last, "gap": None if gap is None else gap.to_dict()}


@handles("POST", "/v1/deliveries/ack", "subscribe")
async def acknowledge(handlers: Any, request: Request, who: Principal) -> Response:
    """Take note that a client has all up to a sequence."""
    raw = await object_of(request, 10_000)
    seq = checked_seq(raw.get("seq"))
    handlers.hub.acknowledge((who.owner, checked_client(raw.get("client"))), seq)
    await handlers.hub.ask(lambda core: None)  # it is kept
    return Response(status_code=204)


def checked_seq(raw: Any) -> int:
    """A sequence that a client has got."""
    if isinstance(raw, bool) or not isinstance(raw, int) or not 0 <= raw <= _MOST_SEQ:
        raise RecordError("expected the sequence of a delivery", field="seq")
    return raw


def _after(request: Request) -> int | None:
    given = request.headers.get("last-event-id") or request.query_params.get("after")
    if given is None or given == "":
        return None
    if not given.isascii() or not given.isdecimal() or int(given) > _MOST_SEQ:
        raise RecordError("expected the sequence of a delivery", field="after")
    return int(given)


class EventStreams:
    """Server-sent events: `/v1/stream` has deliveries, `/v1/stream/events` what is published."""

    def __init__(self, service: Service) -> None:
        self._service, self._hub = service, service.hub

    async def deliveries(self, request: Request) -> Response:
        """The deliveries of a client, as they come."""

        async def opened(who: Principal) -> AsyncIterator[bytes]:
            key, position = (who.owner, client_of(request)), _after(request)
            if position is not None:
                self._hub.acknowledge(key, position)
            feed, _ = await self._hub.open_feed(key, position, None)
            return self._feed_texts(feed)

        return await self._open(request, opened)

    async def events(self, request: Request) -> Response:
        """What is published, as it comes; what does not fit is skipped."""

        async def opened(who: Principal) -> AsyncIterator[bytes]:
            shared = self._service.settings.shared_events
            watcher = Watcher(who.owner, sees_all=shared)
            watcher.wants_events = True
            self._hub.watchers.add(watcher)
            return self._watch_texts(watcher)

        return await self._open(request, opened)

    async def _open(
        self, request: Request, opened: Callable[[Principal], Awaitable[AsyncIterator[bytes]]]
    ) -> Response:
        owner = ""
        try:
            ticket = request.query_params.get("ticket")
            who = self._service.gate.admit(request.headers.get("authorization"), ticket)
            owner = who.owner
            who.need("subscribe")
            if not self._service.is_ready:
                raise RefusedError(503, "not_ready", "the server is starting", retry_after=1)
            self._service.open_connection(owner)
        except StentorError as error:
            return refusal(error, owner)
        try:
            texts = await opened(who)
        except StentorError as error:
            self._service.close_connection(owner)
            return refusal(error, owner)
        counted = self._counted(texts, who)
        return StreamingResponse(counted, media_type="text/event-stream", headers=_HEADERS)

    async def _counted(self, texts: AsyncIterator[bytes], who: Principal) -> AsyncIterator[bytes]:
        try:
            async with aclosing(texts):  # type: ignore[type-var]
                async for text in texts:
                    self._service.gate.admit_again(who)
                    yield text
        except RefusedError as error:
            yield _farewell(str(error))
        finally:
            self._service.close_connection(who.owner)

    async def _feed_texts(self, feed: Feed) -> AsyncIterator[bytes]:
        waiting = asyncio.ensure_future(feed.next())
        try:
            yield b"retry: 1000\n\n"
            while True:
                done, _ = await asyncio.wait((waiting,), timeout=_HEARTBEAT)
                if not done:
                    yield b": still here\n\n"
                    continue
                for one in waiting.result():
                    yield _event_text(one)
                waiting = asyncio.ensure_future(feed.next())
        except FeedClosedError as end:
            yield _farewell(end.reason)
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            self._hub.close_feed(feed)
            feed.close(1001, "the reader has gone")

    async def _watch_texts(self, watcher: Watcher) -> AsyncIterator[bytes]:
        try:
            quiet = 0.0
            while not self._service.is_stopping:
                await asyncio.sleep(0.05)
                seen, watcher.events = watcher.events, []
                quiet = 0.0 if seen else quiet + 0.05
                if quiet >= _HEARTBEAT:
                    quiet = 0.0
                    yield b": still here\n\n"
                for one in seen:
                    data = msgspec.json.encode(one.to_dict(watcher.owner))
                    yield b"event: seen\nid: %d\ndata: %b\n\n" % (one.number, data)
        finally:
            self._hub.watchers.discard(watcher)


def _farewell(reason: str) -> bytes:
    return b"event: bye\ndata: %b\n\n" % msgspec.json.encode({"reason": reason})


def _event_text(one: OutboxRow | Gap) -> bytes:
    if isinstance(one, Gap):
        return b"event: gap\ndata: %b\n\n" % msgspec.json.encode(one.to_dict())
    pieces = enumerate(_PIECES.decode(b"[%b]" % one.body), start=one.first)
    return b"".join(
        b"event: delivery\nid: %d\ndata: %b\n\n" % (seq, bytes(piece)) for seq, piece in pieces
    )
