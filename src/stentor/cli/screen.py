"""What a person sees while a command works: progress and summaries, on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


class Advance(Protocol):
    """Tells how far a piece of work has come."""

    def __call__(self, done: int, note: str = "") -> None: ...


def console() -> Console:
    """Standard error, where everything goes that is not the result itself."""
    return Console(stderr=True, highlight=False)


@contextmanager
def progress(title: str, total: int) -> Iterator[Advance]:
    """A bar that shows *title* and how much of *total* is done; silent where nobody looks."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    bars = Progress(*columns, console=console(), transient=True, disable=not sys.stderr.isatty())
    with bars:
        task = bars.add_task(title, total=max(total, 1), note="")
        yield lambda done, note="": bars.update(task, completed=done, note=note)


def size_of(path: Path) -> int:
    """The bytes of the file *path*, against which progress is measured; 0 for a stream."""
    return path.stat().st_size if path.is_file() else 0


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to be written, which takes the place of *path* once all went well."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        yield partial
        if partial.exists():
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def summarise(counts: dict[str, Any], *, as_json: bool, to_output: bool) -> None:
    """Show *counts*: as one JSON object for programs, as aligned lines for people."""
    stream = sys.stdout if to_output else sys.stderr
    if as_json:
        print(json.dumps(counts), file=stream)
        return
    width = max(map(len, counts))
    for name, count in counts.items():
        shown = f"{count:,}" if isinstance(count, int) else count
        print(f"{name:<{width}}  {shown}", file=stream)
