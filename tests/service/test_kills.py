"""A server that is killed between any two frames: what was answered is delivered, each once."""

import asyncio
import os
import random
from pathlib import Path

from stentor.client import AsyncClient, ReceivedDelivery
from tests.support.servers import PATIENCE, Server

KILLS = int(os.environ.get("STENTOR_CRASHES", "20"))


async def _published(server: Server, answered: list[int], is_over: asyncio.Event) -> None:
    """Publish events, and put the numbers of those that were answered into *answered*."""
    async with AsyncClient(server.url, client="sender", deliveries=False) as sender:
        while not is_over.is_set():
            start = len(answered)
            events = [{"id": f"e{n}", "number": n} for n in range(start, start + 7)]
            assert await sender.publish(events) == []
            answered += range(start, start + 7)


async def _received(server: Server, got: list[ReceivedDelivery]) -> None:
    async with AsyncClient(server.url, client="reader") as reader:
        async for one in reader.deliveries():
            assert isinstance(one, ReceivedDelivery)
            got.append(one)


async def _killed(server: Server, answered: list[int], seeded: random.Random) -> None:
    """Kill it again and again, a few frames after it was heard of."""
    for _ in range(KILLS):
        enough = len(answered) + 7 * seeded.randint(1, 6)
        while len(answered) < enough:
            await asyncio.sleep(0.002)
        await asyncio.sleep(seeded.uniform(0.0, 0.01))
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)


async def _run(server: Server) -> None:
    async with AsyncClient(server.url, client="reader") as first:
        await first.subscribe("all", "number >= 0")
    got: list[ReceivedDelivery] = []
    answered: list[int] = []
    is_over = asyncio.Event()
    reading = asyncio.ensure_future(_received(server, got))
    sending = asyncio.ensure_future(_published(server, answered, is_over))
    await _killed(server, answered, random.Random(7))
    is_over.set()
    await asyncio.wait_for(sending, PATIENCE)
    wanted = set(answered)
    for _ in range(PATIENCE * 10):
        if wanted <= {one.event["number"] for one in got}:
            break
        await asyncio.sleep(0.1)
    reading.cancel()
    sequences = [one.seq for one in got]
    assert sequences == list(range(1, len(got) + 1)), "in order, none twice, none missing"
    assert {one.event["number"] for one in got} == wanted
    # A frame whose answer was lost is sent again: under the same ids, at once after the first time.
    doubles = len(got) - len(wanted)
    assert doubles <= 7 * KILLS
    print(f"{len(answered)} events, {KILLS} kills, {doubles} came twice")


def test_a_server_killed_between_any_two_frames_loses_nothing(folder: Path) -> None:
    with Server(folder, index="scan") as server:
        asyncio.run(_run(server))


def test_a_clean_stop_keeps_and_sends_what_waits(folder: Path) -> None:
    async def run(server: Server) -> None:
        async with AsyncClient(server.url, client="reader") as reader:
            await reader.subscribe("all", "number >= 0")
            answers = [
                asyncio.ensure_future(reader.publish({"id": f"e{n}", "number": n}))
                for n in range(200)
            ]
            await asyncio.sleep(0.02)
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(server.start)
            await asyncio.gather(*answers)
            numbers: set[int] = set()
            while len(numbers) < 200:
                one = await reader.next_delivery(PATIENCE)
                assert isinstance(one, ReceivedDelivery)
                numbers.add(one.event["number"])

    with Server(folder, index="scan") as server:
        asyncio.run(run(server))
