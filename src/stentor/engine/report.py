"""What a step reports: record by record, or as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from html import escape
from typing import Any, NamedTuple, Self, overload

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import Int64, ScoredPairs
from stentor.engine.apply import StepResult, Unchanged
from stentor.engine.ids import StringStore
from stentor.engine.safe_region import SafeRegion
from stentor.errors import StentorError
from stentor.model import Changes

#: What one record led to: who wants the event, how an answer changed, or what was wrong.
Answer = list[str] | Changes | StentorError

_SHOWN_ROWS = 20


class RecordBatch(NamedTuple):
    """The records of a batch: how many came, and those that could be read, one step each."""

    size: int
    ids: Any  # (steps,) a list of strings, or an Arrow array of them
    positions: Int64  # (steps,) each step's record, ascending
    errors: dict[int, StentorError]  # of the others, by record


class WantedBy(list[str]):
    """The ids of those who want an event; `shrunk` are the safe regions that it made smaller."""

    shrunk: list[SafeRegion]


class Report(Sequence[Answer]):
    """The answers to a batch of records.

    `report[i]` is the answer to the i-th: for an event the ids of those who want it, sorted (the
    k best, best first, where only these were wanted); for a change of a subscription `Changes`;
    for a bad record its error. `matches`, `changes` and `rejected` are the same as Arrow tables;
    `shrunk` lists the safe regions that became smaller.
    """

    def __init__(self, batch: RecordBatch, result: StepResult, subscribers: StringStore) -> None:
        self._batch = batch
        self._result = result
        self._names = subscribers
        self._errors = {
            **batch.errors,
            **{int(batch.positions[step]): error for step, error in result.errors.items()},
        }

    #: How many alternatives the index proposed for each record's event, before each was verified
    #: or proved; None where that was not asked for.
    candidates: Int64 | None = None

    def with_candidates(self, by_event: Int64) -> Self:
        """This report, with the candidates of each event that was matched."""
        self.candidates = np.zeros(len(self), np.int64)
        if len(by_event):
            self.candidates[self._published] = by_event
        return self

    @property
    def shrunk(self) -> list[tuple[int, SafeRegion]]:
        """Safe regions that became smaller, each with the record of the event: whom to notify."""
        return [(int(self._batch.positions[step]), one) for step, one in self._result.shrunk]

    @property
    def never(self) -> list[int]:
        """The records whose subscriptions want a contradiction: no event can match them."""
        return [int(self._batch.positions[step]) for step in self._result.never]

    @cached_property
    def _published(self) -> Int64:
        """The records whose events were matched, ascending."""
        return self._batch.positions[np.asarray(self._result.published, np.int64)]

    def __len__(self) -> int:
        return self._batch.size

    @overload
    def __getitem__(self, record: int) -> Answer: ...
    @overload
    def __getitem__(self, record: slice) -> list[Answer]: ...
    def __getitem__(self, record: int | slice) -> Answer | list[Answer]:
        if isinstance(record, slice):
            return [self[one] for one in range(*record.indices(len(self)))]
        record = range(len(self))[record]
        if record in self._errors:
            return self._errors[record]
        step = int(np.searchsorted(self._batch.positions, record))
        if step in self._result.changes:
            return self._result.changes[step]
        return self._wanted_by(int(np.searchsorted(self._published, record)))

    def __iter__(self) -> Iterator[Answer]:
        return (self[record] for record in range(len(self)))

    def _wanted_by(self, position: int) -> list[str]:
        pairs = self._result.pairs
        start, stop = int(pairs.starts[position]), int(pairs.starts[position + 1])
        ids = [self._names[row] for row in pairs.rows[start:stop].tolist()]
        return ids if isinstance(pairs, ScoredPairs) else sorted(ids)

    @cached_property
    def matches(self) -> Any:
        """One row per delivery: record, event, subscription, and the score if there is one."""
        pairs = self._result.pairs
        position = np.repeat(np.arange(len(pairs.starts) - 1), np.diff(pairs.starts))
        ids = self._batch.ids
        ids = pa.array(ids, pa.large_string()) if isinstance(ids, list) else ids
        events = ids.take(pa.array(self._result.published, pa.int64()))
        columns = {
            "record": pa.array(self._published[position]),
            "event": events.take(pa.array(position)),
            "subscription": self._names.take(pairs.rows),
        }
        if isinstance(pairs, ScoredPairs):
            columns["score"] = pa.array(pairs.scores)
        return pa.table(columns)

    @cached_property
    def changes(self) -> Any:
        """One row per event that an answer gained or lost: record, subscription, event, change."""
        known = self._result.changes
        rows = [
            (int(self._batch.positions[step]), str(self._batch.ids[step]), event, change)
            for step, changes in ([] if isinstance(known, Unchanged) else sorted(known.items()))
            for change, events in (("added", changes.added), ("removed", changes.removed))
            for event in events
        ]
        return _table(rows, ["record", "subscription", "event", "change"])

    @cached_property
    def rejected(self) -> Any:
        """One row per bad record: record, reason."""
        rows = [(record, str(error)) for record, error in sorted(self._errors.items())]
        return _table(rows, ["record", "reason"])

    def __repr__(self) -> str:
        return (
            f"<{len(self):,} records: {len(self._result.pairs.rows):,} matches, "
            f"{self.changes.num_rows:,} changes, {len(self._errors):,} rejected"
            + (f", {len(self.never):,} can never match>" if self.never else ">")
        )

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(repr(self))}</p>"]
        parts += [
            html_table(title, table)
            for title, table in (
                ("matches", self.matches),
                ("changes", self.changes),
                ("rejected", self.rejected),
            )
            if table.num_rows
        ]
        return "".join(parts)


def html_table(title: str, table: Any) -> str:
    """The first rows of an Arrow *table*, for a notebook."""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row.values()) + "</tr>"
        for row in table.slice(0, _SHOWN_ROWS).to_pylist()
    )
    more = table.num_rows - _SHOWN_ROWS
    tail = f"<p>… and {more:,} more</p>" if more > 0 else ""
    return f"<b>{escape(title)}</b><table><tr>{head}</tr>{body}</table>{tail}"


def _table(rows: list[tuple[Any, ...]], names: list[str]) -> Any:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    types = [pa.int64()] + [pa.large_string()] * (len(names) - 1)
    return pa.table(
        {name: pa.array(list(c), t) for name, c, t in zip(names, columns, types, strict=True)}
    )
