"""Bad records, kept: each with where it stood, why it was refused, and what it was."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from stentor.model.record import Record
from stentor.wire.json_text import to_json
from stentor.wire.records import record_to_dict
from stentor.wire.rejected import Place, Rejected, raw_text


class RejectedFile:
    """A file of JSON lines that comes into being with the first bad record.

    One that an earlier run left behind is emptied where there is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
        elif kind is None and self.path.is_file():
            self.path.write_text("")

    def add(self, source: Path, rejected: Rejected) -> None:
        """Write down one bad record of *source*."""
        if self._file is None:
            self._file = self.path.open("w", encoding="utf-8")
        self.count += 1
        line = {"source": str(source), **place_of(rejected)}
        line |= {"reason": rejected.reason, "raw": rejected.raw}
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")


def place_of(rejected: Rejected) -> dict[str, int]:
    """Where a bad record stood: its line and offset in a file, or its row in a table."""
    places = {"line": rejected.line, "offset": rejected.offset, "row": rejected.row}
    return {name: place for name, place in places.items() if place is not None}


def shown_place(source: Path, rejected: Rejected) -> str:
    """Where a bad record stood, for people: `file:line`, or `file, row n`."""
    if rejected.line is not None:
        return f"{source}:{rejected.line}"
    return f"{source}, row {rejected.row}" if rejected.row is not None else str(source)


def refused(record: Record, reason: str, place: Place) -> Rejected:
    """A record that was read, but that the engine refused."""
    return Rejected(reason, raw_text(to_json(record_to_dict(record))), *place)
