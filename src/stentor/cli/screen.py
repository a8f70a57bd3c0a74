"""What commands show: progress, lines, pictures; a Spark session of a command."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from stentor._logs import configure_logs
from stentor.errors import SettingsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MasterOption = Annotated[
    str | None,
    typer.Option(
        help="Where Spark runs: `local[4]`, `spark://host:7077`, …; all cores of this machine if "
        "not given."
    ),
]
#: What a picture's name may end with.
PICTURES: Final = (".png", ".svg", ".pdf")
#: What is missing, and what to do about it.
NO_MATPLOTLIB: Final = "matplotlib is not installed (pip install 'stentor[pictures]')"


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


class LogForm(StrEnum):
    """How a long-running command tells what it does."""

    PLAIN = "plain"
    TEXT = "text"
    JSON = "json"


LogFormatOption = Annotated[
    LogForm,
    typer.Option(
        "--log-format",
        help="How lines on the error output look: `plain`, `text` with time and level, or `json`.",
    ),
]
_LOGGED: list[bool] = []  # not empty where lines are logs


def set_log_format(form: LogForm) -> None:
    """Let lines on the error output, and what libraries log, look so."""
    _LOGGED.clear()
    if form is not LogForm.PLAIN:
        configure_logs(form)
        _LOGGED.append(True)


@contextmanager
def timed_line(title: str) -> Iterator[None]:
    """Say *title* while the step runs; on a terminal also that it goes on, and what it took."""
    screen = console()
    if _LOGGED or not screen.is_terminal:
        print_line(f"{title} …")
        yield
        return
    start = perf_counter()
    with screen.status(f"{title} …"):
        yield
    screen.print(f"{title}: {perf_counter() - start:.1f} s", markup=False)


def print_line(sentence: str) -> None:
    """Tell something on standard error, in a line."""
    if _LOGGED:
        logging.getLogger("stentor.cli").info(sentence)
        return
    console().print(sentence, markup=False, soft_wrap=True)


@contextmanager
def spark_session(
    master: str | None = None,
    *,
    name: str,
    quick: bool = False,
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """A Spark session while the command runs; a SettingsError says what is missing."""
    need_spark()
    from stentor.pipeline.spark.sessions import command_session

    made = command_session(master, name=name, quick=quick, settings=settings)
    with ExitStack() as stack:
        with timed_line("Starting Spark"):
            spark = stack.enter_context(made)
        yield spark


def need_spark() -> None:
    """A SettingsError where the packages that Spark needs are not installed."""
    import stentor.pipeline

    try:
        _ = stentor.pipeline.start
    except ImportError as error:
        raise SettingsError(str(error)) from None


def check_picture(path: Path) -> None:
    """A SettingsError where *path* is not the name of a picture."""
    if path.suffix not in PICTURES:
        raise SettingsError(f"--picture is {path}; its name ends with {' or '.join(PICTURES)}")


def check_drawing(path: Path) -> None:
    """A SettingsError where no picture could be drawn into *path*: before any work is done."""
    check_picture(path)
    if not path.parent.is_dir():
        raise SettingsError(f"--picture is {path}; there is no folder {path.parent}")
    if find_spec("matplotlib") is None:
        raise SettingsError(f"--picture: {NO_MATPLOTLIB}")


def pyplot() -> Any:
    """matplotlib's `pyplot`, which draws into files alone; a ModuleNotFoundError without it."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt
