"""`stentor console FOLDER`: a pipeline's tables on a map, its past and what comes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stentor.cli.screen import LogForm, LogFormatOption, need_spark, print_line, set_log_format
from stentor.cli.serve import need_service


def command(
    folder: Annotated[
        Path, typer.Argument(help="The pipeline's folder (`path` in [tables]), or a demo's.")
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="On 127.0.0.1; 0: any.")] = 8732,
    rows: Annotated[
        int, typer.Option(min=1, help="How many of the newest rows of each table to show.")
    ] = 400_000,
    log_format: LogFormatOption = LogForm.PLAIN,
) -> None:
    """Show a pipeline's tables on a map, with a slider over its past, live while it runs.

    Nothing is changed, and Spark is not started. Only this machine can open the page.
    """
    set_log_format(log_format)
    need_spark()
    need_service()
    from stentor.service.past import serve_past

    serve_past(
        folder,
        port,
        lambda address: print_line(f"{folder} is on {address} (Ctrl-C ends it)"),
        most=rows,
    )
