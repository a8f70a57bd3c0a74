"""Regions as PostGIS and Sedona write them: with the SRID 4326, and no other."""

import pyarrow as pa
import pytest

from stentor import Engine, Schema, parse
from stentor.errors import ExpressionError

BOX = "ST_Within(loc, ST_MakeEnvelope(0, 0, 4, 3))"
TRIANGLE = "ST_Within(loc, ST_GeomFromText('POLYGON((0 0, 4 0, 4 3, 0 0))'))"
PARTS = "ST_Within(loc, ST_GeomFromText('MULTIPOLYGON(((0 0, 4 0, 4 3, 0 0)))'))"
NEAR = "ST_DWithin(loc, ST_Point(1, 2), 5)"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("ST_Intersects(loc, ST_MakeEnvelope(0, 0, 4, 3, 4326))", BOX),
        ("ST_Intersects(ST_SetSRID(ST_MakeEnvelope(0, 0, 4, 3), 4326), loc)", BOX),
        ("ST_Intersects(loc, ST_GeomFromText('POLYGON((0 0, 4 0, 4 3, 0 0))', 4326))", TRIANGLE),
        ("ST_Intersects(ST_GeomFromText('SRID=4326;POLYGON((0 0,4 0,4 3,0 0))'), loc)", TRIANGLE),
        ("ST_Within(loc, ST_GeomFromText('POLYGON Z((0 0 9, 4 0 9, 4 3 -1, 0 0 9))'))", TRIANGLE),
        (
            (
                "ST_Within(loc, ST_GeomFromText('srid=4326; polygonzm"
                "((0 0 1 2, 4 0 1 2, 4 3 1 2, 0 0 1 2))'))"
            ),
            TRIANGLE,
        ),
        (
            "ST_Within(loc, ST_GeomFromText('MULTIPOLYGON M(((0 0 1, 4 0 1, 4 3 1, 0 0 1)))'))",
            PARTS,
        ),
        ("ST_DWithin(loc, ST_SetSRID(ST_Point(1, 2), 4326), 5)", NEAR),
        ("ST_DWithin(ST_Point(1, 2, 4326), loc, 5)", NEAR),
    ],
)
def test_longitude_and_latitude_have_the_srid_4326(text, same):
    assert parse(text) == parse(same)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("ST_Within(loc, ST_MakeEnvelope(0, 0, 4, 3, 3857))", "got SRID 3857"),
        ("ST_Within(loc, ST_SetSRID(ST_MakeEnvelope(0, 0, 4, 3), 0))", "got SRID 0"),
        (
            "ST_Within(loc, ST_GeomFromText('SRID=25832;POLYGON((0 0, 1 0, 1 1, 0 0))'))",
            "SRID 25832",
        ),
        ("ST_DWithin(loc, ST_Point(1, 2, 4258), 5)", "got SRID 4258"),
        ("ST_Within(loc, ST_SetSRID(ST_MakeEnvelope(0, 0, 4, 3)))", "expected ST_SetSRID"),
        ("ST_Within(loc, " + "ST_SetSRID(" * 5_000, "expected a region"),
        ("ST_DWithin(loc, " + "ST_SetSRID(" * 5_000, r"expected ST_Point\(lon, lat\)"),
        ("ST_Within(loc, ST_GeomFromText('POLYGON Z((0 0, 1 0, 1 1, 0 0))'))", "and 1 more"),
        (
            "ST_Within(loc, ST_GeomFromText('POLYGON((0 0 1, 1 0, 1 1, 0 0))'))",
            "two numbers, x and y",
        ),
    ],
)
def test_another_reference_system_is_refused_with_a_sentence(text, sentence):
    with pytest.raises(ExpressionError, match=sentence):
        parse(text)


def test_a_plane_has_no_srid():
    with pytest.raises(ExpressionError, match="a plane, which has no SRID"):
        parse("ST_Within(loc, ST_MakeEnvelope(0, 0, 4, 3, 4326))", schema=Schema(plane=True))


def test_among_many_texts_of_one_shape_another_srid_is_refused_too():
    texts = [f"ST_Within(loc, ST_MakeEnvelope({n}, 0, 99, 3, 4326))" for n in range(60)]
    texts[50] = texts[50].replace("4326", "3857")
    engine = Engine(clock=None)
    ids = [str(n) for n in range(60)]
    report = engine.subscribe_batch(pa.table({"id": ids, "expression": texts}))
    assert report.rejected["record"].to_pylist() == [50]
    assert engine.publish({"id": "e", "loc": [20.5, 1]}) == sorted(map(str, range(21)))


@pytest.mark.parametrize("text", ["s REGEXP 'a'", "s NOT REGEXP 'a'"])
def test_who_writes_regexp_is_told_of_rlike(text):
    with pytest.raises(ExpressionError, match="RLIKE"):
        parse(text)
