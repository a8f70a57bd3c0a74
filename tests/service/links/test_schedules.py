"""Linked brokers in simulation: whatever is cut, delayed, halved or killed, each is told once."""

import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stentor import Engine
from tests.support.linked_brokers import Delivered, LinkedBrokers

#: `make soak` tries 10,000.
SCHEDULES = int(os.environ.get("STENTOR_SCHEDULES", "100"))
TREES = [
    [("a", "b")],
    [("a", "b"), ("c", "b")],
    [("hub", "x"), ("hub", "y"), ("z", "hub")],
    [("a", "b"), ("b", "c"), ("d", "c")],
]


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder whose disk is memory, where there is one: nothing here loses power."""
    shared = Path("/dev/shm")
    where = shared if shared.is_dir() and os.access(shared, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="stentor-links-", dir=where))
    yield folder
    shutil.rmtree(folder)


class OneEngine:
    """What one engine says to the same records."""

    def __init__(self, overlay: LinkedBrokers) -> None:
        self._engine = Engine("scan", clock=overlay.clock)
        self.said: list[Delivered] = []

    def feed(self, record: dict[str, Any]) -> None:
        [answer] = self._engine.step([record])
        assert not isinstance(answer, Exception), answer
        id, op = record["id"], record["op"]
        if op == "publish":
            self.said += [(one, id, "added") for one in answer]
        elif op in ("update", "withdraw"):
            for change in ("entered", "left", "stayed"):
                self.said += [(one, id, change) for one in getattr(answer, change)]
        else:
            for change in ("added", "removed"):
                self.said += [(id, one, change) for one in getattr(answer, change)]


class Schedule:
    """Records at random brokers, and whatever can happen in between, all from *seed*."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.seeded = random.Random(seed)
        tree = self.seeded.choice(TREES)
        credit = self.seeded.choice([3, 50])
        policy = self.seeded.choice(["covering", "covering", "none"])
        self.brokers = LinkedBrokers(folder, tree, self.seeded, credit, policy=policy)
        self.engine = OneEngine(self.brokers)
        self.homes: dict[str, str] = {}
        self.live: dict[str, str] = {}
        self.count = 0

    def feed(self, broker: str, record: dict[str, Any]) -> None:
        self.engine.feed(record)
        self.brokers.feed(broker, record)

    def run(self) -> None:
        self.brokers.run_until_idle()
        for _ in range(self.seeded.randint(2, 4)):
            self._change()
            self.brokers.run_until_idle()
            self._publish()
            self.brokers.run_until_idle()
            given = self.brokers.delivered()
            assert Counter(given) == Counter(self.engine.said)
            for core in self.brokers.cores.values():
                core.broker.check()
                for link in core.broker.links.values():
                    assert link.up
        self.brokers.close()

    def _steps(self) -> None:
        for _ in range(self.seeded.randint(0, 6)):
            self.brokers.step()

    def _change(self) -> None:
        """Change subscriptions, each once: of two changes in flight one engine saw the first."""
        for number in self.seeded.sample(range(6), self.seeded.randint(1, 4)):
            id = f"s{number}"
            at = [self.seeded.randint(0, 2), 0]
            if id not in self.homes or self.seeded.random() < 0.4:
                low = self.seeded.randint(0, 4)
                texts = [f"x >= {low}", f"x >= {low} AND ST_DWithin(loc, here(), 120000)"]
                record = {"op": "subscribe", "expression": self.seeded.choice(texts), "at": at}
                self.homes.setdefault(id, self.seeded.choice([*self.brokers.cores]))
            elif self.seeded.random() < 0.6:
                record = {"op": "move", "at": at}
            else:
                record = {"op": "unsubscribe"}
            self.feed(self.homes[id], {"id": id, **record})
            if record["op"] == "unsubscribe":
                del self.homes[id]
            self._steps()

    def _publish(self) -> None:
        """Publish, update and withdraw; some events end while they are on their way."""
        touched: set[str] = set()
        for _ in range(self.seeded.randint(2, 8)):
            content = {"x": self.seeded.randint(0, 4), "loc": [self.seeded.randint(0, 2), 0]}
            choice = self.seeded.random()
            known = [id for id in self.live if id not in touched]
            if choice < 0.2 and known:
                id = self.seeded.choice(known)
                self.feed(self.live[id], {"op": "update", "id": id, "until": 9e8, **content})
            elif choice < 0.3 and known:
                id = self.seeded.choice(known)
                self.feed(self.live.pop(id), {"op": "withdraw", "id": id})
            else:
                self.count += 1
                id, broker = f"e{self.count}", self.seeded.choice([*self.brokers.cores])
                record = {"op": "publish", "id": id, **content}
                if choice < 0.5:
                    record["until"] = self.brokers.clock.seconds + self.seeded.choice([1, 3])
                elif choice < 0.75:
                    record["until"], self.live[id] = 9e8, broker
                self.feed(broker, record)
            touched.add(id)
            self._steps()
            self.brokers.clock.seconds += self.seeded.choice([0, 0, 1])
        self.brokers.clock.seconds += 5
        for name in self.brokers.cores:
            self.brokers.cores[name].tick()


@pytest.mark.parametrize("start", range(10))
def test_deliveries_equal_one_engines_each_once(memory: Path, start: int) -> None:
    for seed in range(start, SCHEDULES, 10):
        try:
            Schedule(memory / str(seed), seed).run()
        except Exception as error:
            raise AssertionError(f"the schedule of the seed {seed}") from error
        shutil.rmtree(memory / str(seed))
