"""Batches of events, a tile at a time, on one thread or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from stentor._jit import is_plain
from stentor.encoding.columns import EventColumns, MatchPairs, ScoredPairs, event_count
from stentor.encoding.ragged import events_between

#: Events of a tile: those that one kernel call matches together.
TILE = 512

Pairs = TypeVar("Pairs", MatchPairs, ScoredPairs)


def map_tiles(match: Callable[[EventColumns], Pairs], events: EventColumns, threads: int) -> Pairs:
    """What *match* finds for *events*, a tile at a time; the same for any *threads*."""
    count = event_count(events)
    tile = max(1, min(TILE, -(-count // threads)))
    if count <= tile:
        return match(events)
    tiles = [
        events_between(events, start, min(start + tile, count)) for start in range(0, count, tile)
    ]
    if threads == 1 or is_plain():  # plain kernels of several threads would wait for one another
        return concatenate_pairs([match(one) for one in tiles])
    with ThreadPoolExecutor(threads) as pool:
        return concatenate_pairs(list(pool.map(match, tiles)))


def concatenate_pairs(parts: Sequence[Pairs]) -> Pairs:
    """The pairs of all *parts*, one after the other."""
    if len(parts) == 1:
        return parts[0]
    counts = np.concatenate([np.zeros(1, np.int64), *(np.diff(part.starts) for part in parts)])
    rest = (np.concatenate(arrays) for arrays in zip(*(part[1:] for part in parts), strict=True))
    return type(parts[0])(np.cumsum(counts), *rest)
