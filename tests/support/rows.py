"""What the verifier says of every event and subscription: a structure's answer without it."""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import EventColumns, MatchPairs, event_count
from stentor.index.structure import Structure
from stentor.index.verify.candidates import Candidates, verify


def matched_by_rows(index: Structure, events: EventColumns) -> MatchPairs:
    """The matches of *events*: every alternative is a candidate, none is ruled out."""
    table = index.subscriptions
    alternatives = int(table.columns.alternative_start[-1])
    event = np.repeat(np.arange(event_count(events)), alternatives)
    every = np.tile(np.arange(alternatives), event_count(events))
    candidates = Candidates(event, every, np.zeros(0, np.uint8))
    return verify(table.columns, table.validity, events, candidates)
