"""A benchmark's result for people: one table per comparison, with what it was measured on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from stentor_lab.result import BenchResult, Table


def show(result: BenchResult, console: Console) -> None:
    """Print *result* on *console*."""
    for table in result.tables:
        console.print()
        console.print(Text(table.title, style="bold"))
        console.print(Text(_list(table.workload), style="dim"))
        console.print(_grid(table))
    console.print()
    console.print(Text(_list(result.machine), style="dim"))


def _grid(table: Table) -> Grid:
    figures = list(dict.fromkeys(name for row in table.rows for name in row.figures))
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column("")
    for name in (table.per, "low–high", *(["ratio"] if table.compared else []), *figures):
        grid.add_column(name, justify="right")
    for row in table.rows:
        ratio = [f"{number(table.ratio(row))}×"] if table.compared else []
        cells = [number(row.figures[name]) if name in row.figures else "" for name in figures]
        spread = "–".join(number(end) for end in table.spread(row))
        grid.add_row(row.name, number(table.median(row)), spread, *ratio, *cells)
    return grid


def _list(facts: Mapping[str, Any]) -> str:
    return " · ".join(
        f"{name} {fact:,}" if isinstance(fact, int) else f"{name} {fact}"
        for name, fact in facts.items()
    )


def number(value: float) -> str:
    """*value* with three digits that count, or all of them before the point.

    >>> number(1234567.8), number(12.345), number(0.01234)
    ('1,234,568', '12.3', '0.0123')
    """
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
