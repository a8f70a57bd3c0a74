"""Lines of CSV → cells; a cell's text, and the kind that it is declared as → a raw value.

What the raw value then is, and whether it is any, is said where all are read (`model/values`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Any, Final

from stentor.errors import RecordError, StentorError
from stentor.model import Kind
from stentor.model.values.string import describe
from stentor.model.values.time import read_time
from stentor.wire.json_text import from_json

_WHOLE: Final = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER: Final = re.compile(
    r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|nan|inf(inity)?)",
    re.ASCII | re.IGNORECASE,
)
_OBJECTS: Final = (Kind.NUMBER, Kind.TIMESTAMP, Kind.POINT, Kind.SET)

#: Cells of CSV are bounded like lines, not by a bound of their own.
csv.field_size_limit(2**31 - 1)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the cells of a line of CSV are separated."""

    separator: str = ","
    quote: str = '"'
    escape: str = '"'
    null: str = ""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Dialect:
        """The dialect that *options* of Spark's reader name."""
        given = {name.lower(): value for name, value in options.items()}
        return cls(
            given.get("sep", given.get("delimiter", ",")),
            given.get("quote", '"'),
            given.get("escape", '"'),
            given.get("nullvalue", ""),
        )

    def cells(self, line: str) -> list[str]:
        """The cells of *line*, which may have several lines between quotes."""
        if self.escape not in ("", self.quote) and self.quote and self.escape in line:
            return self._escaped_cells(line)
        try:
            rows = csv.reader(
                StringIO(line, newline=""),
                delimiter=self.separator,
                quotechar=self.quote or None,
                quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            )
            return [cell for row in rows for cell in row]
        except (csv.Error, TypeError) as error:
            raise RecordError(f"not CSV: {error}") from None

    def opens(self, line: str) -> bool:
        """Whether quotes are open after *line* where they were closed before it, or the reverse."""
        if not self.quote:
            return False
        if self.escape not in ("", self.quote):
            line = line.replace(self.escape * 2, "").replace(self.escape + self.quote, "")
        return line.count(self.quote) % 2 == 1

    def _escaped_cells(self, line: str) -> list[str]:
        """The same where quotes have an escape of their own, which means nothing elsewhere.

        As Spark reads them: before a quote or itself, between quotes, it is left out.
        """
        separator, quote, escape = map(re.escape, (self.separator, self.quote, self.escape))
        quoted = f"{quote}((?:{escape}[{quote}{escape}]|(?!{quote}).)*+){quote}"
        cell = re.compile(f"(?:{quoted}|((?:(?!{separator}).)*+))(?:{separator}|$)", re.DOTALL)
        cells, at = [], 0
        while at <= len(line):
            found = cell.match(line, at)
            assert found is not None  # without quotes it is anything up to the next separator
            text = found[2]
            if text is None:
                text = re.sub(f"{escape}([{quote}{escape}])", r"\1", found[1])
            cells.append(text)
            if found.end() == len(line) and not found[0].endswith(self.separator):
                break
            at = found.end()
        return cells


def read_cell(cell: str, kind: Kind | None, name: str) -> Any:
    """The value of the text of a *cell*, in a column of this *kind* called *name*."""
    opening = cell.lstrip()[:1]
    if (opening == "{" and kind in _OBJECTS) or (opening == "[" and kind is Kind.POINT):
        return read_json(cell, name)
    if kind is Kind.NUMBER:
        if not _NUMBER.fullmatch(cell.strip()):
            raise RecordError(f"expected a number, got {describe(cell)}", field=name)
        return _number(cell)
    if kind is Kind.BOOLEAN:
        truth = {"true": True, "false": False}.get(cell.strip().lower())
        if truth is None:
            raise RecordError(f"expected true or false, got {describe(cell)}", field=name)
        return truth
    return cell


def read_number_or_text(cell: str) -> int | float | str:
    """The number that *cell* is, if it is one; else its text."""
    return _number(cell) if _NUMBER.fullmatch(cell) else cell


def is_whole(cell: str) -> bool:
    """Whether *cell* is the text of an integer."""
    return _WHOLE.fullmatch(cell) is not None


def kind_of_cells(cells: Iterable[str]) -> Kind:
    """Of which kind a column of CSV is: the first that all of its *cells* can be read as.

    >>> kind_of_cells(["1", "2.5"]), kind_of_cells(["2026-01-01"]), kind_of_cells(["1", "x"])
    (<Kind.NUMBER: 'number'>, <Kind.TIMESTAMP: 'timestamp'>, <Kind.STRING: 'string'>)
    """
    given = [cell.strip() for cell in cells]
    if all(_NUMBER.fullmatch(cell) for cell in given):
        return Kind.NUMBER
    if all(cell.lower() in ("true", "false") for cell in given):
        return Kind.BOOLEAN
    return Kind.TIMESTAMP if all(map(_is_moment, given)) else Kind.STRING


def _is_moment(cell: str) -> bool:
    try:
        return read_time(cell, "") is not None
    except StentorError:
        return False


def _number(cell: str) -> int | float:
    cell = cell.strip()
    return int(cell) if _WHOLE.fullmatch(cell) else float(cell)


def read_json(cell: str, name: str) -> Any:
    """The value of the JSON that a *cell* holds, in a column called *name*."""
    try:
        return from_json(cell.encode("utf-8", "surrogatepass"))
    except RecordError:
        raise RecordError(f"expected JSON, got {describe(cell)}", field=name) from None
