"""Where a webhook may be sent to: hosts that are allowed, and never the server's own network.

A host is allowed by name (`hooks.example.org`, `*.example.org`, `*`), and then all its addresses
must be public; or an address by its network (`10.1.0.0/16`), which may be any.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from stentor.service.refusals import RefusedError

#: Schemes, and their ports; those that are encrypted below.
PORTS: Final = {
    "http": 80,
    "https": 443,
    "nats": 4222,
    "nats+tls": 4222,
    "kafka": 9092,
    "kafka+ssl": 9093,
}
_ENCRYPTED: Final = ("https", "nats+tls", "kafka+ssl")
_SUBJECT: Final = re.compile(r"/[A-Za-z0-9._-]{1,200}", re.ASCII)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Target(NamedTuple):
    """Where to connect to, and what to ask for there."""

    address: str
    port: int
    host: str
    path: str
    is_encrypted: bool


class AllowedAddresses:
    """Decides by the entries of `[webhooks] allow`."""

    def __init__(self, allow: Sequence[str]) -> None:
        self._networks: list[Network] = []
        self._hosts: list[str] = []
        for entry in allow:
            try:
                self._networks.append(ipaddress.ip_network(entry, strict=False))
            except ValueError:
                self._hosts.append(entry.lower())

    async def target(self, url: str) -> Target:
        """Where *url* leads to; a RefusedError where nobody may be sent there."""
        try:
            parts = urlsplit(url)
            port = parts.port or PORTS.get(parts.scheme, 0)
        except ValueError:
            raise _refused("it is no URL") from None
        is_web = parts.scheme in ("http", "https")
        if parts.scheme not in PORTS or not parts.hostname or (is_web and parts.username):
            raise _refused(
                "expected https://host/path, nats://host:port/subject or kafka://host:port/topic"
            )
        if not is_web and not _SUBJECT.fullmatch(parts.path):
            raise _refused("a subject or topic has letters, digits, '.', '_' and '-'")
        host = parts.hostname.lower()
        found = await self._addresses(host, port)
        is_named = all(self._is_in_network(one) for one in found)
        # Servers of NATS and Kafka tell where others are: whoever is trusted with that is named.
        is_allowed = any(
            fnmatchcase(host, pattern) if is_web else host == pattern for pattern in self._hosts
        )
        if not is_named and not (is_allowed and all(_is_public(one) for one in found)):
            raise _refused(f"{host} is not among [webhooks] allow, or leads into a private network")
        if parts.scheme not in _ENCRYPTED and not is_named:
            raise _refused(f"deliveries go over {', '.join(_ENCRYPTED)} only")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if not path.isascii() or not path.isprintable() or " " in path:
            raise _refused("its path has other characters than a URL may have")
        return Target(str(found[0]), port, host, path, parts.scheme in _ENCRYPTED)

    async def _addresses(self, host: str, port: int) -> list[Address]:
        try:
            loop = asyncio.get_running_loop()
            infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise _refused(f"{host} cannot be found") from None
        return [ipaddress.ip_address(str(info[4][0]).partition("%")[0]) for info in infos]

    def _is_in_network(self, address: Address) -> bool:
        return any(address in network for network in self._networks)


def _is_public(address: Address) -> bool:
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped is not None:
        return _is_public(mapped)
    return address.is_global and not address.is_multicast


def _refused(why: str) -> RefusedError:
    return RefusedError(403, "forbidden", f"no webhook is sent there: {why}")
