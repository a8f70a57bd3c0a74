"""Pictures of results: one look for all, log scales, medians with their spread."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from stentor.cli.screen import pyplot
from stentor_lab.report import number
from stentor_lab.reproduce.curves import Curve, Panel
from stentor_lab.reproduce.run import FigureResult

#: Panels beside one another, and inches of each.
COLUMNS, WIDTH, HEIGHT = 3, 4.6, 3.9
#: One colour for a contender wherever it stands.
_COLOURS: Final = {
    "block scan": "0.45",
    "packed": "tab:red",
    "auto": "tab:pink",
    "SCAN": "0.75",
    "the paper": "black",
}
_CYCLE: Final = (
    *("tab:blue", "tab:green", "tab:orange", "tab:purple", "tab:brown", "tab:cyan", "tab:olive"),
    *("navy", "darkgreen", "goldenrod", "indigo"),
)
_MARKS: Final = "osv^D<>PX*h"


def draw(result: FigureResult, title: str, folder: Path, panels: Sequence[Panel] = ()) -> None:
    """Draw *result* into *folder*, as PNG and as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, data in pictures(result, title, panels).items():
        (folder / f"{result.name}.{kind}").write_bytes(data)


def pictures(
    result: FigureResult, title: str, panels: Sequence[Panel] = (), dpi: int = 110
) -> dict[str, bytes]:
    """The picture of *result* in each form: some of its *panels*, or all."""
    plt = pyplot()
    shown = list(panels or result.panels)
    columns = min(COLUMNS, len(shown))
    rows = -(-len(shown) // columns)
    with plt.rc_context({"svg.hashsalt": "stentor", "font.size": 8, "axes.titlesize": 9}):
        figure = plt.figure(figsize=(WIDTH * columns, HEIGHT * rows + 0.5), layout="constrained")
        for position, panel in enumerate(shown):
            _draw_panel(figure.add_subplot(rows, columns, position + 1), panel)
        figure.suptitle(title, fontsize=10)
        made = {}
        for kind in ("png", "svg"):
            buffer = io.BytesIO()
            more = {"metadata": {"Date": None}} if kind == "svg" else {"dpi": dpi}
            figure.savefig(buffer, format=kind, **more)
            made[kind] = buffer.getvalue()
        plt.close(figure)
    return made


def colour_of(names: Sequence[str]) -> dict[str, str]:
    """The colours of contenders, the same ones for the same order."""
    free = iter(_CYCLE * 3)
    return {name: _COLOURS.get(name) or next(free) for name in names}


def _draw_panel(axes: Any, panel: Panel) -> None:
    names = [curve.name for curve in panel.curves]
    colours = colour_of(names)
    words = [x for x in panel.xs if isinstance(x, str)]
    place = {x: number for number, x in enumerate(panel.xs)}
    for order, curve in enumerate(panel.curves):
        at = [place[point.x] if words else float(point.x) for point in curve.points]
        shift = (order - len(names) / 2) * 0.6 / max(1, len(names)) if words else 0.0
        _draw_curve(axes, curve, [x + shift for x in at], colours[curve.name], order, bool(words))
    if words:
        turned = 20 if max(map(len, words)) > 8 else 0
        axes.set_xticks(range(len(panel.xs)), [str(x) for x in panel.xs], rotation=turned)
    elif panel.log_x and all(float(x) > 0 for x in panel.xs):
        axes.set_xscale("log")
    if panel.log_y and any(point.value > 0 for curve in panel.curves for point in curve.points):
        axes.set_yscale("log")
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    axes.set_title(panel.title, loc="left")
    axes.grid(visible=True, which="major", color="0.9", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    where = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.16), "borderaxespad": 0.0}
    axes.legend(fontsize=6, frameon=False, ncols=3, **where)
    if not panel.log_y:
        axes.yaxis.set_major_formatter(lambda value, _: number(value) if value else "0")


def _draw_curve(
    axes: Any, curve: Curve, at: list[float], colour: str, order: int, is_words: bool
) -> None:
    order_of = sorted(range(len(at)), key=at.__getitem__)
    points, at = [curve.points[one] for one in order_of], [at[one] for one in order_of]
    medians = [point.value for point in points]
    below = [point.value - min(point.samples) for point in points]
    above = [max(point.samples) - point.value for point in points]
    line = "none" if is_words else "--" if curve.is_paper else "-"
    axes.errorbar(
        at,
        medians,
        yerr=[below, above],
        label=curve.name,
        color=colour,
        marker="_" if curve.is_paper and is_words else _MARKS[order % len(_MARKS)],
        markersize=9 if curve.is_paper and is_words else 4,
        linewidth=1.1,
        capsize=2,
        linestyle=line,
    )
