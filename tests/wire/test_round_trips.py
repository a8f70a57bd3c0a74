"""What is written is read back, and one event means the same in whichever form it comes."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.encoding.columns import NO_STRING, event_count
from stentor.encoding.events import TimedEvent, encode_events
from stentor.errors import RecordError
from stentor.model import Constant, Event, Kind, Point, Range, Schema
from stentor.model.record import Publish
from stentor.model.values.time import EARLIEST, LATEST
from stentor.wire.cloudevents import event_to_cloudevent
from stentor.wire.events import event_from_dict, event_to_dict
from stentor.wire.formats import ReadSettings, record_from_object
from stentor.wire.geojson import event_to_feature
from stentor.wire.json_text import from_json, to_json
from stentor.wire.limits import RecordLimits
from stentor.wire.rejected import Rejected
from stentor.wire.table_writers import events_to_table
from stentor.wire.tables import read_event_table, records_from_table

KINDS = {
    "price": Kind.NUMBER,
    "text": Kind.STRING,
    "used": Kind.BOOLEAN,
    "when": Kind.TIMESTAMP,
    "loc": Kind.POINT,
    "until": Kind.NUMBER,  # asks for the nested form
}
numbers = st.floats(allow_nan=False).map(lambda one: one + 0.0)
# Of whole seconds every double is exact.
micros = st.integers(EARLIEST // 10**6, LATEST // 10**6).map(lambda one: float(one * 10**6))


def _range(kind, ends):
    return st.tuples(ends, ends).map(lambda two: Range(kind, min(two), max(two)))


VALUES = {
    Kind.NUMBER: numbers.map(lambda one: Constant(Kind.NUMBER, one)) | _range(Kind.NUMBER, numbers),
    Kind.STRING: st.text(max_size=8).map(lambda one: Constant(Kind.STRING, one)),
    Kind.BOOLEAN: st.booleans().map(lambda one: Constant(Kind.BOOLEAN, float(one))),
    Kind.TIMESTAMP: micros.map(lambda one: Constant(Kind.TIMESTAMP, one))
    | _range(Kind.TIMESTAMP, micros),
    Kind.POINT: st.builds(
        Point,
        st.floats(-180, 180).map(lambda one: one + 0.0),
        st.floats(-90, 90).map(lambda one: one + 0.0),
    ),
}
ids = st.text(min_size=1, max_size=8)
events = st.builds(
    Event,
    ids,
    st.fixed_dictionaries({}, optional={name: VALUES[kind] for name, kind in KINDS.items()}),
    st.dictionaries(st.sampled_from(["price", "other"]), st.floats(0, 1e9)),
    st.none() | st.integers(EARLIEST, LATEST),
)


@given(events)
def test_an_event_comes_back_from_its_dict(event):
    schema = Schema.closed({**KINDS, "other": Kind.NUMBER})
    assert event_from_dict(event_to_dict(event), schema) == event


@given(events)
def test_an_event_comes_back_from_its_feature(event):
    schema = Schema.closed({**KINDS, "other": Kind.NUMBER})
    feature = event_to_feature(event)
    assert feature["type"] == "Feature"
    assert record_from_object(feature, schema, ReadSettings()) == Publish(event)


@given(events)
def test_any_event_goes_out_as_a_cloudevent(event):
    schema = Schema.closed({**KINDS, "ce_type": "string", "ce_source": "string"})
    written = event_to_cloudevent(event, source="/a", event_type="t")
    found = record_from_object(written, schema, ReadSettings()).event
    assert found.id == "/a#" + event.id.removeprefix("/a#")
    assert found.until == event.until
    context = {"ce_type": Constant(Kind.STRING, "t"), "ce_source": Constant(Kind.STRING, "/a")}
    assert found.attributes == {**event.attributes, **context}


# The same event in three forms


def meaning(columns):
    """What an index sees of each event, whatever the order of strings and terms."""
    found = []
    for event in range(event_count(columns)):
        values = {}
        for place in range(columns.value_start[event], columns.value_start[event + 1]):
            row = columns.string[place]
            string = None
            if row != NO_STRING:
                start, stop = columns.string_start[row : row + 2]
                string = (bytes(columns.string_bytes[start:stop]), int(columns.string_hash[row]))
            ends = float(columns.low[place]), float(columns.high[place])
            values[int(columns.attribute[place])] = (*map(repr, ends), string)
        terms = {
            (
                int(columns.term_hash[place]),
                bytes(
                    columns.term_bytes[
                        columns.term_byte_start[place] : columns.term_byte_stop[place]
                    ]
                ),
            )
            for place in range(columns.term_start[event], columns.term_start[event + 1])
        }
        weights = slice(columns.weight_start[event], columns.weight_start[event + 1])
        weighted = zip(columns.weight_attribute[weights], columns.weight[weights], strict=True)
        found.append((values, terms, dict(weighted), int(columns.until[event])))
    return found


def encoded(events, schema):
    return encode_events([TimedEvent(event) for event in events], schema)


ROW = pa.schema(
    {
        "id": pa.string(),
        "until": pa.timestamp("us", "UTC"),
        "weights": pa.map_(pa.string(), pa.float64()),
        "price": pa.float64(),
        "text": pa.string(),
        "used": pa.bool_(),
        "when": pa.timestamp("s", "Asia/Tokyo"),
        "loc": pa.list_(pa.float64(), 2),
        "stock": pa.struct({"low": pa.float64(), "high": pa.float64()}),
    }
)
instants = st.integers(EARLIEST // 10**6, LATEST // 10**6).map(
    lambda seconds: np.datetime64(seconds, "s").item().isoformat() + "+00:00"
)
ends = st.integers(-5, 5)
raw_events = st.fixed_dictionaries(
    {"id": st.text(min_size=1, max_size=4)},
    optional={
        "until": instants,
        "weights": st.dictionaries(st.sampled_from(["price", "text", "q"]), st.floats(0, 5)),
        "price": st.none() | st.floats(-1e9, 1e9) | st.just(-0.0) | st.integers(-(2**53), 2**53),
        "text": st.none()
        | st.text(max_size=12)
        | st.sampled_from(["", "iPad DISCOUNT", "東京都 é"]),
        "used": st.none() | st.booleans(),
        "when": st.none() | instants,
        "loc": st.none() | st.tuples(st.floats(-180, 180), st.floats(-90, 90)).map(list),
        "stock": st.none()
        | st.tuples(ends, ends).map(lambda two: {"low": min(two), "high": max(two)}),
    },
)


def table_of(raws, when):
    """*raws* as an Arrow table whose column `when` has the type *when*."""
    fields = [pa.field("when", when) if field.name == "when" else field for field in ROW]
    columns = {}
    for field in fields:
        cells = [raw.get(field.name) for raw in raws]
        if pa.types.is_timestamp(field.type):
            cells = [
                cell and np.datetime64(cell[:-6]).astype("datetime64[us]").item() for cell in cells
            ]
        if field.name == "weights":
            cells = [cell and list(cell.items()) for cell in cells]
        columns[field.name] = pa.array(cells, field.type)
    return pa.table(columns)


@given(st.lists(raw_events, max_size=5), st.integers(0, 3), st.booleans())
def test_dicts_json_and_arrow_mean_the_same(raws, cut, text_times):
    def schema():
        return Schema.declare({**dict.fromkeys(("price", "stock", "q"), "number"), "text": "string",
                               "used": "boolean", "when": "timestamp", "loc": "point"})  # fmt: skip

    known = schema()
    from_dicts = encoded([event_from_dict(raw, known) for raw in raws], known)
    from_text = encoded(
        [event_from_dict(from_json(to_json(raw).encode()), known) for raw in raws], known
    )
    assert meaning(from_text) == meaning(from_dicts)

    table = table_of(raws, pa.string() if text_times else ROW.field("when").type)
    batch = read_event_table(table, known)
    assert batch.rejected == []
    assert batch.ids.to_pylist() == [raw["id"] for raw in raws]
    assert meaning(batch.columns) == meaning(from_dicts)

    # A slice and a table in chunks have other buffers and the same meaning.
    parts = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    assert meaning(read_event_table(parts, known).columns) == meaning(from_dicts)
    rest = read_event_table(table.slice(cut), known)
    assert meaning(rest.columns) == meaning(from_dicts)[cut:]

    # Row by row and whole columns agree.
    records = list(records_from_table(table, known, ReadSettings(default_op="publish")))
    assert meaning(encoded([one.event for one in records], known)) == meaning(from_dicts)


bad_or_good = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["a", "", "x" * 513, None]) | st.just("b"),
        "until": st.sampled_from([None, 5, -7, 10**12]),
        "weights": st.sampled_from([None, {"n": 1.0}, {"n": -1.0}, {"n": math.nan}, {"": 1.0}]),
        "n": st.sampled_from([None, 1, 2**53 + 1, -(2**63), 2**60]),
        "t": st.sampled_from([None, "x", "long enough to be refused"]),
        "when": st.sampled_from([None, "1970-01-01", "soon", "9999-12-31 23:59:59.999999"]),
        "loc": st.sampled_from(
            [None, [1.0, 2.0], [1.0], [181.0, 0.0], [0.0, math.nan], [0.0, None]]
        ),
        "stock": st.sampled_from([None, (1.0, 2.0), (2.0, 1.0), (None, 1.0), (math.nan, 1.0)]),
    }
)


@given(st.lists(bad_or_good, max_size=6))
def test_the_same_rows_are_bad_in_dicts_and_in_arrow(rows):
    schema = Schema.declare({"n": "number", "t": "string", "when": "timestamp", "loc": "point",
                             "stock": "number"})  # fmt: skip
    limits = RecordLimits(string_bytes=20)
    raws = [
        {**row, "stock": row["stock"] and dict(zip(("low", "high"), row["stock"], strict=True))}
        for row in rows
    ]

    def is_bad(raw):
        try:
            event_from_dict(raw, schema, limits)
        except RecordError:
            return True
        return False

    table = pa.table(
        {
            "id": pa.array([row["id"] for row in rows], pa.string()),
            "until": pa.array([row["until"] for row in rows], pa.int64()),
            "weights": pa.array(
                [row["weights"] and list(row["weights"].items()) for row in rows],
                pa.map_(pa.string(), pa.float64()),
            ),
            "n": pa.array([row["n"] for row in rows], pa.int64()),
            "t": pa.array([row["t"] for row in rows], pa.string()),
            "when": pa.array([row["when"] for row in rows], pa.string()),
            "loc": pa.array([row["loc"] for row in rows], pa.list_(pa.float64())),
            "stock": pa.array([raw["stock"] for raw in raws], ROW.field("stock").type),
        }
    )
    expected = [row for row, raw in enumerate(raws) if is_bad(raw)]
    batch = read_event_table(table, schema, limits=limits)
    assert [one.row for one in batch.rejected] == expected
    by_row = records_from_table(table, schema, ReadSettings(default_op="publish", limits=limits))
    assert [one.row for one in by_row if isinstance(one, Rejected)] == expected


@given(st.lists(events, max_size=4))
def test_events_come_back_from_their_table(given_events):
    schema = Schema.closed({**KINDS, "other": Kind.NUMBER})
    table = events_to_table(given_events, schema)
    batch = read_event_table(table, schema)
    assert batch.rejected == []
    assert meaning(batch.columns) == meaning(encoded(given_events, schema))


@pytest.mark.parametrize("form", ["dict", "json", "arrow"])
@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (-0.0, (0.0, 0.0)),
        (2**53, (2.0**53, 2.0**53)),
        (None, None),
    ],
)
def test_numbers_at_the_edge_mean_the_same_in_every_form(form, cell, expected):
    schema = Schema()
    raw = {"id": "e", "x": cell}
    if form == "arrow":
        columns = read_event_table(pa.Table.from_pylist([raw]), schema).columns
    else:
        text = from_json(json.dumps(raw).encode()) if form == "json" else raw
        columns = encoded([event_from_dict(text, schema)], schema)
    found = list(zip(columns.low.tolist(), columns.high.tolist(), strict=True))
    assert repr(found) == repr([expected] if expected else [])


def test_an_infinity_means_the_same_in_a_dict_and_in_arrow():
    schema = Schema()
    raw = {"id": "e", "x": math.inf}
    batch = read_event_table(pa.Table.from_pylist([raw]), schema)
    assert meaning(batch.columns) == meaning(encoded([event_from_dict(raw, schema)], schema))
