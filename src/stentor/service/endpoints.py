"""Where a client's deliveries may be sent, by URL: a webhook, a subject of NATS, a topic of Kafka.

    https://host/path                  posted, signed, taken by an answer 2xx
    nats://host:4222/subject           JetStream: taken when the stream has it; doubles are known
    kafka://host:9092/topic            taken when all in-sync replicas have it

A message of NATS or Kafka is one delivery; `nats+tls` and `kafka+ssl` are encrypted.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ssl
import time
from contextlib import suppress
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from stentor.service.addresses import AllowedAddresses, Target
from stentor.service.refusals import RefusedError

_MOST_ANSWER: Final = 64_000
PREFIX: Final = "whsec_"
_KEY: Final = msgspec.json.Decoder(dict[str, Any])


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """What a receiver compares with the header `webhook-signature`.

    >>> signature("whsec_c2VjcmV0", "msg_1", 0, b"{}")
    'v1,sti6m5wfzVDclSKWhERritTcCYHSMVKjmU7PF5lLeh0='
    """
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{id}.{timestamp}.".encode() + body
    found = hmac.new(key, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(found).decode()}"


class Letter(msgspec.Struct, frozen=True):
    """What is to be sent at once: its id, as one body, and delivery by delivery."""

    id: str
    body: bytes
    parts: tuple[bytes, ...]


class Endpoint(Protocol):
    """Something that takes letters."""

    async def send(self, letter: Letter) -> str:
        """Why it was not taken; empty where it was."""

    async def close(self) -> None:
        """Let go of connections."""


def endpoint_of(url: str, secret: str, allowed: AllowedAddresses, timeout: float) -> Endpoint:
    """What takes deliveries at *url*; a RefusedError where a package is missing."""
    scheme = urlsplit(url).scheme
    if scheme in ("nats", "nats+tls"):
        return NatsEndpoint(url, allowed, timeout)
    if scheme in ("kafka", "kafka+ssl"):
        return KafkaEndpoint(url, allowed, timeout)
    return HttpEndpoint(url, secret, allowed, timeout)


class HttpEndpoint:
    """A webhook."""

    def __init__(self, url: str, secret: str, allowed: AllowedAddresses, timeout: float) -> None:
        self._url, self._secret, self._allowed, self._timeout = url, secret, allowed, timeout

    async def send(self, letter: Letter) -> str:
        try:
            target, now = await self._allowed.target(self._url), int(time.time())
            headers = {
                "webhook-id": letter.id,
                "webhook-timestamp": str(now),
                "webhook-signature": signature(self._secret, letter.id, now, letter.body),
            }
            status = await asyncio.wait_for(post(target, headers, letter.body), self._timeout)
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError) as error:
            return f"{type(error).__name__}: {error}".rstrip(": ")
        except RefusedError as error:
            return str(error)
        return "" if 200 <= status < 300 else f"status {status}"

    async def close(self) -> None:
        return


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


class NatsEndpoint:
    """A subject of a stream of JetStream; `?plain=true`: of a server without one."""

    def __init__(self, url: str, allowed: AllowedAddresses, timeout: float) -> None:
        try:
            import nats
        except ModuleNotFoundError:
            raise _missing("nats", "nats-py") from None
        self._nats: Any = nats
        parts = urlsplit(url)
        self._url, self._allowed, self._timeout = url, allowed, timeout
        self._subject = parts.path.strip("/")
        self._is_plain = parse_qs(parts.query).get("plain") == ["true"]
        self._user = {
            name: unquote(value)
            for name, value in (("user", parts.username), ("password", parts.password))
            if value
        }
        self._connection: Any = None

    async def send(self, letter: Letter) -> str:
        try:
            return await asyncio.wait_for(self._send(letter), self._timeout)
        except RefusedError as error:
            return str(error)
        except (self._nats.errors.Error, OSError, TimeoutError, ValueError) as error:
            await self.close()
            return f"{type(error).__name__}: {error}".rstrip(": ")

    async def _send(self, letter: Letter) -> str:
        connection = await self._connected()
        ids = [f"{letter.id}_{number}" for number in range(len(letter.parts))]
        if self._is_plain:
            for id, part in zip(ids, letter.parts, strict=True):
                await connection.publish(self._subject, part, headers={"Nats-Msg-Id": id})
            await connection.flush(int(self._timeout))
            return ""
        stream = connection.jetstream(timeout=self._timeout)
        taken = await asyncio.gather(
            *(
                stream.publish(self._subject, part, headers={"Nats-Msg-Id": id})
                for id, part in zip(ids, letter.parts, strict=True)
            ),
            return_exceptions=True,
        )
        for error in taken:
            if isinstance(error, self._nats.js.errors.NoStreamResponseError):
                return f"no stream has the subject {self._subject}; make one, or give ?plain=true"
            if isinstance(error, BaseException):
                raise error
        return ""

    async def _connected(self) -> Any:
        if self._connection is None or not self._connection.is_connected:
            await self.close()
            target = await self._allowed.target(self._url)
            host = f"[{target.address}]" if ":" in target.address else target.address
            encrypted: dict[str, Any] = (
                {"tls": ssl.create_default_context(), "tls_hostname": target.host}
                if target.is_encrypted
                else {}
            )
            self._connection = await self._nats.connect(
                f"nats://{host}:{target.port}",
                allow_reconnect=False,
                connect_timeout=self._timeout,
                error_cb=_ignore,
                name="stentor",
                **encrypted,
                **self._user,
            )
        return self._connection

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                await connection.close()


async def _ignore(error: Exception) -> None:
    """Whatever fails is told by the call that fails."""


class KafkaEndpoint:
    """A topic of Kafka; the key of a message is the subscription that it is for."""

    def __init__(self, url: str, allowed: AllowedAddresses, timeout: float) -> None:
        try:
            import confluent_kafka
        except ModuleNotFoundError:
            raise _missing("kafka", "confluent-kafka") from None
        self._kafka: Any = confluent_kafka
        self._url, self._allowed, self._timeout = url, allowed, timeout
        self._topic = urlsplit(url).path.strip("/")
        self._producer: Any = None

    async def send(self, letter: Letter) -> str:
        try:
            if self._producer is None:
                target = await self._allowed.target(self._url)
                self._producer = self._kafka.Producer(self._settings(target))
            return await asyncio.to_thread(self._produce, letter)
        except RefusedError as error:
            return str(error)
        except (self._kafka.KafkaException, BufferError, ValueError) as error:
            self._producer = None
            return f"{type(error).__name__}: {error}".rstrip(": ")

    def _settings(self, target: Target) -> dict[str, Any]:
        parts = urlsplit(self._url)
        host = f"[{target.address}]" if ":" in target.address else target.address
        settings = {
            "bootstrap.servers": f"{host}:{target.port}",
            "client.id": "stentor",
            "enable.idempotence": True,
            "message.timeout.ms": max(int(self._timeout * 1000), 1000),
            "log_level": 0,
        }
        if target.is_encrypted:
            settings |= {"security.protocol": "ssl"}
        if parts.username:
            settings |= {
                "security.protocol": "sasl_ssl" if target.is_encrypted else "sasl_plaintext",
                "sasl.mechanism": "PLAIN",
                "sasl.username": unquote(parts.username),
                "sasl.password": unquote(parts.password or ""),
            }
        return settings

    def _produce(self, letter: Letter) -> str:
        """Send all of it, and wait until the cluster has it."""
        errors: list[str] = []

        def report(error: Any, message: Any) -> None:
            if error is not None:
                errors.append(str(error))

        for number, part in enumerate(letter.parts):
            key = _KEY.decode(part).get("subscription", "")
            headers = [("stentor-id", f"{letter.id}_{number}".encode())]
            self._producer.produce(
                self._topic, part, key=str(key).encode(), headers=headers, on_delivery=report
            )
        left = self._producer.flush(self._timeout)
        if left or errors:
            self._producer = None  # what still waits in it is sent again
        return errors[0] if errors else f"{left} were not taken in time" if left else ""

    async def close(self) -> None:
        self._producer = None


def _missing(extra: str, package: str) -> RefusedError:
    return RefusedError(
        400, "settings", f"the package {package} is not installed: pip install 'stentor[{extra}]'"
    )
