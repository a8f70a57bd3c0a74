# ruff: noqa: E501
"""Lines that are read together mean what each means alone; what is not surely fine is left over."""

import json

import pytest

from stentor.errors import StentorError
from stentor.model import Schema
from stentor.model.values.members import set_text
from stentor.wire.events import event_from_dict
from stentor.wire.json_columns import PlainLines
from stentor.wire.limits import RecordLimits
from tests.odd_cells import CELLS

KINDS = {
    "n": "number",
    "s": "string",
    "b": "boolean",
    "t": "timestamp",
    "p": "point",
    "m": "set",
}
SCHEMA = Schema.declare(KINDS)
NAMES = {kind: name for name, kind in KINDS.items()}
LIMITS = RecordLimits()


def lines(*, needs_op=False, limits=LIMITS):
    return PlainLines(SCHEMA.frozen(), limits, needs_op=needs_op)


def test_plain_lines_are_read_together():
    given = [
        b'{"id":"a","n":1,"s":"x:y","b":true,"t":"2026-01-01T12:00Z","p":[1,2],"until":5}',
        b' {"id":"b","n":-0.0,"op":"publish","other":[1,[2]],"t":null,"seq":7}',
        b'{"id":"c","s":"\\u00e9","time":"1970-01-02"}',
    ]
    found = lines().read(given)
    assert found.rows.tolist() == [0, 1, 2]
    assert found.ids == ["a", "b", "c"]
    assert found.until == [5_000_000, None, None]
    assert found.time == [None, None, 86_400_000_000]
    assert found.attributes["n"].to_pylist()[:2] == [
        {"low": 1.0, "high": 1.0},
        {"low": 0.0, "high": 0.0},
    ]
    assert str(found.attributes["n"].field("low")[1]) == "0.0"
    assert found.attributes["s"].to_pylist() == ["x:y", None, "é"]
    assert found.attributes["p"].to_pylist() == [{"x": 1.0, "y": 2.0}, None, None]
    assert found.attributes["b"].to_pylist() == [True, None, None]


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":"a","n":1,"n":2}',
        b'{"id":"a","s":"\\u003a","n":1,"n":2}',
        b'{"id":"a","s":":","s":"x"}',
        b'{"id":"a","n":{"low":1,"high":2}}',
        b'{"id":"a","x":' + b"[" * 65 + b"]" * 65 + b"}",
        b'{"id":"a","attributes":{}}',
        b'{"id":"a","weights":{}}',
        b'{"id":"a","type":"Feature"}',
        b'{"id":"a","op":"move"}',
        b'{"id":"a","seq":-1}',
        b'{"id":"a","until":"soon"}',
        b'{"id":"a","n":9007199254740993}',
        b'{"id":"a","n":true}',
        b'{"id":"a","p":[200,0]}',
        b'{"id":"a","p":[true,0]}',
        b'{"id":7}', b'{"id":""}', b'{"n":1}', b'{"id":"' + b"x" * 513 + b'"}',
        b'{"id":"a","":1}', b'[{"id":"a"}]', b"null", b"", b"\xff", b'{"id":"a"', b'{"id":"a","n":1e400}',
    ],
)  # fmt: skip
def test_what_is_not_surely_a_plain_event_is_left_over(line):
    assert lines().read([line, b'{"id":"z","n":1}']).rows.tolist() == [1]


def test_an_op_is_said_where_records_of_all_kinds_come():
    given = [b'{"id":"a","op":"publish"}', b'{"id":"b"}', b'{"id":"c","op":null}']
    assert lines(needs_op=True).read(given).rows.tolist() == [0]


def test_odd_cells_mean_what_they_mean_alone_or_are_left_over():
    taken = 0
    for cell in CELLS:
        name = NAMES[cell.kind]
        raw = {"id": "e", name: cell.raw}
        try:
            line = json.dumps(raw, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError):
            continue
        found = lines().read([line])
        if not len(found.rows):
            continue
        taken += 1
        try:
            value = event_from_dict(raw, SCHEMA.frozen()).attributes.get(name)
        except StentorError as error:
            pytest.fail(f"{cell} is read together with others, but alone: {error}")
        own = found.attributes[name]
        if value is None:
            assert own.null_count == 1, cell
        elif cell.kind == "timestamp":
            ends = [own.field(end).cast("int64")[0].as_py() for end in ("low", "high")]
            assert ends == [value.value, value.value], cell
        elif cell.kind == "number":
            assert own.to_pylist() == [{"low": value.value, "high": value.value}], cell
        elif cell.kind == "set":
            assert own.to_pylist() == [{"set": set_text(value)}], cell
        elif cell.kind == "point":
            assert own.to_pylist() == [value._asdict()], cell
        else:
            assert own.to_pylist() == [value.value], cell
    assert taken > 30
