"""The picture of an overlay: a tree from left to right, links as thick as what they carried."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np

from stentor.broker import Overlay
from stentor.cli.screen import pyplot
from stentor.encoding.columns import Float64

Place = tuple[float, float]
#: Column and line of each broker.
Places = dict[str, Place]
#: Inches: between two columns, between two lines, and at each side.
COLUMN, LINE, MARGIN = 2.2, 0.62, 0.8
#: Points: of the thickest line, and of one that carried nothing.
THICK, THIN = 6.0, 0.5
#: Inches from the broker on its right to a link's label: there links have parted.
LABEL: Final = 0.75
#: Pixels that neither side of a picture has more of.
MOST_PIXELS: Final = 8000
TOLD, EVENTS = "tab:blue", "#d95f02"


def draw(overlay: Overlay, path: Path) -> None:
    """Draw *overlay* into *path*, each link with what it told of subscriptions, and its events."""
    plt = pyplot()
    locations = layout(overlay)
    columns = max(x for x, _ in locations.values())
    width = max(COLUMN * columns + 2 * MARGIN, 6.4)
    height = LINE * (max(y for _, y in locations.values()) + 1) + 2 * MARGIN
    figure = plt.figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))  # a unit is an inch, so that labels have their room
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    left, top = (width - COLUMN * columns) / 2, MARGIN + LINE / 2
    inches = {name: (left + COLUMN * x, top + LINE * y) for name, (x, y) in locations.items()}
    told, events = _carried(overlay)
    most = max([*told.values(), *events.values(), 1])
    for pair in overlay.links:
        counts = told[frozenset(pair)], events[frozenset(pair)]
        _draw_link(axes, (inches[pair[0]], inches[pair[1]]), counts, most)
    for name, location in inches.items():
        _draw_broker(axes, location, name, overlay.brokers[name].stats()["table entries"])
    _explain(axes, width, told.total(), events.total())
    figure.savefig(path, dpi=min(130, MOST_PIXELS / max(width, height)))
    plt.close(figure)


def _explain(axes: Any, width: float, told: int, events: int) -> None:
    """The title and the legend."""
    from matplotlib.lines import Line2D

    title = "What each link carried, both ways; in each broker the entries of its tables"
    axes.text(width / 2, 0.35, title, ha="center", va="center", fontsize=10)
    lines = [Line2D([], [], color=colour, linewidth=4) for colour in (TOLD, EVENTS)]
    named = [f"messages about subscriptions ({told:,})", f"events ({events:,})"]
    axes.legend(lines, named, loc="lower center", ncols=2, frameon=False, fontsize=9)


def _draw_broker(axes: Any, location: Place, name: str, entries: int) -> None:
    frame = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.3"}
    style = {"ha": "center", "va": "center", "fontsize": 9, "bbox": frame, "zorder": 4}
    axes.annotate(f"{_short(name)}\n{entries:,}", location, **style)


def _carried(overlay: Overlay) -> tuple[Counter[frozenset[str]], Counter[frozenset[str]]]:
    """By link: messages about subscriptions, and events."""
    told, events = Counter[frozenset[str]](), Counter[frozenset[str]]()
    for one, count in overlay.carried.items():
        book = events if one.kind == "publish" else told
        book[frozenset((one.sender, one.receiver))] += count
    return told, events


def _draw_link(axes: Any, ends: tuple[Place, Place], counts: tuple[int, int], most: int) -> None:
    """Two curves side by side, and close to the right one of their *ends* what they stand for."""
    widths = [THIN + THICK * count / most for count in counts]
    apart = (sum(widths) / 2 + 1.5) / 72  # points are 1/72 of an inch
    (x, y), aside = _curve(*sorted(ends))
    at = float(x[-1]) - LABEL, float(np.interp(x[-1] - LABEL, x, y))
    frame = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}
    capacity = {"ha": "center", "va": "center", "fontsize": 8, "color": "white", "bbox": frame}
    axes.annotate(f"{max(counts):,}\n", at, zorder=2, **capacity)
    sides = ((-0.5, TOLD, "bottom"), (0.5, EVENTS, "top"))
    for count, width, (side, colour, where) in zip(counts, widths, sides, strict=True):
        line_x, line_y = x + side * apart * aside[0], y + side * apart * aside[1]
        axes.plot(line_x, line_y, color=colour, linewidth=width, solid_capstyle="butt", zorder=1)
        style = {"ha": "center", "va": where, "fontsize": 8, "color": colour, "zorder": 3}
        axes.annotate(f"{count:,}", at, **style)


def _curve(start: Place, stop: Place) -> tuple[Float64, Float64]:
    """A line that leaves *start* and comes to *stop* level, and at each point what is aside of it.

    Both have a row of x and a row of y.
    """
    t = np.linspace(0.0, 1.0, 60)
    x = start[0] + (stop[0] - start[0]) * t
    y = start[1] + (stop[1] - start[1]) * (3 * t**2 - 2 * t**3)
    along = np.array([np.gradient(x), np.gradient(y)])
    aside = np.array([-along[1], along[0]]) / np.hypot(*along)
    return np.array([x, y]), aside


def _short(name: str, most: int = 14) -> str:
    """*name*, cut where it would not fit between two links."""
    return name if len(name) <= most else name[: most - 1] + "…"


def layout(overlay: Overlay) -> Places:
    """A place for each broker: leaves below one another, every other one beside the middle of its.

    The broker on the left is one that is nowhere far from the leaves.
    """
    beside: dict[str, list[str]] = {name: [] for name in overlay.brokers}
    for one, other in overlay.links:
        beside[one].append(other)
        beside[other].append(one)
    locations: Places = {}
    leaves = 0

    def put(name: str, before: str | None, column: int) -> float:
        nonlocal leaves
        behind = [other for other in beside[name] if other != before]
        if behind:
            lines = [put(other, name, column + 1) for other in behind]
            line = (lines[0] + lines[-1]) / 2
        else:
            line, leaves = float(leaves), leaves + 1
        locations[name] = (float(column), line)
        return line

    for name in overlay.brokers:
        if name not in locations:
            put(_middle(name, beside), None, 0)
    return locations


def _middle(name: str, beside: dict[str, list[str]]) -> str:
    """The broker in the middle of the longest way through the tree of *name*."""
    end = _farthest(name, beside)[-1]
    walk = _farthest(end, beside)
    return walk[len(walk) // 2]


def _farthest(name: str, beside: dict[str, list[str]]) -> list[str]:
    """The way from *name* to one that is farthest from it."""
    ways = [[name]]
    for walk in ways:  # grows while it is walked: the nearest first
        before = walk[-2] if len(walk) > 1 else None
        ways += [[*walk, other] for other in beside[walk[-1]] if other != before]
    return ways[-1]
