"""Tables of a TOML file, read key by key; every mistake is kept, with its place.

[plan], shards: expected a whole number of at least 1, got "two"
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Final, TypeVar

Found = TypeVar("Found")

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


class Section:
    """One table of the file; what is asked of it is known, all else in it is a mistake."""

    def __init__(self, place: str, table: Any, mistakes: list[str]) -> None:
        self.place = place
        self._mistakes = mistakes
        self._known: set[str] = set()
        self._table: Mapping[str, Any] = {}
        if isinstance(table, Mapping):
            self._table = table
        elif table is not None:
            self.wrong(None, f"expected a table, got {shown(table)}")

    def wrong(self, key: str | None, sentence: str) -> None:
        """Keep a mistake of *key*, or of the section."""
        where = ", ".join(part for part in (self.place, key) if part)
        self._mistakes.append(f"{where}: {sentence}" if where else sentence)

    def has(self, key: str) -> bool:
        """Whether the section says anything of *key*."""
        return key in self._table

    def any(self, key: str) -> Any:
        """Whatever stands under *key*; None where nothing does."""
        self._known.add(key)
        return self._table.get(key)

    def inner(self, key: str, place: str | None = None) -> Section:
        """The table under *key*, empty where there is none."""
        name = place or ", ".join(part for part in (self.place, key) if part)
        return Section(name, self.any(key), self._mistakes)

    def at(self, place: str, table: Any) -> Section:
        """The *table* as a section of the same file, at *place*."""
        return Section(place, table, self._mistakes)

    def text(self, key: str) -> str | None:
        """A string that is not empty."""
        value = self.any(key)
        if value is None or (isinstance(value, str) and value.strip()):
            return value
        self.wrong(key, f"expected a text, got {shown(value)}")
        return None

    def one_of(self, key: str, choices: Collection[str]) -> str | None:
        """One of *choices*."""
        value = self.any(key)
        if value is None or (isinstance(value, str) and value in choices):
            return value
        expected = f"expected one of {', '.join(choices)}, got {shown(value)}"
        self.wrong(key, expected + nearest(value, choices))
        return None

    def truth(self, key: str) -> bool | None:
        """True or false."""
        value = self.any(key)
        if value is None or isinstance(value, bool):
            return value
        self.wrong(key, f"expected true or false, got {shown(value)}")
        return None

    def count(self, key: str) -> int | None:
        """A whole number of at least 1."""
        value = self.any(key)
        if value is None or (type(value) is int and value >= 1):
            return value
        self.wrong(key, f"expected a whole number of at least 1, got {shown(value)}")
        return None

    def share(self, key: str) -> float | None:
        """A number from 0 to 1."""
        value = self.any(key)
        if value is None:
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1:
            return float(value)
        self.wrong(key, f"expected a share, 0 to 1, got {shown(value)}")
        return None

    def span(self, key: str) -> timedelta | None:
        """A span of time like "7 days"."""
        value = self.any(key)
        if value is None:
            return None
        found = span_of(value) if isinstance(value, str) else None
        if found is None:
            units = "ms, seconds, minutes, hours, days, weeks"
            self.wrong(key, f'expected a span like "7 days" ({units}), got {shown(value)}')
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        value = self.any(key)
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return tuple(value)
        self.wrong(key, f"expected a list of texts, got {shown(value)}")
        return ()

    def pairs(self) -> dict[str, Any]:
        """All that the section holds, whatever it is called."""
        self._known |= set(self._table)
        return dict(self._table)

    def needs(self, key: str, found: Found | None, what: str) -> None:
        """Keep a mistake where *key* says nothing at all; one that is wrong was told already."""
        if found is None and not self.has(key):
            self.wrong(key, f"missing; expected {what}")

    def close(self) -> None:
        """Keep a mistake for each key that nobody asked for."""
        for key in self._table:
            if key not in self._known:
                known = f"; there are {', '.join(sorted(self._known))}"
                self.wrong(key, "there is no such key" + (nearest(key, self._known) or known))


def span_of(text: str) -> timedelta | None:
    """The span of time that *text* names; None where it names none.

    >>> span_of("90 seconds")
    datetime.timedelta(seconds=90)
    """
    parts = _SPAN.fullmatch(text.strip().lower())
    if parts is None:
        return None
    unit = _UNITS.get(parts[2]) or _UNITS.get(parts[2].removesuffix("s"))
    try:
        return None if unit is None else float(parts[1]) * unit
    except OverflowError:
        return None


def nearest(given: Any, choices: Collection[str]) -> str:
    """A hint at the one of *choices* that is most like *given*; empty where none is."""
    close = get_close_matches(given, choices, n=1) if isinstance(given, str) else []
    return f"; did you mean {close[0]}?" if close else ""


def shown(value: Any, width: int = 60) -> str:
    """*value* for a message, much as the file has it."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= width else text[:width] + "…"
