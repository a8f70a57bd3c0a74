"""Files that appear whole or not at all."""

import os
import stat
from contextlib import suppress

import pytest

from stentor import _files
from stentor._files import PARTIAL, put_if_absent, replace, replaced
from stentor.errors import FolderError


def test_only_the_first_puts_a_file_and_nothing_is_left_beside_it(tmp_path):
    file = tmp_path / "a"
    stages = []
    assert put_if_absent(file, b"one", reached=stages.append)
    assert not put_if_absent(file, b"two", reached=stages.append)
    assert stages == ["written", "linked", "written"]
    assert file.read_bytes() == b"one"
    assert [*tmp_path.iterdir()] == [file]


def test_a_file_that_is_replaced_is_the_old_one_or_the_new_one(tmp_path):
    file = tmp_path / "a"
    replace(file, b"one")
    file.chmod(0o640)
    with suppress(KeyError), replaced(file) as partial:
        partial.write_bytes(b"half")
        assert partial.name.endswith(PARTIAL)
        raise KeyError
    assert file.read_bytes() == b"one"
    assert [*tmp_path.iterdir()] == [file]
    replace(file, b"two")
    assert file.read_bytes() == b"two"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [*tmp_path.iterdir()] == [file]


@pytest.mark.parametrize("write", [put_if_absent, replace])
@pytest.mark.parametrize(
    ("number", "advice"), [(28, "free some space"), (30, "choose a folder that can be written")]
)
def test_what_the_system_refuses_is_explained(tmp_path, monkeypatch, write, number, advice):
    def refuse(_):
        raise OSError(number, os.strerror(number))

    file = tmp_path / "a"
    with monkeypatch.context() as patched:
        patched.setattr(_files.os, "fsync", refuse)
        with pytest.raises(FolderError, match=f"cannot write .*a: .*; {advice}"):
            write(file, b"one")
    assert [*tmp_path.iterdir()] == []


def test_where_there_is_no_folder_no_file_can_be(tmp_path):
    for write in (put_if_absent, replace):
        with pytest.raises(FolderError, match="No such file"):
            write(tmp_path / "none" / "a", b"")
