"""What an engine answers without changing: the best of an event, why, who is redundant, how far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import pyarrow as pa

from stentor._jit import announce_compilation
from stentor.encoding.columns import EventColumns, Int64
from stentor.encoding.event import EventBuffer, Lent
from stentor.encoding.event_back import event_of
from stentor.encoding.events import TimedEvent, encode_events
from stentor.engine import cold, folder
from stentor.engine.auto import AutoChoice
from stentor.engine.batch import listed
from stentor.engine.clock import Clock
from stentor.engine.explanation import Explanation, explain
from stentor.engine.ids import NO_ROW
from stentor.engine.report import html_table
from stentor.engine.safe_region import SafeRegion, remembered_regions, safe_regions, shrunk
from stentor.engine.state import State
from stentor.engine.top_k import best_by_id, read_count
from stentor.engine.why_not import Rejection, RejectionCount, rejection_counts, rejections
from stentor.errors import FolderError, RecordError, SettingsError, UnknownIdError
from stentor.language.check import check_expression
from stentor.language.limits import ANY_SIZE
from stentor.language.parser import parse
from stentor.model import Event, Point, Schema, Scoring, Subscription
from stentor.model.values.labels import read_labels, read_owner
from stentor.model.values.string import describe, read_id
from stentor.model.values.time import FOR_GOOD, NEVER
from stentor.wire.events import event_to_dict
from stentor.wire.record import EventReader
from stentor.wire.records import subscription_to_dict

if TYPE_CHECKING:
    from stentor.engine.engine import Engine
    from stentor.engine.redundant import Redundant


class Questions(ABC):
    """The methods of `Engine` that leave its subscriptions and live events as they are."""

    schema: Schema
    _lock: Any
    _auto: AutoChoice
    _clock: Clock
    _kernels: str
    _reader: EventReader
    _buffer: EventBuffer | None

    @property
    @abstractmethod
    def _state(self) -> State:
        """The state; where a change was cut off, as it was before it."""

    @abstractmethod
    def _one(self) -> Lent:
        """Memory for one event."""

    def _answer(self, call: Callable[[], Any]) -> Any:
        """What *call* gives, once it may be known."""
        return call()

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
        k, how = read_count("k", k), Scoring.named(scoring)
        with self._lock, self._one() as one:
            state = self._state
            self._reader.read_question(event, one)
            rows, scores = state.index.top_one(one.encode(self._time(), state.seq + 1), k, how)
            return best_by_id(state.subscribers.ids.of(rows.tolist()), scores.tolist(), k)

    def explain(self, id: str, event: Mapping[str, Any] | Event) -> Explanation:
        """Why the subscription *id* wants *event*, or why not: predicate by predicate."""
        id, question = read_id(id), self._reader.question(event)
        with self._lock:
            row = self._row(id)
            text, here = self._state.texts[row], self._state.index.position(row)
            homes = self._state.index.homes_of(row)
        tree = parse(text, schema=self.schema, limits=ANY_SIZE)
        return explain(id, tree, question, self.schema, here, homes)

    def why_not(
        self, event: Mapping[str, Any] | Event, ids: Iterable[str]
    ) -> list[Rejection | None]:
        """Which predicate of each of *ids* rejects *event*; None for those who want it.

        Cost: that of verifying them, about a microsecond each; `explain` says more of one.
        """
        known = [read_id(id) for id in listed(ids, "ids are a list of strings")]
        with self._lock, self._one() as one:
            rows = np.array([self._row(id) for id in known], np.int64)
            return rejections(self._state, self.schema, self._question(event, one), known, rows)

    def why_not_counts(self, event: Mapping[str, Any] | Event) -> list[RejectionCount]:
        """How many of all subscriptions reject *event* on which attribute and why, most first.

        Cost: that of verifying every subscription.
        """
        with self._lock, self._one() as one:
            question = self._question(event, one)
            return rejection_counts(self._state, self.schema, question, self._current_rows())

    def redundant(self) -> list[Redundant]:
        """The subscriptions that another one covers, each with one that covers it, by id.

        Whatever matches the first of such a pair matches the second, until the first ends and
        wherever subscribers move. Of equal ones the one that ends last stays, then the older.
        """
        from stentor.engine.redundant import redundant  # brings kernels that nothing else needs

        with self._lock:
            rows = self._current_rows()
            with cold.kernels(cold.COVERING, is_small=len(rows) ** 2 <= cold.MANY_PAIRS):
                return redundant(self._state, self.schema, rows)

    def safe_region(self, id: str) -> SafeRegion:
        """How far the subscriber *id* may go before its answer can change but by expiry.

        The engine remembers it: until the subscriber moves, subscribes anew or goes, publishing
        says when a new event has made it smaller. It is not saved.
        """
        return self.safe_regions([id])[0]

    def safe_regions(self, ids: Iterable[str]) -> list[SafeRegion]:
        """`safe_region` of each of *ids*, at once."""
        known = [read_id(id) for id in listed(ids, "ids are texts in a list")]
        announce_compilation(self._kernels)
        with self._lock:
            rows = np.array([self._row(id) for id in known], np.int64)
            return safe_regions(self._state, known, rows, self._time(), self.schema.plane)

    def shrunk_by(
        self, event: Mapping[str, Any] | Event, regions: Iterable[SafeRegion] | None = None
    ) -> list[SafeRegion]:
        """The safe regions that a new live *event* would shrink, as they are then: whom to notify.

        Of *regions* those of subscribers that have gone or moved since are left out. Where none
        are given, of those that the engine gave and remembers.

        Cost: as `publish` finds them, among those that the engine remembers; O(regions) among
        those that are given, 0.3 µs for each, and 2 to 4 µs for each that the event is near to.
        """
        if regions is None:
            with self._lock, self._one() as one:
                self._reader.read_question(event, one)
                state, asked_about = self._state, one.encode(self._time(), 0).columns
                found = state.regions.shrunk(asked_about, state.index.columns_with, {})
                return remembered_regions(state, found)
        asked = self._reader.question(event)
        known = [*listed(regions, "regions are what `safe_region` gave")]
        if not all(issubclass(kind, SafeRegion) for kind in set(map(type, known))):
            raise SettingsError("regions are what `safe_region` gave, in a list")
        with self._lock:
            state, now = self._state, self._time()
            encoded = encode_events([TimedEvent(asked, time=now)], self.schema)
            points = [value for value in asked.attributes.values() if isinstance(value, Point)]
            return shrunk(state, encoded, points, known, now)

    def get(self, id: str) -> dict[str, Any]:
        """The subscription *id* in its JSON form: id, expression, at, until, owner, labels."""
        id = read_id(id)
        with self._lock:
            row = self._row(id)
            text, at = self._state.texts[row], self._state.index.position(row)
            until, tags = self._until(row), self._state.tags[row]
        tree = parse(text, schema=self.schema, limits=ANY_SIZE)
        end = None if until == NEVER else until
        return subscription_to_dict(Subscription(id, tree, at, end, *tags))

    def alternatives(self, id: str) -> list[str]:
        """What the subscription *id* wants, as alternatives: one of them holds of what it gets."""
        from stentor.covering.covers import predicates_text

        id = read_id(id)
        with self._lock:
            text = self._state.texts[self._row(id)]
            examined = check_expression(text, self.schema.frozen(), where=id, limits=ANY_SIZE)
            kinds = {name: kind for name in self.schema if (kind := self.schema.kind(name))}
        return [predicates_text(one, kinds) for one in examined.form.alternatives]

    def subscriptions(
        self, owner: str | None = None, labels: Mapping[str, str] | None = None
    ) -> list[str]:
        """The ids of the subscriptions of *owner* that have all of *labels*, sorted.

        Without either of all. Cost: that of those that are found.
        """
        owner, wanted = read_owner(owner), read_labels(labels)
        with self._lock:
            index = self._state.index
            rows = self._state.tags.rows_of(owner, wanted)
            rows = rows[[index.is_current(row) for row in rows.tolist()]] if len(rows) else rows
            rows = rows[index.until(rows) > self._time()]
            return self._state.subscribers.sorted_ids(rows)

    def live(self) -> list[str]:
        """The ids of the events that are live, sorted."""
        with self._lock:
            state, now = self._state, self._time()
            rows = state.index.live.current_rows()
            rows = rows[state.index.live.columns.until[rows] > now]
            return sorted(state.events.ids.take(rows).to_pylist())

    def event(self, id: str) -> dict[str, Any]:
        """The live event *id* in its JSON form; an UnknownIdError where none is live."""
        id = read_id(id)
        with self._lock:
            row = self._state.events.row(id)
            columns = self._state.index.live.columns
            if row == NO_ROW or columns.until[row] <= self._time():
                raise UnknownIdError(f"no live event has the id {id!r}", id=id)
            found = event_of(columns, row, id, self.schema)
            among = dict(self._state.among.get(row, ()))
            found = replace(found, among=among) if among else found
        return event_to_dict(replace(found, until=None) if found.until == FOR_GOOD else found)

    def __contains__(self, id: object) -> bool:
        try:
            known = read_id(id)
        except RecordError:
            return False
        with self._lock:
            row = self._state.subscribers.row(known)
            return row != NO_ROW and self._until(row) > self._time()

    def __bool__(self) -> bool:
        return True  # an engine without subscriptions is still an engine

    def __len__(self) -> int:
        """How many subscriptions there are that are not over."""
        with self._lock:
            return len(self._current_rows())

    def __iter__(self) -> Iterator[str]:
        """The ids of all subscriptions that are not over, sorted."""
        with self._lock:
            ids: list[str] = self._state.subscribers.ids.take(self._current_rows()).to_pylist()
        return iter(sorted(ids))

    def stats(self) -> dict[str, Any]:
        """Counts and sizes: what is in which structure, in how many bytes.

        `bytes` is all of it; of that, `bytes of columns`, `of ids` and `of texts` are the engine's
        own, and the rest is the structure's.
        """
        with self._lock:
            state = self._state
            index = state.index.stats()
            ids, texts = state.subscribers.nbytes + state.events.nbytes, state.texts.nbytes
            return {
                **index,
                "bytes": index["bytes"] + ids + texts,
                "bytes of ids": ids,
                "bytes of texts": texts,
                "attributes": len(self.schema),
                "records": self._state.seq,
                **self._auto.stats(state.index),
            }

    # Keeping it.

    def save(self, path: str | Path) -> None:
        """Write everything into the folder *path*, at once or not at all."""
        with self._lock:
            folder.save(cast("Engine", self), folder.read_path(path))

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        verify: bool | None = None,
        durable: bool = False,
        fsync: bool = True,
        **settings: Any,
    ) -> Engine:
        """The engine that `save` wrote: memory-mapped, changes go to a layer on top of it.

        With *verify* every byte is compared with the sums that were written, and the index is built
        anew. So it is without, where the folder is small (64 MB); of a large one the columns are
        checked, and the index is taken as it is. With `verify=False` only sizes are compared.

        A *durable* engine keeps every change in the folder before it answers, and needs no `save`;
        where there is no such folder it begins with none. With *fsync* what is answered survives a
        loss of power, without only the end of the process, however that ends.
        """
        for name, said in (("verify", verify), ("durable", durable), ("fsync", fsync)):
            if not isinstance(said, bool) and (name != "verify" or said is not None):
                raise SettingsError(f"{name} is True or False, got {describe(said)}")
        where = folder.read_path(path)
        if durable:
            from stentor.engine.durable import open_durable  # it is an engine itself

            return open_durable(where, verify, settings, fsync=fsync)
        if folder.is_durable(where):
            raise FolderError(f"{where} is a durable engine's; open it with durable=True")
        return folder.open_engine(cast("type[Engine]", cls), where, verify, settings)

    def close(self) -> None:
        """Let go of files and threads; only a durable engine has some."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        with self._lock:
            index = self._state.index
            live = index.live.current_count
            return f"<Engine: {len(self):,} subscriptions, {live:,} live events, {index.name}>"

    def _repr_html_(self) -> str:
        shown = {name: str(value) for name, value in self.stats().items()}
        return html_table("Engine", pa.Table.from_pylist([shown]))

    def _question(self, event: Mapping[str, Any] | Event, one: EventBuffer) -> EventColumns:
        """The columns of an event that is only asked about, as if it came now."""
        self._reader.read_question(event, one)
        return one.encode(self._time(), self._state.seq + 1).copy()

    def _time(self) -> int:
        """The logical time at which a question is answered."""
        now = self._clock.now()
        return self._state.time if now is None else max(self._state.time, now)

    def _current_rows(self) -> Int64:
        index = self._state.index
        rows = index.current_rows()
        return rows[index.until(rows) > self._time()]

    def _until(self, row: int) -> int:
        return int(self._state.index.until(np.array([row], np.int64))[0])

    def _row(self, id: str) -> int:
        row = self._state.subscribers.row(id)
        if row == NO_ROW or id not in self:
            raise UnknownIdError(f"no subscription has the id {id!r}", id=id)
        return row
