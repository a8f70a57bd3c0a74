"""The engine: the whole path on one screen.

dict, text, table ─arrivals─▶ columns ─core.run─▶ index ─▶ report: who wants what
"""

from __future__ import annotations

import time as _time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from stentor._jit import announce_compilation
from stentor.encoding.columns import EventColumns, Int64, ScoredPairs
from stentor.encoding.events import Arrival, encode_events
from stentor.encoding.texts import TextEncoder
from stentor.engine import batches, folder
from stentor.engine.arrivals import Prepared
from stentor.engine.core import Arriving, match, run, run_events
from stentor.engine.explanation import Explanation, explain
from stentor.engine.names import NO_ROW
from stentor.engine.ranking import Best
from stentor.engine.report import Batch, Report, html_table
from stentor.engine.safe_region import SafeRegion, safe_region, shrunk
from stentor.engine.state import State
from stentor.errors import (
    NeverMatchesWarning,
    RecordError,
    SettingsError,
    StentorError,
    UnknownIdError,
)
from stentor.index.catalog import AUTO, index_class, structure_of
from stentor.language.admit import examine
from stentor.language.builder import Built
from stentor.language.limits import ANY_SIZE, Limits
from stentor.language.parser import parse
from stentor.model import Changes, Event, Expression, Schema, Scoring, Subscription
from stentor.model.record import Move, Publish, Record, Subscribe, Unsubscribe
from stentor.model.time import NEVER, instant
from stentor.wire.events import learn_event
from stentor.wire.fields import id_of, position_of
from stentor.wire.formats import ReadSettings, record_from_object
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits
from stentor.wire.records import subscription_to_dict

if TYPE_CHECKING:
    from stentor.engine.redundant import Redundant

When = Any  # a datetime, an ISO text, or seconds since 1970


class Engine:
    """Standing subscriptions and live events, matched with one another.

    >>> engine = Engine()
    >>> engine.subscribe("ana", "has_all(text, 'ipad') AND ST_DWithin(loc, here(), 1000)",
    ...                  at=(151.2, -33.9))
    Changes(added=[], removed=[])
    >>> engine.publish({"id": "e1", "text": "iPad sale", "loc": [151.2, -33.9]}, until=2e9, time=0)
    ['ana']
    >>> engine.move("ana", (151.3, -33.9), time=1)
    Changes(added=[], removed=['e1'])

    *index* names a structure; *clock* gives seconds since 1970 and is asked only for records that
    carry no time of their own (None: such records come at the time of the last one).
    """

    def __init__(
        self,
        index: str = "auto",
        *,
        schema: Schema | Mapping[str, str] | None = None,
        limits: RecordLimits | Limits = DEFAULT_RECORD_LIMITS,
        clock: Callable[[], float] | None = _time.time,
        threads: int = 1,
    ) -> None:
        if schema is not None and not isinstance(schema, (Schema, Mapping)):
            raise SettingsError('a schema is a Schema or a dict like {"price": "number"}')
        declared = Schema.declare(schema) if isinstance(schema, Mapping) else schema
        self.schema = Schema() if declared is None else declared
        _check_count("threads", threads)
        if clock is not None and not callable(clock):
            raise SettingsError("clock is a function that gives seconds since 1970, or None")
        self.limits = RecordLimits(expression=limits) if isinstance(limits, Limits) else limits
        self.threads = threads
        self._clock = clock
        self._index = index
        self._index_class = index_class(index)
        self._kernels = structure_of(self._index_class).__module__.rpartition(".")[0]
        self._state = State(self._index_class())
        self._texts = TextEncoder(self.schema, self.limits.expression)
        self._lock = RLock()  # one writer at a time

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
    ) -> Changes:
        """Let *id* want *expression* from now on; how its answer among live events changed.

        An id that stands already is replaced. *parameters* are the values of `:name` markers.
        """
        id = id_of(id)
        place = position_of(at, plane=self.schema.plane)
        end, when = instant(until, "until"), instant(time, "time")
        with self._lock:
            examined = examine(
                expression,
                self.schema,
                where=f"subscription {id!r}",
                limits=self.limits.expression,
                parameters=parameters,
            )
            prepared = Prepared(self.schema, self.limits, self._now)
            subscription = Subscription(id, examined.tree, place, end)
            prepared.add(Subscribe(subscription, when), examined)
            changes: Changes = self._answer(prepared)
        if examined.form.never:
            message = f"subscription {id!r} can never match: it asks for a contradiction"
            warnings.warn(message, NeverMatchesWarning, stacklevel=2)
        return changes

    def unsubscribe(self, id: str, *, time: When = None) -> None:
        """Let *id* want nothing any more; an UnknownIdError where it wanted nothing before."""
        self._one(Unsubscribe(id_of(id), instant(time, "time")))

    def move(self, id: str, at: Any, *, time: When = None) -> Changes:
        """Put the subscriber *id* at another place; how its answer among live events changed."""
        place = position_of(at, plane=self.schema.plane)
        if place is None:
            raise SettingsError("a move says where to: (longitude, latitude)")
        changes: Changes = self._one(Move(id_of(id), place, instant(time, "time")))
        return changes

    def publish(
        self, event: Mapping[str, Any] | Event, *, until: When = None, time: When = None
    ) -> list[str]:
        """The ids of those who want *event*, sorted; with an *until* it stays live till then."""
        end, when = instant(until, "until"), instant(time, "time")
        with self._lock:
            record = self._published(event, self.schema)
            taken = record.event
            if end is not None:
                taken = Event(taken.id, taken.attributes, taken.weights, end)
            wanted_by: list[str] = self._one(Publish(taken, record.time if when is None else when))
        return wanted_by

    # Many records at a time.

    def step(
        self,
        records: Iterable[Record | Mapping[str, Any]] | Any,
        *,
        top: int | None = None,
        scoring: Scoring | str = Scoring.SUM,
    ) -> Report:
        """The answers to mixed *records* in order: exactly those of feeding them one by one.

        A record is a dict with an `op` (subscribe, unsubscribe, move, publish), one of
        `stentor.model.record`, or a row of an Arrow table. A bad one is answered with its error.
        With *top*, an event is for its k best only, by *scoring* ("sum" or "max").
        """
        best = _best(top, scoring)
        with self._lock:
            return batches.step(self, records, best)

    def publish_batch(
        self, events: Any, *, top: int | None = None, scoring: Scoring | str = Scoring.SUM
    ) -> Report:
        """Who wants each of *events*, an Arrow table or a pandas frame: the fast way."""
        best = _best(top, scoring)
        with self._lock:
            return batches.publish(self, events, best)

    def subscribe_batch(self, subscriptions: Any, expression: str | None = None) -> Report:
        """Subscribe each row of a table.

        The table has `id`, perhaps `at`, `until`, `time`, and `expression`; or *expression* is
        given once, with `:name` wherever the column `name` has each subscriber's own constant.
        """
        with self._lock:
            return batches.subscribe(self, subscriptions, expression)

    def move_batch(self, moves: Any) -> Report:
        """Move each row of a table with `id`, `at` and perhaps `time`."""
        with self._lock:
            return batches.step_rows(self, moves, "move")

    def unsubscribe_batch(self, ids: Any) -> Report:
        """Unsubscribe each row of a table with `id` and perhaps `time`."""
        with self._lock:
            return batches.step_rows(self, ids, "unsubscribe")

    def rebuild(self, history: Any = None) -> None:
        """Build the index anew, for events like those of *history*: a table or a pandas frame.

        Structures that weigh what is likely measure it there, now and when they are built again;
        nothing that is answered changes. Without one, the last history counts.
        """
        with self._lock:
            if history is not None:
                self._state.history = batches.sample(self, history)
            self._rebuild(self._state)

    # Questions that change nothing.

    def top(
        self,
        event: Mapping[str, Any] | Event,
        k: int = 10,
        *,
        scoring: Scoring | str = Scoring.SUM,
    ) -> list[tuple[str, float]]:
        """The k subscriptions for which *event* scores best, best first, equal ones by id.

        *scoring* puts together what the attributes contribute: "sum", or "max", the largest alone.
        """
        _check_count("k", k)
        wanted = Best(k, Scoring.named(scoring))
        announce_compilation(self._kernels)
        asked = self._asked(event)
        with self._lock:
            state = self._state
            arrival = Arrival(asked, self._time(), state.seq + 1)
            best = match(state, encode_events([arrival], self.schema), wanted, self.threads)
            assert isinstance(best, ScoredPairs)
            ids = [state.subscribers.ids[row] for row in best.rows.tolist()]
            return list(zip(ids, best.scores.tolist(), strict=True))

    def explain(self, id: str, event: Mapping[str, Any] | Event) -> Explanation:
        """Why the subscription *id* wants *event*, or why not: predicate by predicate."""
        id, asked = id_of(id), self._asked(event)
        with self._lock:
            row = self._row(id)
            text, here = self._state.texts[row], self._state.index.position(row)
        tree = parse(text, schema=self.schema, limits=ANY_SIZE)
        return explain(id, tree, asked, self.schema, here)

    def redundant(self) -> list[Redundant]:
        """The subscriptions that another one covers, each with one that covers it, by id.

        Whatever matches the first of such a pair matches the second. Of equal ones the older stays.
        """
        from stentor.engine.redundant import redundant  # brings kernels that nothing else needs

        announce_compilation("stentor.covering")
        with self._lock:
            return redundant(self._state, self.schema, self._standing_rows())

    def safe_region(self, id: str) -> SafeRegion:
        """How far the subscriber *id* may go before its answer can change but by expiry."""
        id = id_of(id)
        with self._lock:
            announce_compilation(self._kernels)
            return safe_region(self._state, id, self._row(id), self._time(), self.schema.plane)

    def shrunk_by(
        self, event: Mapping[str, Any] | Event, regions: Iterable[SafeRegion]
    ) -> list[SafeRegion]:
        """Those of *regions* that a new live *event* shrinks, as they are then: whom to tell.

        Left out are regions of subscribers that have gone or moved since.

        Cost: O(regions).
        """
        arrival = Arrival(self._asked(event))
        with self._lock:
            encoded = encode_events([arrival], self.schema)
            return shrunk(self._state, encoded, regions, self._time())

    def get(self, id: str) -> dict[str, Any]:
        """The subscription *id* in its JSON form: id, expression, at, until."""
        id = id_of(id)
        with self._lock:
            row = self._row(id)
            text, at = self._state.texts[row], self._state.index.position(row)
            until = self._until(row)
        tree = parse(text, schema=self.schema, limits=ANY_SIZE)
        return subscription_to_dict(Subscription(id, tree, at, None if until == NEVER else until))

    def __contains__(self, id: object) -> bool:
        try:
            known = id_of(id)
        except RecordError:
            return False
        with self._lock:
            row = self._state.subscribers.row(known)
            return row != NO_ROW and self._until(row) > self._time()

    def __bool__(self) -> bool:
        return True  # an engine without subscriptions is still an engine

    def __len__(self) -> int:
        """How many subscriptions stand and are not over."""
        with self._lock:
            return len(self._standing_rows())

    def __iter__(self) -> Iterator[str]:
        """The ids of all subscriptions that stand and are not over, sorted."""
        with self._lock:
            ids: list[str] = self._state.subscribers.ids.take(self._standing_rows()).to_pylist()
        return iter(sorted(ids))

    def stats(self) -> dict[str, Any]:
        """Counts and sizes: what stands, in which structure, in how many bytes."""
        with self._lock:
            return {
                **self._state.index.stats(),
                "attributes": len(self.schema),
                "records": self._state.seq,
            }

    # Keeping it.

    def save(self, path: str | Path) -> None:
        """Write everything into the folder *path*, at once or not at all."""
        with self._lock:
            folder.save(self, Path(path))

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False, **settings: Any) -> Engine:
        """The engine that `save` wrote: memory-mapped, changes go to a layer on top of it.

        With *verify*, every byte is read and compared with the sums that were written.
        """
        return folder.open_engine(cls, Path(path), verify, settings)

    def __repr__(self) -> str:
        index = self._state.index
        live = index.live.live_count
        return f"<Engine: {len(self):,} subscriptions, {live:,} live events, {index.name}>"

    def _repr_html_(self) -> str:
        shown = {name: str(value) for name, value in self.stats().items()}
        return html_table("Engine", pa.Table.from_pylist([shown]))

    # Inside.

    def _report(
        self, batch: Batch, arriving: Arriving | EventColumns, top: Best | None = None
    ) -> Report:
        """Let *arriving* happen and report it; tidy up where much is gone."""
        announce_compilation(self._kernels)
        with self._lock:
            state = self._state
            if isinstance(arriving, EventColumns):
                outcome = run_events(state, arriving, top=top, threads=self.threads)
            else:
                outcome = run(state, arriving, top=top, threads=self.threads)
            report = Report(batch, outcome, state.subscribers.ids)
            if state.is_crowded():
                self._rebuild(state)
        return report

    def _rebuild(self, state: State) -> None:
        """Go on with *state* in a fresh index; 'auto' is chosen anew for what stands."""
        if self._index == AUTO:
            columns = state.index.columns_of(state.index.standing_rows())
            self._index_class = index_class(AUTO, columns)
        self._state = state.rebuilt(self._index_class)

    def _one(self, record: Record) -> Any:
        with self._lock:
            prepared = Prepared(self.schema, self.limits, self._now)
            prepared.add(record)
            return self._answer(prepared)

    def _answer(self, prepared: Prepared) -> Any:
        """The answer to the one record that was prepared; where it is an error, raised."""
        answer = self._report(prepared.batch(), prepared.arriving())[0]
        if isinstance(answer, StentorError):
            raise answer
        return answer

    def _published(self, event: Mapping[str, Any] | Event, schema: Schema) -> Publish:
        """*event* in any of its forms; *schema* learns from it, if it does."""
        if isinstance(event, Event):
            learn_event(event, schema)
            return Publish(event)
        settings = ReadSettings(default_op="publish", limits=self.limits)
        record = record_from_object(event, schema, settings)
        if not isinstance(record, Publish):
            raise RecordError("this is no event; `step` takes records of all kinds", field="op")
        return record

    def _asked(self, event: Mapping[str, Any] | Event) -> Event:
        """The event of a question, which needs no id and teaches the schema nothing."""
        if isinstance(event, Mapping) and "id" not in event:
            event = {"id": "this event", **event}
        return self._published(event, self.schema.unteachable()).event

    def _now(self) -> int | None:
        """The clock's time in microseconds; None where there is no clock."""
        return None if self._clock is None else round(self._clock() * 1_000_000)

    def _time(self) -> int:
        """The logical time at which a question is answered."""
        now = self._now()
        return self._state.time if now is None else max(self._state.time, now)

    def _standing_rows(self) -> Int64:
        index = self._state.index
        rows = index.standing_rows()
        return rows[index.until(rows) > self._time()]

    def _until(self, row: int) -> int:
        return int(self._state.index.until(np.array([row], np.int64))[0])

    def _row(self, id: str) -> int:
        row = self._state.subscribers.row(id)
        if row == NO_ROW or id not in self:
            raise UnknownIdError(f"no subscription has the id {id!r}", id=id)
        return row


def _best(top: int | None, scoring: Scoring | str) -> Best | None:
    """What the user asked for, checked; None where all matches are wanted."""
    how = Scoring.named(scoring)
    if top is None:
        return None
    _check_count("top", top)
    return Best(top, how)


def _check_count(name: str, count: Any) -> None:
    if not isinstance(count, int) or count < 1:
        raise SettingsError(f"{name} is {count!r}; expected a whole number of at least 1")
