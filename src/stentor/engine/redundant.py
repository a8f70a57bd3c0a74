"""Which subscriptions others make redundant."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stentor.covering.graph.edges import NONE
from stentor.covering.mixed.graph import MixedGraph
from stentor.encoding.columns import Int64
from stentor.engine.state import State
from stentor.model import Schema


class Redundant(NamedTuple):
    """A subscription, and one that covers it and that nothing else covers."""

    id: str
    covered_by: str


def redundant(state: State, schema: Schema, rows: Int64) -> list[Redundant]:
    """Those of *rows* that another of them covers, by id.

    Cost: one covering query for each; a million take less than a minute.
    """
    graph = MixedGraph(schema)
    own = graph.add(state.index.columns_of(rows))
    graph.reduce(own)
    above = graph.edges.coverer[: len(own)]
    covered = np.flatnonzero(above != NONE)
    top = above[covered]
    while (above[top] != NONE).any():
        top = np.where(above[top] != NONE, above[top], top)
    ids = state.subscribers.ids
    pairs = (ids.take(rows[found]).to_pylist() for found in (covered, top))
    return sorted(map(Redundant, *pairs))
