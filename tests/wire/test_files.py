"""Files of records, whatever form they have."""

import json

import pyarrow as pa
import pytest

from stentor.errors import RecordError
from stentor.model import Schema
from stentor.wire.files import open_records, open_tables, read_table, write_table
from stentor.wire.formats import ReadSettings
from stentor.wire.rejected import Rejected

EVENTS = ReadSettings(default_op="publish")


def ids(chunks):
    return [
        "bad" if isinstance(one, Rejected) else one.event.id for chunk in chunks for one in chunk[0]
    ]


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_json_lines_are_read_in_chunks_with_the_bytes_so_far(tmp_path):
    path = write(tmp_path / "events.jsonl", '{"id": "a"}\n{"id": \n{"id": "c"}\n')
    chunks = list(open_records(path, Schema(), EVENTS, chunk_records=2))
    assert ids(chunks) == ["a", "bad", "c"]
    assert [len(chunk.records) for chunk in chunks] == [2, 1]
    assert chunks[-1].bytes_read == path.stat().st_size


def test_parquet_is_known_by_what_it_begins_with(tmp_path):
    path = tmp_path / "events.data"
    write_table(pa.table({"id": [*"abcd", ""], "x": range(5)}), path)
    chunks = list(open_records(path, Schema(), EVENTS, chunk_records=2))
    assert ids(chunks) == [*"abcd", "bad"]
    assert chunks[2].records[0].row == 4
    assert [chunk.bytes_read for chunk in chunks] == sorted(chunk.bytes_read for chunk in chunks)
    assert chunks[-1].bytes_read == path.stat().st_size
    assert read_table(path).num_rows == 5
    assert [chunk.table.num_rows for chunk in open_tables(path, chunk_rows=2)] == [2, 2, 1]


def test_a_pretty_printed_collection_is_read_as_one_document(tmp_path):
    features = [{"type": "Feature", "id": id, "properties": {}, "geometry": None} for id in (1, 2)]
    collection = {"type": "FeatureCollection", "features": [*features, {"type": "Feature"}]}
    path = write(tmp_path / "places.geojson", "\ufeff" + json.dumps(collection, indent=2))
    [chunk] = open_records(path, Schema())
    assert ids([chunk]) == ["1", "2", "bad"]
    assert chunk.records[2].row == 2
    assert chunk.bytes_read == path.stat().st_size


def test_an_array_is_read_as_one_document(tmp_path):
    path = write(tmp_path / "events.json", '[\n{"id": "a"},\n{"id": "b"}\n]\n')
    assert ids(open_records(path, Schema(), EVENTS)) == ["a", "b"]


def test_json_lines_may_be_called_json(tmp_path):
    path = write(tmp_path / "events.json", '{"id": "a"}\n{"id": "b"}\nbad\n')
    assert ids(open_records(path, Schema(), EVENTS)) == ["a", "b", "bad"]


def test_empty_files_have_no_records(tmp_path):
    for name in ("a.jsonl", "a.json"):
        assert list(open_records(write(tmp_path / name, ""), Schema())) == []
    write_table(pa.table({"id": pa.array([], pa.string())}), tmp_path / "a.parquet")
    assert ids(open_records(tmp_path / "a.parquet", Schema())) == []


def test_a_broken_parquet_file_is_a_clear_error(tmp_path):
    path = tmp_path / "events.parquet"
    write_table(pa.table({"id": list("abc")}), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RecordError, match="no Parquet file that can be read"):
        list(open_records(path, Schema(), EVENTS))
    with pytest.raises(RecordError, match="no Parquet file that can be read"):
        read_table(path)
    text = write(tmp_path / "text.parquet", "hello")
    with pytest.raises(RecordError, match="no Parquet file that can be read"):
        list(open_records(text, Schema(), EVENTS))


def test_a_file_that_is_not_there_is_the_usual_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(open_records(tmp_path / "nowhere.jsonl", Schema()))
