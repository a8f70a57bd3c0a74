"""Brokers of services, linked without sockets: cut, delayed, halved and killed by a seed."""

import random
from collections import deque
from pathlib import Path
from typing import Any

import msgspec

from stentor.service.core import Core
from stentor.service.links.frames import Assembler, LinkRefusedError, pieces
from stentor.service.links.session import LinkSession
from stentor.service.records import Records
from stentor.service.settings import ServeSettings

Delivered = tuple[str, str, str]


class Clock:
    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


class Connection:
    """Two sessions, and what is on its way between them, piece by piece."""

    def __init__(self, overlay: "LinkedBrokers", dialler: str, other: str) -> None:
        self.names = dialler, other
        books = [overlay.cores[name].links for name in self.names]
        self.sessions = (
            LinkSession(books[0], is_dialler=True, credit=overlay.credit),
            LinkSession(books[1], is_dialler=False, credit=overlay.credit),
        )
        self.waiting: tuple[deque[bytes], deque[bytes]] = deque(), deque()  # to each of the two
        self.assemblers = Assembler(), Assembler()
        for side in (0, 1):
            self.put(side, self.sessions[side].begin())

    def put(self, side: int, frames: list[bytes]) -> None:
        for frame in frames:
            self.waiting[1 - side].extend(pieces(frame))

    def deliver(self, side: int) -> None:
        """Hand one piece to *side*."""
        frame = self.assemblers[side].take(self.waiting[side].popleft())
        if frame is not None:
            self.put(side, self.sessions[side].take(frame))

    def look(self) -> None:
        """Let both sides send what waits."""
        for side in (0, 1):
            session = self.sessions[side]
            if session.is_open:
                self.put(side, session.apply())
                self.put(side, session.more())

    @property
    def is_idle(self) -> bool:
        return not any(self.waiting) and all(one.is_open for one in self.sessions)

    def end(self) -> None:
        for one in self.sessions:
            one.end(1000, "cut")


class LinkedBrokers:
    """Cores by name, joined by *links*; every link is dialled by its first."""

    def __init__(
        self,
        folder: Path,
        links: list[tuple[str, str]],
        seeded: random.Random,
        credit: int = 50,
        **settings: Any,
    ) -> None:
        self.folder, self.links, self.seeded, self.credit = folder, links, seeded, credit
        self.settings = settings
        self.clock = Clock()
        self.cores: dict[str, Core] = {}
        self.connections: dict[tuple[str, str], Connection] = {}
        self.refused: dict[tuple[str, str], str] = {}
        for name in dict.fromkeys(one for link in links for one in link):
            self.open(name)

    def open(self, name: str) -> None:
        settings = ServeSettings(
            folder=self.folder / name, index="scan", broker=name, **self.settings
        )
        self.cores[name] = Core(settings, self.clock)

    def close(self) -> None:
        for core in self.cores.values():
            core.close()

    # What happens to them.

    def kill(self, name: str) -> None:
        """Forget a broker as kill -9 does, and start it again from its file."""
        for link in [one for one in self.connections if name in one]:
            self.cut(link)
        self.cores[name].store._database.close()
        self.open(name)

    def cut(self, link: tuple[str, str]) -> None:
        if connection := self.connections.pop(link, None):
            connection.end()

    def connect(self, link: tuple[str, str]) -> None:
        if link not in self.connections:
            self.connections[link] = Connection(self, *link)

    def move(self, link: tuple[str, str]) -> None:
        """Let one piece arrive, on one side or the other."""
        connection = self.connections[link]
        try:
            connection.look()
            if sides := [side for side in (0, 1) if connection.waiting[side]]:
                connection.deliver(self.seeded.choice(sides))
        except LinkRefusedError as refused:
            self.refused[link] = refused.reason
            self.cut(link)

    def step(self) -> None:
        """Let anything happen that a network and a machine can do."""
        link, chance = self.seeded.choice(self.links), self.seeded.random()
        if link not in self.connections:
            self.connect(link)
        elif chance < 0.04:
            self.cut(link)
        elif chance < 0.07:
            self.kill(self.seeded.choice([*self.cores]))
        else:
            for _ in range(self.seeded.randint(1, 4)):
                if link in self.connections:
                    self.move(link)

    def run_until_idle(self) -> None:
        """Let everything arrive that is on its way."""
        for _ in range(100_000):
            is_idle = True
            for link in self.links:
                if link in self.refused:
                    continue
                self.connect(link)
                connection = self.connections[link]
                connection.look()
                if not connection.is_idle:
                    is_idle = False
                    self.move(link)
            if is_idle:
                return
        raise AssertionError("it never comes to rest")

    # What clients do.

    def feed(self, name: str, *records: dict[str, Any]) -> Any:
        answer = self.cores[name].run([Records("a", name, list(records))], {}).answers[0]
        assert answer.errors == [], answer.errors
        return answer

    def delivered(self) -> list[Delivered]:
        """What all clients were given: subscription, event, change; sequences have no holes."""
        found: list[Delivered] = []
        for name, core in self.cores.items():
            rows = core.store.rows_after(("a", name), 0, 100_000)
            given = [one for row in rows for one in msgspec.json.decode(b"[%b]" % row.body)]
            assert [one["seq"] for one in given] == list(range(1, len(given) + 1))
            found += [(one["subscription"], one["event"]["id"], one["change"]) for one in given]
        return found
