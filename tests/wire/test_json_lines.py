"""JSON lines: strict, exact, and never stopped by a bad line."""

import gzip
import io
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.errors import RecordError, SettingsError, StentorError
from stentor.model import Constant, Event, Kind, Point, Schema
from stentor.model.record import Publish, Unsubscribe
from stentor.wire.files import read_records, read_with_locations, write_records
from stentor.wire.formats import ReadSettings
from stentor.wire.json_text import from_json, to_json
from stentor.wire.limits import RecordLimits
from stentor.wire.rejected import MOST_RAW, Rejected


def read(data, **settings):
    stream = io.BytesIO(data if isinstance(data, bytes) else data.encode())
    return list(read_records(stream, Schema(), ReadSettings(default_op="publish", **settings)))


def reason(data, **settings):
    [found] = read(data, **settings)
    assert isinstance(found, Rejected)
    return found.reason


def number(data):
    [found] = read(data)
    return found.event.attributes["x"].value


def test_each_line_is_a_record():
    found = read('{"id": "a", "x": 1}\n{"id": "b", "op": "unsubscribe", "time": 1}\n')
    assert found == [
        Publish(Event("a", {"x": Constant(Kind.NUMBER, 1.0)})),
        Unsubscribe("b", 1_000_000),
    ]


def test_a_bad_line_is_told_with_its_place_and_stops_nothing():
    good, bad, last = '{"id": "a"}\r\n', '{"id": \n', '{"id": "b"}'
    first, rejected, second = read(good + "\n" + bad + last)
    assert (first.event.id, second.event.id) == ("a", "b")
    assert rejected == Rejected(
        "not JSON: Input data was truncated", '{"id":', line=3, offset=len(good) + 1
    )


def test_blank_lines_a_byte_order_mark_and_record_separators_are_skipped():
    found = read(b'\xef\xbb\xbf{"id": "a"}\r\n\r\n   \n\x1e{"id": "b"}\n\n')
    assert [one.event.id for one in found] == ["a", "b"]


def test_an_empty_file_has_no_records():
    assert read("") == read("\n\n") == []


def test_bytes_that_are_no_utf8_reject_their_line_only():
    rejected, good = read(b'{"id": "a", "x": "\xff"}\n{"id": "b"}\n')
    assert "not UTF-8" in rejected.reason
    assert rejected.raw == '{"id": "a", "x": "�"}'
    assert good.event.id == "b"


def test_compressed_bytes_are_rejected_not_crashed_on():
    assert all(isinstance(one, Rejected) for one in read(gzip.compress(b'{"id": "a"}')))


def test_a_line_above_the_limit_is_rejected_and_the_next_one_read():
    limits = RecordLimits(record_bytes=100)
    long = json.dumps({"id": "a", "x": "y" * 5_000_000})
    rejected, good = read(long + '\n{"id": "b"}', limits=limits)
    assert "longer than 100 bytes" in rejected.reason
    assert len(rejected.raw) == 101
    assert (rejected.line, rejected.offset) == (1, 0)
    assert good.event.id == "b"
    at_limit = '{"id": "a"}'.ljust(100)
    assert read(at_limit + "\n" + at_limit, limits=limits) == read('{"id": "a"}\n{"id": "a"}')


def test_the_raw_text_of_a_rejected_line_is_cut():
    [rejected] = read('{"x": "' + "é" * 10_000)
    assert len(rejected.raw) == MOST_RAW + 1


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "01", "1.", "+1", "0x10"])
def test_what_json_does_not_have_is_rejected(literal):
    assert "not JSON" in reason(f'{{"id": "a", "x": {literal}}}')


def test_a_number_beyond_the_doubles_is_rejected():
    assert "out of range" in reason('{"id": "a", "x": 1e400}')


def test_integers_stay_exact_until_a_double_has_to_hold_them():
    assert "9007199254740993" in reason(f'{{"id": "a", "x": {2**53 + 1}}}')
    assert "18446744073709551617" in reason(f'{{"id": "a", "x": {2**64 + 1}}}')
    assert number(f'{{"id": "a", "x": {2**64}}}') == 2.0**64
    assert isinstance(read(f'{{"id": "a", "x": {"9" * 5000}}}')[0], Rejected)
    assert isinstance(read(f'{{"id": "a", "until": {"9" * 400}}}')[0], Rejected)


def test_minus_zero_is_zero():
    assert math.copysign(1.0, number('{"id": "a", "x": -0.0}')) == 1.0


def test_an_empty_string_is_a_string():
    assert number('{"id": "a", "x": ""}') == ""


def test_a_key_that_stands_twice_is_rejected():
    assert "'x' stands twice" in reason('{"id": "a", "x": 1, "x": 2}')
    assert "'low' stands twice" in reason('{"id": "a", "x": {"low": 1, "low": 0, "high": 2}}')
    assert "twice" in reason('{"id": "a", "x": "::", "y\\u003a": 1, "y:": 2}')


def test_colons_in_strings_are_no_second_keys():
    raw = {"id": "a:b", "x:y": "12:30", "z": ":", "loc": {"type": "Point", "coordinates": [1, 2]}}
    [found] = read(json.dumps(raw))
    assert found.event.attributes["loc"] == Point(1.0, 2.0)
    [found] = read('{"id": "a", "x": "\\u003a:"}')
    assert found.event.attributes["x"].value == "::"


def test_half_of_a_surrogate_pair_is_rejected():
    assert isinstance(read('{"id": "a", "x": "\\ud800"}')[0], Rejected)


def test_deep_nests_are_rejected():
    for text in (
        "[" * 100_000,
        '{"a":' * 50_000,
        '{"id": "a", "x": ' + "[" * 500 + "]" * 500 + "}",
    ):
        assert isinstance(read(text)[0], Rejected)


def test_an_array_in_a_line_is_a_batch():
    first, rejected, second = read('[{"id": "a"}, {"x": 1}, {"id": "b"}]')
    assert (first.event.id, second.event.id) == ("a", "b")
    assert (rejected.raw, rejected.line) == ('{"x":1}', 1)


def test_what_is_no_object_is_rejected():
    for text in ("5", '"a"', "null", "true", "[[]]", "[5]"):
        assert "is an object" in reason(text)


def test_a_text_stream_is_refused_with_advice():
    with pytest.raises(SettingsError, match="rb"):
        list(read_records(io.StringIO("{}"), Schema()))


def test_settings_that_do_not_exist_are_refused():
    with pytest.raises(SettingsError, match="no format 'xml'"):
        ReadSettings(format="xml")
    with pytest.raises(SettingsError, match="no op 'drop'"):
        ReadSettings(default_op="drop")


def test_the_bytes_read_are_told_for_a_progress_display(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"id": "a"}\n\n{"id": "b"}\n')
    settings = ReadSettings(default_op="publish")
    offsets = [offset for _, _, offset in read_with_locations(path, Schema(), settings)]
    assert offsets == [12, 25]
    assert offsets[-1] == path.stat().st_size


def test_records_are_read_as_soon_as_their_line_is_there():
    lines = [b'{"id": "a"}\n', b'{"id": "b"}\n']

    class Pipe(io.RawIOBase):
        def readline(self, _=-1):
            return lines.pop(0) if lines else b""

    found = read_records(Pipe(), Schema(), ReadSettings(default_op="publish"))
    assert next(found).event.id == "a"
    assert len(lines) == 1


def test_written_records_are_read_back():
    schema = Schema()
    records = [Publish(Event("a\n", {"x": Constant(Kind.STRING, "é\n")})), Unsubscribe("b", 5)]
    stream = io.BytesIO()
    assert write_records(records, stream) == 2
    stream.seek(0)
    assert list(read_records(stream, schema)) == records


def test_an_infinity_cannot_be_written_as_json():
    event = Event("a", {"x": Constant(Kind.NUMBER, math.inf)})
    with pytest.raises(RecordError, match="infinities have no form in JSON"):
        write_records([Publish(event)], io.BytesIO())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(-1e300, 1e300)
    | st.text(st.sampled_from('ab:"\\é{}'), max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(st.sampled_from('ab:"'), max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(json_values)
def test_json_text_comes_back(value):
    assert from_json(to_json(value).encode()) == value
    assert from_json(json.dumps(value, indent=1).encode()) == value


@given(st.binary(max_size=40) | st.text('{}[]":,id01e-\\u\n ', max_size=40).map(str.encode))
def test_hostile_bytes_give_records_or_rejections(data):
    for found in read(data):
        assert isinstance(found, (Rejected, Publish))


@given(st.dictionaries(st.text("ab", max_size=1), st.integers(0, 3)), st.data())
def test_repeated_keys_are_found_wherever_they_are(pairs, data):
    members = [f'"{key}": {value}' for key, value in pairs.items()]
    repeated = data.draw(st.lists(st.sampled_from(members), max_size=2)) if members else []
    text = "[" + "{" + ", ".join(members + repeated) + "}" + "]"
    if repeated:
        with pytest.raises(StentorError, match="twice"):
            from_json(text.encode())
    else:
        assert from_json(text.encode()) == [pairs]
