"""`stentor-lab overlay`: what each link of an overlay carries for a workload."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from stentor.cli.inputs import JsonOption
from stentor.cli.screen import check_drawing, console, progress
from stentor_lab.overlay.file import load
from stentor_lab.overlay.picture import draw
from stentor_lab.overlay.run import carried, held, run, tree_count
from stentor_lab.overlay.space import shown_space


def command(
    file: Annotated[Path, typer.Argument(help="Brokers, links, policies and a workload, in TOML.")],
    picture: Annotated[
        Path | None, typer.Option(help="Where to draw the overlay: `.png`, `.svg` or `.pdf`.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a workload on an overlay of brokers, and show what each link carried.

    Each subscriber and each event comes to a random broker. docs/brokers.md has an example.

        stentor-lab overlay overlay.toml --picture overlay.png
    """
    if picture is not None:
        check_drawing(picture)
    described = load(file)
    start = perf_counter()
    with progress("Carrying messages", described.workload.total) as advance:
        overlay, counts, reasons = run(described, advance)
    found: dict[str, Any] = {**counts, "seconds": round(perf_counter() - start, 3)}
    links, brokers = carried(overlay), held(overlay, described)
    space = overlay.space
    if as_json:
        named = None if space is None else space.to_dict()
        shown = {"links": links, "brokers": brokers, "space": named, **found, "reasons": reasons}
        print(json.dumps(shown))
    else:
        screen = Console(highlight=False)
        screen.print(_table(links))
        screen.print(_table(brokers))
        for name, count in found.items():
            screen.print(f"{name:<15}{count:>12,}")
        for reason in reasons:
            screen.print(f"  {reason}", markup=False, soft_wrap=True)
        if (trees := tree_count(overlay)) > 1:
            screen.print(f"these are {trees} trees: nothing passes from one to another")
        if space is not None:
            how = "chosen" if described.space.given is None else "given"
            screen.print(f"space, {how}: {shown_space(space, overlay.schema)}")
    if picture is not None:
        draw(overlay, picture)
        console().print(f"The picture of the overlay: {picture}")


def _table(rows: list[dict[str, Any]]) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, value in (rows[0] if rows else {}).items():
        grid.add_column(name, justify="right" if isinstance(value, int) else "left")
    for row in rows:
        cells = (f"{one:,}" if isinstance(one, int) else str(one) for one in row.values())
        grid.add_row(*cells)
    return grid
