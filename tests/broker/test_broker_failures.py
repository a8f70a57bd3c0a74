"""Stores that fail: full, damaged, open elsewhere, interrupted, or written by an older Stentor."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from threading import Thread

import pytest

from stentor.broker import Broker, Overlay, Store
from stentor.broker.interest import CLIENT
from stentor.engine.database import Database
from stentor.errors import StoreError
from stentor.model import Changes, Point, Schema
from tests.support.broker_records import SCHEMA, SECOND, SPACE, event, wish

LINKS = [("b0", "b1")]


def opened(folder, **settings):
    files = {name: folder / name for name in ("b0", "b1")}
    schema = Schema.declare(SCHEMA)
    return Overlay(files, LINKS, schema=schema, space=SPACE, stores=files, **settings)


def fill_up(broker):
    """Let there be no room for another page in the file of *broker*."""
    database = broker._store._database
    [(pages,)] = database.rows("PRAGMA page_count")
    database.run(f"PRAGMA max_page_count = {pages}")


def empty_disk(broker):
    broker._store._database.run("PRAGMA max_page_count = 1000000")


# Full.


@pytest.mark.parametrize("full", ["b0", "b1"])
def test_a_broker_whose_store_is_full_says_why_and_refuses_everything_until_it_is_restarted(
    tmp_path, full
):
    overlay = opened(tmp_path)
    overlay.feed("b0", wish("ana", "price < 300"))
    assert overlay.feed("b1", event("e0", until=9 * SECOND, price=1)) == ["ana"]
    broker = overlay.brokers[full]
    fill_up(broker)
    many = [event(f"e{n} {'x' * 300}", until=9 * SECOND, price=1) for n in range(1, 60)]
    with pytest.raises(StoreError, match="full"):
        (overlay.send("b1", many), overlay.run())
    calls = [
        lambda: broker.receive(CLIENT, []),
        lambda: broker.receive("b0" if full == "b1" else "b1", []),
        lambda: broker.pass_time(SECOND),
        lambda: broker.acknowledge([]),
        lambda: broker.add_neighbour("b9"),
        lambda: broker.connect("b1" if full == "b0" else "b0"),
        broker.undelivered,
        broker.contents,
        broker.stats,
        overlay.run,
        lambda: overlay.feed(full, event("e", price=1)),
    ]
    for call in calls:
        with pytest.raises(StoreError, match=r"has failed .*full.*open it again"):
            call()
    overlay.restart(full)
    if full == "b1":
        assert overlay.send("b1", many) == [["ana"][:0]] * len(many), "nothing of it had happened"
    got = {one.event for one in overlay.run()}
    assert got == {one.event.id for one in many}
    assert overlay.run() == []
    overlay.check()
    overlay.close()
    assert {one.event for one in opened(tmp_path).run()} == set(), "all was acknowledged"


@pytest.mark.usefixtures("unsynced")
def test_what_was_answered_stands_in_the_store(tmp_path):
    """At whichever statement the store fails, what it holds is what was answered before."""
    for number in range(40):
        folder = tmp_path / str(number)
        folder.mkdir()
        overlay = opened(folder)
        overlay.feed("b0", wish("ana", "price < 300"))
        left = [number]
        database = overlay.brokers["b0"]._store._database
        run = database.run

        def failing(statement, *values, left=left, run=run):
            left[0] -= 1
            if left[0] < 0:
                raise StoreError("disk I/O error")
            return run(statement, *values)

        database.run = failing
        try:
            answers = overlay.send(
                "b0", [wish("ben", "price < 3"), event("e", until=9 * SECOND, price=1)]
            )
        except StoreError:
            answers = None
            assert overlay.brokers["b0"]._failure
        again = opened(folder)
        standing, events = again.brokers["b0"].contents()
        expected = (["ana"], []) if answers is None else (["ana", "ben"], ["e"])
        assert ([one.id for one in standing], [one.id for one in events]) == expected
        owed = [(one.subscription, one.event) for one in again.run()]
        assert owed == ([] if answers is None else [("ana", "e"), ("ben", "e")])
        again.check()
        again.close()
    assert answers is not None, "with so many statements it had come through"


def test_a_message_waits_until_it_is_kept(tmp_path):
    overlay = opened(tmp_path)
    overlay.feed("b0", wish("ana", "price < 300"))
    overlay.send("b1", [event("fleeting", price=1)])
    fill_up(overlay.brokers["b0"])
    original = Store.keep_deliveries
    try:
        Store.keep_deliveries = lambda *_: (_ for _ in ()).throw(StoreError("disk I/O error"))
        with pytest.raises(StoreError):
            overlay.run()
    finally:
        Store.keep_deliveries = original
    overlay.restart("b0")
    assert overlay.run() == [("ana", "fleeting", True)]


def test_an_interrupted_call_leaves_a_broker_that_says_so(tmp_path, monkeypatch):
    overlay = opened(tmp_path)
    overlay.feed("b0", wish("ana", "price < 300"))

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    for method in ("_dispatch", "remember", "_take"):
        monkeypatch.setattr(
            overlay._homes if method == "remember" else overlay, method, interrupted
        )
        with pytest.raises(KeyboardInterrupt):
            overlay.send("b1", [event(method, until=9 * SECOND, price=1)])
        monkeypatch.undo()
        with pytest.raises(StoreError, match="KeyboardInterrupt"):
            overlay.send("b1", [event("next", price=1)])
        overlay.restart("b1")
        assert overlay.run() == [("ana", method, True)]
        overlay.check()
    without = Broker("b0", schema=Schema.declare(SCHEMA))
    monkeypatch.setattr(without._tables, "hold_event", interrupted)
    with pytest.raises(KeyboardInterrupt):
        without.receive(CLIENT, [event("e", until=9 * SECOND, price=1)])
    with pytest.raises(StoreError, match="make it anew: it has no store"):
        without.receive(CLIENT, [])


# Open elsewhere.

HOLDER = """
import sys, time
from stentor.broker import Store
store = Store(sys.argv[1])
print("open", flush=True)
time.sleep(600)
"""


def test_a_store_belongs_to_one_process_until_that_is_gone(tmp_path):
    path = tmp_path / "b0"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "open\n"
        link = tmp_path / "link"
        link.symlink_to(path)
        for name in (path, link):
            with pytest.raises(StoreError, match="open in another process"):
                Store(name)
        with pytest.raises(StoreError, match="open in another process"):
            Overlay(["b0", "b1"], LINKS, stores={"b1": tmp_path / "b1", "b0": path})
        Store(tmp_path / "b1").close()  # it was let go of
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
    Store(path).close()


def test_who_opens_a_store_again_in_one_process_takes_it_over(tmp_path):
    overlay = opened(tmp_path)
    overlay.feed("b0", wish("ana", "price < 300"))
    again = opened(tmp_path)
    with pytest.raises(StoreError, match="opened the file again"):
        overlay.feed("b0", event("e", price=1))
    assert again.feed("b1", event("e", price=1)) == ["ana"]


def test_a_forked_child_cannot_use_the_store_of_its_parent(tmp_path):
    overlay = opened(tmp_path)
    overlay.feed("b0", wish("ana", "price < 300"))
    if (child := os.fork()) == 0:
        for call in (lambda: overlay.feed("b0", event("e", price=1)), lambda: opened(tmp_path)):
            try:
                call()
            except StoreError:
                continue
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert overlay.feed("b1", event("e", price=1)) == ["ana"]


def test_another_thread_may_use_a_store(tmp_path):
    overlay, answers = opened(tmp_path), []
    thread = Thread(target=lambda: answers.append(overlay.feed("b0", wish("ana", "price < 3"))))
    thread.start()
    thread.join()
    assert answers == [Changes()]


# Damaged.


def written(folder):
    """The stores of two brokers with rows in every table."""
    overlay = opened(folder, policy={"b0": "mics", "b1": "none"})
    overlay.feed("b0", wish("ana", "price < 10", until=90 * SECOND))
    overlay.feed("b1", wish("ben", "ST_DWithin(loc, here(), 900)", at=Point(0, 0)))
    overlay.feed("b0", event("e", until=9 * SECOND, price=7))
    overlay.send("b1", [event("plain", price=7)])
    overlay.send("b0", [event("owed", price=7)])
    overlay.close()
    return {name: (folder / name).read_bytes() for name in ("b0", "b1")}


BAD_CELLS = [
    "", "{", "[]", "7", "null", '"x"', "{}", '{"ranges": 7}', '{"ranges": [[1]]}', "[[[[" * 9999,
    '{"ranges": [[-1, 5]]}', '{"ranges": [[0, 99999999999999999999999]]}', '{"ranges": [["a", 2]]}',
    '{"expression": "price <"}', '{"expression": "nothing < 3"}', '{"expression": 7}',
    '{"expression": "' + "NOT " * 5000 + 'price < 3"}', '{"id": "e", "price": {"low": 1}}',
    '{"id": "e", "price": 7, "until": "yesterday"}', '{"id": "e", "price": 7}', '{"id": 7}',
    '{"id": "e", "price": 7, "until": 0}', "1" * 5000, "99999999999999999999999", "-1", "true",
    '{"plane": 1}', '{"plane": false, "declared": true, "attributes": [{"name": 3}]}',
    '{"plane": false, "declared": true, "attributes": [{"name": "a", "kind": "c", "where": "x"}]}',
    '["b0", "b0"]', '["a/b"]', '["b1", 7]', b"\xff\xfe", None, 7, 1.5,
]  # fmt: skip
COLUMNS = [
    ("facts", "fact"),
    ("facts", "name"),
    ("interests", "source"),
    ("interests", "name"),
    ("interests", "record"),
    ("events", "id"),
    ("events", "record"),
    ("deliveries", "subscription"),
    ("deliveries", "event"),
    ("deliveries", "added"),
    ("forwards", "neighbour"),
    ("forwards", "record"),
]


def readable(folder, name, raw):
    """Whether the store *raw* of the broker *name* can be used; otherwise it says what is wrong."""
    for file in folder.iterdir():
        file.unlink()
    (folder / name).write_bytes(raw)
    try:
        with closing(Store(folder / name)) as store:
            broker = Broker(name, schema=Schema.declare(SCHEMA), space=SPACE, store=store)
            for neighbour in broker.links:
                broker.connect(neighbour)
            broker.undelivered()
            records = [wish("zoe", "price < 9"), event("z", until=99 * SECOND, price=3)]
            broker.receive(CLIENT, records)
            broker.pass_time(50 * SECOND)
    except StoreError as error:
        return str(folder) not in str(error)
    return True


@pytest.fixture
def unsynced(monkeypatch):
    """No wait for the disk: what is tested is what is read."""
    transaction = Database.transaction
    monkeypatch.setattr(Database, "transaction", lambda self, **_: transaction(self, synced=False))


@pytest.mark.usefixtures("unsynced")
@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_damaged_row_is_named(tmp_path, table, column):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    stores = written(tmp_path / "in")
    draw = random.Random(f"{table} {column}")
    refused = 0
    for name, raw in stores.items():
        rows = _rows(tmp_path, raw, table)
        for row in rows:
            for cell in draw.sample(BAD_CELLS, min(len(BAD_CELLS), 30 // len(rows))):
                if (damaged := _damaged(tmp_path, raw, table, column, row, cell)) is not None:
                    refused += not readable(tmp_path / "out", name, damaged)
    assert refused > 0


def _rows(folder, raw, table):
    (folder / "copy").write_bytes(raw)
    with closing(sqlite3.connect(folder / "copy")) as copy:
        return [row for (row,) in copy.execute(f"SELECT rowid FROM {table}")]


def _damaged(folder, raw, table, column, row, cell):
    (folder / "copy").write_bytes(raw)
    copy = sqlite3.connect(folder / "copy")
    try:
        copy.execute("PRAGMA journal_mode = DELETE")
        if isinstance(cell, bytes):
            change = f"UPDATE {table} SET {column} = CAST(? AS TEXT) WHERE rowid = ?"
        else:
            change = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"
        copy.execute(change, (cell, row))
        copy.commit()
    except sqlite3.IntegrityError:
        return None
    finally:
        copy.close()
    return (folder / "copy").read_bytes()


def test_a_damaged_row_is_told_with_its_file_its_table_and_its_number(tmp_path):
    store = Store(tmp_path / "b0")
    Broker("b0", store=store).receive(CLIENT, [event("e", until=9 * SECOND, price=7)])
    store._run("UPDATE events SET record = '{'")
    store.close()
    with pytest.raises(StoreError, match=r"b0: the row 1 of events cannot be used: .*a copy"):
        Broker("b0", store=Store(tmp_path / "b0"))


@pytest.mark.usefixtures("unsynced")
def test_bytes_of_a_store_that_change_are_an_error_or_no_harm(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    stores = written(tmp_path / "in")
    draw = random.Random(5)
    refused = 0
    for number in range(120):
        name = ("b0", "b1")[number % 2]
        raw = bytearray(stores[name])
        if number % 10 == 0:
            del raw[draw.randrange(len(raw)) :]
        for _ in range(draw.choice((1, 1, 4, 50))):
            if raw:
                raw[draw.randrange(len(raw))] = draw.randrange(256)
        refused += not readable(tmp_path / "out", name, bytes(raw))
    assert 12 < refused < 120


def test_a_database_of_others_is_refused_and_left_as_it_was(tmp_path):
    path = tmp_path / "x"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE people (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="others' tables"):
        Store(path)
    assert path.read_bytes() == before
    Store(tmp_path / "y").close()
    with closing(sqlite3.connect(tmp_path / "y")) as other:
        other.execute("CREATE TRIGGER t AFTER INSERT ON facts BEGIN DELETE FROM events; END")
    with pytest.raises(StoreError, match="it has a trigger"):
        Store(tmp_path / "y")
    for bad in ("a\0b", tmp_path, tmp_path / "no" / "x"):
        with pytest.raises(StoreError):
            Store(bad)
