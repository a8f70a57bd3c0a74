"""The same text in `df.filter` and in a subscription is true of the same events."""

# ruff: noqa: E501

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TypeVar

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from stentor.errors import ExpressionError, RecordError
from stentor.language.evaluate import evaluate
from stentor.language.literals import quote_name
from stentor.language.parser import parse
from stentor.language.predicates.calls import NAMES
from stentor.language.printer import to_text
from stentor.language.tree import predicates_of
from stentor.model import Event, Kind, Overlaps, Point, Range, Schema, Subscription
from stentor.model.values import read_value
from stentor.pipeline.sql.functions import LocationPredicates, for_spark, register_functions
from stentor.pipeline.sql.keywords import has_all
from tests.support import grid
from tests.support.strategies import events, expressions, points, predicates, subscriptions

T = TypeVar("T")

TYPES = {
    Kind.NUMBER: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.POINT: pa.list_(pa.float64()),
    Kind.SET: pa.list_(pa.string()),
}
# One attribute's places are structs, the other's are arrays.
SCHEMA = pa.schema({name: TYPES[kind] for name, kind in grid.KINDS.items()})
SCHEMA = SCHEMA.set(
    SCHEMA.get_field_index("home"),
    pa.field("home", pa.struct({"lat": pa.float64(), "lon": pa.float64()})),
)


@pytest.fixture(scope="module")
def sql(spark: SparkSession) -> SparkSession:
    register_functions(spark)
    return spark


def without_ranges(event: Event) -> bool:
    return not any(isinstance(value, Range) for value in event.attributes.values())


def without_sets(event: Event) -> Event:
    """Spark's arrays have one type: strings or numbers."""
    plain = {name: value for name, value in event.attributes.items() if name != "tags"}
    return replace(event, attributes=plain)


def asks_for_no_member(one: Subscription) -> bool:
    return not any(isinstance(leaf, Overlaps) for leaf in predicates_of(one.expression))


def table(found: list[Event]) -> pa.Table:
    return pa.Table.from_pylist([row(event) for event in found], schema=SCHEMA)


def row(event: Event) -> dict[str, object]:
    cells: dict[str, object] = {}
    for name, value in event.attributes.items():
        if isinstance(value, Point):
            cells[name] = {"lon": value.x, "lat": value.y} if name == "home" else list(value)
        elif value.kind is Kind.TIMESTAMP:
            cells[name] = int(value.value)
        else:
            cells[name] = bool(value.value) if value.kind is Kind.BOOLEAN else value.value
    return cells


def truths(sql: SparkSession, found: list[Event], texts: list[str]) -> dict[str, list[bool | None]]:
    """What Spark says of *found*, text by text, in one job."""
    numbered = [f"({text}) AS c{number}" for number, text in enumerate(texts)]
    columns = sql.createDataFrame(table(found)).coalesce(1).selectExpr(*numbered).toArrow()
    return {text: columns[f"c{number}"].to_pylist() for number, text in enumerate(texts)}


def drawn(strategy: st.SearchStrategy[T], times: float) -> list[T]:
    """So many examples of *strategy*, in *times* of what the profile asks for.

    A Spark job takes as long for one expression as for forty, so they are drawn first.
    """
    found: list[T] = []

    @settings(max_examples=int(times * settings().max_examples))
    @given(strategy)
    def collect(one: T) -> None:
        found.append(one)

    collect()
    return found


def assert_alike(sql: SparkSession, asked: list[Subscription]) -> None:
    """Spark gives the same truths as the definition: true, false and unknown."""
    found = drawn(events(several=False).map(without_sets).filter(without_ranges), times=0.6)
    by_text = {for_spark(one.expression, one.at): one for one in asked}
    for texts in batched(by_text, 40):
        judged = truths(sql, found, texts)
        for text in texts:
            one = by_text[text]
            expected = [evaluate(one.expression, event, here=one.at).truth for event in found]
            assert judged[text] == expected, text


def batched(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = iter(texts)
    while batch := list(islice(rest, size)):
        yield batch


def test_spark_judges_every_expression_like_the_definition(sql: SparkSession) -> None:
    assert_alike(sql, drawn(subscriptions(max_predicates=5).filter(asks_for_no_member), times=3))


def test_spark_judges_words_and_places_like_the_definition(sql: SparkSession) -> None:
    found = predicates((*grid.TEXTS, "loc", "home"))
    assert_alike(sql, drawn(st.builds(Subscription, st.just("ana"), found, points()), times=3))


def test_a_filter_keeps_the_rows_that_match(sql: SparkSession) -> None:
    text = "weight(has_all(text, 'ipad'), 2) AND NOT ST_DWithin(loc, ST_Point(0, 0), 100)"
    found = [
        Event("e", {name: read_value(raw) for name, raw in attributes.items()})
        for attributes in [
            {"text": "red iPad", "loc": [0.0, 0.0]},
            {"text": "red iPad", "loc": [1.0, 0.0]},
            {"text": "e-reader", "loc": [2.0, 0.0]},
            {"text": "red iPad"},
        ]
    ]
    matching = [list(event.attributes["loc"]) for event in found if evaluate(parse(text), event)[0]]
    kept = sql.createDataFrame(table(found)).filter(text).select("loc").toArrow()
    assert kept["loc"].to_pylist() == matching == [[1.0, 0.0]]


def test_sparks_parser_reads_all_that_is_printed(sql: SparkSession) -> None:
    parser = sql._jsparkSession.sessionState().sqlParser()
    for expression in drawn(expressions(), times=2):
        text = to_text(expression)
        parser.parseExpression(text)


def test_an_attribute_may_be_called_like_a_word_of_sql(sql: SparkSession) -> None:
    parser = sql._jsparkSession.sessionState().sqlParser()
    words = [row.keyword.lower() for row in sql.sql("SELECT keyword FROM sql_keywords()").collect()]
    plain, quoted = (
        parser.parseExpression(
            f"array({', '.join(f'{name} IN (1) OR NOT {name}' for name in names)})"
        )
        for names in (map(quote_name, words), (f"`{word}`" for word in words))
    )
    different = [
        word
        for number, word in enumerate(words)
        if not plain.children().apply(number).equals(quoted.children().apply(number))
    ]
    assert different == ["current_path"]  # as the documentation says


@pytest.mark.parametrize("kind", ["tinyint", "int", "bigint", "float", "double", "decimal(20,3)"])
def test_every_type_of_number_is_compared_like_a_double(sql: SparkSession, kind: str) -> None:
    texts = ["n < 0.1", "n = 0.1", "n <= 1e0", "n IN (1, 0.125, 1e300)", "n BETWEEN -2 AND 0.125"]
    stated = sql.sql(
        f"SELECT CAST(v AS {kind}) AS n FROM VALUES (0.1), (0.125), (1.0), (-2.0), (NULL) AS t(v)"
    )
    columns = stated.selectExpr("n", *texts).toArrow()
    numbers = columns["n"].to_pylist()  # a float comes back as the double that it is
    for text in texts:
        expression = parse(text)
        expected = [
            evaluate(expression, Event("e", {} if n is None else {"n": read_value(n)})).truth
            for n in numbers
        ]
        assert columns.column(texts.index(text) + 1).to_pylist() == expected, text


def test_every_function_of_the_language_is_registered(sql: SparkSession) -> None:
    missing = [name for name in NAMES if not sql.catalog.functionExists(name)]
    assert missing == ["here"]


def test_a_place_is_read_in_every_form_that_an_event_can_have(sql: SparkSession) -> None:
    forms = [
        "array(1, 2)",
        "array(1.0, 2.0)",
        "named_struct('x', 1.0, 'y', 2.0)",
        "named_struct('lat', 2, 'lon', 1)",
        "named_struct('longitude', 1F, 'latitude', 2F)",
        "named_struct('type', 'Point', 'coordinates', array(1.0, 2.0, 99.0))",
        "ST_Point(1, 2)",
    ]
    asked = [f"ST_Within({form}, ST_MakeEnvelope(1, 2, 1, 2))" for form in forms]
    asked += [f"ST_DWithin({form}, array(1D, 2D), 0)" for form in forms]
    assert list(sql.range(1).selectExpr(*asked).first()) == [True] * len(asked)


def test_what_is_no_place_is_neither_inside_nor_outside(sql: SparkSession) -> None:
    forms = [
        "array(181D, 0D)",
        "array(0D, double('nan'))",
        "array(double('inf'), 0D)",
        "array(1D)",
        "'1 2'",
        "CAST(NULL AS array<double>)",
        "NULL",
    ]
    globe = "POLYGON((-180 -90, 180 -90, 180 90, -180 90, -180 -90))"
    for asked in ("ST_Within({0}, ST_GeomFromText('" + globe + "'))", "ST_DWithin({0}, {0}, 3e7)"):
        judged = sql.range(1).selectExpr(*(asked.format(form) for form in forms)).first()
        assert list(judged) == [None] * len(forms)


def test_a_region_or_a_distance_that_is_null_is_unknown(sql: SparkSession) -> None:
    asked = [
        "ST_Within(ST_Point(1, 2), NULL)",
        "ST_Within(ST_Point(1, 2), ST_GeomFromText(NULL))",
        "ST_DWithin(ST_Point(1, 2), ST_Point(1, 2), NULL)",
    ]
    assert list(sql.range(1).selectExpr(*asked).first()) == [None] * 3


def test_regions_may_differ_from_row_to_row(sql: SparkSession) -> None:
    shapes = ["POLYGON((0 0, 4 0, 4 3, 0 0))", "POLYGON((9 9, 8 9, 8 8, 9 9))"]
    frame = sql.createDataFrame([(shape,) for shape in (*shapes, None)], "shape string").coalesce(1)
    inside = frame.selectExpr("ST_Contains(ST_GeomFromText(shape), ST_Point(3, 1)) AS inside")
    assert [row.inside for row in inside.collect()] == [True, False, None]


def test_on_a_plane_distances_are_plain_numbers(spark: SparkSession) -> None:
    flat = spark.newSession()
    register_functions(flat, plane=True)
    asked = ["ST_DWithin(array(3000, 0), ST_Point(0, 4000), 5000)"]
    asked += ["ST_DWithin(array(3000, 0), ST_Point(0, 4000), 4999.9)"]
    assert list(flat.range(1).selectExpr(*asked).first()) == [True, False]


def test_words_may_differ_from_row_to_row(sql: SparkSession) -> None:
    rows = [("red ipad", "red"), ("ipad", "blue"), ("ipad", None), (None, "red")]
    frame = sql.createDataFrame(rows, "text string, word string").coalesce(1)
    judged = frame.selectExpr("has_all(text, word) AS one", "has_any(text, 'IPAD', word) AS other")
    assert [tuple(row) for row in judged.collect()] == [
        (True, True),
        (False, True),
        (None, None),
        (None, None),
    ]


def test_batches_without_rows_are_judged_too() -> None:
    none = pa.array([], pa.string())
    assert has_all(none, none).to_pylist() == []
    places = pa.array([], pa.list_(pa.float64()))
    assert LocationPredicates(plane=False).dwithin(places, places, none).to_pylist() == []
    assert LocationPredicates(plane=False).within(places, none).to_pylist() == []


def test_words_are_sought_in_strings_only() -> None:
    assert has_all(pa.array([1, 2]), pa.array(["a", "a"])).to_pylist() == [None, None]


def test_here_becomes_the_subscribers_place() -> None:
    text = "NOT (weight(ST_DWithin(loc, here(), 500), 2) AND brand = 'here()')"
    placed = "NOT (weight(ST_DWithin(loc, ST_Point(1.5, 2), 500), 2) AND brand = 'here()')"
    assert for_spark(text, at=(1.5, 2)) == placed
    with pytest.raises(ExpressionError, match="where its subscriber is"):
        for_spark(text)
    with pytest.raises(RecordError, match=r"at: .* is not on the globe"):
        for_spark(text, at=(1.5, 92))
    plane = Schema.declare({"loc": "point", "brand": "string"}, plane=True)
    assert "ST_Point(1.5, 92)" in for_spark(text, at=(1.5, 92), schema=plane)


def test_a_schema_turns_strings_into_timestamps() -> None:
    schema = Schema.declare({"made": "timestamp"})
    text = for_spark("made < '2026-11-15 12:00'", schema=schema)
    assert text == "made < TIMESTAMP '2026-11-15T12:00:00+00:00'"


def test_spark_reads_arrays_regular_expressions_and_regions_as_people_write_them(
    sql: SparkSession,
) -> None:
    rows = [
        {
            "id": "e",
            "tags": ["a", "b"],
            "sizes": [1.0, 2.0, 3.0],
            "text": "in New York",
            "loc": [1.0, 1.0],
        }
    ]
    event = Event("e", {name: read_value(raw) for name, raw in rows[0].items() if name != "id"})
    box = '{"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [0, 9], [0, 0]]]}'
    texts = {
        "array_contains(tags, 'a')": True,
        "arrays_overlap(tags, array('x', 'y'))": False,
        "array_contains(sizes, 2)": True,
        "text ILIKE '%new%'": True,
        "text RLIKE 'York$'": True,
        "has_phrase(text, 'new york')": True,
        f"ST_Intersects(loc, ST_GeomFromGeoJSON('{box}'))": True,
        "ST_Intersects(ST_GeomFromText('MULTIPOLYGON(((5 5, 6 5, 6 6, 5 5)), ((0 0, 2 0, 2 2, 0 2, 0 0)))'), loc)": True,
    }  # fmt: skip
    frame = sql.createDataFrame(pa.Table.from_pylist(rows))
    columns = frame.selectExpr(*(f"{text} AS c{n}" for n, text in enumerate(texts))).toArrow()
    for number, (text, expected) in enumerate(texts.items()):
        assert columns[f"c{number}"].to_pylist() == [expected], text
        assert evaluate(parse(text), event).truth is expected, text
