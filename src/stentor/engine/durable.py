"""A durable engine: a change is in its folder before it is answered.

    folder/store.sqlite   changes since the base, in order, and what is known of attributes
    folder/base-17/       an engine as `save` writes it, which has the changes up to the 17th

Opening maps the base and lets the changes since then happen again. Where these have become many, a
thread makes a new base of the old one and them, while the engine goes on.
"""

from __future__ import annotations

import functools
import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from stentor._files import explain_os_errors, sync
from stentor.engine import folder as folders
from stentor.engine.apply import EncodedRecords, apply_again
from stentor.engine.batch import NewEvents, NewSubscriptions
from stentor.engine.change_log import (
    Base,
    ChangeLog,
    ChangeStore,
    LoggedChange,
    Position,
    change_to_bytes,
)
from stentor.engine.engine import Engine, _raised
from stentor.engine.folder import STORE
from stentor.engine.included import Include
from stentor.engine.plan import (
    ANY_TIME,
)
from stentor.engine.report import RecordBatch, Report
from stentor.engine.shortcuts import apply_new
from stentor.engine.state import State
from stentor.engine.top_k import TopK
from stentor.errors import FolderError, SettingsError, StentorError, StoreError
from stentor.index.storage.arrays import MANIFEST
from stentor.model import Changes, Schema
from stentor.model.record import Move, Operation
from stentor.model.values import read_location
from stentor.model.values.string import read_id
from stentor.model.values.time import read_time

_LOG: Final = logging.getLogger("stentor.engine")
#: A new base is made where so many records have come since the last one, and half of what it has.
MANY_RECORDS: Final = 100_000
#: Closing makes a new base where so many have.
MANY_AT_CLOSE: Final = 10_000
_BASE: Final = "base-"
#: The folder itself: an engine that was saved there before.
_SAVED: Final = "."


class DurableEngine(Engine):
    """An engine whose changes are in its folder before they are answered.

    Invariant: what the store has, let happen again, leads to this engine's state; but for what
    has not been answered yet.
    """

    _is_durable = True
    _store: ChangeStore
    _log: ChangeLog | None = None
    _folder: Path

    def begin(self, folder: Path, store: ChangeStore, base: Base, number: int, fsync: bool) -> None:
        """Keep changes from now on, the first after *number*, in the *store* of *folder*."""
        self._folder, self._store, self._base = folder, store, base
        self._since_base = 0  # records
        self._is_behind = False  # whether something happened that the log does not have
        self._basing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._log = ChangeLog(store, self.schema, number, fsync=fsync)
        self._kept_position = Position(self._state.seq, self._state.time)
        self._log.append(b"", 0, self._kept_position)
        self._log.wait()

    # What differs from `Engine`: all goes through `_report`, and is appended there.

    def move(self, id: str, at: Any, *, time: Any = None) -> Changes:
        location = read_location(at, plane=self.schema.plane)
        if location is None:
            raise SettingsError("a move says where to: (longitude, latitude)")
        moved = Move(read_id(id), location, read_time(time, "time"))
        changes: Changes = _raised(self._one_record(moved))
        return changes

    def _report(
        self,
        batch: RecordBatch,
        arriving: EncodedRecords | NewEvents | NewSubscriptions,
        top: TopK | None = None,
        include: Include | None = None,
    ) -> Report:
        with self._lock:
            state = self._state
            if self._is_behind:
                self._make_base()
            before = Position(state.seq, state.time)
            self._is_behind = True
            report = super()._report(batch, arriving, top, include)
            self._keep(before, arriving, report)
            self._is_behind = False
        return report

    def _keep(
        self,
        before: Position,
        arriving: EncodedRecords | NewEvents | NewSubscriptions,
        report: Report,
    ) -> None:
        assert self._log is not None
        after = Position(self._state.seq, self._state.time)
        body, records = change_to_bytes(before, after, arriving, report.plan)
        self._log.append(body, records, after)
        self._kept_position = after
        self._since_base += records

    def _answer(self, call: Callable[[], Any]) -> Any:
        """What *call* gives, once all that it did is kept."""
        log = self._usable_log()
        try:
            return call()
        finally:
            with self._lock:
                state = self._raw_state
                now = Position(state.seq, state.time)
                if state.journal is None and now != self._kept_position:
                    log.append(b"", 0, now)
                    self._kept_position = now
            log.wait()
            self._look_at_size()

    def _usable_log(self) -> ChangeLog:
        if self._log is None:
            raise StoreError("this engine was closed; open its folder again")
        self._log.check()
        return self._log

    @property
    def _state(self) -> State:
        if self._log is not None:
            self._log.check()
        state = Engine._state.fget(self)  # type: ignore[attr-defined]
        assert isinstance(state, State)
        return state

    @_state.setter
    def _state(self, state: State) -> None:
        self._raw_state = state

    # Bases.

    def _look_at_size(self) -> None:
        if self._since_base < max(MANY_RECORDS, self._base.count // 2):
            return
        with self._lock:
            if self._thread is not None:
                return
            if self._log is None:
                return
            upto, self._since_base = self._log.number, 0  # all of it is kept, or will be
            self._log.wait()
            schema = Schema.from_dict(self.schema.to_dict())
            index = self._index
            self._thread = threading.Thread(
                target=self._renew_base, args=(upto, schema, index), daemon=True
            )
        self._thread.start()

    def _renew_base(self, upto: int, schema: Schema, index: str) -> None:
        """Make a base of the last one and what came since; the engine goes on meanwhile."""
        try:
            with self._basing:
                base = self._base
                engine = _open_base(Engine, self._folder, base, schema, index, None, {})
                codes = max(schema.code_count, 1 << 20)  # others may be learned meanwhile
                for _, _, change in self._store.changes(codes, base.upto, upto):
                    _let_happen(engine, change)
                self._adopt_base(engine, upto)
        except (StentorError, MemoryError, OSError) as error:
            _LOG.warning("no new base of %s was made, and it is tried later: %s", self.name, error)
        finally:
            self._thread = None

    @property
    def name(self) -> str:
        """The folder."""
        return str(self._folder)

    def make_base(self) -> None:
        """Make a base of all that has come, so that opening has nothing to repeat."""
        with self._lock:
            self._make_base()

    def _make_base(self) -> None:
        """Make a base of what is in memory: the log lacks something, or the engine is closed."""
        log = self._usable_log()
        log.wait()
        with self._basing:
            self._adopt_base(self, log.number)
        self._is_behind, self._since_base = False, 0

    def _adopt_base(self, engine: Engine, upto: int) -> None:
        name = f"{_BASE}{upto}"
        folders.save(engine, self._folder / name)
        state = engine._state
        count = len(state.subscribers) + len(state.events)
        self._store.keep_base(Base(name, upto, count))
        self._base = Base(name, upto, count)
        _sweep(self._folder, self._base)

    def save(self, path: str | Path) -> None:
        """Write a copy of everything into another folder *path*; this one needs no `save`."""
        if folders.read_path(path).resolve() == self._folder.resolve():
            raise SettingsError(f"{path} is this engine's own folder, which has all of it already")
        super().save(path)

    def close(self) -> None:
        """Let go of the folder; the engine answers nothing any more."""
        if self._log is None:
            return
        thread = self._thread
        if thread is not None:
            thread.join()
        try:
            with self._lock:
                if self._since_base >= MANY_AT_CLOSE:
                    self._make_base()
        finally:
            self._log = None
            self._store.close()


def _answering(name: str) -> Callable[..., Any]:
    method = getattr(DurableEngine, name)

    @functools.wraps(method)
    def answer(self: DurableEngine, *args: Any, **settings: Any) -> Any:
        return self._answer(lambda: method(self, *args, **settings))

    return answer


for _name in (
    *("subscribe", "unsubscribe", "unsubscribe_all", "move", "publish", "update", "withdraw"),
    *("step", "publish_batch", "update_batch", "withdraw_batch"),
    *("subscribe_batch", "move_batch", "unsubscribe_batch"),
):
    setattr(DurableEngine, _name, _answering(_name))


def open_durable(
    folder: Path, verify: bool | None, settings: dict[str, Any], *, fsync: bool
) -> DurableEngine:
    """The durable engine in *folder*, which is made where there is none.

    Cost: the base is mapped, changes since then happen again, a few µs for each record.
    """
    declared, index = settings.pop("schema", None), settings.pop("index", None)
    Engine("auto" if index is None else index, schema=declared, **settings)  # what is wrong there
    _check_folder(folder)
    with explain_os_errors(folder):
        if not folder.exists():
            folder.mkdir(parents=True)
            sync(folder.parent)
    store = ChangeStore(str(folder / STORE))
    try:
        sync(folder)
        return _opened(folder, store, declared, index, verify, settings, fsync)
    except BaseException:
        store.close()
        raise


def _opened(
    folder: Path,
    store: ChangeStore,
    declared: Any,
    index: str | None,
    verify: bool | None,
    settings: dict[str, Any],
    fsync: bool,
) -> DurableEngine:
    base, schema = store.base(), store.schema()
    if not base.folder and schema is None and (folder / MANIFEST).exists():
        base = Base(_SAVED)
    kept_index = store.fact("index", str)
    if index is not None and kept_index not in (None, index):
        raise SettingsError(
            f"the index of {folder} is {kept_index!r}, not {index!r}; "
            "save the engine, and open it with another"
        )
    name = kept_index or index or "auto"
    engine: DurableEngine = _open_base(
        DurableEngine, folder, base, schema, name, verify, settings, declared
    )
    since = 0
    number = base.upto
    for number, records, change in store.changes(engine.schema.code_count, base.upto):
        with store.reading("changes", number):
            _let_happen(engine, change)
        since += records
    state, last = engine._state, store.position()
    if last is not None and last > Position(state.seq, state.time):
        state.pass_record(*last)
    with store.transaction():
        store.keep_fact("index", engine._index)
        if base.folder == _SAVED:
            store.keep_fact("base", {"folder": _SAVED, "upto": 0, "count": 0})
    engine.begin(folder, store, base, number, fsync)
    engine._since_base = since
    _sweep(folder, base)
    return engine


def _open_base(
    kind: type[Any],
    folder: Path,
    base: Base,
    schema: Schema | None,
    index: str,
    verify: bool | None,
    settings: dict[str, Any],
    declared: Any = None,
) -> Any:
    """An engine of this *kind* over *base*, with the attributes of *schema*."""
    if base.folder:
        own = settings if declared is None else {**settings, "schema": declared}
        return folders.open_engine(kind, folder / base.folder, verify, own, schema=schema)
    if schema is None:
        return kind(index, schema=declared, **settings)
    if declared is not None:
        schema.grow(declared)
    engine = kind(index, schema=schema, **settings)
    schema.is_shared = False
    return engine


def _let_happen(engine: Engine, change: LoggedChange) -> None:
    """Let *engine* come from where it was before *change* to where it was after it."""
    state = engine._state
    state.seq, state.time = change.before
    records = change.records
    is_done = False
    if all(step.operation is Operation.SUBSCRIBE for step in records.steps):
        times = np.array([step.time for step in records.steps], np.int64)
        ids = [step.id for step in records.steps]
        new = apply_new(state, records.columns, ids, records.texts, times, records.tags, ANY_TIME)
        is_done = new is not None
    if not is_done:
        apply_again(state, records)
    state.seq, state.time = change.after
    state.forget_dropped()


def _check_folder(folder: Path) -> None:
    """Refuse a folder of others' files."""
    if folder.is_dir() and not (folder / STORE).exists() and not (folder / MANIFEST).exists():
        for found in folder.iterdir():
            if not found.name.startswith("."):
                raise FolderError(
                    f"{folder} exists and is no engine's: it has {found.name!r}; "
                    "choose a new folder, or one that an engine was saved in"
                )
    if folder.exists() and not folder.is_dir():
        raise FolderError(f"{folder} is a file; a durable engine has a folder of its own")


def _sweep(folder: Path, base: Base) -> None:
    """Remove bases that are none any more, and what a killed process left of one."""
    for path in folder.iterdir():
        is_left = path.name.startswith((_BASE, f".{_BASE}"))
        if is_left and path.name != base.folder and path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
    if base.folder not in ("", _SAVED) and (folder / MANIFEST).exists():
        (folder / MANIFEST).unlink()
        for inner in (folders.SUBSCRIPTIONS, folders.INDEX, folders.EVENTS, folders.TAGS):
            shutil.rmtree(folder / inner, ignore_errors=True)
