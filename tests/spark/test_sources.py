"""Sources of records: each row as the wire reads it, each bad one with its reason and place."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import DataFrame, Row, SparkSession

from stentor.errors import SettingsError, StentorError
from stentor.model import Range, Schema
from stentor.model.record import Publish
from stentor.model.value import Constant
from stentor.pipeline.frames.canonical import canonical, reason_for
from stentor.pipeline.sources.open import explained, open_source
from stentor.pipeline.sources.settings import RANGE, Columns, Source
from stentor.wire.formats import ReadSettings, record_from_object
from stentor.wire.json_text import from_json
from stentor.wire.rejected import Rejected
from stentor.wire.row_tables import records_from_table

KINDS = {
    "price": "number",
    "brand": "string",
    "new": "boolean",
    "day": "timestamp",
    "loc": "point",
    "size": "number range",
}
SCHEMA = {name: kind.removesuffix(RANGE) for name, kind in KINDS.items()}


def rows_of(spark: SparkSession, source: Source, kinds: Any = None) -> list[Row]:
    frame = open_source(spark, source, kinds, streaming=False)
    return canonical(frame).collect()


def streamed(df: DataFrame, path: Path) -> list[list[Row]]:
    """The rows of each batch until nothing is left."""
    batches: list[list[Row]] = []
    query = (
        df.writeStream.foreachBatch(lambda batch, _: batches.append(batch.collect()))
        .option("checkpointLocation", str(path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return batches


def json_texts() -> list[str]:
    """Records as JSON, right and wrong in every field, and texts that are none."""
    draw = random.Random(11)
    values: dict[str, list[Any]] = {
        "id": ["e1", 7, -7, "7", "ß", None, 1.5, True, "", ["x"], {"x": 1}],
        "op": [None, None, None, "publish", "publish", "move", 5],
        "until": [None, "2026-01-01", "2026-01-01T12:00+01:00", 5, 2.5, "5", "soon", True, 1e15],
        "weights": [None, {}, {"price": 2}, {"price": "2"}, {"price": None}, {"price": -1}, [1]],
        "price": [1, 2.5, -0.0, 1e300, 2**53, 2**53 + 1, -(2**63), 10**40, "1", True, None, [1]],
        "brand": ["x", "", "5", "true", "{", "ta\"g", "a\\b", 5, True, None, {"x": 1}, ["a"], "é"],
        "new": [True, False, None, "true", 1, 0],
        "day": ["2026-01-01", "2026-01-01 12:00:00Z", 5, "x", None],
        "loc": [
            [1, 2], [1.5, -2.5], {"type": "Point", "coordinates": [1, 2]}, {"lon": 1, "lat": 2},
            {"type": "Point", "coordinates": [1, 2, 3]}, [1], [1, 2, 3], ["1", "2"], "x", None, 5,
            [500, 0], {"x": 1, "y": 2}, {"x": 1},
        ],
        "size": [5, {"low": 1, "high": 2}, {"low": 2, "high": 1}, {"low": 1}, "5", None, [1, 2]],
        "other": [1, "x", {"price": 1}, [1, 2], None],
    }  # fmt: skip
    texts = ["[]", "5", "null", '"x"', "{", "nonsense", '{"id":"a"} x', '{"id":"a"}{"id":"b"}']
    texts += ["{'id':'a'}", '{"id":"a","price":NaN}', '{"id":"a","price":01}', '{"id":"a",}']
    texts += ['\ufeff{"id":"bom"}', '  {"id":"space"}\t', '{"id" : "a", "brand" :  "5"}', "{}"]
    for _ in range(900):
        right = {name: draw.choice(given[:2]) for name, given in values.items()}
        chosen = {name: right[name] for name in values if name == "id" or draw.random() < 0.5}
        if draw.random() < 0.6:
            wrong = draw.choice(list(values))
            chosen[wrong] = draw.choice(values[wrong])
        if draw.random() < 0.2:
            inner = {name: chosen.pop(name) for name in KINDS if name in chosen}
            chosen.pop("other", None)
            chosen["attributes"] = inner
        separators = draw.choice([(",", ":"), (", ", ": "), (" , ", " : ")])
        texts.append(json.dumps(chosen, separators=separators, ensure_ascii=draw.random() < 0.5))
    return texts


def from_wire(text: str) -> Any:
    try:
        value = from_json(text.strip(" \t\ufeff").encode())
        settings = ReadSettings(format="json", default_op="publish")
        return record_from_object(value, Schema.declare(SCHEMA), settings)
    except StentorError:
        return None


def simple(record: Any) -> Any:
    """*record* with single values for ranges of one: no expression tells them apart."""
    if not isinstance(record, Publish):
        return record
    values = {
        name: Constant(value.kind, value.low)
        if isinstance(value, Range) and value.low == value.high
        else value
        for name, value in record.event.attributes.items()
    }
    return replace(record, event=replace(record.event, attributes=values))


def test_json_lines_mean_what_they_mean_without_spark(spark: SparkSession, tmp_path: Path) -> None:
    texts = json_texts()
    (tmp_path / "a.jsonl").write_text("\n".join(["", *texts, " "]), "utf-8")
    source = Source(format="json", kind="events", path=str(tmp_path))
    table = canonical(open_source(spark, source, KINDS, streaming=False)).toArrow()
    assert table.num_rows == len(texts)
    assert table["problem"].null_count > 200
    fields = table.select(["op", "id", "until", "weights", "attributes"])
    read = records_from_table(fields, Schema.declare(SCHEMA))
    problems = table["problem"].to_pylist()
    for text, problem, record in zip(texts, problems, read, strict=True):
        found = None if problem or isinstance(record, Rejected) else record
        assert simple(found) == simple(from_wire(text)), (text, problem, record)


def test_a_bad_line_has_its_reason_its_text_and_its_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text('{"id":"a","price":"x"}\n{"id":"b","brand":5}\n{"id":"c"}\n')
    source = Source(format="json", kind="events", path=str(tmp_path))
    first, second, third = rows_of(spark, source, KINDS)
    assert first.raw == '{"id":"a","price":"x"}'
    assert first.source.endswith("/a.jsonl")
    reason = reason_for(first.raw, Schema.declare(SCHEMA), first.problem)
    assert reason.startswith(
        "attribute 'price' is a string in event 'a', but a number in the schema"
    )
    assert second.problem == "brand: expected a string, got 5"
    assert (third.problem, third.raw) == (None, None)


def test_a_line_of_json_that_is_not_utf8_is_no_other_record(
    spark: SparkSession, tmp_path: Path
) -> None:
    broken = b'{"id":"caf\xe9"}', b'{"id":"b","brand":"\xff"}', b"\xfe", b'{"id":"c","x\xe9":1}'
    good = '{"id":"caf\ufffd"}'.encode(), '{"id":"d","brand":"東京"}'.encode()
    (tmp_path / "a.jsonl").write_bytes(b"\n".join([*broken, *good]))
    rows = rows_of(spark, Source(format="json", kind="events", path=str(tmp_path)), KINDS)
    for row, line in zip(rows[:4], broken, strict=True):
        assert row.problem == "not UTF-8; save the text as UTF-8"
        assert row.raw == line.decode("utf-8", "replace")
    assert [(row.id, row.problem) for row in rows[4:]] == [("caf\ufffd", None), ("d", None)]


def test_a_line_of_csv_that_is_not_utf8_is_no_other_record(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = b"id,price,brand", b"caf\xe9,1,x", b"b,2,\xff", "café,3,東京".encode(), b"d,\xfe,x"
    (tmp_path / "a.csv").write_bytes(b"\n".join(lines))
    rows = rows_of(spark, Source(format="csv", kind="events", path=str(tmp_path)), KINDS)
    assert [(row.id, row.attributes.brand) for row in rows if row.problem is None] == [
        ("café", "東京")
    ]
    for row in (one for one in rows if one.problem):
        assert row.problem.startswith("the line holds U+FFFD")
        assert "\ufffd" in row.raw


def test_changes_and_records_come_as_json_too(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        {
            "key": "s",
            "expression": "price < 3",
            "at": [1, 2],
            "n": 5,
            "sent": "1970-01-01T00:00:01Z",
        },
        {
            "key": "s",
            "op": "move",
            "at": {"type": "Point", "coordinates": [1, 2]},
            "n": 6,
            "sent": 2,
        },
        {"key": "s", "op": "unsubscribe", "n": "x", "sent": 3},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    columns = Columns(id="key", order="n", time="sent")
    source = Source(format="json", kind="changes", path=str(tmp_path), columns=columns)
    rows = rows_of(spark, source)
    assert [row.op for row in rows] == ["subscribe", "move", "unsubscribe"]
    assert [row.at for row in rows] == [[1.0, 2.0], [1.0, 2.0], None]
    assert [row.order for row in rows] == [5, 6, None]
    assert [row.id for row in rows] == ["s", "s", "s"]
    assert rows[2].problem == "n: expected an integer or a timestamp, got 'x'"
    source = Source(format="json", kind="records", path=str(tmp_path), columns=columns)
    rows = rows_of(spark, source, {"price": "number"})
    assert rows[0].problem == (
        "op: expected one of subscribe, unsubscribe, move, publish, got nothing"
    )
    assert rows[1].problem is None


def test_kinds_are_inferred_from_the_files_that_are_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = [
        {"id": "a", "price": 1, "loc": [1, 2], "size": 3},
        {"id": "b", "size": {"low": 1, "high": 2}},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\nnonsense\n")
    source = Source(format="json", kind="events", path=str(tmp_path))
    kinds = open_source(spark, source, streaming=False).df.schema["attributes"].dataType
    assert kinds.simpleString() == (
        "struct<price:double,loc:array<double>,size:struct<low:double,high:double>>"
    )
    (tmp_path / "a.jsonl").write_text("nonsense")
    with pytest.raises(SettingsError, match="no attribute was found in the first 1,000 records"):
        open_source(spark, source)


def test_cells_of_csv_are_read_as_their_types(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "id,price,brand,new,day,loc,size,until,weights\n"
        'a,1.5,x,true,2026-01-01,"[1, 2]",5,2026-01-01,"{""price"": 2}"\n'
        "b,,,,,,,7,\n"
        "c,dear,x,,,,,,\n"
        "d,1,x,perhaps,,,,,\n"
        "e,9007199254740993,,,,,,,\n"
        "f,1\n"
        'g,1,x,,,"[1]",,,\n'
    )
    rows = rows_of(spark, Source(format="csv", kind="events", path=str(tmp_path)), KINDS)
    good = [row for row in rows if row.problem is None]
    assert [row.id for row in good] == ["a", "b"]
    assert good[0].attributes.price == 1.5
    assert good[0].attributes.new is True
    assert good[0].attributes.loc == [1.0, 2.0]
    assert good[0].attributes.size == Row(low=5.0, high=5.0)
    assert good[0].weights == {"price": 2.0}
    assert all(value is None for value in good[1].attributes)
    problems = {row.raw[:9]: row.problem for row in rows if row.problem}
    assert problems == {
        '{"id":"c"': "price: expected a number, got 'dear'",
        '{"id":"d"': "new: expected true or false, got 'perhaps'",
        '{"id":"e"': "price: 9007199254740993 is an integer that a double cannot hold, or beyond "
        "64 bits; send it as a string, or round it yourself",
        "f,1": "the line has more or fewer cells than the header",
        '{"id":"g"': "loc: expected a place, [longitude, latitude] or a GeoJSON Point, got '[1]'",
    }


def test_a_stream_of_parquet_says_where_each_row_stood(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        rows = {"id": [f"{number}a", f"{number}b"], "price": [1, 2], "by": ["x", "y"]}
        pq.write_table(pa.table(rows), folder / f"{number}.parquet")
    source = Source(format="parquet", kind="events", path=str(folder), drop=("by",), max_files=1)
    batches = streamed(canonical(open_source(spark, source)), tmp_path)
    assert [len(batch) for batch in batches] == [2, 2, 2]
    assert {(row.id, row.offset) for batch in batches for row in batch} == {
        (f"{number}{letter}", offset) for number in range(3) for offset, letter in enumerate("ab")
    }
    for batch in batches:
        for row in batch:
            assert row.source.endswith(f"/in/{row.id[0]}.parquet")
            assert row.attributes.asDict() == {"price": row.offset + 1}


def test_a_parquet_file_of_other_types_is_explained(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(pa.table({"id": ["a"], "price": [1]}), folder / "0.parquet")
    source = Source(format="parquet", kind="events", path=str(folder))
    df = canonical(open_source(spark, source))
    pq.write_table(pa.table({"id": ["b"], "price": ["dear"]}), folder / "1.parquet")
    with pytest.raises(Exception, match="PARQUET_COLUMN_DATA_TYPE_MISMATCH") as caught:
        streamed(df, tmp_path)
    found = explained(caught.value)
    assert found is not None
    assert "a new Parquet file has a column of another type" in str(found)
    assert explained(ValueError("something else")) is None


def test_a_stream_of_json_goes_on_after_bad_lines(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "0.jsonl").write_text('{"id":"a","price":1}\nnonsense\n')
    (folder / "1.jsonl").write_text('{"id":"b","price":2}\n')
    source = Source(format="json", kind="events", path=str(folder), max_files=1)
    batches = streamed(canonical(open_source(spark, source, {"price": "number"})), tmp_path)
    found = [(row.id, row.problem is None) for batch in batches for row in batch]
    assert sorted(found, key=str) == [("a", True), ("b", True), (None, False)]


def test_a_delta_table_is_read_without_jars(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "table")
    write_deltalake(folder, pa.table({"id": ["old"], "price": [0]}))
    write_deltalake(folder, pa.table({"id": ["a", "b"], "price": [1, 2]}), mode="overwrite")
    source = Source(format="delta", kind="events", path=folder)
    assert [row.id for row in rows_of(spark, source)] == ["a", "b"]
    with pytest.raises(SettingsError, match="Spark needs Delta's own jars"):
        open_source(spark, source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (Source(format="parquet", kind="events", path="/nowhere"), "nothing to read yet"),
        (Source(format="csv", kind="events", path="/nowhere"), "nothing to read yet"),
        (Source(format="json", kind="events", path="/nowhere"), "nothing to read yet"),
        (Source(format="delta", kind="events", path="/nowhere"), "there is no Delta table"),
        (Source(format="kafka", kind="events", topic="t", servers="h:1"), "declare the schema"),
    ],
)
def test_a_source_that_cannot_be_opened_says_what_to_do(
    spark: SparkSession, source: Source, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        open_source(spark, source, streaming=False)


def test_a_column_that_is_dropped_must_be_there(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "price": [1]}), tmp_path / "0.parquet")
    source = Source(format="parquet", kind="events", path=str(tmp_path), drop=("colour",))
    with pytest.raises(
        SettingsError, match="there is no column 'colour' to drop; it has id, price"
    ):
        open_source(spark, source)
