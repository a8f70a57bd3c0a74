"""Servers of benchmarks, in processes of their own, and what they cost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stentor.errors import StentorError


@contextmanager
def served(folder: Path, file: Path | None = None) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A `stentor serve` on a free port, told by *file* if there is one: its address, and it."""
    told = ["--port", "0", "--folder", str(folder)] if file is None else [str(file)]
    command = [sys.executable, "-m", "stentor", "serve", *told]
    environment = {**os.environ, "STENTOR_QUIET": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            ready = process.stdout.readline().split()
            if len(ready) < 4:
                raise StentorError("the server of the benchmark did not start")
            yield ready[3], process
        finally:
            process.terminate()


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has had."""
    import psutil

    spent = psutil.Process(pid).cpu_times()
    return float(spent.user + spent.system)


def memory_of(pid: int) -> float:
    """Megabytes that a process has."""
    import psutil

    return float(psutil.Process(pid).memory_info().rss / 1e6)
