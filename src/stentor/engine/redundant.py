"""Which subscriptions others make redundant, until they end."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stentor.covering.graph.edges import NONE
from stentor.covering.graph.g_k import CoveringGraph
from stentor.encoding.columns import Int64, SubscriptionColumns, read_only_columns
from stentor.encoding.kinds import BOX, KIND_MASK, OWN_CIRCLE
from stentor.engine.state import State
from stentor.model import Schema


class Redundant(NamedTuple):
    """A subscription, and one that covers it and that nothing else covers."""

    id: str
    covered_by: str


def redundant(state: State, schema: Schema, rows: Int64) -> list[Redundant]:
    """Those of *rows* that another of them covers, by id, now and until they end.

    One that ends earlier covers nothing that goes on. Each subscriber may move on its own: one that
    wants what is around it covers nothing, and is covered only where its location does not matter.

    Cost: one covering query for each; a million take less than a minute.
    """
    until = state.index.until(rows)
    rows = rows[np.argsort(~until, kind="stable")]  # the longest first: of equals the first stays
    graph = CoveringGraph(schema)
    columns, moves = anywhere(state.index.columns_of(rows), schema.plane)
    own = graph.add(columns)
    graph.reduce(own, own[~moves])
    above = graph.edges.coverer[: len(own)]
    covered = np.flatnonzero(above != NONE)
    top = above[covered]
    while (above[top] != NONE).any():
        top = np.where(above[top] != NONE, above[top], top)
    ids = state.subscribers.ids
    pairs = (ids.take(rows[found]).to_pylist() for found in (covered, top))
    return sorted(map(Redundant, *pairs))


def anywhere(
    columns: SubscriptionColumns, plane: bool
) -> tuple[SubscriptionColumns, npt.NDArray[np.bool_]]:
    """*columns* with the whole world around each subscriber, and which rows that widened."""
    moving = np.flatnonzero(columns.kind & KIND_MASK == OWN_CIRCLE)
    widened = np.zeros(len(columns.alternative_start) - 1, np.bool_)
    if not len(moving):
        return columns, widened
    alternative = np.searchsorted(columns.predicate_start, moving, side="right") - 1
    widened[np.searchsorted(columns.alternative_start, alternative, side="right") - 1] = True
    kind, stop = columns.kind.copy(), columns.operand_stop.copy()
    low, high = columns.pair_low.copy(), columns.pair_high.copy()
    first = columns.operand_start[moving]
    kind[moving], stop[moving] = BOX, first + 2
    for pair, side in enumerate((math.inf, math.inf) if plane else (180.0, 90.0)):
        low[first + pair], high[first + pair] = -side, side
    return read_only_columns(
        columns._replace(kind=kind, operand_stop=stop, pair_low=low, pair_high=high)
    ), widened
