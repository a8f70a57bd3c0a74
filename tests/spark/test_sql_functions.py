"""The same text in `df.filter` and in a subscription is true of the same events."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import SparkSession

from stentor.errors import ExpressionError, RecordError, TypeConflictError
from stentor.language.evaluate import evaluate
from stentor.language.functions import NAMES
from stentor.language.parser import parse
from stentor.model import Event, Kind, Point, Range, Schema
from stentor.model.value import value_of
from stentor.pipeline.functions import for_spark, register_functions
from stentor.testing import grid
from stentor.testing.strategies import events, expressions, points, subscriptions

T = TypeVar("T")

TYPES = {
    Kind.NUMBER: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.POINT: pa.list_(pa.float64()),
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


def test_spark_sql_judges_every_expression_like_the_definition(sql: SparkSession) -> None:
    found = drawn(events().filter(without_ranges), times=0.6)
    asked = {
        for_spark(one.expression, one.at): one
        for one in drawn(subscriptions(max_predicates=5), times=5)
    }
    for texts in batched(asked, 40):
        judged = truths(sql, found, texts)
        for text in texts:
            one = asked[text]
            expected = [evaluate(one.expression, event, here=one.at).truth for event in found]
            assert judged[text] == expected, text


def batched(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = iter(texts)
    while batch := list(islice(rest, size)):
        yield batch
