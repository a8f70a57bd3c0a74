"""`stentor serve`: a broker on the network; `stentor key`: who may."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from stentor.cli.screen import LogForm, LogFormatOption, need_spark
from stentor.errors import SettingsError

FolderOption = Annotated[
    Path | None, typer.Option(help="Where everything is kept (`stentor-service`).")
]


def command(
    file: Annotated[
        Path | None, typer.Argument(help="A `serve.toml`; without one everything has its default.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="List every mistake in the file, and serve nothing.")
    ] = False,
    host: Annotated[str | None, typer.Option(help="The address to bind (127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option(help="The port to bind (8731); 0: any.")] = None,
    folder: FolderOption = None,
    pipeline: Annotated[
        Path | None,
        typer.Option(help="Be the door of a Spark stream: the folder of its `stentor.toml`."),
    ] = None,
    log_format: LogFormatOption = LogForm.PLAIN,
) -> None:
    """Serve subscriptions and events over HTTP and WebSocket, with a console on its page.

    SIGTERM and Ctrl-C stop it once what waits is kept and sent.

        stentor serve --port 8731 --folder stentor-service
    """
    need_service()
    from msgspec.structs import replace

    from stentor.service.settings import ServeSettings, absolute, problems, read_settings

    settings = ServeSettings() if file is None else absolute(read_settings(file), file.parent)
    if pipeline is not None:
        need_spark()
        if file is None and folder is None:
            folder = (pipeline.parent if pipeline.is_file() else pipeline) / "door"
    given: dict[str, Any] = {"host": host, "port": port, "folder": folder, "pipeline": pipeline}
    if log_format is not LogForm.PLAIN:
        given["log"] = str(log_format)
    settings = replace(settings, **{name: one for name, one in given.items() if one is not None})
    if found := problems(settings, Path()):
        raise SettingsError("; ".join(found))
    if settings.pipeline is not None:
        from stentor.service.door import read_config, source_for

        for kind in ("events", "changes"):
            source_for(read_config(settings.pipeline), kind)
    if check:
        print(f"{file or 'the defaults'}: no mistakes found; it would serve {settings.url}")
        return
    from stentor.service.run import serve

    serve(settings)
    print("stentor: stopped, everything is kept")


def key(
    action: Annotated[str, typer.Argument(help="`add`, `list` or `revoke`.")],
    name: Annotated[str, typer.Argument(help="Of `add` the owner, of `revoke` the key's id.")] = "",
    scopes: Annotated[
        str, typer.Option(help="What the key may do, of publish, subscribe and admin.")
    ] = "publish,subscribe",
    note: Annotated[str, typer.Option(help="What it is for, as `list` shows it.")] = "",
    folder: FolderOption = None,
) -> None:
    """Make, list and revoke the keys of a service. A key is shown once, and kept as a hash.

    A running server takes notice within a second.

        stentor key add acme --scopes publish,subscribe --folder stentor-service
    """
    from stentor.service.auth import Keys
    from stentor.service.settings import FOLDER

    keys = Keys(FOLDER if folder is None else folder)
    if action == "add":
        print(keys.add(name, [one.strip() for one in scopes.split(",")], note))
    elif action == "list":
        for one in keys.all():
            print(f"{one.id}  {one.owner}  {','.join(one.scopes)}  {one.note}".rstrip())
    elif action == "revoke":
        if not keys.revoke(name):
            raise SettingsError(f"there is no key {name!r}; `stentor key list` shows them")
        print(f"{name}: revoked")
    else:
        raise SettingsError(f"no action {action!r}; there are add, list, revoke")


def need_service() -> None:
    """Refuse to go on where the extra `service` is not installed."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"the extra 'service' is not installed ({error.name} is missing): "
            "pip install 'stentor[service]'"
        ) from None
