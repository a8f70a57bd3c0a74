"""Texts of ever new shapes → columns, predicate by predicate.

Few texts may share a shape, but the predicates that AND joins in them come in few shapes again.
Each of these is a template of its own: it is filled for all texts that have it, and the predicates
of a text are put together. What does not come apart so (OR, two predicates on one attribute, a
constant that needs a closer look) takes the ordinary way; both ways give equal columns.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from stentor.encoding.columns import Int64, SubscriptionColumns, read_only_columns
from stentor.encoding.ragged import concatenate, take
from stentor.encoding.slots import in_slot
from stentor.encoding.template import SubscriptionHeads, Template, compile_template
from stentor.errors import StentorError
from stentor.language.limits import Limits
from stentor.language.parser import parse
from stentor.language.predicates import size_of
from stentor.language.tree import predicates_of, tree_depth
from stentor.model import Schema

Shape = tuple[str, ...]
Constants = list[float | str]
Conjunct = tuple[Shape, Constants]
_Key = tuple[Shape, tuple[type, ...]]

#: Shapes of predicates are remembered up to this many.
MOST_CONJUNCTS: Final = 16_384
#: A list or words of this size count as more than one predicate against the limits.
_LARGE: Final = 100
_MOST_WORDS: Final = 8
_PLAIN_WORD: Final = re.compile("[A-Za-z0-9]+").fullmatch
# Only what every reader takes for space: other characters stay, and are told as mistakes.
_JOINT = re.compile(r"[ \t\n\r]*\b(AND|BETWEEN)\b[ \t\n\r]*", re.IGNORECASE)


def conjuncts(shape: Shape, constants: Constants) -> list[Conjunct]:
    """The shape of a text cut at each AND that is not BETWEEN's, with each part's constants.

    >>> conjuncts(("a BETWEEN ", " AND ", " and b = ", ""), [1.0, 2.0, "x"])
    [(('a BETWEEN ', ' AND ', ''), [1.0, 2.0]), (('b = ', ''), ['x'])]
    >>> conjuncts(("has_all(text, ", ")"), ["two words"])
    [(('has_all(text, ', ', ', ')'), ['two', 'words'])]
    """
    found: list[Conjunct] = []
    part: list[str] = []
    first = between = 0
    for number, text in enumerate(shape):
        words = _split(text)
        piece = words[0]
        for joint, following in zip(words[1::2], words[2::2], strict=True):
            if joint == "AND" and not between:
                found.append(_words_apart((*part, piece), constants[first:number]))
                part, first, piece = [], number, following
            else:
                between += 1 if joint == "BETWEEN" else -1
                piece = f"{piece} {joint} {following}"
        part.append(piece)
    found.append(_words_apart(tuple(part), constants[first:]))
    return found


def _words_apart(shape: Shape, constants: Constants) -> Conjunct:
    """Plain words of one string of has_all as strings of their own, which mean the same."""
    if len(constants) != 1 or not shape[0].startswith("has_all("):
        return shape, constants
    words = str(constants[0]).split(" ")
    if not 1 < len(words) <= _MOST_WORDS or not all(map(_PLAIN_WORD, words)):
        return shape, constants
    return (shape[0], *[", "] * (len(words) - 1), shape[1]), [*words]


@lru_cache(maxsize=MOST_CONJUNCTS)
def _split(text: str) -> tuple[str, ...]:
    """What stands between the joints of *text*, and the joints, in turns."""
    words = _JOINT.split(text)
    words[1::2] = [joint.upper() for joint in words[1::2]]
    return tuple(words)


class _Predicate(NamedTuple):
    """The template of a single predicate."""

    attribute: str
    template: Template


class ConjunctTemplates:
    """Templates of single predicates, by shape; None where a shape has none."""

    def __init__(self, schema: Schema, limits: Limits) -> None:
        self._schema = schema
        self._limits = limits
        self._known: dict[_Key, _Predicate | None] = {}

    def known(self, parts: list[Conjunct]) -> list[_Predicate] | None:
        """The templates of all *parts*, each on an attribute of its own; else None."""
        known = self._known
        found = [known.get(_key(*part)) for part in parts]
        fitting = [one for one in found if one is not None]
        if len(fitting) < len(found):
            return None
        if len(found) > min(self._limits.predicates, self._limits.expanded_predicates):
            return None
        return fitting if len({one.attribute for one in fitting}) == len(fitting) else None

    def learn(self, parts: list[Conjunct]) -> None:
        """Compile *parts* of a text whose attributes the schema has learned."""
        if len(self._known) + len(parts) > MOST_CONJUNCTS:
            self._known.clear()
        for shape, constants in parts:
            key = _key(shape, constants)
            if key not in self._known:
                self._known[key] = self._compiled(shape, constants)

    def _compiled(self, shape: Shape, constants: Constants) -> _Predicate | None:
        read: Constants = []

        def literal(slot: int, value: float | str) -> float | str:
            read.append(value)
            return in_slot(slot, value)

        written = [f"'{one}'" if isinstance(one, str) else repr(one) for one in constants]
        text = shape[0] + "".join(a + b for a, b in zip(written, shape[1:], strict=True))
        try:
            tree = parse(text, schema=self._schema, limits=self._limits, literal=literal)
        except StentorError:  # it is part of something else
            return None
        predicates = list(predicates_of(tree))
        is_whole = read == constants and tree_depth(tree) < self._limits.depth
        if not is_whole or len(predicates) != 1 or size_of(predicates[0]) >= _LARGE:
            return None
        template = compile_template(tree, len(constants))
        return None if template is None else _Predicate(predicates[0].attribute, template)


def _key(shape: Shape, constants: Constants) -> _Key:
    """What a template is known by: `a IN (?)` of strings is another than of numbers."""
    return shape, tuple(map(type, constants))


class Conjunctions:
    """Texts that known templates make up, until all of them are filled at once."""

    def __init__(self, schema: Schema, heads: SubscriptionHeads) -> None:
        self._schema = schema
        self._heads = heads
        self._uses: dict[int, tuple[_Predicate, list[int], list[Constants]]] = {}

    def add(self, row: int, templates: list[_Predicate], parts: list[Conjunct]) -> None:
        """Let *row* be the conjunction of *parts*, which have *templates*."""
        for one, (_, constants) in zip(templates, parts, strict=True):
            use = self._uses.get(id(one))
            if use is None:
                use = self._uses[id(one)] = one, [], []
            use[1].append(row)
            use[2].append(constants)

    def filled(self) -> tuple[SubscriptionColumns, Int64, list[int]] | None:
        """The columns of all rows that fit, which these are, and which do not; None of none."""
        if not self._uses:
            return None
        columns, rows, ranks, odd = [], [], [], set[int]()
        names = sorted({one.attribute for one, _, _ in self._uses.values()})
        rank_of = {name: rank for rank, name in enumerate(names)}
        for one, used, constants in self._uses.values():
            at = np.array(used, np.int64)
            given = [list(column) for column in zip(*constants, strict=True)]
            position, until = self._heads.position[at], self._heads.until[at]
            filled, fitting = one.template.fill(given, position, until, self._schema)
            columns.append(filled)
            rows.append(at[fitting])
            ranks.append(np.full(len(fitting), rank_of[one.attribute]))
            odd.update(np.delete(at, fitting).tolist())
        row = np.concatenate(rows)
        order = np.lexsort((np.concatenate(ranks), row))
        if odd:
            order = order[~np.isin(row[order], list(odd))]
        return *_joined(take(concatenate(columns), order), row[order]), sorted(odd)


def _joined(columns: SubscriptionColumns, row: Int64) -> tuple[SubscriptionColumns, Int64]:
    """*columns* of one predicate each, those of one *row* as one subscription; and the rows."""
    first = np.flatnonzero(np.diff(row, prepend=-1))
    joined = columns._replace(
        alternative_start=np.arange(len(first) + 1),
        predicate_start=np.append(first, len(row)),
        position=columns.position.reshape(-1, 2)[first].ravel(),
        until=columns.until[first],
    )
    return read_only_columns(joined), row[first]
