"""The tables of a pipeline as Delta tables, rolled forward from its manifests.

Beside Spark (`read`), anything that knows Delta reads them, with no jars:

    deltalake.DeltaTable("PATH/tables/deliveries").to_pandas()
    deliveries = deltalake.DeltaTable("PATH/tables/deliveries").to_pyarrow_dataset()
    duckdb.sql("SELECT event, count(*) FROM deliveries GROUP BY event")

Never read the folder's `*.parquet` by their names: some are of batches that failed, or merged.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from stentor.errors import FolderError, SettingsError
from stentor.pipeline.commit.failpoints import failpoint
from stentor.pipeline.commit.manifests import Manifest, TableFile
from stentor.pipeline.storage.credentials import storage_options
from stentor.pipeline.storage.folder import StreamFolder, stream_folder
from stentor.pipeline.tables.delta_log import DeltaLog, check_features, is_table, open_table
from stentor.pipeline.tables.files import DATE, TABLES, merge_files, newest, table_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A file is merged with others of its band (bytes) until it leaves it: so each row is rewritten
# about once per band, and a table has at most a few dozen files per band besides the large ones.
_BANDS = (1 << 18, 1 << 22, 1 << 26)
# Where rows become old, files are merged with those of the same eighth of that span: a row stays
# at most so much longer than it is to be kept.
_AGES = 8


class DeltaTables:
    """The four tables of the pipeline *path*, for the one process that writes them."""

    def __init__(
        self,
        path: str | Path | StreamFolder,
        schemas: Mapping[str, pa.Schema],
        *,
        retention: timedelta = timedelta(days=7),
        keep: Mapping[str, timedelta] | None = None,
    ) -> None:
        """Open the tables, or create them empty; *schemas* come from `table_schemas`.

        For *retention* (rounded up to hours) readers of an older version find its files. *keep*
        says by table how long rows stay in it; where it says nothing, for good.
        """
        self._keep = dict(keep or {})
        self._now: dict[str, int] = {}  # by which rows become old
        self._rolled_forward = -1  # the last batch of which each table has its files
        hours = -(-retention // timedelta(hours=1))
        self._logs = {
            name: DeltaLog(table_folder(path, name), schema, retention_hours=hours)
            for name, schema in schemas.items()
        }

    def shut_out(self, epoch: int) -> None:
        """Let no writer of an *epoch* before this one commit to the tables; nobody can lock them.

        Cost: an entry of the log per table.
        """
        for log in self._logs.values():
            log.shut_out(epoch)

    def roll_forward(self, manifests: Iterable[Manifest]) -> None:
        """Commit to each table what *manifests*, in order of batch, add and it does not have yet.

        Cost: 0.7 ms per table that gets files, however many manifests they come from.
        """
        waiting = list(manifests)
        for name, log in self._logs.items():
            files = list(_news(waiting, name, log.batch))
            if files:
                log.append(files, waiting[-1].batch)
        if waiting:
            self._rolled_forward = waiting[-1].batch
            # Records that are refused have the time of their batch, others the logical time.
            times = {"rejected": waiting[-1].began}
            self._now = {name: times.get(name, waiting[-1].time) for name in self._logs}
        failpoint("delta-rolled-forward")

    def compact(self, *, limit: int = 32, checkpoint_every: int = 100) -> None:
        """Merge small files where a table has more than *limit* of a size; shorten long logs.

        Also removes from the tables files all of whose rows are older than they are kept, and
        removes files whose retention is over. May run in a thread beside `roll_forward`,
        one at a time. Cost: reads and writes what it merges, at most 128 MB into one file;
        otherwise some 10 ms per table.
        """
        rolled_forward = self._rolled_forward
        for name, log in self._logs.items():
            self._expire(name, log)
            for group in self._groups(name, log, limit):
                merged = merge_files(log.folder, group)
                failpoint("files-merged")
                log.replace(group, merged)
                failpoint("table-compacted")
            log.checkpoint(checkpoint_every)
            # Files of later batches are waiting for their manifest, or for `roll_forward`.
            log.remove(file for file in log.expired() if _batch(file) <= rolled_forward)

    def _expire(self, name: str, log: DeltaLog) -> None:
        """Remove from a table the files whose rows are all older than they are kept."""
        keep, now = self._keep.get(name), self._now.get(name)
        if keep is None or now is None:
            return
        limit = now - keep // timedelta(microseconds=1)
        times = [(file, newest(log.folder, file)) for file in log.files]
        old = [file for file, time in times if time is not None and time < limit]
        if old:
            log.delete(old)
            failpoint("rows-expired")

    def _groups(self, name: str, log: DeltaLog, limit: int) -> Iterator[list[TableFile]]:
        """Files to be merged: of one partition, and of about one age where rows become old."""
        alike: defaultdict[tuple[str | None, int], list[TableFile]] = defaultdict(list)
        keep = self._keep.get(name)
        span = None if keep is None else max(1, keep // timedelta(microseconds=_AGES))
        for file in log.files:
            time = None if span is None else newest(log.folder, file)
            age = 0 if span is None or time is None else time // span
            alike[file.partition.get(DATE), age].append(file)
        for files in alike.values():
            yield from _small_files(files, limit)

    def remove_orphans(self, manifests: Iterable[Manifest]) -> None:
        """Remove the files that neither *manifests*, all that are kept, nor the tables name.

        Only before the first batch of a run: those of a batch in progress are among them.
        """
        kept = list(manifests)
        for name, log in self._logs.items():
            waiting = {file.name for file in _news(kept, name, log.batch)}
            log.remove(file for file in log.orphans() if file not in waiting)


def read(
    spark: SparkSession,
    path: str | Path | StreamFolder,
    name: str,
    *,
    storage: Mapping[str, str] | None = None,
) -> DataFrame:
    """The table *name* of the pipeline *path* as it is committed now.

    Later batches are not in it; read again to see them. *storage* says how the store is reached, as
    `StreamSettings.storage` does, beside what the session and the environment say.
    """
    from pyspark.sql.types import StructType

    from stentor.pipeline.spark.s3 import let_spark_reach

    options = storage_options(spark, storage or {}, path)
    path = stream_folder(path, options=options)
    if name not in TABLES:
        raise SettingsError(f"no table {name!r}; a pipeline has {', '.join(TABLES)}")
    folder = table_folder(path, name)
    if not is_table(folder):
        raise FolderError(
            f"{path} has no table {name!r}, so it is no pipeline, or one that has not started; "
            "give the folder that holds 'manifests' and 'tables'"
        )
    let_spark_reach(spark, folder.address, dict(folder.options))
    table = open_table(folder)
    check_features(folder, table.protocol().reader_features)
    schema = StructType.fromJson(msgspec.json.decode(table.schema().to_json()))
    names = pa.table(table.get_add_actions())["path"].to_pylist()
    if not names:
        return spark.createDataFrame([], schema)
    # These characters Spark takes for a pattern.
    root = re.sub(r"([\\*?\[\]{}])", r"\\\1", folder.spark_address)
    reader = spark.read.schema(schema)
    if DATE in schema.names:  # it is in the names of folders; this path is no pattern
        reader = reader.option("basePath", folder.spark_address)
    return reader.parquet(*(f"{root}/{name}" for name in names)).select(*schema.names)


def _news(manifests: Iterable[Manifest], table: str, batch: int) -> Iterator[TableFile]:
    """The files that *manifests* after *batch* add to *table*."""
    for manifest in manifests:
        if manifest.batch > batch:
            yield from manifest.files.get(table, ())


def _small_files(files: Sequence[TableFile], limit: int) -> Iterator[list[TableFile]]:
    """Files of one band each, to be merged, if there are more than *limit* in it."""
    low = 0
    for high in _BANDS:
        band = [file for file in files if low <= file.bytes < high]
        low = high
        group: list[TableFile] = []
        for file in band if len(band) > limit else ():
            group.append(file)
            if sum(file.bytes for file in group) >= high:
                yield group
                group = []
        if len(group) > 1:
            yield group


def _batch(file: str) -> int:
    """The batch that a file's name begins with; -1 for merged ones."""
    batch, _, _ = file.rpartition("/")[2].partition("-")
    return int(batch) if batch.isdecimal() else -1
