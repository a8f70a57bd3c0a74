"""Structs from the tables of a TOML file, key by key; every mistake is kept, with its location.

[plan], shards: expected a whole number of at least 1, got "two"

msgspec says what a key may be; a struct as a whole would be refused at its first mistake.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, cast, get_args, get_origin

import msgspec
from msgspec import Meta

from stentor.errors import SettingsError
from stentor.index.storage.folders import has_scheme, scheme_mistake
from stentor.pipeline.secrets import beside
from stentor.pipeline.storage.folder import StreamFolder, stream_folder

_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "millisecond": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?) ?([a-z]+)", re.ASCII)


def span_of(text: object) -> timedelta | None:
    """The span of time that *text* names; None where it names none.

    >>> span_of("90 seconds")
    datetime.timedelta(seconds=90)
    """
    parts = _SPAN.fullmatch(text.strip().lower()) if isinstance(text, str) else None
    if parts is None:
        return None
    unit = _UNITS.get(parts[2]) or _UNITS.get(parts[2].removesuffix("s"))
    try:
        return None if unit is None else float(parts[1]) * unit
    except OverflowError:
        return None


def _distance_of(value: object) -> int | timedelta | None:
    return value if type(value) is int and value >= 0 else span_of(value)


def _attributes_of(value: object) -> tuple[str, ...] | str | None:
    if value == "all":
        return "all"
    is_list = isinstance(value, list) and all(isinstance(one, str) and one for one in value)
    return tuple(value) if is_list and isinstance(value, list) else None


# What a key may be. `expected` is used in the sentence about what is not; `read`, where msgspec has
# no such type, gives the value or None.
_A_SPAN: Final = 'a span like "7 days" (ms, seconds, minutes, hours, days, weeks)'
Text = Annotated[str, Meta(pattern=r"\S", extra={"expected": "a text"})]
Texts = Annotated[tuple[str, ...], Meta(extra={"expected": "a list of texts"})]
#: Names of attributes, or "all".
Attributes = Annotated[
    tuple[str, ...] | str,
    Meta(extra={"expected": 'a list of attributes, or "all"', "read": _attributes_of}),
]
Truth = Annotated[bool, Meta(extra={"expected": "true or false"})]
Count = Annotated[int, Meta(ge=1, extra={"expected": "a whole number of at least 1"})]
Share = Annotated[float, Meta(ge=0, le=1, extra={"expected": "a share, 0 to 1"})]
Span = Annotated[timedelta, Meta(extra={"expected": _A_SPAN, "read": span_of})]
#: A whole number from 0, or a span of time.
Distance = Annotated[int | timedelta, Meta(extra={"expected": _A_SPAN, "read": _distance_of})]

Table = TypeVar("Table", bound=msgspec.Struct)


class TomlSection:
    """One table of the file; keys that are read are known, all others are mistakes."""

    def __init__(self, location: str, table: Any, mistakes: list[str]) -> None:
        self.location = location
        self._mistakes = mistakes
        self._known: set[str] = set()
        self._table: Mapping[str, Any] = {}
        if isinstance(table, Mapping):
            self._table = table
        elif table is not None:
            self.add_mistake(None, f"expected a table, got {shown(table)}")

    def add_mistake(self, key: str | None, sentence: str) -> None:
        """Keep a mistake of *key*, or of the section."""
        where = ", ".join(part for part in (self.location, key) if part)
        self._mistakes.append(f"{where}: {sentence}" if where else sentence)

    def has(self, key: str) -> bool:
        """Whether the section says anything of *key*."""
        return key in self._table

    def any(self, key: str) -> Any:
        """Whatever is under *key*; None where nothing is."""
        self._known.add(key)
        return self._table.get(key)

    def get(self, key: str, kind: Any) -> Any:
        """The value under *key* if it is of this *kind*; None where there is none, or another."""
        value = self.any(key)
        if value is None:
            return None
        kind, extra = _without_none(kind)
        if get_origin(kind) is Literal:
            return self.one_of(key, get_args(kind))
        try:
            found = extra["read"](value) if "read" in extra else msgspec.convert(value, kind)
        except msgspec.ValidationError:
            found = None
        if found is None:
            self.add_mistake(key, f"expected {extra['expected']}, got {shown(value)}")
        return found

    def one_of(self, key: str, choices: Collection[str]) -> str | None:
        """One of *choices*."""
        value = self.any(key)
        if value is None or (isinstance(value, str) and value in choices):
            return value
        expected = f"expected one of {', '.join(choices)}, got {shown(value)}"
        self.add_mistake(key, expected + nearest(value, choices))
        return None

    def read(self, table: type[Table]) -> Table:
        """All keys of *table*, a struct whose fields may be None; `name` is how TOML calls one."""
        keys = msgspec.structs.fields(table)
        found = {one.name: self.get(one.encode_name, one.type) for one in keys}
        return table(**{name: value for name, value in found.items() if value is not None})

    def folder(self, key: str, beside: Path) -> Path | None:
        """A folder of this machine; a relative one is *beside* the file."""
        value = cast("str | None", self.get(key, Text))
        if value is not None and has_scheme(value):
            self.add_mistake(key, scheme_mistake(value))
            return None
        return None if value is None else beside / value

    def address(self, key: str, beside: Path) -> Path | StreamFolder | None:
        """A folder of this machine or of a store; a relative one is *beside* the file."""
        value = cast("str | None", self.get(key, Text))
        if value is None or not has_scheme(value):
            return None if value is None else beside / value
        try:
            return stream_folder(value, key)
        except SettingsError as error:
            self.add_mistake(key, str(error).removeprefix(f"{key}: "))
            return None

    def inner(self, key: str, location: str | None = None) -> TomlSection:
        """The table under *key*, empty where there is none."""
        name = location or ", ".join(part for part in (self.location, key) if part)
        return TomlSection(name, self.any(key), self._mistakes)

    def at(self, location: str, table: Any) -> TomlSection:
        """The *table* as a section of the same file, at *location*."""
        return TomlSection(location, table, self._mistakes)

    def pairs(self) -> dict[str, Any]:
        """All that the section holds, whatever it is called."""
        self._known |= set(self._table)
        return dict(self._table)

    def kinds(self, choices: Collection[str]) -> dict[str, str]:
        """Attributes and what each is, one of *choices*: what a [schema] declares."""
        kinds = self.pairs()
        for name, kind in kinds.items():
            if kind not in choices:
                expected = f"expected one of {', '.join(choices)}, got {shown(kind)}"
                self.add_mistake(name, expected + nearest(kind, choices))
        if not kinds:
            self.add_mistake(None, 'expected attributes and their types, like price = "number"')
        return kinds

    def options(self, beside_file: Path) -> dict[str, str]:
        """Options of Spark by their own names; secrets in files are beside the file."""
        given = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in self.pairs().items()
        }
        return beside(given, beside_file)

    def require(self, key: str, what: str) -> None:
        """Keep a mistake where *key* says nothing at all; a wrong value was reported already."""
        if not self.has(key):
            self.add_mistake(key, f"missing; expected {what}")

    def close(self) -> None:
        """Keep a mistake for each key that was not read."""
        for key in self._table:
            if key not in self._known:
                known = f"; there are {', '.join(sorted(self._known))}"
                self.add_mistake(key, "there is no such key" + (nearest(key, self._known) or known))


def _without_none(kind: Any) -> tuple[Any, dict[str, Any]]:
    """*kind* without None, and what its `Meta` adds to it."""
    if type(None) in get_args(kind):
        [kind] = (one for one in get_args(kind) if one is not type(None))
    metas = [one for one in get_args(kind)[1:] if isinstance(one, Meta)]
    return kind, dict(metas[0].extra or {}) if metas else {}


def nearest(given: Any, choices: Collection[str]) -> str:
    """A hint at the one of *choices* that is most like *given*; empty where none is."""
    close = get_close_matches(given, choices, n=1) if isinstance(given, str) else []
    return f"; did you mean {close[0]}?" if close else ""


def shown(value: Any, width: int = 60) -> str:
    """*value* for a message, much as the file has it."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= width else text[:width] + "…"
