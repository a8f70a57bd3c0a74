"""What one call costs: publish, top, move, subscribe of a new text, one by one.

    python -m stentor_lab.bench.calls [--against COMMIT] [--index scan] [--size 100000]

CPU microseconds a call, and how many of them are not the kernels' own work. What a kernel works is
the time of its calls in a large engine less that in an engine of one subscription, where nothing is
left but the way in and out. With a commit, that commit (a worktree of its own) and this one take
turns round by round, so that both meet the same machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

CALLS: Final = ("publish", "top", "move", "subscribe")
WORDS: Final = [f"word{number:03}" for number in range(400)]
#: Calls of each kind in a round; the first round is for warming up.
EACH: Final = 200


# The workload: events of 15 attributes, subscriptions of which about ten want one.


def event_of(rng: random.Random, number: int) -> dict[str, Any]:
    """An event of 15 attributes: numbers, strings, a text of nine words, a place, a boolean."""
    return {
        "id": f"e{number}",
        "price": round(rng.uniform(0, 1000), 2),
        "rating": rng.uniform(0, 5),
        "stock": rng.randrange(1000),
        "year": rng.randrange(1990, 2030),
        "weight": rng.expovariate(0.2),
        "width": rng.uniform(1, 100),
        "height": rng.uniform(1, 100),
        "depth": rng.uniform(1, 100),
        "brand": f"brand{rng.randrange(200)}",
        "colour": rng.choice(["red", "green", "blue", "black", "white"]),
        "country": f"country{rng.randrange(60)}",
        "seller": f"seller{rng.randrange(5000)}",
        "text": " ".join(rng.choices(WORDS, k=9)),
        "loc": [rng.uniform(150, 152), rng.uniform(-35, -33)],
        "used": rng.random() < 0.3,
    }


def table_of(rng: random.Random, size: int) -> Any:
    """A table of *size* subscribers' constants, for `EXPRESSION`."""
    import pyarrow as pa

    low = [rng.uniform(0, 900) for _ in range(size)]
    return pa.table(
        {
            "id": [f"s{row}" for row in range(size)],
            "brand": [f"brand{rng.randrange(200)}" for _ in range(size)],
            "low": low,
            "high": [start + rng.uniform(10, 200) for start in low],
            "year": [rng.randrange(1990, 2020) for _ in range(size)],
            "at": [[rng.uniform(150, 152), rng.uniform(-35, -33)] for _ in range(size)],
        }
    )


EXPRESSION: Final = (
    "brand = :brand AND price BETWEEN :low AND :high AND year >= :year "
    "AND ST_DWithin(loc, here(), 60000)"
)


def text_of(rng: random.Random) -> str:
    """A text that nobody has asked for before."""
    parts = [
        f"brand = 'brand{rng.randrange(200)}'",
        f"price < {rng.uniform(10, 900):.3f}",
        f"year BETWEEN {rng.randrange(1990, 2005)} AND {rng.randrange(2005, 2030)}",
        f"has_all(text, '{' '.join(rng.sample(WORDS, 2))}')",
        f"ST_DWithin(loc, here(), {rng.randrange(500, 20_000)})",
        f"colour IN ('{rng.choice(['red', 'green'])}', '{rng.choice(['blue', 'black'])}')",
        f"rating > {rng.uniform(0, 5):.3f}",
    ]
    return " AND ".join(rng.sample(parts, 4))


# One side: a process that answers every line with a round of figures.


class Side:
    """An engine of *size* subscriptions and one of a single one, called alike."""

    def __init__(self, index: str, size: int) -> None:
        import stentor

        self._rng = random.Random(1)
        self._number = 0
        self._size = size
        self._large, self._small = stentor.Engine(index), stentor.Engine(index)
        report = self._large.subscribe_batch(table_of(self._rng, size), EXPRESSION)
        assert not report.rejected.num_rows, report.rejected
        self._small.subscribe_batch(table_of(self._rng, 1), EXPRESSION)
        self._matches = 0

    def round(self) -> dict[str, dict[str, float]]:
        """CPU microseconds a call of each kind, and those outside of kernels' own work."""
        figures = {}
        for call in CALLS:
            total = _timed(self._calls(call, self._large))
            with kernels_timed() as inside:
                _timed(self._calls(call, self._large))
            large = inside()
            with kernels_timed() as inside:
                _timed(self._calls(call, self._small))
            own = max(0.0, (large - inside()) / EACH)
            figures[call] = {"call": total, "over": total - own}
        return figures

    def _calls(self, call: str, engine: Any) -> list[Callable[[], Any]]:
        rng = self._rng
        made: list[Callable[[], Any]] = []
        for _ in range(EACH):
            self._number += 1
            event = event_of(rng, self._number)
            at = (rng.uniform(150, 152), rng.uniform(-35, -33))
            id = f"s{rng.randrange(self._size if engine is self._large else 1)}"
            new, text = f"n{self._number}", text_of(rng)
            match call:
                case "publish":
                    made.append(partial(engine.publish, event))
                case "top":
                    made.append(partial(engine.top, event, 10))
                case "move":
                    made.append(partial(engine.move, id, at))
                case _:
                    made.append(partial(engine.subscribe, new, text, at=at))
        return made


def _timed(calls: list[Callable[[], Any]]) -> float:
    start = time.thread_time_ns()
    for call in calls:
        call()
    return (time.thread_time_ns() - start) / 1000 / len(calls)


@contextmanager
def kernels_timed() -> Iterator[Callable[[], float]]:
    """While it lasts, kernels that Python calls are timed; gives their CPU microseconds so far."""
    from numba.core.dispatcher import Dispatcher

    spent = [0]

    def timed(kernel: Any) -> Any:
        def call(*arguments: Any) -> Any:
            start = time.thread_time_ns()
            try:
                return kernel(*arguments)
            finally:
                spent[0] += time.thread_time_ns() - start

        return call

    replaced = []
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "stentor":
            for key, value in list(vars(module).items()):
                if isinstance(getattr(value, "__wrapped__", value), Dispatcher):
                    replaced.append((module, key, value))
                    setattr(module, key, timed(value))
    try:
        yield lambda: spent[0] / 1000
    finally:
        for module, key, value in replaced:
            setattr(module, key, value)


def serve(index: str, size: int) -> None:
    """Answer each line of stdin with a round."""
    side = Side(index, size)
    side.round()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(side.round()), flush=True)


# Both sides.


@contextmanager
def served(source: Path, index: str, size: int) -> Iterator[subprocess.Popen[str]]:
    """A process that serves rounds of the package in *source*."""
    environment = {**os.environ, "PYTHONPATH": str(source), "STENTOR_QUIET": "1"}
    command = [sys.executable, __file__, "--serve", "--index", index, "--size", str(size)]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
            process.wait()


def ask(process: subprocess.Popen[str]) -> str:
    """One line of what *process* says."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit("a process of the benchmark failed")
    return line


@contextmanager
def sources_of(commit: str | None) -> Iterator[dict[str, Path]]:
    """The `src` folders to compare, by name."""
    here = Path(__file__).parents[4]
    if commit is None:
        yield {"now": here / "src"}
        return
    with tempfile.TemporaryDirectory(prefix="stentor-calls-") as folder:
        tree = Path(folder, "tree")
        git = ["git", "-C", str(here), "worktree"]
        subprocess.run(
            [*git, "add", "--detach", str(tree), commit], check=True, capture_output=True
        )
        try:
            yield {commit: tree / "src", "now": here / "src"}
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def compare(commit: str | None, index: str, size: int, rounds: int) -> list[str]:
    """The lines of a table: medians of interleaved *rounds*, spread, ratio old to new."""
    found: dict[str, list[dict[str, dict[str, float]]]] = {}
    with sources_of(commit) as sources:
        sides = {}
        managers = [served(source, index, size) for source in sources.values()]
        try:
            for name, manager in zip(sources, managers, strict=True):
                sides[name] = manager.__enter__()
                assert ask(sides[name]) == "ready\n"
                found[name] = []
            for _ in range(rounds):
                for name, process in sides.items():
                    assert process.stdin is not None
                    print("round", file=process.stdin, flush=True)
                    found[name].append(json.loads(ask(process)))
        finally:
            for manager in managers[: len(sides)]:
                manager.__exit__(None, None, None)
    lines = [f"{index}, {size:,} subscriptions: CPU µs a call, (of them over its kernels), spread"]
    for call in CALLS:
        cells, over = [], []
        for name, figures in found.items():
            totals = sorted(one[call]["call"] for one in figures)
            over.append(statistics.median(one[call]["over"] for one in figures))
            cells.append(
                f"{name} {statistics.median(totals):8.1f} ({over[-1]:6.1f}) "
                f"[{totals[0]:.1f} … {totals[-1]:.1f}]"
            )
        ratio = f"   ratio over kernels {over[0] / over[-1]:.1f}" if len(over) > 1 else ""
        lines.append(f"{call:10} " + "   ".join(cells) + ratio)
    return lines


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="What one call costs.")
    parser.add_argument("--against", help="a commit to compare with")
    parser.add_argument("--index", default="scan")
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.index, options.size)
    else:
        print("\n".join(compare(options.against, options.index, options.size, options.rounds)))


if __name__ == "__main__":
    main()
