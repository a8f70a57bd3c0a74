"""Matches and changes as rows of the deliveries table; the k best of several shards."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stentor._files import explain_os_errors
from stentor.encoding.columns import EventColumns, Int64, MatchPairs, ScoredPairs, event_count
from stentor.encoding.ragged import children, take
from stentor.engine.apply import match
from stentor.engine.ids import StringStore
from stentor.engine.included import Include, attributes_text, included_with
from stentor.engine.state import State
from stentor.engine.top_k import TopK, top_positions
from stentor.index.structure import Structure
from stentor.index.verify.alternatives import NO_ALTERNATIVE
from stentor.model import Schema
from stentor.pipeline.commit.manifests import TableFile
from stentor.pipeline.storage.folder import StreamFolder
from stentor.pipeline.stream.isolating import Failed, isolated
from stentor.pipeline.stream.segments import LiveQueries
from stentor.pipeline.tables.files import moments, write_files
from stentor.wire.cells.layout import one_array

#: Deliveries that are gathered before a file is written.
FILE_ROWS = 4_000_000
#: What was published; what an update brought, and what it, or a withdrawal, ended.
MATCHED, NOW, WAS = 0, 1, 2
_MARKS = ["matched", "now", "was"]


def match_table(
    state: State,
    events: EventColumns,
    ids: Any,
    top: int | None,
    order: Any = None,
    mark: Int64 | None = None,
    included: Inclusion | None = None,
) -> Any:
    """The deliveries of *events*, whose *ids* are an Arrow array, as rows of the table.

    *order* is likewise what the user's own order says of each, where there is one, *mark* what
    each event is; without it all were published. *included* is what is said beside ids.
    """
    pairs = match(state, events, None if top is None else TopK(top), 1)
    position = np.repeat(np.arange(len(pairs.starts) - 1), np.diff(pairs.starts))
    count = len(position)
    if isinstance(pairs, ScoredPairs):
        scores = pa.array(pairs.scores)
    else:
        scores = pa.nulls(count, pa.float64())
    rows = pa.table(
        {
            "event": _dictionary(ids, position),
            "subscription": state.subscribers.ids.take(pairs.rows).cast(pa.string()),
            "change": pa.DictionaryArray.from_arrays(
                np.zeros(count, np.int32) if mark is None else mark[position].astype(np.int32),
                _MARKS,
            ),
            "score": scores,
            "seq": events.seq[position],
            "time": moments(events.time[position]),
        }
    )
    if order is not None:
        rows = rows.append_column("order", order.take(pa.array(position)))
    if included is None:
        return rows
    for name, column in _included(state, events, pairs, position, mark, included).items():
        rows = rows.append_column(name, column)
    return rows


class Inclusion(NamedTuple):
    """What deliveries tell beside ids, and the schema that events were encoded with."""

    include: Include
    schema: bytes  # JSON

    @classmethod
    def of(cls, include: tuple[str, ...] | str | None, schema: bytes) -> Inclusion | None:
        """What the setting *include* says."""
        wanted = Include.read(include)
        return None if wanted is None else cls(wanted, schema)


def _included(
    state: State,
    events: EventColumns,
    pairs: MatchPairs | ScoredPairs,
    position: Int64,
    mark: Int64 | None,
    included: Inclusion,
) -> dict[str, Any]:
    """What is told with *pairs*: as the engine does, where an event has left, of what it is now."""
    schema = Schema.from_dict(msgspec.json.decode(included.schema))
    found = included_with(
        state, schema, events, MatchPairs(pairs.starts, pairs.rows), included.include
    )
    attributes, alternative = list(found.attributes), found.alternative
    if mark is not None and (mark == WAS).any():
        now = {int(events.seq[one]): one for one in np.flatnonzero(mark == NOW).tolist()}
        for one in np.flatnonzero(mark == WAS).tolist():
            after = now.get(int(events.seq[one]))
            attributes[one] = None
            if after is not None:
                attributes[one] = attributes_text(events, after, schema, included.include)
        alternative = np.where(mark[position] == WAS, NO_ALTERNATIVE, alternative)
    texts = pa.array(attributes, pa.string())
    return {
        "alternative": pa.array(alternative, mask=alternative == NO_ALTERNATIVE),
        "attributes": texts.take(pa.array(position)),
    }


def passed(deliveries: Any, *, stayed: bool) -> Any:
    """*deliveries* in which updates and withdrawals say whom their events entered and left.

    With *stayed* also who wants them as before.
    """
    change = deliveries["change"].cast(pa.string())
    names = one_array(deliveries["subscription"]).dictionary_encode()
    seq = deliveries["seq"].to_numpy()
    key = (seq - seq.min(initial=0)) * max(1, len(names.dictionary)) + names.indices.to_numpy()
    is_now, is_was = (pc.equal(change, one).to_numpy() for one in ("now", "was"))
    is_kept = is_now & np.isin(key, key[is_was])
    is_left = is_was & ~np.isin(key, key[is_now])
    said = np.where(is_kept, "stayed", np.where(is_now, "entered", "matched"))
    said = np.where(is_left, "left", said)
    rows = ~is_was | is_left
    if not stayed:
        rows &= ~is_kept
    position = deliveries.column_names.index("change")
    renamed = deliveries.set_column(position, "change", pa.array(said, pa.string()))
    return renamed.take(pa.array(np.flatnonzero(rows)))


def matched_or_not(
    state: State,
    events: EventColumns,
    ids: Any,
    top: int | None,
    order: Any = None,
    mark: Int64 | None = None,
    included: Inclusion | None = None,
) -> tuple[list[Any], list[Failed]]:
    """What `match_table` gives, and the events that it fails on."""

    def attempt(some: Int64) -> Any:
        if len(some) == event_count(events):
            return match_table(state, events, ids, top, order, mark, included)
        rows = pa.array(some)
        orders = None if order is None else order.take(rows)
        marks = None if mark is None else mark[some]
        own = take(events, some)
        return match_table(state, own, ids.take(rows), top, orders, marks, included)

    done, failed = isolated(event_count(events), attempt)
    return [deliveries for _, deliveries in done], failed


def unmatched(id: str, reason: str) -> str:
    """Why an event on which matching fails is rejected."""
    return f"the event {id!r} cannot be matched ({reason}); report this, with the event"


class DeliveryFiles:
    """The files that a task writes its deliveries to."""

    def __init__(self, path: StreamFolder, batch: int) -> None:
        self._path = path
        self._batch = batch
        self._gathered: list[Any] = []
        self._rows = 0
        self._files: list[TableFile] = []
        self.seconds = 0.0

    def add(self, deliveries: Any) -> None:
        """Take in rows of the table."""
        if deliveries.num_rows:
            self._gathered.append(deliveries)
            self._rows += deliveries.num_rows
        if self._rows >= FILE_ROWS:
            self._write()

    def close(self) -> list[TableFile]:
        """Write what is left; all files."""
        self._write()
        return self._files

    def _write(self) -> None:
        if self._gathered:
            started = process_time()
            plain = [without_dictionaries(rows) for rows in self._gathered]
            table = pa.concat_tables(plain, promote_options="default")
            self._files += write_files(self._path, "deliveries", table, self._batch)
            self._gathered, self._rows = [], 0
            self.seconds += process_time() - started


def without_dictionaries(deliveries: Any) -> Any:
    """*deliveries* without dictionaries."""
    for position, name in enumerate(("event", "subscription", "change")):
        column = deliveries[name]
        if pa.types.is_dictionary(column.type):
            deliveries = deliveries.set_column(position, name, column.cast(pa.string()))
    return deliveries


def _dictionary(values: Any, positions: Any) -> Any:
    """`values[positions]`, each value stored once."""
    one = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return pa.DictionaryArray.from_arrays(pa.array(positions, pa.int32()), one)


class Answers(NamedTuple):
    """Pairs of a change and a live event."""

    change: Int64
    event: Int64


def answer_changes(
    queries: LiveQueries,
    events: Structure,
    ids: StringStore,
    upto: Int64 | None,
    *,
    has_order: bool,
) -> Any:
    """Deliveries `added` and `removed` by the changes *queries*, as rows of the table.

    An event counts for a change where it came before it and is not over then; *upto* are the seqs
    at which events ended otherwise, where some did.
    """
    pairs = events.match_live(queries.columns)
    live = events.live.columns
    before, after = (
        _answers(queries, pairs, versions, live, upto)
        for versions in (queries.before, queries.after)
    )
    count = len(live.until)
    was, now = (answers.change * count + answers.event for answers in (before, after))
    added, removed = np.setdiff1d(now, was), np.setdiff1d(was, now)
    both = np.concatenate([added, removed])
    change, event = np.divmod(both, max(count, 1))
    names = pa.array(["added"] * len(added) + ["removed"] * len(removed), pa.string())
    rows = pa.table(
        {
            "event": ids.take(event).cast(pa.string()),
            "subscription": queries.ids.arrow.take(pa.array(change)).cast(pa.string()),
            "change": names,
            "score": pa.nulls(len(both), pa.float64()),
            "seq": queries.seq[change],
            "time": moments(queries.time[change]),
        }
    )
    return rows.append_column("order", pa.array(queries.order[change])) if has_order else rows


def _answers(
    queries: LiveQueries,
    pairs: MatchPairs,
    versions: Int64,
    live: EventColumns,
    upto: Int64 | None,
) -> Answers:
    """The live events that the given version of each change wanted when it happened."""
    known = np.flatnonzero(versions >= 0)
    positions, starts = children(pairs.starts, versions[known])
    change, event = np.repeat(known, np.diff(starts)), pairs.rows[positions]
    is_live = (live.seq[event] < queries.seq[change]) & (live.until[event] > queries.time[change])
    if upto is not None:
        is_live &= upto[event] > queries.seq[change]
    return Answers(change[is_live], event[is_live])


class RankReport(msgspec.Struct, frozen=True):
    """The files of one chunk's deliveries."""

    files: list[TableFile]


@dataclass(frozen=True)
class RankStep:
    """What follows the matching step of a sharded plan: task number n ranks chunk n."""

    path: StreamFolder
    work: StreamFolder
    batch: int
    found: tuple[tuple[str, ...], ...]  # per chunk the files in which shards left their best
    top: int
    stayed: bool

    def task(self, number: int) -> RankReport:
        """Rank one chunk."""
        tables = [read_found(self.work, name) for name in self.found[number]]
        if not tables:
            return RankReport([])
        best = passed(k_best(pa.concat_tables(tables), self.top), stayed=self.stayed)
        return RankReport(write_files(self.path, "deliveries", best, self.batch))


def k_best(deliveries: Any, k: int) -> Any:
    """The k best rows of each event, best first; equal scores go by id."""
    seq, scores = deliveries["seq"].to_numpy(), deliveries["score"].to_numpy()
    seq = 2 * seq + pc.equal(deliveries["change"], "was").to_numpy()  # each by itself
    return deliveries.take(pa.array(top_positions(seq, scores, deliveries["subscription"], k)))


def write_best(work: StreamFolder, name: str, deliveries: Any) -> None:
    """Leave what one shard found best for the ranking."""
    path = work.new(name)
    with (
        explain_os_errors(path),
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_file(file, deliveries.schema) as writer,
    ):
        writer.write_table(deliveries)
    work.keep(name, durable=False)


def read_found(work: StreamFolder, name: str) -> Any:
    """What `write_found` left."""
    with pa.memory_map(str(work.file(name))) as file:
        return pa.ipc.open_file(file).read_all()
