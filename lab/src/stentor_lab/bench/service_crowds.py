"""A service with many connected clients, and a chain of three brokers beside one.

Clients are bare sockets that count what comes, so that the server is what is measured.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from stentor.errors import StentorError
from stentor_lab.bench.servers import cpu_of, memory_of, served
from stentor_lab.result import BenchOptions, Row, Table, Unit

CLIENTS: Final = 10_000
#: So many clients want the same events.
GROUP: Final = 50
#: Deliveries of a round, and connections that are opened at a time.
DELIVERIES: Final = 100_000
_AT_ONCE: Final = 200
CHAIN_SIZE, CHAIN_EVENTS = 5_000, 10_000


def tables(options: BenchOptions, folder: Path) -> tuple[Table, ...]:
    """Deliveries to a crowd, and the CPU of a chain."""
    return _crowd(options, folder), _chain(options, folder)


def post(url: str, path: str, lines: list[dict[str, Any]]) -> None:
    """Post *lines*, all of which must be taken."""
    body = "\n".join(map(json.dumps, lines)).encode()
    asked = Request(f"{url}{path}", body, {"Content-Type": "application/x-ndjson"})
    with urlopen(asked, timeout=600) as answer:
        if json.load(answer)["accepted"] != len(lines):
            raise StentorError("the service has refused records of the benchmark")


class _Counted(asyncio.Protocol):
    """A client's socket: it says hello, and counts deliveries."""

    def __init__(self, crowd: _Crowd, number: int) -> None:
        self._crowd, self._number = crowd, number
        self.opened = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        host = self._crowd.host
        path = f"/v1/ws?client=c{self._number}"
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {host}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version: 13",
        ]
        transport.write(("\r\n".join(lines) + "\r\n\r\n").encode())

    def data_received(self, data: bytes) -> None:
        self._answer_pings(data)
        if not self.opened.done() and b'"hello"' in data:
            self.opened.set_result(None)
        self._crowd.count(data.count(b'"seq":'))

    def _answer_pings(self, data: bytes) -> None:
        """Answer the server's pings, which come by themselves; a mask of zeros masks nothing."""
        if len(data) >= 2 and data[0] == 0x89 and data[1] < 126 and len(data) == 2 + data[1]:
            self._transport.write(bytes((0x8A, 0x80 | data[1], 0, 0, 0, 0)) + data[2:])


class _Crowd:
    def __init__(self, url: str) -> None:
        self.host = urlsplit(url).netloc
        self.got, self.wanted = 0, 0
        self.done = asyncio.Event()

    def count(self, some: int) -> None:
        self.got += some
        if self.got >= self.wanted:
            self.done.set()

    async def open(self, clients: int) -> list[asyncio.BaseTransport]:
        loop, (host, _, port) = asyncio.get_running_loop(), self.host.partition(":")
        transports: list[asyncio.BaseTransport] = []
        for first in range(0, clients, _AT_ONCE):
            numbers = range(first, min(clients, first + _AT_ONCE))
            made = await asyncio.gather(
                *(
                    loop.create_connection(lambda one=one: _Counted(self, one), host, int(port))  # type: ignore[misc]
                    for one in numbers
                )
            )
            transports += [transport for transport, _ in made]
            await asyncio.gather(*(protocol.opened for _, protocol in made))
        return transports

    async def wait_for(self, deliveries: int) -> None:
        self.wanted = self.got + deliveries
        self.done.clear()
        await asyncio.wait_for(self.done.wait(), 600)


def _crowd(options: BenchOptions, folder: Path) -> Table:
    clients = max(GROUP, min(CLIENTS, (options.size or CLIENTS)))
    groups = clients // GROUP
    with served(folder / "crowd") as (url, process):
        empty = memory_of(process.pid)
        lines = [
            {"id": f"s{one}", "expression": f"group = {one % groups}", "client": f"c{one}"}
            for one in range(clients)
        ]
        options.progress(f"service: {clients:,} clients")
        post(url, "/v1/subscriptions", lines)

        async def run() -> tuple[list[float], float]:
            crowd = _Crowd(url)
            transports = await crowd.open(clients)
            count, times = DELIVERIES // GROUP, []
            for number in range(options.repetitions):
                events = [{"id": f"e{number}-{one}", "group": one % groups} for one in range(count)]
                start = time.perf_counter()
                posting = asyncio.gather(
                    *(
                        asyncio.to_thread(post, url, "/v1/events", events[at : at + 500])
                        for at in range(0, count, 500)
                    )
                )
                await crowd.wait_for(count * GROUP)
                await posting
                times.append((time.perf_counter() - start) / (count * GROUP))
            memory = memory_of(process.pid)
            for transport in transports:
                transport.close()
            return times, memory

        times, memory = asyncio.run(run())
    workload = {"clients": clients, "clients that want an event": GROUP}
    figures = {"server's MB": memory, "of it before": empty}
    row = Row("deliveries to connected clients", tuple(times), figures)
    return Table("Many connected clients", workload, "delivery", Unit.RATE, (row,), compared=False)


def _chain(options: BenchOptions, folder: Path) -> Table:
    """The CPU of one broker, and of three in a row whose subscriptions are at the other end."""
    size = min(CHAIN_SIZE, options.size or CHAIN_SIZE)
    subscriptions = [
        {"id": f"s{one}", "expression": f"key = {one // 2}", "client": "bench"}
        for one in range(size)
    ]
    rows = []
    for names in (("alone",), ("west", "hub", "east")):
        options.progress(f"service: {' – '.join(names)}")
        with ExitStack() as stack:
            urls: list[str] = []
            pids: list[int] = []
            for name in reversed(names):
                file = folder / f"{name}.toml"
                link = f'\n[[links]]\nurl = "{urls[-1]}"\n' if urls else ""
                queue = "[queue]\ndeliveries = 10000000\n"
                file.write_text(f'broker = "{name}"\nport = 0\nfolder = "{name}"\n{queue}{link}')
                url, process = stack.enter_context(served(folder / name, file))
                urls.append(url)
                pids.append(process.pid)
            post(urls[0], "/v1/subscriptions", subscriptions)
            _settled(urls[-1], size // 2 if len(names) > 1 else 0)  # of twins one covers the other
            times = []
            for number in range(options.repetitions):
                events = [
                    {"id": f"e{number}-{one}", "key": one % (size // 2), "price": one}
                    for one in range(CHAIN_EVENTS)
                ]
                before, known = sum(map(cpu_of, pids)), _delivered(urls[0])
                for at in range(0, len(events), 500):
                    post(urls[-1], "/v1/events?results=false", events[at : at + 500])
                while _delivered(urls[0]) < known + 2 * len(events):
                    time.sleep(0.1)
                times.append((sum(map(cpu_of, pids)) - before) / len(events))
            rows.append(Row(" – ".join(names), tuple(times)))
    workload = {"subscriptions": size, "deliveries an event": 2, "frames of": 500}
    return Table("CPU of all brokers together", workload, "event", Unit.MICROSECONDS, tuple(rows))


def _ask(url: str, path: str) -> dict[str, Any]:
    with urlopen(f"{url}{path}", timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def _delivered(url: str) -> int:
    return int(_ask(url, "/v1/stats")["deliveries"])


def _settled(url: str, interests: int) -> None:
    """Wait until the first broker has heard of all."""
    end = time.monotonic() + 600
    while time.monotonic() < end:
        found = _ask(url, "/v1/brokers")
        name = found["brokers"][0]["name"]
        if sum(one["announced"] for one in found["links"] if one["to"] == name) >= interests:
            return
        time.sleep(0.2)
    raise StentorError("the brokers of the benchmark were not linked")
