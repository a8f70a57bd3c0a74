"""The engine: each operation on one screen. It validates, encodes, matches and reports.

    dict, text, table ─▶ columns ─plan, apply─▶ index ─▶ report: who wants what

What an engine answers without changing is in `questions.py`.
"""

from __future__ import annotations

import time as _time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from stentor._jit import announce_compilation
from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.event import EventBuffer, Lent
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.engine import cold
from stentor.engine.apply import EncodedRecords, apply, match
from stentor.engine.auto import AutoChoice
from stentor.engine.batch import BatchReader, NewEvents, NewSubscriptions
from stentor.engine.clock import Clock, MostAhead
from stentor.engine.ids import NO_ROW
from stentor.engine.included import Include, included_of_step
from stentor.engine.plan import (
    PlannedRecord,
    admit_change,
    admit_event,
)
from stentor.engine.questions import Questions
from stentor.engine.report import RecordBatch, Report, WantedBy
from stentor.engine.shortcuts import apply_events, apply_new, apply_updates, move_one, subscribe_one
from stentor.engine.state import State, forget_unused
from stentor.engine.tags import NO_TAGS, Tags, among_of
from stentor.engine.top_k import TopK, read_count
from stentor.errors import NeverMatchesWarning, SettingsError, StentorError, UnknownIdError
from stentor.index.catalog import AUTO, index_class, structure_of
from stentor.index.contract import Index
from stentor.index.verify.candidates import CandidateCounts
from stentor.language.builder import Built
from stentor.language.check import check_expression
from stentor.language.limits import Limits
from stentor.language.printer import to_text
from stentor.model import Changes, Event, EventChanges, Expression, Schema, Scoring
from stentor.model.record import Operation, Record, Unsubscribe, Withdraw
from stentor.model.values import read_location
from stentor.model.values.labels import read_labels, read_owner
from stentor.model.values.string import read_id
from stentor.model.values.time import BEGINNING, NEVER, read_time
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits
from stentor.wire.record import EventReader

When = Any  # a datetime, an ISO text, or seconds since 1970


class Engine(Questions):
    """Subscriptions and live events, matched with one another.

    >>> engine = Engine()
    >>> engine.subscribe("ana", "has_all(text, 'ipad') AND ST_DWithin(loc, here(), 1000)",
    ...                  at=(151.2, -33.9))
    Changes(added=[], removed=[])
    >>> engine.publish({"id": "e1", "text": "iPad sale", "loc": [151.2, -33.9]}, until=2e9, time=0)
    ['ana']
    >>> engine.move("ana", (151.3, -33.9), time=1)
    Changes(added=[], removed=['e1'])

    *index* names a structure; *clock* gives seconds since 1970 and is the time of records that
    carry none (None: such records come at the time of the last one). No record's own time may be
    further ahead of the clock than *most_ahead* (without a clock: of the time so far); by default
    that is a day (without a clock: ten years), and None allows any.
    """

    _is_durable = False  # whether changes are kept as they are planned

    def __init__(
        self,
        index: str = "auto",
        *,
        schema: Schema | Mapping[str, str] | None = None,
        limits: RecordLimits | Limits = DEFAULT_RECORD_LIMITS,
        clock: Callable[[], float] | None = _time.time,
        most_ahead: MostAhead = "auto",
        threads: int = 1,
    ) -> None:
        if schema is not None and not isinstance(schema, (Schema, Mapping)):
            raise SettingsError('a schema is a Schema or a dict like {"price": "number"}')
        declared = Schema.declare(schema) if isinstance(schema, Mapping) else schema
        self.schema = Schema() if declared is None else declared
        self.schema.is_shared = isinstance(schema, Schema)
        self.threads = read_count("threads", threads)
        self.limits = RecordLimits(expression=limits) if isinstance(limits, Limits) else limits
        if not isinstance(self.limits, RecordLimits):
            raise SettingsError(f"limits are RecordLimits or Limits, got {type(limits).__name__}")
        self._clock = Clock(clock, most_ahead)
        self._index = index
        self._index_class = index_class(index)
        self._kernels = structure_of(self._index_class).__module__.rpartition(".")[0]
        self._auto = AutoChoice(index == AUTO)
        self._raw_state = State(self._index_class())  # a change of it may be cut off
        self._batches = BatchReader(self.schema, self.limits, self._clock.now)
        self._reader = EventReader(self.schema, self.limits)
        self._buffer: EventBuffer | None = None
        # One writer at a time; until kernels are compiled, it also says how they run.
        self._lock = cold.lock_for(self, structure_of(self._index_class).name.split()[0])
        cold.watch_forks(self)

    # One record at a time.

    def subscribe(
        self,
        id: str,
        expression: str | Expression | Built,
        *,
        at: Any = None,
        until: When = None,
        time: When = None,
        parameters: Mapping[str, Any] | None = None,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Changes:
        """Let *id* want *expression* from now on; how its answer among live events changed.

        A subscription of the same id is replaced. *parameters* are the values of `:name` markers.
        It belongs to *owner*, and events may be for those alone that have some *labels*.
        """
        id, tags = read_id(id), Tags(read_owner(owner), read_labels(labels))
        location = read_location(at, plane=self.schema.plane)
        end, when = read_time(until, "until"), read_time(time, "time")
        if parameters is not None and not isinstance(parameters, Mapping):
            raise SettingsError(f"parameters are a dict by name, got {type(parameters).__name__}")
        with self._lock:
            self._forget_unused()
            examined = check_expression(
                expression,
                self.schema,
                where=f"subscription {id!r}",
                limits=self.limits.expression,
                parameters=parameters,
            )
            subscription = NormalisedSubscription(examined.form, location, end).checked()
            self.schema.learn(examined.uses)
            columns = encode_subscriptions([subscription], self.schema)
            is_own = isinstance(expression, str) and parameters is None
            text = expression if is_own else to_text(examined.tree)
            changes = self._subscribed(id, columns, str(text), when, tags)
        if examined.form.never:
            message = f"subscription {id!r} can never match: it asks for a contradiction"
            warnings.warn(message, NeverMatchesWarning, stacklevel=2)
        return changes

    def _subscribed(
        self, id: str, columns: SubscriptionColumns, text: str, when: int | None, tags: Tags
    ) -> Changes:
        """Let *id* want what *columns* and *text* say."""
        announce_compilation(self._kernels)
        state, until = self._state, int(columns.until[0])
        said = self._clock.now() if when is None else when
        if self._is_durable or state.index.live.current_count:
            step = PlannedRecord(Operation.SUBSCRIBE, id, said, 0, until)
            batch = RecordBatch(1, [id], np.zeros(1, np.int64), {})
            own = None if tags == NO_TAGS else [tags]
            report = self._report(batch, EncodedRecords([step], columns, [text], tags=own))
            changes: Changes = _raised(report)
            return changes
        admitted = admit_change(id, until, said, state, self._clock)
        if admitted.error is not None:
            state.pass_record(admitted.seq, admitted.time)
            raise admitted.error
        subscribe_one(state, id, columns, text, admitted, tags)
        self._tidy(state)
        return Changes()

    def unsubscribe(self, id: str, *, time: When = None) -> None:
        """Let *id* want nothing any more; an UnknownIdError where it wanted nothing before."""
        _raised(self._one_record(Unsubscribe(read_id(id), read_time(time, "time"))))

    def move(self, id: str, at: Any, *, time: When = None) -> Changes:
        """Put the subscriber *id* at another location; how its answer among live events changed."""
        location = read_location(at, plane=self.schema.plane)
        if location is None:
            raise SettingsError("a move says where to: (longitude, latitude)")
        id, when = read_id(id), read_time(time, "time")
        with self._lock:
            announce_compilation(self._kernels)
            state = self._state
            said = self._clock.now() if when is None else when
            admitted = admit_change(id, NEVER, said, state, self._clock)
            row, error = state.subscribers.row(id), admitted.error
            if error is None and (row == NO_ROW or self._until(row) <= admitted.time):
                error = UnknownIdError(f"no subscription has the id {id!r}", id=id)
            if error is not None:
                state.pass_record(admitted.seq, admitted.time)
                raise error
            changes = move_one(state, row, location, admitted)
            self._tidy(state)
        return changes

    def unsubscribe_all(
        self,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
        *,
        time: When = None,
    ) -> list[str]:
        """End the subscriptions of *owner* that have all of *labels*; their ids, sorted."""
        if owner is None and not labels:
            raise SettingsError("unsubscribe_all ends those of an owner, or of labels: say which")
        when = read_time(time, "time")
        with self._lock:
            ids = self.subscriptions(owner, labels)
            ended = [Unsubscribe(id, when) for id in ids]
            answers = list(self._report(*self._batches.records(ended)))
        for answer in answers:  # what is over by then is unknown, and nothing went wrong
            if isinstance(answer, StentorError) and not isinstance(answer, UnknownIdError):
                raise answer
        return [id for id, one in zip(ids, answers, strict=True) if not isinstance(one, Exception)]

    def publish(
        self,
        event: Mapping[str, Any] | Event,
        *,
        until: When = None,
        time: When = None,
        among: Mapping[str, str] | None = None,
    ) -> WantedBy:
        """The ids of those who want *event*, sorted; with an *until* it stays live till then.

        With *among* it is for those alone that have all of these labels. The answer's `shrunk`
        lists the safe regions that a live event made smaller: whom to notify.
        """
        end = None if until is None else read_time(until, "until")
        when = None if time is None else read_time(time, "time")
        with self._lock, self._one() as one:
            self._forget_unused()
            own = self._reader.read(event, one, end)
            if among is not None:
                one.among[0] = read_labels(among, "among")
            said = when if when is not None else self._clock.now() if own is None else own
            if one.until[0] != NEVER:
                report = self._hold(one, said, Operation.PUBLISH)
                wanted_by = WantedBy(_raised(report))
                wanted_by.shrunk = [region for _, region in report.shrunk]
                return wanted_by
            state = self._state
            admitted = admit_event(one.ids[0], NEVER, said, state, self._clock)
            if admitted.error is not None:
                state.pass_record(admitted.seq, admitted.time)
                raise admitted.error
            encoded = one.encode(admitted.time, admitted.seq)
            if one.among[0]:
                rows = match(state, encoded.columns, None, 1, [among_of(one.among[0])]).rows
            else:
                rows = state.index.match_one(encoded)
            wanted_by = WantedBy(state.subscribers.sorted_ids(rows))
            wanted_by.shrunk = []
            has_ended = state.pass_record(admitted.seq, admitted.time)
            if has_ended or self._index == AUTO:
                self._tidy(state)
        return wanted_by

    def update(
        self,
        event: Mapping[str, Any] | Event,
        *,
        until: When = None,
        time: When = None,
        among: Mapping[str, str] | None = None,
    ) -> EventChanges:
        """Let *event* be live, instead of the one of its id where there is one; whom that changes.

        It stays live till *until*; where it says none, till it is withdrawn.
        """
        end, when = read_time(until, "until"), read_time(time, "time")
        with self._lock, self._one() as one:
            self._forget_unused()
            own = self._reader.read(event, one, end, "update")
            if among is not None:
                one.among[0] = read_labels(among, "among")
            said = when if when is not None else self._clock.now() if own is None else own
            report = self._hold(one, said, Operation.UPDATE)
            changes: EventChanges = _raised(report)
            changes.shrunk.extend(region for _, region in report.shrunk)
        return changes

    def withdraw(self, id: str, *, time: When = None) -> list[str]:
        """End the live event *id*; the ids of those who had it, sorted.

        An UnknownIdError where none is live.
        """
        changes = _raised(self._one_record(Withdraw(read_id(id), read_time(time, "time"))))
        left: list[str] = changes.left
        return left

    # Many records at a time.

    def step(
        self,
        records: Iterable[Record | Mapping[str, Any]] | Any,
        *,
        top: int | None = None,
        scoring: Scoring | str = Scoring.SUM,
        include: Iterable[str] | str | None = None,
    ) -> Report:
        """The answers to mixed *records* in order: exactly those of feeding them one by one.

        A record is a dict with an `op` (subscribe, unsubscribe, move, publish, update, withdraw),
        one of `stentor.model.record`, or a row of an Arrow table. A bad one is answered with its
        error. With *top*, an event is for its k best only, by *scoring* ("sum" or "max"). With
        *include*, attributes or "all", the report's tables tell these too.
        """
        best, included = TopK.read(top, scoring), Include.read(include)
        cold.expect(self, records)
        with self._lock:
            self._forget_unused()
            return self._report(*self._batches.records(records), best, included)

    def publish_batch(
        self,
        events: Any,
        *,
        top: int | None = None,
        scoring: Scoring | str = Scoring.SUM,
        candidates: bool = False,
        include: Iterable[str] | str | None = None,
    ) -> Report:
        """Who wants each of *events*: an Arrow table, a pandas frame (the fastest), or dicts.

        With *candidates* the report says how many alternatives the index proposed for each event,
        with *include*, attributes or "all", what each delivery tells beside ids.
        """
        best, included = TopK.read(top, scoring), Include.read(include)
        if candidates and best is not None:
            raise SettingsError("candidates are counted where all matches are wanted, without top")
        cold.expect(self, events)
        counts = CandidateCounts() if candidates else None
        with self._lock, nullcontext() if counts is None else counts.counting():
            self._forget_unused()
            report = self._report(*self._batches.events(events), best, included)
        return report if counts is None else report.with_candidates(counts.by_event)

    def update_batch(
        self,
        events: Any,
        *,
        top: int | None = None,
        scoring: Scoring | str = Scoring.SUM,
        include: Iterable[str] | str | None = None,
    ) -> Report:
        """`update` with each of *events*: a table, as `publish_batch` takes it, or dicts."""
        best, included = TopK.read(top, scoring), Include.read(include)
        cold.expect(self, events)
        with self._lock:
            self._forget_unused()
            return self._report(*self._batches.events(events, "update"), best, included)

    def withdraw_batch(self, ids: Any) -> Report:
        """Withdraw each row of a table with `id` and perhaps `time`."""
        cold.expect(self, ids)
        with self._lock:
            return self._report(*self._batches.rows(ids, "withdraw"))

    def subscribe_batch(self, subscriptions: Any, expression: str | None = None) -> Report:
        """Subscribe each row of a table.

        The table has `id`, perhaps `at`, `until`, `time`, and `expression`; or *expression* is
        given once, with `:name` wherever the column `name` has each subscriber's own constant.
        """
        cold.expect(self, subscriptions)
        with self._lock:
            self._forget_unused()
            return self._report(*self._batches.subscriptions(subscriptions, expression))

    def move_batch(self, moves: Any) -> Report:
        """Move each row of a table with `id`, `at` and perhaps `time`."""
        cold.expect(self, moves)
        with self._lock:
            return self._report(*self._batches.rows(moves, "move"))

    def unsubscribe_batch(self, ids: Any) -> Report:
        """Unsubscribe each row of a table with `id` and perhaps `time`."""
        cold.expect(self, ids)
        with self._lock:
            return self._report(*self._batches.rows(ids, "unsubscribe"))

    def rebuild(self, history: Any = None) -> None:
        """Build the index anew, for events like those of *history*: a table or a pandas frame.

        Structures that weigh what is likely measure it there, now and when they are built again;
        nothing that is answered changes. Without one, the last history counts.
        """
        cold.expect(self, () if history is None else history)
        with self._lock:
            if history is not None:
                self._state.history = self._batches.sample(history)
            self._rebuild(self._state)

    # Inside.

    @property
    def _state(self) -> State:
        """The state; where a change was cut off, as it was before it."""
        if self._raw_state.journal is not None:
            self._raw_state = self._raw_state.recovered(self._index_class)
        return self._raw_state

    @_state.setter
    def _state(self, state: State) -> None:
        self._raw_state = state

    def _report(
        self,
        batch: RecordBatch,
        arriving: EncodedRecords | NewEvents | NewSubscriptions,
        top: TopK | None = None,
        include: Include | None = None,
    ) -> Report:
        """Let *arriving* happen and report it; tidy up where much is gone."""
        announce_compilation(self._kernels)
        with self._lock:
            state, result = self._state, None
            if isinstance(arriving, NewEvents) and arriving.operation is Operation.PUBLISH:
                said = top, self.threads, arriving.among
                result = apply_events(state, arriving.columns, self._clock, *said)
            elif isinstance(arriving, NewSubscriptions):
                result = apply_new(state, *arriving, self._clock)
            elif not (isinstance(arriving, EncodedRecords) or top or self._is_durable):
                result = apply_updates(state, *arriving[:2], arriving.among, self._clock)
            if result is None:
                step = arriving if isinstance(arriving, EncodedRecords) else arriving.arriving()
                result = apply(state, step, self._clock, top=top, threads=self.threads)
            included = include and included_of_step(state, self.schema, arriving, result, include)
            report = Report(batch, result, state.subscribers.ids, included)
            self._tidy(state)
        return report

    def _tidy(self, state: State) -> None:
        """Give memory back, where much is gone; let 'auto' go on to what suits so many."""
        if self._auto.tidy(state):
            self._use(type(state.index))
        if self._auto.is_outgrown(state) or state.is_crowded():
            self._rebuild(state)
        else:
            state.forget_dropped()

    def _use(self, index: type[Index]) -> None:
        """Go on with *index*."""
        self._index_class = index
        self._kernels = structure_of(index).__module__.rpartition(".")[0]

    def _rebuild(self, state: State) -> None:
        """Go on with *state* in a fresh index; 'auto' is chosen anew for what is in it."""
        if self._index == AUTO:
            columns = state.index.columns_of(state.index.current_rows())
            self._use(index_class(self._auto.name_for(columns)))
            self._auto.rebuilt(len(state.subscribers))
        self._state = state.rebuilt(self._index_class)

    def _forget_unused(self) -> None:
        """Where the schema has learned much, let it forget what nothing has any more."""
        if self.schema.is_crowded and not self.schema.is_shared:
            forget_unused(self.schema, self._state)
            self._batches.forget_shapes()

    def _one(self) -> Lent:
        """Memory for one event, kept between calls; a signal handler that comes in has its own."""
        announce_compilation(self._kernels)
        one, self._buffer = self._buffer, None
        return Lent(self, EventBuffer() if one is None else one)

    def _one_record(self, record: Record) -> Report:
        with self._lock:
            return self._report(*self._batches.record(record))

    def _hold(self, one: EventBuffer, said: int | None, operation: Operation) -> Report:
        """Publish, or update, an event that stays live."""
        one.encode(BEGINNING, 0)
        among = among_of(one.among[0])
        step = PlannedRecord(operation, one.ids[0], said, 0, one.until[0], among=among)
        batch = RecordBatch(1, [step.id], np.zeros(1, np.int64), {})
        return self._report(batch, EncodedRecords([step], events=one.copy()))


def step_checked(engine: Engine, records: Sequence[Record]) -> Report:
    """`step` for brokers: their records are checked, and their keys longer than ids may be."""
    with engine._lock:
        return engine._report(*engine._batches.records(records, is_checked=True))


def _raised(report: Report) -> Any:
    """The answer to the one record of *report*; where it is an error, raised."""
    if isinstance(report[0], StentorError):
        raise report[0]
    return report[0]
