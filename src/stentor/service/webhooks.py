"""Webhooks: the deliveries of a client, posted to a URL, signed, until they are taken.

Signatures are those of Standard Webhooks: `webhook-id`, `webhook-timestamp` and
`webhook-signature: v1,base64(HMAC-SHA256(secret, id.timestamp.body))`. What is not taken after
some tries is a dead letter, which can be sent again.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
import random
import secrets
import ssl
import time
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from stentor.errors import RecordError, StentorError
from stentor.model.values.time import time_text
from stentor.service.addresses import AllowedAddresses, Target
from stentor.service.auth import Principal
from stentor.service.core import Core, checked_client
from stentor.service.handlers import Handlers, handles
from stentor.service.hub import FeedClosedError, Hub
from stentor.service.outbox import Gap, Key, OutboxRow
from stentor.service.refusals import RefusedError, not_found
from stentor.service.requests import answer, client_of, number, object_of
from stentor.service.settings import WebhookSettings

_LOG: Final = logging.getLogger("stentor.service")
_MOST_WAIT: Final = 600.0
_MOST_ANSWER: Final = 64_000
_PREFIX: Final = "whsec_"
_KEEP: Final = "INSERT OR REPLACE INTO webhooks VALUES (?, ?, ?, ?)"


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """What a receiver compares with the header `webhook-signature`.

    >>> signature("whsec_c2VjcmV0", "msg_1", 0, b"{}")
    'v1,sti6m5wfzVDclSKWhERritTcCYHSMVKjmU7PF5lLeh0='
    """
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    signed = f"{id}.{timestamp}.".encode() + body
    found = hmac.new(key, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(found).decode()}"


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
        secret = _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()

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
        while True:
            try:
                feed, _ = await self._hub.open_feed(key, None, None)
                try:
                    while True:
                        for one in await feed.next():
                            await self._deliver(key, url, secret, one)
                finally:
                    self._hub.close_feed(feed)
            except FeedClosedError as end:
                if end.code != 4409:
                    return
                await asyncio.sleep(1.0)  # somebody reads it elsewhere; it is taken back then
            except StentorError as error:
                _LOG.warning("the webhook of %s waits: %s", key, error)
                await asyncio.sleep(1.0)

    async def _deliver(self, key: Key, url: str, secret: str, one: OutboxRow | Gap) -> None:
        """Send *one* until it is taken, or is a dead letter."""
        if isinstance(one, Gap):
            body = msgspec.json.encode({"type": "gap", **one.to_dict()})
        else:
            body = b'{"type":"deliveries","deliveries":[%b]}' % one.body
        id = f"msg_{key[0]}_{key[1]}_{one.first}_{one.last}"
        wait, reason = self._settings.first_wait.total_seconds(), ""
        for attempt in range(self._settings.attempts):
            if attempt:
                await asyncio.sleep(wait * random.uniform(0.75, 1.25))
                wait = min(wait * 3, _MOST_WAIT)
            reason = await self._try(url, secret, id, body)
            if not reason:
                break
        if reason and isinstance(one, OutboxRow):
            _LOG.warning("%s is a dead letter: %s", id, reason)
            await self._bury(key, one, reason)
        self._hub.acknowledge(key, one.last)

    async def _try(self, url: str, secret: str, id: str, body: bytes) -> str:
        """Why it was not taken; empty where it was."""
        try:
            target = await self.allowed.target(url)
            now = int(time.time())
            headers = {
                "webhook-id": id,
                "webhook-timestamp": str(now),
                "webhook-signature": signature(secret, id, now, body),
            }
            timeout = self._settings.timeout.total_seconds()
            status = await asyncio.wait_for(post(target, headers, body), timeout)
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError) as error:
            return f"{type(error).__name__}: {error}".rstrip(": ")
        except RefusedError as error:
            return str(error)
        return "" if 200 <= status < 300 else f"status {status}"

    async def _bury(self, key: Key, row: OutboxRow, reason: str) -> None:
        def keep(core: Core) -> None:
            insert = "INSERT OR REPLACE INTO dead_letters VALUES (?, ?, ?, ?, ?, ?, ?)"
            with core.store.transaction():
                values = (*key, row.last, row.first, row.time, row.body, reason[:500])
                core.store.execute(insert, *values)

        await self._hub.ask(keep)

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
        for url, secret, first, last, body in found:
            sent = b'{"type":"deliveries","deliveries":[%b]}' % body
            id = f"msg_{key[0]}_{key[1]}_{first}_{last}"
            if await self._try(url, secret, id, sent):
                continue
            await self._hub.ask(lambda core, last=last: _forget_dead(core, key, last))  # type: ignore[misc]
            taken += 1
        return {"taken": taken, "left": len(found) - taken}


def _forget_dead(core: Core, key: Key, last: int) -> None:
    with core.store.transaction():
        delete = "DELETE FROM dead_letters WHERE owner = ? AND client = ? AND last = ?"
        core.store.execute(delete, *key, last)


async def post(target: Target, headers: dict[str, str], body: bytes) -> int:
    """The status with which *target* answers; redirections are not followed.

    The connection goes to the address that was looked at, lest its name lead elsewhere now.
    """
    context = ssl.create_default_context() if target.is_encrypted else None
    reader, writer = await asyncio.open_connection(
        target.address,
        target.port,
        ssl=context,
        server_hostname=target.host if context else None,
        limit=_MOST_ANSWER,
    )
    try:
        host = f"[{target.host}]" if ":" in target.host else target.host
        lines = [
            f"POST {target.path} HTTP/1.1",
            f"Host: {host}:{target.port}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "User-Agent: stentor",
            "Connection: close",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("ascii") + body)
        await writer.drain()
        status = (await reader.readline()).split(b" ", 2)
        if len(status) < 2 or not status[0].startswith(b"HTTP/1."):
            raise ValueError("the answer is no HTTP")
        return int(status[1])
    finally:
        writer.close()


# Calls.


@handles("PUT", "/v1/webhooks/{client}", "subscribe")
async def put_webhook(handlers: Handlers, request: Request, who: Principal) -> Response:
    """Let a client's deliveries be posted to a URL; the secret is shown once."""
    client = checked_client(request.path_params["client"])
    url = (await object_of(request, 10_000)).get("url")
    if not isinstance(url, str) or len(url) > 2_000:
        raise RecordError("expected https://host/path", field="url")
    secret = await handlers.service.webhooks.put((who.owner, client), url)
    return answer({"client": client, "url": url, "secret": secret}, 201)


@handles("GET", "/v1/webhooks", "subscribe")
async def list_webhooks(handlers: Handlers, request: Request, who: Principal) -> Response:
    """The webhooks of the owner, without their secrets."""
    question = "SELECT client, url FROM webhooks WHERE owner = ? ORDER BY client"
    rows = await handlers.hub.ask(lambda core: core.store.query(question, who.owner))
    return answer({"webhooks": [{"client": client, "url": url} for client, url in rows]})


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


@handles("POST", "/v1/webhooks/{client}/send-again", "subscribe")
async def send_again(handlers: Handlers, request: Request, who: Principal) -> Response:
    """Send a client's dead letters once more."""
    client = checked_client(request.path_params["client"])
    return answer(await handlers.service.webhooks.send_again((who.owner, client)))
