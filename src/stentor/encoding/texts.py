"""Expression texts → columns, by the shapes that they come in.

Texts of a shape that is met often are filled together (`template.py`), others by the shapes of
their predicates (`conjuncts.py`), the rest one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from stentor.encoding.conjuncts import Conjunctions, ConjunctTemplates, conjuncts
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
#: So many texts at once are worth filling predicate by predicate.
LEAST_CUT = 64

Shape = tuple[str, ...]
Constants = list[float | str]


class _Group(NamedTuple):
    """Texts of one shape: their rows and their constants."""

    rows: list[int]
    constants: list[Constants]


class _Lesson(NamedTuple):
    """When a text, or the first of a shape, may teach the schema."""

    row: int
    is_single: bool
    shape: Shape | None
    constants: Constants


class TextEncoder:
    """Expression texts → columns; remembers the shapes it has met."""

    def __init__(self, schema: Schema, limits: Limits = DEFAULT_LIMITS) -> None:
        self._schema = schema
        self._limits = limits
        self._met: dict[Shape, int] = {}  # how often, before a shape is compiled
        self._templates: dict[Shape, Template | None] = {}
        self._conjuncts = ConjunctTemplates(schema, limits)

    def encode(self, texts: Sequence[str], heads: SubscriptionHeads) -> EncodedSubscriptions:
        """The columns of *texts*, equal to those of the ordinary way, in the same order.

        Cost: a regular expression and a look-up for each text of a known shape.
        """
        groups = self._groups(texts)
        collected = SubscriptionCollector(self._schema, self._limits, heads)
        cut = Conjunctions(self._schema, heads) if len(texts) >= LEAST_CUT else None
        # What texts teach the schema, they teach in their order.
        ordinary = groups.pop(None, _Group([], []))
        lessons = [_Lesson(row, True, None, []) for row in ordinary.rows]
        lessons += [_Lesson(group.rows[0], False, shape, []) for shape, group in groups.items()]
        heapify(lessons)
        while lessons:
            row, is_single, shape, own = heappop(lessons)
            if is_single:
                self._add_single(row, texts[row], shape, own, collected, cut)
                continue
            assert shape is not None
            rows, constants = groups[shape]
            template = self._template(shape, texts[row], heads.ids[row], constants)
            left = dict(zip(rows, constants, strict=True))
            if template is not None:
                columns = [list(column) for column in zip(*constants, strict=True)]
                odd = collected.add_filled(template, rows, columns)
                left = {row: left[row] for row in odd}
            for row, own in left.items():
                heappush(lessons, _Lesson(row, True, shape, own))
        for row in [] if cut is None else collected.add_joined(cut.filled()):
            collected.add_ordinary(row, texts[row])
        return collected.encoded()

    def _add_single(
        self,
        row: int,
        text: str,
        shape: Shape | None,
        constants: Constants,
        collected: SubscriptionCollector,
        cut: Conjunctions | None,
    ) -> None:
        """Add one text, predicate by predicate where all of them are known, else by parsing it."""
        parts = [] if cut is None or shape is None else conjuncts(shape, constants)
        known = self._conjuncts.known(parts) if parts else None
        if cut is not None and known is not None:
            cut.add(row, known, parts)
        elif collected.add_ordinary(row, text):
            self._conjuncts.learn(parts)

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
        self, shape: Shape, text: str, id: str, constants: list[Constants]
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

    def _compiled(self, text: str, id: str, constants: Constants) -> Template | None:
        """The template of *text*, from which the schema learns; None where there is none."""
        read: Constants = []

        def literal(slot: int, value: float | str) -> float | str:
            read.append(value)
            return in_slot(slot, value)

        check_and_learn(text, self._schema, where=f"subscription {id!r}", limits=self._limits)
        tree = parse(text, schema=self._schema, limits=self._limits, literal=literal)
        if not constants or read != constants:
            return None
        return compile_template(tree, len(constants))
