"""The commands of `stentor`."""

from __future__ import annotations

from typing import Annotated

import typer

from stentor.cli import (
    bench,
    check,
    console,
    convert,
    cover,
    covers,
    explain,
    match,
    migrate,
    pub_sub,
    serve,
    size,
    stream,
    warm,
)
from stentor.cli.inputs import Commands, run_to_exit
from stentor.demo import command as demo

app = typer.Typer(
    name="stentor",
    cls=Commands,
    help="Which of your standing subscriptions want this event: by content, keywords, place, time.",
    epilog="Exit codes: 0 done · 1 done, and the answer is no (see each command) · 2 wrong usage "
    "· 3 an input cannot be used · 4 Spark's Java process ended: start again · 70 a defect of "
    "Stentor · 130 interrupted · 141 nobody reads the output.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

app.command("match")(match.command)
app.command("stream")(stream.command)
app.command("serve")(serve.command)
app.command("key")(serve.key)
app.command("pub")(pub_sub.pub)
app.command("sub")(pub_sub.sub)
app.command("explain")(explain.command)
app.command("covers")(covers.command)
app.command("cover")(cover.command)
app.command("check")(check.command)
app.command("convert")(convert.command)
app.command("bench")(bench.command)
app.command("size")(size.command)
app.command("console")(console.command)
app.command("demo")(demo.command)
app.command("warm")(warm.command)
app.command("migrate")(migrate.command)


def _version(is_wanted: bool) -> None:
    if is_wanted:
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
    """Take the options before a command."""


def run() -> None:
    """Run the command line and exit."""
    run_to_exit(app)
