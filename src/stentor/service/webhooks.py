"""Webhooks: the deliveries of a client, posted to a URL, signed, until they are taken.

Signatures are those of Standard Webhooks: `webhook-id`, `webhook-timestamp` and
`webhook-signature: v1,base64(HMAC-SHA256(secret, id.timestamp.body))`. What is not taken after
some tries is a dead letter, which can be sent again.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import random
import secrets
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from stentor.errors import RecordError, StentorError
from stentor.model.values.time import time_text
from stentor.service.addresses import AllowedAddresses
from stentor.service.auth import Principal
from stentor.service.core import Core, checked_client
from stentor.service.endpoints import PREFIX, Endpoint, Letter, endpoint_of
from stentor.service.handlers import Handlers, handles
from stentor.service.hub import FeedClosedError, Hub
from stentor.service.outbox import Gap, Key, OutboxRow
from stentor.service.refusals import not_found
from stentor.service.requests import answer, client_of, number, object_of
from stentor.service.settings import WebhookSettings

_LOG: Final = logging.getLogger("stentor.service")
_MOST_WAIT: Final = 600.0
_PIECES: Final = msgspec.json.Decoder(list[msgspec.Raw])
_FORGET_OLD: Final = (
    "DELETE FROM dead_letters WHERE owner = ? AND client = ? AND last IN (SELECT last FROM "
    "dead_letters WHERE owner = ? AND client = ? ORDER BY last DESC LIMIT -1 OFFSET ?)"
)
_KEEP: Final = "INSERT OR REPLACE INTO webhooks VALUES (?, ?, ?, ?)"


class Webhooks:
    """One task for each client that has a webhook."""

    def __init__(self, hub: Hub, settings: WebhookSettings) -> None:
        self._hub, self._settings = hub, settings
        self.allowed = AllowedAddresses(settings.allow)
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Begin to send what the store has webhooks for."""
        rows = await self._hub.ask(
            lambda core: core.store.query("SELECT owner, client, url, secret FROM webhooks")
        )
        for owner, client, url, secret in rows:
            self._begin((owner, client), url, secret)

    async def stop(self) -> None:
        """Send nothing more; what was not taken is sent after the next start."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def put(self, key: Key, url: str) -> str:
        """Let the deliveries of *key* go to *url*; the secret they are signed with."""
        await self.allowed.target(url)
        await self._endpoint(url, "").close()  # what is missing is said now
        secret = PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()

        def keep(core: Core) -> None:
            with core.store.transaction():
                core.store.execute(_KEEP, *key, url, secret)

        await self._hub.ask(keep)
        self._begin(key, url, secret)
        return secret

    async def remove(self, key: Key) -> bool:
        """Whether there was a webhook of *key*; now there is none."""

        def forget(core: Core) -> int:
            with core.store.transaction():
                delete = "DELETE FROM webhooks WHERE owner = ? AND client = ?"
                return core.store.execute(delete, *key)

        found = await self._hub.ask(forget)
        if task := self._tasks.pop(key, None):
            task.cancel()
        return bool(found)

    def _begin(self, key: Key, url: str, secret: str) -> None:
        if older := self._tasks.get(key):
            older.cancel()
        self._tasks[key] = asyncio.ensure_future(self._run(key, url, secret))

    async def _run(self, key: Key, url: str, secret: str) -> None:
        endpoint: Endpoint | None = None
        try:
            while True:
                try:
                    endpoint = endpoint or self._endpoint(url, secret)
                    feed, _ = await self._hub.open_feed(key, None, None)
                    try:
                        while True:
                            for one in await feed.next():
                                await self._deliver(key, endpoint, one)
                    finally:
                        self._hub.close_feed(feed)
                except FeedClosedError as end:
                    if end.code != 4409:
                        return
                    await asyncio.sleep(1.0)  # somebody reads it elsewhere; it is taken back then
                except StentorError as error:
                    _LOG.warning("the webhook of %s waits: %s", key, error)
                    await asyncio.sleep(1.0)
        finally:
            if endpoint is not None:
                await endpoint.close()

    def _endpoint(self, url: str, secret: str) -> Endpoint:
        return endpoint_of(url, secret, self.allowed, self._settings.timeout.total_seconds())

    async def _deliver(self, key: Key, endpoint: Endpoint, one: OutboxRow | Gap) -> None:
        """Send *one* until it is taken, or is a dead letter."""
        letter = _letter(key, one)
        wait, reason = self._settings.first_wait.total_seconds(), ""
        for attempt in range(self._settings.attempts):
            if attempt:
                await asyncio.sleep(wait * random.uniform(0.75, 1.25))
                wait = min(wait * 3, _MOST_WAIT)
            reason = await endpoint.send(letter)
            if not reason:
                break
        if reason and isinstance(one, OutboxRow):
            _LOG.warning("%s is a dead letter: %s", letter.id, reason)
            await self._bury(key, one, reason)
        elif reason:
            _LOG.warning("%s, a gap, was not taken: %s; sequences show it too", letter.id, reason)
        self._hub.acknowledge(key, one.last)

    async def _bury(self, key: Key, row: OutboxRow, reason: str) -> None:
        def keep(core: Core) -> int:
            insert = "INSERT OR REPLACE INTO dead_letters VALUES (?, ?, ?, ?, ?, ?, ?)"
            with core.store.transaction():
                values = (*key, row.last, row.first, row.time, row.body, reason[:500])
                core.store.execute(insert, *values)
                return core.store.execute(_FORGET_OLD, *key, *key, self._settings.dead_letters)

        if gone := await self._hub.ask(keep):
            _LOG.warning("%d of the oldest dead letters of %s are gone: too many", gone, key)

    async def send_again(self, key: Key) -> dict[str, int]:
        """Send the dead letters of *key* once more; how many were taken, and how many not."""
        found = await self._hub.ask(
            lambda core: core.store.query(
                "SELECT w.url, w.secret, d.first, d.last, d.body FROM dead_letters d JOIN "
                "webhooks w USING (owner, client) WHERE owner = ? AND client = ? ORDER BY d.last",
                *key,
            )
        )
        taken = 0
        endpoint = self._endpoint(*found[0][:2]) if found else None
        for _, _, first, last, body in found:
            assert endpoint is not None
            if await endpoint.send(_letter(key, OutboxRow(first, last, 0, body))):
                continue
            await self._hub.ask(lambda core, last=last: _forget_dead(core, key, last))  # type: ignore[misc]
            taken += 1
        if endpoint is not None:
            await endpoint.close()
        return {"taken": taken, "left": len(found) - taken}


def _letter(key: Key, one: OutboxRow | Gap) -> Letter:
    """*one* as endpoints take it."""
    id = f"msg_{key[0]}_{key[1]}_{one.first}_{one.last}"
    if isinstance(one, Gap):
        body = msgspec.json.encode({"type": "gap", **one.to_dict()})
        return Letter(id, body, (body,))
    parts = tuple(bytes(part) for part in _PIECES.decode(b"[%b]" % one.body))
    return Letter(id, b'{"type":"deliveries","deliveries":[%b]}' % one.body, parts)


def _shown(url: str) -> str:
    """*url* without its password."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return url.replace(f":{parts.password}@", ":…@", 1)


def _forget_dead(core: Core, key: Key, last: int) -> None:
    with core.store.transaction():
        delete = "DELETE FROM dead_letters WHERE owner = ? AND client = ? AND last = ?"
        core.store.execute(delete, *key, last)


# Calls.


@handles("PUT", "/v1/webhooks/{client}", "subscribe")
async def put_webhook(handlers: Handlers, request: Request, who: Principal) -> Response:
    """Let a client's deliveries be posted to a URL; the secret is shown once."""
    client = checked_client(request.path_params["client"])
    url = (await object_of(request, 10_000)).get("url")
    if not isinstance(url, str) or len(url) > 2_000:
        raise RecordError(
            "expected https://host/path, nats://host:port/subject or kafka://host:port/topic",
            field="url",
        )
    secret = await handlers.service.webhooks.put((who.owner, client), url)
    return answer({"client": client, "url": _shown(url), "secret": secret}, 201)


@handles("GET", "/v1/webhooks", "subscribe")
async def list_webhooks(handlers: Handlers, request: Request, who: Principal) -> Response:
    """The webhooks of the owner, without their secrets."""
    question = "SELECT client, url FROM webhooks WHERE owner = ? ORDER BY client"
    rows = await handlers.hub.ask(lambda core: core.store.query(question, who.owner))
    return answer({"webhooks": [{"client": client, "url": _shown(url)} for client, url in rows]})


@handles("DELETE", "/v1/webhooks/{client}", "subscribe")
async def delete_webhook(handlers: Handlers, request: Request, who: Principal) -> Response:
    """Post a client's deliveries no more; they stay in its queue."""
    client = checked_client(request.path_params["client"])
    if not await handlers.service.webhooks.remove((who.owner, client)):
        raise not_found("webhook", client)
    return Response(status_code=204)


@handles("GET", "/v1/dead-letters", "subscribe")
async def dead_letters(handlers: Handlers, request: Request, who: Principal) -> Response:
    """What a client's webhook has not taken."""
    key = who.owner, client_of(request)
    limit = int(number(request, "limit", 100, 1, 1_000))
    question = (
        "SELECT first, last, time, reason, body FROM dead_letters "
        "WHERE owner = ? AND client = ? ORDER BY last LIMIT ?"
    )
    rows = await handlers.hub.ask(lambda core: core.store.query(question, *key, limit))
    found: list[dict[str, Any]] = [
        {
            "first": first,
            "last": last,
            "time": time_text(when),
            "reason": reason,
            "deliveries": msgspec.Raw(b"[%b]" % body),
        }
        for first, last, when, reason, body in rows
    ]
    return answer({"dead_letters": found})


@handles("DELETE", "/v1/dead-letters", "subscribe")
async def forget_dead_letters(handlers: Handlers, request: Request, who: Principal) -> Response:
    """Forget what a client's webhook has not taken."""
    key = who.owner, client_of(request)

    def forget(core: Core) -> None:
        with core.store.transaction():
            delete = "DELETE FROM dead_letters WHERE owner = ? AND client = ?"
            core.store.execute(delete, *key)

    await handlers.hub.ask(forget)
    return Response(status_code=204)


@handles("POST", "/v1/webhooks/{client}/send-again", "subscribe")
async def send_again(handlers: Handlers, request: Request, who: Principal) -> Response:
    """Send a client's dead letters once more."""
    client = checked_client(request.path_params["client"])
    return answer(await handlers.service.webhooks.send_again((who.owner, client)))
