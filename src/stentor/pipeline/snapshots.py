"""Subscriptions in a folder that workers memory-map: shards, and snapshots of several shards.

path/
  manifest.json     a snapshot's: schema, counts, the names of its shards
  <shard>/          complete in itself, so that a stream keeps shards without a snapshot
    manifest.json   schema, structure, count
    subscriptions/  current ones, as `engine/folder.py` writes them,
    index/          and the structure over them
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stentor._files import explain_os_errors
from stentor.encoding.columns import Int64, SubscriptionColumns, subscription_count
from stentor.encoding.kinds import KEYWORDS, KIND_MASK, PHRASE
from stentor.engine.folder import Trust, open_subscriptions, write_subscriptions
from stentor.engine.ids import StringArrays
from stentor.engine.state import State
from stentor.index.catalog import structure_class
from stentor.index.layered import Layered
from stentor.index.storage.arrays import Meta, inner_folder, new_folder, read_arrays, write_arrays
from stentor.index.structure import Structure
from stentor.model import Schema

SNAPSHOT, SHARD = "snapshot", "shard"


def write_shard(
    columns: SubscriptionColumns,
    ids: StringArrays,
    texts: StringArrays,
    structure: type[Structure],
    folder: Path,
    meta: Mapping[str, Any],
) -> None:
    """Put one shard into *folder*, all or nothing; *meta* says at least the `schema`.

    Cost: that of building *structure*, and a pass over the bytes for their sums.
    """
    is_searched = np.isin(columns.kind & KIND_MASK, (KEYWORDS, PHRASE))
    own = {
        "index": structure.name,
        "count": subscription_count(columns),
        "mentioned": np.unique(columns.attribute).tolist(),
        "searched": np.unique(columns.attribute[is_searched]).tolist(),
    }
    with explain_os_errors(folder), new_folder(folder) as fresh:
        write_subscriptions(fresh, columns, ids, texts, structure)
        write_arrays(fresh, {}, kind=SHARD, meta={**meta, **own})


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """An opened shard: a state of its own in every process, over pages that all share."""

    state: State
    schema: Schema
    meta: Meta

    @property
    def count(self) -> int:
        """How many subscriptions it was built from."""
        return int(self.meta["count"])

    @property
    def columns(self) -> SubscriptionColumns:
        """The subscriptions that it was built from."""
        assert isinstance(self.state.index, Layered)
        return self.state.index.base.subscriptions.columns

    @property
    def mentioned(self) -> frozenset[str]:
        """The attributes that any of these subscriptions tests."""
        return self._names("mentioned")

    @property
    def searched(self) -> frozenset[str]:
        """The attributes of which any of these subscriptions wants terms."""
        return self._names("searched")

    def _names(self, field: str) -> frozenset[str]:
        names = self.schema.by_code
        return frozenset(names[code] for code in self.meta[field])


def open_shard(folder: Path, *, verify: bool = False) -> Shard:
    """What `build_index` put into *folder*.

    Cost: milliseconds, whatever it holds; with *verify* all of it is read.
    """
    _, meta = read_arrays(folder, kind=SHARD)
    structure = structure_class(meta["index"])
    state = open_subscriptions(folder, structure, Trust(sums=verify))
    return Shard(state, Schema.from_dict(meta["schema"]), meta)


def shard_of(ids: StringArrays, shards: int) -> Int64:
    """For each id the shard that it belongs to: the same in every process, on every machine.

    >>> import pyarrow as pa
    >>> shard_of(StringArrays.of(pa.array(["ana", "bo", "cy"])), 3).tolist()
    [0, 0, 2]
    """
    return (ids.hashes() % np.uint64(shards)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A base of subscriptions that `match` takes, and what is in it."""

    path: Path
    count: int
    """How many subscriptions it holds."""
    rejected: int
    """How many rows were left out of it because they were bad."""
    shards: tuple[str, ...]
    """The names of its shards' folders, which no other snapshot at this path has."""
    mentioned: frozenset[str]
    """The attributes that any subscription tests."""
    schema: Schema
    sentences: tuple[str, ...] = ()
    """What was wrong with the first rows that were left out."""


def write_manifest(
    folder: Path,
    schema: Schema,
    shards: Iterable[str],
    mentioned: Iterable[str],
    sentences: Iterable[str] = (),
    **counts: int,
) -> None:
    """Make the shards in *folder* a snapshot; *counts* are `count` and `rejected`."""
    meta = {
        "schema": schema.to_dict(),
        "shards": list(shards),
        "mentioned": sorted(mentioned),
        "told": list(sentences),
        **counts,
    }
    write_arrays(folder, {}, kind=SNAPSHOT, meta=meta)


def read_snapshot(path: Path) -> Snapshot:
    """The snapshot at *path*, every file of which is there; a FolderError where one is not.

    Cost: that of opening each shard.
    """
    _, meta = read_arrays(path, kind=SNAPSHOT)
    for name in meta["shards"]:
        open_shard(inner_folder(path, name))
    return Snapshot(
        path,
        meta["count"],
        meta["rejected"],
        tuple(meta["shards"]),
        frozenset(meta["mentioned"]),
        Schema.from_dict(meta["schema"]),
        tuple(meta.get("told", ())),
    )
