"""`{settings}` lists the keys of a settings struct: what each may be, and what it is by default."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.nodes import nested_parse_with_titles


class Settings(Directive):
    """The struct `module.Class`: its own keys first, then a table for each struct in it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A table of keys, and one for each section of the file."""
        section = nodes.section()
        section.document = self.state.document
        lines = StringList(markdown(self.arguments[0]), "settings")
        nested_parse_with_titles(self.state, lines, section)
        return section.children


def markdown(path: str) -> list[str]:
    """The lines of the tables of the struct at *path*, as the page around them is written."""
    module, _, name = path.rpartition(".")
    fields = msgspec.structs.fields(getattr(import_module(module), name))
    lines = _table([one for one in fields if _section_of(one.type) is None])
    for section in map(_section_of, (one.type for one in fields)):
        if section is not None:
            lines += ["", (section.__doc__ or "").splitlines()[0], ""]
            lines += _table(msgspec.structs.fields(section))
    return lines


def _table(fields: Any) -> list[str]:
    rows = [(f"`{one.encode_name}`", _expected(one.type), _default(one)) for one in fields]
    lines = ["| key | may be | by default |", "|---|---|---|"]
    return lines + [
        "| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows
    ]


def _expected(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        extra = next((one.extra for one in get_args(kind)[1:] if getattr(one, "extra", None)), {})
        return str((extra or {}).get("expected", "a value"))
    if get_origin(kind) is Literal:
        return ", ".join(f"`{one}`" for one in get_args(kind))
    if get_origin(kind) in (dict, Mapping):
        return "a table"
    known = [_expected(one) for one in get_args(kind) if one is not type(None)]
    return " or ".join(known) or {"Path": "a path"}.get(getattr(kind, "__name__", ""), "a value")


def _default(field: Any) -> str:
    value = field.default
    if value in (None, "", (), msgspec.NODEFAULT):
        return "nothing"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, timedelta):
        number, unit = (value.days or value.total_seconds()), "day" if value.days else "second"
        return f"{number:g} {unit}" + "s" * (number != 1)
    if isinstance(value, tuple):
        return ", ".join(f"`{one}`" for one in value)
    return f"{value:,}" if isinstance(value, int) else f"`{value}`"


def _section_of(kind: Any) -> type[msgspec.Struct] | None:
    """The struct of a section, also of one that may stand several times."""
    inside = [kind, *get_args(kind)]
    return next((one for one in inside if _is_struct(one)), None)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def setup(sphinx: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    sphinx.add_directive("settings", Settings)
    return {"parallel_read_safe": True}
