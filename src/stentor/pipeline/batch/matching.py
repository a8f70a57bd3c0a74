"""Worker's side: Arrow batches of events → Arrow batches of matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import Float64, Int64, ScoredPairs
from stentor.engine.top_k import top_positions
from stentor.errors import FolderError
from stentor.index.verify import scores_of
from stentor.pipeline.batch.build import run_folder
from stentor.pipeline.batch.rejected import RejectedPolicy, RejectSummary, id_in
from stentor.pipeline.snapshots import Shard, open_shard
from stentor.wire.limits import RecordLimits
from stentor.wire.tables import EventBatch, read_event_table

#: What `match` gives. A row without a subscription is a problem, written as its event.
MATCHES: Final = "event string, subscription string, score double"
_MATCHES_ARROW: Final = pa.schema(
    [("event", pa.string()), ("subscription", pa.string()), ("score", pa.float64())]
)
#: The column that says which run's index a batch of events is to be matched with.
RUN: Final = "run"
#: Shards that a process keeps open; each takes some forty file descriptors.
MOST_OPEN: Final = 12
#: Matches that go back to Spark at a time.
MOST_ROWS: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class MatchEvents:
    """For `mapInArrow`: events → `MATCHES`, those of the *top* best where it is a number.

    The index is that of the *shards*, folders of a snapshot; or, where there are none, of the run
    in *scratch* that the events' column `run` names.
    """

    shards: tuple[str, ...]
    scratch: str
    top: int | None
    rejected: RejectedPolicy
    limits: RecordLimits

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            shards = [_opened(folder) for folder in self._folders(table)]
            if shards and table.num_rows:
                yield from self._matches(table, shards)

    def _folders(self, table: pa.Table) -> Sequence[str]:
        if self.shards or not table.num_rows:
            return self.shards
        run = table[RUN][0].as_py()
        return () if run is None else (str(run_folder(Path(self.scratch), run)),)

    def _matches(self, table: pa.Table, shards: list[Shard]) -> Iterator[pa.RecordBatch]:
        events = read_event_table(
            table.select([name for name in table.column_names if name != RUN]),
            shards[0].schema,
            searched=frozenset().union(*(shard.searched for shard in shards)),
            limits=self.limits,
        )
        rejects = RejectSummary.of(
            (id_in(table, one.row), one.reason) for one in events.rejected if one.row is not None
        )
        problem = rejects.problem(self.rejected, f"{table.num_rows:,} events of a batch")
        if problem is not None:
            row = {"event": problem}
            yield pa.RecordBatch.from_pylist([row], schema=_MATCHES_ARROW)
        elif self.top is None:
            yield from _all_matches(events, shards)
        else:
            top = self.top
            best = [
                _named(events, shard, shard.state.index.top(events.columns, top), slice(None))
                for shard in shards
            ]
            yield k_best(best, top).batch()


def _all_matches(events: EventBatch, shards: list[Shard]) -> Iterator[pa.RecordBatch]:
    for shard in shards:
        pairs = shard.state.index.match(events.columns)
        found = ScoredPairs(*pairs, scores_of(shard.columns, events.columns, pairs))
        for start in range(0, len(pairs.rows), MOST_ROWS):
            yield _named(events, shard, found, slice(start, start + MOST_ROWS)).batch()


class Matches(NamedTuple):
    """Matches by the names of both sides."""

    events: Any  # the batch's ids, as an Arrow array
    event: Int64  # (matches,) the event's position in the batch
    subscriptions: Any  # (matches,) ids, as an Arrow array
    scores: Float64  # (matches,)

    def batch(self) -> pa.RecordBatch:
        """One row for each, as Spark takes them."""
        columns = [
            self.events.take(pa.array(self.event)).cast(pa.string()),
            self.subscriptions.cast(pa.string()),
            pa.array(self.scores),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_MATCHES_ARROW)


def _named(events: EventBatch, shard: Shard, pairs: ScoredPairs, rows: slice) -> Matches:
    """The given *rows* of *pairs*."""
    event = np.repeat(np.arange(len(pairs.starts) - 1), np.diff(pairs.starts))[rows]
    ids = shard.state.subscribers.ids.take(pairs.rows[rows])
    ids = pa.concat_arrays(ids.chunks) if isinstance(ids, pa.ChunkedArray) else ids
    return Matches(events.ids, event, ids, pairs.scores[rows])


def k_best(found: list[Matches], k: int) -> Matches:
    """The k best of each event among all *found*, best first; equal scores go by id.

    Cost: a sort of all that is given, which holds the ties with each k-th.
    """
    event = np.concatenate([one.event for one in found])
    scores = np.concatenate([one.scores for one in found])
    ids = pa.concat_arrays([one.subscriptions for one in found])
    kept = top_positions(event, scores, ids, k)
    return Matches(found[0].events, event[kept], ids.take(pa.array(kept)), scores[kept])


@lru_cache(maxsize=MOST_OPEN)
def _opened(folder: str) -> Shard:
    """The shard in *folder*, opened once per process."""
    if not Path(folder).exists():
        raise FolderError(
            f"{folder} is not there, so the snapshot was replaced or removed after match was "
            "called, or this machine does not see the folder; call match again"
        )
    return open_shard(Path(folder))
