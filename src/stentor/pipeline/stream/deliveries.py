"""Matches on their way to the table of deliveries."""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import EventColumns, ScoredPairs
from stentor.engine.core import match
from stentor.engine.ranking import Best
from stentor.engine.state import State
from stentor.pipeline.commit.manifests import TableFile
from stentor.pipeline.tables.files import moments, write_file

#: Deliveries that are gathered before a file is written.
FILE_ROWS = 4_000_000


def matched(state: State, events: EventColumns, ids: Any, top: int | None) -> Any:
    """The deliveries of *events*, whose *ids* are an Arrow array, as rows of the table."""
    pairs = match(state, events, None if top is None else Best(top), 1)
    place = np.repeat(np.arange(len(pairs.starts) - 1), np.diff(pairs.starts))
    count = len(place)
    if isinstance(pairs, ScoredPairs):
        scores = pa.array(pairs.scores)
    else:
        scores = pa.nulls(count, pa.float64())
    return pa.table(
        {
            "event": _dictionary(ids, place),
            "subscription": state.subscribers.ids.take(pairs.rows).cast(pa.string()),
            "change": pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), ["matched"]),
            "score": scores,
            "seq": events.seq[place],
            "time": moments(events.time[place]),
        }
    )


class DeliveryFiles:
    """The files that a task writes its deliveries to."""

    def __init__(self, path: Path, batch: int) -> None:
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
            table = pa.concat_tables([plain(rows) for rows in self._gathered])
            self._files.append(write_file(self._path, "deliveries", table, self._batch))
            self._gathered, self._rows = [], 0
            self.seconds += process_time() - started


def plain(deliveries: Any) -> Any:
    """*deliveries* without dictionaries."""
    for place, name in enumerate(("event", "subscription", "change")):
        column = deliveries[name]
        if pa.types.is_dictionary(column.type):
            deliveries = deliveries.set_column(place, name, column.cast(pa.string()))
    return deliveries


def _dictionary(values: Any, places: Any) -> Any:
    """`values[places]`, each value stored once."""
    one = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), one)
