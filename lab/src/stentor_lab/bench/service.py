"""The service on the loopback: events a second, and how long a delivery takes.

Two processes: the server (`stentor serve`), and this one with its clients. Beside them the bare
broker with a store, in this process, fed with batches of the same events. Then many connected
clients, and three brokers in a row.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

from stentor.broker import Broker, Store
from stentor.broker.interest import CLIENT
from stentor.client import AsyncClient, ReceivedDelivery
from stentor.errors import DisagreementError
from stentor.wire.records import record_from_dict
from stentor_lab.bench import service_crowds
from stentor_lab.bench.servers import cpu_of, served
from stentor_lab.result import BenchOptions, Row, Table, Unit

SIZE: Final = 100_000
#: Each of so many subscriptions has a twin: two deliveries an event.
TWINS: Final = 2
FRAME: Final = 100
FRAMES, SINGLE, SECONDS, RATE = 100, 2_000, 5, 1_000
CONNECTIONS: Final = 16


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Events in frames and as single requests, beside the bare broker; then latencies."""
    size = options.size or SIZE
    with TemporaryDirectory(prefix="stentor-bench-") as folder:
        options.progress(f"service: the bare broker with {size:,} subscriptions")
        bare = _bare(size, options.seed, Path(folder, "bare.db"))
        with served(Path(folder, "service")) as (url, process):
            rows, latency = asyncio.run(_measured(url, process, size, options))
        options.progress("service: restart")
        start = time.perf_counter()
        with served(Path(folder, "service")):
            restart = time.perf_counter() - start
        crowds = service_crowds.tables(options, Path(folder))
    workload = {"subscriptions": size, "deliveries an event": TWINS, "seed": options.seed}
    rates = Table(
        "Events through a service on the loopback",
        {**workload, "restart until ready, s": round(restart, 1)},
        "event",
        Unit.RATE,
        (bare, *rows),
    )
    delays = Table(
        "From publishing to the delivery",
        {**workload, "events a second": RATE},
        "event",
        Unit.MILLISECONDS,
        (latency,),
        compared=False,
    )
    return rates, delays, *crowds


def _expression(number: int, size: int) -> str:
    return f"key = {number % (size // TWINS or 1)} AND price < {900 + number % 100}"


def _events(seeded: random.Random, size: int, count: int, name: str) -> list[dict[str, Any]]:
    keys = size // TWINS or 1
    return [
        {
            "id": f"{name}-{number}",
            "key": seeded.randrange(keys),
            "price": seeded.randrange(800),
            "loc": [round(seeded.uniform(-180, 180), 4), round(seeded.uniform(-80, 80), 4)],
            "text": "an offer of today",
        }
        for number in range(count)
    ]


def _bare(size: int, seed: int, path: Path) -> Row:
    """The broker alone, in batches of as many events as a frame has."""
    broker = Broker("bare", store=Store(path))
    records = [
        record_from_dict(
            {"op": "subscribe", "id": f"s{number}", "expression": _expression(number, size)},
            broker.schema,
        )
        for number in range(size)
    ]
    for first in range(0, size, 10_000):
        broker.receive(CLIENT, records[first : first + 10_000])
    seeded, times = random.Random(seed), []
    for number in range(21):
        events = _events(seeded, size, FRAME, f"bare{number}")
        batch = [record_from_dict(one, broker.schema, default_op="publish") for one in events]
        start = time.perf_counter()
        found = broker.receive(CLIENT, batch)
        times.append((time.perf_counter() - start) / FRAME)
        if len(found.deliveries) != TWINS * FRAME:
            raise DisagreementError("the broker has not delivered each event twice")
    broker.close()
    return Row(f"bare broker, batches of {FRAME}", tuple(times[1:]))


async def _measured(
    url: str, process: subprocess.Popen[str], size: int, options: BenchOptions
) -> tuple[list[Row], Row]:
    options.progress(f"service: {size:,} subscriptions over HTTP")
    await asyncio.to_thread(_subscribe_all, url, size)
    seeded = random.Random(options.seed + 1)
    async with AsyncClient(url, client="bench") as client:
        await _round(client, _events(seeded, size, 500, "warm"))
        options.progress("service: frames")
        frames = []
        for number in range(options.repetitions):
            events = _events(seeded, size, FRAME * FRAMES, f"f{number}")
            before, start = cpu_of(process.pid), time.perf_counter()
            await _round(client, events)
            frames.append((time.perf_counter() - start) / len(events))
            cpu = (cpu_of(process.pid) - before) / len(events)
        options.progress("service: single requests")
        single = []
        for number in range(options.repetitions):
            events = _events(seeded, size, SINGLE, f"r{number}")
            start = time.perf_counter()
            await _requests(url, events)
            single.append((time.perf_counter() - start) / len(events))
            await _drained(client, TWINS * len(events))
        options.progress(f"service: {RATE:,} events a second")
        delays = await _latency(client, _events(seeded, size, RATE * SECONDS, "l"))
    rows = [
        Row(f"service, frames of {FRAME}", tuple(frames), {"server's CPU µs": 1e6 * cpu}),
        Row("service, single requests", tuple(single)),
    ]
    quantiles = statistics.quantiles(delays, n=100)
    figures = {"99 % ms": 1e3 * quantiles[98], "most ms": 1e3 * max(delays)}
    return rows, Row("publish to delivery", (quantiles[49],), figures)


def _subscribe_all(url: str, size: int) -> None:
    for first in range(0, size, 10_000):
        numbers = range(first, min(size, first + 10_000))
        lines = [{"id": f"s{one}", "expression": _expression(one, size)} for one in numbers]
        service_crowds.post(url, "/v1/subscriptions?client=bench", lines)


async def _drained(client: AsyncClient, count: int) -> None:
    """Take *count* deliveries in."""
    for _ in range(count):
        one = await client.next_delivery(120)
        if not isinstance(one, ReceivedDelivery):
            raise DisagreementError(f"the service has dropped deliveries: {one}")
        await client.acknowledge(one.seq)


async def _round(client: AsyncClient, events: list[dict[str, Any]]) -> None:
    """Publish *events* in frames, eight of them under way, and take all deliveries in."""
    taking = asyncio.ensure_future(_drained(client, TWINS * len(events)))
    gate = asyncio.Semaphore(8)

    async def frame(start: int) -> None:
        async with gate:
            if await client.publish(events[start : start + FRAME]):
                raise DisagreementError("the service has refused events of the benchmark")

    await asyncio.gather(*(frame(start) for start in range(0, len(events), FRAME)))
    await taking


async def _requests(url: str, events: list[dict[str, Any]]) -> None:
    """Post *events* one by one, over some connections that stay open."""
    parts = urlsplit(url)
    waiting = iter(events)

    async def connection() -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        for event in waiting:
            body = json.dumps(event).encode()
            head = (
                f"POST /v1/events HTTP/1.1\r\nHost: {parts.netloc}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            if b" 200 " not in answer[:20]:
                raise DisagreementError("the service has refused an event of the benchmark")
        writer.close()

    await asyncio.gather(*(connection() for _ in range(CONNECTIONS)))


async def _latency(client: AsyncClient, events: list[dict[str, Any]]) -> list[float]:
    """Seconds from each event's sending to its first delivery, at a steady rate."""
    sent: dict[str, float] = {}
    delays: dict[str, float] = {}

    async def take() -> None:
        for _ in range(TWINS * len(events)):
            one = await client.next_delivery(120)
            if isinstance(one, ReceivedDelivery):
                id = str(one.event["id"])
                delays.setdefault(id, time.perf_counter() - sent[id])
                await client.acknowledge(one.seq)

    taking = asyncio.ensure_future(take())
    running: list[asyncio.Future[Any]] = []
    start = time.perf_counter()
    for number, event in enumerate(events):
        due = start + number / RATE
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        sent[event["id"]] = time.perf_counter()
        running.append(asyncio.ensure_future(client.publish(event)))
    await asyncio.gather(*running)
    await taking
    return list(delays.values())
