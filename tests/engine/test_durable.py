"""A durable engine: a change is in its folder before it is answered."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stentor
from stentor.engine import durable
from stentor.engine.database import Database
from stentor.errors import FolderError, SettingsError, StentorError, StoreError
from tests.programs import killed_engines
from tests.support import grid, strategies
from tests.support.drawn_once import folder_in_memory
from tests.support.oracle import Oracle

pytestmark = pytest.mark.filterwarnings("ignore::stentor.errors.NeverMatchesWarning")


def opened(folder, **settings):
    return stentor.Engine.open(folder, durable=True, **{"clock": None, "fsync": False, **settings})


def comparable(answers):
    return [type(one) if isinstance(one, StentorError) else one for one in answers]


@given(history=strategies.histories(max_size=24), event=strategies.events(), data=st.data())
def test_what_was_answered_stands_however_it_was_cut(history, event, data):
    oracle = Oracle(schema=grid.schema())
    cuts = sorted(data.draw(st.sets(st.integers(0, len(history)), max_size=3)))
    saved = data.draw(st.booleans())
    with folder_in_memory() as folder:
        engine = opened(Path(folder, "kept"), schema=grid.schema())
        for start, stop in zip([0, *cuts], [*cuts, len(history)], strict=True):
            part = history[start:stop]
            assert comparable(engine.step(part)) == comparable(oracle.answers(part))
            if saved:
                engine._since_base = durable.MANY_AT_CLOSE
                engine.close()
            engine = opened(Path(folder, "kept"))
            engine._state.index.check()
            assert list(engine) == list(oracle)
            assert engine.top(event, k=2) == oracle.top(event, 2)
        engine.close()


@given(history=strategies.histories(max_size=12), data=st.data())
def test_records_one_by_one_are_kept_like_a_step(history, data):
    one_by_one, at_once = stentor.Engine(schema=grid.schema(), clock=None), None
    with folder_in_memory() as folder:
        for record in history:
            with opened(Path(folder, "a"), schema=grid.schema()) as engine:
                assert comparable(engine.step([record])) == comparable(one_by_one.step([record]))
        with opened(Path(folder, "b"), schema=grid.schema()) as at_once:
            at_once.step(history)
        for name in "ab":
            with opened(Path(folder, name)) as engine:
                assert killed_engines.picture(engine) == killed_engines.picture(one_by_one)


@pytest.mark.parametrize("seed", range(4))
def test_kills_between_any_two_calls_lose_nothing(tmp_path, seed):
    """Some dozens here; the soak has 10,000."""
    answered, _ = killed_engines.main(tmp_path / "engine", 9, seed)
    assert answered


def test_every_call_is_kept_and_time_too(tmp_path):
    folder = tmp_path / "engine"
    with opened(folder) as engine:
        engine.subscribe("ana", "price < :most", parameters={"most": 5}, owner="a", time=1)
        engine.subscribe("bo", "ST_DWithin(loc, here(), 9)", at=(1, 2), labels={"t": "x"}, time=2)
        engine.subscribe("cy", "size > 3", until=90, time=2)
        engine.publish({"id": "e", "price": 3, "colour": "red"}, until=50, time=3)
        engine.update({"id": "f", "price": 4}, among={"t": "x"}, time=3)
        engine.move("bo", (3, 4), time=4)
        table = pa.table({"id": ["p1", "p2"], "limit": [1.0, 2.0]})
        engine.subscribe_batch(table, "price < :limit")
        engine.withdraw("e", time=5)
        engine.unsubscribe_batch(pa.table({"id": ["p1"]}))
        with pytest.raises(StentorError):
            engine.subscribe("dan", "price < 3", until=2, time=6)
        before = killed_engines.picture(engine)
    with opened(folder) as engine:
        assert killed_engines.picture(engine) == before
        assert list(engine) == ["ana", "bo", "cy", "p2"]
        assert engine.subscriptions(owner="a") == ["ana"]
        assert engine.publish({"id": "g", "price": 1}, time=95) == ["ana", "p2"]
    with opened(folder) as engine:  # a publish lets time pass, and what was over stays over
        assert list(engine) == ["ana", "bo", "p2"]


def test_a_saved_engine_goes_on_as_a_durable_one(tmp_path):
    folder = tmp_path / "engine"
    engine = stentor.Engine(clock=None)
    engine.subscribe("ana", "price < 3")
    engine.save(folder)
    for id in ("bo", "cy"):
        with opened(folder) as engine:
            engine.subscribe(id, "price < 4")
            engine._since_base = durable.MANY_AT_CLOSE if id == "cy" else 0
    with opened(folder) as engine:
        assert list(engine) == ["ana", "bo", "cy"]
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["base-2"]
    with pytest.raises(FolderError, match="durable=True"):
        stentor.Engine.open(folder)
    with pytest.raises(SettingsError, match="own folder"):
        engine.save(folder)
    with pytest.raises(FolderError, match="durable"):
        stentor.Engine().save(folder)


def test_bases_are_made_while_the_engine_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(durable, "MANY_RECORDS", 50)
    twin = stentor.Engine(clock=None)
    with opened(tmp_path / "e") as engine:
        for number in range(60):
            ids = [f"{number} {row}" for row in range(7)]
            table = pa.table({"id": ids, "expression": [f"price < {number}"] * 7})
            for one in (engine, twin):
                one.subscribe_batch(table)
                one.unsubscribe(ids[0])
                one.update({"id": f"e{number % 5}", "price": number})
        if engine._thread is not None:
            engine._thread.join()
        assert engine._base.upto
    with opened(tmp_path / "e") as engine:
        assert killed_engines.picture(engine) == killed_engines.picture(twin)
        assert len([path for path in (tmp_path / "e").iterdir() if path.is_dir()]) == 1


def test_threads_share_a_commit_and_none_is_lost(tmp_path, monkeypatch):
    first, others = threading.Event(), threading.Event()
    commits = []
    run = Database.run

    def slow(database, statement, *values):
        if statement == "COMMIT":
            commits.append(1)
            if len(commits) == 1:
                first.set()
                assert others.wait(60)
        return run(database, statement, *values)

    engine = opened(tmp_path / "e")
    monkeypatch.setattr(Database, "run", slow)
    threads = [
        threading.Thread(target=engine.subscribe, args=(f"s{number}", "price < 3"))
        for number in range(12)
    ]
    threads[0].start()
    assert first.wait(60)
    for thread in threads[1:]:
        thread.start()
    while engine._log.number < 12:  # all have happened, and wait for the disk
        pass
    others.set()
    for thread in threads:
        thread.join()
    assert len(commits) <= 3
    monkeypatch.setattr(Database, "run", run)
    engine = opened(tmp_path / "e")
    assert len(engine) == 12


def test_a_full_disk_ends_the_engine_and_what_was_answered_stands(tmp_path):
    engine = opened(tmp_path / "e")
    engine.subscribe("ana", "price < 3")
    pages = engine._store._database.rows("PRAGMA page_count")[0][0]
    engine._store._database.run(f"PRAGMA max_page_count = {pages + 1}")
    number = 0

    def subscribe_many():
        nonlocal number
        while True:
            engine.subscribe(f"s{number}", f"text = '{'x' * 5000}'")
            number += 1

    with pytest.raises(StoreError, match="full"):
        subscribe_many()
    for ask in (engine.live, lambda: engine.subscribe("x", "a = 1"), lambda: list(engine)):
        with pytest.raises(StoreError, match="open the folder again"):
            ask()
    again = opened(tmp_path / "e")
    assert list(again) == ["ana", *sorted(f"s{one}" for one in range(number))]


def test_an_interrupted_change_is_not_half_kept(tmp_path, monkeypatch):
    engine = opened(tmp_path / "e")
    engine.subscribe("ana", "price < 3")

    def cut_off(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(durable, "change_to_bytes", cut_off)
        with pytest.raises(KeyboardInterrupt):
            engine.subscribe("bo", "price < 4")
    there = list(engine)  # in memory it may have happened: then it is kept with the next change
    engine.unsubscribe("ana")
    assert list(opened(tmp_path / "e")) == [id for id in there if id != "ana"]


def test_a_folder_belongs_to_one_engine(tmp_path):
    first = opened(tmp_path / "e")
    first.subscribe("ana", "price < 3")
    second = opened(tmp_path / "e")  # the same process takes it over
    with pytest.raises(StoreError, match="opened the file again"):
        first.subscribe("bo", "price < 3")
    assert list(second) == ["ana"]
    second.close()
    with pytest.raises(StoreError, match="closed"):
        second.subscribe("bo", "price < 3")


def test_what_is_no_engines_folder_is_refused(tmp_path):
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "letter.txt").write_text("dear")
    with pytest.raises(FolderError, match=r"letter\.txt"):
        opened(tmp_path / "others")
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="is a file"):
        opened(tmp_path / "file")
    with pytest.raises(SettingsError, match="durable"):
        stentor.Engine.open(tmp_path / "x", durable="yes")
    assert not (tmp_path / "x").exists()
    with pytest.raises(SettingsError):
        opened(tmp_path / "x", index="no such")
    assert not (tmp_path / "x").exists()


def test_damaged_changes_are_refused_with_their_number(tmp_path):
    with opened(tmp_path / "e") as engine:
        engine.subscribe("ana", "price < 3")
        engine.subscribe("bo", "price < 3")
    [(body,)] = in_store(tmp_path, "SELECT body FROM changes WHERE number = 2")
    for wrong in (body[:-1] + bytes([body[-1] ^ 1]), b"", body[:40], body[:4] + body[5:]):
        in_store(tmp_path, "UPDATE changes SET body = ? WHERE number = 2", wrong)
        with pytest.raises(StoreError, match="row 2 of changes"):
            opened(tmp_path / "e")
    in_store(tmp_path, "UPDATE changes SET body = ?, number = 3 WHERE number = 2", body)
    with pytest.raises(StoreError, match="change 2 is missing"):
        opened(tmp_path / "e")


def in_store(tmp_path, statement, *values):
    with closing(sqlite3.connect(tmp_path / "e" / durable.STORE)) as connection, connection:
        return connection.execute(statement, values).fetchall()


def test_a_declared_schema_grows_and_a_changed_type_says_how_to_go_on(tmp_path):
    folder = tmp_path / "e"
    with opened(folder, schema={"price": "number"}) as engine:
        engine.subscribe("ana", "price < 3")
        with pytest.raises(StentorError):
            engine.subscribe("bo", "size < 3")
    with opened(folder, schema={"price": "number", "size": "number"}) as engine:
        engine.subscribe("bo", "size < 3")
        engine._since_base = durable.MANY_AT_CLOSE
    with opened(folder) as engine:
        assert engine.publish({"id": "e", "price": 1, "size": 1}) == ["ana", "bo"]
    with pytest.raises(SettingsError, match=r"'price' is declared as a string now.*another name"):
        opened(folder, schema={"price": "string"})
    with opened(folder, schema={"colour": "string"}) as engine:
        assert list(engine.schema) == ["price", "size", "colour"]


def test_a_saved_schema_grows_too(tmp_path):
    engine = stentor.Engine(schema={"price": "number"}, clock=None)
    engine.subscribe("ana", "price < 3")
    engine.save(tmp_path / "e")
    again = stentor.Engine.open(tmp_path / "e", schema={"size": "number"}, clock=None)
    again.subscribe("bo", "size < 3")
    assert again.publish({"id": "e", "price": 1, "size": 1}) == ["ana", "bo"]
    with pytest.raises(SettingsError, match="another name"):
        stentor.Engine.open(tmp_path / "e", schema={"price": "point"})
