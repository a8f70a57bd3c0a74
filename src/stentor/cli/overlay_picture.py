"""The picture of an overlay: brokers as a tree, links as thick as what they carried."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rich.console import Console

from stentor.broker import Overlay

Places = dict[str, tuple[float, float]]


def draw(screen: Console, overlay: Overlay, path: Path) -> None:
    """Draw *overlay* into *path*, each link with its subscription messages and its events."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError:
        screen.print("No picture: matplotlib is not installed (pip install 'stentor[pictures]')")
        return
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    places = layout(overlay)
    told, events = Counter[frozenset[str]](), Counter[frozenset[str]]()
    for one, count in overlay.carried.items():
        book = events if one.kind == "publish" else told
        book[frozenset((one.sender, one.receiver))] += count
    most = max([*told.values(), *events.values(), 1])
    figure, axes = plt.subplots(figsize=(10, 7), layout="constrained")
    for pair in overlay.links:
        (x, y), (to_x, to_y) = places[pair[0]], places[pair[1]]
        link = frozenset(pair)
        for book, shift, colour in ((told, -0.03, "tab:blue"), (events, 0.03, "tab:orange")):
            width = 0.3 + 5 * book[link] / most
            line = ([x + shift, to_x + shift], [y, to_y])
            axes.plot(*line, color=colour, linewidth=width, solid_capstyle="round", zorder=1)
        text = f"{told[link]:,} told\n{events[link]:,} events"
        frame = {"boxstyle": "round", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
        middle = ((x + to_x) / 2, (y + to_y) / 2)
        axes.annotate(text, middle, fontsize=8, ha="center", va="center", bbox=frame, zorder=2)
    for name, place in places.items():
        entries = overlay.brokers[name].stats()["table entries"]
        label = f"{name}\n{entries:,}"
        frame = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.3"}
        axes.annotate(label, place, ha="center", va="center", bbox=frame, zorder=2)
    axes.set_title("What each link carried; in each broker the entries of its neighbours' tables")
    axes.margins(0.15)
    axes.set_axis_off()
    figure.savefig(path, dpi=130)
    plt.close(figure)
    screen.print(f"The picture of the overlay: {path}")


def layout(overlay: Overlay) -> Places:
    """A place for each broker: leaves side by side, every other one above the middle of its own."""
    beside: dict[str, list[str]] = {name: [] for name in overlay.brokers}
    for one, other in overlay.links:
        beside[one].append(other)
        beside[other].append(one)
    places: Places = {}
    leaves = 0

    def put(name: str, above: str | None, depth: int) -> float:
        nonlocal leaves
        below = [other for other in beside[name] if other != above]
        if below:
            columns = [put(other, name, depth + 1) for other in below]
            x = (columns[0] + columns[-1]) / 2
        else:
            x, leaves = float(leaves), leaves + 1
        places[name] = (x, float(-depth))
        return x

    for name in overlay.brokers:
        if name not in places:
            put(name, None, 0)
    return places
