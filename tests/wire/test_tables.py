"""Tables of events and of other records."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from stentor.encoding.check import check
from stentor.encoding.columns import EventColumns, event_count
from stentor.errors import RecordError, TypeConflictError
from stentor.model import Constant, Event, Kind, Point, Schema, Subscription
from stentor.model.record import Move, Publish, Subscribe, Unsubscribe
from stentor.model.values.time import BEGINNING, NEVER
from stentor.wire.formats import ReadSettings
from stentor.wire.limits import RecordLimits
from stentor.wire.records import subscription_from_dict
from stentor.wire.rejected import Rejected
from stentor.wire.table_writers import events_to_table, subscriptions_to_table
from stentor.wire.tables import read_event_table, records_from_table, subscriptions_from_table


def read(rows, schema=None, **options):
    table = pa.Table.from_pylist(rows) if isinstance(rows, list) else rows
    return read_event_table(table, Schema() if schema is None else schema, **options)


# Bad rows


def test_bad_rows_are_taken_out_and_told():
    rows = [
        {"id": "a", "price": 1, "text": "x"},
        {"id": "b", "price": 2**53 + 1, "text": "y"},
        {"id": "", "price": 3, "text": "z"},
        {"id": "d", "price": 4, "text": None},
    ]
    batch = read(rows, first_seq=100)
    assert batch.ids.to_pylist() == ["a", "d"]
    assert batch.rows.tolist() == [0, 3]
    assert batch.columns.seq.tolist() == [100, 103]
    assert batch.columns.low[batch.columns.string < 0].tolist() == [1.0, 4.0]
    assert [one.row for one in batch.rejected] == [1, 2]
    reason = "price: 9007199254740993 is an integer that a double cannot hold; send it as a "
    assert batch.rejected[0].reason == f"{reason}string, or round it yourself"
    assert batch.rejected[0].raw == '{"id": "b", "price": 9007199254740993, "text": "y"}'
    reason = "id: expected 1 to 512 bytes, got 0; shorten it, for example to a hash"
    assert batch.rejected[1].reason == reason
    check(batch.columns)


def test_a_table_of_bad_rows_only_is_no_events():
    batch = read([{"id": None, "x": 1}, {"id": "", "x": 2}])
    assert event_count(batch.columns) == 0
    assert len(batch.rejected) == 2
    check(batch.columns)


def test_an_empty_table_is_no_events():
    batch = read(pa.table({"id": pa.array([], pa.string()), "x": pa.array([], pa.float64())}))
    assert (event_count(batch.columns), batch.rejected, len(batch.ids)) == (0, [], 0)


def test_a_bad_row_that_has_no_python_form_is_still_told():
    broken = pa.array([b"\xff", b"ok"], pa.binary()).view(pa.string())
    far = pa.array([2**62, 0]).cast(pa.timestamp("s"))
    batch = read(pa.table({"id": ["a", "b"], "text": broken, "when": far}))
    assert batch.ids.to_pylist() == ["b"]
    assert "text: not UTF-8" in batch.rejected[0].reason
    assert '"id": "a"' in batch.rejected[0].raw


def test_bad_rows_are_taken_out_of_columns_that_arrow_cannot_take_from():
    views = pa.array(["a", "b", "c", "d", "e"], pa.string_view())
    ids = pa.array(["a", "b", "", "d", ""])
    batch = read(pa.table({"id": ids, "text": views, "n": [1, 2**53 + 1, 3, 4, 5]}))
    assert batch.ids.to_pylist() == ["a", "d"]
    assert bytes(batch.columns.string_bytes) == b"ad"
    assert len(read(pa.table({"id": ["", ""], "text": views[:2]})).ids) == 0


# Reserved columns


def test_integer_ids_are_their_decimal_texts():
    assert read(pa.table({"id": [7, -1]})).ids.to_pylist() == ["7", "-1"]
    ids = pa.array(["a", "b", "a"]).dictionary_encode()
    assert read(pa.table({"id": ids})).ids.to_pylist() == ["a", "b", "a"]


def test_ids_have_at_most_512_bytes():
    batch = read([{"id": "x" * 512}, {"id": "x" * 513}])
    assert [one.row for one in batch.rejected] == [1]


def test_a_table_without_ids_is_refused():
    with pytest.raises(RecordError, match="id: the table has no such column"):
        read(pa.table({"x": [1]}))
    with pytest.raises(RecordError, match="id: expected strings or integers, got double"):
        read(pa.table({"id": [1.5]}))


@pytest.mark.parametrize(
    "until",
    [
        pa.array([5, None]),
        pa.array([5.0, None]),
        pa.array([5_000, None]).cast(pa.timestamp("ms", "Asia/Tokyo")),
        pa.array(["1970-01-01 00:00:05", None]),
        pa.array(["1970-01-01T01:00:05+01:00", None]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)
def test_an_until_is_a_timestamp_a_text_or_seconds(until):
    batch = read(pa.table({"id": ["a", "b"], "until": until}))
    assert batch.columns.until.tolist() == [5_000_000, NEVER]


def test_a_bad_until_rejects_its_row():
    for until in (
        pa.array([1_700_000_000_000, 5]),
        pa.array([math.nan, 5.0]),
        pa.array([math.inf, 5.0]),
        pa.array(["soon", "1970-01-01"]),
        pa.array([2**64 - 1, 5], pa.uint64()),
        pa.array([2**62, 5], pa.int64()).cast(pa.timestamp("us")),
    ):
        batch = read(pa.table({"id": ["a", "b"], "until": until}))
        assert [one.row for one in batch.rejected] == [0]
    with pytest.raises(RecordError, match="until: expected a column of timestamps"):
        read(pa.table({"id": ["a"], "until": [True]}))


def test_time_and_seq_have_defaults():
    columns = read([{"id": "a"}, {"id": "b"}], first_seq=5, default_time=9).columns
    assert (columns.time.tolist(), columns.seq.tolist()) == ([9, 9], [5, 6])
    assert read([{"id": "a"}]).columns.time.tolist() == [BEGINNING]
    rows = [{"id": "a", "time": 1, "seq": 7}, {"id": "b", "time": None, "seq": None}]
    columns = read(rows, default_time=3).columns
    assert (columns.time.tolist(), columns.seq.tolist()) == ([1_000_000, 3], [7, 1])
    assert len(read([{"id": "a", "seq": -1}]).rejected) == 1
    with pytest.raises(RecordError, match="seq: expected integers"):
        read([{"id": "a", "seq": 1.5}])


def test_rows_of_another_op_are_no_events():
    batch = read([{"id": "a", "op": None}, {"id": "b", "op": "publish"}, {"id": "c", "op": "move"}])
    assert batch.ids.to_pylist() == ["a", "b"]
    assert batch.rejected[0].reason == "op: an event's op is 'publish', got 'move'"


def weights_of(batch, schema):
    names, columns = list(schema), batch.columns
    bounds = zip(columns.weight_start, columns.weight_start[1:], strict=False)
    return [
        {names[columns.weight_attribute[one]]: columns.weight[one] for one in range(start, stop)}
        for start, stop in bounds
    ]


def test_weights_are_a_map_or_a_struct():
    cells = [[("p", 1.0), ("q", None)], None, [], [("q", 2.0), ("p", -0.0)]]
    expected = [{"p": 1.0}, {}, {}, {"q": 2.0, "p": 0.0}]
    as_map = pa.array([[("z", 9.0)], *cells], pa.map_(pa.string(), pa.float64()))[1:]
    as_struct = pa.array([None if cell is None else dict(cell) for cell in cells])
    ids = pa.array(list("abcd"))
    for weights in (as_map, as_struct):
        schema = Schema()
        batch = read(pa.table({"id": ids, "weights": weights}), schema)
        assert weights_of(batch, schema) == expected
        assert {name: schema.kind(name) for name in schema} == {"p": None, "q": None}
        check(batch.columns)


def test_bad_weights_reject_their_row():
    of = pa.map_(pa.string(), pa.float64())
    cells = [[("p", -1.0)], [("p", math.nan)], [("p", math.inf)], [("p", 1.0), ("p", 2.0)],
             [("", 1.0)], [("p", 1.0)]]  # fmt: skip
    batch = read(pa.table({"id": list("abcdef"), "weights": pa.array(cells, of)}))
    assert batch.ids.to_pylist() == ["f"]
    with pytest.raises(RecordError, match="weights: expected map"):
        read(pa.table({"id": ["a"], "weights": [1.0]}))
    of = pa.map_(pa.string(), pa.string())
    for weights in (pa.array([[("p", "x")]], of), pa.array([{"p": "x"}]), pa.array([{"p": True}])):
        with pytest.raises(RecordError, match="weights: expected numbers"):
            read(pa.table({"id": ["a"], "weights": weights}))
    of = pa.map_(pa.binary(), pa.float64())
    with pytest.raises(RecordError, match="weights: expected names of attributes as keys"):
        read(pa.table({"id": ["a"], "weights": pa.array([[(b"p", 1.0)]], of)}))


def test_weights_of_names_that_a_declared_schema_lacks_are_left_out():
    schema = Schema.declare({"p": "number"})
    of = pa.map_(pa.string(), pa.float64())
    cells = pa.array([[("q", 1.0), ("p", 2.0)], [("q", 1.0)]], of)
    assert weights_of(read(pa.table({"id": ["a", "b"], "weights": cells}), schema), schema) == [
        {"p": 2.0},
        {},
    ]


# Attributes


def test_all_attributes_may_stand_in_one_struct():
    schema = Schema()
    table = pa.table({"id": ["a", "b"], "attributes": [{"id": 1, "until": "x"}, None]})
    batch = read(table, schema)
    assert list(schema) == ["id", "until"]
    assert np.diff(batch.columns.value_start).tolist() == [2, 0]
    with pytest.raises(RecordError, match="price: "):
        read(pa.table({"id": ["a"], "attributes": [{"x": 1}], "price": [1]}))


def test_a_problem_of_a_nested_attribute_called_id_does_not_hide_that_of_the_id():
    table = pa.table({"id": ["a", ""], "attributes": [{"id": 2**53 + 1}, {"id": 1}]})
    assert [one.row for one in read(table).rejected] == [0, 1]


def test_two_columns_of_one_name_are_refused():
    table = pa.Table.from_arrays([pa.array(["a"])] * 2, ["id", "id"])
    with pytest.raises(RecordError, match="two columns of this name"):
        read(table)


def test_columns_that_a_declared_schema_lacks_are_not_read():
    schema = Schema.declare({"price": "number"})
    batch = read(pa.table({"id": ["a"], "price": [1], "blob": [b"x"]}), schema)
    assert batch.columns.attribute.tolist() == [0]


def test_a_conflict_names_both_uses_and_teaches_nothing():
    schema = Schema()
    subscription_from_dict({"id": "ana", "expression": "price < 3"}, schema)
    with pytest.raises(TypeConflictError) as caught:
        read([{"id": "a", "brand": "x", "price": "cheap"}], schema)
    assert "a table of events" in str(caught.value)
    assert "subscription 'ana'" in str(caught.value)
    assert "brand" not in schema


def test_only_what_is_used_is_learned():
    schema = Schema()
    rows = [
        {"id": "a", "good": 1.0, "null": None, "nan": math.nan, "bad": None},
        {"id": "", "good": None, "null": None, "nan": None, "bad": 1.0},
    ]
    read(rows, schema)
    assert list(schema) == ["good"]


def test_limits_hold_for_tables():
    rows = [{"id": "a", "x": "abc", "y": "abc"}, {"id": "b", "x": "a", "y": "a"}]
    assert [one.row for one in read(rows, limits=RecordLimits(record_bytes=5)).rejected] == [0]
    assert [one.row for one in read(rows, limits=RecordLimits(string_bytes=2)).rejected] == [0]
    with pytest.raises(RecordError, match="2 attributes; the limit is 1"):
        read(rows, limits=RecordLimits(attributes=1))


def test_terms_are_made_for_searched_attributes_only():
    rows = [{"id": "a", "title": "one two", "text": "three"}]
    assert len(read(rows).columns.term_hash) == 3
    assert len(read(rows, searched=frozenset({"text"})).columns.term_hash) == 1


def test_a_text_of_ten_thousand_terms_has_them_all():
    text = " ".join(f"term{place}" for place in range(10_000))
    assert len(read([{"id": "a", "text": text}]).columns.term_hash) == 10_000


# pandas and others


def test_a_data_frame_is_a_table():
    frame = pd.DataFrame(
        {
            "id": ["a", "b"],
            "price": [1.5, None],
            "loc": [[1.0, 2.0], None],
            "when": pd.to_datetime(["2026-01-01", None]),
            "brand": pd.Categorical(["x", "y"]),
        }
    )
    schema = Schema()
    batch = read(frame, schema)
    assert {name: str(schema.kind(name)) for name in schema} == {
        "price": "number",
        "loc": "point",
        "when": "timestamp",
        "brand": "string",
    }
    assert np.diff(batch.columns.value_start).tolist() == [4, 1]


def test_a_named_index_counts_as_columns():
    frame = pd.DataFrame({"price": [1, 2]}, index=pd.Index(["a", "b"], name="id"))
    assert read(frame).ids.to_pylist() == ["a", "b"]


def test_a_column_of_mixed_objects_is_refused_by_name():
    with pytest.raises(RecordError, match="price"):
        read(pd.DataFrame({"id": ["a", "b"], "price": [1, "x"]}))


def test_record_batches_and_other_arrow_tables_are_tables():
    batch = pa.record_batch({"id": ["a"], "x": [1]})

    class Foreign:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table(batch).__arrow_c_stream__(requested_schema)

    assert read(batch).ids.to_pylist() == read(Foreign()).ids.to_pylist() == ["a"]


def test_what_is_no_table_is_refused_with_advice():
    with pytest.raises(RecordError, match="from_pylist"):
        read_event_table([{"id": "a"}], Schema())


# Row by row


def test_a_table_may_mix_records_of_all_kinds():
    rows = [
        {"op": "subscribe", "id": "ana", "expression": "price < 3", "at": {"x": 1.0, "y": 2.0}},
        {"op": "publish", "id": "e", "price": 2.0, "time": 1},
        {"op": "move", "id": "ana", "at": {"x": 3.0, "y": 4.0}},
        {"op": "unsubscribe", "id": "ana"},
        {"op": "move", "id": "ana"},
        {"op": None, "id": "ana"},
    ]
    names = ("op", "id", "expression", "at", "price", "time")
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    subscribed, published, moved, gone, *bad = records_from_table(table, Schema())
    assert isinstance(subscribed, Subscribe)
    assert subscribed.subscription.at == Point(1.0, 2.0)
    assert published == Publish(Event("e", {"price": Constant(Kind.NUMBER, 2.0)}), 1_000_000)
    assert moved == Move("ana", Point(3.0, 4.0))
    assert gone == Unsubscribe("ana")
    assert [(one.row, one.reason.partition(":")[0]) for one in bad] == [(4, "at"), (5, "op")]


def test_a_row_teaches_the_next_one():
    table = pa.table({"op": ["subscribe", "publish"], "id": ["ana", "e"],
                      "expression": ["x > TIMESTAMP '1970-01-01'", None],
                      "x": [None, "1970-01-02"]})  # fmt: skip
    _, published = records_from_table(table, Schema())
    assert published.event.attributes["x"] == Constant(Kind.TIMESTAMP, 86_400e6)


def test_bad_cells_reject_their_row_in_any_kind_of_table():
    table = pa.table({"id": ["a", "b"], "x": [2**53 + 1, 1], "weights": [{"x": 1.0}, {"x": 2.0}]})
    rejected, record = records_from_table(table, Schema(), ReadSettings(default_op="publish"))
    assert rejected.reason.startswith("x: ")
    assert record.event.weights == {"x": 2.0}


def test_rows_of_nested_attributes_are_events():
    table = pa.table({"id": ["a", "b"], "attributes": [{"until": 1.0}, None]})
    first, second = records_from_table(table, Schema(), ReadSettings(default_op="publish"))
    assert first.event == Event("a", {"until": Constant(Kind.NUMBER, 1.0)})
    assert second.event == Event("b", {})


def test_subscriptions_come_back_from_their_table():
    schema = Schema()
    given = [
        subscription_from_dict({"id": "ana", "expression": "price < 300"}, schema),
        subscription_from_dict(
            {"id": "bo", "expression": "ST_DWithin(loc, here(), 5)", "at": [1, 2], "until": 7},
            schema,
        ),
    ]
    assert list(subscriptions_from_table(subscriptions_to_table(given), Schema())) == given
    assert subscriptions_to_table([]).num_rows == 0


def test_a_bad_subscription_rejects_its_row():
    table = pa.table({"id": ["a", "b", None], "expression": ["x <", "x < 1", "x < 1"]})
    first, second, third = subscriptions_from_table(table, Schema())
    assert isinstance(first, Rejected)
    assert "^" in first.reason
    assert isinstance(second, Subscription)
    assert third.reason == "id: every record needs one: a string or an integer"
    assert third.row == 2


def test_a_misspelled_column_of_subscriptions_is_told():
    table = pa.table({"id": ["a"], "expression": ["x < 1"], "untill": [5]})
    [found] = subscriptions_from_table(table, Schema())
    assert "did you mean 'until'?" in found.reason


# Back out


def test_events_become_a_table_of_typed_columns():
    schema = Schema.declare(
        {"price": "number", "when": "timestamp", "loc": "point", "b": "boolean"}
    )
    table = events_to_table([Event("a", {"loc": Point(1.0, 2.0)}, {"price": 2.0}, 5)], schema)
    assert {field.name: str(field.type) for field in table.schema} == {
        "id": "large_string",
        "until": "timestamp[us, tz=UTC]",
        "weights": "map<string, double>",
        "price": "double",
        "when": "timestamp[us, tz=UTC]",
        "loc": "struct<x: double, y: double>",
        "b": "bool",
    }
    assert events_to_table([], schema).num_rows == 0


def test_columns_have_the_declared_types():
    rows = [{"id": "a", "t": "x", "n": 1, "b": True, "loc": [1.0, 2.0], "weights": {"n": 1.0}}]
    columns = read(rows).columns
    assert isinstance(columns, EventColumns)
    check(columns)
