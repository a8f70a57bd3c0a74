"""Worker's side: encoded parts → shards in folders."""

from __future__ import annotations

import hashlib
import secrets
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import Int64
from stentor.engine.names import StringArrays
from stentor.index.catalog import index_class, structure_of
from stentor.pipeline.batch.parts import Part, joined, read_part
from stentor.pipeline.batch.rejects import Policy, Rejects
from stentor.pipeline.snapshots import build_index, open_index

#: What `BuildOne` tells: which run this is, and whether each of the attributes is mentioned; or,
#: instead of these, why there is no index.
BUILT_ONE: Final = "run long, mentioned array<boolean>, problem string"
_BUILT_ONE_ARROW: Final = pa.schema(
    [("run", pa.int64()), ("mentioned", pa.list_(pa.bool_())), ("problem", pa.string())]
)
#: What `BuildShards` tells of each shard; its name is null where it was not built.
BUILT: Final = (
    "shard string, count long, mentioned array<string>, rejected long, told array<string>"
)
_BUILT_ARROW: Final = pa.schema(
    [
        ("shard", pa.string()),
        ("count", pa.int64()),
        ("mentioned", pa.list_(pa.string())),
        ("rejected", pa.int64()),
        ("told", pa.list_(pa.string())),
    ]
)

#: Indexes of other subscriptions that are kept beside the newest: a frame that was read before
#: they changed may be read again, and Spark then remembers which index it had.
KEPT_RUNS: Final = 3


class Encoded(NamedTuple):
    """What the encoding tasks have told."""

    parts: dict[int, list[str]]  # by shard
    sums: list[str]  # of all parts
    rejects: Rejects


def told(rows: Iterable[Mapping[str, Any]]) -> Encoded:
    """What *rows* of `ENCODED` tell together."""
    parts: dict[int, list[str]] = defaultdict(list)
    sums: list[str] = []
    rejects = Rejects()
    for row in rows:
        if row["part"] is not None:
            parts[row["shard"]].append(row["part"])
            sums.append(row["sum"])
        rejects += Rejects(row["rejected"], tuple(row["told"]))
    return Encoded(dict(parts), sums, rejects)


@dataclass(frozen=True, slots=True)
class Builder:
    """Makes shards of parts, which all workers see in the folder *parts*."""

    schema: dict[str, Any]
    index: str
    parts: str

    def joined(self, names: Iterable[str]) -> tuple[Part, Rejects]:
        """The subscriptions of these parts, without those whose ids occur more than once."""
        whole = joined([read_part(Path(self.parts, name)) for name in names])
        rows, rejects = repeated(whole.ids)
        if rejects.count:
            whole = whole.rows(np.delete(np.arange(len(whole.columns.until)), rows))
        return whole, rejects

    def build(self, part: Part, folder: Path) -> None:
        """Put the shard of *part* into *folder*."""
        structure = structure_of(index_class(self.index, part.columns))
        build_index(*part, structure, folder, {"schema": self.schema})


def repeated(ids: StringArrays) -> tuple[Int64, Rejects]:
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
    return rows, Rejects(len(rows), Rejects.of(reasons).told)


@dataclass(frozen=True, slots=True)
class BuildOne:
    """For `mapInArrow` over one partition of all `ENCODED` rows → `BUILT_ONE`, one row or none.

    The name of a run follows from the sums of its parts: an action that finds the subscriptions as
    another found them, and a task that is tried again, take the index that is there.
    """

    builder: Builder
    attributes: tuple[str, ...]
    rejected: Policy

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        encoded = told(row for batch in batches for row in batch.to_pylist())
        if encoded.sums or encoded.rejects.count:
            row = self._built(encoded)
            yield pa.RecordBatch.from_pylist([row], schema=_BUILT_ONE_ARROW)

    def _built(self, encoded: Encoded) -> dict[str, Any]:
        """Bad rows are told, not raised: what fails below a subquery is shown as Java sees it."""
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
            _put_in_place(fresh, folder)
            _remove_earlier(scratch, folder)
        for name in names:
            (scratch / name).unlink(missing_ok=True)
        mentioned = open_index(folder).mentioned
        return {"run": run, "mentioned": [name in mentioned for name in self.attributes]}


def run_folder(scratch: Path, run: int) -> Path:
    """Where the index of *run* stands."""
    return scratch / f"run-{run:016x}"


def _run_of(encoded: Encoded) -> int:
    """A number for what was encoded, and for how many rows were bad: these may be an error."""
    text = "\n".join([*sorted(encoded.sums), str(encoded.rejects.count)])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1  # Spark's numbers have a sign


def _put_in_place(fresh: Path, folder: Path) -> None:
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
    rejected: Policy

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for shard in batch.column(0).to_pylist():
                row = self._built(shard)
                yield pa.RecordBatch.from_pylist([row], schema=_BUILT_ARROW)

    def _built(self, shard: int) -> dict[str, Any]:
        part, rejects = self.builder.joined(self.parts.get(shard, ()))
        row = {"rejected": rejects.count, "told": rejects.told}
        if rejects.count and self.rejected == "raise":
            return row
        # A name of its own: what a worker has open under it is never another snapshot's.
        name = f"shard-{shard:04d}-{secrets.token_hex(4)}"
        folder = Path(self.folder, name)
        self.builder.build(part, folder)
        built = open_index(folder)
        return {**row, "shard": name, "count": built.count, "mentioned": sorted(built.mentioned)}
