"""Records that cannot be used: each lands in `rejected` with its reason, and no other is lost."""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from stentor import Engine
from stentor.errors import AlreadyOverError
from stentor.language.parser import parse
from stentor.model import Constant, Event, Kind, Subscription
from stentor.model.record import Publish, Subscribe
from stentor.pipeline.sources.text_records import TextFormat
from stentor.pipeline.stream import match_events
from stentor.pipeline.stream import rejected as rejections
from stentor.pipeline.stream.order import OVER, refusal_text
from stentor.pipeline.stream.rejected import RejectedWriter, record_texts
from stentor.pipeline.stream.settings import FrameSettings
from stentor.wire.rejected import MOST_RAW
from tests.support import grid

sys.path.insert(0, str(Path(__file__).parent))
from in_process import Stream, canonical, unread

SECOND = 1_000_000
BROKEN = b"caf\xe9"
SHOWN = "caf\ufffd"
#: Nanoseconds of the year 2026, taken for microseconds: the year 57,840.
FAR = 1_763_000_000_000_000_000
#: Days of a date that Spark can hold, and no timestamp.
DAYS = 2_000_000_000
MOMENT = pa.timestamp("us", tz="UTC")


def subscribe(id, text="price > 0"):
    return Subscribe(Subscription(id, parse(text, schema=grid.schema())), None)


def publish(id, price=1.0, **fields):
    time = fields.pop("time", None)
    weights = fields.pop("weights", {})
    event = Event(id, {"price": Constant(Kind.NUMBER, price)}, weights, **fields)
    return Publish(event, time)


def strings(cells):
    """*cells* as Spark gives strings: bytes that nobody has checked."""
    raw = [one.encode() if isinstance(one, str) else one for one in cells]
    return pa.array(raw, pa.binary()).view(pa.string())


def with_cell(table, name, row, cell):
    """*table* with another *cell* in one place."""
    column = table[name].combine_chunks()
    if pa.types.is_string(column.type):
        cells = column.to_pylist()
        column = strings([*cells[:row], cell, *cells[row + 1 :]])
    elif pa.types.is_timestamp(column.type):
        cells = column.cast(pa.int64()).to_pylist()
        cells[row] = cell
        column = pa.array(cells, pa.int64()).cast(column.type)
    elif pa.types.is_map(column.type):
        starts = [0] * (row + 1) + [1] * (len(column) - row)
        column = pa.MapArray.from_arrays(starts, strings([cell]), [2.0])
    return table.set_column(table.column_names.index(name), name, column)


def with_attribute(table, name, cells):
    """*table* with other *cells* in one attribute."""
    attributes = table["attributes"].combine_chunks()
    fields = {
        field.name: one for field, one in zip(attributes.type, attributes.flatten(), strict=True)
    }
    column = pa.StructArray.from_arrays([*(fields | {name: cells}).values()], [*fields])
    return table.set_column(table.column_names.index("attributes"), "attributes", column)


def stream_of(path, **chosen):
    return Stream(path, canonical([publish("e")]).schema.field("attributes").type, **chosen)


def taken_in(path, table, **chosen):
    """What is delivered and what is rejected where *table* is one batch of a stream."""
    stream = stream_of(path, **chosen)
    stream.batch([table])
    stream.stop()
    return delivered(path), rejected(path)


def texts_taken_in(path, first, lines, texts=None, **chosen):
    """What is delivered and rejected where *lines* of texts follow the records *first*."""
    frames = (FrameSettings("first"), FrameSettings("texts", texts or TextFormat("events")))
    stream = stream_of(path, frames=frames, **chosen)
    stream.batch([canonical(first), unread(lines)])
    stream.stop()
    return delivered(path), rejected(path)


def delivered(path):
    table = DeltaTable(path / "tables" / "deliveries").to_pyarrow_table()
    return sorted(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))


def rejected(path):
    table = DeltaTable(path / "tables" / "rejected").to_pyarrow_table()
    return sorted(table.to_pylist(), key=lambda row: row["offset"])


RECORDS = (subscribe("ana"), subscribe("bo"), publish("e1"), publish("e2"))
ANA, BO, E1, E2 = range(4)


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize(
    ("name", "row", "cell", "told"),
    [
        ("id", BO, BROKEN, "id: not UTF-8"),
        ("expression", BO, BROKEN, "expression: not UTF-8"),
        ("op", BO, BROKEN, "op: not UTF-8"),
        ("until", BO, FAR, "until: "),
        ("until", BO, -FAR, "until: "),
        ("time", BO, FAR, "time: "),
        ("id", E2, BROKEN, "id: not UTF-8"),
        ("weights", E2, BROKEN, "weights: a name is not UTF-8"),
        ("until", E2, FAR, "until: "),
        ("time", E2, -FAR, "time: "),
    ],
)
def test_a_cell_that_python_cannot_hold_is_rejected_alone(
    tmp_path, name, row, cell, told, is_plain
):
    table = with_cell(canonical(RECORDS), name, row, cell)
    chosen = {"has_order": False, "has_time": False} if is_plain else {}
    found, bad = taken_in(tmp_path, table, **chosen)
    assert found == ([("e1", "ana"), ("e2", "ana")] if row == BO else [("e1", "ana"), ("e1", "bo")])
    (one,) = bad
    assert one["reason"].startswith(told)
    assert (one["source"], one["offset"]) == ("a test", row)
    text = json.loads(one["record"])
    if isinstance(cell, bytes):
        assert text[name] == ({SHOWN: 2.0} if name == "weights" else SHOWN)
    else:
        assert text[name] == str(np.datetime64(cell, "us")).removesuffix(".000000") + "Z"


def test_broken_attributes_are_rejected_alone(tmp_path):
    table = canonical([subscribe("ana"), publish("e1"), publish("e2")])
    table = with_attribute(table, "brand", strings([None, b"\xff", "ok"]))
    found, (bad,) = taken_in(tmp_path, table)
    assert found == [("e2", "ana")]
    assert bad["reason"].startswith("brand: not UTF-8")
    assert json.loads(bad["record"])["brand"] == "\ufffd"


def test_a_problem_its_text_and_its_source_may_be_any_bytes(tmp_path):
    table = with_cell(canonical(RECORDS), "problem", E2, b"got " + BROKEN)
    table = with_cell(table, "raw", E2, b'{"id": "' + BROKEN)
    table = with_cell(table, "source", E2, BROKEN)
    table = with_cell(table, "until", E2, FAR)
    table = with_cell(table, "weights", E2, BROKEN)
    table = with_cell(table, "id", E2, BROKEN)
    found, (bad,) = taken_in(tmp_path, table)
    assert found == [("e1", "ana"), ("e1", "bo")]
    assert bad["reason"] == f"got {SHOWN}"
    assert bad["record"] == f'{{"id": "{SHOWN}'
    assert bad["source"] == SHOWN


def test_a_refused_event_of_a_broken_source_is_shown(tmp_path):
    table = with_cell(canonical([subscribe("ana"), publish("e1", until=0)]), "source", 1, BROKEN)
    _, (bad,) = taken_in(tmp_path, with_cell(table, "time", 1, SECOND))
    assert bad["source"] == SHOWN
    assert "was over at" in bad["reason"]


def test_a_late_change_of_a_broken_source_is_shown(tmp_path):
    stream = stream_of(tmp_path)
    stream.batch([canonical(RECORDS)])
    late = canonical([subscribe("cé")])
    late = late.set_column(2, "order", pa.array([-1], pa.int64()))
    stream.batch([with_cell(late, "source", 0, BROKEN)])
    stream.stop()
    (bad,) = rejected(tmp_path)
    assert bad["source"] == SHOWN
    assert bad["reason"].startswith("order: 'cé' comes too late")


def test_a_text_is_read_by_the_engine_s_own_reader(tmp_path):
    lines = [
        '{"id": "e1", "price": 1}',
        '{"id": "e2", "price": "dear"}',
        '[{"id": "e3", "price": 3}, {"id": "e4", "price": 4, "until": "never"}]',
        '{"type": "Feature", "id": "e5", "geometry": null, "properties": {"price": 5}}',
        "  ",
    ]
    found, bad = texts_taken_in(tmp_path, [subscribe("ana")], lines, has_order=False)
    assert found == [("e1", "ana"), ("e3", "ana"), ("e5", "ana")]
    assert [one["offset"] for one in bad] == [1, 2]
    assert bad[0]["reason"].startswith("attribute 'price' is a string in event 'e2'")
    assert bad[0]["record"] == lines[1]
    assert bad[1]["reason"].startswith("until: ")
    assert json.loads(bad[1]["record"]) == {"id": "e4", "price": 4, "until": "never"}


def test_an_event_over_is_refused_in_the_engine_s_words():
    with pytest.raises(AlreadyOverError) as caught:
        Engine().publish({"id": "é'1"}, until=5, time=7)
    assert refusal_text(OVER, "é'1", 5 * SECOND, 7 * SECOND) == str(caught.value)


def test_texts_of_rows_hold_what_is_there_under_its_name():
    table = pa.table(
        {
            "op": ["publish", "subscribe"],
            "id": ["e", "s"],
            "time": pa.array([1, FAR], pa.int64()).cast(MOMENT),
            "weights": pa.array([[("price", 2.0)], None], pa.map_(pa.string(), pa.float64())),
            "at": pa.array([None, [1.5, 2.0]], pa.list_(pa.float64())),
            "attributes": pa.array(
                [{"price": float("nan"), "size": {"low": 1, "high": None}, "day": DAYS}, None],
                pa.struct(
                    {
                        "price": pa.float64(),
                        "size": pa.struct({"low": pa.int64(), "high": pa.int64()}),
                        "day": pa.date32(),
                        "seen": MOMENT,
                    }
                ),
            ),
            "source": ["here", "there"],
            "offset": [1, 2],
        }
    )
    first, second = map(json.loads, record_texts(table).to_pylist())
    assert first == {
        "op": "publish",
        "id": "e",
        "time": "1970-01-01T00:00:00.000001Z",
        "weights": {"price": 2.0},
        "price": "nan",
        "size": {"low": 1},
        "day": str(np.datetime64(DAYS, "D")),
    }
    assert second["at"] == [1.5, 2.0]
    assert second.keys() == {"op", "id", "time", "at"}


def test_an_attribute_that_is_called_like_a_field_is_shown_among_attributes():
    table = pa.table({"id": ["e"], "attributes": [{"id": 5, "price": 2}]})
    assert record_texts(table).to_pylist() == ['{"id":"e","attributes":{"id":5,"price":2}}']


def test_the_text_of_a_large_row_is_cut_as_a_whole_one_would_be():
    text = "é" * 1_000_000
    (found,) = record_texts(pa.table({"id": ["e"], "expression": [text]})).to_pylist()
    assert found == ('{"id":"e","expression":"' + text)[:MOST_RAW] + "…"


def test_many_rejected_records_are_written_to_several_files(tmp_path, monkeypatch):
    monkeypatch.setattr(rejections, "FLUSH_BYTES", 2_000)
    monkeypatch.setattr(rejections, "BLOCK_ROWS", 7)
    monkeypatch.setattr(match_events, "BLOCK_ROWS", 7)
    stream = stream_of(tmp_path)
    lasting = [publish(f"e{number}", until=SECOND) for number in range(40)]
    over = canonical([*lasting, publish("e", time=SECOND)])
    over = over.set_column(2, "order", pa.array([*range(1, 41), 0], pa.int64()))
    broken = canonical([publish(f"b{number}") for number in range(40)])
    for row in range(40):
        broken = with_cell(broken, "problem", row, f"wrong {row}")
    stream.batch([over, broken])
    stream.stop()
    table = DeltaTable(tmp_path / "tables" / "rejected")
    assert len(table.file_uris()) > 3
    reasons = table.to_pyarrow_table()["reason"].to_pylist()
    expected = {f"wrong {row}" for row in range(40)}
    expected |= {refusal_text(OVER, f"e{number}", SECOND, SECOND) for number in range(40)}
    assert sorted(reasons) == sorted(expected)
    assert stream.progress[-1].rejected == 80


def test_rows_of_several_tables_keep_their_own_reasons(tmp_path, monkeypatch):
    monkeypatch.setattr(rejections, "BLOCK_ROWS", 7)
    (tmp_path / "tables" / "rejected").mkdir(parents=True)
    tables = [canonical([publish(f"{name}{row}") for row in range(20)]) for name in "abc"]
    held = RejectedWriter()
    draw = np.random.default_rng(3)
    for place in draw.permutation(60).tolist():
        table, row = divmod(place, 20)
        held.add_row(tables[table], row, f"{'abc'[table]}{row}")
    (file,) = held.write(tmp_path, 0, 0)
    written = pa.parquet.read_table(tmp_path / "tables" / "rejected" / file.name).to_pylist()
    assert len(written) == file.rows == 60
    for row in written:
        assert json.loads(row["record"])["id"] == row["reason"]
        assert row["offset"] == int(row["reason"][1:])
    assert held.write(tmp_path, 0, 0) == [file]
