"""`{commands}` lists every command with its options, from the program itself."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.nodes import nested_parse_with_titles
from typer.main import get_command

from stentor.cli.app import app


class Commands(Directive):
    """The commands in the order of `stentor --help`, each with its help and a table of options."""

    def run(self) -> list[nodes.Node]:
        """Sections, one for each command."""
        section = nodes.section()
        section.document = self.state.document
        nested_parse_with_titles(self.state, StringList(markdown(), "commands"), section)
        return section.children


def markdown() -> list[str]:
    """The lines of the sections, as the page around them is written."""
    lines: list[str] = []
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        lines += [f"## stentor {name}", "", "```text", _usage(name, command), "```", ""]
        lines += [*(command.help or "").replace("\b", "").splitlines(), ""]
        rows = [_row(one) for one in command.params]
        if rows:
            lines += ["| argument or option | |", "|---|---|"]
            lines += [f"| {shown} | {_cell(text)} |" for shown, text in rows]
            lines += [""]
    return lines


def _usage(name: str, command: Any) -> str:
    arguments = [_argument(one) for one in command.params if _is_argument(one)]
    return " ".join(["stentor", name, "[OPTIONS]", *arguments])


def _is_argument(parameter: Any) -> bool:
    return parameter.param_type_name == "argument"


def _argument(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _row(parameter: Any) -> tuple[str, str]:
    text = _one_line(parameter.help or "")
    if _is_argument(parameter):
        return f"`{_argument(parameter)}`", text
    shown = ", ".join(f"`{one}`" for one in [*parameter.opts, *parameter.secondary_opts])
    default = parameter.default
    if default not in (None, False, True, "", (), []) and not callable(default):
        text += f" Default: `{default}`."
    return shown, text


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def setup(sphinx: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    sphinx.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
