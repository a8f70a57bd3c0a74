"""Queues that are full, by policy; clients that are forgotten."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.service.core import Core
from stentor.service.records import Records, RecordsAnswer
from stentor.service.settings import QueueSettings, ServeSettings
from tests.service.test_sockets import Wire, subscribe
from tests.support.servers import Server

KEY = "a", "c"


class Clock:
    seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


def core_of(folder: Path, clock: Clock | None = None, **queue: Any) -> Core:
    settings = ServeSettings(folder=folder, index="scan", queue=QueueSettings(**queue))
    return Core(settings, clock or Clock())


def run(core: Core, *records: dict[str, Any], owner: str = "a") -> RecordsAnswer:
    return core.run([Records(owner, "c", list(records))], {}).answers[0]


def wants(id: str, expression: str = "x > 0", **fields: Any) -> dict[str, Any]:
    return {"op": "subscribe", "id": id, "expression": expression, **fields}


def event(id: str, **fields: Any) -> dict[str, Any]:
    return {"op": "publish", "id": id, "x": 1, **fields}


def given_to(core: Core, key: tuple[str, str] = KEY) -> list[str]:
    rows = core.store.rows_after(key, 0, 10_000)
    return [one["event"]["id"] for row in rows for one in msgspec.json.decode(b"[%b]" % row.body)]


def test_a_batch_that_does_not_fit_is_cut_and_nothing_is_dropped(tmp_path: Path) -> None:
    core = core_of(tmp_path, deliveries=5, policy="hold")
    run(core, wants("s"), *(event(f"a{n}") for n in range(3)))
    answer = run(core, *(event(f"b{n}") for n in range(10)))
    assert answer.accepted == 2
    assert [position for position, _ in answer.errors] == [*range(2, 10)]
    assert {str(error) for _, error in answer.errors} == {
        "a queue behind it is full, and senders are held"
    }
    assert given_to(core) == ["a0", "a1", "a2", "b0", "b1"]
    assert core.store.queues[KEY].gap(0) is None
    core.close()


@given(data=st.data())
def test_what_is_accepted_under_hold_is_delivered(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Batches, acknowledgements and subscriptions in any order: no gap, and a soft bound."""
    core = core_of(tmp_path_factory.mktemp("hold"), deliveries=6, bytes=9_000, policy="hold")
    accepted, acknowledged, most = [], 0, 0
    for step in range(data.draw(st.integers(1, 8))):
        ids = data.draw(st.lists(st.sampled_from("stu"), unique=True))
        run(core, *(wants(id) for id in ids))
        size = data.draw(st.sampled_from([1, 3_000]))
        batch = [event(f"{step}-{n}", text="x" * size) for n in range(data.draw(st.integers(0, 9)))]
        answer = run(core, *batch)
        refused = {position for position, _ in answer.errors}
        wanted = len(core.store.owned.get("a", ()))
        accepted += [
            one["id"] for n, one in enumerate(batch) if n not in refused for _ in range(wanted)
        ]
        if queue := core.store.queues.get(KEY):
            most = max(most, queue.queued)
            assert queue.dropped == 0
            assert given_to(core) == accepted[acknowledged:]
            acknowledged = data.draw(st.integers(acknowledged, queue.last))
            core.run([], {KEY: acknowledged})
            rows = core.store.rows_after(KEY, 0, 10_000)
            assert not rows or rows[0].first <= acknowledged + 1
            acknowledged = rows[0].first - 1 if rows else acknowledged
    assert most <= 6 + 2, "one event may bring more than there is room for"
    core.close()


def test_nobody_is_held_by_a_client_that_no_subscription_leads_to(tmp_path: Path) -> None:
    core = core_of(tmp_path, deliveries=2, policy="hold")
    run(core, wants("s"), event("e1"), event("e2"))
    assert run(core, event("e3")).accepted == 0
    assert run(core, event("e3"), owner="b").accepted == 1, "another owner's events never reach it"
    run(core, {"op": "unsubscribe", "id": "s"})
    assert run(core, event("e3")).accepted == 1
    assert given_to(core) == ["e1", "e2"], "what was delivered is still there"
    core.reopen()
    assert run(core, event("e4")).accepted == 1
    core.close()


def test_a_client_that_is_removed_goes_with_all_it_has(tmp_path: Path) -> None:
    core = core_of(tmp_path, deliveries=2, policy="hold")
    run(core, wants("s"), wants("other", client="d"), event("e1"), event("e2"))
    run(core, wants("s"), owner="b")
    assert not core.remove_client(("b", "d"))
    assert core.remove_client(KEY)
    assert not core.remove_client(KEY)
    assert list(core.store.owned["a"]) == ["other"]
    assert list(core.store.owned["b"]) == ["s"]
    core.run([], {("a", "d"): 2})
    core.reopen()
    assert run(core, wants("s"), event("e3")).accepted == 2
    [row] = core.store.rows_after(KEY, 0)
    assert row.first == 3, "no sequence is given twice: who had two asks for what comes after 2"
    core.close()


def test_a_client_that_nobody_uses_is_forgotten(tmp_path: Path) -> None:
    clock = Clock()
    core = core_of(tmp_path, clock, time_to_live=timedelta(seconds=60))
    run(core, wants("s"), wants("t", client="d"), event("e1"))
    run(core, {"op": "unsubscribe", "id": "s"})
    core.run([], {KEY: 1, ("a", "d"): 1})
    clock.seconds += 50
    core.tick()
    assert KEY in core.store.queues, "it was used less than a minute ago"
    clock.seconds += 11
    core.tick()
    assert list(core.store.queues) == [("a", "d")], "one that has a subscription stays"
    core.reopen()
    assert list(core.store.queues) == [("a", "d")]
    run(core, wants("s"), event("e2"))
    assert [row.first for row in core.store.rows_after(KEY, 0)] == [2]
    core.close()


def test_an_owner_is_let_go_of_a_client_that_was_left_behind(tmp_path: Path) -> None:
    queue = {"deliveries": 3, "policy": "hold"}
    with Server(tmp_path / "held", index="scan", queue=queue) as held, held.http() as http:
        http.put("/v1/subscriptions/s", json={"expression": "x > 0", "client": "gone"})
        events = [{"id": f"e{n}", "x": 1} for n in range(5)]
        answer = http.post("/v1/events", json=events).json()
        assert (answer["accepted"], [one["index"] for one in answer["rejected"]]) == (3, [3, 4])
        assert answer["rejected"][0]["error"]["kind"] == "full"
        page = http.get("/v1/deliveries?client=gone").json()
        assert (page["gap"], [one["event"]["id"] for one in page["deliveries"]]) == (
            None,
            ["e0", "e1", "e2"],
        )
        refused = http.post("/v1/events", json={"x": 1})
        assert (refused.status_code, refused.json()["error"]["kind"]) == (503, "full")
        assert http.delete("/v1/clients/gone").status_code == 204
        assert http.delete("/v1/clients/gone").status_code == 404
        assert http.get("/v1/subscriptions").json()["subscriptions"] == []
        assert http.get("/v1/stats").json()["clients"] == []
        assert http.post("/v1/events", json={"x": 1}).status_code == 200


def test_one_owner_cannot_remove_the_client_of_another(tmp_path: Path) -> None:
    from stentor.service.auth import Keys

    folder = tmp_path / "owners"
    keys = {owner: Keys(folder).add(owner, ["subscribe"]) for owner in ("a", "b")}
    publisher = Keys(folder).add("a", ["publish"])
    with Server(folder, index="scan") as server:
        with server.http(keys["a"]) as http:
            http.put("/v1/subscriptions/s", json={"expression": "x > 0", "client": "c"})
        with server.http(publisher) as http:
            assert http.delete("/v1/clients/c").status_code == 403
        with server.http(keys["b"]) as http:
            assert http.delete("/v1/clients/c").status_code == 404
        with server.http(keys["a"]) as http:
            assert http.get("/v1/subscriptions/s").status_code == 200
            assert http.delete("/v1/clients/c").status_code == 204


def test_a_connected_client_that_was_removed_is_told_what_it_wants_next(tmp_path: Path) -> None:
    with Server(tmp_path / "s", index="scan") as server, server.http() as http:
        with Wire(server, "c") as wire:
            wire.send(subscribe("s", "x > 0"))
            http.post("/v1/events", json=[{"id": f"e{n}", "x": 1} for n in range(3)])
            assert [one["seq"] for one in wire.deliveries(3)] == [1, 2, 3]
            assert http.delete("/v1/clients/c").status_code == 204
            wire.send(subscribe("s", "x > 0"))
            http.post("/v1/events", json={"id": "f", "x": 1})
            assert [(one["seq"], one["event"]["id"]) for one in wire.deliveries(1)] == [(4, "f")]
        page = http.get("/v1/deliveries?client=c&after=3").json()
        assert [one["seq"] for one in page["deliveries"]] == [4]


def test_a_client_above_its_limit_is_disconnected_where_that_is_the_policy(tmp_path: Path) -> None:
    from websockets.exceptions import ConnectionClosed

    queue = {"deliveries": 20, "policy": "disconnect"}
    with Server(tmp_path / "s", index="scan", queue=queue) as server, server.http() as http:
        with Wire(server, "slow") as slow, Wire(server, "keen") as keen:
            for name, wire in (("slow", slow), ("keen", keen)):
                wire.send(subscribe(name, "x > 0"))
                wire.receive_a("answer")
            for n in range(1, 31):
                assert http.post("/v1/events", json={"id": f"e{n}", "x": 1}).status_code == 200
                [one] = keen.deliveries(1)
                assert one["seq"] == n
                keen.send({"op": "ack", "seq": n})
            with pytest.raises(ConnectionClosed) as closed:
                slow.deliveries(31)
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (
                1013,
                "the client's queue is full",
            )
        with Wire(server, "slow") as again:
            gap = again.receive_a("gap")
            assert gap == {"type": "gap", "from": 1, "to": 10, "reason": "dropped"}
            assert [one["seq"] for one in again.deliveries(20)] == [*range(11, 31)]
