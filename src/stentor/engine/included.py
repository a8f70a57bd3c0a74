"""What subscribers are told beside ids and scores: attributes of the event, owner, alternative.

One meaning for engine, stream and brokers: attributes are those that the event has among the chosen
ones, as JSON; the alternative is the first that holds, counted from 0 in the order of
`Engine.alternatives`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from stentor.encoding.columns import EventColumns, Int64, MatchPairs, ScoredPairs
from stentor.encoding.event_back import event_of
from stentor.encoding.ragged import take
from stentor.engine.apply import NO_EVENTS, NO_PAIRS, EncodedRecords, StepResult
from stentor.engine.batch import NewEvents, NewSubscriptions
from stentor.engine.inclusion import Included, ReportIncluded
from stentor.engine.state import State
from stentor.errors import SettingsError
from stentor.index.pairs import pairs_of
from stentor.index.verify.alternatives import NO_ALTERNATIVE, first_alternatives
from stentor.model import Schema
from stentor.model.record import Operation
from stentor.model.values.string import describe
from stentor.wire.events import plain

ALL: Final = "all"
_BRINGING: Final = (Operation.PUBLISH, Operation.UPDATE)
_JSON: Final = msgspec.json.Encoder().encode


class Include(NamedTuple):
    """Attributes that subscribers are told of; None: all that the event has."""

    names: frozenset[str] | None

    @classmethod
    def read(cls, given: Any) -> Include | None:
        """What *given* says: names in a list, or "all"; None where nothing more is to be told."""
        if given is None or isinstance(given, Include):
            return given
        if given == ALL:
            return cls(None)
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise SettingsError(f'include is a list of attributes, or "all", got {describe(given)}')
        names = list(given)
        for name in names:
            if not isinstance(name, str) or not name:
                raise SettingsError(f"include has names of attributes, got {describe(name)}")
        return cls(frozenset(names))


def included_with(
    state: State,
    schema: Schema,
    events: EventColumns,
    pairs: MatchPairs | ScoredPairs,
    include: Include,
) -> Included:
    """What is told with *pairs*, which are those of *events*.

    Cost: that of verifying them once more, and some 10 µs for each event that somebody wants.
    """
    columns, positions = state.index.columns_with(pairs.rows)
    alternative = first_alternatives(columns, events, MatchPairs(pairs.starts, positions))
    wanted = np.flatnonzero(np.diff(pairs.starts))
    attributes: list[str | None] = [None] * (len(pairs.starts) - 1)
    for event in wanted.tolist():
        attributes[event] = attributes_text(events, event, schema, include)
    return Included(_owners(state, pairs.rows), alternative, attributes)


def _owners(state: State, rows: Int64) -> Any:
    if state.tags.is_empty:
        return pa.nulls(len(rows), pa.large_string())
    return pa.array([state.tags[row].owner for row in rows.tolist()], pa.large_string())


def attributes_text(events: EventColumns, row: int, schema: Schema, include: Include) -> str:
    """The chosen attributes of the event in *row*, as JSON; an infinity has no form in it."""
    found = event_of(events, row, "", schema).attributes
    names = include.names
    chosen = {name: plain(one) for name, one in found.items() if names is None or name in names}
    return _JSON({name: one for name, one in chosen.items() if not _is_infinite(one)}).decode()


def _is_infinite(value: Any) -> bool:
    """Whether JSON cannot write *value*; a range that is open at an end it can."""
    if isinstance(value, list):
        return any(map(_is_infinite, value))
    return isinstance(value, float) and math.isinf(value)


def included_of_step(
    state: State,
    schema: Schema,
    arriving: EncodedRecords | NewEvents | NewSubscriptions,
    result: StepResult,
    include: Include,
) -> ReportIncluded:
    """What is told with what *arriving* led to."""
    if isinstance(arriving, NewSubscriptions):
        events, column = NO_EVENTS, np.zeros(0, np.int64)
    elif isinstance(arriving, NewEvents):
        events, column = arriving.columns, np.arange(len(arriving.columns.until))
    else:
        events = arriving.events
        column = np.array(
            [one.column if one.operation in _BRINGING else -1 for one in arriving.steps], np.int64
        )

    def included(steps: Int64, pairs: MatchPairs | ScoredPairs) -> Included:
        """With *pairs* of *steps*; a withdrawal brings no event, and tells of no attributes."""
        brought = np.flatnonzero(column[steps] >= 0) if len(steps) else np.zeros(0, np.int64)
        own = pairs_of(pairs, brought)
        found = included_with(state, schema, take(events, column[steps[brought]]), own, include)
        if len(brought) == len(steps):
            return found
        alternative = np.full(len(pairs.rows), NO_ALTERNATIVE, np.int64)
        alternative[np.repeat(column[steps] >= 0, np.diff(pairs.starts))] = found.alternative
        attributes: list[str | None] = [None] * len(steps)
        for position, step in enumerate(brought.tolist()):
            attributes[step] = found.attributes[position]
        return Included(_owners(state, pairs.rows), alternative, attributes)

    published = np.asarray(result.published, np.int64)
    passages = result.passages
    if passages is None:
        nothing = included(np.zeros(0, np.int64), NO_PAIRS)
        return ReportIncluded(included(published, result.pairs), nothing, nothing, nothing)
    return ReportIncluded(
        included(published, result.pairs),
        *(
            included(passages.steps, one)
            for one in (passages.entered, passages.left, passages.stayed)
        ),
    )
