"""The commands, and what their exit codes mean."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stentor.cli import bench, check, demo, explain, match
from stentor.cli.exits import UNUSABLE
from stentor.errors import StentorError

app = typer.Typer(
    name="stentor",
    help="Which of your standing subscriptions want this event: by content, keywords, place, time.",
    epilog="Exit codes: 0 done · 1 done, and the answer is no (see each command) · 2 wrong usage "
    "· 3 an input cannot be used · 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

app.command("match")(match.command)
app.command("explain")(explain.command)
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
    try:
        app()
    except StentorError as error:
        print(f"stentor: {error}", file=sys.stderr)
        raise SystemExit(UNUSABLE) from None
    except OSError as error:
        print(f"stentor: {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
        raise SystemExit(UNUSABLE) from None
