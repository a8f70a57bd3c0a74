"""The one decorator of all kernels: compiled by Numba, kept on disk, correct without either.

Numba's disk cache notices a change only in the file that holds a function; a kernel that calls
another file's kernel, or reads its constants, would go stale. Each module's kernels are therefore
kept in a folder named by a digest of all sources that it imports: new sources, new folder.

Importing this module imports Numba, so only modules that hold kernels import it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numba
import numpy as np

from stentor._cache import is_writable, private_folder, shared_folder

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_PACKAGE = Path(__file__).parent
_CONFIG: Any = numba.config  # its attributes are made at run time
_NJIT: Any = numba.njit  # it has more options than its types say
_DECORATING = threading.Lock()  # threads may import kernels at the same time


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile *function* when it is first called, without the GIL; later processes load it.

    A kernel only borrows the arrays that it is handed: it must neither allocate nor return one.
    Numba would count references to each of them, and to every slice, with atomic operations: 20 to
    40 times the cost of testing a predicate. So counting is switched off.

    With ``NUMBA_DISABLE_JIT=1`` it runs as plain Python.
    """
    return _compiled(function)


def kernel_part(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A kernel that only kernels call: without a way in from Python it compiles faster."""
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def kernel_inline(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A part that is copied into each kernel that calls it.

    Handing a few dozen arrays over takes longer than testing a predicate.
    """
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)


def _compiled(
    function: Callable[Parameters, Result], **options: bool
) -> Callable[Parameters, Result]:
    if _CONFIG.DISABLE_JIT:
        # Compiled integers wrap around in silence; interpreted NumPy scalars would warn.
        return np.errstate(over="ignore")(function)
    # The digest knows this package's sources only, under their own names.
    is_ours = function.__module__.partition(".")[0] == __package__
    folder = _module_folder(function.__module__) if is_ours else None
    compiled: Callable[Parameters, Result]
    with _DECORATING:
        before = _CONFIG.CACHE_DIR
        try:
            # Numba settles a function's cache file while decorating, so this is long enough.
            _CONFIG.CACHE_DIR = str(folder or before)
            cached = folder is not None
            compiled = _NJIT(cache=cached, nogil=True, _nrt=False, **options)(function)
        finally:
            _CONFIG.CACHE_DIR = before
    return compiled


@functools.cache
def announce_compilation(package: str) -> None:
    """Say on stderr, once, that kernels of *package* are about to be compiled, if they are.

    Silent where the cache holds some of them, with the JIT off, and with ``STENTOR_QUIET=1``.
    """
    if _CONFIG.DISABLE_JIT or os.environ.get("STENTOR_QUIET") == "1":
        return
    folder = cache_folder()
    inner = package.removeprefix(__package__ or "")
    modules = [name for name in _own_sources().text if f"{name}.".startswith(f"{inner}.")]
    if folder is None:
        detail = "in every process, 15 to 60 s: no cache folder can be written"
    elif any(any((folder / _digest_of(name)).rglob("*.nbc")) for name in modules):
        return
    else:
        detail = f"once, 15 to 60 s; cached in {folder}"
    print(f"stentor: compiling matching kernels for this machine ({detail})", file=sys.stderr)


@functools.cache
def cache_folder() -> Path | None:
    """The folder that holds compiled kernels; None where no safe folder can be written."""
    name = "kernels"
    if _CONFIG.CACHE_DIR:
        chosen_by_user = Path(_CONFIG.CACHE_DIR, "stentor", name)
        return chosen_by_user if is_writable(chosen_by_user) else shared_folder(name)
    return private_folder(name)


def _module_folder(module: str) -> Path | None:
    """Where the kernels of *module* are kept."""
    folder = cache_folder()
    return folder and folder / _digest_of(module.removeprefix(__package__ or ""))


@functools.cache
def _digest_of(module: str) -> str:
    return kernel_digest(_own_sources(), module)


@functools.cache
def _own_sources() -> Sources:
    return read_sources(_PACKAGE)


class Sources(NamedTuple):
    """The modules below a package, by their names from there on: `.encoding.hashing`."""

    package: Path
    text: dict[str, bytes]
    imports: dict[str, set[str]]  # what each imports from the package


def read_sources(package: Path) -> Sources:
    """All modules of *package*. Cost: about 10 ms for three hundred."""
    text = {}
    for folder, _, files in os.walk(package):
        parent = folder.removeprefix(str(package)).replace(os.sep, ".")
        for file in files:
            if file.endswith(".py"):
                text[f"{parent}.{file[:-3]}"] = Path(folder, file).read_bytes()
    imports = {name: _imports(source, package.name) for name, source in text.items()}
    return Sources(package, text, imports)


def kernel_digest(sources: Sources, module: str) -> str:
    """A name for what can reach code compiled in *module*, and for Numba's version.

    That is its own text and all that it imports: constants and the order of a tuple's fields are
    compiled in. The place counts too, as it does in Numba's cache.
    """
    reached = [module]
    seen = set(reached)
    for name in reached:  # grows while it is walked
        fresh = sources.imports[name] & sources.text.keys() - seen
        reached += fresh
        seen |= fresh
    digest = hashlib.blake2b(f"{numba.__version__}\0{sources.package}".encode(), digest_size=10)
    for name in sorted(seen):
        digest.update(name.encode() + b"\0" + hashlib.blake2b(sources.text[name]).digest())
    return digest.hexdigest()


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
