"""The one decorator of all kernels: compiled by Numba, kept on disk, correct without either.

Numba's disk cache notices a change only in the file that holds a function; a kernel that calls
another file's kernel, or reads its constants, would go stale. Each module's kernels are therefore
kept in a folder named by a digest of all sources that it imports and of the processor: new sources,
new folder; the same sources installed elsewhere, the same folder. Folders that nothing has used for
a month are removed.

A kernel is plain Python, too. What is done in a `plainly` block runs so, and compiles nothing.

Importing this module imports Numba, so only modules that hold kernels import it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numba
import numpy as np
from llvmlite import binding
from numba.core import types
from numba.core.extending import _Intrinsic
from numba.core.registry import CPUDispatcher

from stentor._cache import is_private, private_folder, shared_folder

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_PACKAGE = Path(__file__).parent
_CONFIG: Any = numba.config  # its attributes are made at run time
_NJIT: Any = numba.njit  # it has more options than its types say
_LLVM: Any = binding  # it has no types
_TYPES: Any = types  # nor have these
_SAID = "STENTOR_COMPILING"  # in the environment, which processes that are started inherit
_BESIDE: dict[str, Path | None] = {}  # other packages, and where their kernels are kept
_DECORATING = threading.Lock()  # threads may import kernels at the same time
_KERNELS: list[Any] = []  # all that this process has met
_UNSEEN = {".errors"}  # modules of which nothing is compiled
_MONTH = 30 * 24 * 3600.0


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile *function* when it is first called, without the GIL; later processes load it.

    A kernel only borrows the arrays that it is handed: it must neither allocate nor return one.
    Numba would count references to each of them, and to every slice, with atomic operations: 20 to
    40 times the cost of testing a predicate. So counting is switched off.

    With ``NUMBA_DISABLE_JIT=1`` it runs as plain Python.
    """
    return _compiled(function)


def inner_kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A kernel that only kernels call: without an entry point for Python it compiles faster."""
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def kernel_inline(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A part that is copied into each kernel that calls it.

    Handing a few dozen arrays over takes longer than testing a predicate.
    """
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)


def direct(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The kernel *function*, called without looking the types of its arguments up.

    For eighty arrays that takes 10 µs, and handing them over 2. Whoever calls it sees to it that
    they are of the same types each time: Numba would not notice.
    """
    entry: Callable[..., Any] | None = None

    @functools.wraps(function)
    def call(*arguments: Parameters.args, **_: Parameters.kwargs) -> Any:
        nonlocal entry
        if entry is not None:
            return entry(*arguments)
        result = function(*arguments, **_)
        signatures = getattr(function, "overloads", {})
        if len(signatures) == 1:
            entry = next(iter(signatures.values())).entry_point
        return result

    return call


def instruction(
    plain: Callable[Parameters, Result], compiled: Callable[..., Any]
) -> Callable[Parameters, Result]:
    """An instruction of the processor for kernels: *compiled* writes it, *plain* does the same."""
    if _CONFIG.DISABLE_JIT:
        return plain
    made: Any = _Instruction(plain.__name__, compiled)
    made.plain = plain
    made._register()
    taken: Callable[Parameters, Result] = made
    return taken


class _Instruction(_Intrinsic):  # type: ignore[misc]  # Numba has no types
    plain: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        return self.plain(*arguments)


def _compiled(
    function: Callable[Parameters, Result], **options: bool
) -> Callable[Parameters, Result]:
    if _CONFIG.DISABLE_JIT:
        # Compiled numbers overflow in silence; interpreted NumPy scalars would warn.
        return np.errstate(all="ignore")(function)
    # The digest knows this package's sources only, under their own names, and those of `_BESIDE`.
    package = function.__module__.partition(".")[0]
    beside = _BESIDE.get(package)
    folder = beside and beside / function.__module__
    if package == __package__:
        folder = _module_folder(function.__module__)
    compiled: Callable[Parameters, Result]
    with _DECORATING:
        before = _CONFIG.CACHE_DIR, _CONFIG.CACHE_LOCATOR_CLASSES
        try:
            # Numba chooses a function's cache file while decorating, so this is long enough.
            if folder is not None:
                _CONFIG.CACHE_DIR = str(folder)
                _CONFIG.CACHE_LOCATOR_CLASSES = f"{__name__}.{KernelLocator.__name__}"
            cached = folder is not None
            compiled = _NJIT(cache=cached, nogil=True, _nrt=False, **options)(function)
        finally:
            _CONFIG.CACHE_DIR, _CONFIG.CACHE_LOCATOR_CLASSES = before
        _KERNELS.append(compiled)
        compiled.__class__ = _SwitchableKernel if _PLAIN_ALLOWED else _Kernel
    return compiled


class _Kernel(CPUDispatcher):
    """Numba's own, compiled once for all that kernels hand it.

    To Numba a number that is written down, one of 32 bits and one of 64 are three types, and a
    kernel that is called with each of them is compiled three times. Here all are of 64 bits.
    """

    def get_call_template(self, given: Any, named: Any) -> Any:
        """How a kernel calls this one with arguments of these types."""
        named = {name: _widened(one) for name, one in named.items()}
        return super().get_call_template([_widened(one) for one in given], named)


def _widened(one: Any) -> Any:
    """The type by which an argument of the type *one* is handed over."""
    plain = _TYPES.unliteral(one)
    return _TYPES.int64 if isinstance(plain, _TYPES.Integer) and plain.signed else plain


class _Mode(threading.local):
    is_plain = False


_MODE = _Mode()
_PLAIN_ALLOWED: set[object] = set()  # who may still use `plainly`


class _SwitchableKernel(_Kernel):
    """A kernel that looks at each call whether it is to run plain; that makes calls slower."""

    def __call__(self, *arguments: Any) -> Any:
        if _MODE.is_plain:
            return self.py_func(*arguments)
        return super().__call__(*arguments)


def allow_plain(who: object) -> None:
    """Allow `plainly` blocks until *who* calls `end_plain`."""
    with _DECORATING:
        _PLAIN_ALLOWED.add(who)
        for one in _KERNELS:
            one.__class__ = _SwitchableKernel


def end_plain(who: object) -> None:
    """Undo `allow_plain`; kernels are called at full speed again when nobody is left."""
    with _DECORATING:
        _PLAIN_ALLOWED.discard(who)
        if not _PLAIN_ALLOWED:
            for one in _KERNELS:
                one.__class__ = _Kernel


@contextmanager
def plainly(is_wanted: bool = True) -> Iterator[None]:
    """Within the block this thread's kernels run as plain Python: nothing is compiled or loaded.

    Plain kernels are some hundred times as slow, and do the same: they are the same text. Only
    after `allow_plain` may it be used.
    """
    before, _MODE.is_plain = _MODE.is_plain, is_wanted
    try:
        with np.errstate(all="ignore") if is_wanted else nullcontext():  # as compiled ones do
            yield
    finally:
        _MODE.is_plain = before


def is_plain() -> bool:
    """Whether this thread is in a `plainly` block."""
    return _MODE.is_plain


def keep_kernels_of(package: Path) -> None:
    """Let the kernels of *package*, which calls this one's, be kept on disk, too.

    Under a digest of all sources of both: new sources of either, and all of them are compiled anew.
    """
    folder = cache_folder()
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=10)
    for text in (read_sources(package).text, _own_sources().text):
        for name in sorted(text):
            digest.update(name.encode() + b"\0" + hashlib.blake2b(text[name]).digest())
    _BESIDE[package.name] = folder and folder / digest.hexdigest()


class KernelLocator:
    """Tells Numba to keep a kernel in its module's folder, wherever the package is installed."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._folder = _CONFIG.CACHE_DIR
        self._py_file = file  # Numba names it when a cache entry cannot be read
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> KernelLocator:
        """The locator of *function*; its folder is made when something is kept."""
        return cls(function, file)

    def get_cache_path(self) -> str:
        """The folder that holds the kernels of this module."""
        return str(self._folder)

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        Path(self._folder).mkdir(parents=True, exist_ok=True)

    def get_source_stamp(self) -> str:
        """Nothing: the folder's name is a digest of the sources already."""
        return ""

    def get_disambiguator(self) -> str:
        """The line: a file may have a name twice."""
        return str(self._line)


@functools.cache
def announce_compilation(package: str, by_child: bool = False) -> None:
    """Say on stderr that kernels of *package* are about to be compiled, if they are.

    Once in a run, by the first process that compiles: processes that it starts inherit a note of
    it in their environment. What is compiled *by_child*, while this process goes on, is said once
    for the cache: it may take longer than this process and the next ones. Silent where the cache
    holds some of them, with the JIT off, and with ``STENTOR_QUIET=1``.
    """
    if _CONFIG.DISABLE_JIT or is_quiet() or os.environ.get(_SAID) == "1":
        return
    folder = cache_folder()
    inner = package.removeprefix(__package__ or "")
    modules = [name for name in _own_sources().text if f"{name}.".startswith(f"{inner}.")]
    if folder is None:
        detail = "in every process, 15 to 60 s: no cache folder can be written"
    elif any(any((folder / _digest_of(name)).rglob("*.nbc")) for name in modules):
        return
    else:
        detail = f"once for each structure, 15 to 60 s; cached in {folder}"
    os.environ[_SAID] = "1"
    if by_child and folder is not None and not _is_first(folder, package, modules):
        return
    print(f"stentor: compiling matching kernels for this machine ({detail})", file=sys.stderr)


def _is_first(folder: Path, package: str, modules: list[str]) -> bool:
    """Whether nobody has asked this before of these *modules* and the cache *folder*."""
    digest = hashlib.blake2b("".join(map(_digest_of, modules)).encode(), digest_size=10)
    try:
        (folder / f"{package}-{digest.hexdigest()}.said").touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:  # a full disk
        return True
    return True


def is_quiet() -> bool:
    """Whether the user wants no messages about kernels."""
    return os.environ.get("STENTOR_QUIET") == "1"


@functools.cache
def cache_folder() -> Path | None:
    """The folder that holds compiled kernels; None where no safe folder can be written."""
    name = "kernels"
    if _CONFIG.CACHE_DIR:
        own = Path(_CONFIG.CACHE_DIR, "stentor")  # in a folder that others may use, too
        return own / name if is_private(own) and is_private(own / name) else shared_folder(name)
    return private_folder(name)


def is_compiled(package: str, *others: str) -> bool:
    """Whether all kernels of *package* are in the cache, and those that it shares.

    *others* are packages beside it, of which it needs nothing. Cost: about a millisecond.
    """
    note = _note(package, others)
    if note is None or not note.exists():
        return bool(_CONFIG.DISABLE_JIT)
    _mark_used(note)
    return True


def note_compiled(package: str, *others: str) -> None:
    """Make `is_compiled` true from now on, in all processes; remove what is unused."""
    note, folder = _note(package, others), cache_folder()
    if note is not None and folder is not None:
        with suppress(OSError):
            note.touch()
        remove_unused(folder, time.time())


def _note(package: str, others: tuple[str, ...]) -> Path | None:
    """The file that says that the kernels of *package* are compiled, by what they depend on."""
    folder = cache_folder()
    if folder is None:
        return None
    digest = hashlib.blake2b(sys.implementation.cache_tag.encode(), digest_size=10)
    left_out = tuple(f"{other}.".removeprefix(__package__ or "") for other in others)
    for name, text in sorted(_own_sources().text.items()):
        if b"\n@kernel" in text and not f"{name}.".startswith(left_out):
            digest.update(_digest_of(name).encode())
    return folder / f"{package}-{digest.hexdigest()}"


@functools.cache
def _module_folder(module: str) -> Path | None:
    """Where the kernels of *module* are kept."""
    folder = cache_folder()
    if folder is None:
        return None
    own = folder / _digest_of(module.removeprefix(__package__ or ""))
    _mark_used(own)
    return own


def _mark_used(path: Path) -> None:
    """Keep *path*, if it exists, from `remove_unused`; written to disk at most once a day."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > _MONTH / 30:
            os.utime(path)


def remove_unused(folder: Path, now: float) -> None:
    """Remove what nobody has used for a month from *folder*, which holds compiled kernels.

    Processes may do it at the same time, and while others compile: a folder is renamed before it is
    removed, and a process that misses a file compiles it again.
    """
    for entry in list(folder.iterdir()):
        with suppress(OSError):
            if now - entry.stat().st_mtime <= _MONTH:
                continue
            if entry.is_dir():
                # It keeps its age: where this process ends before all is gone, the next goes on.
                gone = entry.with_name(f"gone-{entry.name.removeprefix('gone-')}")
                entry.rename(gone)
                shutil.rmtree(gone, ignore_errors=True)
            else:
                entry.unlink()


@functools.cache
def _digest_of(module: str) -> str:
    return kernel_digest(_own_sources(), module)


@functools.cache
def _own_sources() -> Sources:
    return read_sources(_PACKAGE)


class Sources(NamedTuple):
    """The modules below a package, by their names from there on: `.encoding.hashing`."""

    text: dict[str, bytes]
    imports: dict[str, set[str]]  # what each imports from the package
    digest: dict[str, bytes]  # of each text


def read_sources(package: Path) -> Sources:
    """All modules of *package*. Cost: about 10 ms for three hundred."""
    text = {}
    for folder, _, files in os.walk(package):
        parent = folder.removeprefix(str(package)).replace(os.sep, ".")
        for file in files:
            if file.endswith(".py"):
                text[f"{parent}.{file[:-3]}"] = Path(folder, file).read_bytes()
    imports = {name: _imports(source, package.name) for name, source in text.items()}
    digest = {name: hashlib.blake2b(source).digest() for name, source in text.items()}
    return Sources(text, imports, digest)


def kernel_digest(sources: Sources, module: str) -> str:
    """A name for what can reach code compiled in *module*, for Numba's version and the processor.

    That is its own text and all that it imports: constants and the order of a tuple's fields are
    compiled in. Errors are not: no kernel raises one.
    """
    reached = [module]
    seen = {module, *_UNSEEN}
    for name in reached:  # grows while it is walked
        fresh = sources.imports[name] & sources.text.keys() - seen
        reached += fresh
        seen |= fresh
    digest = hashlib.blake2b(f"{numba.__version__} {processor()}".encode(), digest_size=10)
    for name in sorted(reached):
        digest.update(name.encode() + b"\0" + sources.digest[name])
    return digest.hexdigest()


@functools.cache
def processor() -> str:
    """The processor that kernels are compiled for, with its features, as Numba names it."""
    name = _CONFIG.CPU_NAME or _LLVM.get_host_cpu_name()
    features = _CONFIG.CPU_FEATURES
    if features is None:
        try:
            features = _LLVM.get_host_cpu_features().flatten()
        except RuntimeError:  # of a processor that LLVM does not know
            features = ""
    return f"{name} {features} {bool(_CONFIG.ENABLE_AVX)}"


def _imports(source: bytes, package: str) -> set[str]:
    """Names below *package* that *source* imports, and some that are no modules."""
    # After `from` or `import`; a mention in prose is one module too many, which does no harm.
    statement = rf" {package}([\w.]*)(?: import (\([^)]*\)|.*))?"
    found = set()
    for module, names in re.findall(statement.encode(), source):
        parent = module.decode()
        found |= {parent, f"{parent}.__init__"}
        found |= {f"{parent}.{name.decode()}" for name in re.findall(rb"\w+", names)}
    return found
