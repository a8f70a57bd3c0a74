"""What Spark's sources say of events that are one of several values."""

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from stentor.model import Schema
from stentor.pipeline.sources.attribute_types import usable_types
from stentor.pipeline.sources.text_records import NO_SETS, TextFormat, TextReader
from stentor.wire.limits import RecordLimits


def test_a_line_with_a_set_is_rejected_and_the_others_are_read():
    lines = [
        b'{"id": "1", "color": {"in": ["red", "blue"]}}',
        b'{"id": "2", "color": "red", "price": 2}',
        b'{"id": "3", "price": {"not": 1}}',
        b'{"id": "4", "price": {"low": 1}}',
    ]
    schema = Schema.declare({"color": "string", "price": "number"})
    bad = []
    reader = TextReader(TextFormat("events"), schema, RecordLimits())
    table, _ = reader.read(pa.array(lines), [None] * 4, lambda *found: bad.append(found))
    assert table["id"].to_pylist() == ["2", "4"]
    assert [(row, reason) for row, reason, _ in bad] == [
        (0, f"color: {NO_SETS}"),
        (2, f"price: {NO_SETS}"),
    ]


def test_a_frame_with_a_column_of_sets_is_a_mistake():
    of = T.StructType([T.StructField("in", T.ArrayType(T.StringType()))])
    usable, mistakes = usable_types({"color": of, "price": T.DoubleType()}, "the events")
    assert [*usable] == ["price"]
    assert mistakes == [f"the events, column 'color': {NO_SETS}"]
