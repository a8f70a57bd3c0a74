"""Rows of a table that change subscriptions → what the settling step takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stentor.encoding.collected import Asked
from stentor.encoding.columns import Int64
from stentor.encoding.texts import TextEncoder
from stentor.engine.names import StringArrays
from stentor.engine.plan import Operation
from stentor.errors import StentorError
from stentor.model import Schema
from stentor.model.time import NEVER
from stentor.pipeline.stream.parts import ChangePart
from stentor.wire.cells.layout import reasons_by_row
from stentor.wire.cells.strings import string_array
from stentor.wire.cells.times import filled
from stentor.wire.frames import take_rows
from stentor.wire.limits import RecordLimits
from stentor.wire.records import check_change
from stentor.wire.table_fields import TableFields, positions_of, read_fields

_FIELDS = ("op", "id", "expression", "at", "until", "time")


class Readers(NamedTuple):
    """What a process reads records with."""

    schema: Schema
    texts: TextEncoder


def read_changes(
    table: Any, order: Int64, readers: Readers, default_time: int, limits: RecordLimits
) -> tuple[ChangePart, Int64, dict[int, str]]:
    """The usable changes of *table*, the rows that they are, and why the others are not usable."""
    named = table.select([name for name in _FIELDS if name in table.column_names])
    rows = np.arange(table.num_rows)
    fields = _fields(named, readers, limits)
    errors = reasons_by_row(fields.problems)
    if errors:  # what stands in a bad row may have no form in Python
        rows = np.delete(rows, list(errors))
        named = take_rows(named, rows)
        fields = _fields(named, readers, limits)
    ops = string_array(fields.op).to_pylist()
    ids = string_array(fields.ids).to_pylist()
    texts = named["expression"].to_pylist()
    position = positions_of(fields.others.get("at"), len(rows))
    until = filled(fields.until, NEVER)
    wrong: dict[int, str] = {}  # by place among *rows*
    for place, op in enumerate(ops):
        try:
            check_change(
                op,
                texts[place],
                has_at=not np.isnan(position[place, 0]),
                has_until=until[place] != NEVER,
            )
        except StentorError as error:
            wrong[place] = str(error)
    new = np.array(
        [place for place, op in enumerate(ops) if op == "subscribe" and place not in wrong],
        np.int64,
    )
    asked = Asked([ids[place] for place in new], position[new], until[new])
    encoded = readers.texts.encode([texts[place] for place in new], asked)
    wrong |= {int(new[place]): str(error) for place, error in encoded.errors.items()}
    column = np.full(len(rows), -1, np.int64)
    column[new[encoded.rows]] = np.arange(len(encoded.rows))
    kept = np.array([place for place in range(len(rows)) if place not in wrong], np.int64)
    errors |= {int(rows[place]): reason for place, reason in wrong.items()}
    part = ChangePart(
        operation=np.array([Operation[ops[place].upper()] for place in kept], np.uint8),
        ids=StringArrays.of([ids[place] for place in kept]),
        texts=StringArrays.of([texts[place] or "" for place in kept]),
        order=order[rows[kept]],
        time=filled(fields.time, default_time)[kept],
        until=until[kept],
        position=position[kept],
        place=column[kept],
        columns=encoded.columns,
    )
    return part, rows[kept], errors


def _fields(named: Any, readers: Readers, limits: RecordLimits) -> TableFields:
    return read_fields(named, readers.schema, limits, others=("expression", "at"))
