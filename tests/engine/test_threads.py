"""One writer, any number of readers; and processes that are forked meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from stentor import Engine
from stentor.engine.ids import StringStore
from stentor.errors import UnknownIdError
from stentor.index.catalog import names

CHANGES = 120
MOST = 30  # subscriptions at a time


@pytest.fixture(autouse=True)
def frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def events(numbers):
    return pa.table({"id": [f"e{n}" for n in numbers], "n": numbers})


def run(writer, readers):
    """Let *readers* go round while *writer* works; what any of them raised is raised."""
    raised, is_over = [], threading.Event()

    def guarded(work):
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            raised.append(error)
            is_over.set()

    def reading(read):
        def rounds():
            while not is_over.is_set():
                read()
            read()

        return rounds

    def writing():
        try:
            for number in range(CHANGES):
                if is_over.is_set():
                    return
                writer(number)
        finally:
            is_over.set()

    threads = [threading.Thread(target=guarded, args=(reading(read),)) for read in readers]
    threads.append(threading.Thread(target=guarded, args=(writing,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in raised:
        raise error


def write(engine, number):
    """Change something; every id tells what it wants."""
    engine.subscribe(f"s{number}", f"n = {number} AND a{number} IS NULL OR n = {number}", at=(0, 0))
    if number >= MOST:
        engine.unsubscribe(f"s{number - MOST}")
    engine.move(f"s{number - number % 7}", (number % 90, 0))
    if number % 50 == 49:
        engine.rebuild()


@pytest.mark.parametrize("index", names())
def test_one_writer_and_many_readers(index):
    engine = Engine(index, clock=None)
    engine.subscribe("s0", "n = 0", at=(0, 0))

    def ask():
        for number in range(0, CHANGES, 17):
            found = engine.top({"n": number})
            assert [id for id, _ in found] in ([], [f"s{number}"])
            try:
                assert engine.explain(f"s{number}", {"n": number})
                assert engine.get(f"s{number}")["id"] == f"s{number}"
                assert engine.safe_region(f"s{number}").id == f"s{number}"
            except UnknownIdError:
                pass

    def look():
        assert len(engine) <= MOST + 1
        assert all(id.startswith("s") for id in engine)
        assert engine.stats()["subscriptions"] <= MOST + 1
        repr(engine), repr(engine.schema)
        assert len(list(engine.schema)) <= len(engine.schema) <= CHANGES + 1
        engine.schema.to_dict()
        engine.schema.nearest("a12x")
        assert "s-1" not in engine

    def publish():
        report = engine.publish_batch(events(range(0, CHANGES, 5)))
        for row in report.matches.to_pylist():
            assert row["subscription"] == "s" + row["event"][1:]
        for number, wanted_by in zip(range(0, CHANGES, 5), report, strict=True):
            assert wanted_by in ([], [f"s{number}"])

    run(lambda number: write(engine, number), [ask, look, publish])
    assert sorted(engine) == sorted(f"s{n}" for n in range(CHANGES - MOST, CHANGES))


def test_a_report_shows_what_it_was_made_with_whoever_subscribes_meanwhile():
    engine = Engine(clock=None)
    reports = []

    def publish():
        reports.append(engine.publish_batch(events([*range(CHANGES)])))

    def read():
        for report in reports[-3:]:
            assert report.matches.num_rows == sum(map(len, report))

    run(lambda number: write(engine, number), [publish, read, read])
    for report in reports:
        for row in report.matches.to_pylist():  # by the column, and by the row
            assert row["subscription"] == "s" + row["event"][1:]
            assert report[row["record"]] == [row["subscription"]]


def test_ids_are_read_while_others_are_added():
    ids = StringStore()
    ids.extend(["r0"])

    def read():
        count = len(ids)
        rows = np.arange(0, count, 1 + count // 50)
        assert ids.take(rows).to_pylist() == [f"r{row}" for row in rows]

    def add(_):
        for _ in range(200):
            ids.extend([f"r{len(ids)}"])

    run(add, [read, read, read])
    assert list(ids) == [f"r{row}" for row in range(1 + 200 * CHANGES)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked on this system")
@pytest.mark.parametrize("where", ["reading", "changing"])
def test_a_process_that_is_forked_during_a_call_goes_on_without_it(where):
    program = Path(__file__).parents[1] / "programs" / "forked.py"
    ran = subprocess.run(
        [sys.executable, str(program), where], capture_output=True, text=True, check=False
    )
    parent = ["ana", "ben"] if where == "changing" else ["ana"]
    assert ran.stdout.splitlines() == [
        "Changes(added=['e1'], removed=[])",
        "['ana', 'cleo'] ['ana', 'cleo']",
        f"0 {parent}",
    ], ran.stderr
