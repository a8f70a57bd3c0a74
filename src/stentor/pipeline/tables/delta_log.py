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
from dataclasses import replace
from threading import Lock
from typing import Any

import msgspec
import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError
from deltalake.schema import StructType

from stentor._files import explain_os_errors, sync
from stentor.errors import FolderError
from stentor.pipeline.commit.failpoints import failpoint
from stentor.pipeline.commit.manifests import TableFile
from stentor.pipeline.storage.folder import StreamFolder
from stentor.pipeline.tables.files import DATE, PARTITIONED

#: The application whose last transaction in the log is the last batch that was committed to it.
APPLICATION = "stentor"

#: The application whose last transaction is the epoch of the table's writer, where nobody can lock.
WRITER = "stentor-writer"

_VALUE = "partition."  # what the names of such values begin with where actions are a table

_UNUSABLE = frozenset("%[]\\")  # deltalake takes them for parts of an address
_NEW_COLUMNS = {"order", "alternative", "attributes"}  # that tables of older releases lack
_FEATURES = {"appendOnly", "invariants", "timestampNtz"}  # of Delta, that need nothing of a writer


def open_table(folder: StreamFolder) -> DeltaTable:
    """The Delta table in *folder* as it is now; `FolderError` where it cannot be read."""
    with _explaining(folder):
        return DeltaTable(str(folder), storage_options=_options(folder))


def is_table(folder: StreamFolder) -> bool:
    """Whether there is a Delta table in *folder*."""
    with _explaining(folder):
        return DeltaTable.is_deltatable(str(folder), _options(folder))


def check_features(folder: StreamFolder, features: Iterable[str] | None) -> None:
    """Refuse a table with *features* of Delta that Stentor does not know: rows would be wrong."""
    foreign = set(features or ()) - _FEATURES
    if foreign:
        raise FolderError(
            f"another program has given the table in {folder} features that Stentor does not "
            f"know ({', '.join(sorted(foreign))}); drop them, or choose another folder"
        )


def _options(folder: StreamFolder) -> dict[str, str] | None:
    """How `deltalake` reaches the store: as the stream itself does."""
    return dict(folder.options) or None


class DeltaLog:
    """The Delta table in *folder*; one thread may append while another replaces."""

    def __init__(self, folder: StreamFolder, schema: pa.Schema, *, retention_hours: int) -> None:
        """Open the table, or create it empty; `FolderError` where it is not as expected."""
        self.folder = folder
        self._schema = Schema.from_arrow(schema)
        self._partition = [DATE] if DATE in schema.names else []
        self._retention_hours = retention_hours
        self._lock = Lock()
        self._version = self._batch = self._checkpoint = -1
        self._files: dict[str, TableFile] = {}
        if _UNUSABLE.intersection(str(folder)):
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

    def shut_out(self, epoch: int) -> None:
        """Let no writer of an *epoch* before this one commit to this table from here on.

        An entry says so: whoever was writing before finds the version taken, and reads it.
        """
        self.folder = replace(self.folder, epoch=epoch)
        fence = {"txn": {"appId": WRITER, "version": epoch, "lastUpdated": _now()}}
        with self._lock:
            while not self._commit("FENCE", [fence]):
                pass

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
        self._sync(
            *(
                name
                for name in self._log.entries()
                if name.startswith(f"{table.version():020d}.checkpoint")
            ),
            "_last_checkpoint",
        )
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
        """Remove files that are out of use; those of a later writer may only seem to be."""
        for name in filter(self.folder.is_mine, names):
            self.folder.remove([name])
            if "/" in name and self.folder.is_local:
                with suppress(OSError):  # of a partition that is not empty
                    (self.folder.local / name).parent.rmdir()

    @property
    def _log(self) -> StreamFolder:
        return self.folder / "_delta_log"

    def _sync(self, *names: str) -> None:
        """Bring files that `deltalake` has written to the log to disk, where it is one."""
        if self._log.is_local:
            with explain_os_errors(self._log.local):
                for name in names:
                    sync(self._log.local / name)
                for folder in (self._log.local, self.folder.local, self.folder.local.parent):
                    sync(folder)

    def _open(self) -> None:
        retention = f"interval {self._retention_hours} hours"
        settings = {
            "delta.logRetentionDuration": retention,
            "delta.deletedFileRetentionDuration": retention,
        }
        if not is_table(self.folder):
            self._mark()
            with _explaining(self.folder):
                DeltaTable.create(
                    str(self.folder),
                    self._schema,
                    partition_by=self._partition or None,
                    configuration=settings,
                    storage_options=_options(self.folder),
                )
            self._sync(_entry(0))
            failpoint("table-created")
        self._add_columns()
        table = self._load()
        if not settings.items() <= table.metadata().configuration.items():
            table.alter.set_table_properties(settings)
            self._load()

    def _mark(self) -> None:
        """Let workers know, before there is a table, whether it is to be partitioned."""
        with explain_os_errors(self.folder.local):
            if self._partition:
                self.folder.new(PARTITIONED).touch()
                self.folder.keep(PARTITIONED)
            else:
                self.folder.make()
                self.folder.remove([PARTITIONED])

    def _add_columns(self) -> None:
        """Give a table of an older release the columns that are new since."""
        table = open_table(self.folder)
        there = {field.name for field in table.schema().fields}
        new = [field for field in self._schema.fields if field.name not in there]
        # Those that have come since; others are a mistake, which `_load` reports.
        if new and all(field.name in _NEW_COLUMNS for field in new):
            with _explaining(self.folder):
                table.alter.add_columns(new)
            self._sync(_entry(table.version()))
            failpoint("columns-added")
        self._grow_structs()

    def _grow_structs(self) -> None:
        """Give the structs of a table the fields that a grown schema has and they have not."""
        table = open_table(self.folder)
        there = {field.name: field for field in table.schema().fields}
        if not any(
            field.name in there and _is_grown(there[field.name].type, field.type)
            for field in self._schema.fields
        ):
            return
        fields = [
            field
            if field.name not in there or _is_grown(there[field.name].type, field.type)
            else there[field.name]
            for field in self._schema.fields
        ]
        about = table.metadata()
        grown = {
            "id": str(about.id),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": Schema(fields).to_json(),
            "partitionColumns": about.partition_columns,
            "configuration": about.configuration,
            "createdTime": about.created_time,
        }
        self._version = table.version()
        if self._commit("CHANGE COLUMN", [{"metaData": grown}]):
            failpoint("columns-added")

    def _load(self) -> DeltaTable:
        table = open_table(self.folder)
        if not _are_alike(table.schema(), self._schema):
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
        check_features(self.folder, table.protocol().writer_features)
        if (table.transaction_version(WRITER) or 0) > self.folder.epoch > 0:
            raise FolderError(
                f"the table in {self.folder} has another writer by now; stop the other one, and "
                "start again to resume after it"
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
        if not self._log.put_if_absent(_entry(self._version + 1), lines, step="delta"):
            self._load()
            return False
        self._version += 1
        return True


def _is_grown(old: Any, new: Any) -> bool:
    """Whether *new* is the struct *old* with more fields."""
    if not (isinstance(old, StructType) and isinstance(new, StructType)) or old == new:
        return False
    fields = {field.name: field for field in new.fields}
    return all(fields.get(field.name) == field for field in old.fields)


def _are_alike(one: Schema, other: Schema) -> bool:
    """Whether two tables have the same columns; those that came later stand last."""
    by_name = ({field.name: field for field in schema.fields} for schema in (one, other))
    return next(by_name) == next(by_name)


def _entry(version: int) -> str:
    return f"{version:020d}.json"


@contextmanager
def _explaining(folder: StreamFolder) -> Iterator[None]:
    """A block of `deltalake` on the table in *folder*: its errors say what to do."""
    try:
        with explain_os_errors(folder.local):
            yield
    except (DeltaError, FolderError) as error:
        found = re.search(r"os error (\d+)", str(error))  # all that is left of the system's error
        if found:
            with explain_os_errors(folder.local):
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


def _last_checkpoint(log: StreamFolder) -> int:
    try:
        version = msgspec.json.decode(log.read("_last_checkpoint"))["version"]
    except FileNotFoundError:
        return 0
    return int(version)


def _now() -> int:
    return time.time_ns() // 1_000_000
