"""Tables of records of any kind → records, row by row; events alone are faster as columns.

A table may mix kinds: its column `op` says what each row does, and a null is a field that the row
does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import numpy as np

from stentor.errors import StentorError
from stentor.model import Schema, Subscription
from stentor.model.record import Record
from stentor.wire.cells.layout import reasons_by_row
from stentor.wire.cells.plain import plain_cells, plain_instants
from stentor.wire.cells.weights import weights_by_row
from stentor.wire.events import NESTED
from stentor.wire.formats import ReadSettings
from stentor.wire.frames import as_table, rejected_row
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits
from stentor.wire.records import record_from_dict, subscription_from_dict
from stentor.wire.rejected import Rejected
from stentor.wire.table_fields import TableFields, read_fields

Found = TypeVar("Found")

#: What a subscription has that an event has not.
_SUBSCRIPTION: Final = ("expression", "at")


def records_from_table(
    frame: Any, schema: Schema, settings: ReadSettings | None = None
) -> Iterator[Record | Rejected]:
    """The record of each row of *frame*, an Arrow table or a DataFrame; *schema* learns of them.

    Of the *settings*, `format` and `point` say nothing about tables.
    """
    chosen = settings or ReadSettings()

    def read(raw: dict[str, Any]) -> Record:
        return record_from_dict(raw, schema, chosen.limits, chosen.default_op)

    return _each_row(as_table(frame), schema, chosen.limits, read)


def subscriptions_from_table(
    frame: Any, schema: Schema, limits: RecordLimits = DEFAULT_RECORD_LIMITS
) -> Iterator[Subscription | Rejected]:
    """The subscription of each row of *frame*: the columns `id`, `expression`, `at`, `until`."""

    def read(raw: dict[str, Any]) -> Subscription:
        return subscription_from_dict(raw, schema, limits)

    return _each_row(as_table(frame), schema, limits, read)


def _each_row(
    table: Any, schema: Schema, limits: RecordLimits, read: Callable[[dict[str, Any]], Found]
) -> Iterator[Found | Rejected]:
    # A row may teach the schema what the next one is read as: `read` looks at kinds, row by row.
    fields = read_fields(table, schema, limits, expects_kinds=False, others=_SUBSCRIPTION)
    reasons = reasons_by_row(fields.problems)
    for row, raw in enumerate(_dicts(fields, reasons)):
        found: Found | Rejected
        try:
            found = rejected_row(table, row, reasons[row]) if row in reasons else read(raw)
        except StentorError as error:
            found = rejected_row(table, row, str(error))
        yield found


def _dicts(fields: TableFields, bad: dict[int, str]) -> Iterator[dict[str, Any]]:
    """Each row as a dict without its nulls; the *bad* ones hold nothing in particular."""
    rows = len(fields.ids.valid)
    usable = np.ones(rows, np.bool_)
    usable[list(bad)] = False
    seq, has_seq = fields.seq
    head: dict[str, list[Any]] = {
        "id": plain_cells(fields.ids, usable),
        "op": plain_cells(fields.op, usable),
        "until": plain_instants(fields.until, usable),
        "time": plain_instants(fields.time, usable),
        "seq": [one if given else None for one, given in zip(seq.tolist(), has_seq, strict=True)],
        **{name: plain_cells(cells, usable) for name, cells in fields.others.items()},
    }
    if fields.weights is not None:
        head["weights"] = weights_by_row(fields.weights, rows)
    attributes = {name: plain_cells(cells, usable) for name, cells in fields.attributes.items()}
    if not fields.is_nested:
        head |= attributes
    for row in range(rows):
        raw = _row(head, row)
        if fields.is_nested and (nested := _row(attributes, row)):
            raw[NESTED] = nested
        yield raw


def _row(columns: dict[str, list[Any]], row: int) -> dict[str, Any]:
    return {name: cells[row] for name, cells in columns.items() if cells[row] is not None}
