"""`stentor-lab bench`: how fast, as ratios."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from stentor.cli.screen import check_drawing
from stentor_lab.bench import SUBJECTS, BenchOptions, run
from stentor_lab.bench.calls import compare
from stentor_lab.picture import draw
from stentor_lab.report import show
from stentor_lab.result import to_stderr

#: Prints lines of its own: it compares two versions, not rows of one.
CALLS = "calls"


def command(
    subject: Annotated[
        str,
        typer.Argument(
            help=f"What to measure: {', '.join([*SUBJECTS, CALLS])}.", show_default=False
        ),
    ],
    size: Annotated[
        int | None, typer.Option(min=1, help="How many subscriptions; each subject has its own.")
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="How many rounds.")] = 5,
    seed: Annotated[int, typer.Option(help="Of the generated workload.")] = 1,
    picture: Annotated[
        Path | None, typer.Option(help="Where to draw the tables: `.png`, `.svg` or `.pdf`.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Of `calls`: a commit to run beside this one, in turns.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Give the result as JSON.")] = False,
) -> None:
    """Measure a subject and print a ratio table: medians of interleaved rounds, with their spread.

    stentor-lab bench scan --size 1000000
    """
    if subject == CALLS:
        print("\n".join(compare(against, "scan", size or 100_000, repetitions)))
        return
    if picture is not None:
        check_drawing(picture)
    result = run(subject, BenchOptions(size, repetitions, seed))
    if as_json:
        print(json.dumps(result.to_dict()))
    else:
        # Where nobody looks, the width is not known, and 80 columns would cut the figures off.
        show(result, Console(highlight=False, width=None if sys.stdout.isatty() else 120))
    if picture is not None:
        draw(result, picture)
        to_stderr(f"the picture: {picture}")
