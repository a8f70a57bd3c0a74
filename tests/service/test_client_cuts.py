"""Clients whose connections are cut, delayed and halved are given what one engine gives, once."""

import asyncio
import os
import random
from pathlib import Path
from typing import Any

import pytest

from stentor import Engine
from stentor.client import AsyncClient, ReceivedDelivery
from stentor.errors import ServiceError
from tests.support.servers import PATIENCE, Server
from tests.support.tcp_proxy import TcpProxy

#: Many more for whoever looks for what these do not find.
SEEDS = int(os.environ.get("STENTOR_CUTS", "2"))
STEPS = 40
#: Far away: an event that is sent again is known.
UNTIL = 4e9

Told = tuple[str, str, str]


class Reader:
    """Reads a client's deliveries at its own pace; now and then it is another process that does."""

    def __init__(self, url: str, client: str, seeded: random.Random) -> None:
        self._url, self._client, self._seeded = url, client, seeded
        self.found: dict[int, Told] = {}
        self.twice: list[int] = []
        self.changed = asyncio.Event()

    async def run(self) -> None:
        while True:
            seen_here = 0
            async with AsyncClient(self._url, client=self._client, connect_timeout=60) as client:
                for _ in range(self._seeded.randint(1, 60)):
                    one = await client.next_delivery()
                    assert isinstance(one, ReceivedDelivery), one
                    if one.seq <= seen_here:
                        self.twice.append(one.seq)
                    seen_here = one.seq
                    told = one.subscription, one.event["id"], one.change
                    assert self.found.setdefault(one.seq, told) == told
                    self.changed.set()
                    if self._seeded.random() < 0.3:
                        await asyncio.sleep(self._seeded.uniform(0, 0.03))
                    if self._seeded.random() < 0.7:
                        await client.acknowledge(one.seq)


def records(seeded: random.Random, number: int) -> list[dict[str, Any]]:
    """One change, or some events."""
    id = f"s{seeded.randrange(6)}"
    kind = seeded.choice(["publish", "publish", "publish", "subscribe", "move", "unsubscribe"])
    if kind == "publish":
        size = seeded.choice([1, 3, 20, 60])
        return [
            {"op": kind, "id": f"e{number}-{n}", "x": seeded.randrange(4), "until": UNTIL}
            | {"loc": [seeded.randrange(3), 0], "text": "t" * seeded.choice([0, 10, 5_000])}
            for n in range(size)
        ]
    if kind == "subscribe":
        text = f"x >= {seeded.randrange(4)} AND ST_DWithin(loc, here(), 120000)"
        return [{"op": kind, "id": id, "expression": text, "at": [seeded.randrange(3), 0]}]
    return [{"op": kind, "id": id} | ({"at": [seeded.randrange(3), 0]} if kind == "move" else {})]


async def happen(client: AsyncClient, given: list[dict[str, Any]]) -> None:
    """Let *given* happen, whether the server has it from an earlier try or not."""
    kind, one = given[0]["op"], given[0]
    if kind == "publish":
        plain = [{name: each[name] for name in each if name != "op"} for each in given]
        told = await client.publish(plain)
        assert {str(each.error.kind) for each in told} <= {"duplicate_event"}
        return
    try:
        if kind == "subscribe":
            await client.subscribe(one["id"], one["expression"], at=one["at"])
        elif kind == "move":
            await client.move(one["id"], one["at"])
        else:
            await client.unsubscribe(one["id"])
    except ServiceError as error:
        if error.kind != "unknown_id":
            raise


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_is_cut_each_delivery_comes_once_in_order(folder: Path, seed: int) -> None:
    seeded = random.Random(seed)
    name = f"cuts-{seed}"
    engine = Engine("scan", clock=None)
    steps: list[list[Told]] = []

    async def run(proxy: TcpProxy) -> None:
        url = f"http://127.0.0.1:{proxy.port}"
        async with AsyncClient(url, client=name, deliveries=False) as sender:
            reader = Reader(url, name, random.Random(seed))
            reading = asyncio.ensure_future(reader.run())
            proxy.cut_chance, proxy.delay = seeded.choice([(0.02, 0.005), (0.05, 0.01), (0.1, 0)])
            for number in range(STEPS):
                given = records(seeded, number)
                await asyncio.wait_for(happen(sender, given), 5 * PATIENCE)
                told: list[Told] = []
                for record, answer in zip(given, engine.step(given), strict=True):
                    if isinstance(answer, Exception):
                        continue
                    if record["op"] == "publish":
                        told += [(id, record["id"], "added") for id in answer]
                    else:
                        for change in ("added", "removed"):
                            events = getattr(answer, change)
                            told += [(record["id"], event, change) for event in events]
                steps.append(told)
                if seeded.random() < 0.1:
                    await asyncio.to_thread(proxy.cut)
            count = sum(len(told) for told in steps)
            while len(reader.found) < count and not reading.done():
                reader.changed.clear()
                waiting = asyncio.ensure_future(reader.changed.wait())
                done, _ = await asyncio.wait(
                    (waiting, reading), timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED
                )
                assert done, f"{len(reader.found)} of {count} came"
            if reading.done():
                reading.result()
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            assert reader.twice == []
            assert list(reader.found) == list(range(1, count + 1)), "each once, in order"
            found = iter(reader.found.values())
            for told in steps:
                assert sorted(next(found) for _ in told) == sorted(told)

    with Server(folder, index="scan") as server, TcpProxy(server.port, seed) as proxy:
        asyncio.run(run(proxy))
