"""Tables of events → columns, without a Python object for a row.

A bad row is taken out and told with its reason. A column that no event can have (its type is not
supported, or conflicts with the schema) is an error for the whole table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from stentor.encoding.columns import EventColumns, Int64
from stentor.encoding.event_batches import AttributeColumn, EventTimes, StringColumn, assemble
from stentor.encoding.readonly import all_read_only, read_only
from stentor.model import Schema
from stentor.model.schema import Use
from stentor.model.time import BEGINNING, NEVER
from stentor.wire.cells.layout import Cells, FieldProblem, problems, reasons_by_row
from stentor.wire.cells.strings import string_array
from stentor.wire.cells.times import filled
from stentor.wire.cells.weights import encode_weights
from stentor.wire.events import is_wanted
from stentor.wire.frames import as_table, rejected_row, take_rows
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits
from stentor.wire.rejected import Rejected
from stentor.wire.table_fields import TableFields, read_fields

#: How a table is named where a type conflict tells of it.
WHERE = "a table of events"


class EventBatch(NamedTuple):
    """The usable events of a table, and what became of the others."""

    ids: Any  # pyarrow.LargeStringArray (events,)
    columns: EventColumns
    rows: Int64  # (events,) each event's row in the table
    rejected: list[Rejected]


def events_from_table(
    frame: Any,
    schema: Schema,
    *,
    first_seq: int = 0,
    default_time: int = BEGINNING,
    searched: frozenset[str] | None = None,
    limits: RecordLimits = DEFAULT_RECORD_LIMITS,
) -> EventBatch:
    """The events of *frame*, an Arrow table or a DataFrame; *schema* learns from them.

    An event without a `seq` of its own has *first_seq* and its row, one without a `time` has
    *default_time*. *searched* names the attributes whose terms are wanted: all strings where it is
    None.

    Cost: a table is read column by column, and once more without its bad rows where it has any.
    """
    table = as_table(frame)
    rows = np.arange(table.num_rows)
    fields = read_fields(table, schema, limits)
    reasons = reasons_by_row([*fields.problems, *_other_ops(fields.op)])
    if reasons:
        rows = np.delete(rows, list(reasons))
        fields = read_fields(take_rows(table, rows), schema, limits)
    _learn(fields, schema)
    seq, has_seq = fields.seq
    columns = assemble(
        [_attribute_column(name, cells) for name, cells in fields.attributes.items()],
        EventTimes(
            until=filled(fields.until, NEVER),
            time=filled(fields.time, default_time),
            seq=np.where(has_seq, seq, rows + first_seq),
        ),
        schema,
        None if fields.weights is None else encode_weights(fields.weights, len(rows), schema),
        searched=searched,
    )
    rejected = [rejected_row(table, row, reason) for row, reason in sorted(reasons.items())]
    return EventBatch(string_array(fields.ids), columns, rows, rejected)


def _other_ops(op: Cells) -> list[FieldProblem]:
    if not op.valid.any():
        return []
    is_event = pc.equal(string_array(op), "publish").to_numpy(zero_copy_only=False)
    return [("op", one) for one in problems((op.valid & ~is_event, "an event's is 'publish'"))]


def _learn(fields: TableFields, schema: Schema) -> None:
    uses = [
        Use(name, cells.kind, WHERE)
        for name, cells in fields.attributes.items()
        if cells.valid.any()
    ]
    if fields.weights is not None:
        used = np.unique(fields.weights.name).tolist()
        names = (fields.weights.names[place] for place in used)
        uses += [Use(name, None, WHERE) for name in names if is_wanted(name, schema)]
    schema.learn(uses)


def _attribute_column(name: str, cells: Cells) -> AttributeColumn:
    """*cells* for `assemble`; read-only like Arrow's buffers, so that one kernel serves all."""
    strings = None if cells.strings is None else all_read_only(StringColumn(*cells.strings))
    ends = read_only(cells.low), read_only(cells.high)
    return AttributeColumn(name, read_only(cells.valid), *ends, strings)
