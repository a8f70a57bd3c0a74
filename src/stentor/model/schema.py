"""Which attributes exist, of which kind: declared, or learned from what comes.

One name has one kind. A code is an attribute's place in the order in which names became known; it
never changes, so that columns encoded earlier stay valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

from stentor.errors import RecordError, SettingsError, TypeConflictError
from stentor.model.kind import Kind

#: A learned schema takes in no more names: strangers must not fill the memory.
MOST_ATTRIBUTES = 100_000


class Use(NamedTuple):
    """A place where an attribute is used as a kind; None says nothing about the kind."""

    name: str
    kind: Kind | None
    where: str


@dataclass(slots=True)
class _Attribute:
    code: int
    kind: Kind | None
    where: str


class Schema:
    """Names to kinds and codes.

    >>> schema = Schema.declare({"price": "number", "loc": "point"})
    >>> schema.kind("price"), schema.code("loc")
    (<Kind.NUMBER: 'number'>, 1)
    >>> Schema().declared
    False
    """

    def __init__(self, *, plane: bool = False) -> None:
        self.plane = plane
        self.declared = False
        self._attributes: dict[str, _Attribute] = {}

    @classmethod
    def declare(cls, kinds: Mapping[str, str | Kind], *, plane: bool = False) -> Schema:
        """A closed schema: subscriptions use these names only, others in events are ignored."""
        schema = cls(plane=plane)
        for name, kind in kinds.items():
            try:
                known = Kind(kind)
            except ValueError:
                raise SettingsError(
                    f"attribute {name!r} has the unknown type {kind!r}; "
                    f"the types are {', '.join(Kind)}"
                ) from None
            schema._attributes[name] = _Attribute(len(schema._attributes), known, "the schema")
        schema.declared = True
        return schema

    def __len__(self) -> int:
        return len(self._attributes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __contains__(self, name: object) -> bool:
        return name in self._attributes

    def __repr__(self) -> str:
        kinds = ", ".join(f"{name}: {self.kind(name) or '?'}" for name in self)
        return f"Schema({kinds}{', plane' if self.plane else ''})"

    def kind(self, name: str) -> Kind | None:
        """The kind of *name*; None where it is not known (yet)."""
        known = self._attributes.get(name)
        return known.kind if known else None

    def where(self, name: str) -> str:
        """Where the kind of *name* was first said, for messages."""
        known = self._attributes.get(name)
        return known.where if known else "nowhere"

    def code(self, name: str) -> int:
        """The code of *name*, −1 where it is not known."""
        known = self._attributes.get(name)
        return known.code if known else -1

    def nearest(self, name: str) -> str | None:
        """The known name most like *name*, if any is."""
        close = get_close_matches(name, self._attributes, n=1)
        return close[0] if close else None

    def __bool__(self) -> bool:
        return True  # a schema that has learned nothing yet is still a schema

    def learn(self, uses: Iterable[Use]) -> None:
        """Take in all *uses*, or none of them where one conflicts with an earlier use."""
        for use in self.check(uses).values():
            known = self._attributes.get(use.name)
            if known is None:
                self._attributes[use.name] = _Attribute(len(self._attributes), use.kind, use.where)
            elif known.kind is None:
                known.kind, known.where = use.kind, use.where

    def check(self, uses: Iterable[Use]) -> dict[str, Use]:
        """What *uses* would teach; a TypeConflictError where one conflicts with another.

        A declared schema learns no names.
        """
        new: dict[str, Use] = {}
        for use in uses:
            known = self._attributes.get(use.name)
            if known is None and self.declared:
                continue
            kind, where = (known.kind, known.where) if known else (None, "")
            if use.name in new and kind is None:
                kind, where = new[use.name].kind, new[use.name].where
            if kind is not None and use.kind is not None and kind is not use.kind:
                raise TypeConflictError(
                    f"attribute {use.name!r} is a {use.kind} in {use.where}, "
                    f"but a {kind} in {where}",
                    hint="one name has one type: rename one of them, or declare the schema",
                )
            is_open = known is None or known.kind is None
            if is_open and (use.name not in new or new[use.name].kind is None):
                new[use.name] = use
        names = len(self._attributes) + sum(name not in self._attributes for name in new)
        if new and names > MOST_ATTRIBUTES:
            raise RecordError(
                f"the schema would have more than {MOST_ATTRIBUTES:,} attributes; declare those "
                "that matter, and others are ignored"
            )
        return new

    def unteachable(self) -> Schema:
        """The same attributes, now and later, in a schema that checks but never learns."""
        view = _Unteachable(plane=self.plane)
        view.declared, view._attributes = self.declared, self._attributes
        return view

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form, from which `from_dict` makes an equal schema."""
        return {
            "plane": self.plane,
            "declared": self.declared,
            "attributes": [
                {"name": name, "kind": known.kind, "where": known.where}
                for name, known in self._attributes.items()
            ],
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Schema:
        """The schema that `to_dict` wrote."""
        schema = cls(plane=bool(saved["plane"]))
        schema.declared = bool(saved["declared"])
        for code, entry in enumerate(saved["attributes"]):
            kind = Kind(entry["kind"]) if entry["kind"] else None
            schema._attributes[entry["name"]] = _Attribute(code, kind, entry["where"])
        return schema


class _Unteachable(Schema):
    """What a question is read with: it must change nothing."""

    def learn(self, uses: Iterable[Use]) -> None:
        self.check(uses)
