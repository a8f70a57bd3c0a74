"""Linked servers in processes of their own, through a proxy that cuts, delays and halves."""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from stentor.client import AsyncClient, ReceivedDelivery
from stentor.service.auth import Keys
from tests.support.servers import PATIENCE, Server
from tests.support.tcp_proxy import TcpProxy

KILLS = int(os.environ.get("STENTOR_CRASHES", "20"))


def until(is_true: Callable[[], Any], what: str) -> None:
    """Wait for *is_true*; this machine may be busy."""
    end = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def brokers_of(server: Server) -> dict[str, Any]:
    with server.http() as http:
        found: dict[str, Any] = http.get("/v1/brokers").json()
        return found


def is_joined(server: Server, others: int) -> bool:
    found = brokers_of(server)
    return len(found["links"]) >= 2 * others and all(one["up"] for one in found["links"])


def announced(server: Server, count: int) -> Callable[[], bool]:
    """Whether *server* has heard of so many interests of others."""

    def look() -> bool:
        links = brokers_of(server)["links"]
        name = brokers_of(server)["brokers"][0]["name"]
        return sum(one["announced"] for one in links if one["to"] == name) >= count

    return look


@contextmanager
def chain(
    folder: Path, seed: int, **settings: Any
) -> Iterator[tuple[list[Server], list[TcpProxy]]]:
    """West, hub and east; west and east dial the hub through proxies."""
    with ExitStack() as stack:
        hub = stack.enter_context(Server(folder / "hub", index="scan", broker="hub", **settings))
        proxies = [stack.enter_context(TcpProxy(hub.port, seed + at)) for at in (0, 1)]
        servers = [
            stack.enter_context(
                Server(
                    folder / name,
                    index="scan",
                    broker=name,
                    links=[{"url": f"ws://127.0.0.1:{proxy.port}"}],
                    **settings,
                )
            )
            for name, proxy in zip(("west", "east"), proxies, strict=True)
        ]
        until(lambda: is_joined(hub, 2), "the tree is joined")
        yield [servers[0], hub, servers[1]], proxies


class Readers:
    """A client of each server that takes what it is given."""

    def __init__(self, servers: list[Server]) -> None:
        self.got: list[list[ReceivedDelivery]] = [[] for _ in servers]
        self._tasks = [
            asyncio.ensure_future(self._read(server, got))
            for server, got in zip(servers, self.got, strict=True)
        ]

    async def _read(self, server: Server, got: list[ReceivedDelivery]) -> None:
        async with AsyncClient(server.url, client="reader") as reader:
            async for one in reader.deliveries():
                assert isinstance(one, ReceivedDelivery)
                got.append(one)

    async def check(self, wanted: list[set[str]], unknown: set[str]) -> None:
        """Wait until each has the events that it wants, and see that it has each once.

        Events that are *unknown* have come or have not.
        """
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            has = [{one.event["id"] for one in got} for got in self.got]
            if all(want <= ids for want, ids in zip(wanted, has, strict=True)):
                break
            await asyncio.sleep(0.05)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for want, got in zip(wanted, self.got, strict=True):
            counts = Counter(one.event["id"] for one in got)
            assert counts.keys() - unknown == want
            assert max(counts.values(), default=1) == 1, "each once"
            assert [one.seq for one in got] == list(range(1, len(got) + 1))


async def _publish(
    server: Server, name: str, sent: list[dict[str, Any]], is_over: asyncio.Event
) -> None:
    """Publish until it is over, some that stay live and some that do not; none is sent again."""
    number = 0
    async with httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=5) as http:
        while not is_over.is_set():
            number += 1
            event: dict[str, Any] = {"id": f"{name}-{number}", "number": number % 10}
            if number % 3 == 0:
                event["until"] = "2090-01-01T00:00:00Z"
            is_lost = False
            try:
                answer = await http.post("/v1/events", json=event)
                assert answer.status_code in (200, 503), answer.text
                is_lost = answer.status_code != 200
            except httpx.HTTPError:
                is_lost = True
            sent.append({**event, "lost": is_lost})
            await asyncio.sleep(0.05 if is_lost else 0.005)


async def _disturb(servers: list[Server], proxies: list[TcpProxy], seeded: random.Random) -> None:
    """Kill and cut, between any two frames."""
    for proxy in proxies:
        proxy.cut_chance, proxy.delay = 0.01, 0.004
    for _ in range(KILLS):
        await asyncio.sleep(seeded.uniform(0.0, 0.15))
        if seeded.random() < 0.3:
            await asyncio.to_thread(seeded.choice(proxies).cut)
            continue
        killed = seeded.choice(servers)
        await asyncio.to_thread(killed.kill)
        await asyncio.to_thread(killed.start)
    for proxy in proxies:
        proxy.cut_chance = proxy.delay = 0.0


def test_brokers_killed_and_cut_between_any_two_frames_lose_nothing(tmp_path: Path) -> None:
    async def run(servers: list[Server], proxies: list[TcpProxy]) -> None:
        for at, server in enumerate(servers):
            async with AsyncClient(server.url, client="reader") as client:
                await client.subscribe(f"s{at}", f"number >= {3 * at}")
        for server, count in zip(servers, (1, 2, 1), strict=True):
            until(announced(server, count), "all is announced")
        readers, is_over = Readers(servers), asyncio.Event()
        sent: list[list[dict[str, Any]]] = [[] for _ in servers]
        sending = [
            asyncio.ensure_future(_publish(server, str(at), sent[at], is_over))
            for at, server in enumerate(servers)
        ]
        await _disturb(servers, proxies, random.Random(7))
        is_over.set()
        await asyncio.gather(*sending)
        events = [one for some in sent for one in some]
        kept = [one for one in events if not one["lost"]]
        wanted = [{one["id"] for one in kept if one["number"] >= 3 * at} for at in range(3)]
        await readers.check(wanted, {one["id"] for one in events if one["lost"]})
        print(f"{len(kept)} events, {KILLS} kills, {sum(one.cuts for one in proxies)} cuts")

    with chain(tmp_path, 1) as (servers, proxies):
        asyncio.run(run(servers, proxies))


def test_a_link_needs_a_key_of_its_own_broker(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "hub")
    admin = keys.add("root", ["admin"])
    files = {}
    for name, scopes in {"west": ["link"], "stranger": ["link"], "east": ["publish"]}.items():
        files[name] = tmp_path / f"{name}.key"
        files[name].write_text(keys.add(name, scopes) + "\n")
    with ExitStack() as stack:
        hub = stack.enter_context(Server(tmp_path / "hub", index="scan", broker="hub"))
        for name, key in (("west", "west"), ("north", "stranger"), ("east", "east")):
            link = {"url": f"ws://127.0.0.1:{hub.port}", "key_file": str(files[key])}
            folder = tmp_path / f"server-{name}"
            server = Server(folder, index="scan", broker=name, links=[link])
            stack.enter_context(server)
            if name == "west":
                until(lambda server=server: is_joined(server, 1), "west is let in")
            else:
                until(lambda server=server: brokers_of(server)["refused"], "it is refused")
                refused = brokers_of(server)["refused"]
                assert "key is for the broker 'stranger'" in str(refused) or "scope" in str(refused)
        with hub.http(admin) as http:
            found = http.get("/v1/brokers").json()
            assert [one["name"] for one in found["brokers"]] == ["hub", "west"]
            assert http.delete("/v1/links/nobody").status_code == 404
            metrics = http.get("/metrics").text
            assert 'stentor_link_up{broker="west"} 1.0' in metrics
