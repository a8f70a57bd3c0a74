"""A running stream as lines: JSON on standard output for programs, sentences, or none."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from stentor.cli.steps import say
from stentor.cli.stream_totals import Totals
from stentor.model.time import BEGINNING, format_timestamp

if TYPE_CHECKING:
    from stentor.pipeline.stream.progress import BatchProgress

#: Seconds without a record after which it is told, once, that the stream waits.
_PAUSE: Final = 5.0


class Silent:
    """Shows nothing but that the stream waits."""

    def __init__(self) -> None:
        self._totals = Totals()
        self._is_told = False

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
        self._is_told = False

    @property
    def batches(self) -> int:
        """How many batches it was told of."""
        return self._totals.counts["batches"]

    def tick(self, *, is_waiting: bool) -> None:
        """Take in whether the stream waits for records."""
        if is_waiting and not self._is_told and self._totals.waiting >= _PAUSE:
            say("Waiting for records")
            self._is_told = True


class JsonLines(Silent):
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


class Sentences(Silent):
    """A line on standard error for each batch; *total* is how many records are expected."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self._total = total

    def __call__(self, progress: BatchProgress) -> None:
        super().__call__(progress)
        counts = self._totals.counts
        say(
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
