"""Manifests and the lock: what is committed stays as it was written, and one writer commits."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import stentor.pipeline
from stentor.errors import FolderError
from stentor.pipeline.commit import manifests as commits_module
from stentor.pipeline.commit.failpoints import FAILPOINTS
from stentor.pipeline.commit.manifests import Commits, LiveSegment, Manifest, Segment, TableFile
from stentor.pipeline.storage.writers import lock_folder

SOURCES = Path(stentor.pipeline.__file__).parent


def manifest(batch: int) -> Manifest:
    return Manifest(
        batch=batch,
        query="0f3c",
        seq=10 * batch,
        time=1_700_000_000_000_000 + batch,
        order=None if batch == 0 else batch,
        schema={"price": "number"},
        index="scan",
        shards=2,
        bases=["b0", "b1"],
        base_batch=-1,
        segments=[Segment("s0", 0, batch, 3, 4_096)],
        live=[LiveSegment("l0", 5, 1_800_000_000_000_000)],
        files={"deliveries": [TableFile("0-abc.parquet", 7, 1_024)]},
        counts={"events": 7},
        settings={"top": None, "share": 0.1},
    )


def file_of(path: Path, batch: int) -> Path:
    return path / "manifests" / f"{batch:020d}.json"


def committed(path: Path, *batches: int) -> Commits:
    commits = Commits(path)
    for batch in batches:
        commits.commit(manifest(batch))
    return commits


def rewritten(file: Path, **fields: object) -> None:
    """Change *fields* of a manifest as another release would have written them, sum included."""
    content = msgspec.json.decode(file.read_bytes())
    del content["sum"]
    content |= fields
    file.write_bytes(msgspec.json.encode(content | {"sum": commits_module._sum(content)}))


def test_a_folder_without_manifests_has_no_last_batch(tmp_path: Path) -> None:
    assert Commits(tmp_path / "new").last() is None
    assert list(Commits(tmp_path / "new").since(-1)) == []


def test_what_was_committed_is_read_back_equal_and_in_order(tmp_path: Path) -> None:
    committed(tmp_path, 0, 1, 2, 10)
    commits = Commits(tmp_path)
    assert commits.last() == manifest(10)
    assert list(commits.since(-1)) == [manifest(batch) for batch in (0, 1, 2, 10)]
    assert [later.batch for later in commits.since(1)] == [2, 10]


def test_a_commit_leaves_nothing_but_its_manifest(tmp_path: Path) -> None:
    committed(tmp_path, 0)
    assert [file.name for file in (tmp_path / "manifests").iterdir()] == [f"{0:020d}.json"]


def test_a_batch_is_committed_once(tmp_path: Path) -> None:
    committed(tmp_path, 0)
    with pytest.raises(FolderError, match=r"batch 0 of .* is committed already, by another writer"):
        Commits(tmp_path).commit(manifest(0))


def test_a_writer_that_was_overtaken_cannot_commit_a_batch_whose_manifest_is_gone(
    tmp_path: Path,
) -> None:
    committed(tmp_path, 0, 1, 2).prune(1, through=2)
    with pytest.raises(FolderError, match=r"batch 1 of .* is committed already"):
        Commits(tmp_path).commit(manifest(1))


def test_of_two_writers_at_the_same_moment_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Commits(tmp_path), Commits(tmp_path)
    first.commit(manifest(0))
    first.commit(manifest(1))
    monkeypatch.setattr(
        second, "_entries", lambda: [(0, 0)]
    )  # it looked before the other committed
    with pytest.raises(FolderError, match="another writer"):
        second.commit(manifest(1))
    assert [later.batch for later in first.since(-1)] == [0, 1]


def test_pruning_keeps_the_newest_and_all_that_the_tables_still_need(tmp_path: Path) -> None:
    commits = committed(tmp_path, *range(6))
    commits.prune(4, through=5)
    assert [kept.batch for kept in commits.since(-1)] == [2, 3, 4, 5]
    commits.prune(1, through=3)
    assert [kept.batch for kept in commits.since(-1)] == [4, 5]
    commits.prune(0, through=5)
    assert [kept.batch for kept in commits.since(-1)] == [5]


def test_a_manifest_cut_short_at_any_byte_is_an_error_that_names_it(tmp_path: Path) -> None:
    commits = committed(tmp_path, 0)
    whole = file_of(tmp_path, 0).read_bytes()
    for size in range(0, len(whole), 37):
        file_of(tmp_path, 0).write_bytes(whole[:size])
        with pytest.raises(FolderError, match=r"0\.json is damaged: .*restore it from a backup"):
            commits.last()


def test_a_changed_value_is_found_by_the_sum(tmp_path: Path) -> None:
    commits = committed(tmp_path, 1)
    file = file_of(tmp_path, 1)
    file.write_bytes(file.read_bytes().replace(b'"seq": 10', b'"seq": 11'))
    with pytest.raises(FolderError, match="is not as it was written"):
        commits.last()


@pytest.mark.parametrize("text", ["[]", "7", "{}", '{"format": "other", "version": 1}'])
def test_another_programs_json_is_refused(tmp_path: Path, text: str) -> None:
    commits = committed(tmp_path, 0)
    file_of(tmp_path, 0).write_text(text)
    with pytest.raises(FolderError, match="is another program's; check the path"):
        commits.last()


def test_a_manifest_of_a_newer_release_asks_for_an_upgrade(tmp_path: Path) -> None:
    commits = committed(tmp_path, 0)
    newer = commits_module.VERSION + 1
    rewritten(file_of(tmp_path, 0), version=newer, unheard_of=[1])
    with pytest.raises(FolderError, match=rf"format version {newer}, .*; upgrade Stentor"):
        commits.last()


def test_a_manifest_of_an_older_release_is_upgraded_step_by_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = committed(tmp_path, 1)
    rewritten(file_of(tmp_path, 1), version=0, seq="ten")
    with pytest.raises(FolderError, match="format version 0, which this Stentor cannot upgrade"):
        commits.last()
    monkeypatch.setitem(commits_module._UPGRADES, 0, lambda content: content | {"seq": 10})
    assert commits.last() == manifest(1)


def test_a_field_of_the_wrong_type_is_named(tmp_path: Path) -> None:
    commits = committed(tmp_path, 0)
    rewritten(file_of(tmp_path, 0), shards="two")
    with pytest.raises(FolderError, match=r"is damaged: Expected `int`, got `str` .*shards"):
        commits.last()


def test_a_full_disk_while_committing_says_so_and_leaves_the_last_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = committed(tmp_path, 0)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(FolderError, match="No space left on device; free some space"):
            commits.commit(manifest(1))
    assert [file.name for file in (tmp_path / "manifests").iterdir()] == [f"{0:020d}.json"]
    commits.commit(manifest(1))
    assert commits.last() == manifest(1)


def test_a_second_writer_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    with (
        lock_folder(tmp_path / "new"),
        pytest.raises(FolderError, match=f"written by process {os.getpid()} on .* since .*stop"),
    ):
        lock_folder(tmp_path / "new")
    lock_folder(tmp_path / "new").release()


def test_a_file_is_no_folder_to_hold(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="is a file; give a folder"):
        lock_folder(tmp_path / "file")


def test_a_folder_is_free_again_when_its_holder_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time, pathlib; from stentor.pipeline.storage.writers import lock_folder\n"
        "lock = lock_folder(pathlib.Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(FolderError, match=f"process {holder.pid} on"):
            lock_folder(tmp_path)
        holder.send_signal(signal.SIGKILL)
    lock_folder(tmp_path).release()


def test_a_holder_that_has_not_written_its_name_yet_is_another_process(tmp_path: Path) -> None:
    with lock_folder(tmp_path):
        (tmp_path / "lock").write_text("")
        with pytest.raises(FolderError, match="written by another process"):
            lock_folder(tmp_path)


def test_every_failpoint_is_registered_once_and_used() -> None:
    used: set[str] = set()
    for source in SOURCES.rglob("*.py"):
        text = source.read_text()
        used |= set(re.findall(r'failpoint\("([^"]+)"\)', text))
        for step in re.findall(r'put_if_absent\(.*step="([^"]+)"', text):
            used |= {f"{step}-written", f"{step}-linked"}
    assert sorted(used) == sorted(FAILPOINTS)
