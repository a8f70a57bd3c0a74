"""The live panel of a running stream, on a terminal."""

from __future__ import annotations

from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel as Frame
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from stentor.cli.stream_totals import Totals

if TYPE_CHECKING:
    from stentor.pipeline.stream.progress import BatchProgress

_TASKS: Final = "tasks "
#: A pause shorter than this is none worth telling.
_PAUSE: Final = 3.0
_SPANS: Final = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"))


class Panel:
    """Shows each batch as it is committed; *total* is how many records are expected, if known."""

    def __init__(self, title: str, total: int | None = None) -> None:
        self._title = title
        self._total = total
        self._totals = Totals()
        self._is_waiting = False
        self._live = Live(
            console=Console(highlight=False), get_renderable=self.render, refresh_per_second=4
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_waiting = False
        self._live.__exit__(kind, error, traceback)

    def __call__(self, progress: BatchProgress) -> None:
        """Show a batch."""
        self._totals.add(progress)

    @property
    def batches(self) -> int:
        """How many batches it was told of."""
        return self._totals.counts["batches"]

    def tick(self, *, is_waiting: bool) -> None:
        """Take in whether the stream waits for records."""
        self._is_waiting = is_waiting

    def render(self) -> RenderableType:
        """The panel as it is now."""
        last = self._totals.last
        if last is None:
            lines: list[RenderableType] = [Text(self._beginning(), style="dim")]
        else:
            lines = [self._numbers(last.progress), *_steps(last.progress)]
            if self._is_waiting and self._totals.waiting >= _PAUSE:
                lines.append(Text(f"waiting for records for {_span(self._totals.waiting)}"))
        if self._total:
            done = self._totals.counts["records"]
            lines.append(ProgressBar(total=self._total, completed=done))
        running = _span(monotonic() - self._totals.started)
        return Frame(
            Group(*lines), title=self._title, subtitle=f"{running}", title_align="left", width=78
        )

    def _beginning(self) -> str:
        if self._is_waiting:
            return f"waiting for the first record for {_span(self._totals.waiting)}"
        return "the first batch is under way: it compiles what later ones use"

    def _numbers(self, last: BatchProgress) -> Table:
        totals = self._totals
        per_event = last.candidates / last.events if last.events else 0.0
        cells = [
            ("events/s", f"{totals.rate('events'):,.0f}"),
            ("deliveries/s", f"{totals.rate('delivered'):,.0f}"),
            ("candidates per event", f"{per_event:,.1f}"),
            ("lag", _span(last.lag)),
            ("records", f"{totals.counts['records']:,}"),
            ("deliveries", f"{totals.counts['delivered']:,}"),
            ("subscriptions", f"{last.subscriptions:,}"),
            ("live events", f"{last.live:,}"),
            ("rejected", f"{totals.counts['rejected']:,}"),
            ("index", f"{last.index}, version {last.version}"),
            ("batches", f"{totals.counts['batches']:,}"),
            ("plan", last.plan),
        ]
        table = Table.grid(padding=(0, 2), expand=True)
        for _ in range(2):
            table.add_column(style="dim")
            table.add_column(justify="right", style="bold")
        for left, right in zip(cells[::2], cells[1::2], strict=True):
            table.add_row(*left, *right)
        return table


def _steps(last: BatchProgress) -> list[RenderableType]:
    own = {name: took for name, took in last.steps.items() if not name.startswith(_TASKS)}
    tasks = {
        name.removeprefix(_TASKS): took
        for name, took in last.steps.items()
        if name.startswith(_TASKS)
    }
    own["commit"] = max(0.0, last.seconds - sum(own.values()))
    head = f"batch {last.batch:,}: {last.records:,} records in {last.seconds * 1000:,.0f} ms"
    lines = [Text(f"{head}\n  {_milliseconds(own)}")]
    if tasks:
        lines.append(Text(f"  in tasks: {_milliseconds(tasks)}", style="dim"))
    return list(lines)


def _milliseconds(steps: dict[str, float]) -> str:
    return " · ".join(f"{name} {took * 1000:,.0f}" for name, took in steps.items())


def _span(seconds: float) -> str:
    for size, unit in _SPANS:
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.1f} s"
