"""Kills the driver or a Python worker of `stream_history`, and starts it again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from stentor.pipeline.commit.failpoints import FAILPOINTS
from tests.programs.afternoons import (
    Json,
    Tables,
    afternoon,
    batches_of,
    expected_tables,
    fits_columns,
    in_any_batches,
    write_parquet,
)
from tests.programs.stream_history import BEGUN, DONE

PROGRAM = "tests.programs.stream_history"
BATCHES = 14
#: A run that takes longer hangs.
MOST_SECONDS = 300


@dataclass(frozen=True)
class Kill:
    """When a driver dies: at a failpoint, or so many seconds after its stream has begun.

    With neither it lives; *worker_after* so many seconds one of its Python workers dies.
    """

    at: str = ""
    after: float | None = None
    worker_after: float | None = None

    @classmethod
    def drawn(cls, random: Random) -> "Kill":
        """Any of them."""
        kind = random.random()
        if kind < 0.5:
            return cls(at=f"{random.choice(FAILPOINTS)}:{random.choice([1, 1, 1, 2, 3])}")
        after = random.uniform(0, 8)
        return cls(after=after) if kind < 0.8 else cls(worker_after=after)


class Ended(NamedTuple):
    """How a run ended: whether all was read by then, and how many processes were killed."""

    is_done: bool
    kills: int


class History:
    """An afternoon in files, on its way through a pipeline that is killed now and then."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._batches = _batches(seed)
        write_parquet(folder / "in", self._batches)

    @property
    def path(self) -> Path:
        """The folder of the pipeline."""
        return self._folder / "out"

    def expected(self) -> Tables:
        """What the tables are to say when all is done."""
        return in_any_batches(expected_tables(self._batches))

    def run(self, kill: Kill) -> Ended:
        """Start the driver and let happen what *kill* says."""
        with (
            (self._folder / "errors").open("wb") as errors,
            subprocess.Popen(
                [sys.executable, "-m", PROGRAM, self._folder, "--at", kill.at],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=Path(__file__).parents[2],
                start_new_session=True,  # a group of processes that can be killed as a whole
            ) as driver,
        ):
            try:
                return self._watch(driver, kill)
            finally:
                # Java would notice by itself, but only after a while.
                os.killpg(driver.pid, signal.SIGKILL)

    def _watch(self, driver: subprocess.Popen[str], kill: Kill) -> Ended:
        assert driver.stdout is not None
        workers = 0
        if driver.stdout.readline().strip() == BEGUN:
            if kill.after is not None:
                _wait(driver, kill.after)
                os.killpg(driver.pid, signal.SIGKILL)
            if kill.worker_after is not None:
                _wait(driver, kill.worker_after)
                workers = _kill_a_worker(driver)
        code = driver.wait(MOST_SECONDS)
        if code == -signal.SIGKILL:
            return Ended(is_done=False, kills=1 + workers)
        assert code == 0, (kill, (self._folder / "errors").read_text()[-10_000:])
        assert driver.stdout.read().endswith(f"{DONE}\n")
        return Ended(is_done=True, kills=workers)


def _batches(seed: int) -> list[list[Json]]:
    records = [record for record in afternoon(seed) if fits_columns(record)]
    return batches_of(records, BATCHES)


def _wait(driver: subprocess.Popen[str], seconds: float) -> None:
    """Let *seconds* pass, or *driver* come to its end."""
    stop = time.monotonic() + seconds
    while time.monotonic() < stop and driver.poll() is None:
        time.sleep(0.02)


def _kill_a_worker(driver: subprocess.Popen[str]) -> int:
    """Kill a Python worker of *driver* as soon as there is one; how many: none if it ends first."""
    while driver.poll() is None:
        for worker in _workers(driver.pid):
            os.kill(worker, signal.SIGKILL)
            return 1
        time.sleep(0.05)
    return 0


def _workers(driver: int) -> Iterator[int]:
    """The processes that a Python daemon below the process *driver* has forked."""
    listed = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,command="], capture_output=True, text=True, check=True
    )
    processes = [line.split(None, 2) for line in listed.stdout.splitlines()]
    below, daemons = {driver}, set[int]()
    for _ in range(4):  # driver, Java, daemon, worker
        for pid, parent, command in processes:
            if int(parent) in daemons:
                yield int(pid)
            elif int(parent) in below:
                below.add(int(pid))
                if ".daemon" in command:  # Spark's own, or the one of Stentor
                    daemons.add(int(pid))
