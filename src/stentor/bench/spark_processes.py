"""What the processes of a Spark run use: CPU by language, and memory, as Linux tells it in /proc.

Elsewhere there is nothing to tell, and every answer is None.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_PROCESSES = Path("/proc")
_JAVA = "java"


class Cpu(NamedTuple):
    """Seconds on a core, of this process and all below it."""

    java: float
    python: float

    @property
    def total(self) -> float:
        """Of both languages."""
        return self.java + self.python

    def __sub__(self, other: Cpu) -> Cpu:
        return Cpu(self.java - other.java, self.python - other.python)


def cpu_seconds() -> Cpu | None:
    """What this process and all below it have spent; whatever is not Java counts as Python."""
    spent = {True: 0.0, False: 0.0}
    known = False
    for process in _below(os.getpid()):
        spent[process.name == _JAVA] += process.seconds
        known = True
    return Cpu(spent[True], spent[False]) if known else None


def spark_workers() -> list[int]:
    """The Python processes that Spark started for this one: a daemon, and its workers."""
    return [
        worker.pid
        for java in _below(os.getpid())
        if java.name == _JAVA
        for worker in _below(java.pid)
        if worker.name != _JAVA and not worker.has_ended
    ]


def proportional_bytes(processes: Iterable[int]) -> int | None:
    """The memory of *processes* together; what several share is shared out among them."""
    total = 0
    for pid in processes:
        try:
            lines = (_PROCESSES / str(pid) / "smaps_rollup").read_text().splitlines()
        except ProcessLookupError:  # it has ended since
            continue
        except OSError:
            return None
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total * 1024 or None


class _Process(NamedTuple):
    pid: int
    parent: int
    name: str
    seconds: float  # with those of children that have ended
    has_ended: bool  # and nobody has asked how


def _below(pid: int) -> Iterator[_Process]:
    """The process *pid* and all its descendants."""
    processes = {process.pid: process for process in _all()}
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        if one in processes:
            yield processes[one]
        waiting += children.get(one, [])


def _all() -> Iterator[_Process]:
    if not (_PROCESSES / "self" / "stat").exists():
        return
    tick = 1.0 / os.sysconf("SC_CLK_TCK")
    for folder in _PROCESSES.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            line = (folder / "stat").read_text()
        except OSError:  # it has ended since
            continue
        # A name may hold anything, so what follows it is found from the end: proc(5).
        before, after = line.rsplit(")", 1)
        fields = after.split()
        seconds = sum(int(ticks) for ticks in fields[11:15]) * tick
        yield _Process(
            int(folder.name), int(fields[1]), before.split("(", 1)[1], seconds, fields[0] == "Z"
        )
