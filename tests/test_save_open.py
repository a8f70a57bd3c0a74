"""An engine in a folder: opened, it goes on as if it had never stopped."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stentor
from stentor.errors import FolderError, SettingsError, StentorError
from stentor.index.catalog import names
from stentor.model import Changes
from stentor.testing import grid, strategies
from stentor.testing.oracle import Oracle


@pytest.fixture(scope="module", autouse=True)
def _not_waiting_for_the_disk():
    """Nothing here cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


every_index = pytest.mark.parametrize("index", names())


def comparable(answers):
    return [type(one) if isinstance(one, StentorError) else one for one in answers]


def small_engine():
    """Two subscriptions and a live event, at 100 s."""
    engine = stentor.Engine(clock=lambda: 100.0)
    engine.subscribe("ana", "price < 300 AND ST_DWithin(loc, here(), 1000)", at=(0, 0))
    engine.subscribe("bo", "has_any(text, 'ipad') OR price > 1000", until=200)
    engine.publish({"id": "e", "price": 1, "loc": [0, 0], "text": "an iPad"}, until=150)
    return engine


def reopened(engine, folder, **settings):
    engine.save(folder)
    return stentor.Engine.open(folder, clock=lambda: 100.0, **settings)


@every_index
@given(history=strategies.histories(max_size=20), event=strategies.events(), data=st.data())
def test_stopping_and_going_on_is_never_having_stopped(index, history, event, data):
    engine = stentor.Engine(index, schema=grid.schema(), clock=None)
    oracle = Oracle(schema=grid.schema())
    cuts = sorted(data.draw(st.sets(st.integers(0, len(history)), min_size=1, max_size=2)))
    with TemporaryDirectory() as folder:
        for start, stop in pairwise([0, *cuts, len(history)]):
            part = history[start:stop]
            assert comparable(engine.step(part)) == comparable(oracle.answers(part))
            engine.save(Path(folder, "saved"))
            engine = stentor.Engine.open(Path(folder, "saved"), clock=None)
            engine._state.index.check()
            assert list(engine) == list(oracle)
            assert engine.top(event, k=2) == oracle.top(event, 2)


def test_what_was_saved_is_all_there(tmp_path):
    engine = small_engine()
    again = reopened(engine, tmp_path / "saved")
    assert list(again) == list(engine) == ["ana", "bo"]
    assert [again.get(id) for id in again] == [engine.get(id) for id in engine]
    assert again.stats()["records"] == engine.stats()["records"] == 3
    assert again.stats()["live events"] == 1
    assert again.subscribe("cy", "price = 1") == Changes(added=["e"])
    assert again.move("ana", (1, 1)) == Changes(removed=["e"])
    assert again.publish({"id": "f", "text": "iPad"}) == ["bo"]


def test_a_learned_schema_is_remembered(tmp_path):
    again = reopened(small_engine(), tmp_path / "saved")
    with pytest.raises(StentorError, match="but a number in subscription 'ana'"):
        again.subscribe("x", "price = 'cheap'")
    with pytest.raises(StentorError, match="did you mean 'price'"):
        reopened(stentor.Engine(schema={"price": "number"}), tmp_path / "saved").subscribe(
            "x", "prise = 1"
        )


def test_an_opened_engine_is_layered_and_saving_it_merges(tmp_path):
    engine = reopened(small_engine(), tmp_path / "one")
    assert engine.stats()["index"] == "scan layered"
    assert engine.stats()["delta"]["subscriptions"] == 0
    engine.subscribe("ana", "price < 5")
    engine.unsubscribe("bo")
    assert engine.stats()["delta"]["subscriptions"] == 1
    again = reopened(engine, tmp_path / "two")
    assert again.stats()["base"]["subscriptions"] == 1
    assert again.stats()["delta"]["subscriptions"] == 0
    assert list(again) == ["ana"]


def test_changes_after_opening_leave_the_folder_as_it_was(tmp_path):
    engine = reopened(small_engine(), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    engine.subscribe("cy", "price = 1")
    engine.move("ana", (1, 1))
    engine.unsubscribe("bo")
    engine.publish({"id": "f", "price": 1}, until=150)
    assert {path: path.read_bytes() for path in before} == before
    assert list(stentor.Engine.open(tmp_path, clock=lambda: 100.0)) == ["ana", "bo"]


def test_an_engine_can_be_saved_over_the_folder_that_it_was_opened_from(tmp_path):
    engine = reopened(small_engine(), tmp_path / "saved")
    engine.subscribe("cy", "price = 1")
    engine.save(tmp_path / "saved")
    assert engine.publish({"id": "f", "price": 1, "loc": [0, 0]}) == ["ana", "cy"]
    again = stentor.Engine.open(tmp_path / "saved", clock=lambda: 100.0)
    assert list(again) == ["ana", "bo", "cy"]
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def test_what_is_over_is_not_saved(tmp_path):
    engine = stentor.Engine(clock=None)
    engine.subscribe("ana", "price = 1", until=10, time=0)
    engine.publish({"id": "e", "price": 1}, until=10, time=0)
    engine.publish({"id": "f", "price": 1}, time=10)
    engine.save(tmp_path)
    again = stentor.Engine.open(tmp_path, clock=None)
    assert len(again) == again.stats()["live events"] == 0
    assert again.publish({"id": "e", "price": 1}, time=0) == []


def test_what_ends_after_opening_is_taken_out(tmp_path):
    engine = stentor.Engine(clock=None)
    engine.subscribe("ana", "price = 1", until=10, time=0)
    engine.publish({"id": "e", "price": 1}, until=10, time=0)
    engine.save(tmp_path)
    again = stentor.Engine.open(tmp_path, clock=None)
    again.publish({"id": "f"}, time=10)
    assert (again.stats()["subscriptions"], again.stats()["live events"]) == (0, 0)


def test_an_empty_engine_can_be_saved(tmp_path):
    again = reopened(stentor.Engine(), tmp_path)
    assert len(again) == 0
    again.subscribe("ana", "price = 1")
    assert again.publish({"id": "e", "price": 1}) == ["ana"]


@pytest.mark.parametrize("fixed", [{"index": "scan"}, {"schema": {"price": "number"}}])
def test_structure_and_schema_stay_those_that_were_saved(tmp_path, fixed):
    with pytest.raises(SettingsError, match="saved with"):
        reopened(small_engine(), tmp_path, **fixed)


# Folders that are something else.


def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path):
    with pytest.raises(FolderError, match="there is no folder"):
        stentor.Engine.open(tmp_path / "nowhere")


def test_a_foreign_folder_is_neither_opened_nor_replaced(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(FolderError, match="another program's"):
        stentor.Engine.open(tmp_path)
    with pytest.raises(FolderError, match="not replaced"):
        small_engine().save(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_file_that_was_cut_short_or_lost_is_noticed(tmp_path):
    small_engine().save(tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 20
    for path in files:
        content = path.read_bytes()
        path.write_bytes(content[:-1])
        with pytest.raises(FolderError):
            stentor.Engine.open(tmp_path)
        path.unlink()
        with pytest.raises(FolderError):
            stentor.Engine.open(tmp_path)
        path.write_bytes(content)
    assert len(stentor.Engine.open(tmp_path, clock=lambda: 100.0)) == 2


def test_a_manifest_that_was_changed_is_noticed(tmp_path):
    small_engine().save(tmp_path)
    manifest = tmp_path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"seq": 3', '"seq": 4'))
    with pytest.raises(FolderError, match="not as it was written"):
        stentor.Engine.open(tmp_path)


def test_a_newer_folder_is_a_clear_error(tmp_path):
    small_engine().save(tmp_path)
    manifest = tmp_path / "manifest.json"
    newer = json.loads(manifest.read_text()) | {"version": 999}
    manifest.write_text(json.dumps(newer))
    with pytest.raises(FolderError, match=r"version 999.*upgrade Stentor"):
        stentor.Engine.open(tmp_path)


def test_another_kind_of_folder_is_a_clear_error(tmp_path):
    small_engine().save(tmp_path)
    inner = next(path.parent for path in tmp_path.rglob("manifest.json") if path.parent != tmp_path)
    with pytest.raises(FolderError, match="expected 'engine'"):
        stentor.Engine.open(inner)


# Crashes.

KILLED_WHILE_SAVING = """
import os, signal, sys
from pathlib import Path
import stentor

folder = Path(sys.argv[1], "saved")
CHANGES = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}

def engine_of(count):
    engine = stentor.Engine(clock=None)
    engine.step({"op": "subscribe", "id": n, "expression": f"a >= {n}"} for n in range(count))
    return engine

def save_until(engine, last):
    "Save in a process that is killed before its last-th change of files; whether it was."
    process = os.fork()
    if not process:
        left = [last]
        def count_down(event, arguments):
            if event in CHANGES and (event != "open" or sys.argv[1] in str(arguments[0])):
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(count_down)
        engine.save(folder)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])

old, new = engine_of(3), engine_of(5)
old.save(folder)
last, killed, found = 1, True, []
while killed:
    killed = save_until(new, last)
    opened = stentor.Engine.open(folder, clock=None)
    wanted_by = opened.publish({"id": "e", "a": 9})
    assert wanted_by == [str(n) for n in range(len(opened))], wanted_by
    assert len(opened) in (3, 5), len(opened)
    found.append(len(opened))
    if len(opened) == 5:
        old.save(folder)
        assert os.listdir(sys.argv[1]) == ["saved"], os.listdir(sys.argv[1])
        assert len(stentor.Engine.open(folder, clock=None)) == 3
        if found.count(5) == 1:
            last -= 7  # the renames are among the changes that were left out
    last += 1 if 1 <= found.count(5) <= 8 else 7
print(*found)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
def test_a_crash_while_saving_leaves_the_old_or_the_new_folder_complete(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_SAVING, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = done.stdout.split()
    assert found.count("3") > 5
    assert found.count("5") > 5
