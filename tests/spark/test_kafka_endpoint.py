"""A client's deliveries go to a real Kafka broker: each is there, and acknowledged then."""

import time
from pathlib import Path

import msgspec
import pytest

from tests.support.servers import PATIENCE, Server

confluent_kafka = pytest.importorskip("confluent_kafka")


def test_deliveries_go_to_kafka(tmp_path: Path, servers: str, topic: str) -> None:
    port = servers.rpartition(":")[2]
    webhooks = {
        "allow": ["127.0.0.1/32"],
        "first_wait": "PT0.05S",
        "attempts": 50,
        "timeout": "PT10S",
    }
    with (
        Server(tmp_path / "service", index="scan", webhooks=webhooks) as server,
        server.http() as http,
    ):
        put = {"url": f"kafka://127.0.0.1:{port}/{topic}"}
        assert http.put("/v1/webhooks/ana", json=put).status_code == 201
        http.put("/v1/subscriptions/s", json={"expression": "x > 0", "client": "ana"})
        events = [{"id": f"e{n}", "x": 1} for n in range(20)]
        assert http.post("/v1/events", json=events).status_code == 200
        end = time.monotonic() + PATIENCE
        while http.get("/v1/stats").json()["clients"][0]["queued"]:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert http.get("/v1/dead-letters?client=ana").json()["dead_letters"] == []
    reader = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "test", "auto.offset.reset": "earliest"}
    )
    reader.subscribe([topic])
    found = {}
    end = time.monotonic() + PATIENCE
    while len(found) < 20 and time.monotonic() < end:
        message = reader.poll(1.0)
        if message is not None and message.error() is None:
            one = msgspec.json.decode(message.value())
            found[one["seq"]] = one["event"]["id"], message.key()
    reader.close()
    assert sorted(found) == list(range(1, 21))
    assert found[1] == ("e0", b"s")
