"""Arrays written to a folder, read back, cut off, damaged, replaced."""

import json
import os
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from stentor.errors import FolderError
from stentor.index.storage import arrays as storage
from stentor.index.storage import folders
from stentor.index.storage.arrays import new_folder, read_arrays, write_arrays

ARRAYS = {
    "low": np.array([1.5, np.nan, -np.inf]),
    "kind": np.arange(5, dtype=np.uint8),
    "position": np.arange(6, dtype=np.int64).reshape(3, 2),
    "none": np.zeros(0, np.int32),
    "no_rows": np.zeros((0, 3), np.float64),
    "scalar": np.array(7, np.int64),
}
META = {"schema": {"pris": "number", "størrelse": "string"}, "count": 3, "share": 0.2}


def saved(folder: Path, value: int = 0) -> Path:
    write_arrays(folder, {"a": np.array([value])}, kind="test", meta={"value": value})
    return folder


def value_in(folder: Path) -> int:
    arrays, meta = read_arrays(folder, kind="test", verify=True)
    assert arrays["a"].tolist() == [meta["value"]]
    return meta["value"]


def edit_manifest(folder: Path, change, *, seal: bool = True) -> None:
    """Change the manifest as a program that knows the format could, or (not sealed) an accident."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    change(manifest)
    if seal:
        manifest["sum"] = ""
        manifest["sum"] = storage._sum(json.dumps(manifest, separators=(",", ":")).encode())
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize("verify", [False, True])
def test_arrays_come_back_equal_mapped_and_read_only(tmp_path, verify):
    write_arrays(tmp_path / "x", ARRAYS, kind="test", meta=META)
    arrays, meta = read_arrays(tmp_path / "x", kind="test", verify=verify)
    assert meta == META
    assert list(arrays) == list(ARRAYS)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, ARRAYS[name])
        assert array.dtype == ARRAYS[name].dtype
        assert array.shape == ARRAYS[name].shape
        assert type(array) is np.ndarray
        assert not array.flags.writeable
        assert array.size == 0 or isinstance(array.base, np.memmap)


def test_an_array_in_another_order_of_memory_is_stored_row_by_row(tmp_path):
    turned = np.arange(6).reshape(2, 3).T
    write_arrays(tmp_path / "x", {"a": turned}, kind="test", meta={})
    array = read_arrays(tmp_path / "x", kind="test", verify=True)[0]["a"]
    np.testing.assert_array_equal(array, turned)
    assert array.flags.c_contiguous


def test_any_npy_reader_reads_the_files(tmp_path):
    write_arrays(tmp_path / "x", ARRAYS, kind="test", meta={})
    np.testing.assert_array_equal(np.load(tmp_path / "x" / "low.npy"), ARRAYS["low"])


@pytest.mark.parametrize("name", ["", "../a", "a/b", ".hidden", "ø"])
def test_a_name_that_is_no_plain_file_name_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="name a file"):
        write_arrays(tmp_path / "x", {name: np.zeros(1)}, kind="test", meta={})
    assert list(tmp_path.iterdir()) == []


def test_objects_are_refused(tmp_path):
    with pytest.raises(ValueError, match="plain dtype"):
        write_arrays(tmp_path / "x", {"a": np.array([object()])}, kind="test", meta={})
    assert list(tmp_path.iterdir()) == []


def test_replacing_a_folder_leaves_nothing_beside_it(tmp_path):
    folder = saved(saved(tmp_path / "x", 1), 2)
    assert value_in(folder) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_mapped_array_survives_the_replacement_of_its_folder(tmp_path):
    folder = saved(tmp_path / "x", 1)
    array = read_arrays(folder, kind="test")[0]["a"]
    saved(folder, 2)
    assert array.tolist() == [1]


def test_a_block_that_fails_leaves_the_old_folder(tmp_path):
    folder = saved(tmp_path / "x", 1)
    with pytest.raises(ValueError, match="name a file"), new_folder(folder) as fresh:
        write_arrays(fresh / "inner", {"": np.zeros(1)}, kind="test", meta={})
    assert value_in(folder) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_several_folders_are_replaced_together(tmp_path):
    for value in (1, 2):
        with new_folder(tmp_path / "x") as fresh:
            saved(fresh / "one", value)
            saved(fresh, 10 * value)
            saved(fresh / "two" / "three", -value)
    assert value_in(tmp_path / "x") == 20
    assert value_in(tmp_path / "x" / "one") == 2
    assert value_in(tmp_path / "x" / "two" / "three") == -2


def test_a_folder_within_one_that_was_cut_off_is_found(tmp_path):
    with new_folder(tmp_path / "x") as fresh:
        saved(fresh / "one", 1)
    (tmp_path / "x").rename(tmp_path / ".x.previous")
    assert value_in(tmp_path / "x" / "one") == 1
    saved(tmp_path / "x", 2)
    assert value_in(tmp_path / "x") == 2
    with pytest.raises(FolderError, match="no folder"):
        value_in(tmp_path / "x" / "one")


class Crash(BaseException):
    """The process ends here: no `except Exception` sees it, and nothing is tidied up."""


@pytest.mark.parametrize("exists", [False, True])
def test_a_crash_at_any_system_call_leaves_the_old_content_or_the_new(
    tmp_path, monkeypatch, exists
):
    """Fails the first call, then the second, …, until a save gets through."""
    calls, crash_at = 0, 0

    def crashing(real):
        def call(*arguments, **options):
            nonlocal calls
            if calls == crash_at:
                raise Crash
            calls += 1
            return real(*arguments, **options)

        return call

    seen = set()
    for attempt in range(1000):
        folder = tmp_path / str(attempt) / "x"
        if exists:
            saved(folder, 1)
        calls, crash_at = 0, attempt
        with monkeypatch.context() as patched:
            for owner, name in (
                (os, "fsync"),
                (Path, "open"),
                (Path, "mkdir"),
                (Path, "rename"),
                (Path, "write_bytes"),
            ):
                patched.setattr(owner, name, crashing(getattr(owner, name)))
            patched.setattr(folders.shutil, "rmtree", crashing(folders.shutil.rmtree))
            try:
                saved(folder, 2)
                crashed = False
            except Crash:
                crashed = True
        if exists or folder.exists():
            seen.add(value_in(folder))
        else:
            with pytest.raises(FolderError, match="no folder"):
                value_in(folder)
        saved(folder, 3)
        assert value_in(folder) == 3
        assert [path.name for path in folder.parent.iterdir()] == ["x"]
        if not crashed:
            break
    assert not crashed
    assert attempt > 8
    assert seen == ({1, 2} if exists else {2})


def test_a_folder_of_something_else_is_never_replaced(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"meow")
    with pytest.raises(FolderError, match="did not write it"):
        saved(tmp_path / "photos")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(FolderError, match="did not write it"):
        saved(tmp_path / "notes.txt")
    assert (tmp_path / "photos" / "cat.jpg").read_bytes() == b"meow"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "photos"]


def test_an_empty_folder_may_be_filled(tmp_path):
    (tmp_path / "x").mkdir()
    assert value_in(saved(tmp_path / "x", 5)) == 5


def test_a_missing_folder_and_a_foreign_one_are_told_apart(tmp_path):
    with pytest.raises(FolderError, match="there is no folder"):
        read_arrays(tmp_path / "x", kind="test")
    with pytest.raises(FolderError, match="another program"):
        read_arrays(tmp_path, kind="test")
    (tmp_path / "manifest.json").write_text('{"name": "a web page", "version": 3}')
    with pytest.raises(FolderError, match="another program"):
        read_arrays(tmp_path, kind="test")


def test_another_kind_is_refused(tmp_path):
    with pytest.raises(FolderError, match=r"holds 'test', expected 'engine'"):
        read_arrays(saved(tmp_path / "x"), kind="engine")


def test_a_newer_format_is_refused_with_advice(tmp_path):
    folder = saved(tmp_path / "x")
    edit_manifest(folder, lambda manifest: manifest.update(version=99, arrays="changed"))
    with pytest.raises(FolderError, match="upgrade Stentor"):
        read_arrays(folder, kind="test")
    edit_manifest(folder, lambda manifest: manifest.update(version=0))
    with pytest.raises(FolderError, match="cannot upgrade"):
        read_arrays(folder, kind="test")


def test_an_older_format_is_upgraded_step_by_step(tmp_path, monkeypatch):
    folder = saved(tmp_path / "x", 7)  # written by version 1
    monkeypatch.setattr(storage, "VERSION", 3)

    def doubled(kind, arrays, meta):
        assert kind == "test"
        return {"b": arrays["a"] * 2}, meta

    def renamed(kind, arrays, meta):
        assert kind == "test"
        return {"c": arrays["b"]}, {"new": meta["value"]}

    monkeypatch.setattr(storage, "_UPGRADES", {1: doubled, 2: renamed})
    arrays, meta = read_arrays(folder, kind="test")
    assert arrays["c"].tolist() == [14]
    assert meta == {"new": 7}
    monkeypatch.setattr(storage, "_UPGRADES", {1: doubled})
    with pytest.raises(FolderError, match="cannot upgrade"):
        read_arrays(folder, kind="test")


DAMAGES = {
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "empty": lambda path: path.write_bytes(b""),
    "gone": lambda path: path.unlink(),
    "no array": lambda path: path.write_bytes(b"x" * path.stat().st_size),
    "another dtype": lambda path: np.save(path, np.zeros(1)),
    "another shape": lambda path: path.write_bytes(path.read_bytes().replace(b"(1,)", b"(2,)")),
    "a pickle": lambda path: path.write_bytes(path.read_bytes().replace(b"<i8", b"|O8")),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_array_is_noticed_at_every_opening(tmp_path, damage):
    folder = saved(tmp_path / "x", 1)
    damage(folder / "a.npy")
    with pytest.raises(FolderError, match=r"damaged: .*a\.npy .*copy it again"):
        read_arrays(folder, kind="test")


def test_a_header_of_which_any_byte_is_changed_is_damaged_or_says_the_same(tmp_path):
    folder = saved(tmp_path / "x", 1)
    path = folder / "a.npy"
    content = path.read_bytes()
    changes = [(at, byte) for at in range(len(content) - 8) for byte in b"\0\x7f({'[x"]
    for at, byte in changes:
        path.write_bytes(content[:at] + bytes([byte]) + content[at + 1 :])
        with suppress(FolderError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy takes some for headers of Python 2
            assert read_arrays(folder, kind="test")[0]["a"].tolist() == [1]
    deep = content[:10] + b"(" * (len(content) - 10)
    path.write_bytes(deep)
    with pytest.raises(FolderError, match="cannot be read"):
        read_arrays(folder, kind="test")


def test_a_changed_byte_is_noticed_on_request(tmp_path):
    folder = saved(tmp_path / "x", 1)
    content = bytearray((folder / "a.npy").read_bytes())
    content[-8] = 9
    (folder / "a.npy").write_bytes(content)
    assert read_arrays(folder, kind="test")[0]["a"].tolist() == [9]
    with pytest.raises(FolderError, match="not those that were written"):
        read_arrays(folder, kind="test", verify=True)


def test_a_changed_manifest_is_noticed_at_every_opening(tmp_path):
    folder = saved(tmp_path / "x", 1)
    edit_manifest(folder, lambda manifest: manifest["meta"].update(value=2), seal=False)
    with pytest.raises(FolderError, match="not as it was written"):
        read_arrays(folder, kind="test")
    (folder / "manifest.json").write_text('{"format": "stentor", "version": 1, "kind": 5}')
    with pytest.raises(FolderError, match="damaged: manifest"):
        read_arrays(folder, kind="test")


def test_a_manifest_cannot_point_out_of_its_folder(tmp_path):
    saved(tmp_path / "secret", 1)
    folder = saved(tmp_path / "x", 1)
    edit_manifest(folder, lambda manifest: manifest["arrays"]["a"].update(file="../secret/a.npy"))
    with pytest.raises(FolderError, match="missing"):
        read_arrays(folder, kind="test")
