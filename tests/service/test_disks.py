"""Disks that are full, and stores that belong to somebody else."""

import random
from pathlib import Path
from typing import Any

import httpx
import pytest

from stentor.errors import StoreError
from stentor.service.core import Core
from stentor.service.records import Records
from stentor.service.settings import ServeSettings
from tests.support.linked_brokers import Clock, LinkedBrokers
from tests.support.servers import Server


def fill(core: Core) -> None:
    """Let SQLite find that there is no room, as on a full disk."""
    [[pages]] = core.store._database.rows("PRAGMA page_count")
    core.store._database.run(f"PRAGMA max_page_count = {pages}")


def events(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {"op": "publish", "id": f"e{n}", "x": 1, "text": "x" * 500} for n in range(first, count)
    ]


def test_what_a_full_disk_could_not_keep_was_never_answered(tmp_path: Path) -> None:
    core = Core(ServeSettings(folder=tmp_path, index="scan"), Clock())
    core.run([Records("a", "c", [{"op": "subscribe", "id": "s", "expression": "x > 0"}])], {})
    fill(core)
    kept, error = 0, ""
    while not error and kept < 10_000:
        try:
            core.run([Records("a", "c", events(kept, kept + 20))], {})
        except StoreError as full:
            error = str(full)
        else:
            kept += 20
    assert "full" in error
    with pytest.raises(StoreError, match="refuses everything"):
        core.run([Records("a", "c", events(kept, kept + 1))], {})
    core.reopen()  # there is room again
    core.run([Records("a", "c", events(kept, kept + 20))], {})
    assert core.store.queues["a", "c"].last == kept + 20, "all that was answered, each once"
    core.close()


def test_a_broker_whose_disk_is_full_gets_from_its_neighbours_later(tmp_path: Path) -> None:
    brokers = LinkedBrokers(tmp_path, [("a", "b")], random.Random(1))
    brokers.run_until_idle()
    brokers.feed("b", {"op": "subscribe", "id": "s", "expression": "x > 0"})
    brokers.run_until_idle()
    fill(brokers.cores["b"])
    for first in range(0, 400, 20):
        brokers.feed("a", *events(first, first + 20))
    with pytest.raises(StoreError):
        brokers.run_until_idle()
    brokers.kill("b")
    brokers.run_until_idle()
    assert sorted(brokers.delivered()) == sorted(("s", f"e{n}", "added") for n in range(400))
    brokers.close()


def test_two_servers_cannot_have_one_store(tmp_path: Path) -> None:
    with Server(tmp_path / "service", index="scan") as server:
        with pytest.raises(EOFError):  # it has ended, and says why
            Server(tmp_path / "service", index="scan")
        with server.http() as http:
            assert http.get("/ready").status_code == 200
            answer: httpx.Response = http.post("/v1/events", json={"id": "e", "x": 1})
            assert answer.status_code == 200
