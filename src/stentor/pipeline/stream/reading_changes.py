"""Rows of a table that change subscriptions → what the settling step takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

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
from stentor.wire.limits import RecordLimits
from stentor.wire.records import check_change
from stentor.wire.table_fields import positions_of, read_fields

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
    fields = read_fields(named, readers.schema, limits, others=("expression", "at"))
    errors = reasons_by_row(fields.problems)
    ops = string_array(fields.op).to_pylist()
    ids = string_array(fields.ids).to_pylist()
    texts = table["expression"].to_pylist()
    position = positions_of(fields.others.get("at"), len(ids))
    until = filled(fields.until, NEVER)
    for row, op in enumerate(ops):
        if row not in errors:
            try:
                check_change(
                    op,
                    texts[row],
                    has_at=not np.isnan(position[row, 0]),
                    has_until=until[row] != NEVER,
                )
            except StentorError as error:
                errors[row] = str(error)
    new = np.array(
        [row for row, op in enumerate(ops) if op == "subscribe" and row not in errors], np.int64
    )
    asked = Asked([ids[row] for row in new], position[new], until[new])
    encoded = readers.texts.encode([texts[row] for row in new], asked)
    errors |= {int(new[row]): str(error) for row, error in encoded.errors.items()}
    rows = np.array([row for row in range(len(ids)) if row not in errors], np.int64)
    place = np.full(len(ids), -1, np.int64)
    place[new[encoded.rows]] = np.arange(len(encoded.rows))
    part = ChangePart(
        operation=np.array([Operation[ops[row].upper()] for row in rows], np.uint8),
        ids=_arrays([ids[row] for row in rows]),
        texts=_arrays([texts[row] or "" for row in rows]),
        order=order[rows],
        time=filled(fields.time, default_time)[rows],
        until=until[rows],
        position=position[rows],
        place=place[rows],
        columns=encoded.columns,
    )
    return part, rows, errors


def _arrays(strings: list[str]) -> StringArrays:
    return StringArrays.of(pa.array(strings, pa.large_string()))
