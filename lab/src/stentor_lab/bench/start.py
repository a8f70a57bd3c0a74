"""How long a process takes until it is useful: importing, and the first publish.

Every sample is a process of its own. Kernels are compiled into a temporary folder, so that a cold
start is cold whatever this machine has compiled before.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from stentor.errors import StentorError
from stentor_lab.measure import Case, measure
from stentor_lab.result import BenchOptions, Table, Unit

IMPORT: Final = "import stentor"
PUBLISH: Final = """
import stentor
engine = stentor.Engine()
wish = "has_all(text, 'ipad') AND price < 300 AND ST_DWithin(loc, here(), 1000)"
engine.subscribe("ana", wish, at=(151.2, -33.9))
event = {"id": "e1", "text": "iPad discount", "price": 299, "loc": [151.2, -33.9]}
assert engine.publish(event) == ["ana"]
"""
#: What a warm start finds on disk: all that the structure of a small engine needs.
COMPILE: Final = "from stentor.engine.warm import compile_once; compile_once('scan')"
#: What compiles in the background ends before its folder is removed.
TIDY: Final = "from stentor.engine.cold import stop_all; stop_all()"
#: Compiling takes many seconds each time.
MOST_COLD: Final = 3


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Seconds from the start of a process until a program is done; *size* is not used."""
    with TemporaryDirectory(prefix="stentor-bench-") as folder:
        warm = Path(folder, "warm")
        options.progress("start: compiling the kernels for warm starts")
        _until_done(COMPILE, warm)
        cases = [
            Case("Python alone", lambda: _until_done("", warm)),
            Case("import stentor", lambda: _until_done(IMPORT, warm)),
            Case("first publish, warm kernels", lambda: _until_done(PUBLISH, warm)),
            Case("first publish, cold kernels", lambda: _cold(folder), cold=True, most=MOST_COLD),
        ]
        rows = measure(cases, options.repetitions, options.progress, "start")
    title = "From the start of a process until it is done"
    workload = {"subscriptions": 1, "events": 1}
    return (Table(title, workload, "process", Unit.SECONDS, rows, compared=False),)


def _cold(folder: str) -> float:
    with TemporaryDirectory(dir=folder) as cache:
        return _until_done(PUBLISH, Path(cache), TIDY)


def _until_done(program: str, cache: Path, tidy: str = "") -> float:
    """Seconds until a new process has run *program*; *tidy* and its exit do not count."""
    command = [sys.executable, "-c", f"{program}\nprint('done', flush=True)\n{tidy}"]
    said = ""
    start = time.perf_counter()
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(cache),
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line == "done\n":
                return time.perf_counter() - start
            said += line
    raise StentorError(f"a process of the benchmark failed:\n{said}")


def _environment(cache: Path) -> Mapping[str, str]:
    """This process's environment, with other places for compiled kernels and for bytecode.

    Bytecode is kept even where the user asked Python not to: without it every start would compile
    NumPy's and Numba's sources too.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    locations = {
        "NUMBA_CACHE_DIR": str(cache),
        "PYTHONPYCACHEPREFIX": str(cache.parent / "bytecode"),
    }
    return {**kept, **locations, "STENTOR_QUIET": "1"}
