"""Broker and outbox without sockets: what a service answers is what one engine answers."""

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stentor import Engine
from stentor.errors import StoreError
from stentor.service.core import Core
from stentor.service.records import Records
from stentor.service.settings import QueueSettings, ServeSettings


class Clock:
    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


def core_of(folder: Path, clock: Clock, **settings: Any) -> Core:
    return Core(ServeSettings(folder=folder, index="scan", **settings), clock)


def queued(core: Core, owner: str, client: str, after: int = 0) -> list[dict[str, Any]]:
    rows = core.store.rows_after((owner, client), after, 10_000)
    return [one for row in rows for one in msgspec.json.decode(b"[%b]" % row.body)]


@pytest.mark.parametrize("seed", range(6))
def test_a_service_gives_what_one_engine_gives(tmp_path: Path, seed: int) -> None:
    """Records of two owners, cut into batches anyhow, with restarts in between."""
    seeded, clock = random.Random(seed), Clock()
    core = core_of(tmp_path, clock)
    engines = {owner: Engine("scan", clock=clock) for owner in ("a", "b")}
    wanted: dict[str, list[tuple[str, str, str]]] = {"a": [], "b": []}
    number = 0
    for _ in range(12):
        clock.seconds += seeded.choice([0, 1, 5])
        commands = []
        for _ in range(seeded.randint(1, 4)):
            owner = seeded.choice("ab")
            records: list[dict[str, Any]] = []
            for _ in range(seeded.randint(1, 5)):
                number += 1
                id = f"s{seeded.randint(0, 3)}"
                kinds = ["publish", "publish", "update", "withdraw", "subscribe", "move"]
                kind = seeded.choice([*kinds, "unsubscribe"])
                record: dict[str, Any] = {"op": kind, "id": id}
                if kind == "withdraw":
                    record["id"] = f"e{seeded.randint(0, 5)}"
                elif kind in ("publish", "update"):
                    until = clock.seconds + seeded.randint(1, 9)
                    record |= {"id": f"e{seeded.randint(0, 5)}", "x": seeded.randint(0, 4)}
                    record |= {"loc": [seeded.randint(0, 2), 0]}
                    record |= {"until": until} if seeded.random() < 0.5 else {}
                elif kind == "subscribe":
                    text = f"x >= {seeded.randint(0, 4)} AND ST_DWithin(loc, here(), 120000)"
                    record |= {"expression": text, "at": [seeded.randint(0, 2), 0]}
                elif kind == "move":
                    record |= {"at": [seeded.randint(0, 2), 0]}
                records.append(record)
            commands.append(Records(owner, "c", records))
            for record in records:
                [answer] = engines[owner].step([record])
                if isinstance(answer, Exception):
                    continue
                if record["op"] == "publish":
                    wanted[owner] += [(id, record["id"], "added") for id in answer]
                elif record["op"] in ("update", "withdraw"):
                    for change in ("entered", "left", "stayed"):
                        ids = getattr(answer, change)
                        wanted[owner] += [(id, record["id"], change) for id in ids]
                else:
                    for change in ("added", "removed"):
                        events = getattr(answer, change)
                        wanted[owner] += [(record["id"], event, change) for event in events]
        core.run(commands, {})
        if seeded.random() < 0.3:
            core.reopen()
    for owner, told in wanted.items():
        found = queued(core, owner, "c")
        assert [one["seq"] for one in found] == list(range(1, len(found) + 1))
        given = [(one["subscription"], one["event"]["id"], one["change"]) for one in found]
        assert sorted(given) == sorted(told)
    core.close()


def test_a_delivery_goes_to_the_client_that_a_subscription_had(tmp_path: Path) -> None:
    core = core_of(tmp_path, Clock())

    def subscribe(client: str) -> dict[str, Any]:
        return {"op": "subscribe", "id": "s", "expression": "x > 0", "client": client}

    event = {"op": "publish", "x": 1}
    records = [subscribe("one"), event, subscribe("two"), event]
    records += [{"op": "unsubscribe", "id": "s"}, event, subscribe("default"), event]
    answer = core.run([Records("a", "default", records)], {}).answers[0]
    assert answer.errors == []
    counts = [len(queued(core, "a", client)) for client in ("one", "two", "default")]
    assert counts == [1, 1, 1]
    core.close()


def test_an_event_that_is_updated_and_withdrawn_enters_stays_and_leaves(tmp_path: Path) -> None:
    core = core_of(tmp_path, Clock())
    low = {"op": "subscribe", "id": "low", "expression": "x < 5"}
    high = {"op": "subscribe", "id": "high", "expression": "x > 2"}
    records = [low, high, {"op": "publish", "id": "e", "x": 1, "until": 2_000_000}]
    records += [{"op": "update", "id": "e", "x": x} for x in (3, 7)]
    records += [{"op": "withdraw", "id": "e"}, {"op": "withdraw", "id": "e"}]
    answer = core.run([Records("a", "c", records), Records("b", "c", [records[-1]])], {}).answers[0]
    assert [str(error) for _, error in answer.errors] == ["no live event has the id 'e'"]
    assert answer.results[3:] == [
        {"id": "e", "entered": ["high"], "left": [], "stayed": ["low"]},
        {"id": "e", "entered": [], "left": ["low"], "stayed": ["high"]},
        {"id": "e", "entered": [], "left": ["high"], "stayed": []},
    ]
    found = queued(core, "a", "c")
    assert [(one["subscription"], one["change"], one["event"]["x"]) for one in found] == [
        ("low", "added", 1),
        ("high", "entered", 3),
        ("low", "stayed", 3),
        ("low", "left", 7),
        ("high", "stayed", 7),
        ("high", "left", 7),
    ]
    assert "until" not in found[-1]["event"], "it had no end"
    core.close()


def test_what_is_acknowledged_is_gone_and_what_is_too_old_is_told(tmp_path: Path) -> None:
    clock = Clock()
    queue = QueueSettings(time_to_live=timedelta(seconds=60))
    core = core_of(tmp_path, clock, queue=queue)
    subscription = {"op": "subscribe", "id": "s", "expression": "x > 0"}
    core.run([Records("a", "c", [subscription])], {})
    for n in range(6):
        core.run([Records("a", "c", [{"op": "publish", "id": f"e{n}", "x": 1}])], {})
        clock.seconds += 10
    key = ("a", "c")
    core.run([], {key: 2})
    assert [one["seq"] for one in queued(core, *key)] == [3, 4, 5, 6]
    core.run([], {key: 99})
    assert (core.store.queues[key].acknowledged, queued(core, *key)) == (6, [])
    core.run([Records("a", "c", [{"op": "publish", "id": f"f{n}", "x": 1} for n in (1, 2)])], {})
    clock.seconds += 61
    core.tick()
    assert queued(core, *key) == []
    core.reopen()
    gap = core.store.queues[key].gap(6)
    assert gap is not None
    assert gap.to_dict() == {"from": 7, "to": 8, "reason": "expired"}
    core.run([Records("a", "c", [{"op": "publish", "id": "g", "x": 1}])], {})
    assert [one["seq"] for one in queued(core, *key)] == [9], "no sequence is given twice"
    core.close()


def test_events_may_be_shared_by_all_owners(tmp_path: Path) -> None:
    core = core_of(tmp_path, Clock(), shared_events=True)
    core.run([Records("a", "c", [{"op": "subscribe", "id": "s", "expression": "x > 0"}])], {})
    core.run([Records("b", "c", [{"op": "publish", "id": "e", "x": 1}])], {})
    assert [one["event"]["id"] for one in queued(core, "a", "c")] == ["e"]
    core.close()


def test_a_store_that_fails_refuses_and_goes_on_when_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = core_of(tmp_path, Clock())
    core.run([Records("a", "c", [{"op": "subscribe", "id": "s", "expression": "x > 0"}])], {})
    with monkeypatch.context() as broken:

        def fail(*_: Any) -> None:
            raise StoreError("database or disk is full")

        broken.setattr(core.store, "_put", fail)
        with pytest.raises(StoreError):
            core.run([Records("a", "c", [{"op": "publish", "id": "e", "x": 1}])], {})
        with pytest.raises(StoreError):
            core.run([Records("a", "c", [{"op": "publish", "id": "f", "x": 1}])], {})
    core.reopen()
    core.run([Records("a", "c", [{"op": "publish", "id": "g", "x": 1}])], {})
    assert [one["event"]["id"] for one in queued(core, "a", "c")] == ["g"]
    core.close()
