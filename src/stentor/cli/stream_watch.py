"""A running stream as a panel, as JSON lines or as sentences."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import asdict
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel as Frame
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from stentor.cli.screen import print_line
from stentor.model.values.time import BEGINNING, format_timestamp

if TYPE_CHECKING:
    from stentor.pipeline.stream.progress import BatchProgress


#: Rates are those of the last so many seconds.
WINDOW: Final = 10.0
#: Seconds without a record after which it is announced, once, that the stream waits.
_PAUSE: Final = 5.0
_TASKS: Final = "tasks "
#: A pause shorter than this is not shown.
_PANEL_PAUSE: Final = 3.0
_SPANS: Final = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"))


class BatchSeen(NamedTuple):
    """A batch, and when it was reported."""

    at: float
    progress: BatchProgress


class Totals:
    """Adds up batches; one thread adds, any may read."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.last: BatchSeen | None = None
        self.started = monotonic()
        self._window: deque[BatchSeen] = deque()

    def add(self, progress: BatchProgress) -> None:
        """Take in a batch."""
        for name in ("records", "events", "delivered", "rejected"):
            self.counts[name] += getattr(progress, name)
        self.counts["batches"] += 1
        self.reasons.update(progress.reasons)
        seen = BatchSeen(monotonic(), progress)
        self._window.append(seen)
        while self._window[0].at < seen.at - WINDOW:
            self._window.popleft()
        self.last = seen

    def rate(self, what: str) -> float:
        """How many of *what* come per second: over the batches of the last seconds."""
        now = monotonic()
        recent = [seen for seen in list(self._window) if seen.at >= now - WINDOW]
        if not recent:
            return 0.0
        since = min(seen.at - seen.progress.seconds for seen in recent)
        count: int = sum(getattr(seen.progress, what) for seen in recent)
        return count / max(now - since, 1e-3)

    @property
    def summary(self) -> str:
        """What was read since the start, and what share of it was rejected and why."""
        records, rejected = self.counts["records"], self.counts["rejected"]
        text = f"{records:,} record{'' if records == 1 else 's'}"
        if not rejected:
            return f"{text}, none rejected"
        lines = [f"  {count:,} because: {words}" for words, count in self.reasons.most_common(3)]
        share = f"{rejected / max(records, 1):.1%}"
        return "\n".join([f"{text}, {rejected:,} rejected ({share})", *lines])

    @property
    def waiting(self) -> float:
        """Seconds since the last batch, or since the start."""
        return monotonic() - (self.last.at if self.last else self.started)


class Silent:
    """Shows nothing but that the stream waits."""

    def __init__(self) -> None:
        self._totals = Totals()
        self._is_announced = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    def __call__(self, progress: BatchProgress) -> None:
        """Take in a batch."""
        self._totals.add(progress)
        self._is_announced = False

    @property
    def batches(self) -> int:
        """How many batches were reported to it."""
        return self._totals.counts["batches"]

    @property
    def summary(self) -> str:
        """What was read, and what share of it was rejected and why."""
        return self._totals.summary

    def tick(self, *, is_waiting: bool) -> None:
        """Take in whether the stream waits for records."""
        if is_waiting and not self._is_announced and self._totals.waiting >= _PAUSE:
            print_line("Waiting for records")
            self._is_announced = True


class JsonWatcher(Silent):
    """A line for each batch; *on_closed* is called where nobody reads them any more."""

    def __init__(self, on_closed: Callable[[], None]) -> None:
        super().__init__()
        self._on_closed = on_closed

    def __call__(self, progress: BatchProgress) -> None:
        super().__call__(progress)
        try:
            print(json.dumps(line_of(progress)), flush=True)
        except BrokenPipeError:  # the batch is committed all the same
            self._on_closed()


class LineWatcher(Silent):
    """A line on standard error for each batch; *total* is how many records are expected."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self._total = total

    def __call__(self, progress: BatchProgress) -> None:
        super().__call__(progress)
        counts = self._totals.counts
        print_line(
            f"  {counts['records']:,} of {self._total:,} records, "
            f"{counts['delivered']:,} deliveries, {counts['rejected']:,} rejected"
        )


def line_of(progress: BatchProgress) -> dict[str, Any]:
    """What a line says of a batch."""
    line = asdict(progress)
    line["time"] = None if progress.time == BEGINNING else format_timestamp(progress.time)
    line["seconds"] = round(progress.seconds, 4)
    line["lag"] = round(progress.lag, 3)
    line["steps"] = {step: round(seconds, 4) for step, seconds in progress.steps.items()}
    seconds = max(progress.seconds, 1e-6)
    events = progress.events
    return line | {
        "events_per_second": round(events / seconds, 1),
        "deliveries_per_second": round(progress.delivered / seconds, 1),
        "candidates_per_event": round(progress.candidates / events, 2) if events else None,
    }


class PanelWatcher:
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
        """How many batches were reported to it."""
        return self._totals.counts["batches"]

    @property
    def summary(self) -> str:
        """What was read, and what share of it was rejected and why."""
        return self._totals.summary

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
            if self._is_waiting and self._totals.waiting >= _PANEL_PAUSE:
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
