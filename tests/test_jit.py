"""Kernels compile, are kept where that is safe, never go stale, and work without any of it."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from stentor import _jit
from stentor._cache import user_cache

HASH_SOMETHING = """
import numpy as np
from stentor.encoding.hashing import BASIS, hash_bytes, hash_slice
data = np.frombuffer(b"ipad", np.uint8)
assert int(hash_slice(data, 0, 4, np.uint64(BASIS))) == hash_bytes(b"ipad")
"""
ANNOUNCE = "from stentor._jit import announce_compilation as say; say('stentor.encoding')"
ANNOUNCE += "; say('stentor.encoding')"


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What *code* prints in a process of its own."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=inherited | {"STENTOR_QUIET": "0"} | environment,
        check=True,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of kernels: `walk` calls one of `hashing` and takes a constant from `layout`."""
    sources = {
        "__init__.py": "",
        "cli.py": "from parcel import walk",
        "names.py": "EMPTY = -1",
        "layout.py": "from parcel.names import EMPTY",
        "hashing.py": "@kernel\ndef mix(value): return value * 3",
        "index/__init__.py": "",
        "index/walk.py": "import parcel.hashing\nfrom parcel import (\n    layout,\n)\n@kernel",
    }
    folder = tmp_path / "parcel"
    (folder / "index").mkdir(parents=True)
    for name, source in sources.items():
        (folder / name).write_text(source)
    return folder


def digest(package: Path, module: str = ".index.walk") -> str:
    return _jit.kernel_digest(_jit.read_sources(package), module)


@pytest.mark.parametrize("name", ["hashing.py", "index/walk.py", "layout.py", "names.py"])
def test_the_digest_changes_with_kernels_and_with_what_they_import(
    package: Path, name: str
) -> None:
    before = digest(package)
    assert digest(package) == before
    with (package / name).open("a") as file:
        file.write("\n# changed")
    assert digest(package) != before


def test_the_digest_ignores_what_its_kernels_cannot_see(package: Path) -> None:
    before = digest(package), digest(package, ".hashing")
    (package / "cli.py").write_text("print('changed')")
    (package / "index/notes.txt").write_text("@kernel")
    (package / "more.py").write_text("fast = kernel(slow)")
    assert (digest(package), digest(package, ".hashing")) == before
    with (package / "layout.py").open("a") as file:
        file.write("\n# changed")
    assert digest(package) != before[0]
    assert digest(package, ".hashing") == before[1]


def test_the_digest_changes_with_numba(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(package)
    monkeypatch.setattr(numba, "__version__", "99.0")
    assert digest(package) != before


def test_compilation_is_announced_once_and_only_where_nothing_is_cached(tmp_path: Path) -> None:
    home = str(tmp_path)
    cold = run(ANNOUNCE, XDG_CACHE_HOME=home, LOCALAPPDATA=home)
    assert cold.stdout == ""
    assert cold.stderr.startswith("stentor: compiling matching kernels for this machine (once")
    assert cold.stderr.count("\n") == 1
    assert home in cold.stderr

    assert run(ANNOUNCE, XDG_CACHE_HOME=home, LOCALAPPDATA=home, STENTOR_QUIET="1").stderr == ""
    assert run(ANNOUNCE, XDG_CACHE_HOME=home, LOCALAPPDATA=home, NUMBA_DISABLE_JIT="1").stderr == ""
    run(HASH_SOMETHING, XDG_CACHE_HOME=home, LOCALAPPDATA=home)
    assert run(ANNOUNCE, XDG_CACHE_HOME=home, LOCALAPPDATA=home).stderr == ""
    others = ANNOUNCE.replace(".encoding", ".index.scan")
    assert "compiling" in run(others, XDG_CACHE_HOME=home, LOCALAPPDATA=home).stderr


def test_kernels_work_where_no_cache_can_be_written(tmp_path: Path) -> None:
    # Below a file no folder can be made, whoever runs the tests.
    blocked = tmp_path / "file"
    blocked.write_text("")
    code = f"""
import tempfile
tempfile.tempdir = {str(blocked / "temporary")!r}
from stentor import _jit
from stentor._cache import user_cache
assert _jit.cache_folder() is None
_jit.announce_compilation("stentor.encoding")
{HASH_SOMETHING}
assert not hash_slice.stats.cache_path
"""
    result = run(code, XDG_CACHE_HOME=str(blocked / "cache"), LOCALAPPDATA=str(blocked / "cache"))
    assert "in every process" in result.stderr


def test_kernels_work_without_the_compiler() -> None:
    run(HASH_SOMETHING + "assert not hasattr(hash_slice, 'py_func')", NUMBA_DISABLE_JIT="1")


def test_the_users_own_numba_folder_is_respected_and_left_alone(tmp_path: Path) -> None:
    code = HASH_SOMETHING + "import numba; print(numba.config.CACHE_DIR)"
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)).stdout.strip() == str(tmp_path)
    assert list(tmp_path.glob("stentor/kernels/*/*/*.nbc"))


def test_numbas_settings_are_as_before_when_kernels_are_imported(tmp_path: Path) -> None:
    code = "import numba, stentor.encoding.hashing; print(repr(numba.config.CACHE_DIR))"
    assert run(code, XDG_CACHE_HOME=str(tmp_path)).stdout == "''\n"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has no mode bits")
def test_a_folder_that_others_can_write_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = _jit.cache_folder.__wrapped__
    monkeypatch.setattr(_jit._CONFIG, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    in_home = find()
    assert in_home.parent == tmp_path / "home" / "stentor"
    assert in_home.stat().st_mode & 0o777 == 0o700

    in_home.chmod(0o777)
    in_shared = find()
    assert in_shared.parent == tmp_path
    assert in_shared.stat().st_mode & 0o777 == 0o700

    elsewhere = tmp_path / "elsewhere"
    in_shared.rename(elsewhere)
    in_shared.symlink_to(elsewhere)
    assert find() is None


def test_a_relative_cache_home_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("LOCALAPPDATA", "cache")
    assert user_cache().is_absolute()


def test_folding_text_needs_neither_numpy_nor_numba() -> None:
    run(
        "import sys, stentor, stentor.language.terms\n"
        "assert not {'numpy', 'numba', 'pyarrow'} & set(sys.modules)"
    )
