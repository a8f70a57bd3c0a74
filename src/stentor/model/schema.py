"""Which attributes exist, of which kind: declared, or learned from what comes.

One name has one kind. The code of an attribute never changes while it is known, so that columns
encoded earlier stay valid.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from stentor.errors import RecordError, SettingsError, TypeConflictError
from stentor.model.kind import Kind
from stentor.model.record import RECORD_FIELDS, field_not_attribute

#: A learned schema takes in no more names: strangers must not fill the memory …
MOST_ATTRIBUTES = 100_000
#: … of which so many may be of events alone: they must not take all the capacity.
MOST_UNASKED = 50_000
#: After so many new names it is time to look for names that nothing uses any more, or earlier, if
#: they take half of the capacity that was left.
MANY_NEW = 25_000
#: A new name, and a record that did not fit, pay for a look at so many uses.
LOOKED_AT = 100_000


class AttributeUse(NamedTuple):
    """A use of an attribute as a kind, and where; None says nothing about the kind."""

    name: str
    kind: Kind | None
    where: str


@dataclass(slots=True)
class Attribute:
    """What a schema knows of a name."""

    code: int
    kind: Kind | None
    where: str
    is_asked: bool  # whether a subscription has used it, not only events


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
        self.is_shared = False  # codes may be in columns that its engine does not know
        self._attributes: dict[str, Attribute] = {}
        self._free: list[int] = []  # codes of what was forgotten
        self.generation = 0  # how often something was forgotten
        self._unasked = 0
        self._kept = 0  # names that were needed at the last look
        self._effort = 0  # the uses that it looked at
        self._refused = 0  # records, since then, that did not fit

    @classmethod
    def declare(cls, kinds: Mapping[Any, str | Kind], *, plane: bool = False) -> Schema:
        """A closed schema: subscriptions use these names only, others in events are ignored."""
        schema = cls.closed(kinds, plane=plane)
        for name in schema:
            if name in RECORD_FIELDS:
                raise SettingsError("; ".join(field_not_attribute(name)))
        return schema

    @classmethod
    def closed(cls, kinds: Any, *, plane: bool = False) -> Schema:
        """The same for the attributes that data have: nested ones may have the name of a field."""
        if not isinstance(kinds, Mapping):
            raise SettingsError(f"kinds are a dict by name, got {type(kinds).__name__}")
        schema = cls(plane=plane)
        for name, kind in kinds.items():
            if not isinstance(name, str) or not name:
                raise SettingsError(f"an attribute's name is a text, got {name!r}")
            try:
                known = Kind(kind)
            except (ValueError, TypeError):
                raise SettingsError(
                    f"attribute {name!r} has the unknown type {kind!r}; "
                    f"the types are {', '.join(Kind)}"
                ) from None
            code = len(schema._attributes)
            schema._attributes[name] = Attribute(code, known, "the schema", is_asked=True)
        schema.declared = True
        return schema

    def __len__(self) -> int:
        return len(self._attributes)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._attributes))  # another thread may teach it meanwhile

    def __reversed__(self) -> Iterator[str]:
        """The names, those that it learned last first."""
        return reversed(self._attributes)

    def __contains__(self, name: object) -> bool:
        return name in self._attributes

    def __repr__(self) -> str:
        kinds = ", ".join(f"{name}: {self.kind(name) or '?'}" for name in self)
        return f"Schema({kinds}{', plane' if self.plane else ''})"

    @property
    def by_name(self) -> Mapping[str, Attribute]:
        """All attributes, as they are now: whoever looks many up takes its `get`."""
        return self._attributes

    def attribute(self, name: str) -> Attribute | None:
        """All that is known of *name*, in one look-up; its kind may become known later."""
        return self._attributes.get(name)

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
        close = get_close_matches(name, list(self._attributes), n=1)
        return close[0] if close else None

    def __bool__(self) -> bool:
        return True  # a schema that has learned nothing yet is still a schema

    def learn(self, uses: Sequence[AttributeUse], *, is_asked: bool = True) -> None:
        """Take in all *uses*, or none of them where one conflicts with an earlier use.

        *is_asked* says whether a subscription uses them, and not only an event.
        """
        for use in self.check(uses, is_asked=is_asked).values():
            known = self._attributes.get(use.name)
            if known is None:
                code = self._free.pop() if self._free else len(self._attributes)
                self._attributes[use.name] = Attribute(code, use.kind, use.where, is_asked)
                self._unasked += not is_asked
            elif known.kind is None:
                known.kind, known.where = use.kind, use.where
        if is_asked and self._unasked:
            for use in uses:
                known = self._attributes.get(use.name)
                if known is not None and not known.is_asked:
                    known.is_asked = True
                    self._unasked -= 1

    def check(
        self, uses: Sequence[AttributeUse], *, is_asked: bool = True
    ) -> dict[str, AttributeUse]:
        """What *uses* would teach; a TypeConflictError where one conflicts with another.

        A declared schema learns no names.
        """
        new: dict[str, AttributeUse] = {}
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
        if new:
            self._check_capacity(sum(name not in self._attributes for name in new), is_asked)
        return new

    def _check_capacity(self, more: int, is_asked: bool) -> None:
        if len(self._attributes) + more > MOST_ATTRIBUTES:
            what = f"{MOST_ATTRIBUTES:,} attributes"
        elif not is_asked and more and self._unasked + more > MOST_UNASKED:
            what = f"{MOST_UNASKED:,} attributes that no subscription asks for"
        else:
            return
        self._refused += 1
        raise RecordError(
            f"the schema would have more than {what}; declare those that matter, and others are "
            "ignored"
        )

    @property
    def is_crowded(self) -> bool:
        """Whether it has learned so much that some of it may well be forgotten."""
        new = len(self._attributes) - self._kept
        is_due = self._refused or new > min(MANY_NEW, (MOST_UNASKED - self._unasked + new) // 2)
        is_paid = (new + self._refused) * LOOKED_AT >= self._effort
        return not self.declared and bool(is_due) and is_paid

    def forget_all_but(self, asked: Collection[int], held: Collection[int], effort: int) -> None:
        """Forget the attributes whose codes no subscription (*asked*) and no event (*held*) has.

        Their codes go to names that come later. *effort* is how many uses were looked at.
        """
        gone = []
        for name, known in self._attributes.items():
            known.is_asked = known.code in asked
            if not known.is_asked and known.code not in held:
                gone.append(name)
        self._free += [self._attributes.pop(name).code for name in gone]
        self.generation += 1
        self._unasked = sum(not known.is_asked for known in self._attributes.values())
        self._kept, self._effort, self._refused = len(self._attributes), effort, 0

    def grow(self, declared: Schema | Mapping[str, str]) -> list[str]:
        """Take in attributes that are *declared* now and are not known yet; their names.

        What is known stays, under its code. A SettingsError where one has another type now.
        """
        new = Schema.declare(declared) if isinstance(declared, Mapping) else declared
        if not isinstance(new, Schema):
            raise SettingsError('a schema is a Schema or a dict like {"price": "number"}')
        if isinstance(declared, Schema) and new.plane != self.plane:
            raise SettingsError("what is kept is on a globe or on a plane, and stays there")
        for name in new:
            kind, known = new.kind(name), self.kind(name)
            if known is not None and kind is not None and kind is not known:
                raise SettingsError(
                    f"attribute {name!r} is declared as a {kind} now, and what is kept has it as a "
                    f"{known} (from {self.where(name)}); to go on, declare the {kind} under "
                    f"another name, or begin a new folder and subscribe again"
                )
        grown = [name for name in new if self.kind(name) is None]
        was_declared, self.declared = self.declared, False
        try:
            self.learn([AttributeUse(name, new.kind(name), new.where(name)) for name in grown])
        finally:
            self.declared = was_declared or new.declared
        return grown

    def frozen(self) -> Schema:
        """The same attributes, now and later, in a schema that checks but never learns."""
        view = _Unteachable(plane=self.plane)
        view.declared, view._attributes = self.declared, self._attributes
        return view

    @property
    def code_count(self) -> int:
        """All codes of attributes are below it."""
        return len(self._attributes) + len(self._free)

    @property
    def by_code(self) -> list[str]:
        """The names of all codes; no attribute has an empty one, so it means a free code."""
        names = [""] * self.code_count
        for name, known in self._attributes.items():
            names[known.code] = name
        return names

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form, from which `from_dict` makes an equal schema: attributes by code."""
        items = list(self._attributes.items())  # others may be learning
        last = max((known.code for _, known in items), default=-1)
        attributes: list[dict[str, Any]] = [_FREE] * (last + 1)
        for name, known in items:
            attributes[known.code] = {"name": name, "kind": known.kind, "where": known.where}
        return {
            "plane": self.plane,
            "declared": self.declared,
            "attributes": attributes,
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Schema:
        """The schema that `to_dict` wrote; a SettingsError where it wrote none of this."""
        try:
            return cls._from_dict(saved)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise SettingsError(f"this is no schema: {type(error).__name__}: {error}") from None

    @classmethod
    def _from_dict(cls, saved: Mapping[str, Any]) -> Schema:
        schema = cls(plane=bool(saved["plane"]))
        schema.declared = bool(saved["declared"])
        for code, entry in enumerate(saved["attributes"]):
            kind = Kind(entry["kind"]) if entry["kind"] else None
            if entry["name"] in schema._attributes:
                raise ValueError(f"attribute {entry['name']!r} stands twice")
            if entry["name"]:
                known = Attribute(code, kind, entry["where"], is_asked=True)
                schema._attributes[entry["name"]] = known
            else:
                schema._free.append(code)
        return schema


#: Instead of an attribute whose code is free: no attribute has an empty name.
_FREE: Final = {"name": "", "kind": None, "where": ""}


class _Unteachable(Schema):
    """What a question is read with: it must change nothing."""

    def learn(self, uses: Sequence[AttributeUse], *, is_asked: bool = True) -> None:
        self.check(uses, is_asked=is_asked)

    def _check_capacity(self, more: int, is_asked: bool) -> None:
        """It needs none."""
