"""What a benchmark gives: plain data, the same for people (`report.py`) and for programs (JSON)."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from typing import Any

Progress = Callable[[str], None]


def to_stderr(message: str) -> None:
    """Tell a person what is being done."""
    print(f"stentor: {message}", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """How much is measured; a *size* of None is the subject's own."""

    size: int | None = None
    repetitions: int = 5
    seed: int = 1
    progress: Progress = to_stderr


class Unit(StrEnum):
    """How a time per item is shown."""

    SECONDS = "s"
    MILLISECONDS = "ms"
    MICROSECONDS = "µs"
    RATE = "/s"

    def of(self, seconds: float) -> float:
        """*seconds* per item in this unit."""
        if self is Unit.RATE:
            return 1.0 / seconds
        return seconds * {Unit.MILLISECONDS: 1e3, Unit.MICROSECONDS: 1e6}.get(self, 1.0)


@dataclass(frozen=True, slots=True)
class Row:
    """One way to do the work: its seconds per item in each repetition, and figures beside them."""

    name: str
    seconds: tuple[float, ...]
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def median(self) -> float:
        """Of the seconds per item."""
        return median(self.seconds)


@dataclass(frozen=True, slots=True)
class Chart:
    """Figures of a table that a picture shows: a bar for each row, made of one or several parts."""

    title: str
    unit: str
    figures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Ways to do the same work, compared with the first of them."""

    title: str
    workload: Mapping[str, Any]
    item: str
    unit: Unit
    rows: tuple[Row, ...]
    compared: bool = True
    charts: tuple[Chart, ...] = ()  # what a picture shows; none: the medians

    def ratio(self, row: Row) -> float:
        """How many times as fast as the first row *row* is, by medians."""
        return self.rows[0].median / row.median

    @property
    def per(self) -> str:
        """What the figures of `median` and `spread` are, as a unit."""
        if self.unit is Unit.RATE:
            return f"{self.item}{self.unit}"
        return f"{self.unit}/{self.item}"

    def median(self, row: Row) -> float:
        """The median of *row* in the table's unit."""
        return self.unit.of(row.median)

    def spread(self, row: Row) -> tuple[float, float]:
        """The lowest and the highest of *row* in the table's unit."""
        shown = [self.unit.of(seconds) for seconds in row.seconds]
        return min(shown), max(shown)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form; the unit says what median, low and high are in."""
        return {
            "title": self.title,
            "workload": dict(self.workload),
            "unit": self.per,
            "rows": [self._row_to_dict(row) for row in self.rows],
        }

    def _row_to_dict(self, row: Row) -> dict[str, Any]:
        low, high = self.spread(row)
        entry = {
            "name": row.name,
            "median": self.median(row),
            "low": low,
            "high": high,
            "repetitions": len(row.seconds),
        }
        return entry | ({"ratio": self.ratio(row)} if self.compared else {}) | dict(row.figures)


@dataclass(frozen=True, slots=True)
class BenchResult:
    """Everything that one run of a subject gives."""

    subject: str
    tables: tuple[Table, ...]
    machine: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form: the whole result as one object."""
        return {
            "subject": self.subject,
            "machine": dict(self.machine),
            "tables": [table.to_dict() for table in self.tables],
        }


def this_machine() -> dict[str, Any]:
    """What a reader needs to judge a time: processor, cores, versions."""
    return {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("stentor", "numba", "numpy", "pyarrow")},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # run from its sources
        return "not installed"
