"""What the processes of a Spark run use: CPU by language, and memory."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

import psutil

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


def cpu_seconds() -> Cpu:
    """What this process and all below it have spent; whatever is not Java counts as Python.

    With what their children had spent that have ended, where the system tells it: Linux does.
    """
    spent = {True: 0.0, False: 0.0}
    own = psutil.Process()
    for process in [own, *own.children(recursive=True)]:
        with suppress(psutil.Error):  # it has ended since
            times = process.cpu_times()
            ended = times.children_user + times.children_system
            spent[process.name() == _JAVA] += times.user + times.system + ended
    return Cpu(spent[True], spent[False])


def spark_workers() -> list[int]:
    """The Python processes that Spark started for this one: a daemon, and its workers."""
    return [
        worker.pid
        for java in psutil.Process().children(recursive=True)
        if java.name() == _JAVA
        for worker in java.children(recursive=True)
        if worker.name() != _JAVA and worker.status() != psutil.STATUS_ZOMBIE
    ]


def proportional_bytes(processes: Iterable[int]) -> int | None:
    """The memory of *processes* together; what several share is shared out among them.

    None where the system does not tell what is shared: Linux does.
    """
    total = 0
    for pid in processes:
        with suppress(psutil.NoSuchProcess):  # it has ended since
            total += getattr(psutil.Process(pid).memory_full_info(), "pss", 0)
    return total or None
