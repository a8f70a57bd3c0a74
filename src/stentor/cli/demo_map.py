"""The demonstration's picture: a map of people and offers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rich.console import Console

from stentor.cli.demo_story import Place, Story
from stentor.cli.pictures import NO_MATPLOTLIB, pyplot


def draw(screen: Console, story: Story, path: Path) -> None:
    """Draw people, and offers as large as many people were told of them."""
    try:
        plt = pyplot()
    except ModuleNotFoundError:
        screen.print(f"\nNo picture: {NO_MATPLOTLIB}")
        return
    from matplotlib.collections import PathCollection

    figure, axes = plt.subplots(figsize=(9, 8), layout="constrained")
    _dots(axes, story.people, s=3, c="0.75", label="people", zorder=1)
    wanted = [offer for offer in story.offers if offer.told]
    unwanted = [offer.place for offer in story.offers if not offer.told]
    if unwanted:
        style = {"s": 14, "c": "tab:red", "marker": "x", "linewidths": 0.8}
        _dots(axes, unwanted, label="offers that nobody wanted", zorder=3, **style)
    if wanted:
        wanted.sort(key=lambda offer: -offer.told)  # small ones on top
        most = wanted[0].told
        sizes = [300 * offer.told / most for offer in wanted]
        style = {"s": sizes, "facecolors": "none", "edgecolors": "tab:blue", "linewidths": 0.6}
        label = f"offers, by how many were told (largest: {most:,})"
        _dots(axes, [offer.place for offer in wanted], label=label, zorder=2, **style)
    axes.set(title="Saltmere, an afternoon: who was told", xlabel="longitude", ylabel="latitude")
    axes.set_aspect(1 / math.cos(math.radians(story.people[0][1])))
    legend = axes.legend(loc="upper left", framealpha=0.9)
    for handle in legend.legend_handles:
        if isinstance(handle, PathCollection):
            handle.set_sizes([30])
    figure.savefig(path, dpi=130)
    plt.close(figure)
    screen.print(f"\nThe map of the deliveries: {path}")


def _dots(axes: Any, places: list[Place], **style: Any) -> Any:
    return axes.scatter([x for x, _ in places], [y for _, y in places], **style)
