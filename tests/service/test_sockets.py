"""WebSocket connections of a real server: frames, deliveries, acknowledgements, hostile clients."""

import asyncio
import json
import os
import random
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.support.servers import PATIENCE, Server

#: `make soak` sends 100,000.
FRAMES = int(os.environ.get("STENTOR_FRAMES", "800"))


class Wire:
    """A connection that speaks JSON or MessagePack."""

    def __init__(self, server: Server, client: str, form: str = "json", query: str = "") -> None:
        self._is_binary = form == "msgpack"
        url = server.socket_url(f"client={client}&format={form}{query}")
        self._opened = connect(url, compression=None, proxy=None)
        self.connection: ClientConnection = self._opened.__enter__()
        self.hello = self.receive()

    def send(self, frame: Any) -> None:
        if self._is_binary:
            self.connection.send(msgspec.msgpack.encode(frame))
        else:
            self.connection.send(json.dumps(frame))

    def receive(self, timeout: float = PATIENCE) -> dict[str, Any]:
        data = self.connection.recv(timeout)
        found: dict[str, Any] = (
            msgspec.msgpack.decode(data) if isinstance(data, bytes) else json.loads(data)
        )
        return found

    def receive_a(self, kind: str) -> dict[str, Any]:
        while (frame := self.receive())["type"] != kind:
            pass
        return frame

    def deliveries(self, count: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while len(found) < count:
            found += self.receive_a("deliveries")["deliveries"]
        return found

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.__exit__(None, None, None)


def subscribe(id: str, expression: str) -> dict[str, Any]:
    record = {"op": "subscribe", "id": id, "expression": expression}
    return {"op": "records", "ref": id, "records": [record]}


@pytest.mark.parametrize("form", ["json", "msgpack"])
def test_records_go_in_and_deliveries_come_out(server: Server, form: str) -> None:
    with Wire(server, f"both-{form}", form) as wire:
        assert (wire.hello["type"], wire.hello["last"]) == ("hello", 0)
        wire.send(subscribe(f"both-{form}", f"{form} > 1"))
        answer = wire.receive_a("answer")
        assert (answer["accepted"], answer["results"][0]["created"]) == (1, True)
        events = [{"id": f"{form}-{n}", form: n} for n in range(100)]
        wire.send({"op": "publish", "ref": 7, "events": [*events, {"id": ""}]})
        found = wire.deliveries(98)
        assert [one["seq"] for one in found] == list(range(1, 99))
        assert found[0]["event"] == {"id": f"{form}-2", form: 2}
        assert found[0]["owner"] == "local"


def test_one_frame_may_hold_many_and_answers_come_in_order(server: Server) -> None:
    with Wire(server, "many") as wire:
        wire.send([{"op": "publish", "ref": n, "events": [{"many": n}]} for n in range(100)])
        assert [wire.receive()["ref"] for _ in range(100)] == list(range(100))


def test_who_comes_back_goes_on_after_what_is_acknowledged(server: Server) -> None:
    with Wire(server, "back") as wire:
        wire.send(subscribe("back", "back > 0"))
        wire.send({"op": "publish", "events": [{"id": f"b{n}", "back": n} for n in range(1, 11)]})
        assert len(wire.deliveries(10)) == 10
        wire.send({"op": "ack", "seq": 4})
        wire.send({"op": "ping", "ref": 1})
        wire.receive_a("pong")
    with Wire(server, "back") as wire:
        assert (wire.hello["acknowledged"], wire.hello["last"]) == (4, 10)
        again = wire.deliveries(6)
        assert [(one["seq"], one["event"]["back"]) for one in again] == [
            (n, n) for n in range(5, 11)
        ]


def test_the_newest_connection_of_a_client_has_the_deliveries(server: Server) -> None:
    with Wire(server, "twin") as older, Wire(server, "twin") as newer:
        with pytest.raises(ConnectionClosed) as closed:
            older.receive()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4409
        newer.send({"op": "ping"})
        assert newer.receive()["type"] == "pong"


def test_who_watches_sees_events_changes_and_stats(server: Server) -> None:
    with Wire(server, "watching") as wire:
        wire.send({"op": "watch", "events": True, "subscriptions": True, "stats": 0.2})
        wire.send(subscribe("watched", "watched > 0"))
        wire.send({"op": "publish", "events": [{"id": "w1", "watched": 1}]})
        found: dict[str, Any] = {}
        while not {"events", "subscriptions", "stats", "deliveries"} <= found.keys():
            frame = wire.receive()
            found[frame["type"]] = frame
        assert found["events"]["events"][0]["event"]["id"] == "w1"
        assert found["events"]["events"][0]["matched"] == ["watched"]
        assert found["subscriptions"]["changed"][0]["id"] == "watched"
        assert found["stats"]["events"] > 0


def test_a_gap_is_told(folder: Path) -> None:
    queue = {"deliveries": 10}
    with Server(folder, index="scan", queue=queue) as small, Wire(small, "gap") as wire:
        wire.send(subscribe("gap", "gap > 0"))
        wire.receive_a("answer")
        wire.connection.close()
        with small.http() as http:
            for n in range(1, 31):
                http.post("/v1/events", json={"id": f"g{n}", "gap": n})
        with Wire(small, "gap") as again:
            gap = again.receive()
            assert gap == {"type": "gap", "from": 1, "to": 20, "reason": "dropped"}
            assert [one["seq"] for one in again.deliveries(10)] == list(range(21, 31))


def test_senders_are_held_where_that_is_the_policy(folder: Path) -> None:
    queue = {"deliveries": 5, "policy": "hold"}
    with Server(folder, index="scan", queue=queue) as held, held.http() as http:
        http.put("/v1/subscriptions/s", json={"expression": "held > 0"})
        answers = [http.post("/v1/events", json={"held": n}) for n in range(1, 8)]
        assert [one.status_code for one in answers] == [200] * 5 + [503] * 2
        assert answers[-1].json()["error"]["kind"] == "full"
        http.post("/v1/deliveries/ack", json={"seq": 5})
        assert http.post("/v1/events", json={"held": 9}).status_code == 200


def test_a_client_that_does_not_read_slows_nobody(server: Server) -> None:
    text = "x" * 2_000
    with Wire(server, "deaf") as deaf, Wire(server, "keen") as keen:
        deaf.send(subscribe("deaf", "size > 0"))
        keen.send(subscribe("keen", "size > 0"))
        deaf.receive_a("answer")
        keen.receive_a("answer")
        # The transport's buffers are full long before 8 MB: nobody reads `deaf` any more.
        for start in range(0, 4_000, 100):
            events = [{"id": f"d{start + n}", "size": 1, "text": text} for n in range(100)]
            keen.send({"op": "publish", "events": events})
            assert keen.deliveries(100)[0]["event"]["id"] == f"d{start}"
            keen.send({"op": "ack", "seq": start + 100})
        found = deaf.deliveries(4_000)
        assert [one["seq"] for one in found] == list(range(1, 4_001))


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        ({"op": "nothing"}, "record"),
        ({}, "record"),
        ([7], "record"),
        ({"op": "publish"}, "record"),
        ({"op": "publish", "events": {}}, "record"),
        ({"op": "publish", "events": [], "ref": {}}, "record"),
        ({"op": "ack", "seq": "1"}, "record"),
        ({"op": "ack", "seq": -(2**70)}, "record"),
        ({"op": "records", "records": None}, "record"),
    ],
)
def test_a_frame_that_says_nothing_is_answered(server: Server, frame: Any, kind: str) -> None:
    with Wire(server, "odd") as wire:
        wire.send(frame)
        assert wire.receive()["error"]["kind"] == kind
        wire.send({"op": "ping"})
        assert wire.receive()["type"] == "pong"


@pytest.mark.parametrize(
    "data",
    [b"\xc1", b"", "{", "[" * 10_000, '{"a": 1, "a": 2}', b"\x81\x01\x02", "\udcff"],
    ids=["reserved", "empty", "open", "deep", "twice", "key", "surrogate"],
)
def test_what_is_no_frame_ends_the_connection(server: Server, data: Any) -> None:
    with Wire(server, "broken") as wire:
        if isinstance(data, str) and "\udcff" in data:
            wire.connection.send(b"\xed\xb3\xbf", text=True)
        else:
            wire.connection.send(data)
        with pytest.raises(ConnectionClosed) as closed:
            wire.receive()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1007


def test_a_frame_that_is_too_large_ends_the_connection(folder: Path) -> None:
    with Server(folder, index="scan", limits={"frame": 1000}) as small, Wire(small, "x") as wire:
        wire.connection.send("x" * 2000)
        with pytest.raises(ConnectionClosed) as closed:
            wire.receive()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


def test_hostile_frames_break_nothing(server: Server, http: httpx.Client) -> None:
    """Random values where an event, a change or a field is expected; each frame is answered."""
    seeded = random.Random(20)
    leaves = [None, True, -1, 2**63, 1e308, "", "x", "ünï", [], {}, [[]], {"a": {}}, "price < 3"]
    fields = ["op", "id", "expression", "at", "until", "client", "time", "price", "attributes"]

    def value(depth: int = 0) -> Any:
        if depth > 2 or seeded.random() < 0.5:
            return seeded.choice(leaves)
        if seeded.random() < 0.5:
            return [value(depth + 1) for _ in range(seeded.randrange(4))]
        return {seeded.choice(fields): value(depth + 1) for _ in range(seeded.randrange(4))}

    def frame(number: int) -> dict[str, Any]:
        ops = ["publish", "records", "subscribe", "move", "unsubscribe", "ack", "watch"]
        records = [
            {"op": seeded.choice(ops), **{name: value() for name in seeded.sample(fields[1:], 4)}}
            for _ in range(5)
        ]
        op = seeded.choice(["publish", "records"])
        return {"op": op, "ref": number, "events" if op == "publish" else op: records}

    for form in ("json", "msgpack"):
        with Wire(server, f"hostile-{form}", form) as wire:
            for start in range(0, FRAMES // 2, 40):
                for number in range(start, start + 40):
                    wire.send(frame(number))
                answered = set()
                while len(answered) < 40:
                    found = wire.receive()
                    if found["type"] in ("answer", "error"):
                        answered.add(found["ref"])
                        told = found.get("rejected", [])
                        assert all(one["error"]["kind"] != "defect" for one in told)
    assert http.get("/ready").status_code == 200


def test_frames_of_random_bytes_end_a_connection_and_nothing_else(
    server: Server, http: httpx.Client
) -> None:
    seeded = random.Random(21)
    sound = msgspec.msgpack.encode({"op": "publish", "ref": 1, "events": [{"id": "e", "x": 1}]})
    for number in range(max(FRAMES // 40, 20)):
        raw = bytearray(sound)
        for _ in range(seeded.randint(1, 6)):
            raw[seeded.randrange(len(raw))] = seeded.randrange(256)
        code: int | None = 0
        with Wire(server, f"bytes-{number % 7}", "msgpack") as wire:
            try:
                wire.connection.send(bytes(raw[: seeded.randint(0, len(raw))]))
                wire.send({"op": "ping", "ref": "after"})
                while wire.receive().get("ref") != "after":
                    pass
            except ConnectionClosed as closed:
                code = None if closed.rcvd is None else closed.rcvd.code
        assert code in (0, 1007, 1013)
    assert http.get("/ready").status_code == 200


def test_many_clients_are_given_their_own(server: Server, http: httpx.Client) -> None:
    import websockets.asyncio.client as aio

    count = 60

    async def one(number: int, is_ready: asyncio.Barrier) -> list[int]:
        url = server.socket_url(f"client=crowd-{number}")
        async with aio.connect(url, compression=None, proxy=None) as connection:
            await connection.recv()
            await connection.send(json.dumps(subscribe(f"crowd-{number}", f"crowd = {number}")))
            await connection.recv()
            await is_ready.wait()
            found: list[int] = []
            while len(found) < 3:
                frame = json.loads(await connection.recv())
                found += [int(each["event"]["crowd"]) for each in frame.get("deliveries", ())]
            return found

    async def all_of_them() -> list[list[int]]:
        is_ready = asyncio.Barrier(count + 1)
        running = [asyncio.ensure_future(one(number, is_ready)) for number in range(count)]
        await is_ready.wait()
        events = [{"crowd": number} for number in range(count)] * 3
        await asyncio.to_thread(http.post, "/v1/events", json=events)
        return await asyncio.wait_for(asyncio.gather(*running), PATIENCE)

    assert asyncio.run(all_of_them()) == [[number] * 3 for number in range(count)]
