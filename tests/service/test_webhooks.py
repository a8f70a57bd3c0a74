"""Webhooks: signed, tried again, then dead letters; only to allowed addresses."""

import asyncio
import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from stentor.service.addresses import AllowedAddresses
from stentor.service.refusals import RefusedError
from tests.support.servers import PATIENCE, Server


class Receiver:
    """Takes posts, as long as `status` says so."""

    def __init__(self) -> None:
        self.status = 200
        self.got: list[tuple[dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(receiver.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def deliveries(self) -> list[dict[str, Any]]:
        return [one for _, body in self.got for one in json.loads(body)["deliveries"]]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.server.shutdown()
    one.server.server_close()


def until(is_true: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.02)


def settings(attempts: int) -> dict[str, Any]:
    return {
        "allow": ["127.0.0.0/8"],
        "attempts": attempts,
        "first_wait": "PT0.02S",
        "timeout": "PT5S",
    }


def test_deliveries_are_posted_signed_and_again_until_they_are_taken(
    folder: Path, receiver: Receiver
) -> None:
    receiver.status = 500
    with Server(folder, index="scan", webhooks=settings(50)) as server, server.http() as http:
        http.put("/v1/subscriptions/s", json={"expression": "x > 0", "client": "hook"})
        made = http.put("/v1/webhooks/hook", json={"url": receiver.url})
        assert made.status_code == 201
        secret = made.json()["secret"]
        http.post("/v1/events", json=[{"id": "a", "x": 1}, {"id": "b", "x": 2}])
        until(lambda: len(receiver.got) >= 2)
        receiver.status = 204
        until(lambda: not http.get("/v1/deliveries?client=hook").json()["deliveries"])
        headers, body = receiver.got[-1]
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(secret.removeprefix("whsec_"))
        wanted = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{wanted}"
        assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1, "known again"
        assert [one["event"]["id"] for one in json.loads(body)["deliveries"]] == ["a", "b"]
        assert http.get("/v1/webhooks").json()["webhooks"] == [
            {"client": "hook", "url": receiver.url}
        ]
        server.kill()
        server.start()
        with server.http() as again:
            again.post("/v1/events", json={"id": "c", "x": 3})
            until(lambda: any(one["event"]["id"] == "c" for one in receiver.deliveries()))
            assert again.delete("/v1/webhooks/hook").status_code == 204
            assert again.delete("/v1/webhooks/hook").status_code == 404


def test_what_is_never_taken_is_a_dead_letter_that_can_be_sent_again(
    folder: Path, receiver: Receiver
) -> None:
    receiver.status = 400
    with Server(folder, index="scan", webhooks=settings(2)) as server, server.http() as http:
        http.put("/v1/subscriptions/s", json={"expression": "x > 0"})
        http.put("/v1/webhooks/default", json={"url": receiver.url})
        http.post("/v1/events", json={"id": "a", "x": 1})
        until(lambda: http.get("/v1/dead-letters").json()["dead_letters"])
        [dead] = http.get("/v1/dead-letters").json()["dead_letters"]
        assert (dead["reason"], dead["deliveries"][0]["event"]["id"]) == ("status 400", "a")
        left = http.post("/v1/webhooks/default/send-again").json()
        assert left == {"taken": 0, "left": 1}
        receiver.status = 200
        assert http.post("/v1/webhooks/default/send-again").json() == {"taken": 1, "left": 0}
        assert http.get("/v1/dead-letters").json()["dead_letters"] == []


def test_dead_letters_are_bounded_and_can_be_forgotten(folder: Path, receiver: Receiver) -> None:
    receiver.status = 400
    told = {**settings(1), "dead_letters": 2}
    with Server(folder, index="scan", webhooks=told) as server, server.http() as http:
        http.put("/v1/subscriptions/s", json={"expression": "x > 0"})
        http.put("/v1/webhooks/default", json={"url": receiver.url})
        for n in range(1, 5):
            http.post("/v1/events", json={"id": f"e{n}", "x": n})
            until(lambda n=n: len(receiver.got) == n)

        def kept() -> list[str]:
            letters = http.get("/v1/dead-letters").json()["dead_letters"]
            return [one["deliveries"][0]["event"]["id"] for one in letters]

        until(lambda: kept() == ["e3", "e4"])
        assert http.delete("/v1/dead-letters").status_code == 204
        assert kept() == []


@pytest.mark.parametrize(
    ("allow", "url"),
    [
        ([], "https://192.0.43.8/"),
        (["*"], "http://127.0.0.1:9/"),
        (["*"], "https://127.0.0.1/"),
        (["*"], "https://[::1]/"),
        (["*"], "https://[::ffff:10.0.0.1]/"),
        (["*"], "https://169.254.169.254/latest/meta-data"),
        (["*"], "https://10.1.2.3/"),
        (["*"], "http://192.0.43.8/"),
        (["*"], "file:///etc/passwd"),
        (["*"], "https://user@192.0.43.8/"),
        (["10.0.0.0/8"], "https://192.168.0.1/"),
        (["hooks.example.org"], "https://192.0.43.8/"),
        (["*"], "https://192.0.43.8/a\r\nHost: x"),
        (["*"], "https://192.0.43.8:99999/"),
    ],
)
def test_nothing_is_sent_to_other_addresses(allow: list[str], url: str) -> None:
    with pytest.raises(RefusedError, match="no webhook is sent there"):
        asyncio.run(AllowedAddresses(allow).target(url))


def test_named_networks_and_public_hosts_are_allowed() -> None:
    target = asyncio.run(AllowedAddresses(["127.0.0.0/8"]).target("http://127.0.0.1:81/a?b=c"))
    assert (target.address, target.port, target.path) == ("127.0.0.1", 81, "/a?b=c")
    public = asyncio.run(AllowedAddresses(["192.0.43.*"]).target("https://192.0.43.8/"))
    assert public.is_encrypted
