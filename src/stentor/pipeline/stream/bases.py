"""The next bases, built in the workers from the last ones and the segments since.

A shard of the new bases takes its ids from all old shards, so the number of shards may change, and
the structure too.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from stentor.encoding.columns import SubscriptionColumns, empty
from stentor.encoding.ragged import concatenate
from stentor.engine.names import StringArrays
from stentor.index.catalog import structure_class
from stentor.pipeline.snapshots import build_index, shard_of
from stentor.pipeline.stream.replicas import BASES, Replica, ShardVersion


class BaseReport(msgspec.Struct, frozen=True):
    """A base that was built: its folder's name, and how many subscriptions it holds."""

    shard: int
    name: str
    subscriptions: int


@dataclass(frozen=True)
class BaseBuilding:
    """The building of bases: task number n builds shard n."""

    path: str
    batch: int
    time: int  # what is over at this time is left behind
    schema: bytes  # JSON
    index: str
    shards: int
    old: tuple[ShardVersion, ...]

    def task(self, number: int) -> BaseReport:
        """Build one shard."""
        columns: list[SubscriptionColumns] = [empty(SubscriptionColumns)]
        ids: list[Any] = [pa.array([], pa.large_string())]
        texts: list[Any] = [pa.array([], pa.large_string())]
        # An id is in the shard of its number wherever the count stays the same.
        old = self.old if len(self.old) != self.shards else (self.old[number],)
        for version in old:
            if not version.base and not version.segments:
                continue
            # One of its own: what the process keeps for matching is ahead of this one.
            replica = Replica(version)
            replica.advance(version)
            state = replica.settle()
            rows = state.index.standing_rows()
            rows = rows[state.index.until(rows) > self.time]
            names = StringArrays.of(state.subscribers.ids.take(rows))
            mine = np.flatnonzero(shard_of(names, self.shards) == number)
            columns.append(state.index.columns_of(rows[mine]))
            ids.append(names.arrow.take(pa.array(mine)))
            texts.append(StringArrays.of(state.texts.take(rows[mine])).arrow)
        name = f"{self.batch}-{number}-{secrets.token_hex(8)}"
        build_index(
            concatenate(columns),
            StringArrays.of(pa.concat_arrays(ids)),
            StringArrays.of(pa.concat_arrays(texts)),
            structure_class(self.index),
            Path(self.path) / BASES / name,
            {"schema": msgspec.json.decode(self.schema)},
        )
        return BaseReport(number, name, sum(len(one) for one in ids))
