"""One event as users give it → an `EventBuffer`, without an object per value.

A plain dict of known attributes is read in one loop. Whatever else it holds (a new name, another
format, a value that is no plain number, string or boolean, a mistake) is left to the readers that
say what a record is (`formats.py`, `events.py`): their words, and their order of looking, are the
only ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from stentor.encoding.event import NO_LABELS, EventBuffer
from stentor.errors import RecordError
from stentor.model import Constant, Event, Kind, OneOf, Point, Range, Schema, Value
from stentor.model.record import Publish, Update
from stentor.model.values import kind_of, read_value
from stentor.model.values.labels import read_labels
from stentor.model.values.number import read_weights
from stentor.model.values.object import says
from stentor.model.values.string import MOST_ID_BYTES
from stentor.model.values.time import FOR_GOOD, NEVER, read_time
from stentor.wire.cloudevents import is_cloudevent
from stentor.wire.events import NESTED, RESERVED, check_event, learn_event
from stentor.wire.formats import ReadSettings, record_from_object
from stentor.wire.geojson import is_geojson
from stentor.wire.limits import DEFAULT_RECORD_LIMITS, RecordLimits
from stentor.wire.records import check_seq

EventOp = Literal["publish", "update"]
_RESERVED: Final = frozenset(RESERVED)
_EXACT: Final = 2**53
# Looking a member up in its class takes as long as reading a number.
_NUMBER, _STRING, _BOOLEAN, _POINT = Kind.NUMBER, Kind.STRING, Kind.BOOLEAN, Kind.POINT
_SET = Kind.SET
#: Nothing else is inside.
_PLAIN: Final = frozenset((str, int, float, bool))


class EventReader:
    """Made once for an engine: its schema, which learns, and its limits."""

    def __init__(self, schema: Schema, limits: RecordLimits = DEFAULT_RECORD_LIMITS) -> None:
        self._schema = schema
        self._limits = limits
        self._settings = {
            op: ReadSettings(default_op=op, limits=limits) for op in ("publish", "update")
        }

    def read(
        self,
        raw: Mapping[str, Any] | Event,
        into: EventBuffer,
        until: int | None = None,
        op: EventOp = "publish",
    ) -> int | None:
        """Add the event *raw*, which does *op*, to *into*; its own time, if it has one.

        *until* counts instead of the event's own. On an error it is as if nothing had been read;
        the schema learns once all of it is valid.
        """
        time: int | Literal[False] | None = False
        if type(raw) is dict:
            try:
                time = self._read_plain(raw, into, until, self._schema, raw.get("id"), op)
            except (RecordError, UnicodeEncodeError):
                time = False  # said below, in the order in which records are looked at
        if time is False:
            record = self._record(raw, self._schema, op)
            self._add(record.event, into, until, self._schema)
            time = record.time
        if op == "update" and into.until[len(into) - 1] == NEVER:
            into.until[len(into) - 1] = FOR_GOOD
        return time

    def read_question(self, raw: Mapping[str, Any] | Event, into: EventBuffer) -> None:
        """The same for an event that is only asked about: it needs no id, and teaches nothing."""
        if type(raw) is dict:
            try:
                id = raw.get("id", "this event")
                if self._read_plain(raw, into, None, self._schema, id) is not False:
                    return
            except (RecordError, UnicodeEncodeError):
                pass
        self._add(self.question(raw), into, None, self._schema)

    def question(self, raw: Mapping[str, Any] | Event) -> Event:
        """The event of a question."""
        if isinstance(raw, Mapping) and "id" not in raw:
            raw = {"id": "this event", **raw}
        return self._record(raw, self._schema.frozen()).event

    def _record(
        self, raw: Mapping[str, Any] | Event, schema: Schema, op: EventOp = "publish"
    ) -> Publish | Update:
        if isinstance(raw, Event):
            check_event(raw, schema, self._limits)
            learn_event(raw, schema)
            return Publish(raw)
        record = record_from_object(raw, schema, self._settings[op])
        if not isinstance(record, Publish if op == "publish" else Update):
            reason = f"this is no event to {op}; `step` takes records of all kinds"
            raise RecordError(reason, field="op")
        return record

    def _add(self, event: Event, into: EventBuffer, until: int | None, schema: Schema) -> None:
        into.add_event(event, schema)
        if until is not None:
            into.until[len(into) - 1] = until

    def _read_plain(
        self,
        raw: dict[str, Any],
        into: EventBuffer,
        until: int | None,
        schema: Schema,
        id: Any,
        op: EventOp = "publish",
    ) -> int | Literal[False] | None:
        """The time of *raw*, which is in *into* then; False where it is not that plain.

        What is accepted here is what `event_from_dict` accepts, and means the same.
        """
        limits = self._limits
        if len(raw) > limits.attributes or type(id) is not str:
            return False
        if not (id.isascii() and 0 < len(id) <= MOST_ID_BYTES):
            return False
        if "type" in raw and (is_cloudevent(raw) or is_geojson(raw)):
            return False
        into.begin(len(raw))
        known, is_closed, most_bytes = schema.by_name.get, schema.declared, limits.string_bytes
        codes, lows, highs, strings = into.code, into.low, into.high, into.string
        reserved, add_string = _RESERVED, into.add_string
        value, width, fields = into.value, 0, 0
        for name, cell in raw.items():
            if name in reserved:
                fields += 1
                continue
            attribute, of = known(name), type(cell)
            if attribute is None:
                if type(name) is not str or not (
                    is_closed and name.isascii() and 0 < len(name) <= MOST_ID_BYTES
                ):
                    return False
                if of not in _PLAIN and cell is not None:
                    return False  # what is inside may be known
                if of is str:
                    width += len(cell.encode())
                    if width > most_bytes:
                        return False
                continue
            kind = attribute.kind
            if of is float or of is int:
                if cell != cell:  # noqa: PLR0124
                    continue  # NaN is the same as leaving it out
                if kind is not _NUMBER or (of is int and not -_EXACT <= cell <= _EXACT):
                    return False
                lows[value] = highs[value] = cell + 0.0
            elif of is str and kind is _STRING:
                data = cell.encode()
                if len(data) > most_bytes:
                    return False
                width += len(data)
                strings[value] = add_string(name, cell, data)
                codes[value] = attribute.code
                value += 1
                continue
            elif of is bool:
                if kind is not _BOOLEAN:
                    return False
                lows[value] = highs[value] = cell
            elif cell is None:
                continue
            elif (
                of is list
                and kind is _POINT
                and len(cell) == 2
                and type(cell[0]) is type(cell[1]) is float
                and -180.0 <= cell[0] <= 180.0
                and -90.0 <= cell[1] <= 90.0  # and so a location on a plane, too
            ):
                lows[value], highs[value] = cell[0] + 0.0, cell[1] + 0.0
            else:
                if of is str or kind is None or kind is _SET:
                    return False
                if name == NESTED and isinstance(cell, Mapping):
                    return False
                found = read_value(cell, kind, plane=schema.plane, field=name)
                if found is None:
                    continue
                if kind is not kind_of(found) or kind is _STRING or isinstance(found, OneOf):
                    return False
                lows[value], highs[value] = _ends(found)
            codes[value] = attribute.code
            value += 1
        into.value = value
        if width > limits.record_bytes:
            return False
        time, among = None, NO_LABELS
        if fields > 1 or "id" not in raw:
            said = raw.get("op")
            if said is not None and not says(said, op):
                return False
            check_seq(raw.get("seq"))
            time = read_time(raw.get("time"), "time")
            own = read_time(raw.get("until"), "until")
            until = own if until is None else until
            for name, weight in read_weights(raw.get("weights"), limits.attributes).items():
                attribute = known(name)
                if attribute is None:
                    return False
                into.add_weight(attribute, weight)
            among = read_labels(raw.get("among"), "among")
        into.commit(id, NEVER if until is None else until, among=among)
        return time


def _ends(value: Value) -> tuple[float, float]:
    """What is kept of a *value* that is no string: the ends of a range, or coordinates."""
    match value:
        case Constant(_, float(held)):
            return held, held
        case Range(_, low, high) | Point(low, high):
            return low, high
    raise AssertionError(value)
