"""The engine's memory: an index, and the ids and texts of what is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import EventColumns, Float64, Int64, SubscriptionColumns
from stentor.encoding.ragged import take
from stentor.engine.endings import Endings
from stentor.engine.ids import NO_ROW, IdTable
from stentor.engine.plan import IN_INDEX, EventVersion, Version
from stentor.engine.safe_region import Regions, Shrunk
from stentor.engine.tags import Among, Tags, TagTable
from stentor.engine.texts import ExpressionTexts, ShapedTexts
from stentor.errors import BrokenEngineError
from stentor.index.contract import NOTHING_LEARNED, Index, Learned
from stentor.index.layered import Layered
from stentor.index.pairs import MatchChanges
from stentor.index.safe_distance import SafeDistances
from stentor.index.table import moved
from stentor.model import Schema
from stentor.model.values.labels import EVERY_LABEL
from stentor.model.values.time import BEGINNING

#: Rows of what is gone are kept until they outnumber what is left, and this.
MIN_DEAD_ROWS = 4096
#: Each record pays for removing at most so many rows that are over.
EXPIRED_PER_RECORD = 4
#: So many rows are looked at together: their columns are copied.
_ROWS_AT_ONCE = 65_536


class LiveRows(NamedTuple):
    """Some rows of a table of live events, and their ids, as they were."""

    columns: EventColumns
    register: IdTable
    rows: Int64
    among: Mapping[int, Among]


class Journal:
    """What leads back to before a change of *state*: it is written before anything happens.

    In a `with` block it is the state's `journal`, and stays that where the block raises.
    """

    __slots__ = (
        "_state", "dropped", "ended", "event_rows", "is_running",
        "live", "moved", "regions", "rows", "seq", "time",
    )  # fmt: skip

    def __init__(self, state: State) -> None:
        self._state = state
        self.rows, self.event_rows = len(state.subscribers.ids), len(state.events.ids)
        self.seq, self.time = state.seq, state.time
        self.is_running = True
        self.ended: list[Int64] = []  # rows that were current
        self.moved: list[tuple[Int64, Float64]] = []  # rows, where they were
        self.dropped: list[Int64] = []  # event rows
        self.regions: dict[int, float] = {}  # safe distances by row
        self.live: LiveRows | None = None  # where their rows are numbered anew

    def __enter__(self) -> None:
        self._state.journal = self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._state.journal = None
        self.is_running = False


class State:
    """Subscriptions and live events, by row in the index and by id.

    Invariant: the register's current row of an id is the only row of that id which is not removed.
    Invariant: while there is a `journal`, a change is under way, or was cut off by an exception.
    """

    def __init__(self, index: Index, subscribers: IdTable | None = None) -> None:
        self.index = index
        self.subscribers = IdTable() if subscribers is None else subscribers
        self.texts = ExpressionTexts()
        self.tags = TagTable(len(self.subscribers.ids))
        self.events = IdTable()
        self.among: dict[int, Among] = {}  # of live events that are not for all, by row
        self.safe_distances = SafeDistances(index.live)
        self.regions = Regions()
        self.history: EventColumns | None = None  # a sample of what is published, if one was given
        self._built_for: EventColumns | None = None  # the history when the index was built
        self.seq = 0
        self.time = BEGINNING
        self.journal: Journal | None = None
        self._subscriptions_ending = Endings()
        self._events_ending = Endings()

    def change(self) -> Journal:
        """What is done in the block happens as a whole; where it raises, `undone` leads back."""
        return Journal(self)

    def cut_off(self) -> None:
        """Know that whoever was at work here, changing or reading, will not go on."""
        if self.journal is None:
            self.journal = Journal(self)
        self.journal.is_running = False

    def version(self, id: str) -> Version | None:
        """The version of *id* in the index, though it may be over; None where there is none."""
        row = self.subscribers.row(id)
        if row == NO_ROW:
            return None
        until = int(self.index.until(np.array([row], np.int64))[0])
        return Version(id, None, IN_INDEX, row, until)

    def event_until(self, id: str) -> int | None:
        """Until when the event *id* is live; None where it is not kept."""
        row = self.events.row(id)
        return None if row == NO_ROW else int(self.index.live.columns.until[row])

    def event(self, id: str) -> EventVersion | None:
        """The live event *id*, though it may be over; None where it is not kept."""
        row = self.events.row(id)
        if row == NO_ROW:
            return None
        until = int(self.index.live.columns.until[row])
        return EventVersion(IN_INDEX, row, until, self.among.get(row))

    def insert(
        self,
        columns: SubscriptionColumns,
        ids: list[str],
        texts: list[str] | ShapedTexts,
        since: Int64,
        *,
        tags: Sequence[Tags] | None = None,
        are_new: bool = False,
    ) -> Int64:
        """Insert subscriptions under their ids, each holding after its *since*; their rows.

        *are_new* says that the register has none of the ids.
        """
        first = self.index.insert(columns, since)
        if are_new:
            self.subscribers.add_new(ids)
        else:
            self.subscribers.add(ids)
        self.texts.extend(texts)
        self.tags.extend(tags, len(ids))
        self._subscriptions_ending.add_all(first, columns.until)
        return np.arange(first, first + len(ids), dtype=np.int64)

    def watch_endings(self, until: Int64) -> None:
        """Remember when the first rows end: those of an index that was opened."""
        self._subscriptions_ending.watch(until)

    def close(self, rows: Int64, seq: Int64) -> None:
        """Let each of *rows* hold only for records before its *seq*; `remove` it afterwards."""
        if self.journal is not None:
            self.journal.ended.append(rows)
        self._forget_regions(rows)
        self.index.close(rows, seq)

    def move(self, rows: Int64, positions: Float64) -> None:
        """Put the subscribers *rows* at *positions* (n × 2)."""
        self._note_moves(rows)
        self.index.move(rows, positions)

    def move_and_match(self, rows: Int64, positions: Float64) -> MatchChanges:
        """`move`, and how it changes which live events each of *rows* (each once) wants."""
        self._note_moves(rows)
        return self.index.move_and_match(rows, positions)

    def _note_moves(self, rows: Int64) -> None:
        if self.journal is not None:
            self.journal.moved.append((rows, self.index.positions(rows)))
        self._forget_regions(rows)

    def shrink_regions(self, shrunk: Shrunk) -> None:
        """Let regions be what new events left of them."""
        self._note_regions(shrunk.row)
        self.regions.shrink(shrunk)

    def _forget_regions(self, rows: Int64) -> None:
        if not self.regions.is_empty:
            self._note_regions(rows)
            self.regions.forget(rows)

    def _note_regions(self, rows: Int64) -> None:
        if self.journal is not None:
            for row, known in zip(*(one.tolist() for one in self.regions.among(rows)), strict=True):
                self.journal.regions.setdefault(row, known)

    def remove(self, rows: list[int]) -> None:
        """Forget the subscriptions in *rows*."""
        if rows:
            gone = np.array(rows, np.int64)
            if self.journal is not None:
                self.journal.ended.append(gone)
            self._forget_regions(gone)
            self.index.remove(gone)
            for row in rows:
                self.subscribers.forget(self.subscribers.ids[row], row)

    def hold(
        self, events: EventColumns, ids: list[str], among: Sequence[Among | None] | None = None
    ) -> int:
        """Keep live events, which their ids mean from now on; the event row of the first."""
        first = self.index.hold(events)
        for row, one in enumerate(among or (), start=first):
            if one is not None:
                self.among[row] = one
        self.events.add(ids)
        self._events_ending.add_all(first, events.until)
        return first

    def drop(self, rows: list[int]) -> None:
        """Forget the live events in *rows*."""
        if rows:
            gone = np.array(rows, np.int64)
            if self.journal is not None:
                self.journal.dropped.append(gone)
            self.index.drop(gone)
            for row in rows:
                self.events.forget(self.events.ids[row], row)

    def are_for(self, rows: Int64, tags: Tags) -> npt.NDArray[np.bool_]:
        """Which of the live events *rows* are for a subscription of these *tags*."""
        found = np.ones(len(rows), np.bool_)
        if self.among:
            own = tags.labels.items()
            for position, row in enumerate(rows.tolist()):
                among = self.among.get(row)
                found[position] = among is None or among <= own or tags.labels == EVERY_LABEL
        return found

    def expire(self, most: int | None = None) -> bool:
        """Remove subscriptions and drop events that are over, at most *most* of each; any?

        What is matched from now on is matched at this time or later.
        """
        time, found = self.time, False
        self.index.advance(time)
        if self._subscriptions_ending.soonest <= time:
            ended, found = self._subscriptions_ending.over(time, most), True
            self.remove([row for row in ended if self.index.is_current(row)])
        if self._events_ending.soonest <= time:
            ended, found = self._events_ending.over(time, most), True
            self.drop([row for row in ended if not self.index.live.hidden[row]])
        return found

    def pass_record(self, seq: int, time: int) -> bool:
        """Let a record that changes nothing else have come; whether anything ended meanwhile."""
        with self.change():
            self.seq, self.time = seq, time
            return self.expire(EXPIRED_PER_RECORD)

    def is_crowded(self) -> bool:
        """Whether subscriptions that are gone outnumber the others, or a base has changed much."""
        if isinstance(self.index, Layered) and self.index.should_merge():
            return True
        return _is_mostly_gone(self.subscribers)

    def forget_dropped(self) -> None:
        """Give back the rows of events that are gone, where they outnumber those that are live.

        Cost: what the live events hold; no subscription is touched.
        """
        if not _is_mostly_gone(self.events):
            return
        with self.change():
            assert self.journal is not None
            self.journal.live = self._live()
            kept = self.index.forget_dropped()
            self.events = self.events.kept(kept)
            self.among = _renumbered(self.among, kept)
            self._events_ending = Endings()
            self._events_ending.watch(self.index.live.columns.until)
            self.safe_distances = SafeDistances(self.index.live)

    def _live(self) -> LiveRows:
        live = self.index.live
        return LiveRows(live.columns, self.events, live.current_rows(), dict(self.among))

    def rebuilt(self, index_class: type[Index]) -> State:
        """The same state in a fresh index without the rows of what is gone, for its history."""
        with self.change():
            self.expire()
        rows = self.index.current_rows()
        return self._copied(
            index_class,
            rows,
            self.index.columns_of(rows),
            self._live(),
            (self.seq, self.time),
            self._measured(),
            self.index.learned(rows),
        )

    def _measured(self) -> EventColumns | None:
        """What a fresh index is built for: the history, or a sample of what was matched."""
        if self.history is None or (self.history is self._built_for and self.index.is_misfiled()):
            return self.index.sample()
        return self.history

    def recovered(self, index_class: type[Index]) -> State:
        """`undone`; a BrokenEngineError where the change still runs, or cannot be undone."""
        assert self.journal is not None
        if self.journal.is_running:
            raise BrokenEngineError(
                "this engine is in the middle of a change, and cannot answer a signal handler "
                "that came in between; let the handler set a flag, and ask the engine later"
            )
        try:
            return self.undone(index_class)
        except Exception as error:
            raise BrokenEngineError(
                "a change of this engine was cut off and cannot be undone "
                f"({type(error).__name__}: {error}), so it answers nothing and is not saved; "
                "try again when there is memory, or open the folder that was saved last"
            ) from error

    def undone(self, index_class: type[Index]) -> State:
        """The state before the change that was cut off, in a fresh index.

        Nothing of the index is read but its tables: these only grow, and what was overwritten in
        them is in the journal.
        """
        before = self.journal
        assert before is not None
        rows = np.unique(np.concatenate([self.index.current_rows(), *before.ended]))
        rows = rows[rows < before.rows]
        columns = self.index.columns_of(rows)
        for moved_rows, positions in reversed(before.moved):
            kept = np.isin(moved_rows, rows)
            columns = moved(columns, np.searchsorted(rows, moved_rows[kept]), positions[kept])
        live = before.live
        if live is None:
            live = self._live()
            event_rows = np.unique(np.concatenate([live.rows, *before.dropped]))
            live = live._replace(rows=event_rows[event_rows < before.event_rows])
        order = before.seq, before.time
        return self._copied(index_class, rows, columns, live, order, self.history)

    def _copied(
        self,
        index_class: type[Index],
        rows: Int64,
        columns: SubscriptionColumns,
        live: LiveRows,
        order: tuple[int, int],
        history: EventColumns | None,
        learned: Learned = NOTHING_LEARNED,
    ) -> State:
        """The subscriptions *rows*, as *columns* say, and *live* events, in a fresh index."""
        fresh = State(index_class.build(columns, history, learned))
        fresh.history = fresh._built_for = self.history
        fresh.subscribers.add(self.subscribers.ids.take(rows).to_pylist())
        fresh.texts = self.texts.kept(rows)
        fresh.tags = self.tags.kept(rows)
        fresh.watch_endings(columns.until)
        fresh.seq, fresh.time = order
        fresh.hold(take(live.columns, live.rows), live.register.ids.take(live.rows).to_pylist())
        fresh.among = _renumbered(live.among, live.rows)
        known = dict(zip(*self.regions.reported(), strict=True))
        if self.journal is not None:
            known = {**known, **self.journal.regions}
        if known:
            kept = rows[np.isin(rows, [*known])]
            positions = np.searchsorted(rows, kept)
            distance = np.array([known[row] for row in kept.tolist()])
            fresh.regions.put(
                positions, take(columns, positions), distance, plane=self.regions.plane
            )
        return fresh


def _renumbered(among: Mapping[int, Among], rows: Int64) -> dict[int, Among]:
    """What *among* says of *rows*, by their positions there."""
    return {
        position: among[row]
        for position, row in enumerate(rows.tolist() if among else ())
        if row in among
    }


def _is_mostly_gone(register: IdTable) -> bool:
    """Whether rows of what is gone outnumber the others, and MIN_DEAD_ROWS."""
    left = len(register)
    return len(register.ids) - left > max(MIN_DEAD_ROWS, left)


def forget_unused(schema: Schema, state: State) -> None:
    """Let *schema* forget the attributes that nothing in *state* has.

    Cost: one pass over the attributes of all subscriptions and live events.
    """
    wanted, published, effort = set[int](), set[int](), 0
    for rows in _parts(state.index.current_rows()):
        used = state.index.columns_of(rows).attribute
        wanted.update(np.unique(used).tolist())
        effort += len(used)
    live = [
        take(state.index.live.columns, rows) for rows in _parts(state.index.live.current_rows())
    ]
    for events in live if state.history is None else [*live, state.history]:
        for used in (events.attribute, events.weight_attribute):
            published.update(np.unique(used).tolist())
            effort += len(used)
    schema.forget_all_but(wanted, published, effort)


def _parts(rows: Int64) -> Iterator[Int64]:
    """*rows*, so few at a time that their columns can be copied."""
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        yield rows[start : start + _ROWS_AT_ONCE]
