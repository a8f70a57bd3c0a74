"""Columns of other names, and two that are a point: dicts, tables, files of CSV."""

import pandas as pd
import pyarrow as pa
import pytest

from stentor import Engine, mapped
from stentor.errors import SettingsError
from stentor.model import Constant, Kind, Point, Schema
from stentor.model.record import Publish, Subscribe
from stentor.wire.files import open_records
from stentor.wire.formats import ReadSettings, record_from_object
from stentor.wire.mapping import ColumnMapping
from stentor.wire.rejected import Rejected

MAPPING = {"id": "event", "loc": ["lon", "lat"], "price": "Preis", "age": "who.age"}
ROWS = [
    {"event": "e1", "lon": 1.0, "lat": 2.0, "Preis": 5, "who": {"age": 7, "name": "x"}},
    {"event": "e2", "lon": None, "lat": None, "Preis": None, "who": None},
]
PUBLISH = ReadSettings(default_op="publish", columns=ColumnMapping.of(MAPPING))


def test_a_dict_and_a_table_become_the_same_events():
    schema = Schema()
    first, second = (record_from_object(raw, schema, PUBLISH).event for raw in ROWS)
    assert first.id == "e1"
    assert first.attributes["loc"] == Point(1.0, 2.0)
    assert first.attributes["price"] == Constant(Kind.NUMBER, 5.0)
    assert first.attributes["age"] == Constant(Kind.NUMBER, 7.0)
    assert "lon" not in first.attributes
    assert second.attributes == {}


@pytest.mark.parametrize("form", [pa.Table.from_pylist, pd.DataFrame, list])
def test_an_engine_takes_mapped_tables_frames_and_dicts(form):
    engine = Engine("scan", clock=None)
    engine.subscribe("near", "ST_DWithin(loc, ST_Point(1, 2), 10) AND price = 5 AND age = 7")
    engine.subscribe("none", "loc IS NULL")
    assert list(engine.publish_batch(mapped(form(ROWS), MAPPING))) == [["near"], ["none"]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loc": ["a", "b", "c"]}, "of two that are a point"),
        ({"loc": 5}, "of one column"),
        ({5: "a"}, "a text"),
        (["loc"], "a dict by name"),
    ],
)
def test_what_is_no_mapping_is_refused(given, message):
    with pytest.raises(SettingsError, match=message.replace("of one", "made of one")):
        ColumnMapping.of(given)


def test_texts_of_a_command_are_a_mapping():
    assert ColumnMapping.of_texts(["loc=lon,lat", "id = event"]) == ColumnMapping.of(
        {"loc": ["lon", "lat"], "id": "event"}
    )
    with pytest.raises(SettingsError, match="loc=lon,lat"):
        ColumnMapping.of_texts(["loc"])


def records(path, settings, schema=None):
    schema = schema or Schema()
    return [one for chunk in open_records(path, schema, settings) for one in chunk.records]


def test_a_file_of_csv_is_read_by_its_header(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text(
        "id,Preis,lon,lat,sold,day,tags,spot,note\n"
        'e1,5,1.0,2.0,true,2026-01-01,"[""a"", ""b""]",POINT(1 2),"two\nlines"\n'
        "e2,,,,,,,,\n"
        "e3,x,1.0,2.0,true,2026-01-01,[],POINT(1 2),\n"
        "e4,1,2\n"
    )
    settings = ReadSettings(
        default_op="publish", columns=ColumnMapping.of({"loc": ["lon", "lat"], "price": "Preis"})
    )
    schema = Schema.declare(
        {"price": "number", "loc": "point", "sold": "boolean", "day": "timestamp", "tags": "set",
         "spot": "point", "note": "string"}
    )  # fmt: skip
    first, second, third, fourth = records(path, settings, schema)
    assert isinstance(first, Publish)
    assert first.event.attributes["loc"] == Point(1.0, 2.0)
    assert first.event.attributes["note"] == Constant(Kind.STRING, "two\nlines")
    assert second.event.attributes == {}
    assert isinstance(third, Rejected)
    assert isinstance(fourth, Rejected)
    assert fourth.line == 6


def test_kinds_are_those_that_all_cells_can_be_read_as(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("id;n;s;t;b;p\n1;5;a;2026-01-01;true;POINT(1 2)\n2;.5;5;2026-01-02;false;\n")
    first, second = (one.event for one in records(path, ReadSettings(default_op="publish")))
    kinds = [Kind.NUMBER, Kind.STRING, Kind.TIMESTAMP, Kind.BOOLEAN]
    assert [first.attributes[name].kind for name in "nstb"] == kinds
    assert first.attributes["p"] == Point(1.0, 2.0)
    assert second.attributes["s"] == Constant(Kind.STRING, "5")


def test_subscriptions_may_be_csv_too(tmp_path):
    path = tmp_path / "wishes.csv"
    path.write_text('id,expression,at\nana,"price < 5","[1.0, 2.0]"\nben,price <,\n')
    first, second = records(path, ReadSettings(default_op="subscribe"))
    assert isinstance(first, Subscribe)
    assert first.subscription.at == Point(1.0, 2.0)
    assert isinstance(second, Rejected)
