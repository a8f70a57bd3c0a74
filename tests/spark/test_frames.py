"""Any DataFrame becomes canonical records that mean what the same values mean in a dict."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as T  # noqa: N812

from stentor.errors import RecordError, SettingsError
from stentor.model import Schema
from stentor.model.values.time import read_time
from stentor.pipeline.sources import Columns, What
from stentor.pipeline.sources.attribute_types import kinds_of_types, schema_of, types_of_kinds
from stentor.pipeline.sources.frames import COLUMNS, Frame, attribute_types, canonical, union


def canonical_of(df: DataFrame, what: What = "events", **columns: str) -> DataFrame:
    """The rows of *df* as canonical records, where its columns are called so."""
    return canonical(Frame(df, what, what, Columns(**columns)))


@pytest.fixture
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


def micros(df: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    """The rows of *df*, timestamps as microseconds: Python's own depend on the machine's zone."""
    chosen = [f"unix_micros({name})" if name in ("time", "until") else name for name in names]
    return [tuple(row) for row in df.selectExpr(*chosen).collect()]


def time_texts() -> list[str]:
    """Texts of timestamps, most of them right, drawn from all the forms that there are."""
    draw = random.Random(7)
    texts = [
        "",
        " ",
        "never",
        "2026",
        "12:00",
        "2026-02-30",
        "2026-13-01",
        "1582-10-10",
        "0000-01-01",
    ]
    zones = ["", "Z", " Z", "UTC", "GMT", "+01", "-5", "+0530", "+05:30", "-00:00:30", "+053015"]
    zones += [
        " Europe/Oslo",
        "America/New_York",
        "Mars/Base",
        "CET",
        "PST",
        "+5:30",
        "+19:00",
        "+25",
    ]
    years = ["0001", "1582", "1900", "1969", "1970", "2026", "2026", "9999", "26", "12026"]
    for _ in range(1_500):
        month, day = draw.choice(["1", "03", "11", "12", "13"]), draw.choice(["1", "29", "30", "0"])
        hour, minute = draw.choice(["0", "02", "12", "23", "24"]), draw.choice(["5", "30", "60"])
        fraction = draw.choice(["", ".5", ".123456", ".123456000", ".1234567", "."])
        second = draw.choice(["", f":{draw.choice(['0', '09', '59', '60'])}{fraction}"])
        clock = draw.choice(["", f"{draw.choice('T ')}{hour}:{minute}{second}"])
        date = f"{draw.choice(['', ' '])}{draw.choice(years)}-{month}-{day}"
        texts.append(date + clock + draw.choice(zones))
    return texts


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"], indirect=True)
def test_texts_of_times_are_read_as_the_engine_reads_them(spark: SparkSession, zone: str) -> None:
    texts = time_texts()
    df = spark.createDataFrame(
        [(str(n), text) for n, text in enumerate(texts)], "id string, until string"
    )
    understood = 0
    for number, read, problem in micros(canonical_of(df), "id", "until", "problem"):
        text = texts[int(number)]
        try:
            expected = read_time(text, "until")
        except RecordError:
            # What only the year is wrong of passes here, and is refused by the step that reads.
            is_outside = read is not None and not -62135596800000000 <= read <= 253402300799999999
            assert problem or is_outside, text
            continue
        if "/" in text and expected is not None and expected < 0:
            continue  # Java's table of zones and Python's may differ there
        is_narrower = text.endswith(("CET", "+19:00"))  # Java and Python disagree about these
        assert (read, problem) == (expected, None) or (is_narrower and problem), text
        understood += problem is None
    assert understood > 300


@pytest.mark.parametrize("zone", ["Asia/Tokyo"], indirect=True)
def test_seconds_dates_and_timestamps_without_a_zone_are_utc(
    spark: SparkSession, zone: str
) -> None:
    numbers = [
        0.0,
        2.5,
        -1.5,
        1e-7,
        1_700_000_000.123456,
        253402300799.0,
        253402300800.0,
        float("nan"),
    ]
    refused = {6: "2.534023008E11", 7: "NaN"}
    df = spark.createDataFrame([(n, x) for n, x in enumerate(numbers)], "id int, until double")
    for number, read, problem in micros(canonical_of(df), "id", "until", "problem"):
        if int(number) in refused:
            assert problem.startswith(
                f"until: {refused[int(number)]} seconds since 1970 is not in the years"
            )
            with pytest.raises(RecordError, match="seconds since 1970 is not in the years"):
                read_time(numbers[int(number)], "until")
        else:
            assert (read, problem) == (read_time(numbers[int(number)], "until"), None)
    for of, text in (("date", "2026-03-29"), ("timestamp_ntz", "2026-03-29 02:30:00.5")):
        df = spark.sql(f"SELECT 1 AS id, CAST('{text}' AS {of}) AS until")
        assert micros(canonical_of(df), "until") == [(read_time(text, "until"),)]
    df = spark.sql("SELECT 1 AS id, 1700000000000L AS until")
    assert "1700000000000 seconds" in canonical_of(df).first().problem


def test_an_order_is_an_integer_or_a_timestamp_and_every_record_has_one(
    spark: SparkSession,
) -> None:
    df = spark.sql("SELECT 'a' AS id, 7 AS n UNION ALL SELECT 'b', null")
    rows = {row.id: row for row in canonical_of(df, order="n").collect()}
    assert rows["a"].order == 7
    assert rows["a"].problem is None
    assert rows["b"].problem == "n: every record needs one, because it says the order"
    df = spark.sql("SELECT 'a' AS id, timestamp_micros(5) AS n")
    assert canonical_of(df, order="n").first().order == 5
    assert canonical_of(df.drop("n")).first().order is None


def test_ids_are_strings_or_integers(spark: SparkSession) -> None:
    df = spark.sql("SELECT 7L AS key, 1 AS price")
    assert canonical_of(df, id="key").first().id == "7"


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("array(1.5D, 2D)", [1.5, 2.0]),
        ("array(1, 2)", [1.0, 2.0]),
        ("named_struct('lon', 1, 'lat', 2)", [1.0, 2.0]),
        ("named_struct('latitude', 2, 'longitude', 1)", [1.0, 2.0]),
        ("named_struct('y', 2.0, 'x', 1.0)", [1.0, 2.0]),
        ("named_struct('lon', CAST(null AS INT), 'lat', CAST(null AS INT))", None),
        ("named_struct('type', 'Point', 'coordinates', array(1, 2, 3))", [1.0, 2.0]),
        ("CAST(null AS array<double>)", None),
        ("null", None),
    ],
)
def test_places_of_all_forms_become_pairs(spark: SparkSession, place: str, expected: Any) -> None:
    df = spark.sql(f"SELECT 's' AS id, 'TRUE' AS expression, {place} AS at")
    row = canonical_of(df, "changes").first()
    assert (row.at, row.problem, row.op) == (expected, None, "subscribe")


def test_a_geojson_line_is_no_place(spark: SparkSession) -> None:
    place = "named_struct('type', 'LineString', 'coordinates', array(1, 2))"
    row = canonical_of(spark.sql(f"SELECT 's' AS id, {place} AS at"), "changes").first()
    assert row.problem == 'at: a GeoJSON Point has the type "Point" and two coordinates'


@pytest.mark.parametrize(
    "weights",
    ["map('price', 2, 'brand', 0.5)", "named_struct('price', 2, 'brand', 0.5, 'size', null)"],
)
def test_weights_come_as_a_map_or_a_struct(spark: SparkSession, weights: str) -> None:
    df = spark.sql(f"SELECT 'e' AS id, {weights} AS weights UNION ALL SELECT 'f', null")
    rows = {row.id: row.weights for row in canonical_of(df).collect()}
    assert rows == {"e": {"price": 2.0, "brand": 0.5}, "f": None}


def test_the_column_op_says_what_a_record_does(spark: SparkSession) -> None:
    df = spark.createDataFrame(
        [
            ("a", "publish", 1),
            ("b", "subscribe", 2),
            ("c", None, 3),
            ("d", "move", 4),
            ("e", "sell", 5),
        ],
        "id string, op string, price int",
    )
    rows = {row.id: row for row in canonical_of(df, "records").collect()}
    assert rows["a"].attributes == Row(price=1)
    assert rows["b"].attributes is None
    assert [id for id, row in rows.items() if row.problem is None] == ["a", "b", "d"]
    expected = "op: expected one of subscribe, unsubscribe, move, publish, update, withdraw, got "
    assert rows["c"].problem == expected + "nothing"
    assert rows["e"].problem == expected + "'sell'"
    assert rows["e"].raw == '{"id":"e","op":"sell","price":5}'
    changes = canonical_of(df.drop("price"), "changes")
    assert changes.where("id = 'a'").first().problem.startswith("op: ")
    assert (
        canonical_of(df).where("id = 'd'").first().problem
        == "op: expected one of publish, update, withdraw, got 'move'"
    )


@pytest.mark.parametrize(
    ("query", "what", "expected"),
    [
        (
            "SELECT 1 AS Id, 2 AS price",
            "events",
            ["events: there is no column 'id', which holds the id (did you mean 'Id'?); it has Id"],
        ),
        (
            "SELECT 1.5D AS id, true AS until, 'x' AS weights, 7 AS op",
            "events",
            [
                "events, column 'op': expected a string, got int",
                "events, column 'id': expected a string or an integer, got double",
                "events, column 'until': expected a timestamp, a date,",
                "events, column 'weights': expected a map<string,double> or a struct of numbers",
            ],
        ),
        (
            "SELECT 1 AS id, 'TRUE' AS expression, 1 AS untill, array('x') AS at",
            "changes",
            [
                "changes, column 'at': expected a place: array<double>",
                "changes have no column 'untill' (did you mean 'until'?)",
            ],
        ),
        ("SELECT 1 AS id", "records", ["records: there is no column 'op'"]),
        (
            "SELECT 1 AS id, named_struct('price', 1) AS attributes, 2 AS untill",
            "events",
            ["events with a column \"attributes\" have no column 'untill'"],
        ),
    ],
)
def test_one_error_names_all_wrong_columns_before_anything_runs(
    spark: SparkSession, query: str, what: What, expected: list[str]
) -> None:
    with pytest.raises(SettingsError) as caught:
        canonical_of(spark.sql(query), what)
    lines = str(caught.value).splitlines()
    assert len(lines) == len(expected)
    for line, part in zip(lines, expected, strict=True):
        assert part in line


def test_names_that_spark_takes_for_one_are_refused(spark: SparkSession) -> None:
    df = spark.sql("SELECT 1 AS id, 2 AS price, 3 AS Price")
    with pytest.raises(SettingsError, match="cannot tell the columns 'price' and 'Price' apart"):
        canonical_of(df)
    df = spark.sql("SELECT 1 AS id, named_struct('a', 1, 'A', 2) AS attributes")
    with pytest.raises(SettingsError, match=r"spark\.sql\.caseSensitive"):
        canonical_of(df)


def test_a_column_that_was_named_must_be_there(spark: SparkSession) -> None:
    df = spark.sql("SELECT 1 AS id, 2 AS price")
    with pytest.raises(SettingsError, match="no column 'ends', which holds the until"):
        canonical_of(df, until="ends")
    with pytest.raises(SettingsError, match="no column 'sent', which holds the time"):
        canonical_of(df, time="sent")


def test_frames_of_several_types_come_together_in_the_widest(spark: SparkSession) -> None:
    one = spark.sql(
        "SELECT 'a' AS id, 9007199254740993L AS price, array(1D, 2D) AS loc, 5 AS size, "
        "DATE'2026-01-01' AS day, true AS new"
    )
    two = spark.sql(
        "SELECT 'b' AS id, 1.5D AS price, named_struct('lon', 3, 'lat', 4) AS loc, "
        "named_struct('low', 1, 'high', 2) AS size, timestamp_micros(0) AS day, 'x' AS text, "
        "null AS new"
    )
    frames = [Frame(one, "events", "one"), Frame(two, "events", "two")]
    types = attribute_types(frames)
    assert types.simpleString() == (
        "struct<price:double,loc:array<double>,size:struct<low:double,high:double>,day:timestamp,"
        "new:boolean,text:string>"
    )
    asked = Frame(spark.sql("SELECT 's' AS id, 'TRUE' AS expression"), "changes", "changes")
    changes = canonical(asked, types)
    whole = union(None, *(canonical(frame, types) for frame in frames), changes)
    assert tuple(whole.columns) == COLUMNS
    rows = {row.id: row for row in whole.select("id", "attributes", "problem", "source").collect()}
    assert rows["a"].problem.startswith(
        "price: 9007199254740993 is an integer that a double cannot"
    )
    assert rows["a"].attributes.size == Row(low=5.0, high=5.0)
    assert rows["b"].attributes.loc == [3.0, 4.0]
    assert rows["b"].attributes.new is None
    assert rows["s"].attributes is None
    assert [rows[id].source for id in "abs"] == ["one", "two", "changes"]
    assert whole.toArrow().num_rows == 3  # Arrow takes nulls everywhere
    again = canonical(Frame(whole, "records", "again"))
    assert again is whole


def test_frames_that_disagree_about_a_kind_are_refused(spark: SparkSession) -> None:
    one = Frame(spark.sql("SELECT 'a' AS id, 1 AS price"), "events", "one")
    two = Frame(spark.sql("SELECT 'b' AS id, 'x' AS price"), "events", "two")
    with pytest.raises(SettingsError, match="'price' is string in two, but int in one; cast one"):
        attribute_types([one, two])


def test_a_declared_schema_says_which_columns_count(spark: SparkSession) -> None:
    df = spark.sql("SELECT 1 AS id, 2 AS price, array('x') AS tags, '2026-01-01' AS day")
    frame = Frame(df, "events", "shop")
    declared = Schema.declare({"price": "number", "day": "timestamp"})
    assert attribute_types([frame], declared).names == ["price", "day"]
    with pytest.raises(
        SettingsError, match="shop, column 'price': expected a string, as the schema"
    ):
        attribute_types([frame], Schema.declare({"price": "string"}))
    with pytest.raises(SettingsError, match="no source of events has a column 'colour'"):
        attribute_types([frame], Schema.declare({"price": "number", "colour": "string"}))


def test_attributes_may_stand_in_a_struct_of_their_own(spark: SparkSession) -> None:
    df = spark.sql(
        "SELECT 'e' AS id, named_struct('time', 1, 'a.b', 'x') AS attributes, 5 AS `n o`"
    )
    row = canonical(Frame(df, "events", "shop", Columns(order="n o"))).first()
    assert (row.attributes["time"], row.attributes["a.b"], row.order) == (1, "x", 5)


def test_names_with_any_characters_are_attributes(spark: SparkSession) -> None:
    df = spark.sql("SELECT 'e' AS id, 1 AS `a.b`, 2 AS `tick``s`, 3 AS `größe`")
    assert canonical_of(df).first().attributes == Row(**{"a.b": 1, "tick`s": 2, "größe": 3})


def test_types_and_kinds_stand_for_one_another() -> None:
    kinds = {
        "a": "number", "b": "string", "c": "boolean", "d": "timestamp", "e": "point",
        "f": "number range", "g": "timestamp range",
    }  # fmt: skip
    assert kinds_of_types(types_of_kinds(kinds)) == kinds
    schema = schema_of(types_of_kinds(kinds))
    assert schema.declared
    assert [schema.kind(name) for name in "efg"] == ["point", "number", "timestamp"]
    assert list(schema_of(T.StructType([T.StructField("x", T.BinaryType())]))) == []
    assert schema_of(types_of_kinds({"tags": "set"})).kind("tags") == "set"


def test_a_column_of_changes_that_is_called_like_a_declared_attribute_is_refused(
    spark: SparkSession,
) -> None:
    df = spark.createDataFrame([], "op string, id string, expression string, at array<double>")
    frame = Frame(df, "records", "records", Columns())
    with pytest.raises(SettingsError, match="column 'at': it holds the at of changes"):
        attribute_types([frame], Schema.declare({"at": "point", "price": "number"}))
    renamed = frame._replace(columns=Columns(at="position"))
    assert attribute_types([renamed], Schema.declare({"at": "point"})).names == ["at"]
