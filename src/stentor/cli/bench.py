"""`stentor bench`: how fast, as ratios."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    subject: Annotated[str, typer.Argument(help="What to measure; `list` lists the subjects.")],
    size: Annotated[int | None, typer.Option(min=1, help="How many subscriptions.")] = None,
    repeat: Annotated[int | None, typer.Option(min=1, help="How many rounds.")] = None,
    seed: Annotated[int, typer.Option(help="Of the generated workload.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Give the result as JSON.")] = False,
) -> None:
    """Measure a subject and print a ratio table: medians of interleaved rounds, with their spread.

        stentor bench scan --size 1000000
    """
    raise NotImplementedError
