"""Changes of subscriptions in files: what a worker applies to its index after the base.

A segment holds the versions of subscriptions that one or several micro-batches brought, each with
the span of records in which it held, and the ids whose earlier versions ended. That of a batch in
progress also says which versions are to be matched backwards with the live events.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stentor.encoding.columns import Int64, SubscriptionColumns, empty, sealed
from stentor.encoding.ragged import concatenate, take
from stentor.engine.names import StringArrays, Strings
from stentor.index.array_file import read_array_file, write_array_file
from stentor.index.bundles import bundle_of, with_prefix
from stentor.index.folders import sync
from stentor.index.table import ALWAYS
from stentor.model.time import NEVER
from stentor.pipeline.commit.manifests import Segment
from stentor.pipeline.commit.new_files import explaining

SEGMENTS = "segments"


class Versions(NamedTuple):
    """New versions of subscriptions, those of one id in order, and what ended."""

    columns: SubscriptionColumns
    ids: StringArrays
    texts: StringArrays
    since: Int64  # each holds for records after this
    upto: Int64  # and before this; NEVER where it still holds
    ended: StringArrays  # ids of versions that stood before
    ended_upto: Int64


class Asked(NamedTuple):
    """Changes that report how their subscriber's answer among the live events changed."""

    columns: SubscriptionColumns  # of versions before and after the changes
    ids: StringArrays  # whose change
    seq: Int64
    time: Int64
    before: Int64  # the version's row among the columns, −1 where there was none
    after: Int64


_VERSION_ARRAYS = ("since", "upto", "ended_upto")
_ASKED_ARRAYS = ("seq", "time", "before", "after")


def write_segment(
    path: Path,
    shard: int,
    batches: tuple[int, int],
    versions: Versions,
    asked: Asked | None = None,
    tier: int = 0,
    growth: int = 0,
    applied: int | None = None,
    origin: str = "",
) -> Segment:
    """Write the changes of *batches* (first, last); what the manifest says of the segment."""
    name = f"{batches[1]}-{secrets.token_hex(8)}"
    arrays = {
        **with_prefix("columns", versions.columns),
        **with_prefix("ids", versions.ids),
        **with_prefix("texts", versions.texts),
        **with_prefix("ended", versions.ended),
        **{field: getattr(versions, field) for field in _VERSION_ARRAYS},
    }
    if asked is not None:
        arrays |= with_prefix("asked.columns", asked.columns)
        arrays |= with_prefix("asked.ids", asked.ids)
        arrays |= {f"asked.{field}": getattr(asked, field) for field in _ASKED_ARRAYS}
    with explaining(path / SEGMENTS / name):
        written = write_array_file(path / SEGMENTS / name, arrays, kind=SEGMENTS)
        sync(path / SEGMENTS)
    return Segment(
        name=name,
        first=batches[0],
        last=batches[1],
        versions=len(versions.since),
        bytes=written,
        shard=shard,
        tier=tier,
        growth=growth,
        applied=len(versions.since) if applied is None else applied,
        origin=origin,
    )


def open_versions(path: Path, name: str) -> Versions:
    """The versions of the segment *name*."""
    arrays, _ = read_array_file(path / SEGMENTS / name, kind=SEGMENTS)
    return Versions(
        columns=sealed(bundle_of(SubscriptionColumns, "columns", arrays)),
        ids=bundle_of(StringArrays, "ids", arrays),
        texts=bundle_of(StringArrays, "texts", arrays),
        ended=bundle_of(StringArrays, "ended", arrays),
        **{field: arrays[field] for field in _VERSION_ARRAYS},
    )


def open_asked(path: Path, name: str) -> Asked:
    """The changes of the segment *name* that report to their subscribers."""
    arrays, _ = read_array_file(path / SEGMENTS / name, kind=SEGMENTS)
    return Asked(
        columns=sealed(bundle_of(SubscriptionColumns, "asked.columns", arrays)),
        ids=bundle_of(StringArrays, "asked.ids", arrays),
        **{field: arrays[f"asked.{field}"] for field in _ASKED_ARRAYS},
    )


def folded(path: Path, shard: int, segments: Sequence[Segment]) -> Segment:
    """One segment with the outcome of several consecutive ones: only what stands at their end."""
    columns: list[SubscriptionColumns] = []
    ids, texts, ended = Strings(), Strings(), Strings()
    standing: dict[str, int] = {}  # the last version of each id among all columns
    touched: dict[str, None] = {}
    count = 0
    for segment in segments:
        versions = open_versions(path, segment.name)
        columns.append(versions.columns)
        own, old = Strings(versions.ids), Strings(versions.ended)
        ids.extend(own)
        texts.extend(Strings(versions.texts))
        for id in old:
            touched[id] = None
            standing.pop(id, None)
        for place, (id, upto) in enumerate(zip(own, versions.upto.tolist(), strict=True)):
            standing.pop(id, None)
            if upto == NEVER:
                standing[id] = count + place
        count += len(versions.upto)
    ended.extend(touched)
    rows = np.array(sorted(standing.values()), np.int64)
    every = concatenate(columns) if columns else empty(SubscriptionColumns)
    outcome = Versions(
        columns=take(every, rows),
        ids=ids.arrays(rows),
        texts=texts.arrays(rows),
        since=np.full(len(rows), ALWAYS, np.int64),
        upto=np.full(len(rows), NEVER, np.int64),
        ended=ended.arrays(np.arange(len(ended))),
        ended_upto=np.zeros(len(ended), np.int64),
    )
    batches = segments[0].first, segments[-1].last
    tier = 1 + max(segment.tier for segment in segments)
    growth = sum(segment.growth for segment in segments)
    return write_segment(
        path,
        shard,
        batches,
        outcome,
        tier=tier,
        growth=growth,
        applied=sum(segment.applied for segment in segments),
        origin=segments[-1].origin or segments[-1].name,
    )
