"""`stentor console FOLDER`: a pipeline's tables on a map, its past and what comes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stentor.cli.screen import need_spark, print_line
from stentor.errors import SettingsError


def command(
    folder: Annotated[
        Path, typer.Argument(help="The pipeline's folder (`path` in [tables]), or a demo's.")
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="On 127.0.0.1; 0: any.")] = 8732,
    rows: Annotated[
        int, typer.Option(min=1, help="How many of the newest rows of each table to show.")
    ] = 400_000,
) -> None:
    """Show a pipeline's tables on a map, with a slider over its past, live while it runs.

    Nothing is changed, and Spark is not started. Only this machine can open the page.
    """
    need_spark()
    try:
        import uvicorn

        from stentor.service.past import past_app
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"stentor console needs {error.name}: pip install 'stentor[service]'"
        ) from None
    app = past_app(folder, most=rows)
    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", lifespan="off")
    )
    listener = server.config.bind_socket()
    print_line(f"{folder} is on http://127.0.0.1:{listener.getsockname()[1]}/ (Ctrl-C ends it)")
    server.run(sockets=[listener])
