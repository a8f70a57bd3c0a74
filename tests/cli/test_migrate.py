"""`stentor migrate`: folders of older versions, brought forward."""

import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

import stentor
from stentor.broker.store import Store
from stentor.cli.migrate import migrated
from stentor.errors import SettingsError
from tests.programs.witness import INDEXES, answers

WITNESS = Path(__file__).parents[1] / "witnesses" / "0.1.0.zip"
STORE = Path(__file__).parents[1] / "broker" / "broker_stores_version_1.sql"


def test_a_saved_engine_of_an_older_version_is_brought_forward(tmp_path):
    with zipfile.ZipFile(WITNESS) as packed:
        packed.extractall(tmp_path)
    folder = tmp_path / INDEXES[0]
    expected = json.loads((tmp_path / f"{INDEXES[0]}.json").read_text())
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    [line] = migrated(folder, is_check=True)
    assert "version 0.1" in line
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    done, again = migrated(folder)
    assert "built anew" in done
    assert "subscriptions" in again
    assert json.loads(json.dumps(answers(stentor.Engine.open(folder)))) == expected
    [line] = migrated(folder)
    assert "nothing to do" in line


def test_a_durable_engine_gets_a_new_base(tmp_path):
    folder = tmp_path / "e"
    with stentor.Engine.open(folder, durable=True, fsync=False, clock=None) as engine:
        engine.subscribe("ana", "price < 3")
    assert "would be" in next(migrated(folder, is_check=True))
    assert "1 subscriptions" in next(migrated(folder))
    assert (folder / "base-1").is_dir()
    with stentor.Engine.open(folder, durable=True, clock=None) as engine:
        assert list(engine) == ["ana"]


def test_a_brokers_store_is_brought_forward(tmp_path):
    path = tmp_path / "broker.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(STORE.read_text().partition("COMMIT;")[0] + "COMMIT;")
    assert "version 1; it can" in next(migrated(path, is_check=True))
    assert "brought to version" in next(migrated(path))
    assert "nothing to do" in next(migrated(path))
    Store(path).close()


def test_a_stream_needs_nothing_and_others_are_refused(tmp_path):
    (tmp_path / "stream" / "manifests").mkdir(parents=True)
    assert "nothing to do" in next(migrated(tmp_path / "stream"))
    (tmp_path / "x").write_text("a letter")
    for wrong in (tmp_path, tmp_path / "none", tmp_path / "x"):
        with pytest.raises(SettingsError, match="no folder of an engine"):
            next(migrated(wrong))
