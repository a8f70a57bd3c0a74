"""What every structure inherits: the tables of what it holds, and hooks for what changes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Self

from stentor.encoding.columns import EventColumns, Float64, Int64, SubscriptionColumns
from stentor.encoding.ragged import take
from stentor.index.contract import Index
from stentor.index.table import ALWAYS, EventTable, SubscriptionTable
from stentor.model import Point


class Structure(Index):
    """An index over its own tables.

    A structure answers `match`, `top` and `match_back`, and keeps what it builds beside the tables
    true to them in the hooks at the end.
    """

    def __init__(self) -> None:
        self.subscriptions = SubscriptionTable()
        self.live = EventTable()

    @classmethod
    def build(cls, columns: SubscriptionColumns) -> Self:
        index = cls()
        index.insert(columns)
        return index

    def save(self, folder: Path) -> None:
        """Write what `open` needs beyond the subscriptions' columns; nothing by default."""

    @classmethod
    def open(cls, folder: Path, columns: SubscriptionColumns) -> Self:
        """A read-only index: rows can be removed, and everything else needs a layer over it."""
        index = cls()
        index.subscriptions = SubscriptionTable.over(columns)
        index._opened(folder)
        return index

    @classmethod
    def over_events(cls, events: EventColumns) -> Self:
        """An index of live events alone, of which nothing is copied: to be matched backwards."""
        index = cls()
        index.live = EventTable.over(events)
        index._held(0)
        return index

    def insert(self, columns: SubscriptionColumns, since: int | Int64 = ALWAYS) -> int:
        first = self.subscriptions.append(columns, since)
        self._inserted(first)
        return first

    def close(self, rows: Int64, seq: Int64) -> None:
        self.subscriptions.close(rows, seq)

    def remove(self, rows: Int64) -> None:
        self.subscriptions.hide(rows)
        self._removed(rows)

    def move(self, rows: Int64, positions: Float64) -> None:
        self.subscriptions.move(rows, positions)
        self._moved(rows)

    def hold(self, events: EventColumns) -> int:
        first = self.live.append(events)
        self._held(first)
        return first

    def drop(self, rows: Int64) -> None:
        self.live.hide(rows)
        self._dropped(rows)

    @property
    def count(self) -> int:
        return self.subscriptions.count

    def standing_rows(self) -> Int64:
        return self.subscriptions.standing_rows()

    def stands(self, row: int) -> bool:
        return self.subscriptions.stands(row)

    def until(self, rows: Int64) -> Int64:
        return self.subscriptions.columns.until[rows]

    def position(self, row: int) -> Point | None:
        x, y = self.subscriptions.columns.position[2 * row : 2 * row + 2].tolist()
        return None if math.isnan(x) else Point(x, y)

    def columns_of(self, rows: Int64) -> SubscriptionColumns:
        return take(self.subscriptions.columns, rows)

    def stats(self) -> dict[str, Any]:
        return {
            "index": self.name,
            "subscriptions": self.subscriptions.live_count,
            "live events": self.live.live_count,
            "bytes": self.subscriptions.nbytes + self.live.nbytes,
        }

    def check(self) -> None:
        self.subscriptions.check()
        self.live.check()

    # What a structure hooks into; each is called after the tables have changed.
    def _inserted(self, first: int) -> None: ...
    def _removed(self, rows: Int64) -> None: ...
    def _moved(self, rows: Int64) -> None: ...
    def _held(self, first: int) -> None: ...
    def _dropped(self, rows: Int64) -> None: ...
    def _opened(self, folder: Path) -> None: ...
