"""What the reading step leaves for the later steps of a micro-batch: encoded records in files.

    NAME.events    the events' columns, their positions in the user's order, the hashes of their ids
    NAME.changes   operations, ids, texts, positions, ends; the columns of new subscriptions
    NAME.rows      the records as they came, in Arrow's file format: ids, attributes, where from

Workers write and memory-map them; they go when the batch is committed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from stentor._files import explain_os_errors
from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    SubscriptionColumns,
    UInt8,
    UInt64,
    read_only_columns,
)
from stentor.engine.ids import StringArrays
from stentor.index.storage.array_file import read_array_file, write_array_file
from stentor.index.storage.arrays import bundle_of, with_prefix

EVENTS, CHANGES, ROWS = "events", "changes", "rows"


class EventPart(NamedTuple):
    """Events of one file, in the order in which they arrived."""

    columns: EventColumns  # time is what the record said
    order: Int64
    id_hash: UInt64
    operation: UInt8  # engine.plan.Operation; what withdraws an event has no attributes


class ChangePart(NamedTuple):
    """Changes of subscriptions of one file, in the order in which they arrived."""

    operation: UInt8  # engine.plan.Operation
    ids: StringArrays
    texts: StringArrays  # empty but for new subscriptions
    order: Int64
    time: Int64
    until: Int64
    position: Float64  # (changes, 2) NaN where there is none
    place: Int64  # of a new subscription among the columns, −1 otherwise
    columns: SubscriptionColumns


def write_events(folder: Path, name: str, part: EventPart, rows: Any) -> None:
    """Write events and the table of *rows* that they were."""
    arrays = {
        **with_prefix("columns", part.columns),
        "order": part.order,
        "id_hash": part.id_hash,
        "operation": part.operation,
    }
    _write(folder, name, EVENTS, arrays, rows)


def open_events(folder: Path, name: str) -> EventPart:
    """The events that were written under *name*."""
    arrays, _ = read_array_file(folder / f"{name}.{EVENTS}", kind=EVENTS)
    columns = read_only_columns(bundle_of(EventColumns, "columns", arrays))
    operation = arrays.get("operation")  # what waits since an older version publishes
    if operation is None:
        operation = np.zeros(len(arrays["order"]), np.uint8)
    return EventPart(columns, arrays["order"], arrays["id_hash"], operation)


def write_changes(folder: Path, name: str, part: ChangePart, rows: Any) -> None:
    """Write changes and the table of *rows* that they were."""
    arrays = {
        **with_prefix("ids", part.ids),
        **with_prefix("texts", part.texts),
        **with_prefix("columns", part.columns),
        **{field: getattr(part, field) for field in _PLAIN},
    }
    _write(folder, name, CHANGES, arrays, rows)


def open_changes(folder: Path, name: str) -> ChangePart:
    """The changes that were written under *name*."""
    arrays, _ = read_array_file(folder / f"{name}.{CHANGES}", kind=CHANGES)
    return ChangePart(
        ids=bundle_of(StringArrays, "ids", arrays),
        texts=bundle_of(StringArrays, "texts", arrays),
        columns=read_only_columns(bundle_of(SubscriptionColumns, "columns", arrays)),
        **{field: arrays[field] for field in _PLAIN},
    )


def open_rows(folder: Path, name: str) -> Any:
    """The records as they came: an Arrow table over the mapped file."""
    with pa.memory_map(str(folder / f"{name}.{ROWS}")) as file:
        return pa.ipc.open_file(file).read_all()


_PLAIN = ("operation", "order", "time", "until", "position", "place")


def _write(folder: Path, name: str, kind: str, arrays: dict[str, Any], rows: Any) -> None:
    path = str(folder / f"{name}.{ROWS}")
    with explain_os_errors(folder):
        write_array_file(folder / f"{name}.{kind}", arrays, kind=kind, durable=False)
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows)
