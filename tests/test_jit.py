"""Kernels compile, are kept where that is safe, never go stale, and work without any of it."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import numpy as np
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
        env=inherited | {"STENTOR_QUIET": "0", "STENTOR_COMPILING": ""} | environment,
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
        "errors.py": "class OwnError(Exception): ...",
        "layout.py": "from parcel.errors import OwnError\nfrom parcel.names import EMPTY",
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
    (package / "errors.py").write_text("class OwnError(ValueError): ...")
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


def test_the_digest_changes_with_the_processor(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digest(package)
    avx = not _jit._CONFIG.ENABLE_AVX
    for setting, value in (("CPU_NAME", "other"), ("CPU_FEATURES", "-avx"), ("ENABLE_AVX", avx)):
        with monkeypatch.context() as patch:
            patch.setattr(_jit._CONFIG, setting, value)
            _jit.processor.cache_clear()
            assert digest(package) != before
    _jit.processor.cache_clear()
    assert digest(package) == before


def test_what_nothing_has_used_for_a_month_is_removed(tmp_path: Path) -> None:
    now = 2e9
    for name, days in (("old", 31), ("gone-half", 31), ("young", 29)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel.nbc").write_bytes(b"code")
        os.utime(tmp_path / name, (now, now - days * 24 * 3600))
    for name, days in (("note-old", 31), ("note-young", 1)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (now, now - days * 24 * 3600))
    _jit.remove_unused(tmp_path, now)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["note-young", "young"]
    _jit.remove_unused(tmp_path, now)


def test_what_is_used_is_not_old(tmp_path: Path) -> None:
    os.utime(tmp_path, (0, 0))
    _jit._mark_used(tmp_path)
    assert tmp_path.stat().st_mtime > 1e9
    _jit._mark_used(tmp_path / "not there")


def test_a_note_says_that_kernels_are_compiled_until_one_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_jit, "cache_folder", lambda: tmp_path)
    scan, others = "stentor.index.scan", ("stentor.index.mics", "stentor.covering")
    assert not _jit.is_compiled(scan, *others)
    _jit.note_compiled(scan, *others)
    assert _jit.is_compiled(scan, *others)
    assert not _jit.is_compiled("stentor.index.mics", scan)

    def changed(module: str) -> bool:
        with monkeypatch.context() as patch:
            right = _jit._digest_of
            patch.setattr(_jit, "_digest_of", lambda name: right(name) + "!" * (name == module))
            return not _jit.is_compiled(scan, *others)

    assert changed(".encoding.hashing")
    assert changed(".index.scan.match")
    assert not changed(".index.mics.postings")


def test_plain_kernels_do_what_compiled_ones_do() -> None:
    code = """
from stentor import _jit
from stentor._intrinsics import trailing_zeros
_jit.allow_plain("test")
with _jit.plainly():
    import numpy as np
    from stentor.encoding.hashing import BASIS, hash_bytes, hash_slice
    data = np.frombuffer(b"ipad", np.uint8)
    assert int(hash_slice(data, 0, 4, np.uint64(BASIS))) == hash_bytes(b"ipad")
    assert trailing_zeros(np.uint64(8)) == 3
    assert not hash_slice.signatures
assert int(hash_slice(data, 0, 4, np.uint64(BASIS))) == hash_bytes(b"ipad")
assert len(hash_slice.signatures) == 1
_jit.end_plain("test")
assert type(hash_slice) is _jit._Kernel
"""
    run(code)


def test_a_kernel_is_compiled_once_for_numbers_of_all_widths() -> None:
    code = """
import numpy as np
from stentor._jit import kernel, inner_kernel
def add(one, other): return one + other
add = inner_kernel(add)
def sums(numbers): return add(1, numbers[0]) + add(numbers[0], 2) + add(int(numbers[0]), 3)
sums = kernel(sums)
assert sums(np.array([2**31 - 1], np.int32)) == 3 * (2**31 - 1) + 6
assert len(add.signatures) == 1
"""
    run(code)


def test_the_digest_does_not_depend_on_the_folder(package: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / package.name
    shutil.copytree(package, elsewhere)
    assert digest(elsewhere) == digest(package)


def test_a_copy_installed_elsewhere_loads_what_was_compiled(tmp_path: Path) -> None:
    shutil.copytree(Path(_jit.__file__).parent, tmp_path / "copy" / "stentor")
    cache = {"XDG_CACHE_HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path)}
    run(HASH_SOMETHING, **cache)
    loaded = (
        HASH_SOMETHING + "assert hash_slice.stats.cache_hits and not hash_slice.stats.cache_misses"
    )
    run("import sys; sys.path.insert(0, " + repr(str(tmp_path / "copy")) + ")" + loaded, **cache)


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


def test_compilation_is_announced_once_in_a_run_whatever_is_compiled(tmp_path: Path) -> None:
    home = str(tmp_path)
    others = ANNOUNCE.replace(".encoding", ".index.scan").replace("say;", "say;say('stentor.cli');")
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ANNOUNCE!r}])"
    told = run(f"{others}\n{ANNOUNCE}\n{child}", XDG_CACHE_HOME=home, LOCALAPPDATA=home).stderr
    assert told.count("compiling") == 1


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
    assert list(tmp_path.glob("stentor/kernels/*/*.nbc"))


def test_numbas_settings_are_as_before_when_kernels_are_imported(tmp_path: Path) -> None:
    code = "import numba, stentor.encoding.hashing; print(repr(numba.config.CACHE_DIR))"
    assert run(code, XDG_CACHE_HOME=str(tmp_path)).stdout == "''\n"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has no mode bits")
@pytest.mark.parametrize("open_to_all", ["stentor", "stentor/kernels"])
def test_a_numba_folder_that_others_can_write_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_to_all: str
) -> None:
    find = _jit.cache_folder.__wrapped__
    monkeypatch.setattr(_jit._CONFIG, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert find() == tmp_path / "stentor/kernels"
    (tmp_path / open_to_all).chmod(0o777)
    assert find() == tmp_path / f"stentor-{os.getuid()}-kernels"
    (tmp_path / open_to_all).chmod(0o700)
    assert find() == tmp_path / "stentor/kernels"
    (tmp_path / "stentor").rename(tmp_path / "elsewhere")
    (tmp_path / "stentor").symlink_to("elsewhere")
    assert find() == tmp_path / f"stentor-{os.getuid()}-kernels"


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


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_numba_still_has_the_private_option_that_switches_counting_of_references_off() -> None:
    def compiled(**options: bool) -> str:
        own = numba.njit(**options)(lambda array: array[1:][0])
        own(np.zeros(2))
        (code,) = own.inspect_llvm().values()
        return str(code)

    advice = (
        f"Numba {numba.__version__} has no option _nrt=False any more, or heeds it no more: let "
        "pyproject.toml ask for an older one, or find another way in _jit.py"
    )
    assert "NRT_" in compiled(), "what is looked for has another name now"
    try:
        code = compiled(_nrt=False)
    except (KeyError, TypeError, numba.core.errors.NumbaError) as error:
        pytest.fail(f"{advice} ({error!r})")
    assert "NRT_" not in code, advice


def test_a_package_beside_keeps_its_kernels_until_a_source_of_either_changes(
    tmp_path: Path,
) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "__init__.py").write_text(
        "from pathlib import Path\nfrom stentor._jit import keep_kernels_of\n"
        "keep_kernels_of(Path(__file__).parent)\n"
    )
    (beside / "sums.py").write_text(
        "from stentor._jit import kernel\n@kernel\ndef doubled(one): return one + one\n"
    )
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from beside.sums import doubled
assert doubled(2) == 4
print(len(doubled.stats.cache_hits), doubled.stats.cache_path)
"""
    cache = {"XDG_CACHE_HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path)}
    first, second = (run(code, **cache).stdout.split() for _ in range(2))
    assert (first[0], second) == ("0", ["1", first[1]])
    (beside / "more.py").write_text("")
    hits, folder = run(code, **cache).stdout.split()
    assert hits == "0"
    assert folder != first[1]
