"""Copies of bases on a worker's own disk: what a killed process had begun does not stay."""

import time

import pytest

from stentor.pipeline.storage import copies
from stentor.pipeline.storage.copies import ABANDONED
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
