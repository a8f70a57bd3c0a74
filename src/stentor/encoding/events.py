"""Events of the model → columns, one by one; `event_batches.py` takes whole attributes."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import NamedTuple

from stentor.encoding.columns import NO_STRING, EventColumns, array_over, sealed
from stentor.encoding.hashing import attribute_seed, hash_bytes
from stentor.encoding.prefix import prefix
from stentor.language.terms import fold_terms
from stentor.model import Constant, Event, Point, Range, Schema
from stentor.model.time import BEGINNING, NEVER


class Arrival(NamedTuple):
    """An event and when it came: its logical time and its place in the order of records."""

    event: Event
    time: int = BEGINNING
    seq: int = 0


def encode_events(arrivals: Iterable[Arrival], schema: Schema) -> EventColumns:
    """The columns of *arrivals*; attributes that *schema* does not know are left out."""
    builder = _Builder(schema)
    for arrival in arrivals:
        builder.add(arrival)
    return builder.columns()


class _Builder:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._value_start = array("q", [0])
        self._attribute = array("i")
        self._low = array("d")
        self._high = array("d")
        self._string = array("i")
        self._string_hash = array("Q")
        self._string_start = array("q", [0])
        self._string_bytes = bytearray()
        self._term_start = array("q", [0])
        self._term_hash = array("Q")
        self._term_byte_start = array("q")
        self._term_byte_stop = array("q")
        self._term_bytes = bytearray()
        self._weight_start = array("q", [0])
        self._weight_attribute = array("i")
        self._weight = array("d")
        self._until = array("q")
        self._time = array("q")
        self._seq = array("q")

    def columns(self) -> EventColumns:
        arrays = [getattr(self, f"_{name}") for name in EventColumns._fields]
        return sealed(EventColumns(*(array_over(one) for one in arrays)))

    def add(self, arrival: Arrival) -> None:
        event = arrival.event
        code = self._schema.code
        for attribute, name in sorted((code(name), name) for name in event.attributes):
            if attribute >= 0:
                self._add_value(attribute, name, event)
        self._value_start.append(len(self._attribute))
        self._term_start.append(len(self._term_hash))
        for name, weight in event.weights.items():
            if code(name) >= 0:
                self._weight_attribute.append(code(name))
                self._weight.append(weight)
        self._weight_start.append(len(self._weight))
        self._until.append(NEVER if event.until is None else event.until)
        self._time.append(arrival.time)
        self._seq.append(arrival.seq)

    def _add_value(self, attribute: int, name: str, event: Event) -> None:
        string = NO_STRING
        match event.attributes[name]:
            case Constant(_, str(text)):
                string = len(self._string_hash)
                data = text.encode()
                self._string_hash.append(hash_bytes(data))
                self._string_bytes += data
                self._string_start.append(len(self._string_bytes))
                self._add_terms(name, text)
                low = high = prefix(data)
            case Constant(_, value):
                low = high = float(value)
            case Range(_, low, high) | Point(low, high):
                pass
        self._attribute.append(attribute)
        self._low.append(low)
        self._high.append(high)
        self._string.append(string)

    def _add_terms(self, name: str, text: str) -> None:
        seed = attribute_seed(name)
        for term in dict.fromkeys(fold_terms(text)):
            data = term.encode()
            self._term_hash.append(hash_bytes(data, seed))
            self._term_byte_start.append(len(self._term_bytes))
            self._term_bytes += data
            self._term_byte_stop.append(len(self._term_bytes))
