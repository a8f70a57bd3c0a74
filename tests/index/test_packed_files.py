"""Packed in a folder: what is read to open it, and what it had learned."""

import numpy as np
import pytest

from stentor import Engine
from stentor.encoding.columns import event_count
from stentor.encoding.ragged import take
from stentor.errors import FolderError
from stentor.index.catalog import structure_class
from stentor.index.layered import layered
from stentor.index.packed import index as packed_index
from stentor.index.packed.sample import MOST_SEEN
from stentor.index.storage.arrays import read_arrays, write_arrays
from stentor.model import Schema
from tests.support.workloads import encoded, encoded_events

SCHEMA = Schema.declare({"text": "string", "a": "number", "loc": "point"})
TEXTS = [
    f"has_all(text, 'w{n % 90}') AND a < {n % 50} OR a = {n}" if n % 2 else f"a BETWEEN 1 AND {n}"
    for n in range(900)
]


def events_with(count, word="w1"):
    return encoded_events(
        [{"id": f"e{n}", "text": f"{word} w{n % 90}", "a": n % 60} for n in range(count)], SCHEMA
    )


def equal(one, other):
    return all(np.array_equal(left, right) for left, right in zip(one, other, strict=True))


def saved(folder, texts=TEXTS, matched=0):
    columns = encoded(texts, SCHEMA)
    index = structure_class("packed pending=0").build(columns)
    if matched:
        index.match(events_with(matched))
    index.save(folder)
    return index, columns


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[::2]])
def test_opening_reads_no_row(tmp_path, texts, monkeypatch):
    index, columns = saved(tmp_path / "index", texts)
    scan = structure_class("scan").build(columns)

    def refuse(*_):
        raise AssertionError("all rows were read")

    monkeypatch.setattr(packed_index.PackedIndex, "_learn", refuse)
    opened = type(index).open(tmp_path / "index", columns)
    assert equal(opened.match(events_with(60)), scan.match(events_with(60)))
    opened.check()
    assert opened.stats()["segments"] == index.stats()["segments"]


def test_a_folder_of_an_earlier_version_is_opened_too(tmp_path):
    index, columns = saved(tmp_path / "index")
    arrays, meta = read_arrays(tmp_path / "index", kind="packed")
    del meta["is single"], meta["first end"]
    write_arrays(tmp_path / "older", arrays, kind="packed", meta=meta)
    opened = type(index).open(tmp_path / "older", columns)
    events = events_with(60)
    assert equal(opened.match(events), index.match(events))


def test_rows_that_end_do_so_in_an_opened_index(tmp_path):
    engine = Engine("packed", clock=None)
    engine.subscribe("short", "a = 1", until=10.0)
    engine.subscribe("long", "a = 1")
    engine.save(tmp_path / "engine")
    opened = Engine.open(tmp_path / "engine", clock=None, verify=False)
    assert opened.publish({"id": "e", "a": 1}, time=9.0) == ["long", "short"]
    assert opened.publish({"id": "f", "a": 1}, time=10.0) == ["long"]


def test_a_sample_of_events_survives_saving_opening_and_building_anew(tmp_path):
    index, columns = saved(tmp_path / "index", matched=700)
    sample = index.sample()
    assert 0 < event_count(sample) <= MOST_SEEN
    opened = type(index).open(tmp_path / "index", columns)
    assert equal(opened.sample(), sample)
    above = layered(type(index))(opened)
    above.insert(encoded(["a < 5"], SCHEMA))
    above.match(events_with(50, "later"))
    fresh, _ = above.merged()
    assert equal(take(fresh.sample(), np.arange(event_count(sample))), sample)
    learned = type(index).learned_in(tmp_path / "index", columns)
    assert equal(type(index).build(columns, learned=learned).sample(), sample)
    rows = np.arange(5)
    assert equal(type(index).build(columns, learned=index.learned(rows)).sample(), sample)


def test_a_sample_survives_in_an_engine_that_is_saved(tmp_path):
    engine = Engine("packed", clock=None)
    engine.subscribe("s", "a = 1")
    for number in range(70):
        engine.publish({"id": f"e{number}", "a": number})
    for verify in (False, True):
        engine.save(tmp_path / f"engine{verify}")
        engine = Engine.open(tmp_path / f"engine{verify}", clock=None, verify=verify)
        assert event_count(engine._state.index.sample()) == 70


def test_a_sample_that_cannot_be_right_is_refused(tmp_path):
    index, columns = saved(tmp_path / "index", matched=20)
    arrays, meta = read_arrays(tmp_path / "index", kind="packed")
    arrays["sample.value_start"] = arrays["sample.value_start"] + 7
    write_arrays(tmp_path / "other", arrays, kind="packed", meta=meta)
    with pytest.raises(FolderError, match="value_start"):
        type(index).open(tmp_path / "other", columns)
    with pytest.raises(FolderError, match="value_start"):
        type(index).learned_in(tmp_path / "other", columns)
