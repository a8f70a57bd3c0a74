"""A line means the same in a stream as in the engine, or is refused for the same reason."""

# ruff: noqa: E501

import json
import random
from itertools import pairwise

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.encoding.columns import event_count
from stentor.encoding.events import TimedEvent, encode_events
from stentor.language.parser import parse
from stentor.model import Schema
from stentor.model.record import Move, Publish, Subscribe, Unsubscribe
from stentor.model.values.time import BEGINNING, NEVER
from stentor.pipeline.sources import Columns
from stentor.pipeline.sources.text_records import TextFormat, TextReader
from stentor.pipeline.stream.read_records import PartitionReader
from stentor.pipeline.stream.settings import FrameSettings
from stentor.wire.csv import Dialect
from stentor.wire.files import Line, records_of_line, stripped
from stentor.wire.formats import ReadSettings
from stentor.wire.limits import RecordLimits
from stentor.wire.rejected import Rejected

KINDS = {
    "price": "number",
    "brand": "string",
    "new": "boolean",
    "day": "timestamp",
    "loc": "point",
    "size": "number",
    "ce_type": "string",
}
SCHEMA = Schema.declare(KINDS)
LIMITS = RecordLimits(string_bytes=200, record_bytes=1_000, attributes=20)
NUMBER = pa.float64()
STORED = pa.struct(
    [
        ("price", NUMBER),
        ("brand", pa.string()),
        ("new", pa.bool_()),
        ("day", pa.timestamp("us", tz="UTC")),
        ("loc", pa.struct([("x", NUMBER), ("y", NUMBER)])),
        ("size", pa.struct([("low", NUMBER), ("high", NUMBER)])),
        ("ce_type", pa.string()),
    ]
)
DEFAULT_OP = {"events": "publish", "changes": "subscribe", "records": None}
VALUES = {
    "id": ["e1", 7, -7, "7", "ß", None, 1.5, True, "", ["x"], {"x": 1}, 2**70, "x" * 600, "a:b"],
    "op": [None, None, None, "publish", "subscribe", "move", "unsubscribe", "delete", 5, ["move"]],
    "until": [None, "2026-01-01", "2026-01-01T12:00+01:00", 5, 2.5, "5", "soon", True, 1e15, -1],
    "time": [None, "2026-01-01", 5, "noon", False, [1]],
    "seq": [None, 5, -1, 2**63, 1.0, "5"],
    "weights": [None, {}, {"price": 2}, {"price": "2"}, {"price": None}, {"price": -1}, [1], {"": 1}],
    "expression": [None, "price < 3", "price <", "brand = 'x' OR", "colour = 'x'", 5, "TRUE", ""],
    "at": [None, [1, 2], {"lon": 1, "lat": 2}, [1], [500, 0], "x", {"type": "Point", "coordinates": [1, 2]}],
    "price": [1, 2.5, -0.0, 1e300, 2**53, 2**53 + 1, -(2**63), 10**40, "1", True, None, [1], {"low": 1, "high": 2}],
    "brand": ["x", "", "5", "true", "{", 'ta"g', "a\\b", 5, True, None, {"x": 1}, ["a"], "é", "\ud800", "x" * 300],
    "new": [True, False, None, "true", 1, 0],
    "day": ["2026-01-01", "2026-01-01 12:00:00Z", 5, "x", None, {"low": "2026-01-01", "high": "2027-01-01"}],
    "loc": [
        [1, 2], [1.5, -2.5], {"type": "Point", "coordinates": [1, 2]}, {"lon": 1, "lat": 2},
        {"type": "Point", "coordinates": [1, 2, 3]}, [1], [1, 2, 3], ["1", "2"], "x", None, 5,
        [500, 0], {"x": 1, "y": 2}, {"x": 1},
    ],
    "size": [5, {"low": 1, "high": 2}, {"low": 2, "high": 1}, {"low": 1}, "5", None, [1, 2]],
    "other": [1, "x", {"price": 1}, [1, 2], None],
    "untill": [5, None, "2026-01-01"],
    "type": ["Feature", "FeatureCollection", "offer", None],
    "geometry": [None, {"type": "Point", "coordinates": [1, 2]}, {"type": "LineString"}, "x"],
    "properties": [{}, {"price": 3, "id": "inner"}, {"price": "x"}, None, 5],
    "features": [[], [{"type": "Feature", "id": "f", "properties": {"price": 1}}], 5],
    "specversion": ["1.0", "0.3", 1],
    "source": ["/shop", "", 5],
    "data": [{"price": 2}, None, 5, {"price": {"low": 1, "high": 1}}],
    "expirytime": ["2030-01-01", "x"],
    "sequence": ["7", 7, 7.5],
}  # fmt: skip
PLAIN = [
    name for name in VALUES if name in {*KINDS, "id", "op", "until", "time", "weights", "other"}
]
ODD = [
    "[]", "5", "null", '"x"', "{", "nonsense", '{"id":"a"} x', '{"id":"a"}{"id":"b"}', "{}", "[1]",
    "{'id':'a'}", '{"id":"a","price":NaN}', '{"id":"a","price":01}', '{"id":"a",}', "[[]]",
    '\ufeff{"id":"bom"}', '  {"id":"space"}\t', '{"id" : "a", "brand" :  "5"}', "\x1e{\"id\":\"rs\"}",
    '{"id":"a","price":1e400}', '{"id":"a","price":-1e400}', '{"id":"a","price":1,"price":2}',
    '{"id":"a","brand":12,"attributes":{"brand":"x"}}', '{"id":"a","attributes":{"brand":12}}',
    '{"id":"a","attributes":{"a":1},"untill":5}', '{"id":"a","attributes":5}', '{"id":"a","attributes":null}',
    '{"op":"subscribe","id":"a","expression":"TRUE","untill":5}', '{"id":"a","i\\u0064":"b"}',
    '{"id":"a","brand":"\\u003a"}', '{"id":"a","brand":"\\ud83d\\ude00"}', '{"id":"a","brand":"\\ud83d"}',
    "[" * 80 + "]" * 80, '{"id":"a","other":' + "[" * 70 + "]" * 70 + "}", '{"id":"a"}\r{"id":"b"}',
    '{"type":"Feature","id":"e2","geometry":{"type":"Point","coordinates":[151.2,-33.87]},"properties":{"brand":"Jazz"}}',
    '{"type":"FeatureCollection","features":[{"type":"Feature","id":1,"geometry":null,"properties":{}},5]}',
    '{"specversion":"1.0","id":"3","source":"/shop","type":"offer","data":{"price":350}}',
    '{"specversion":"1.0","id":"3","source":"/shop","type":"offer","expirytime":"2030-01-01","data":[1]}',
    '[{"id":"a","price":1},{"id":"b","price":"x"},{"op":"move","id":"c","at":[1,2]}]',
    '{"id":"a","brand":"' + "y" * 990 + '"}', '{"id":"a",' + ",".join(f'"a{n}":1' for n in range(30)) + "}",
    '{"id":"a","price":1.7976931348623157e308}', '{"id":"a","price":4.9e-324}', '{"id":true}', "\ufeff", "\ufeff\ufeff{}",
    "\x0b", " \x0c ", "\x0b\x0c", "\x0b{\"id\":\"a\"}", "\x1e", "\t", "\x1c", "\u00a0",
]  # fmt: skip
BROKEN = [
    b'{"id":"caf\xe9"}',
    b'{"id":"b","brand":"\xff"}',
    b"\xfe",
    b'{"id":"c","x\xe9":1}',
    b"\xef\xbb",
    b"\x00",
]


def drawn_lines(draw, count):
    """Records as JSON, right and wrong in every field."""
    lines = []
    for _ in range(count):
        names = PLAIN if draw.random() < 0.6 else list(VALUES)
        chosen = {name: draw.choice(VALUES[name][:2]) for name in names if draw.random() < 0.4}
        chosen.setdefault("id", "e1")
        for _ in range(draw.choice([0, 0, 1, 2])):
            wrong = draw.choice(list(VALUES))
            chosen[wrong] = draw.choice(VALUES[wrong])
        if draw.random() < 0.2:
            inner = {name: chosen.pop(name) for name in KINDS if name in chosen}
            chosen["attributes"] = inner
        separators = draw.choice([(",", ":"), (", ", ": "), (" , ", " : ")])
        line = json.dumps(chosen, separators=separators)
        lines.append(line if draw.random() < 0.9 else f"[{line},{draw.choice(ODD)}]")
    return lines


def as_lines(lines):
    return [
        one if isinstance(one, bytes) else one.encode("utf-8", "surrogatepass") for one in lines
    ]


def of_the_engine(lines, kind):
    """What the engine's own reader makes of each line: records and reasons, in two lists."""
    settings = ReadSettings(default_op=DEFAULT_OP[kind], limits=LIMITS)
    records, reasons = [], []
    for number, data in enumerate(map(stripped, lines)):
        line = Line(1, 0, 0, data, len(data) <= LIMITS.record_bytes)
        for one in records_of_line(line, SCHEMA.frozen(), settings) if data else ():
            if isinstance(one, Rejected):
                reasons.append((number, one.reason, one.raw))
            elif is_of(kind, one):
                records.append((number, one))
            else:
                reasons.append((number, "op", None))
    return records, reasons


def is_of(kind, record):
    return kind == "records" or (kind == "events") == isinstance(record, Publish)


def of_the_stream(lines, texts, folder, frame=0):
    """The same, as a worker reads them."""
    schema = msgspec.json.encode(SCHEMA.to_dict())
    reader = PartitionReader(schema, LIMITS, BEGINNING, [FrameSettings(texts=texts)])
    count = len(lines)
    table = pa.table(
        {
            "attributes": pa.nulls(count, STORED),
            "source": pa.array(["f"] * count, pa.string()),
            "offset": pa.array(range(count), pa.int64()),
            "problem": pa.nulls(count, pa.string()),
            "raw": pa.array(lines, pa.binary()).view(pa.string()),
            "frame": pa.array([frame] * count, pa.int32()),
        }
    )
    events, changes = [], []
    for good in reader.usable(table):
        is_event = pc.equal(good["op"], "publish")
        columns, rows = reader.events(good.filter(is_event))
        assert rows["attributes"].type == STORED
        events.append((columns, rows))
        part, rows = reader.changes(good.filter(pc.invert(is_event)))
        changes.append((part, rows))
    (folder / "tables" / "rejected").mkdir(parents=True, exist_ok=True)
    files = reader.rejections.write(folder, 0, 0)
    written = [
        row
        for file in files
        for row in pq.read_table(folder / "tables" / "rejected" / file.name).to_pylist()
    ]
    reasons = [(row["offset"], row["reason"], row["record"]) for row in written]
    return events, changes, reasons


def meaning(columns):
    """What *columns* of events hold, wherever their strings stand."""
    hashes = [columns.string_hash[row].item() if row >= 0 else None for row in columns.string]
    plain = ("value_start", "attribute", "low", "high", "weight_start", "weight_attribute")
    terms = [
        sorted(columns.term_hash[start:stop].tolist())
        for start, stop in pairwise(columns.term_start)
    ]
    return [getattr(columns, name).tolist() for name in (*plain, "weight", "until")], hashes, terms


def check_alike(lines, kind, folder):
    lines = as_lines(lines)
    records, reasons = of_the_engine(lines, kind)
    texts = TextFormat(kind, Columns(time="time"))
    events, changes, found_reasons = of_the_stream(lines, texts, folder)
    published = [(n, one) for n, one in records if isinstance(one, Publish)]
    encoded = encode_events([TimedEvent(one.event) for _, one in published], SCHEMA)
    assert sum(event_count(columns) for columns, _ in events) == len(published)
    for columns, rows in events:
        assert rows["offset"].to_pylist() == [n for n, _ in published]
        assert rows["id"].to_pylist() == [one.event.id for _, one in published]
        assert meaning(columns) == meaning(encoded)
        times = [BEGINNING if one.time is None else one.time for _, one in published]
        assert columns.time.tolist() == times
    changed = [(n, one) for n, one in records if not isinstance(one, Publish)]
    assert [n for _, rows in changes for n in rows["offset"].to_pylist()] == [n for n, _ in changed]
    for part, _ in changes:
        assert part.ids.arrow.to_pylist() == [id_of(one) for _, one in changed]
        for (_, one), text, until in zip(
            changed, part.texts.arrow.to_pylist(), part.until, strict=True
        ):
            if isinstance(one, Subscribe):
                assert parse(text, schema=SCHEMA) == one.subscription.expression
                assert until == (
                    NEVER if one.subscription.until is None else one.subscription.until
                )
    # What a source of one kind may hold is said in words of its own.
    other = {n for n, reason, _ in found_reasons if kind != "records" and "op: expected" in reason}
    told, wanted = (
        sorted((one for one in every if one[0] not in other), key=str)
        for every in (found_reasons, reasons)
    )
    assert told == wanted
    assert all(any(n == line for line, _, _ in reasons) for n in other)


def id_of(record):
    match record:
        case Subscribe(subscription):
            return subscription.id
        case Unsubscribe(id) | Move(id):
            return id


@pytest.mark.parametrize("kind", ["events", "changes", "records"])
def test_odd_lines_mean_the_same_or_are_refused_alike(tmp_path, kind):
    check_alike([*ODD, *BROKEN, "", " ", *drawn_lines(random.Random(11), 1500)], kind, tmp_path)


CHANGE = ("op", "until", "time", "seq", "expression", "at", "untill", "weights", "price")


def test_changes_are_refused_alike_and_what_is_shown_of_them_is_the_record(tmp_path):
    draw = random.Random(12)
    lines = []
    for number in range(600):
        chosen = {"op": draw.choice(["subscribe", "move", "unsubscribe"]), "id": f"s{number}"}
        if chosen["op"] == "subscribe":
            chosen["expression"] = draw.choice(
                ["price < 3", "price <", "colour = 'x'", "id = 'x'", "weight(price < 3, 1e308)"]
            )
        if chosen["op"] != "unsubscribe" and draw.random() < 0.7:
            chosen["at"] = [draw.randrange(90), draw.randrange(90)]
        if draw.random() < 0.3:
            name = draw.choice(CHANGE)
            chosen[name] = draw.choice(VALUES[name])
        lines.append(json.dumps(chosen))
    lines = as_lines(lines)
    records, reasons = of_the_engine(lines, "records")
    _, changes, told = of_the_stream(lines, TextFormat("records", Columns(time="time")), tmp_path)
    assert len(records) > 100
    assert sum(len(part.ids.arrow) for part, _ in changes) == len(
        [one for _, one in records if not isinstance(one, Publish)]
    )
    assert sorted(one[:2] for one in told) == sorted(one[:2] for one in reasons)
    for number, reason, shown in told:  # sent again as it is shown, it fails for the same reason
        _, again = of_the_engine(as_lines([shown]), "records")
        assert [one[1] for one in again] == [reason], (number, shown)


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        (r"C:\temp,b", [r"C:\temp", "b"]),
        (r'"a\"b","c\\"', ['a"b', "c\\"]),
        (r'"a\nb",c\\d', [r"a\nb", r"c\\d"]),
        (r'"a,b\,c",', [r"a,b\,c", ""]),
        ('\\,"x\ny\\"z"', ["\\", 'x\ny"z']),
    ],
)
def test_an_escape_of_csv_means_something_before_a_quote_only(line, cells):
    assert Dialect(escape="\\").cells(line) == cells


@pytest.mark.parametrize(
    ("columns", "cells"),
    [
        ({"order": "seq"}, {"seq": "7"}),
        ({"order": "seq", "time": "time"}, {"seq": "7", "time": "1700000000.5"}),
        ({"order": "time", "time": "time"}, {"time": "1700000000"}),
        ({"order": "sent", "time": "sent"}, {"sent": "2026-01-01T00:00:00Z"}),
        ({"order": "n", "until": "ends"}, {"n": "-3", "ends": "4000000000"}),
    ],
)
def test_a_line_of_csv_has_its_place_and_its_time_wherever_they_stand(columns, cells):
    def read(dialect, *lines):
        texts = TextFormat("records", Columns(**columns), dialect)
        reader, told = TextReader(texts, SCHEMA, LIMITS), []
        table, _ = reader.read(
            pa.array([one.encode() for one in lines]),
            [None] * len(lines),
            lambda *bad: told.append(bad),
        )
        assert told == []
        return table.to_pylist()

    plain = {"op": "publish", "id": "e", "price": "5", **cells}
    numbers = {
        name: json.loads(cell) if cell[-1].isdigit() else cell
        for name, cell in plain.items()
        if name != "id"
    }
    (found,) = read(Dialect(), ",".join(plain), ",".join(plain.values()))
    (expected,) = read(None, json.dumps(numbers | {"op": "publish", "id": "e"}))
    assert found == expected
    assert found["order"] is not None


TEXTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*VALUES, "attributes"]), inner, max_size=5)
    ),
    max_leaves=12,
)


@given(st.lists(TEXTS.map(json.dumps) | st.binary(max_size=20), max_size=8))
def test_any_lines_mean_the_same_or_are_refused_alike(tmp_path_factory, lines):
    lines = [one if isinstance(one, str) else one.replace(b"\n", b" ") for one in lines]
    check_alike(lines, "records", tmp_path_factory.mktemp("lines"))
