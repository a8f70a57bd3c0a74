"""Expression texts → columns, by the shapes that they come in."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from stentor.encoding.slots import in_slot, split_shape
from stentor.encoding.template import (
    EncodedSubscriptions,
    SubscriptionCollector,
    SubscriptionHeads,
    Template,
    compile_template,
)
from stentor.errors import StentorError
from stentor.language.check import check_and_learn
from stentor.language.limits import DEFAULT_LIMITS, Limits
from stentor.language.parser import parse
from stentor.model import Schema

#: Shapes are remembered up to this many; a stream of ever new shapes must not fill the memory.
MOST_SHAPES = 4096
#: Compiling a shape costs as much as encoding a few texts one by one.
LEAST_COMPILED = 3

Shape = tuple[str, ...]


class _Group(NamedTuple):
    """Texts of one shape: their rows and their constants."""

    rows: list[int]
    constants: list[list[float | str]]


class TextEncoder:
    """Expression texts → columns; remembers the shapes it has met."""

    def __init__(self, schema: Schema, limits: Limits = DEFAULT_LIMITS) -> None:
        self._schema = schema
        self._limits = limits
        self._met: dict[Shape, int] = {}  # how often, before a shape is compiled
        self._templates: dict[Shape, Template | None] = {}

    def encode(self, texts: Sequence[str], heads: SubscriptionHeads) -> EncodedSubscriptions:
        """The columns of *texts*, equal to those of the ordinary way, in the same order.

        Cost: a regular expression and a look-up for each text of a known shape.
        """
        groups = self._groups(texts)
        collected = SubscriptionCollector(self._schema, self._limits, heads)
        # What texts teach the schema, they teach in their order.
        ordinary = groups.pop(None, _Group([], []))
        turns: list[tuple[int, Shape | None]] = [(row, None) for row in ordinary.rows]
        turns += [(group.rows[0], shape) for shape, group in groups.items()]
        heapify(turns)
        while turns:
            row, shape = heappop(turns)
            if shape is None:
                collected.add_ordinary(row, texts[row])
                continue
            rows, constants = groups[shape]
            template = self._template(shape, texts[row], heads.ids[row], constants)
            if template is not None:
                columns = [list(column) for column in zip(*constants, strict=True)]
                rows = collected.add_filled(template, rows, columns)
            for row in rows:
                heappush(turns, (row, None))
        return collected.encoded()

    def _groups(self, texts: Sequence[str]) -> dict[Shape | None, _Group]:
        """Rows and constants by shape; under None those that take the ordinary way."""
        groups: dict[Shape | None, _Group] = {}
        for row, text in enumerate(texts):
            shaped = split_shape(text) if len(text) <= self._limits.bytes // 4 else None
            shape, constants = shaped or (None, [])
            group = groups.get(shape)
            if group is None:
                group = groups[shape] = _Group([], [])
            group.rows.append(row)
            group.constants.append(constants)
        return groups

    def _template(
        self, shape: Shape, text: str, id: str, constants: list[list[float | str]]
    ) -> Template | None:
        """The template of *shape*, compiled when it has been met a few times."""
        if shape in self._templates:
            return self._templates[shape]
        met = self._met.pop(shape, 0) + len(constants)
        if len(self._met) + len(self._templates) >= MOST_SHAPES:
            self._met.clear()
            self._templates.clear()
        if met < LEAST_COMPILED:
            self._met[shape] = met
            return None
        try:
            template = self._compiled(text, id, constants[0])
        except StentorError:  # it is this text that is wrong; the ordinary way says what
            return None
        self._templates[shape] = template
        return template

    def _compiled(self, text: str, id: str, constants: list[float | str]) -> Template | None:
        """The template of *text*, from which the schema learns; None where there is none."""
        read: list[float | str] = []

        def literal(slot: int, value: float | str) -> float | str:
            read.append(value)
            return in_slot(slot, value)

        check_and_learn(text, self._schema, where=f"subscription {id!r}", limits=self._limits)
        tree = parse(text, schema=self._schema, limits=self._limits, literal=literal)
        if not constants or read != constants:
            return None
        return compile_template(tree, len(constants))
