"""`stentor serve --pipeline`: the same client code, whether one process or Spark matches."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from stentor.client import Client, ReceivedDelivery
from stentor.pipeline.config.file import load, start_from
from tests.support.servers import PATIENCE, Server

CONFIG = """
[[source]]
kind = "records"
format = "json"
path = "records"

[order]
by = "seq"
time = "time"

[schema]
price = "number"
loc = "point"

[tables]
path = "pipeline"
stayed = true
"""


def used(client: Client) -> list[tuple[str, str, str, float]]:
    """What a client is told that does a little of everything."""
    client.subscribe("near", "ST_DWithin(loc, here(), 500)", at=(151.2, -33.9))
    client.subscribe("cheap", "price < 300")
    here, there = [151.2, -33.9], [151.3, -33.9]
    assert client.publish([{"id": "e1", "price": 250, "loc": there, "until": 4e9}]) == []
    assert client.publish([{"id": "e2", "price": 400, "loc": here}, {"price": "?", "id": 1}])
    client.move("near", there)
    client.update({"id": "e1", "price": 350, "loc": there})
    client.withdraw("e1")
    found = []
    for one in client.deliveries():
        assert isinstance(one, ReceivedDelivery)
        assert one.seq == len(found) + 1
        found.append((one.subscription, one.event["id"], one.change, one.event["price"]))
        if one.change == "left" and one.subscription == "near":
            return found
    raise AssertionError


def test_the_same_client_code_works_with_a_stream_behind(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stentor.toml").write_text(CONFIG)
    (tmp_path / "records").mkdir()
    with ExitStack() as stack:
        plain = stack.enter_context(Server(tmp_path / "plain", index="scan"))
        with Client(plain.url, client="ana") as client:
            wanted = used(client)
        door = stack.enter_context(Server(tmp_path / "door", index="scan", pipeline=str(tmp_path)))
        query = start_from(load(tmp_path / "stentor.toml"), spark)
        try:
            with Client(door.url, client="ana") as client:
                found = used(client)
                listed = client.request("GET", "/v1/subscriptions")["subscriptions"]
                assert [one["id"] for one in listed] == ["cheap", "near"]
        finally:
            query.stop()
            query.awaitTermination(PATIENCE)
    assert sorted(found) == sorted(wanted)
