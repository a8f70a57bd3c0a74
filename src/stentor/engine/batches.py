"""Many records at a time: from Python objects, Arrow tables or pandas frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from stentor.encoding.collected import Asked, Encoded
from stentor.encoding.columns import EventColumns, Int64
from stentor.encoding.parameters import ParameterEncoder
from stentor.engine.arrivals import Prepared
from stentor.engine.core import Arriving
from stentor.engine.plan import Operation, Step
from stentor.engine.ranking import Best
from stentor.engine.report import Batch, Report
from stentor.errors import RecordError, SettingsError, StentorError
from stentor.model.record import Record
from stentor.model.time import BEGINNING, NEVER
from stentor.wire.cells.layout import reasons_by_row
from stentor.wire.cells.strings import string_array
from stentor.wire.cells.times import filled
from stentor.wire.event_tables import EventBatch, events_from_table
from stentor.wire.frames import as_table, columns_of
from stentor.wire.records import Op
from stentor.wire.table_fields import positions_of, read_fields

if TYPE_CHECKING:
    from stentor.engine.engine import Engine

#: What the columns of a table of subscriptions are for; others are parameters.
_FIELDS = ("id", "expression", "at", "until", "time", "op", "seq")


def step(engine: Engine, records: Any, top: Best | None) -> Report:
    """Mixed records, from objects or from the rows of a table."""
    prepared = Prepared(engine.schema, engine.limits, engine._now)
    prepared.add_all(_rows(records))
    return engine._report(prepared.batch(), prepared.arriving(), top)


def step_rows(engine: Engine, table: Any, op: Op) -> Report:
    """Rows of a table that all do *op*."""
    rows = as_table(table)
    _check_op(rows, op)
    return step(engine, [{**row, "op": op} for row in rows.to_pylist()], None)


def _check_op(table: Any, op: Op) -> None:
    if "op" in table.column_names:
        others = set(table["op"].to_pylist()) - {None, op}
        if others:
            raise RecordError(
                f"every row does {op!r} here, got {sorted(map(str, others))}; "
                "`step` takes records of all kinds",
                field="op",
            )


def _rows(records: Any) -> Iterable[Record | Mapping[str, Any]]:
    if isinstance(records, Mapping):
        raise SettingsError("a step takes several records: put this one into a list")
    if isinstance(records, (pa.Table, pa.RecordBatch)) or hasattr(records, "iterrows"):
        rows: list[dict[str, Any]] = as_table(records).to_pylist()
        return rows
    given: Iterable[Record | Mapping[str, Any]] = records
    return given


def publish(engine: Engine, events: Any, top: Best | None) -> Report:
    """A table of events."""
    now = engine._now()
    table = as_table(events)
    read = events_from_table(
        table,
        engine.schema,
        default_time=BEGINNING if now is None else now,
        limits=engine.limits,
    )
    errors: dict[int, StentorError] = {
        one.row: RecordError(one.reason) for one in read.rejected if one.row is not None
    }
    batch = Batch(table.num_rows, read.ids, read.rows, errors)
    if not len(engine._state.events) and (read.columns.until == NEVER).all():
        return engine._report(batch, read.columns, top)
    return engine._report(batch, Arriving(_publishing(read), events=read.columns), top)


def sample(engine: Engine, events: Any) -> EventColumns:
    """A table of events that are only looked at; it teaches the schema nothing."""
    return events_from_table(
        as_table(events),
        engine.schema.unteachable(),
        default_time=BEGINNING,
        limits=engine.limits,
    ).columns


def _publishing(read: EventBatch) -> list[Step]:
    untils, times = read.columns.until.tolist(), read.columns.time.tolist()
    return [
        Step(Operation.PUBLISH, id, time, place, until)
        for place, (id, time, until) in enumerate(
            zip(read.ids.to_pylist(), times, untils, strict=True)
        )
    ]


def subscribe(engine: Engine, subscriptions: Any, expression: str | None) -> Report:
    """A table of subscriptions: of texts, or of parameters of one *expression*."""
    table = as_table(subscriptions)
    _check_op(table, "subscribe")
    asked, times, errors = _asked(engine, table)
    if expression is None:
        given = _texts(table)
        encoded = engine._texts.encode(given, asked)
        texts = [given[row] for row in encoded.rows.tolist()]
    else:
        encoder = ParameterEncoder(expression, engine.schema, engine.limits.expression)
        columns = columns_of(table)
        values = {name: array for name, array in columns.items() if name not in _FIELDS}
        encoded = encoder.encode(values, asked)
        texts = encoder.texts(values, encoded.rows)
    return _subscribed(engine, asked, times, texts, encoded, errors)


def _asked(engine: Engine, table: Any) -> tuple[Asked, Int64, dict[int, StentorError]]:
    """Who asks, from where, until when; when each came; and which rows are bad."""
    named = table.select([name for name in table.column_names if name in _FIELDS])
    fields = read_fields(named, engine.schema, engine.limits, others=("expression", "at"))
    now = engine._now()
    asked = Asked(
        string_array(fields.ids).to_pylist(),
        positions_of(fields.others.get("at"), table.num_rows),
        filled(fields.until, NEVER),
    )
    time = filled(fields.time, BEGINNING if now is None else now)
    reasons = reasons_by_row(fields.problems)
    return asked, time, {row: RecordError(reason) for row, reason in reasons.items()}


def _texts(table: Any) -> list[str]:
    if "expression" not in table.column_names:
        raise RecordError(
            "the table has no such column; give the expression once, with :parameters, or a "
            "text in each row",
            field="expression",
        )
    texts = columns_of(table)["expression"].to_pylist()
    if not all(text is None or isinstance(text, str) for text in texts):
        raise RecordError("expected texts", field="expression")
    return ["" if text is None else text for text in texts]


def _subscribed(
    engine: Engine,
    asked: Asked,
    times: Int64,
    texts: list[str],
    encoded: Encoded,
    errors: dict[int, StentorError],
) -> Report:
    errors = {**encoded.errors, **errors}
    rows = encoded.rows.tolist()
    steps = [
        Step(Operation.SUBSCRIBE, asked.ids[row], int(times[row]), place, int(asked.until[row]))
        for place, row in enumerate(rows)
        if row not in errors
    ]
    batch = Batch(
        len(asked.ids),
        [one.id for one in steps],
        np.array([rows[one.place] for one in steps], np.int64),
        errors,
    )
    arriving = Arriving(steps, encoded.columns, texts)
    return engine._report(batch, arriving, None)
