"""Clients and commands against a real server; server-sent events; the OpenAPI document."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from stentor.client import AsyncClient, Client, ReceivedDelivery
from stentor.errors import ServiceError
from stentor.model import Changes
from tests.support.servers import PATIENCE, Server


def test_a_client_subscribes_publishes_and_is_told(server: Server) -> None:
    with Client(server.url, client="plain") as client:
        wanted = "plain < 3 AND ST_DWithin(loc, here(), 9)"
        assert client.subscribe("plain", wanted, at=(1, 2)) == Changes()
        rejected = client.publish([{"plain": 1, "loc": [1, 2]}, {"id": []}, {"plain": "x"}])
        assert [one.position for one in rejected] == [1, 2]
        [one] = [next(client.deliveries())]
        assert isinstance(one, ReceivedDelivery)
        assert (one.seq, one.change, one.event["plain"]) == (1, "added", 1)
        assert client.publish({"id": "near", "plain": 2, "loc": [1, 2], "until": 9e9}) == []
        assert client.move("plain", (5, 5)).removed == ["near"]
        client.unsubscribe("plain")
        with pytest.raises(ServiceError, match="no subscription has the id 'plain'"):
            client.unsubscribe("plain")
        with pytest.raises(ServiceError) as raised:
            client.subscribe("plain", "plain <")
        assert raised.value.kind == "expression_syntax"
        tried = client.request("POST", "/v1/match", {"expression": "plain = 2"})
        assert tried["matched"] == 1
        with pytest.raises(ServiceError):
            client.request("GET", "/v1/subscriptions/none")


def test_what_was_not_asked_for_again_comes_again(server: Server) -> None:
    async def run() -> None:
        async with AsyncClient(server.url, client="again") as client:
            await client.subscribe("again", "again >= 0")
            await client.publish([{"id": f"a{n}", "again": n} for n in range(1200)])
            async for one in client.deliveries():
                assert isinstance(one, ReceivedDelivery)
                if one.event["again"] == 700:
                    break
        async with AsyncClient(server.url, client="again") as client:
            one = await client.next_delivery(PATIENCE)
            assert isinstance(one, ReceivedDelivery)
            assert one.event["again"] == 700, "it was not asked for the next one"

    asyncio.run(run())


def test_a_client_that_nobody_knows_is_refused(folder: Path) -> None:
    from stentor.service.auth import Keys

    key = Keys(folder).add("acme", ["subscribe", "publish"])
    with Server(folder, index="scan") as server:
        with pytest.raises(ServiceError) as raised:
            Client(server.url)
        assert raised.value.kind == "unauthorised"
        with Client(server.url, key=key) as client:
            assert client.publish({"x": 1}) == []


def test_server_sent_events_go_on_after_the_last_one(http: httpx.Client) -> None:
    http.put("/v1/subscriptions/sse", json={"expression": "sse > 0", "client": "sse"})
    http.post("/v1/events", json=[{"id": f"v{n}", "sse": n} for n in (1, 2, 3)])

    def read(count: int, **headers: str) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        with http.stream("GET", "/v1/stream?client=sse", headers=headers) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            kind, seq = "", 0
            for line in answer.iter_lines():
                name, _, value = line.partition(": ")
                kind = value if name == "event" else kind
                seq = int(value) if name == "id" else seq
                if name == "data":
                    found.append((kind, seq))
                    assert json.loads(value)["seq"] == seq
                if len(found) == count:
                    return found
        raise AssertionError("the stream ended")

    assert read(3) == [("delivery", 1), ("delivery", 2), ("delivery", 3)]
    assert read(1, **{"Last-Event-ID": "2"}) == [("delivery", 3)]
    left = http.get("/v1/deliveries?client=sse").json()["deliveries"]
    assert [one["seq"] for one in left] == [3], "the last one's id acknowledges"


def test_answers_are_as_the_document_says(http: httpx.Client) -> None:
    """Every call that it describes is tried; whatever comes back has a shape that it lists."""
    document = http.get("/openapi.json").json()
    schemas = document["components"]["schemas"]

    def fits(value: Any, schema: dict[str, Any]) -> bool:
        if "$ref" in schema:
            return fits(value, schemas[schema["$ref"].rpartition("/")[2]])
        if "anyOf" in schema:
            return any(fits(value, one) for one in schema["anyOf"])
        if "enum" in schema:
            return value in schema["enum"]
        kinds = {
            "object": dict,
            "array": list,
            "string": str,
            "boolean": bool,
            "integer": int,
            "number": (int, float),
            "null": type(None),
        }
        kind = schema.get("type")
        if kind is not None and not isinstance(value, kinds[kind]):
            return False
        if isinstance(value, dict):
            inner = schema.get("properties", {})
            return all(name in value for name in schema.get("required", ())) and all(
                fits(value[name], inner[name]) for name in value if name in inner
            )
        if isinstance(value, list):
            return all(fits(one, schema.get("items", {})) for one in value)
        return True

    http.put("/v1/subscriptions/x", json={"expression": "document > 0", "at": [1, 2]})
    http.post("/v1/events", json={"id": "x", "document": 1, "until": 9e9})
    bodies = {
        "NewSubscription": {"expression": "document > 1"},
        "Match": {"expression": "document > 0"},
        "Explain": {"subscription": "x", "event": "x"},
        "WhyNot": {"event": "x"},
        "Move": {"at": [1, 2]},
        "Acknowledgement": {"seq": 0},
        "NewWebhook": {"url": "https://127.0.0.1/"},
        "Event": {"document": 2},
        "NewKey": {"owner": "x", "scopes": []},
    }
    tried = set()
    calls = [
        (path, method, call)
        for path, methods in document["paths"].items()
        for method, call in methods.items()
        if not path.startswith("/v1/stream")
    ]
    for path, method, call in sorted(calls, key=lambda one: one[1] == "delete"):
        content = call.get("requestBody", {}).get("content", {})
        body, headers = None, {}
        if content:
            kind, described = next(iter(content.items()))
            name = described["schema"].get("$ref", "").rpartition("/")[2]
            body = json.dumps(bodies.get(name, {"id": "x", "expression": "document > 2"}))
            headers = {"content-type": kind}
        url = re.sub(r"{\w+}", "x", path)
        found = http.request(method, url, content=body, headers=headers)
        listed = call["responses"]
        answer = listed.get(str(found.status_code), listed.get("default"))
        assert answer is not None, (path, method, found.status_code)
        assert found.status_code < 500, (path, method, found.text)
        if "content" in answer:
            schema = answer["content"]["application/json"]["schema"]
            assert fits(found.json(), schema), (path, method, found.text)
        tried.add((method, found.status_code // 100))
    assert {("get", 2), ("put", 2), ("post", 2), ("delete", 2)} <= tried


def test_a_server_is_started_published_to_and_subscribed_at_from_a_terminal(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-m", "stentor"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    serving = subprocess.Popen(
        [*command, "serve", "--port", "0", "--folder", str(tmp_path / "served")],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert serving.stdout is not None
        ready = serving.stdout.readline()
        url = ready.split()[3]
        assert ready.startswith("stentor: ready at http://127.0.0.1:")
        environment["STENTOR_URL"] = url
        wanted = "price < 300 AND ST_DWithin(loc, here(), 500)"
        subscriber = subprocess.Popen(
            [*command, "sub", wanted, "--at", "151.2,-33.9", "--count", "1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert subscriber.stderr is not None
        while not subscriber.stderr.readline().startswith("waiting"):
            pass
        lines = ['{"id": "e1", "price": 299, "loc": [151.2, -33.9]}', "no json", '{"price": 900}']
        published = subprocess.run(
            [*command, "pub", "-"],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            env=environment,
            timeout=PATIENCE,
            check=False,
        )
        assert published.returncode == 1
        assert "line 2: not JSON" in published.stderr
        assert "2 published, 1 refused" in published.stderr
        told, _ = subscriber.communicate(timeout=PATIENCE)
        assert json.loads(told)["event"]["id"] == "e1"
        assert httpx.get(f"{url}/v1/subscriptions").json()["subscriptions"] == [], "it has gone"
        serving.send_signal(signal.SIGTERM)
        rest, _ = serving.communicate(timeout=PATIENCE)
        assert (serving.returncode, rest) == (0, "stentor: stopped, everything is kept\n")
    finally:
        serving.kill()
        serving.wait()
        serving.stdout.close()
