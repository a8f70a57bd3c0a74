"""Lists and tables of records → encoded records, each read once; bad ones are refused alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns
from stentor.encoding.event import EventBuffer
from stentor.encoding.parameters import ParameterEncoder
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.encoding.template import SubscriptionHeads
from stentor.encoding.texts import TextEncoder
from stentor.engine.apply import EncodedRecords
from stentor.engine.plan import (
    PlannedRecord,
)
from stentor.engine.report import RecordBatch
from stentor.engine.tags import NO_TAGS, Among, Tags, among_of
from stentor.engine.texts import ShapedTexts
from stentor.errors import RecordError, SettingsError, StentorError
from stentor.language.check import CheckedExpression, check_expression
from stentor.language.printer import to_text
from stentor.model import Event, Schema, Subscription
from stentor.model.record import (
    BRINGING_OPS,
    Move,
    Op,
    Operation,
    Publish,
    Record,
    Subscribe,
    Unsubscribe,
    Update,
    Withdraw,
    lasting,
)
from stentor.model.values.labels import read_labels, read_owner
from stentor.model.values.object import says
from stentor.model.values.string import describe
from stentor.model.values.time import BEGINNING, NEVER
from stentor.wire.cells.string import distinct_strings, string_array
from stentor.wire.cells.time import filled
from stentor.wire.events import learn_event
from stentor.wire.formats import ReadSettings, record_from_object
from stentor.wire.limits import RecordLimits
from stentor.wire.record import EventOp, EventReader
from stentor.wire.records import (
    check_record,
    rows_with_other_fields,
)
from stentor.wire.tables import (
    PlainRow,
    RecordTable,
    columns_of,
    plain_rows,
    positions_of,
    read_event_table,
    read_table,
    take_rows,
    to_arrow,
    unreadable_cells,
)

#: What the columns of a table of subscriptions are for; others are parameters.
_FIELDS = ("id", "expression", "at", "until", "time", "op", "seq")
_TAGS = ("owner", "labels")


def listed(given: Any, expected: str) -> Iterable[Any]:
    """*given*, one after another; a SettingsError where it is no list of anything."""
    try:
        if isinstance(given, (str, bytes, Mapping)):
            raise TypeError
        found: Iterable[Any] = iter(given)
    except TypeError:
        raise SettingsError(f"{expected}, got {type(given).__name__}") from None
    return found


class RecordEncoder:
    """Records made ready for a step; what could not be made ready is an error of the `batch`.

    Encoding happens before planning, so a record that is refused here never takes part in the
    order.
    """

    def __init__(
        self, schema: Schema, limits: RecordLimits, clock: Callable[[], int | None]
    ) -> None:
        self._schema = schema
        self._limits = limits
        self._clock = clock
        self._steps: list[PlannedRecord] = []
        self._subscriptions: list[NormalisedSubscription] = []
        self._texts: list[str] = []
        self._tags: list[Tags] = []
        self._count = 0
        self._positions: list[int] = []  # of each step among the records
        self._errors: dict[int, StentorError] = {}

    @cached_property
    def _reader(self) -> EventReader:
        return EventReader(self._schema, self._limits)

    @cached_property
    def _events(self) -> EventBuffer:
        return EventBuffer()

    def add_all(
        self,
        records: Iterable[Record | Mapping[str, Any] | RecordError],
        *,
        is_checked: bool = False,
    ) -> None:
        """Make *records* ready, one after another; what could not be read is its error."""
        for record in records:
            try:
                self.add(record, is_checked=is_checked)
            except StentorError as error:
                self._errors[self._count - 1] = error

    def add(
        self,
        record: Record | Mapping[str, Any] | RecordError,
        examined: CheckedExpression | None = None,
        *,
        is_checked: bool = False,
    ) -> None:
        """Make one record ready, or raise what is wrong with it.

        *examined* is what is known already of a subscription's expression; *is_checked* says that
        the rest is known to be right.
        """
        self._count += 1
        if isinstance(record, RecordError):
            raise record
        if type(record) is dict and says(record.get("op"), *BRINGING_OPS):
            op: EventOp = "update" if record["op"] == "update" else "publish"
            said = self._reader.read(record, self._events, op=op)
            self._published(Operation.of(op), self._clock() if said is None else said)
            return
        if isinstance(record, Mapping):
            record = record_from_object(record, self._schema, ReadSettings(limits=self._limits))
        elif not isinstance(record, Record):
            raise RecordError(f"a record is a dict or a Record, got {type(record).__name__}")
        else:
            if not is_checked:
                check_record(record, self._schema, self._limits)
            if isinstance(record, Publish | Update):
                learn_event(record.event, self._schema)
        time = self._clock() if record.time is None else record.time
        if isinstance(record, Publish):
            self._events.add_event(record.event, self._schema)
            self._published(Operation.PUBLISH, time)
            return
        if isinstance(record, Update):
            self._events.add_event(lasting(record.event), self._schema)
            self._published(Operation.UPDATE, time)
            return
        self._steps.append(self._step(record, time, examined))
        self._positions.append(self._count - 1)

    def add_known(self, record: Record, examined: CheckedExpression | None = None) -> None:
        """Make ready one record that is known to be right; where it is not, it never came."""
        try:
            self.add(record, examined, is_checked=True)
        except StentorError:
            self._count -= 1
            raise

    def add_event(
        self,
        event: Mapping[str, Any] | Event,
        op: EventOp,
        until: int | None,
        time: int | None,
        among: Mapping[str, str] | None,
    ) -> None:
        """Make ready an event that does *op*; *until*, *time* and *among* are over its own."""
        said = self._reader.read(event, self._events, until, op)
        if among is not None:
            self._events.among[len(self._events) - 1] = among
        self._count += 1
        said = self._clock() if said is None and time is None else said
        self._published(Operation.of(op), said if time is None else time)

    def _published(self, operation: Operation, time: int | None) -> None:
        """Let the last event that was read be a step."""
        position = len(self._events) - 1
        id, until = self._events.ids[position], self._events.until[position]
        among = among_of(self._events.among[position])
        self._steps.append(PlannedRecord(operation, id, time, position, until, among=among))
        self._positions.append(self._count - 1)

    def batch(self) -> RecordBatch:
        """The records as a report counts them."""
        return RecordBatch(
            self._count,
            [step.id for step in self._steps],
            np.array(self._positions, np.int64),
            self._errors,
        )

    def _step(
        self,
        record: Subscribe | Unsubscribe | Move | Withdraw,
        time: int | None,
        examined: CheckedExpression | None,
    ) -> PlannedRecord:
        match record:
            case Subscribe(subscription):
                if examined is None:
                    where, limits = f"subscription {subscription.id!r}", self._limits.expression
                    examined = check_expression(
                        subscription.expression, self._schema, where=where, limits=limits
                    )
                return self._subscribe(subscription, examined, time)
            case Unsubscribe(id):
                return PlannedRecord(Operation.UNSUBSCRIBE, id, time)
            case Withdraw(id):
                return PlannedRecord(Operation.WITHDRAW, id, time)
            case Move(id, at):
                return PlannedRecord(Operation.MOVE, id, time, at=at)

    def _subscribe(
        self, subscription: Subscription, examined: CheckedExpression, time: int | None
    ) -> PlannedRecord:
        normalised = NormalisedSubscription(
            examined.form, subscription.at, subscription.until
        ).checked()
        self._schema.learn(examined.uses)
        self._subscriptions.append(normalised)
        self._texts.append(to_text(examined.tree))
        self._tags.append(Tags(subscription.owner, subscription.labels))
        until = NEVER if subscription.until is None else subscription.until
        column = len(self._subscriptions) - 1
        return PlannedRecord(Operation.SUBSCRIBE, subscription.id, time, column, until)

    def arriving(self) -> EncodedRecords:
        """What a step takes."""
        tags = self._tags if any(one != NO_TAGS for one in self._tags) else None
        arriving = EncodedRecords(self._steps, texts=self._texts, tags=tags)
        if self._subscriptions:
            arriving.columns = encode_subscriptions(self._subscriptions, self._schema)
        if "_events" in self.__dict__:
            arriving.events = self._events.batch()
        return arriving


class NewSubscriptions(NamedTuple):
    """Subscriptions that came together, encoded."""

    columns: SubscriptionColumns
    ids: list[str]
    texts: list[str] | ShapedTexts
    times: Int64
    tags: list[Tags] | None

    def arriving(self) -> EncodedRecords:
        """The same as a step takes it."""
        rows = zip(self.ids, self.times.tolist(), self.columns.until.tolist(), strict=True)
        steps = [
            PlannedRecord(Operation.SUBSCRIBE, id, time, position, until)
            for position, (id, time, until) in enumerate(rows)
        ]
        return EncodedRecords(steps, self.columns, self.texts, tags=self.tags)


class NewEvents(NamedTuple):
    """Events that came together, encoded."""

    columns: EventColumns
    ids: Any  # a list of strings, or an Arrow array of them
    operation: Operation = Operation.PUBLISH
    among: list[Among | None] | None = None  # of each; None: all are for everybody

    def arriving(self) -> EncodedRecords:
        """The same as a step takes it."""
        untils, times = self.columns.until.tolist(), self.columns.time.tolist()
        ids = self.ids if isinstance(self.ids, list) else self.ids.to_pylist()
        among = self.among or [None] * len(ids)
        steps = [
            PlannedRecord(self.operation, id, time, position, until, among=among[position])
            for position, (id, time, until) in enumerate(zip(ids, times, untils, strict=True))
        ]
        return EncodedRecords(steps, events=self.columns)


class BatchReader:
    """Reads batches for an engine: with its schema, which learns, its limits and its clock."""

    def __init__(self, schema: Schema, limits: RecordLimits, now: Callable[[], int | None]) -> None:
        self._schema = schema
        self._limits = limits
        self._now = now
        self.forget_shapes()

    def forget_shapes(self) -> None:
        """Know no shape of texts any more: the codes of attributes have changed."""
        self._texts = TextEncoder(self._schema, self._limits.expression)

    def records(
        self, records: Any, *, is_checked: bool = False
    ) -> tuple[RecordBatch, EncodedRecords]:
        """Mixed records, from objects or from the rows of a table."""
        prepared = RecordEncoder(self._schema, self._limits, self._now)
        prepared.add_all(_rows(records, self._schema), is_checked=is_checked)
        return prepared.batch(), prepared.arriving()

    def record(self, record: Record) -> tuple[RecordBatch, EncodedRecords]:
        """One record that is known to be right."""
        prepared = RecordEncoder(self._schema, self._limits, self._now)
        prepared.add(record, is_checked=True)
        return prepared.batch(), prepared.arriving()

    def rows(self, table: Any, op: Op) -> tuple[RecordBatch, EncodedRecords]:
        """Rows of a table that all do *op*."""
        rows = plain_rows(to_arrow(table), self._schema)
        _check_ops([row.get("op") for row in rows if isinstance(row, dict)], op)
        return self.records([{**row, "op": op} if isinstance(row, dict) else row for row in rows])

    def events(self, events: Any, op: EventOp = "publish") -> tuple[RecordBatch, NewEvents]:
        """A table of events, or a list of dicts, that all do *op*."""
        now = self._now()
        default = BEGINNING if now is None else now
        if isinstance(events, list):
            return self._event_list(events, default, op)
        table = to_arrow(events)
        amongs, errors = _read_each(table, "among", lambda cell: read_labels(cell, "among"))
        usable = np.delete(np.arange(table.num_rows), list(errors))
        good = take_rows(table, usable) if errors else table
        read = read_event_table(
            good, self._schema, default_time=default, limits=self._limits, op=op
        )
        errors |= {
            int(usable[one.row]): RecordError(one.reason)
            for one in read.rejected
            if one.row is not None
        }
        rows = usable[read.rows]
        among = None
        if amongs is not None:
            among = [among_of(amongs[row] or {}) for row in rows.tolist()]
        batch = RecordBatch(table.num_rows, read.ids, rows, errors)
        return batch, NewEvents(read.columns, read.ids, Operation.of(op), among)

    def _event_list(
        self, events: list[Any], default: int, op: EventOp
    ) -> tuple[RecordBatch, NewEvents]:
        reader, buffer = EventReader(self._schema, self._limits), EventBuffer()
        errors: dict[int, StentorError] = {}
        for row, raw in enumerate(events):
            try:
                said = reader.read(raw, buffer, op=op)
            except StentorError as error:
                errors[row] = error
            else:
                buffer.time[len(buffer) - 1] = default if said is None else said
        read = np.delete(np.arange(len(events)), list(errors))
        ids = list(buffer.ids)
        among = [among_of(one) for one in buffer.among] if any(buffer.among) else None
        new = NewEvents(buffer.batch(), ids, Operation.of(op), among)
        return RecordBatch(len(events), ids, read, errors), new

    def sample(self, events: Any) -> EventColumns:
        """A table of events that are only looked at; it teaches the schema nothing."""
        return read_event_table(
            to_arrow(events),
            self._schema.frozen(),
            default_time=BEGINNING,
            limits=self._limits,
        ).columns

    def subscriptions(
        self, subscriptions: Any, expression: str | None
    ) -> tuple[RecordBatch, NewSubscriptions]:
        """A table of subscriptions: of texts, or of parameters of one *expression*."""
        if expression is not None and not isinstance(expression, str):
            raise SettingsError(f"an expression is a text, got {type(expression).__name__}")
        table = to_arrow(subscriptions)
        fields, reasons = self._bad_rows(table)
        if expression is None:
            reasons = rows_with_other_fields(_parameters(table), "subscribe") | reasons
        owners, bad_owners = _read_each(table, "owner", read_owner)
        labels, bad_labels = _read_each(table, "labels", read_labels)
        for row, error in {**bad_labels, **bad_owners}.items():
            reasons.setdefault(row, str(error))
        usable = np.delete(np.arange(table.num_rows), list(reasons))
        good = take_rows(table, usable) if reasons else table
        heads, times = self._heads(good, self._read_fields(good) if reasons else fields)
        texts: list[str] | ShapedTexts
        if expression is None:
            given = _texts(good)
            encoded = self._texts.encode(given, heads)
            texts = [given[row] for row in encoded.rows.tolist()]
        else:
            encoder = ParameterEncoder(expression, self._schema, self._limits.expression)
            values = _parameters(good)
            encoded = encoder.encode(values, heads)
            texts = ShapedTexts(encoder, values, encoded.rows)
        errors: dict[int, StentorError] = {
            **{row: RecordError(reason) for row, reason in reasons.items()},
            **{int(usable[row]): error for row, error in encoded.errors.items()},
        }
        tags = None
        if owners is not None or labels is not None:
            tags = [
                Tags(owners[row] if owners else None, (labels[row] if labels else None) or {})
                for row in usable[encoded.rows].tolist()
            ]
        ids = heads.ids
        if len(encoded.rows) < len(ids):
            ids = [ids[row] for row in encoded.rows.tolist()]
            times = times[encoded.rows]
        batch = RecordBatch(table.num_rows, ids, usable[encoded.rows], errors)
        return batch, NewSubscriptions(encoded.columns, list(ids), texts, times, tags)

    def _read_fields(self, table: Any) -> RecordTable:
        named = table.select([name for name in table.column_names if name in _FIELDS])
        return read_table(named, self._schema, self._limits, others=("expression", "at"))

    def _bad_rows(self, table: Any) -> tuple[RecordTable, dict[int, str]]:
        """The fields of a table of subscriptions; which rows cannot be used, and why."""
        fields = self._read_fields(table)
        reasons = dict(fields.rejected)
        _check_ops(distinct_strings(fields.op, reasons), "subscribe")
        for name, array in _parameters(table).items():
            for row, error in unreadable_cells(name, array).items():
                reasons.setdefault(row, str(error))
        return fields, reasons

    def _heads(self, table: Any, fields: RecordTable) -> tuple[SubscriptionHeads, Int64]:
        """Who subscribes, from where, until when; and when each came."""
        now = self._now()
        heads = SubscriptionHeads(
            string_array(fields.ids).to_pylist(),
            positions_of(fields.others.get("at"), table.num_rows),
            filled(fields.until, NEVER),
        )
        return heads, filled(fields.time, BEGINNING if now is None else now)


def _check_ops(said: Iterable[Any], op: Op) -> None:
    """Refuse a table that is meant for `step`."""
    others = {describe(one) for one in said if one is not None and not says(one, op)}
    if others:
        raise RecordError(
            f"every row does {op!r} here, got {', '.join(sorted(others))}; "
            "`step` takes records of all kinds",
            field="op",
        )


def _rows(records: Any, schema: Schema) -> Iterable[Record | PlainRow]:
    if isinstance(records, Mapping):
        raise SettingsError("a step takes several records: put this one into a list")
    if isinstance(records, (pa.Table, pa.RecordBatch)) or hasattr(records, "iterrows"):
        return plain_rows(to_arrow(records), schema)
    return listed(records, "a step takes records in a list, or a table")


def _parameters(table: Any) -> dict[str, Any]:
    taken = (*_FIELDS, *_TAGS)
    return {name: array for name, array in columns_of(table).items() if name not in taken}


def _read_each(
    table: Any, name: str, read: Callable[[Any], Any]
) -> tuple[list[Any] | None, dict[int, StentorError]]:
    """The cells of the column *name*, each as *read* reads it, and errors; None: no such column."""
    if name not in table.column_names:
        return None, {}
    found: list[Any] = []
    errors: dict[int, StentorError] = {}
    for row, cell in enumerate(table[name].to_pylist()):
        found.append(None)
        try:
            found[row] = read(cell)
        except StentorError as error:
            errors[row] = error
    return found, errors


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
