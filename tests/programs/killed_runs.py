"""Runs that are killed at failpoints and started again until they are done.

A program that serves them reads lines from its input, each a folder and failpoints to be killed
at, one run after the other (`/tmp/x manifest-linked unused-removed:2`), and then runs to the end
in that folder. It writes for each line which of the runs were killed. Each run is a fork, so that
the imports are paid once.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from stentor.pipeline.commit import failpoints

Run = Callable[[Any], None]


def serve(run: Run) -> None:
    """Take lines from the input until it ends."""
    for line in sys.stdin:
        folder, *points = line.split()
        place = folder if "://" in folder else Path(folder)
        killed = [_forked(run, place, point) for point in [*points, ""]]
        print(json.dumps(killed), flush=True)


def killed_runs(
    program: str, runs: Iterable[tuple[Path | str, tuple[str, ...]]]
) -> list[list[bool]]:
    """Have *program* do *runs*, each in a folder with its failpoints; which of them were killed."""
    lines = [" ".join([str(path), *points]) for path, points in runs]
    done = subprocess.run(
        [sys.executable, "-m", program],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert not done.returncode, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _forked(run: Run, path: Path | str, failpoint: str) -> bool:
    """Run in a child process; whether it was killed."""
    child = os.fork()
    if not child:
        os.environ["STENTOR_FAILPOINT"] = failpoint
        importlib.reload(failpoints)
        os.fsync = lambda _: None  # a kill loses nothing that was written
        try:
            run(path)
        except BaseException:  # noqa: BLE001 - the child must not go on as its parent would
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status) == signal.SIGKILL
    if status:
        raise SystemExit(f"a run in {path} failed (failpoint {failpoint!r})")
    return False
