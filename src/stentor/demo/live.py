"""The afternoon live: a server of its own, and a client that does what people and shops do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from stentor.client import AsyncClient
from stentor.demo.afternoon import Afternoon
from stentor.demo.street import NOON, Record, clock
from stentor.errors import ServiceError, SettingsError
from stentor.model.values.time import parse_timestamp

CLIENT: Final = "city"
#: Seconds between two glances at what is to happen by now.
_TICK: Final = 0.1
#: Records that wait for their answers at a time.
_TOGETHER: Final = 200
_FIELDS: Final = ("op", "time", "until")


@contextmanager
def server(port: int) -> Iterator[str]:
    """The address of a `stentor serve` of its own, whose folder goes with it."""
    with TemporaryDirectory(prefix="stentor-city-") as folder:
        command = [sys.executable, "-m", "stentor", "serve", "--port", str(port)]
        command += ["--folder", str(Path(folder) / "service")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if "ready at " in line:
                    yield line.split("ready at ")[1].split()[0]
                    return
            raise SettingsError("stentor serve has ended; the lines above say why")
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(15)
            process.kill()


async def play(
    url: str, afternoon: Afternoon, minutes: float, on_progress: Callable[[int, int], None]
) -> None:
    """Let *afternoon* happen at *url*: who is there at noon at once, the rest within *minutes*.

    *on_progress* hears every few seconds how many records and deliveries there were.
    """
    counts = {"records": 0, "deliveries": 0}
    async with AsyncClient(url, client=CLIENT) as client:
        taking = asyncio.ensure_future(_take(client, counts))
        try:
            for due in _by_ticks(afternoon, minutes):
                await _send(client, due)
                counts["records"] += len(due)
                on_progress(counts["records"], counts["deliveries"])
                await asyncio.sleep(_TICK)
        finally:
            taking.cancel()


async def _take(client: AsyncClient, counts: dict[str, int]) -> None:
    async for _ in client.deliveries():
        counts["deliveries"] += 1


def _by_ticks(afternoon: Afternoon, minutes: float) -> Iterator[list[Record]]:
    """The records that are due at each glance, for as long as there are any."""
    noon = parse_timestamp(clock(NOON)) / 1e6
    speed = (parse_timestamp(clock(18 * 3600)) / 1e6 - noon) / (60 * minutes)
    records = [_as_of_now(record, speed) for record in afternoon.records()]
    start, done = time.monotonic(), 0
    while done < len(records):
        by_now = noon + (time.monotonic() - start) * speed
        stop = done
        while stop < len(records) and records[stop][0] <= by_now and stop < done + _TOGETHER:
            stop += 1
        yield [record for _, record in records[done:stop]]
        done = stop


def _as_of_now(record: Record, speed: float) -> tuple[float, Record]:
    """When *record* happens in its own time, and what is sent, with its span until its end."""
    moment = parse_timestamp(record["time"]) / 1e6
    sent = {name: value for name, value in record.items() if name not in _FIELDS}
    sent["op"] = record["op"]
    if "until" in record:
        sent["seconds"] = (parse_timestamp(record["until"]) / 1e6 - moment) / speed
    return moment, sent


async def _send(client: AsyncClient, records: list[Record]) -> None:
    """Send *records* in their order; somebody whose time is over is no reason to stop."""
    answers = await asyncio.gather(
        *(_one(client, record) for record in records), return_exceptions=True
    )
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, ServiceError):
            raise answer


async def _one(client: AsyncClient, record: dict[str, Any]) -> None:
    fields = dict(record)
    op, seconds = fields.pop("op"), fields.pop("seconds", None)
    if seconds is not None:
        fields["until"] = time.time() + seconds
    match op:
        case "subscribe":
            await client.subscribe(fields.pop("id"), fields.pop("expression"), **fields)
        case "move":
            await client.move(fields["id"], fields["at"])
        case "unsubscribe":
            await client.unsubscribe(fields["id"])
        case _:
            await client.publish(fields)
