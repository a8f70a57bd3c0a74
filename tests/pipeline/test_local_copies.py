"""Copies of bases on a worker's own disk: what a killed process had begun does not stay."""

import shutil
import time

import pytest

from stentor.pipeline.storage import copies
from stentor.pipeline.storage.copies import ABANDONED
from stentor.pipeline.storage.folder import stream_folder
from stentor.pipeline.stream import shards
from stentor.pipeline.stream.shards import local_copy


@pytest.mark.parametrize(("later", "stays"), [(ABANDONED - 60, True), (ABANDONED + 60, False)])
def test_partial_copies_go_an_hour_after_they_last_grew(tmp_path, monkeypatch, later, stays):
    base = tmp_path / "pipeline" / "bases" / "0-0-first"
    base.mkdir(parents=True)
    (base / "rows").write_bytes(b"rows")
    monkeypatch.setattr(shards, "open_shard", lambda folder, verify: None)
    copy = local_copy(base, tmp_path / "cache")
    killed = copy.with_name(f".{copy.name}.0123.partial")
    copy.rename(killed)
    now = time.time() + later
    monkeypatch.setattr(copies.time, "time", lambda: now)
    assert local_copy(base, tmp_path / "cache") == copy
    assert killed.exists() == stays
    assert (copy / "rows").read_bytes() == b"rows"


def test_a_folder_that_is_renamed_while_it_is_removed_is_no_fault(tmp_path, monkeypatch):
    """A task of a job that failed may end what it was writing."""
    (tmp_path / "bases" / ".1.partial").mkdir(parents=True)
    removed = shutil.rmtree

    def renamed_first(path):
        path.rename(tmp_path / "bases" / "1")
        removed(path)

    monkeypatch.setattr(shutil, "rmtree", renamed_first)
    (stream_folder(tmp_path) / "bases").remove([".1.partial"])
    assert (tmp_path / "bases" / "1").is_dir()
