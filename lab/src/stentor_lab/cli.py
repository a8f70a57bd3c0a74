"""The command `stentor-lab`."""

from __future__ import annotations

import typer

from stentor.cli.inputs import Commands, run_to_exit
from stentor_lab.bench import command as bench
from stentor_lab.overlay import command as overlay
from stentor_lab.reproduce import command as reproduce

app = typer.Typer(
    name="stentor-lab",
    cls=Commands,
    help="Stentor's laboratory: benchmarks, the papers' figures again, a simulated overlay.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

app.command("bench")(bench.command)
app.command("overlay")(overlay.command)
app.command("reproduce")(reproduce.command)


def main() -> None:
    """Run the command line and exit."""
    run_to_exit(app)
