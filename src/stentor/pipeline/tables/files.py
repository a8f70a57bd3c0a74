"""The tables' columns, and the Parquet files that workers write for them.

A file counts once a manifest names it; whatever a failed task wrote is removed at the next start.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stentor.encoding.columns import Int64
from stentor.index.folders import sync
from stentor.model.time import BEGINNING, NEVER
from stentor.pipeline.commit.failpoints import failpoint
from stentor.pipeline.commit.manifests import TableFile
from stentor.pipeline.commit.new_files import explaining, remove_quietly

TABLES = ("deliveries", "rejected", "subscriptions", "events")

TIME = pa.timestamp("us", tz="UTC")
_WHEN = [("seq", pa.int64()), ("time", TIME), ("batch", pa.int64())]

# Measured on a million deliveries, µs of CPU per row: uncompressed 0.13, snappy 0.13, lz4 0.13,
# zstd 0.17; dictionaries for the ids 0.05 more, minima and maxima of the ids 0.02 more.
_REPETITIVE = ["change", "source", "batch"]
_ORDERED = ["seq", "time", "until", "batch"]
_FAST = {"compression": "snappy"}
_SMALL = {"compression": "zstd"}
_ROW_GROUP = 1 << 20


def table_schemas(attributes: pa.StructType) -> dict[str, pa.Schema]:
    """The columns of each table, where the source's events have these *attributes*."""
    return {
        "deliveries": pa.schema(
            [
                ("event", pa.string()),
                ("subscription", pa.string()),
                ("change", pa.string()),  # matched, added or removed
                ("score", pa.float64()),
                *_WHEN,
            ]
        ),
        "rejected": pa.schema(
            [
                ("reason", pa.string()),
                ("record", pa.string()),
                ("source", pa.string()),
                ("offset", pa.int64()),
                ("time", TIME),
                ("batch", pa.int64()),
            ]
        ),
        "subscriptions": pa.schema(
            [
                ("id", pa.string()),
                ("change", pa.string()),  # subscribe, move or unsubscribe
                ("expression", pa.string()),
                ("longitude", pa.float64()),
                ("latitude", pa.float64()),
                ("until", TIME),
                *_WHEN,
            ]
        ),
        "events": pa.schema(
            [
                ("id", pa.string()),
                # Parquet cannot hold a struct without fields.
                *([("attributes", attributes)] if attributes.num_fields else []),
                ("until", TIME),
                *_WHEN,
            ]
        ),
    }


def moments(micros: Int64) -> pa.Array:
    """Microseconds as a column of times; null for `NEVER`, and before any time is known."""
    return pa.array(micros, mask=(micros == NEVER) | (micros == BEGINNING)).cast(TIME)


def table_folder(path: Path, table: str) -> Path:
    """Where the Delta table *table* of the pipeline *path* stands."""
    return path / "tables" / table


def write_file(path: Path, table: str, rows: pa.Table, batch: int) -> TableFile:
    """Write *rows* (all columns but `batch`) as a file of *table*; it is on disk on return.

    Text columns may be dictionary-encoded: that is faster, and the file is the same to readers.
    Cost: about 0.13 µs of CPU per delivery, and two fsyncs.
    """
    batches = pa.repeat(pa.scalar(batch, pa.int64()), rows.num_rows)
    rows = rows.append_column("batch", batches)
    file = table_folder(path, table) / f"{batch}-{uuid.uuid4().hex}.parquet"
    with parquet_writer(file, rows.schema, **_FAST) as writer:
        writer.write_table(rows)
    return TableFile(file.name, rows.num_rows, file.stat().st_size)


def merge_files(folder: Path, files: Sequence[TableFile]) -> TableFile:
    """One file in *folder* with the rows of *files*, in their order; those stay.

    Row groups hold a million rows or more, whatever the files were cut into.
    """
    merged = folder / f"merged-{uuid.uuid4().hex}.parquet"
    schema = pq.read_schema(folder / files[0].name)
    waiting: list[pa.Table] = []
    with parquet_writer(merged, schema, **_SMALL) as writer:
        for file in files:
            waiting.append(pq.ParquetFile(folder / file.name).read())
            if sum(rows.num_rows for rows in waiting) >= _ROW_GROUP:
                writer.write_table(pa.concat_tables(waiting))
                waiting.clear()
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
    return TableFile(merged.name, sum(file.rows for file in files), merged.stat().st_size)


@contextmanager
def parquet_writer(file: Path, schema: pa.Schema, **options: Any) -> Iterator[pq.ParquetWriter]:
    """A writer of *file*, which is on disk after the block, and gone where the block raised."""
    in_dictionaries = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    with explaining(file):
        try:
            with pq.ParquetWriter(
                file,
                schema,
                use_dictionary=_REPETITIVE + in_dictionaries,
                write_statistics=_ORDERED,
                store_schema=False,  # a text column is text, however it came
                **options,
            ) as writer:
                yield writer
            failpoint("table-file-written")
            sync(file)
            sync(file.parent)
        except BaseException:
            remove_quietly(file)
            raise
