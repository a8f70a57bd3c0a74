"""What brokers learn of attributes: each announces it, and where two disagree both say so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from stentor.errors import SettingsError, StentorError, TypeConflictError
from stentor.model import Schema
from stentor.model.schema import AttributeUse

#: Stands between where an attribute was first used and the broker to which that came.
_AT: Final = " at the broker "


class Learning:
    """What the schema of the broker *home* has learned, and what is news of it."""

    def __init__(self, home: str, schema: Schema) -> None:
        self._home, self._schema = home, schema
        #: What neighbours use otherwise than this broker does, by neighbour and attribute.
        self.conflicts: dict[tuple[str, str], StentorError] = {}
        self._known = 0  # attributes that are no news
        self._open: list[str] = []  # those of them that have no kind yet

    def news(self) -> tuple[AttributeUse, ...]:
        """The attributes that are new since the last time, or whose kind is."""
        fresh = [name for name in self._open if self._schema.kind(name) is not None]
        if len(self._schema) > self._known:
            fresh += islice(self._schema, self._known, None)
            self._known = len(self._schema)
        if fresh:
            changed = set(fresh)
            self._open = [name for name in self._open if name not in changed]
            self._open += [name for name in fresh if self._schema.kind(name) is None]
        return self._uses(fresh)

    def all(self) -> tuple[AttributeUse, ...]:
        """Every attribute."""
        return self._uses(self._schema)

    def _uses(self, names: Iterable[str]) -> tuple[AttributeUse, ...]:
        return tuple(
            AttributeUse(name, self._schema.kind(name), self._where(name)) for name in names
        )

    def _where(self, name: str) -> str:
        where = self._schema.where(name)
        return where if _AT in where else f"{where}{_AT}{self._home!r}"

    def learn(self, source: str, learned: Iterable[AttributeUse]) -> dict[str, StentorError]:
        """Take in what *source* has *learned*; by attribute what cannot be, and changes nothing."""
        mistakes: dict[str, StentorError] = {}
        for use in learned:
            try:
                self._schema.learn([use], is_asked=not use.where.startswith("event "))
            except TypeConflictError:
                mistakes[use.name] = self._conflict(source, use)
            except StentorError as error:  # there are too many
                mistakes[use.name] = error
        self.conflicts |= {(source, name): one for name, one in mistakes.items()}
        return mistakes

    def forget_conflicts(self, source: str) -> None:
        """Forget what *source* used otherwise."""
        for key in [key for key in self.conflicts if key[0] == source]:
            del self.conflicts[key]

    def _conflict(self, source: str, use: AttributeUse) -> TypeConflictError:
        return TypeConflictError(
            f"the brokers {self._home!r} and {source!r} use the attribute {use.name!r} "
            f"differently: it is a {self._schema.kind(use.name)} in {self._where(use.name)}, "
            f"but a {use.kind} in {use.where}",
            hint="one name has one type: rename one of them, or declare the schema of all brokers",
        )


def joined_schema(given: Schema | None, stored: Mapping[str, Schema | None]) -> Schema:
    """*given*, or a new schema, and what the stores of brokers know.

    A declared one is the user's word, and knows all. A SettingsError names every attribute that
    two stores know differently.
    """
    found = {name: schema for name, schema in sorted(stored.items()) if schema is not None}
    if given is not None and given.declared:
        return given
    if given is None and found and all(schema.declared for schema in found.values()):
        first = next(iter(found.values()))
        if all(schema.to_dict() == first.to_dict() for schema in found.values()):
            return first
    schema = Schema(plane=_plane(found)) if given is None else given
    homes: dict[str, str] = {}  # the broker whose store knew an attribute first
    mistakes: list[str] = []
    for broker, known in found.items():
        for use in Learning(broker, known).all():
            home = homes.setdefault(use.name, broker)
            mistakes += map(str, Learning(home, schema).learn(broker, [use]).values())
    if mistakes:
        raise SettingsError("\n".join(mistakes))
    return schema


def _plane(found: Mapping[str, Schema]) -> bool:
    planes = {schema.plane: broker for broker, schema in found.items()}
    if len(planes) > 1:
        raise SettingsError(
            f"the broker {planes[True]!r} is on a plane, and {planes[False]!r} on the globe"
        )
    return True in planes
