"""Encoded subscriptions in files, on their way from the tasks that encode to those that build."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import Int64, SubscriptionColumns, empty, sealed
from stentor.encoding.ragged import concatenate, take
from stentor.engine.names import StringArrays
from stentor.index.array_file import read_array_file, write_array_file
from stentor.index.bundles import bundle_of, with_prefix
from stentor.pipeline.commit.new_files import explaining

PART = "subscriptions"


class Part(NamedTuple):
    """Subscriptions as an index is built from them."""

    columns: SubscriptionColumns
    ids: StringArrays
    texts: StringArrays

    def rows(self, rows: Int64) -> Part:
        """The given *rows*."""
        ids, texts = (StringArrays.of(one.arrow.take(pa.array(rows))) for one in self[1:])
        return Part(take(self.columns, rows), ids, texts)


def joined(parts: Sequence[Part]) -> Part:
    """All *parts*, one after another."""
    if not parts:
        nothing = StringArrays.of(pa.array([], pa.large_string()))
        return Part(empty(SubscriptionColumns), nothing, nothing)
    if len(parts) == 1:
        return parts[0]
    ids = pa.chunked_array([part.ids.arrow for part in parts])
    texts = pa.chunked_array([part.texts.arrow for part in parts])
    columns = concatenate([part.columns for part in parts])
    return Part(columns, StringArrays.of(ids), StringArrays.of(texts))


def write_part(path: Path, part: Part) -> str:
    """Put *part* into a new file; its sum. What is lost with the machine is encoded again."""
    arrays = {
        **with_prefix("columns", part.columns),
        **with_prefix("ids", part.ids),
        **with_prefix("texts", part.texts),
    }
    with explaining(path):
        write_array_file(path, arrays, kind=PART, durable=False)
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays.values():
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def read_part(path: Path) -> Part:
    """The part in the file *path*, memory-mapped."""
    arrays, _ = read_array_file(path, kind=PART)
    return Part(
        sealed(bundle_of(SubscriptionColumns, "columns", arrays)),
        bundle_of(StringArrays, "ids", arrays),
        bundle_of(StringArrays, "texts", arrays),
    )
