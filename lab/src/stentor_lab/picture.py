"""The picture of a benchmark: horizontal bars, tables side by side.

A table says which of its figures are worth a bar (`Chart`); of one that does not, the medians are
drawn, with their spread.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from stentor.cli.screen import pyplot
from stentor_lab.bench import BenchResult, Row, Table
from stentor_lab.report import number
from stentor_lab.result import Chart

#: Tables beside one another.
COLUMNS: Final = 2
#: Inches: of a panel's width, of a bar, of what stands around the bars of a panel.
WIDTH, BAR, AROUND = 6.6, 0.34, 1.0
_COLOURS: Final = ("tab:blue", "tab:orange", "tab:green", "tab:purple")


class Bar(NamedTuple):
    """A row of a panel: the lengths of its parts, and what stands behind them."""

    name: str
    parts: tuple[float, ...]
    text: str
    spread: tuple[float, float] | None = None  # below and above its end


class Panel(NamedTuple):
    """Bars of one table under a title."""

    title: str
    unit: str
    parts: tuple[str, ...]  # what the parts of each bar are
    bars: tuple[Bar, ...]
    most: float  # how long a bar may be


def draw(result: BenchResult, path: Path) -> None:
    """Draw *result* into *path*."""
    plt = pyplot()
    rows = list(panels(result))
    heights = [AROUND + BAR * max(len(panel.bars) for panel in row) for row in rows]
    size = (WIDTH * COLUMNS, sum(heights) + 0.6)
    figure = plt.figure(figsize=size, layout="constrained")
    grid = figure.add_gridspec(len(rows), COLUMNS, height_ratios=heights)
    for position, row in enumerate(rows):
        for column, panel in enumerate(row):
            _draw_panel(figure.add_subplot(grid[position, column]), panel)
    figure.suptitle(f"stentor-lab bench {result.subject}", fontsize=11)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def panels(result: BenchResult) -> Iterator[list[Panel]]:
    """Rows of panels; where they show the same figure, those of a row have one scale."""
    for charts, group in groupby(result.tables, key=lambda table: table.charts):
        tables = list(group)
        for chart in charts or (None,):
            for first in range(0, len(tables), COLUMNS):
                beside = tables[first : first + COLUMNS]
                if chart is None:
                    yield [_medians(table) for table in beside]
                else:
                    row = [_of_chart(table, chart) for table in beside]
                    most = max(panel.most for panel in row)
                    yield [panel._replace(most=most) for panel in row]


def _medians(table: Table) -> Panel:
    bars = []
    for row in table.rows:
        median, (low, high) = table.median(row), table.spread(row)
        bars.append(Bar(row.name, (median,), number(median), (median - low, high - median)))
    most = max(table.spread(row)[1] for row in table.rows)
    return Panel(table.title, f"{table.per}, median and spread", ("",), tuple(bars), most)


def _of_chart(table: Table, chart: Chart) -> Panel:
    rows = [row for row in table.rows if any(name in row.figures for name in chart.figures)]
    bars = tuple(_bar(row, chart, _total(rows[0], chart)) for row in rows)
    most = max((_total(row, chart) for row in rows), default=0.0)
    return Panel(f"{chart.title}\n{table.title}", chart.unit, chart.figures, bars, most)


def _bar(row: Row, chart: Chart, first: float) -> Bar:
    """The bar of *row*; behind it its length, also as a share of the *first* bar's."""
    total = _total(row, chart)
    share = f"  ({number(100 * total / first)} %)" if first else ""
    parts = tuple(float(row.figures.get(name, 0.0)) for name in chart.figures)
    return Bar(row.name, parts, number(total) + share)


def _total(row: Row, chart: Chart) -> float:
    return sum(float(row.figures.get(name, 0.0)) for name in chart.figures)


def _draw_panel(axes: Any, panel: Panel) -> None:
    locations = range(len(panel.bars))
    for location, bar in zip(locations, panel.bars, strict=True):
        left = 0.0
        for part, colour in zip(bar.parts, _COLOURS, strict=False):
            axes.barh(location, part, left=left, height=0.72, color=colour)
            left += part
        if bar.spread is not None:
            below, above = bar.spread
            axes.errorbar(left, location, xerr=[[below], [above]], color="0.2", capsize=2)
            left += above
        at = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}
        axes.annotate(bar.text, (left, location), **at)
    axes.set_yticks(locations, [bar.name for bar in panel.bars], fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(0, panel.most * 1.28 or 1)  # room for what stands behind the longest bar
    axes.set_title(panel.title, fontsize=9, loc="left")
    axes.xaxis.set_major_formatter(lambda value, _: number(value) if value else "0")
    axes.tick_params(axis="x", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(panel.unit, fontsize=8, loc="left")
    if len(panel.parts) > 1:
        _name_parts(axes, panel.parts)


def _name_parts(axes: Any, parts: tuple[str, ...]) -> None:
    """Say to the right of the unit, below the bars, which colour is which part."""
    patches = [axes.barh(0, 0, color=colour) for _, colour in zip(parts, _COLOURS, strict=False)]
    where = {"loc": "upper right", "bbox_to_anchor": (1.0, 0.0), "ncols": len(parts)}
    below = 2.2  # lines: where the unit stands
    axes.legend(patches, parts, fontsize=8, frameon=False, borderaxespad=below, **where)
