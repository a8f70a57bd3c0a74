"""Where a webhook may be sent to: hosts that are allowed, and never the server's own network.

A host is allowed by name (`hooks.example.org`, `*.example.org`, `*`), and then all its addresses
must be public; or an address by its network (`10.1.0.0/16`), which may be any.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple
from urllib.parse import urlsplit

from stentor.service.refusals import RefusedError

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
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            raise _refused("it is no URL") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise _refused("expected https://host/path")
        host = parts.hostname.lower()
        found = await self._addresses(host, port)
        is_named = all(self._is_in_network(one) for one in found)
        is_allowed = any(fnmatchcase(host, pattern) for pattern in self._hosts)
        if not is_named and not (is_allowed and all(_is_public(one) for one in found)):
            raise _refused(f"{host} is not among [webhooks] allow, or leads into a private network")
        if parts.scheme == "http" and not is_named:
            raise _refused("deliveries go over https only")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if not path.isascii() or not path.isprintable() or " " in path:
            raise _refused("its path has other characters than a URL may have")
        return Target(str(found[0]), port, host, path, parts.scheme == "https")

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
