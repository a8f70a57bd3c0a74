"""One rule for what an event may hold: every door, and every client, in JSON and MessagePack."""

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.errors import RecordError
from stentor.service.json_values import as_json_has_it, check_shape, pack
from tests.service.test_sockets import Wire, subscribe
from tests.support.servers import Server

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.sampled_from([10**20, 2**64, 2**64 - 1, -(2**63), -(2**63) - 1, 2**1023])
    | st.floats()
    | st.text()
    | st.binary()
    | st.datetimes(timezones=st.just(UTC)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(fields=st.dictionaries(st.text(), VALUES, max_size=4))
def test_what_is_taken_can_be_written_for_every_client(fields: dict[str, Any]) -> None:
    try:
        taken = as_json_has_it(fields)
    except RecordError:
        return
    read = msgspec.json.decode(msgspec.json.encode(taken))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(read)) == read
    assert msgspec.json.decode(msgspec.json.encode(fields)) == read, "nothing else is changed"


@given(value=VALUES)
def test_any_row_that_an_older_store_has_is_packed(value: Any) -> None:
    row = msgspec.json.decode(msgspec.json.encode({"event": value}))
    assert msgspec.msgpack.decode(pack(row)).keys() == {"event"}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (math.inf, "n: inf is no number that JSON has; leave it out"),
        (math.nan, "n: nan is no number that JSON has; leave it out"),
        ([[1, -math.inf]], "n: -inf is no number that JSON has; leave it out"),
        ({"m": b"x"}, "n.m: expected what JSON has, got bytes; send a text or a number"),
        (msgspec.msgpack.Ext(5, b"x"), "n: expected what JSON has, got a type of MessagePack; "),
        (10**20 + 1, "n: 100000000000000000001 is an integer that a double cannot hold; "),
        (10**400, "n: this is an integer that a double cannot hold; "),
    ],
)
def test_what_json_cannot_say_is_refused(value: Any, said: str) -> None:
    with pytest.raises(RecordError) as raised:
        as_json_has_it({"id": "e", "n": value})
    assert str(raised.value).startswith(said)


def test_both_forms_of_a_connection_are_told_the_same(server: Server) -> None:
    def refusals(form: str, events: list[Any]) -> list[tuple[int, str]]:
        with Wire(server, f"rule-{form}", form) as wire:
            wire.send({"op": "publish", "events": events})
            answer = wire.receive_a("answer")
            return [(one["index"], one["error"]["message"]) for one in answer["rejected"]]

    odd = [{"n": math.inf}, {"n": b"x"}, {"n": 1}, {"n": msgspec.msgpack.Ext(1, b"")}]
    assert [index for index, _ in refusals("msgpack", odd)] == [0, 1, 3]
    large = [{"n": 10**20}, {"n": 10**20 + 1}, {"n": [1, 10**30 + 1]}]
    assert [index for index, _ in refusals("json", large)] == [1, 2]


def test_an_integer_beyond_64_bits_stops_no_feed(server: Server, http: httpx.Client) -> None:
    with Wire(server, "large", "msgpack") as packed, Wire(server, "large-json") as plain:
        for wire, name in ((packed, "large"), (plain, "large-json")):
            wire.send(subscribe(name, "large = 'p'"))
            wire.receive_a("answer")
        packed.send({"op": "watch", "events": True})
        bodies = [
            b'{"id":"A","large":"p"}',
            b'{"id":"B","large":"p","size":100000000000000000000,"list":{"a":1e20}}',
            b'{"id":"C","large":"p"}',
        ]
        for body in bodies:
            headers = {"content-type": "application/json"}
            assert http.post("/v1/events", content=body, headers=headers).status_code == 200
        for wire in (packed, plain):
            found = [one["event"] for one in wire.deliveries(3)]
            assert [one["id"] for one in found] == ["A", "B", "C"]
            assert found[1]["size"] == 10**20


def test_a_row_that_an_older_version_has_kept_stops_no_feed(folder: Path) -> None:
    import sqlite3

    with Server(folder, index="scan") as server:
        with server.http() as http:
            http.put("/v1/subscriptions/s", json={"expression": "x > 0", "client": "c"})
            http.post("/v1/events", json=[{"id": "e", "x": 1}])
        server.stop()
        with sqlite3.connect(folder / "service.db") as file:
            file.execute(
                "UPDATE outbox SET body = CAST(replace(body, '\"x\":1', '\"x\":1' || ?) AS BLOB)",
                ("0" * 20,),
            )
        file.close()
        server.start()
        with Wire(server, "c", "msgpack") as wire:
            assert [one["event"]["x"] for one in wire.deliveries(1)] == [1e20]


def test_a_timestamp_of_messagepack_is_a_time(server: Server) -> None:
    with Wire(server, "stamp", "msgpack") as wire:
        wire.send(subscribe("stamp", "stamp > TIMESTAMP '2026-01-01'"))
        wire.send({"op": "publish", "events": [{"stamp": datetime(2026, 5, 1, tzinfo=UTC)}]})
        [one] = wire.deliveries(1)
        assert one["event"]["stamp"] == "2026-05-01T00:00:00Z"


def test_a_shape_that_json_cannot_have_is_refused() -> None:
    deep: Any = 1
    for _ in range(64):
        deep = {"a": deep}
    assert check_shape(deep) is deep
    with pytest.raises(RecordError, match="nested more than 64 deep"):
        check_shape([deep])
    with pytest.raises(RecordError, match="keys of an object are texts"):
        check_shape({"a": [{1: 2}]})
