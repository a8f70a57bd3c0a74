"""Events as they are read → columns: arrays that are kept, filled without an object per value.

A reader writes codes, numbers and bytes one after another; one kernel puts each event's values in
order, hashes, and finds terms. `columns` are the first event alone, over the same memory from call
to call; `batch` copies all of them. `events.py` takes whole attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from stentor._jit import direct, kernel
from stentor.encoding.columns import (
    NO_STRING,
    EventColumns,
    Float64,
    Int32,
    Int64,
    UInt8,
    UInt64,
    all_read_only,
    dtypes,
    empty,
    read_only_columns,
)
from stentor.encoding.hashing import BASIS, PREFIX_BYTES, absorb, attribute_seed, finish
from stentor.encoding.terms import FOLDED, SEPARATES
from stentor.language.predicates.elements import member_term
from stentor.language.terms import fold_terms
from stentor.model import Constant, Event, OneOf, Point, Range, Schema, Set, Value
from stentor.model.schema import MOST_ATTRIBUTES, Attribute
from stentor.model.values.members import set_text
from stentor.model.values.time import BEGINNING, NEVER

_BASIS = np.uint64(BASIS)
# Empty terms before those of a string: of one of several, of one that is there by itself.
ONE_OF, ALWAYS = np.uint64(0), np.uint64(1)
#: Between folded terms; no byte of UTF-8.
_GAP = 255
_BETWEEN: Final = bytes([_GAP])
NO_LABELS: Final[Mapping[str, str]] = {}
#: Bytes that are kept from one event to the next.
_KEPT = 1 << 20
#: An event of more values is sorted before the kernel, which takes quadratic time.
_FEW_VALUES = 64


class Texts(NamedTuple):
    """What terms are made of: a string's own bytes where they are ASCII, else its folded terms."""

    seed: UInt64  # (strings,) of the attribute
    start: Int64  # (strings,) a slice of `data`; −1: the string's own bytes
    stop: Int64  # (strings,)
    data: UInt8  # (bytes,) terms, `_GAP` between them


class EventBuffer:
    """Arrays that events are written to; they grow, and are never given back.

    Invariant: what is written after the last `commit` counts for nothing.
    """

    def __init__(self) -> None:
        self._seeds: dict[str, int] = {}
        self._texts: Texts
        self.ids: list[str] = []
        self.among: list[Mapping[str, str]] = []  # the labels that each event is for
        self.kept: Any = None  # what an index keeps beside the first event, from call to call
        self.attributes = 0  # all codes are below it
        self.has_choices = False  # whether an attribute of some event is one of several values
        self._shrink()
        self.clear()

    def clear(self) -> None:
        """Forget all events."""
        if self._bytes > _KEPT or self._sizes["events"] > _KEPT >> 8:
            self._shrink()
        self.ids.clear()
        self.among.clear()
        self.has_choices = False
        self._parts: list[bytes] = []
        self._folded: list[bytes] = []
        self._fresh_folded: list[bytes] = []
        self._values = self._strings = self._weights = 0
        self._used = self._text_used = 0

    def __len__(self) -> int:
        return len(self.ids)

    # One event: values from `value` on (each has a code, low and high, or a string: it has none
    # until one is written), weights, then `commit`.

    def begin(self, values: int) -> None:
        """Grow for an event of at most so many *values*; what was not committed is void."""
        if self._values + values > self._sizes["values"] or (
            self._strings + values > self._sizes["strings"]
        ):
            self._reserve(values=self._values + values, strings=self._strings + values)
        first = self.value = self._values
        self._string, self._weight = self._strings, self._weights
        self._width, self._text_width = self._used, self._text_used
        self.string[first : first + values] = self._no_string[:values]
        if self._strings < len(self._parts):
            del self._parts[self._strings :]
        if self._fresh_folded:
            self._fresh_folded = []

    def add_string(self, name: str, text: str, data: bytes) -> int:
        """The string row of a *text*, in UTF-8 *data*, of the attribute *name*."""
        string = self._string
        self._string = string + 1
        seed = self._seeds.get(name)
        self.seed[string] = self._seed_of(name) if seed is None else seed
        self._parts.append(data)
        size = len(data)
        self.string_stop[string + 1] = self._width = self._width + size
        if len(text) == size:
            self.text_start[string] = -1
        else:
            self._add_terms(string, fold_terms(text))
        return string

    def add_set(self, name: str, value: Set) -> int:
        """The string row of a set of the attribute *name*: its text, its members as terms."""
        data = set_text(value).encode()
        string = self.add_string(name, "", b"")
        self._parts[-1] = data
        self._width += len(data)
        self.string_stop[string + 1] = self._width
        self._add_terms(string, [member_term(member) for member in value.members])
        return string

    def _add_terms(self, string: int, terms: list[str]) -> None:
        folded = _BETWEEN.join([term.encode() for term in terms])
        self._fresh_folded.append(folded)
        self.text_start[string] = self._text_width
        self._text_width += len(folded)
        self.text_stop[string] = self._text_width

    def add_weight(self, attribute: Attribute, weight: float) -> None:
        """The event's weight of an attribute."""
        position = self._weight
        if position == self._sizes["weights"]:
            self._reserve(weights=position + 1)
        self.weight_code[position] = attribute.code
        self.weight[position] = weight
        self._weight = position + 1

    def commit(
        self,
        id: str,
        until: int,
        time: int = BEGINNING,
        seq: int = 0,
        among: Mapping[str, str] = NO_LABELS,
    ) -> None:
        """Let what was added since `begin` be an event."""
        event = len(self.ids)
        if self.value - self._values > _FEW_VALUES:
            self._sort(self._values, self.value)
        if event == self._sizes["events"]:
            self._reserve(events=event + 1)
        self._values, self._strings, self._weights = self.value, self._string, self._weight
        self._used, self._text_used = self._width, self._text_width
        if self._fresh_folded:
            self._folded += self._fresh_folded
            self._fresh_folded = []
        self.value_stop[event + 1] = self._values
        self.weight_stop[event + 1] = self._weights
        self.until[event] = until
        self.time[event] = time
        self.seq[event] = seq
        self.ids.append(id)
        self.among.append(among)

    def add_event(self, event: Event, schema: Schema) -> None:
        """An event of the model; attributes that *schema* does not know are left out."""
        values = event.attributes.values()
        self.begin(sum(len(one.members) if isinstance(one, OneOf) else 1 for one in values))
        for name, value in event.attributes.items():
            attribute = schema.attribute(name)
            if attribute is None:
                continue
            if isinstance(value, OneOf):
                self.has_choices = True
                for one in value.members:
                    self._add_value(attribute, name, one)
            else:
                self._add_value(attribute, name, value)
        for name, weight in event.weights.items():
            attribute = schema.attribute(name)
            if attribute is not None:
                self.add_weight(attribute, weight)
        until = NEVER if event.until is None else event.until
        self.commit(event.id, until, among=event.among)

    def _add_value(self, attribute: Attribute, name: str, value: Value) -> None:
        position, string, low, high = self.value, NO_STRING, 0.0, 0.0
        match value:
            case Constant(_, str(text)):
                string = self.add_string(name, text, text.encode())
            case Constant(_, held):
                low = high = float(held)
            case Set():
                string = self.add_set(name, value)
            case Range(_, low, high) | Point(low, high):
                pass
        self.code[position], self.string[position] = attribute.code, string
        self.low[position], self.high[position] = low, high
        self.value = position + 1

    # Columns.

    def encode(self, time: int, seq: int) -> EventBuffer:
        """Itself, its first event ready to be matched, which comes at *time* as record *seq*.

        `columns` are over memory that the next one will be written to. Their arrays are longer than
        it is: starts and stops say what counts.
        """
        self._join_strings()
        self.time[0], self.seq[0] = time, seq
        self.attributes = max(self.attributes, _encode(self._first, self._texts))
        return self

    def batch(self) -> EventColumns:
        """All events, copied."""
        if not self.ids:
            return empty(EventColumns)
        self._join_strings()
        columns = self._views(len(self.ids))
        encode_written(columns, self._texts)
        return _trimmed(columns, len(self.ids), self._strings)

    def _join_strings(self) -> None:
        """Write the bytes of all strings, and grow for their terms."""
        width, text_width = self._used, self._text_used
        terms = ((width + text_width) >> 1) + 2 * self._strings
        if width + text_width > self._bytes or terms > self._sizes["terms"]:
            self._reserve(terms=terms, width=width + text_width)
        if self._strings < len(self._parts):
            del self._parts[self._strings :]  # of an event that was not committed
        self.string_bytes[:width] = b"".join(self._parts)
        if text_width:
            self.text_bytes[:text_width] = b"".join(self._folded)

    def copy(self) -> EventColumns:
        """The first event after `encode`, as columns of its own."""
        return _trimmed(self._first, 1, self._strings)

    @property
    def term_count(self) -> int:
        """Terms of the first event, after `encode`."""
        return int(self.term_stop[1])

    def _shrink(self) -> None:
        """Begin with small arrays."""
        self._sizes = {"events": 0, "values": 0, "strings": 0, "terms": 0, "weights": 0}
        self._bytes = 0
        self._arrays: dict[str, NDArray[Any]] = {}
        self._reserve(events=1, values=32, strings=32, terms=128, weights=8, width=1024)

    def _seed_of(self, name: str) -> int:
        if len(self._seeds) > 2 * MOST_ATTRIBUTES:
            self._seeds.clear()  # names come and go
        seed = self._seeds[name] = attribute_seed(name)
        return seed

    def _reserve(self, *, width: int = 0, **least: int) -> None:
        """Grow; what is there stays."""
        sizes = {
            name: size if least.get(name, 0) <= size else max(least[name], 2 * size)
            for name, size in self._sizes.items()
        }
        if width > self._bytes:
            self._bytes = max(width, 2 * self._bytes)
        old = self._arrays
        lengths = {
            **dict.fromkeys(("value_start", "term_start", "weight_start"), sizes["events"] + 1),
            **dict.fromkeys(("attribute", "low", "high", "string"), sizes["values"]),
            "string_hash": sizes["strings"],
            "string_start": sizes["strings"] + 1,
            **dict.fromkeys(("term_hash", "term_byte_start", "term_byte_stop"), sizes["terms"]),
            **dict.fromkeys(("string_bytes", "term_bytes"), self._bytes),
            **dict.fromkeys(("weight_attribute", "weight"), sizes["weights"]),
            **dict.fromkeys(("until", "time", "seq"), sizes["events"]),
        }
        arrays = {
            name: np.zeros(lengths[name], dtype) for name, dtype in dtypes(EventColumns).items()
        }
        texts = Texts(
            np.zeros(sizes["strings"], np.uint64),
            np.zeros(sizes["strings"], np.int64),
            np.zeros(sizes["strings"], np.int64),
            np.zeros(self._bytes, np.uint8),
        )
        for name, array in old.items():
            _copy(array, arrays[name])
        if old:
            for fresh, known in zip(texts, self._texts, strict=True):
                _copy(known, fresh)
        self._sizes, self._arrays, self._texts = sizes, arrays, texts
        self._first = self._views(1)
        self.columns = all_read_only(self._first)
        self.code, self.string = _memory(arrays["attribute"]), _memory(arrays["string"])
        self._no_string = _memory(np.full(sizes["values"], NO_STRING, arrays["string"].dtype))
        self.low, self.high = _memory(arrays["low"]), _memory(arrays["high"])
        self.seed, self.text_start, self.text_stop = map(_memory, texts[:3])
        self.string_stop = _memory(arrays["string_start"])
        self.string_bytes, self.text_bytes = (
            _memory(arrays["string_bytes"]),
            _memory(texts.data),
        )
        self.weight_code = _memory(arrays["weight_attribute"])
        self.weight = _memory(arrays["weight"])
        self.value_stop, self.term_stop, self.weight_stop = (
            _memory(arrays[name]) for name in ("value_start", "term_start", "weight_start")
        )
        self.until, self.time, self.seq = (
            _memory(arrays[name]) for name in ("until", "time", "seq")
        )

    def _sort(self, start: int, stop: int) -> None:
        """Put the values from *start* to *stop* in the order of their attributes."""
        order = start + np.argsort(self._arrays["attribute"][start:stop], kind="stable")
        for name in ("attribute", "low", "high", "string"):
            array = self._arrays[name]
            array[start:stop] = array[order]

    def _views(self, events: int) -> EventColumns:
        """The arrays, as of so many *events*."""
        arrays = self._arrays
        short = {
            name: arrays[name][: events + 1]
            for name in ("value_start", "term_start", "weight_start")
        }
        short |= {name: arrays[name][:events] for name in ("until", "time", "seq")}
        return EventColumns(*({**arrays, **short}.values()))


class Lender(Protocol):
    """Who keeps memory for one event between calls."""

    _buffer: EventBuffer | None


class Lent:
    """Memory for one event of *lender*'s, which gets it back when the block ends."""

    __slots__ = ("_lender", "_one")

    def __init__(self, lender: Lender, one: EventBuffer) -> None:
        self._lender, self._one = lender, one

    def __enter__(self) -> EventBuffer:
        self._one.clear()
        return self._one

    def __exit__(self, *_: object) -> None:
        self._lender._buffer = self._one


def _copy(array: Any, longer: Any) -> None:
    longer[: len(array)] = array


def _first(array: Any, length: int) -> Any:
    return array[:length].copy()


def _memory(array: NDArray[Any]) -> Any:
    """*array* as Python writes single numbers to it fastest."""
    return memoryview(array)  # type: ignore[arg-type]  # an array is a buffer


def _trimmed(columns: EventColumns, events: int, strings: int) -> EventColumns:
    """A copy of what counts of *columns*."""
    values, terms = int(columns.value_start[events]), int(columns.term_start[events])
    weights, width = int(columns.weight_start[events]), int(columns.string_start[strings])
    used = int(columns.term_byte_stop[terms - 1]) if terms else 0
    lengths = (
        events + 1, *[values] * 4, strings, strings + 1, width,
        events + 1, *[terms] * 3, used, events + 1, weights, weights, *[events] * 3,
    )  # fmt: skip
    return read_only_columns(
        EventColumns(
            *(_first(array, length) for array, length in zip(columns, lengths, strict=True))
        )
    )


@kernel
def encode_written(columns: EventColumns, texts: Texts) -> int:
    """Order the values of each event by attribute, hash its strings, find its terms.

    Returns a number that all codes are below.
    """
    term, used, most = 0, 0, 0
    for event in range(len(columns.until)):
        start, stop = columns.value_start[event], columns.value_start[event + 1]
        is_marked = False
        for position in range(start + 1, stop):
            sort_in(columns.attribute, columns.low, columns.high, columns.string, start, position)
        if stop > start:
            most = max(most, columns.attribute[stop - 1] + 1)
        for value in range(start, stop):
            string = columns.string[value]
            if string < 0:
                continue
            first, last = columns.string_start[string], columns.string_start[string + 1]
            hashed, number = _BASIS, 0.0
            for position in range(first, last):
                hashed = absorb(hashed, columns.string_bytes[position])
            for position in range(first, first + PREFIX_BYTES):
                byte = float(columns.string_bytes[position]) if position < last else 0.0
                number = number * 256.0 + byte
            columns.string_hash[string] = finish(hashed)
            columns.low[value] = columns.high[value] = number
            code = columns.attribute[value]
            is_one_of = (value > start and columns.attribute[value - 1] == code) or (
                value + 1 < stop and columns.attribute[value + 1] == code
            )
            if is_one_of or is_marked:
                columns.term_hash[term] = ONE_OF if is_one_of else ALWAYS
                columns.term_byte_start[term] = columns.term_byte_stop[term] = used
                term += 1
                is_marked = True
            seed = texts.seed[string]
            data, is_folded = columns.string_bytes, False
            if texts.start[string] >= 0:
                data, is_folded = texts.data, True
                first, last = texts.start[string], texts.stop[string]
            begin, hashed = used, seed
            for position in range(first, last + 1):
                folded, is_inside = np.uint8(SEPARATES), False
                if position < last and is_folded:
                    folded = data[position]
                    is_inside = folded != _GAP
                elif position < last:
                    folded = FOLDED[data[position]]
                    is_inside = folded != SEPARATES
                if is_inside:
                    columns.term_bytes[used] = folded
                    used += 1
                    hashed = absorb(hashed, folded)
                elif used > begin:
                    columns.term_hash[term] = finish(hashed)
                    columns.term_byte_start[term] = begin
                    columns.term_byte_stop[term] = used
                    term += 1
                    begin, hashed = used, seed
        columns.term_start[event + 1] = term
        for position in range(columns.weight_start[event], columns.weight_start[event + 1]):
            most = max(most, columns.weight_attribute[position] + 1)
    return most


@kernel
def sort_in(
    attribute: Int32, low: Float64, high: Float64, string: Int32, start: int, position: int
) -> None:
    """Put the value at *position* among those before it, from *start* on, by its attribute."""
    code, lowest, highest, row = (
        attribute[position],
        low[position],
        high[position],
        string[position],
    )
    while position > start and attribute[position - 1] > code:
        attribute[position], string[position] = attribute[position - 1], string[position - 1]
        low[position], high[position] = low[position - 1], high[position - 1]
        position -= 1
    attribute[position], string[position] = code, row
    low[position], high[position] = lowest, highest


_encode = direct(encode_written)
