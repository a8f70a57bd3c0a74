"""The first answer at once: until kernels are compiled, a small engine runs them as plain Python.

Kernels are plain Python: the same text, so the same answers, some hundred times as slow as
compiled. For a few hundred subscriptions that is milliseconds, and compiling takes a minute. So a
child process compiles them into the cache meanwhile, and then they are taken from there. A large
engine waits for it. Where this process ends first, the child goes on without it for some minutes at
most (`warm.main`): a script that is short leaves compiled kernels to the next.

Where there is no cache, the child fails, or `STENTOR_WAIT=1` is set, kernels are compiled in this
process when they are first called.
"""

from __future__ import annotations

import atexit
import functools
import os
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from stentor._jit import (
    allow_plain,
    announce_compilation,
    cache_folder,
    end_plain,
    is_compiled,
    is_quiet,
    plainly,
)
from stentor.index.catalog import PACKED, is_for_few, structures

if TYPE_CHECKING:
    from stentor.engine.engine import Engine
    from stentor.index.contract import Index

COVERING: Final = "covering"
#: Subscriptions and live events, or records of a batch, from which an engine is large.
MANY: Final = 1000
#: Pairs of them that a batch may look at, plain; some 20 µs each.
MANY_PAIRS: Final = 100_000
#: Seconds in one call after which the next calls wait for kernels.
LONG: Final = 2.0
#: Set to 1 in the environment: kernels are compiled in the process that needs them.
WAIT: Final = "STENTOR_WAIT"
_SECONDS_BETWEEN = 5.0
#: The interpreter; a program that Python is embedded in is not started a second time.
_PYTHON = sys.executable if Path(sys.executable or "").name.startswith("python") else ""
_START = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from stentor.engine.warm import main
main()
"""


#: All of this process, to be left when it ends and to be forgotten in a fork.
_COMPILATIONS: list[Compilation] = []
_ENGINES: weakref.WeakSet[Engine] = weakref.WeakSet()


class Compilation:
    """A child process that compiles the kernels of a structure, or of covering, into the cache."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._packages = packages_of(name)
        self._lock = RLock()
        self._waiting = RLock()
        self._plain = 0  # blocks that run kernels plain
        self._process: subprocess.Popen[str] | None = None
        can_start = _PYTHON and os.environ.get(WAIT) != "1" and cache_folder() is not None
        self.is_over = not can_start or self.is_compiled()

    def is_compiled(self) -> bool:
        """Whether all kernels are in the cache."""
        return is_compiled(*self._packages)

    def begin(self, is_small: bool) -> bool:
        """Start it, if need be; whether kernels are to run plain until `end`. If not, wait."""
        if self.is_over:
            return False
        with self._lock:
            is_plain = self._is_running() and is_small
            self._plain += is_plain
        if not is_plain:
            self._wait()
        return is_plain

    def end(self) -> None:
        """Need plain kernels no longer."""
        with self._lock:
            self._plain -= 1
            self._is_running()

    def leave(self) -> None:
        """Let the child go on without this process, which ends."""
        process = self._process
        if process is not None and process.poll() is None:
            assert process.stdin is not None
            process.returncode = 0  # or Python would warn of it
            process.stdin.close()  # it notices
            if self._waiting.acquire(blocking=False):
                _close(process)

    def stop(self) -> None:
        """End the child."""
        process = self._process
        if process is not None and process.returncode is None:
            with suppress(OSError):
                process.kill()
                process.wait()
                _close(process)

    def forget(self) -> None:
        """In a process that was forked: the child is another's, and kernels are compiled here."""
        self._lock, self._waiting = RLock(), RLock()
        process, self._process = self._process, None
        self.is_over = True
        if process is not None:
            process.returncode = 0  # or it would be waited for
            _close(process)  # or the child would go on as long as this process
            end_plain(self)

    def is_running(self) -> bool:
        """Whether it goes on; it is started if need be."""
        with self._lock:
            return self._is_running()

    def _is_running(self) -> bool:
        """Whether it goes on, now that it was started; where it is over, nothing is left of it."""
        if not self.is_over and self._process is None:
            self._start()
        if self._process is not None and self._process.poll() is not None:
            self.is_over = True
            if self._waiting.acquire(blocking=False):  # nobody reads what it says
                _close(self._process)
                self._waiting.release()
        if self.is_over and not self._plain:
            end_plain(self)
        return not self.is_over

    def _start(self) -> None:
        try:
            self._process = subprocess.Popen(
                [_PYTHON, "-P", "-c", _START, str(Path(__file__).parents[2]), self._name],
                stdin=subprocess.PIPE,  # closed when this process ends, however that comes
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, WAIT: "1"},
                start_new_session=True,  # Ctrl-C is not meant for it
            )
        except OSError:
            self.is_over = True
        else:
            announce_compilation(self._packages[0], by_child=True)
            allow_plain(self)

    def _wait(self) -> None:
        """Wait until it is over, and show how it goes on."""
        with self._waiting:
            process = self._process
            if process is not None and process.poll() is None:
                assert process.stdout is not None
                with progress() as show:
                    while stage := process.stdout.readline():
                        show(stage.strip())
                process.wait()
        with self._lock:
            self._is_running()


def _close(process: subprocess.Popen[str]) -> None:
    """Give back the pipes of a child that is over, or another's."""
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with suppress(OSError):
            pipe.close()


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Says on standard error what is done: on a terminal in one line, else now and then."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    said = time.monotonic()

    def show(stage: str) -> None:
        nonlocal said
        if is_quiet() or sys.stderr is None:
            return
        if is_terminal:
            print(f"\r\033[Kstentor: compiled {stage}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - said > _SECONDS_BETWEEN:
            said = time.monotonic()
            print(f"stentor: compiled {stage}", file=sys.stderr, flush=True)

    yield show
    if is_terminal and not is_quiet():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


@contextmanager
def kernels(name: str, is_small: bool) -> Iterator[None]:
    """A block in which the kernels of *name* run: plain, where they are not compiled yet."""
    own = compilation(name)
    is_plain = own.begin(is_small)
    try:
        with plainly(is_plain):
            yield
    finally:
        if is_plain:
            own.end()


def are_ready(name: str) -> bool:
    """Whether the kernels of *name* are compiled; where they are not, that is begun."""
    own = compilation(name)
    return own.is_over or not own.is_running()


def is_outgrown(index: Index) -> bool:
    """Whether *index* is one for few, and that for many is compiled."""
    return is_for_few(index) and are_ready(PACKED)


class ColdLock:
    """The lock of an engine whose kernels are not compiled yet; what is done in it may run plain.

    When they are, the engine gets the lock within, and nothing is left of this one.
    """

    def __init__(self, engine: Engine, structure: str) -> None:
        self._engine = weakref.ref(engine)
        self._lock = RLock()
        self._depth = 0
        self._structure = structure
        self._running: AbstractContextManager[None] | None = None
        self._since = 0.0
        self._is_slow = False

    def __enter__(self) -> None:
        self._lock.acquire()
        if not self._depth:
            try:
                self._begin()
            except BaseException:
                self._lock.release()
                raise
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        try:
            if not self._depth:
                self._end()
        finally:
            self._lock.release()

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock, and do nothing in it."""
        return self._lock.acquire(blocking)

    def release(self) -> None:
        """Give back what `acquire` took."""
        self._lock.release()

    def expect(self, records: int) -> None:
        """Wait for kernels where so many records are too many to be dealt with plainly."""
        engine = self._engine()
        pairs = records * (records + (_size(engine) if engine else 0))
        if records > MANY or pairs > MANY_PAIRS:
            compilation(self._structure).begin(is_small=False)

    def _begin(self) -> None:
        engine = self._engine()
        assert engine is not None  # who else would take it
        self._running = kernels(self._structure, not self._is_slow and _size(engine) <= MANY)
        self._running.__enter__()
        self._since = time.thread_time()
        if compilation(self._structure).is_over and engine._lock is self:
            engine._lock = self._lock

    def _end(self) -> None:
        self._is_slow |= time.thread_time() - self._since > LONG
        running, self._running = self._running, None
        if running is not None:
            running.__exit__(None, None, None)


def lock_for(engine: Engine, structure: str) -> Any:
    """The lock of *engine*: what is done in it runs plain as long as that is best."""
    return RLock() if compilation(structure).is_over else ColdLock(engine, structure)


def expect(engine: Engine, records: Any) -> None:
    """Wait for kernels where *records*, a table or a list, are too many to do without."""
    lock = engine._lock
    if isinstance(lock, ColdLock):
        try:
            lock.expect(len(records))
        except TypeError:  # as many as there will be
            lock.expect(MANY + 1)


def watch_forks(engine: Engine) -> None:
    """In a process that is forked: let *engine* go on without what another thread was doing."""
    _ENGINES.add(engine)


def _size(engine: Engine) -> int:
    state = engine._raw_state
    return len(state.subscribers.ids) + int(state.index.live.current_count)


@functools.cache
def compilation(name: str) -> Compilation:
    """The one of this process for *name*."""
    made = Compilation(name)
    _COMPILATIONS.append(made)
    return made


def packages_of(name: str) -> list[str]:
    """The package of a structure, or of covering, and those whose kernels it does not need."""
    known = {**structures(), COVERING: "stentor.covering"}
    return [known.pop(name), *known.values()]


def stop_all() -> None:
    """End all children of this process: what they write to is about to be removed."""
    for one in _COMPILATIONS:
        one.stop()


def _leave_all() -> None:
    for one in _COMPILATIONS:
        one.leave()


def _after_fork() -> None:
    for one in _COMPILATIONS:
        one.forget()
    for engine in list(_ENGINES):
        if engine._lock.acquire(blocking=False):
            engine._lock.release()
        else:
            engine._lock = RLock()
            engine._raw_state.cut_off()


atexit.register(_leave_all)
if hasattr(os, "register_at_fork"):  # not on Windows, where nothing is forked
    os.register_at_fork(after_in_child=_after_fork)
