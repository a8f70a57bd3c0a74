"""Sources of records: each row as the wire reads it, each bad one with its reason and place."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import Row, SparkSession

from stentor.errors import SettingsError
from stentor.model import Range, Schema
from stentor.model.record import Publish
from stentor.model.values import Constant
from stentor.pipeline import match
from stentor.pipeline.config.file import load, start_from
from stentor.pipeline.sources import RANGE, Columns, SourceSettings, open_source, source_named
from stentor.pipeline.sources.frames import canonical
from stentor.pipeline.tables import read
from stentor.wire.files import read_records
from stentor.wire.formats import ReadSettings
from stentor.wire.rejected import Rejected
from stentor.wire.tables import records_from_table

KINDS = {
    "price": "number",
    "brand": "string",
    "new": "boolean",
    "day": "timestamp",
    "loc": "point",
    "size": "number range",
}
SCHEMA = {name: kind.removesuffix(RANGE) for name, kind in KINDS.items()}


def rows_of(spark: SparkSession, source: SourceSettings, kinds: Any = None) -> list[Row]:
    frame = open_source(spark, source, kinds, streaming=False)
    return canonical(frame).collect()


def test_json_lines_mean_what_they_mean_without_spark(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        *('{"id":"a","price":1}', '{"id":"b","price":{"low":1,"high":2}}', "[]", '{"id":"c",}'),
        '{"type":"Feature","id":"d","geometry":{"type":"Point","coordinates":[1,2]},"properties":{}}',
        '{"specversion":"1.0","id":"3","source":"/s","type":"offer","data":{"price":350}}',
        *('{"id":"e"}\r{"id":"f"}', '{"id":"g","price":1e400}', '{"id":"h","brand":1}', " "),
        '[{"id":"i"},{"id":"j","until":"2026-01-01"},{"id":"k","weights":{"price":2}}]',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(["", *lines, " "]), "utf-8")
    source = SourceSettings(format="json", kind="events", path=str(tmp_path))
    table = canonical(open_source(spark, source, KINDS, streaming=False)).toArrow()
    fields = table.select(["op", "id", "until", "weights", "attributes", "problem"])
    read = records_from_table(
        fields.filter(fields["problem"].is_null()).drop(["problem"]), Schema.declare(SCHEMA)
    )
    settings = ReadSettings(default_op="publish")
    wanted = list(read_records(tmp_path / "a.jsonl", Schema.declare(SCHEMA), settings))
    good = [one for one in wanted if not isinstance(one, Rejected)]
    assert [simple(one) for one in read] == [simple(one) for one in good]
    assert len(good) == 7
    reasons = [one for one in table["problem"].to_pylist() if one is not None]
    assert sorted(reasons) == sorted(one.reason for one in wanted if isinstance(one, Rejected))


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


def test_a_bad_line_has_its_reason_its_text_and_its_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text('{"id":"a","price":"x"}\n{"id":"b","brand":5}\n{"id":"c"}\n')
    source = SourceSettings(format="json", kind="events", path=str(tmp_path))
    first, second, third = rows_of(spark, source, KINDS)
    assert first.raw == '{"id":"a","price":"x"}'
    assert first.source.endswith("/a.jsonl")
    assert first.problem.startswith(
        "attribute 'price' is a string in event 'a', but a number in the schema"
    )
    assert second.problem.startswith("attribute 'brand' is a number in event 'b'")
    assert (third.problem, third.raw) == (None, None)


def test_a_line_of_json_that_is_not_utf8_is_no_other_record(
    spark: SparkSession, tmp_path: Path
) -> None:
    broken = b'{"id":"caf\xe9"}', b'{"id":"b","brand":"\xff"}', b"\xfe", b'{"id":"c","x\xe9":1}'
    good = '{"id":"caf\ufffd"}'.encode(), '{"id":"d","brand":"東京"}'.encode()
    (tmp_path / "a.jsonl").write_bytes(b"\n".join([*broken, *good]))
    rows = rows_of(spark, SourceSettings(format="json", kind="events", path=str(tmp_path)), KINDS)
    for row, line in zip(rows[:4], broken, strict=True):
        assert row.problem.startswith(("not UTF-8: the byte 0x", "not JSON"))
        assert row.raw == line.decode("utf-8", "replace")
    assert [(row.id, row.problem) for row in rows[4:]] == [("caf\ufffd", None), ("d", None)]


def test_a_line_of_csv_that_is_not_utf8_is_no_other_record(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = b"id,price,brand", b"caf\xe9,1,x", b"b,2,\xff", "café,3,東京".encode(), b"d,\xfe,x"
    (tmp_path / "a.csv").write_bytes(b"\n".join(lines))
    rows = rows_of(spark, SourceSettings(format="csv", kind="events", path=str(tmp_path)), KINDS)
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
    source = SourceSettings(format="json", kind="changes", path=str(tmp_path), columns=columns)
    rows = rows_of(spark, source)
    assert [row.op for row in rows[:2]] == ["subscribe", "move"]
    assert [row.at for row in rows[:2]] == [[1.0, 2.0], [1.0, 2.0]]
    assert [row.order for row in rows] == [5, 6, None]
    assert [row.id for row in rows[:2]] == ["s", "s"]
    assert rows[2].problem == "n: expected an integer or a timestamp, got 'x'"
    source = SourceSettings(format="json", kind="records", path=str(tmp_path), columns=columns)
    rows = rows_of(spark, source, {"price": "number"})
    assert rows[0].problem == (
        "op: expected one of subscribe, unsubscribe, move, publish, update, withdraw, got nothing"
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
    source = SourceSettings(format="json", kind="events", path=str(tmp_path))
    assert source_named(source.format).kinds(spark, source) == {
        "price": "number",
        "loc": "point",
        "size": "number range",
    }
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
    rows = rows_of(spark, SourceSettings(format="csv", kind="events", path=str(tmp_path)), KINDS)
    good = [row for row in rows if row.problem is None]
    assert [row.id for row in good] == ["a", "b"]
    assert good[0].attributes.price == Row(low=1.5, high=1.5)
    assert good[0].attributes.new is True
    assert good[0].attributes.loc == Row(x=1.0, y=2.0)
    assert good[0].attributes.size == Row(low=5.0, high=5.0)
    assert good[0].weights == {"price": 2.0}
    assert all(value is None for value in good[1].attributes)
    problems = {row.raw[:1]: row.problem for row in rows if row.problem}
    assert problems == {
        "c": "price: expected a number, got 'dear'",
        "d": "new: expected true or false, got 'perhaps'",
        "e": "price: 9007199254740993 is an integer that a double cannot hold; send it as a "
        "string, or round it yourself",
        "f": "the line has more or fewer cells than the header",
        "g": "loc: a point is a pair of numbers [longitude, latitude]",
    }


def test_files_of_csv_may_differ_in_their_columns(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,price\na,1\n"b\nb",2\n')
    (tmp_path / "b.csv").write_text("brand;id\n", "utf-8")
    (tmp_path / "c.csv").write_text("brand,until,id\nx,2026-01-01,c\n")
    (tmp_path / "d.csv").write_text("id\nd\n")
    source = SourceSettings(format="csv", kind="events", path=str(tmp_path))
    rows = {row.id: row for row in rows_of(spark, source, KINDS)}
    assert set(rows) == {"a", "b\nb", "c", "d"}
    assert rows["a"].attributes.price == Row(low=1.0, high=1.0)
    assert rows["c"].attributes.brand == "x"
    assert rows["c"].until is not None
    assert source_named(source.format).kinds(spark, source) == {
        "price": "number",
        "brand": "string",
    }


def test_an_escape_of_csv_is_read_as_spark_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    lines = [r"1,C:\temp", r'2,"a\"b"', r'3,"a\nb\\"', r"4,c\\d", r'"5","x,\,y"', '6,"a\nb"']
    (tmp_path / "a.csv").write_text("\n".join(["id,brand", *lines]) + "\n")
    options = {"escape": "\\"}
    source = SourceSettings(format="csv", kind="events", path=str(tmp_path), options=options)
    found = {row.id: row.attributes.brand for row in rows_of(spark, source, KINDS)}
    own = spark.read.csv(str(tmp_path), header=True, multiLine=True, escape="\\")
    assert found == {row.id: row.brand for row in own.collect()}
    (tmp_path / "a.csv").write_text("id\na\\b\n" + r'"c\\"' + "\n")
    assert {row.id for row in rows_of(spark, source, KINDS)} == {"a\\b", "c\\"}
    with pytest.raises(SettingsError, match="every file of CSV has a header"):
        rows_of(spark, replace(source, options={"Header": "false"}), KINDS)


def tables_of(spark: SparkSession, folder: Path, *sources: str, rest: str = "") -> "Tables":
    """What is in the tables once everything in the folders of *sources* is taken in."""
    text = "\n".join(f"[[source]]\n{source}" for source in sources)
    trigger = "[trigger]\navailable_now = true\n"
    (folder / "stentor.toml").write_text(f'{text}\n[tables]\npath = "out"\n{trigger}{rest}')
    start_from(load(folder / "stentor.toml"), spark).awaitTermination()
    return Tables(spark, folder / "out")


class Tables(NamedTuple):
    spark: SparkSession
    path: Path

    def rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        return sorted(map(tuple, read(self.spark, self.path, name).select(*columns).collect()))


EVENTS = 'kind = "events"\nformat = "parquet"\npath = "events"\nmax_files = 1'
CHANGES = 'kind = "changes"\nformat = "parquet"\npath = "changes"\nmax_files = 1'


def written(folder: Path, name: str, **columns: Any) -> None:
    """A file of Parquet, later than those before it."""
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    stamp = 1_700_000_000 + len(list(folder.iterdir()))
    os.utime(folder / f"{name}.parquet", (stamp, stamp))


def test_a_stream_of_parquet_says_where_each_row_stood(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(3):
        rows: dict[str, Any] = {"id": [None, f"{number}b"], "price": [1, 2], "by": ["x", "y"]}
        written(tmp_path / "events", f"{number} é", **rows)
    found = tables_of(spark, tmp_path, EVENTS + '\ndrop = ["by"]')
    rows = found.rows("rejected", "source", "offset", "record")
    assert [offset for _, offset, _ in rows] == [0, 0, 0]
    assert all(f"/events/{n}" in source for n, (source, _, _) in enumerate(rows))
    assert all('"price":1' in record and "by" not in record for _, _, record in rows)


def test_an_unsubscribe_in_a_later_file_is_none_the_less_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    written(tmp_path / "changes", "0", id=["ana", "ben", "cem"], expression=["TRUE"] * 3)
    written(tmp_path / "changes", "1", id=["ana"], op=["unsubscribe"])
    until = pa.array([4_000_000_000], pa.timestamp("s"))
    written(tmp_path / "changes", "2", id=["ben"], expression=["TRUE"], until=until)
    found = tables_of(spark, tmp_path, CHANGES)
    log = found.rows("subscriptions", "batch", "id", "change")
    assert log[3:] == [(1, "ana", "unsubscribe"), (2, "ben", "subscribe")]
    ends = read(spark, found.path, "subscriptions").where("until IS NOT NULL").collect()
    assert [row.id for row in ends] == ["ben"]
    written(tmp_path / "changes", "3", id=["cem"], op=["unsubscribe"], n=pa.nulls(1, pa.int32()))
    written(tmp_path / "changes", "4", id=["dan"], expression=["TRUE"], untill=["2026-01-01"])
    found = tables_of(spark, tmp_path, CHANGES)
    assert ("cem", "unsubscribe") in found.rows("subscriptions", "id", "change")
    ((reason,),) = found.rows("rejected", "reason")
    assert "did you mean 'until'?" in reason


def test_files_of_other_types_are_read_or_their_records_rejected(
    spark: SparkSession, tmp_path: Path
) -> None:
    nothing = pa.array([None, None], pa.int32())
    ns = pa.array([1_700_000_000_000_000_000, None], pa.timestamp("ns"))
    folder = tmp_path / "events"
    written(folder, "0", id=["a1", "a2"], price=[1, 2], brand=nothing)
    written(folder, "1", id=["b1", "b2"], price=[1.5, None], brand=["x", "y"])
    written(folder, "2", id=["c1", "c2"], price=["dear", None], brand=["x", "x"])
    written(
        folder, "3", id=[1, 2], price=pa.array([3, 4], pa.int32()), brand=nothing, until=nothing
    )
    text = pa.array(["x", "y"]).dictionary_encode()
    written(folder, "4", id=["e1", "e2"], price=pa.array([1, 2], pa.decimal128(9, 2)), brand=text)
    written(folder, "5", id=["f1", "f2"], price=[1, 2], until=ns)
    written(folder, "6", id=[1.5, None], price=[1, 2])
    (folder / "7.parquet").write_bytes(b"no Parquet")
    os.utime(folder / "7.parquet", (1_800_000_000, 1_800_000_000))
    written(folder, "8", id=["i1", "i2"], price=[1, 2], brand=nothing, until=[True, None])
    written(tmp_path / "changes", "0", id=["all", "x"], expression=["price > 0", "brand = 'x'"])
    found = tables_of(spark, tmp_path, CHANGES, EVENTS)
    events = {
        event for event, who in found.rows("deliveries", "event", "subscription") if who == "all"
    }
    assert events == {"a1", "a2", "b1", "1", "2", "e1", "e2", "f2", "i2"}
    named = {
        event for event, who in found.rows("deliveries", "event", "subscription") if who == "x"
    }
    assert named == {"b1", "c2", "e1"}
    reasons = [reason for (reason,) in found.rows("rejected", "reason")]
    assert len(reasons) == 6, reasons
    assert sum("expected a number, got string" in one for one in reasons) == 1
    assert sum("the file cannot be read" in one for one in reasons) == 1
    assert sum("was over at" in one for one in reasons) == 1
    assert sum(one.startswith("id: ") for one in reasons) == 2
    assert sum(one.startswith("until: expected") for one in reasons) == 1


def test_columns_of_other_names_may_stand_in_different_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    written(tmp_path / "changes", "0", key=["ana", "ben"], wish=["TRUE", "TRUE"])
    written(tmp_path / "changes", "1", key=["ana"], what=["unsubscribe"])
    named = '\ncolumns = { id = "key", op = "what", expression = "wish" }'
    found = tables_of(spark, tmp_path, CHANGES + named)
    assert found.rows("subscriptions", "id", "change")[1:] == [
        ("ana", "unsubscribe"),
        ("ben", "subscribe"),
    ]
    wrong = SourceSettings(
        format="parquet",
        kind="changes",
        path=str(tmp_path / "changes"),
        columns=Columns(id="key", op="what", expression="wishes"),
    )
    expected = r"no column 'wishes', which holds the expression .*; it has key, wish, what\n"
    with pytest.raises(SettingsError, match=expected):
        open_source(spark, wrong)


def test_a_column_that_is_null_throughout_is_of_any_type(
    spark: SparkSession, tmp_path: Path
) -> None:
    nothing = pa.nulls(2, pa.int32())
    written(
        tmp_path / "changes", "0", id=["a", "b"], expression=["TRUE"] * 2, op=nothing, at=nothing
    )
    written(tmp_path / "events", "0", id=["e", "f"], price=[1, 2], weights=nothing, until=nothing)
    found = tables_of(spark, tmp_path, CHANGES, EVENTS)
    assert found.rows("rejected", "reason") == []
    assert len(found.rows("deliveries", "event")) == 4


def test_a_stream_of_json_goes_on_after_bad_lines(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    (folder / "0.jsonl").write_text('{"id":"a","price":1}\nnonsense\n{"id":"b","price":2}\n')
    (folder / "1.jsonl").write_text('{"id":"c","price":2,"until":"2099-01-01"}\n')
    written(tmp_path / "changes", "0", id=["all"], expression=["price > 0"])
    source = EVENTS.replace("parquet", "json")
    found = tables_of(spark, tmp_path, CHANGES, source, rest='[schema]\nprice = "number"\n')
    assert found.rows("deliveries", "event") == [("a",), ("b",), ("c",)]
    assert len(found.rows("rejected", "reason")) == 1
    assert found.rows("events", "id") == [("c",)]


def test_two_sources_of_one_order_are_read_at_any_pace(spark: SparkSession, tmp_path: Path) -> None:
    people, events = tmp_path / "changes", tmp_path / "events"
    for number in range(2):  # all of the people in two batches, the events in eight
        ids = [f"s{number * 40 + n}" for n in range(40)]
        places = [2 * (number * 40 + n) for n in range(40)]
        written(people, str(number), id=ids, expression=["price > 0"] * 40, n=places)
    for number in range(8):
        ids = [f"e{number * 10 + n}" for n in range(10)]
        places = [2 * (number * 10 + n) + 1 for n in range(10)]
        written(events, str(number), id=ids, price=[1] * 10, n=places)
    # However slow the machine is, neither is idle while it has more.
    rest = '[order]\nby = "n"\nidle = "10 minutes"\n'
    found = tables_of(spark, tmp_path, CHANGES, EVENTS, rest=rest)
    assert found.rows("rejected", "reason") == []
    expected = [(f"e{e}", f"s{s}") for e in range(80) for s in range(e + 1)]
    assert found.rows("deliveries", "event", "subscription") == sorted(expected)


def test_files_that_differ_are_matched_as_one_batch(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    written(folder, "0", id=["a"], price=[1])
    written(folder, "1", id=["b", "c"], price=[1.5, 2.5], until=["2026-01-01", None], time=[5, 6])
    written(folder, "2", id=["d"], price=["dear"])
    source = SourceSettings(format="parquet", kind="events", path=str(folder))
    frame = open_source(spark, source, streaming=False)
    rows = {row.id: row for row in canonical(frame).collect()}
    assert set(rows) == {"a", "b", "c", "d"}
    assert [rows[id].attributes.price for id in "abc"] == [1.0, 1.5, 2.5]
    assert rows["b"].time is not None
    assert "expected a number, got string" in rows["d"].problem
    people = spark.createDataFrame([("ana", "price > 0")], "id string, expression string")
    good = frame.df.where("_stentor_problem IS NULL")
    assert {row.event for row in match(good, people).collect()} == {"a", "b", "c"}


def test_a_delta_table_is_read_without_jars(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "table")
    write_deltalake(folder, pa.table({"id": ["old"], "price": [0]}))
    write_deltalake(folder, pa.table({"id": ["a", "b"], "price": [1, 2]}), mode="overwrite")
    source = SourceSettings(format="delta", kind="events", path=folder)
    assert [row.id for row in rows_of(spark, source)] == ["a", "b"]
    with pytest.raises(SettingsError, match="Spark needs Delta's own jars"):
        open_source(spark, source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (SourceSettings(format="parquet", kind="events", path="/nowhere"), "nothing to read yet"),
        (SourceSettings(format="csv", kind="events", path="/nowhere"), "nothing to read yet"),
        (SourceSettings(format="json", kind="events", path="/nowhere"), "nothing to read yet"),
        (SourceSettings(format="delta", kind="events", path="/nowhere"), "there is no Delta table"),
        (
            SourceSettings(format="kafka", kind="events", topic="t", servers="h:1"),
            "declare the schema",
        ),
    ],
)
def test_a_source_that_cannot_be_opened_says_what_to_do(
    spark: SparkSession, source: SourceSettings, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        open_source(spark, source, streaming=False)


def test_a_column_that_is_dropped_must_be_there(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "price": [1]}), tmp_path / "0.parquet")
    source = SourceSettings(format="parquet", kind="events", path=str(tmp_path), drop=("colour",))
    with pytest.raises(
        SettingsError, match="there is no column 'colour' to drop; it has id, price"
    ):
        open_source(spark, source)
