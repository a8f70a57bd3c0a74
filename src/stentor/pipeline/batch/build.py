"""Workers: rows → encoded parts → shards of a snapshot."""

from __future__ import annotations

import atexit
import hashlib
import os
import secrets
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from stentor._files import explain_os_errors
from stentor.encoding.columns import Int64, SubscriptionColumns, empty, read_only_columns
from stentor.encoding.ragged import concatenate, take
from stentor.encoding.template import SubscriptionHeads
from stentor.encoding.texts import TextEncoder
from stentor.engine.ids import StringArrays
from stentor.errors import SettingsError
from stentor.index.catalog import index_class, structure_of
from stentor.index.storage.array_file import read_array_file, write_array_file
from stentor.index.storage.arrays import bundle_of, with_prefix
from stentor.index.storage.folders import local_folder
from stentor.model import Schema
from stentor.model.values.time import NEVER
from stentor.pipeline.batch.rejected import RejectedPolicy, RejectSummary, id_in
from stentor.pipeline.snapshots import open_shard, shard_of, write_shard
from stentor.wire.cells.string import string_array
from stentor.wire.cells.time import filled
from stentor.wire.limits import RecordLimits
from stentor.wire.tables import positions_of, read_table, take_rows

PART = "subscriptions"


class SubscriptionPart(NamedTuple):
    """Subscriptions as an index is built from them."""

    columns: SubscriptionColumns
    ids: StringArrays
    texts: StringArrays

    def rows(self, rows: Int64) -> SubscriptionPart:
        """The given *rows*."""
        ids, texts = (StringArrays.of(one.arrow.take(pa.array(rows))) for one in self[1:])
        return SubscriptionPart(take(self.columns, rows), ids, texts)


def joined(parts: Sequence[SubscriptionPart]) -> SubscriptionPart:
    """All *parts*, one after another."""
    if not parts:
        nothing = StringArrays.of(pa.array([], pa.large_string()))
        return SubscriptionPart(empty(SubscriptionColumns), nothing, nothing)
    if len(parts) == 1:
        return parts[0]
    ids = pa.chunked_array([part.ids.arrow for part in parts])
    texts = pa.chunked_array([part.texts.arrow for part in parts])
    columns = concatenate([part.columns for part in parts])
    return SubscriptionPart(columns, StringArrays.of(ids), StringArrays.of(texts))


def write_part(path: Path, part: SubscriptionPart) -> str:
    """Put *part* into a new file; its sum. What is lost with the machine is encoded again."""
    arrays = {
        **with_prefix("columns", part.columns),
        **with_prefix("ids", part.ids),
        **with_prefix("texts", part.texts),
    }
    with explain_os_errors(path):
        write_array_file(path, arrays, kind=PART, durable=False)
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays.values():
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def read_part(path: Path) -> SubscriptionPart:
    """The part in the file *path*, memory-mapped."""
    arrays, _ = read_array_file(path, kind=PART)
    return SubscriptionPart(
        read_only_columns(bundle_of(SubscriptionColumns, "columns", arrays)),
        bundle_of(StringArrays, "ids", arrays),
        bundle_of(StringArrays, "texts", arrays),
    )


#: What `BuildOne` reports: which run this is, and whether each of the attributes is mentioned; or,
#: instead of these, why there is no index.
BUILT_ONE: Final = "run long, mentioned array<boolean>, problem string"

_BUILT_ONE_ARROW: Final = pa.schema(
    [("run", pa.int64()), ("mentioned", pa.list_(pa.bool_())), ("problem", pa.string())]
)


#: What `BuildShards` reports of each shard; its name is null where it was not built.
BUILT: Final = (
    "shard string, count long, mentioned array<string>, rejected long, sentences array<string>"
)

_BUILT_ARROW: Final = pa.schema(
    [
        ("shard", pa.string()),
        ("count", pa.int64()),
        ("mentioned", pa.list_(pa.string())),
        ("rejected", pa.int64()),
        ("sentences", pa.list_(pa.string())),
    ]
)


#: Indexes of other subscriptions that are kept beside the newest: a frame that was read before
#: they changed may be read again, and Spark then remembers which index it had.
KEPT_RUNS: Final = 3


class BuildReport(NamedTuple):
    """What the encoding tasks have reported."""

    parts: dict[int, list[str]]  # by shard
    sums: list[str]  # of all parts
    rejects: RejectSummary


def read_reports(rows: Iterable[Mapping[str, Any]]) -> BuildReport:
    """The reports in *rows* of `ENCODED`, together."""
    parts: dict[int, list[str]] = defaultdict(list)
    sums: list[str] = []
    rejects = RejectSummary()
    for row in rows:
        if row["part"] is not None:
            parts[row["shard"]].append(row["part"])
            sums.append(row["sum"])
        rejects += RejectSummary(row["rejected"], tuple(row["sentences"]))
    return BuildReport(dict(parts), sums, rejects)


@dataclass(frozen=True, slots=True)
class Builder:
    """Makes shards of parts, which all workers see in the folder *parts*."""

    schema: dict[str, Any]
    index: str
    parts: str

    def joined(self, names: Iterable[str]) -> tuple[SubscriptionPart, RejectSummary]:
        """The subscriptions of these parts, without those whose ids occur more than once."""
        whole = joined([read_part(Path(self.parts, name)) for name in names])
        rows, rejects = repeated(whole.ids)
        if rejects.count:
            whole = whole.rows(np.delete(np.arange(len(whole.columns.until)), rows))
        return whole, rejects

    def build(self, part: SubscriptionPart, folder: Path) -> None:
        """Put the shard of *part* into *folder*."""
        structure = structure_of(index_class(self.index, part.columns))
        write_shard(*part, structure, folder, {"schema": self.schema})


def repeated(ids: StringArrays) -> tuple[Int64, RejectSummary]:
    """The rows whose ids occur more than once: none of them can be preferred.

    Cost: a sort of the hashes; ids are compared only where these are equal.
    """
    hashes = ids.hashes()
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
    suspects = np.unique(order[np.concatenate([same, same + 1])])
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row, id in zip(suspects.tolist(), ids.arrow.take(suspects).to_pylist(), strict=True):
        rows_of[id].append(row)
    several = {id: rows for id, rows in rows_of.items() if len(rows) > 1}
    rows = np.array([row for rows in several.values() for row in rows], np.int64)
    reasons = ((id, f"{len(rows)} subscriptions have this id") for id, rows in several.items())
    return rows, RejectSummary(len(rows), RejectSummary.of(reasons).sentences)


@dataclass(frozen=True, slots=True)
class BuildOne:
    """For `mapInArrow` over one partition of all `ENCODED` rows → `BUILT_ONE`, one row or none.

    The name of a run follows from the sums of its parts: an action that finds the subscriptions as
    another found them, and a task that is tried again, take the index that is there.
    """

    builder: Builder
    attributes: tuple[str, ...]
    rejected: RejectedPolicy

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        encoded = read_reports(row for batch in batches for row in batch.to_pylist())
        if encoded.sums or encoded.rejects.count:
            row = self._built(encoded)
            yield pa.RecordBatch.from_pylist([row], schema=_BUILT_ONE_ARROW)

    def _built(self, encoded: BuildReport) -> dict[str, Any]:
        """Report bad rows, raise none: what fails below a subquery is shown as Java sees it."""
        scratch, names = Path(self.builder.parts), encoded.parts.get(0, [])
        run = _run_of(encoded)
        folder = run_folder(scratch, run)
        if not folder.exists():
            whole, repeating = self.builder.joined(names)
            problem = (encoded.rejects + repeating).problem(self.rejected, "subscriptions")
            if problem is not None:
                return {"problem": problem}
            fresh = scratch / f"new-{secrets.token_hex(8)}"
            self.builder.build(whole, fresh)
            _replace_folder(fresh, folder)
            _remove_earlier(scratch, folder)
        for name in names:
            (scratch / name).unlink(missing_ok=True)
        mentioned = open_shard(folder).mentioned
        return {"run": run, "mentioned": [name in mentioned for name in self.attributes]}


def run_folder(scratch: Path, run: int) -> Path:
    """The folder of the index of *run*."""
    return scratch / f"run-{run:016x}"


def _run_of(encoded: BuildReport) -> int:
    """A number for what was encoded, and for how many rows were bad: these may be an error."""
    text = "\n".join([*sorted(encoded.sums), str(encoded.rejects.count)])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1  # Spark's numbers have a sign


def _replace_folder(fresh: Path, folder: Path) -> None:
    """Let *fresh* be *folder*, unless another action was faster."""
    try:
        fresh.rename(folder)
    except OSError:
        if not folder.exists():
            raise
        shutil.rmtree(fresh, ignore_errors=True)


def _remove_earlier(scratch: Path, folder: Path) -> None:
    earlier = [one for one in scratch.glob("run-*") if one != folder]
    earlier.sort(key=lambda one: one.stat().st_mtime, reverse=True)
    for one in earlier[KEPT_RUNS:]:
        shutil.rmtree(one, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class BuildShards:
    """For `mapInArrow` over the numbers of shards → `BUILT`, a row for each."""

    builder: Builder
    parts: dict[int, list[str]]  # by shard
    folder: str
    rejected: RejectedPolicy

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for shard in batch.column(0).to_pylist():
                row = self._built(shard)
                yield pa.RecordBatch.from_pylist([row], schema=_BUILT_ARROW)

    def _built(self, shard: int) -> dict[str, Any]:
        part, rejects = self.builder.joined(self.parts.get(shard, ()))
        row = {"rejected": rejects.count, "sentences": rejects.sentences}
        if rejects.count and self.rejected == "raise":
            return row
        # A name of its own: what a worker has open under it is never another snapshot's.
        name = f"shard-{shard:04d}-{secrets.token_hex(4)}"
        folder = Path(self.folder, name)
        self.builder.build(part, folder)
        built = open_shard(folder)
        return {**row, "shard": name, "count": built.count, "mentioned": sorted(built.mentioned)}


#: What a task reports of each part that it wrote, and once of the rows that it could not use.
ENCODED: Final = "shard int, part string, sum string, rejected long, sentences array<string>"

_ENCODED_ARROW: Final = pa.schema(
    [
        ("shard", pa.int32()),
        ("part", pa.string()),
        ("sum", pa.string()),
        ("rejected", pa.int64()),
        ("sentences", pa.list_(pa.string())),
    ]
)


#: Subscriptions that a task holds before it writes them.
PART_SUBSCRIPTIONS: Final = 250_000


@dataclass(frozen=True, slots=True)
class EncodeSubscriptions:
    """For `mapInArrow`: the columns id, expression, at, until → `ENCODED`."""

    schema: dict[str, Any]
    folder: str
    shards: int
    limits: RecordLimits

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = Schema.from_dict(self.schema)
        encoder = TextEncoder(schema, self.limits.expression)
        gathered: list[SubscriptionPart] = []
        rejects = RejectSummary()
        for batch in batches:
            table = pa.Table.from_batches([batch])
            part, bad = encode_table(table, schema, encoder, self.limits)
            gathered.append(part)
            rejects += bad
            if sum(map(_count, gathered)) >= PART_SUBSCRIPTIONS:
                yield from self._written(joined(gathered))
                gathered = []
        yield from self._written(joined(gathered))
        if rejects.count:
            yield _row(part=None, rejected=rejects.count, sentences=rejects.sentences)

    def _written(self, part: SubscriptionPart) -> Iterator[pa.RecordBatch]:
        Path(self.folder).mkdir(parents=True, exist_ok=True)
        shard = shard_of(part.ids, self.shards)
        for number in np.unique(shard).tolist():
            own = part if self.shards == 1 else part.rows(np.flatnonzero(shard == number))
            name = f"{secrets.token_hex(8)}.part"
            yield _row(shard=number, part=name, sum=write_part(Path(self.folder, name), own))


def encode_table(
    table: pa.Table, schema: Schema, encoder: TextEncoder, limits: RecordLimits
) -> tuple[SubscriptionPart, RejectSummary]:
    """The subscriptions of *table* that can be used, and why the others cannot."""
    kinds = Schema(plane=schema.plane)  # none: an attribute may be called `expression`
    fields = read_table(table, kinds, limits, others=("expression", "at"))
    reasons = fields.rejected
    rejects = RejectSummary.of((id_in(table, row), reason) for row, reason in reasons.items())
    if reasons:
        table = take_rows(table, np.delete(np.arange(table.num_rows), list(reasons)))
        fields = read_table(table, kinds, limits, others=("expression", "at"))
    ids, texts = string_array(fields.ids), string_array(fields.others["expression"])
    heads = SubscriptionHeads(
        ids.to_pylist(),
        positions_of(fields.others.get("at"), table.num_rows),
        filled(fields.until, NEVER),
    )
    encoded = encoder.encode(texts.to_pylist(), heads)
    rejects += RejectSummary.of(
        (heads.ids[row], str(error)) for row, error in encoded.errors.items()
    )
    names, expressions = (StringArrays.of(one.take(pa.array(encoded.rows))) for one in (ids, texts))
    return SubscriptionPart(encoded.columns, names, expressions), rejects


def _count(part: SubscriptionPart) -> int:
    return len(part.columns.until)


def _row(**cells: Any) -> pa.RecordBatch:
    row = {"shard": 0, "rejected": 0, "sentences": (), **cells}
    return pa.RecordBatch.from_pylist([row], schema=_ENCODED_ARROW)


def session_folder(spark: SparkSession, given: str | os.PathLike[str] | None) -> Path:
    """The name of a fresh folder in *given*, or in `spark.local.dir`; nothing is made yet.

    On a cluster it must be a folder that all machines see, so there it has to be given.
    """
    master = spark.conf.get("spark.master", None) or "local"
    if given is None and not master.startswith("local"):
        raise SettingsError(
            "on a cluster say scratch=, a folder that the driver and all workers see; "
            "or build a snapshot and match with that"
        )
    local = spark.conf.get("spark.local.dir", None) or tempfile.gettempdir()
    parent = Path(local.split(",")[0]) if given is None else local_folder(given, "scratch")
    return _of_this_process(parent.resolve()) / secrets.token_hex(8)


@cache
def _of_this_process(parent: Path) -> Path:
    folder = parent / f"stentor-{os.getpid()}-{secrets.token_hex(4)}"
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
