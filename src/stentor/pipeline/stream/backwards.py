"""Changed subscriptions against live events: what each change added and took away."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import EventColumns, Int64, MatchPairs
from stentor.encoding.ragged import children
from stentor.engine.names import Strings
from stentor.index.structure import Structure
from stentor.pipeline.stream.segments import Asked
from stentor.pipeline.tables.files import moments


class Answers(NamedTuple):
    """Pairs of a change and a live event."""

    change: Int64
    event: Int64


def differences(asked: Asked, events: Structure, ids: Strings) -> Any:
    """Deliveries `added` and `removed` by the changes *asked*, as rows of the table.

    An event counts for a change where it came before it and is not over then.
    """
    pairs = events.match_back(asked.columns)
    live = events.live.columns
    before, after = (
        _answers(asked, pairs, versions, live) for versions in (asked.before, asked.after)
    )
    count = len(live.until)
    was, now = (answers.change * count + answers.event for answers in (before, after))
    added, removed = np.setdiff1d(now, was), np.setdiff1d(was, now)
    both = np.concatenate([added, removed])
    change, event = np.divmod(both, max(count, 1))
    names = pa.array(["added"] * len(added) + ["removed"] * len(removed), pa.string())
    return pa.table(
        {
            "event": ids.take(event).cast(pa.string()),
            "subscription": asked.ids.arrow.take(pa.array(change)).cast(pa.string()),
            "change": names,
            "score": pa.nulls(len(both), pa.float64()),
            "seq": asked.seq[change],
            "time": moments(asked.time[change]),
        }
    )


def _answers(asked: Asked, pairs: MatchPairs, versions: Int64, live: EventColumns) -> Answers:
    """The live events that the given version of each change wanted when it happened."""
    known = np.flatnonzero(versions >= 0)
    places, starts = children(pairs.starts, versions[known])
    change, event = np.repeat(known, np.diff(starts)), pairs.rows[places]
    held = (live.seq[event] < asked.seq[change]) & (live.until[event] > asked.time[change])
    return Answers(change[held], event[held])
