"""Expression texts → columns, by the shapes that they come in."""

from __future__ import annotations

from collections.abc import Sequence

from stentor.encoding.collected import Asked, Collected, Encoded
from stentor.encoding.slots import in_slot, take_apart
from stentor.encoding.template import Template, compile_template
from stentor.errors import StentorError
from stentor.language.admit import admit
from stentor.language.limits import DEFAULT_LIMITS, Limits
from stentor.language.parser import parse
from stentor.model import Schema

#: Shapes are remembered up to this many; a stream of ever new shapes must not fill the memory.
MOST_SHAPES = 4096


class TextEncoder:
    """Expression texts → columns; remembers the shapes it has met."""

    def __init__(self, schema: Schema, limits: Limits = DEFAULT_LIMITS) -> None:
        self._schema = schema
        self._limits = limits
        self._templates: dict[tuple[str, ...], Template | None] = {}

    def encode(self, texts: Sequence[str], asked: Asked) -> Encoded:
        """The columns of *texts*, equal to those of the ordinary way, in the same order.

        Cost: a regular expression and a look-up for each text of a known shape.
        """
        groups: dict[tuple[str, ...], tuple[list[int], list[list[float | str]]]] = {}
        ordinary: list[int] = []
        for row, text in enumerate(texts):
            shaped = take_apart(text) if len(text) <= self._limits.bytes // 4 else None
            if shaped is None:
                ordinary.append(row)
                continue
            group = groups.get(shaped.shape)
            if group is None:
                group = groups[shaped.shape] = ([], [])
            group[0].append(row)
            group[1].append(shaped.constants)
        collected = Collected(self._schema, self._limits, asked)
        for shape, (rows, constants) in groups.items():
            template = self._template(shape, texts[rows[0]], asked.ids[rows[0]], constants[0])
            if template is None or not constants[0]:
                ordinary += rows
            else:
                columns = [list(column) for column in zip(*constants, strict=True)]
                ordinary += collected.add_filled(template, rows, columns)
        collected.add_ordinary(ordinary, texts.__getitem__)
        return collected.encoded()

    def _template(
        self, shape: tuple[str, ...], text: str, id: str, constants: list[float | str]
    ) -> Template | None:
        """The template of *shape*, compiled when it is first met; the schema learns its uses."""
        if shape not in self._templates:
            if len(self._templates) >= MOST_SHAPES:
                self._templates.clear()
            self._templates[shape] = self._compiled(text, id, constants)
        return self._templates[shape]

    def _compiled(self, text: str, id: str, constants: list[float | str]) -> Template | None:
        read: list[float | str] = []

        def literal(slot: int, value: float | str) -> float | str:
            read.append(value)
            return in_slot(slot, value)

        try:
            admit(text, self._schema, where=f"subscription {id!r}", limits=self._limits)
            tree = parse(text, schema=self._schema, limits=self._limits, literal=literal)
        except StentorError:
            return None  # the ordinary way says what is wrong
        return compile_template(tree, len(constants)) if read == constants else None
