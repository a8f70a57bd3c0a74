"""The commands, and what their exit codes mean."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer

from stentor.cli import bench, check, cover, covers, demo, explain, match, overlay, stream
from stentor.cli.exits import UNUSABLE, WRONG_USAGE
from stentor.errors import SettingsError, StentorError

app = typer.Typer(
    name="stentor",
    help="Which of your standing subscriptions want this event: by content, keywords, place, time.",
    epilog="Exit codes: 0 done · 1 done, and the answer is no (see each command) · 2 wrong usage "
    "· 3 an input cannot be used · 130 interrupted.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

app.command("match")(match.command)
app.command("stream")(stream.command)
app.command("explain")(explain.command)
app.command("covers")(covers.command)
app.command("cover")(cover.command)
app.command("overlay")(overlay.command)
app.command("check")(check.command)
app.command("bench")(bench.command)
app.command("demo")(demo.command)


def _version(asked: bool) -> None:
    if asked:
        import stentor

        print(f"stentor {stentor.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def run() -> None:
    """Run the command line and exit."""
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, TextIOWrapper):
            output.reconfigure(errors="replace")  # a plain locale has no ✓
    try:
        app()
    except SettingsError as error:
        _stop(str(error), WRONG_USAGE)
    except StentorError as error:
        _stop(str(error), UNUSABLE)
    except OSError as error:
        named = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        _stop(named, UNUSABLE)


def _stop(message: str, code: int) -> NoReturn:
    print(f"stentor: {message}", file=sys.stderr)
    raise SystemExit(code)
