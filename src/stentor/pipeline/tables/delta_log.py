"""One Delta table as its writer sees it: appends to the log, and what the log says by now.

Files are committed by writing the next entry of `_delta_log` directly, because an append is a few
lines of JSON: 0.7 ms with the fsyncs that `deltalake` leaves out,
whatever the length of the log, against 3 to 16 ms and rising. Everything else (creating, reading,
checkpoints, what is out of use) is `deltalake`'s.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from stentor._files import explain_os_errors, sync
from stentor.errors import FolderError
from stentor.pipeline.commit.failpoints import failpoint
from stentor.pipeline.commit.manifests import TableFile
from stentor.pipeline.storage.local import put_if_absent
from stentor.pipeline.tables.files import DATE, PARTITIONED

#: The application whose last transaction in the log is the last batch that was committed to it.
APPLICATION = "stentor"

_VALUE = "partition."  # what the names of such values begin with where actions are a table

_UNUSABLE = frozenset("%[]\\")  # deltalake takes them for parts of an address
_NEW_COLUMNS = {"order"}  # that tables of older releases lack
_FEATURES = {"appendOnly", "invariants", "timestampNtz"}  # of Delta, that need nothing of a writer


def open_table(folder: Path) -> DeltaTable:
    """The Delta table in *folder* as it is now; `FolderError` where it cannot be read."""
    with _explaining(folder):
        return DeltaTable(str(folder))


class DeltaLog:
    """The Delta table in *folder*; one thread may append while another replaces."""

    def __init__(self, folder: Path, schema: pa.Schema, *, retention_hours: int) -> None:
        """Open the table, or create it empty; `FolderError` where it is not as expected."""
        self.folder = folder
        self._schema = Schema.from_arrow(schema)
        self._partition = [DATE] if DATE in schema.names else []
        self._retention_hours = retention_hours
        self._lock = Lock()
        self._version = self._batch = self._checkpoint = -1
        self._files: dict[str, TableFile] = {}
        if _UNUSABLE.intersection(folder.as_posix()):
            raise FolderError(f"deltalake cannot use {folder}; choose a path without % [ ] \\")
        self._open()

    @property
    def batch(self) -> int:
        """The last batch that was committed to this table; -1 where there is none."""
        return self._batch

    @property
    def files(self) -> list[TableFile]:
        """The files that the table consists of."""
        return list(self._files.values())

    def append(self, files: Iterable[TableFile], batch: int) -> None:
        """Add *files*, those of all batches up to *batch*; nothing where it was done before."""
        added = list(files)
        transaction = {"txn": {"appId": APPLICATION, "version": batch, "lastUpdated": _now()}}
        with self._lock:
            while batch > self._batch:
                adds = [_add(file, is_new=True) for file in added]
                if self._commit("WRITE", [*adds, transaction]):
                    self._batch = batch
                    self._files |= {file.name: file for file in added}
                    failpoint("delta-committed")

    def replace(self, old: Sequence[TableFile], new: TableFile) -> None:
        """Replace *old* by *new*, which has the same rows."""
        actions = [_add(new, is_new=False), *(_remove(file) for file in old)]
        with self._lock:
            # Another program may have compacted the table; then *new* is out of use from the start.
            while all(file.name in self._files for file in old):
                if self._commit("OPTIMIZE", actions):
                    self._files[new.name] = new
                    for file in old:
                        del self._files[file.name]

    def delete(self, old: Sequence[TableFile]) -> None:
        """Take the rows of *old* out of the table; its files stay for readers of older versions."""
        names = {file.name for file in old}
        with self._lock:
            while present := [file for file in self._files.values() if file.name in names]:
                if self._commit("DELETE", [_remove(file, is_data=True) for file in present]):
                    for file in present:
                        del self._files[file.name]

    def checkpoint(self, every: int) -> None:
        """Spare readers the log up to here, if *every* entries have come since the last time."""
        if self._version - self._checkpoint < every:
            return
        table = open_table(self.folder)
        with _explaining(self.folder):
            table.create_checkpoint()
        for file in self._log.glob(f"{table.version():020d}.checkpoint*"):
            sync(file)
        sync(self._log / "_last_checkpoint")
        sync(self._log)
        failpoint("table-checkpointed")
        table.cleanup_metadata()
        self._checkpoint = table.version()

    def expired(self) -> list[str]:
        """The files in the folder that no version of the table needs, for all its retention."""
        return _unused(open_table(self.folder), self._retention_hours, with_unknown=True)

    def orphans(self) -> list[str]:
        """The expired files, and those of any age that no version has ever named."""
        table = open_table(self.folder)
        replaced = set(_unused(table, 0, with_unknown=False))
        young = replaced.difference(_unused(table, self._retention_hours, with_unknown=False))
        return [name for name in _unused(table, 0, with_unknown=True) if name not in young]

    def remove(self, names: Iterable[str]) -> None:
        """Remove files that are out of use."""
        for name in names:
            file = self.folder / name
            with explain_os_errors(file):
                file.unlink(missing_ok=True)
            failpoint("unused-removed")
            if file.parent != self.folder:
                with suppress(OSError):  # of a partition that is not empty
                    file.parent.rmdir()

    @property
    def _log(self) -> Path:
        return self.folder / "_delta_log"

    def _open(self) -> None:
        retention = f"interval {self._retention_hours} hours"
        settings = {
            "delta.logRetentionDuration": retention,
            "delta.deletedFileRetentionDuration": retention,
        }
        if not DeltaTable.is_deltatable(str(self.folder)):
            self._mark()
            with _explaining(self.folder):
                DeltaTable.create(
                    str(self.folder),
                    self._schema,
                    partition_by=self._partition or None,
                    configuration=settings,
                )
            sync(self._log / f"{0:020d}.json")
            for folder in (self._log, self.folder, self.folder.parent):
                sync(folder)
            failpoint("table-created")
        self._add_columns()
        table = self._load()
        if not settings.items() <= table.metadata().configuration.items():
            table.alter.set_table_properties(settings)
            self._load()

    def _mark(self) -> None:
        """Let workers know, before there is a table, whether it is to be partitioned."""
        with explain_os_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            if self._partition:
                (self.folder / PARTITIONED).touch()
            else:
                (self.folder / PARTITIONED).unlink(missing_ok=True)
            sync(self.folder)

    def _add_columns(self) -> None:
        """Give a table of an older release the columns that are new since."""
        table = open_table(self.folder)
        there = {field.name for field in table.schema().fields}
        new = [field for field in self._schema.fields if field.name not in there]
        # Those that have come since; others are a mistake, which `_load` reports.
        if new and all(field.name in _NEW_COLUMNS for field in new):
            with _explaining(self.folder):
                table.alter.add_columns(new)
            sync(self._log / f"{table.version():020d}.json")
            sync(self._log)
            failpoint("columns-added")

    def _load(self) -> DeltaTable:
        table = open_table(self.folder)
        if table.schema() != self._schema:
            raise FolderError(
                f"the table in {self.folder} has other columns: {table.schema().to_json()}, "
                f"expected {self._schema.to_json()}; declare the schema it was made with, "
                "or choose another folder"
            )
        if table.metadata().partition_columns != self._partition:
            raise FolderError(
                f"the table in {self.folder} is partitioned by "
                f"{table.metadata().partition_columns}, expected {self._partition}; this cannot "
                "change: start as before, or choose another folder"
            )
        foreign = set(table.protocol().writer_features or ()) - _FEATURES
        if foreign:
            raise FolderError(
                f"another program has given the table in {self.folder} features that Stentor does "
                f"not write ({', '.join(sorted(foreign))}); drop them, or choose another folder"
            )
        actions = pa.table(table.get_add_actions(flatten=True))
        batch = table.transaction_version(APPLICATION)
        self._version = table.version()
        self._batch = -1 if batch is None else batch
        self._files = {file.name: file for file in map(_file, actions.to_pylist())}
        self._checkpoint = _last_checkpoint(self._log)
        return table

    def _commit(self, operation: str, actions: list[dict[str, Any]]) -> bool:
        """Whether *actions* became the next entry; if not, another program's did, and is loaded."""
        about = {"timestamp": _now(), "operation": operation, "engineInfo": "Stentor"}
        lines = msgspec.json.Encoder().encode_lines([{"commitInfo": about}, *actions])
        if not put_if_absent(self._log / f"{self._version + 1:020d}.json", lines, step="delta"):
            self._load()
            return False
        self._version += 1
        return True


@contextmanager
def _explaining(folder: Path) -> Iterator[None]:
    """A block of `deltalake` on the table in *folder*: its errors say what to do."""
    try:
        with explain_os_errors(folder):
            yield
    except (DeltaError, FolderError) as error:
        found = re.search(r"os error (\d+)", str(error))  # all that is left of the system's error
        if found:
            with explain_os_errors(folder):
                raise OSError(int(found[1]), os.strerror(int(found[1]))) from error
        reason = str(error).partition("\n")[0]  # a trace of its own follows
        raise FolderError(
            f"the Delta table in {folder} cannot be used ({reason}); restore it from a backup"
        ) from error


def _add(file: TableFile, *, is_new: bool) -> dict[str, Any]:
    return {
        "add": {
            "path": file.name,
            "partitionValues": file.partition,
            "size": file.bytes,
            "modificationTime": _now(),
            "dataChange": is_new,
            "stats": msgspec.json.encode({"numRecords": file.rows, **file.stats}).decode(),
        }
    }


def _file(action: dict[str, Any]) -> TableFile:
    """What the log says of a file, as far as it is needed again."""
    time, nulls = action.get("max.time"), action.get("null_count.time")
    stats = {
        "maxValues": {} if time is None else {"time": time.isoformat(timespec="microseconds")},
        "nullCount": {} if nulls is None else {"time": nulls},
    }
    return TableFile(
        action["path"],
        action["num_records"],
        action["size_bytes"],
        stats,
        {
            name.removeprefix(_VALUE): value and str(value)
            for name, value in action.items()
            if name.startswith(_VALUE)
        },
    )


def _remove(file: TableFile, *, is_data: bool = False) -> dict[str, Any]:
    return {
        "remove": {
            "path": file.name,
            "deletionTimestamp": _now(),
            "dataChange": is_data,
            "extendedFileMetadata": True,
            "partitionValues": file.partition,
            "size": file.bytes,
        }
    }


def _unused(table: DeltaTable, hours: int, *, with_unknown: bool) -> list[str]:
    return table.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=with_unknown)


def _last_checkpoint(log: Path) -> int:
    try:
        version = msgspec.json.decode((log / "_last_checkpoint").read_bytes())["version"]
    except FileNotFoundError:
        return 0
    return int(version)


def _now() -> int:
    return time.time_ns() // 1_000_000
