"""What a step reports: record by record, or as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from html import escape
from typing import Any, NamedTuple, Self, overload

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import Int64, MatchPairs, ScoredPairs
from stentor.engine.apply import StepResult
from stentor.engine.ids import StringStore
from stentor.engine.inclusion import INCLUDED, Included, ReportIncluded
from stentor.engine.plan import Plan
from stentor.engine.safe_region import SafeRegion
from stentor.engine.shortcuts import Unchanged
from stentor.errors import StentorError
from stentor.model import Changes, EventChanges

#: What one record led to: who wants the event, how an answer changed, or what was wrong.
Answer = list[str] | Changes | EventChanges | StentorError

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
    for an update or a withdrawal of an event `EventChanges`; for a bad record its error. `matches`,
    `changes` (and `stayed`) and `rejected` are the same as Arrow tables; `shrunk` lists the safe
    regions that became smaller.
    """

    def __init__(
        self,
        batch: RecordBatch,
        result: StepResult,
        subscribers: StringStore,
        included: ReportIncluded | None = None,
    ) -> None:
        self._batch = batch
        self._result = result
        self._names = subscribers
        self._included = included
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
    def plan(self) -> Plan | None:
        """What was decided of the records; None where there was nothing to decide."""
        return self._result.plan

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
        passages = self._result.passages
        if passages is not None:
            position = int(np.searchsorted(passages.steps, step))
            if position < len(passages.steps) and passages.steps[position] == step:
                return EventChanges(*(self._ids(pairs, position) for pairs in passages[1:]))
        return self._wanted_by(int(np.searchsorted(self._published, record)))

    def __iter__(self) -> Iterator[Answer]:
        return (self[record] for record in range(len(self)))

    def _wanted_by(self, position: int) -> list[str]:
        return self._ids(self._result.pairs, position)

    def _ids(self, pairs: MatchPairs | ScoredPairs, position: int) -> list[str]:
        start, stop = int(pairs.starts[position]), int(pairs.starts[position + 1])
        ids = [self._names[row] for row in pairs.rows[start:stop].tolist()]
        return ids if isinstance(pairs, ScoredPairs) else sorted(ids)

    @cached_property
    def matches(self) -> Any:
        """One row per delivery: record, event, subscription, and the score if there is one.

        Where `include` was given also owner, alternative and attributes, as JSON.
        """
        pairs = self._result.pairs
        included = self._included and self._included.matches
        table = self._pair_table(np.asarray(self._result.published, np.int64), pairs, included)
        if isinstance(pairs, ScoredPairs):
            table = table.append_column("score", pa.array(pairs.scores))
        return table

    def _pair_table(
        self, steps: Int64, pairs: MatchPairs | ScoredPairs, included: Included | None = None
    ) -> Any:
        """One row for each of *pairs*, which are those of *steps*: record, event, subscription."""
        position = np.repeat(np.arange(len(steps)), np.diff(pairs.starts))
        step = steps[position]
        columns = {
            "record": pa.array(self._batch.positions[step]),
            "event": self._arrow_ids.take(pa.array(step)),
            "subscription": self._names.take(pairs.rows),
        }
        if included is not None:
            columns |= included.columns(position)
        return pa.table(columns)

    @cached_property
    def _arrow_ids(self) -> Any:
        ids = self._batch.ids
        return pa.array(ids, pa.large_string()) if isinstance(ids, list) else ids

    @cached_property
    def changes(self) -> Any:
        """One row for each change: record, subscription, event, change.

        `added` and `removed` say what a subscription's answer gained and lost when it changed,
        `entered` and `left` whose answers an event came to and went from when that did.
        """
        known = self._result.changes
        rows = [
            (int(self._batch.positions[step]), str(self._batch.ids[step]), event, change)
            for step, changes in ([] if isinstance(known, Unchanged) else sorted(known.items()))
            for change, events in (("added", changes.added), ("removed", changes.removed))
            for event in events
        ]
        table = _table(rows, ["record", "subscription", "event", "change"])
        if self._included is not None:
            for name, kind in INCLUDED.items():
                table = table.append_column(name, pa.nulls(len(rows), kind))
        passages = self._result.passages
        if passages is None:
            return table
        tables = [table]
        for change in ("entered", "left"):
            included = None if self._included is None else getattr(self._included, change)
            own = self._pair_table(passages.steps, getattr(passages, change), included)
            said = pa.repeat(pa.scalar(change, pa.large_string()), own.num_rows)
            tables.append(own.append_column("change", said).select(table.column_names))
        whole = pa.concat_tables(tables)
        order = np.argsort(whole["record"].to_numpy(), kind="stable")
        return whole.take(pa.array(order)) if len(order) else table

    @cached_property
    def stayed(self) -> Any:
        """One row for each subscription that wants an updated event as before, like `matches`."""
        passages = self._result.passages
        if passages is None:
            nothing = MatchPairs(np.zeros(1, np.int64), np.zeros(0, np.int64))
            return self._pair_table(np.zeros(0, np.int64), nothing)
        included = self._included and self._included.stayed
        return self._pair_table(passages.steps, passages.stayed, included)

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
