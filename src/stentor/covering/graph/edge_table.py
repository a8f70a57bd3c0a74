"""G_k over the arrays of `edges.py`: what its forms for points and for whole expressions share."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from stentor.covering.graph.commands import COUNTERS, new_outcome
from stentor.covering.graph.contract import Counters, RelationGraph
from stentor.covering.graph.edges import FORWARDED, NONE, PASSIVE, new_edges
from stentor.covering.growth import longer
from stentor.encoding.columns import Int64, UInt8
from stentor.errors import SettingsError

#: Entries of `sent` that there is room for at least.
SMALLEST_SENT = 1024


class EdgeTable(RelationGraph):
    """G_k: each subscription keeps up to *k* of those who covered it when it was looked for."""

    def __init__(self, k: int = 1) -> None:
        if k < 1:
            raise SettingsError(f"G_{k} keeps no coverer; take a k of at least 1")
        self.k = k
        self.count = 0
        self.edges = new_edges(k)
        self.outcome = new_outcome(k, SMALLEST_SENT, 0)

    def grow(self, rows: int) -> None:
        """Make room for so many more rows, none of which stands."""
        self.count += rows
        edges, k = self.edges, self.k
        size = len(longer(edges.first, self.count))
        self.edges = edges._replace(
            coverer=longer(edges.coverer, size * k, NONE),
            following=longer(edges.following, size * k, NONE),
            before=longer(edges.before, size * k, NONE),
            first=longer(edges.first, size, NONE),
            covered=longer(edges.covered, size),
            coverers=longer(edges.coverers, size),
            standing=longer(edges.standing, size),
        )
        self.outcome = self.outcome._replace(
            orphans=longer(self.outcome.orphans, size),
            sent=longer(self.outcome.sent, size + SMALLEST_SENT),
        )

    def run(self, commands: Int64) -> Int64:
        sent: list[Int64] = []
        commands = np.ascontiguousarray(commands, np.int64)
        while len(commands) or self._is_waiting():
            done, count = self._run(commands)
            sent.append(self.outcome.sent[:count].copy())
            commands = commands[done:]
        return np.concatenate(sent) if sent else np.zeros(0, np.int64)

    @abstractmethod
    def _run(self, commands: Int64) -> tuple[int, int]:
        """As many of *commands* as there is room for: how many, and how much they sent.

        Where it does not get to the end, it sees to it that it will get further the next time.
        """

    def _is_waiting(self) -> bool:
        """Whether a command that is done has not been settled in full."""
        return False

    @property
    def standing(self) -> UInt8:
        return self.edges.standing[: self.count]

    def coverers(self, row: int) -> list[int]:
        found = self.edges.coverer[row * self.k : (row + 1) * self.k]
        return sorted(found[found != NONE].tolist())

    def covered(self, row: int) -> list[int]:
        found = []
        edge = int(self.edges.first[row])
        while edge != NONE:
            found.append(edge // self.k)
            edge = int(self.edges.following[edge])
        return sorted(found)

    @property
    def counters(self) -> tuple[Counters, Counters]:
        counts = self.outcome.counters.tolist()
        return Counters(*counts[:COUNTERS]), Counters(*counts[COUNTERS:])

    def check(self) -> None:
        super().check()
        edges, rows = self.edges, range(self.count)
        for row in rows:
            coverers, covered = self.coverers(row), self.covered(row)
            assert len(coverers) == edges.coverers[row] <= self.k
            assert len(covered) == edges.covered[row]
            assert edges.standing[row] != FORWARDED or not coverers
            assert edges.standing[row] in (PASSIVE, FORWARDED) or not (coverers or covered)
