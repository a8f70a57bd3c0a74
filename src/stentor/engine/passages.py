"""Updates and withdrawals of live events: what was live before is matched again, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stentor.encoding.columns import EventColumns, Int64, MatchPairs, ScoredPairs, read_only
from stentor.encoding.ragged import concatenate, take
from stentor.engine.plan import (
    IN_INDEX,
    Plan,
    PlannedRecord,
)
from stentor.engine.state import State
from stentor.index.pairs import pairs_of, set_changes
from stentor.model.record import Operation


class Passages(NamedTuple):
    """How updates and withdrawals changed who wants their events: rows of subscriptions."""

    steps: Int64  # ascending
    entered: MatchPairs
    left: MatchPairs
    stayed: MatchPairs


def ended_events(
    state: State, plan: Plan, steps: Sequence[PlannedRecord], events: EventColumns
) -> EventColumns:
    """The events that were replaced or withdrawn, as if each came again with its ending."""
    is_old = np.array([one.before.record == IN_INDEX for one in plan.ended], np.bool_)
    rows = [one.before.row for one in plan.ended if one.before.record == IN_INDEX]
    new = [one.before.record for one in plan.ended if one.before.record != IN_INDEX]
    columns = [steps[record].column for record in new]
    both = concatenate(
        [
            take(state.index.live.columns, np.array(rows, np.int64)),
            take(events, np.array(columns, np.int64)),
        ]
    )
    order = np.empty(len(is_old), np.int64)
    order[np.flatnonzero(is_old)] = np.arange(len(rows))
    order[np.flatnonzero(~is_old)] = np.arange(len(rows), len(is_old))
    records = [one.record for one in plan.ended]
    return take(both, order)._replace(
        time=read_only(np.array([plan.times[record] for record in records], np.int64)),
        seq=read_only(np.array([plan.seqs[record] for record in records], np.int64)),
    )


def ended_rows(plan: Plan, kept: Int64, first: int) -> dict[int, int]:
    """The rows of live events that ended, and at which seq; *kept* are held from row *first* on."""
    if not plan.ended:
        return {}
    held = {plan.published[position]: first + n for n, position in enumerate(kept.tolist())}
    return {
        one.before.row if one.before.record == IN_INDEX else held[one.before.record]: plan.seqs[
            one.record
        ]
        for one in plan.ended
    }


def passages_of(
    plan: Plan, steps: Sequence[PlannedRecord], pairs: MatchPairs | ScoredPairs
) -> tuple[list[int], MatchPairs | ScoredPairs, Passages]:
    """What was published, whom it is for; and how the other events of *pairs* changed."""
    plain: list[int] = []  # positions among those that were matched
    now: dict[int, int] = {}  # by record, the position of what an update brought
    for position, record in enumerate(plan.published):
        if steps[record].operation is Operation.PUBLISH:
            plain.append(position)
        else:
            now[record] = position
    was = {one.record: len(plan.published) + n for n, one in enumerate(plan.ended)}
    records = sorted({*now, *was})
    changes = set_changes(
        *(
            pairs_of(pairs, np.array([one.get(record, -1) for record in records], np.int64))
            for one in (was, now)
        )
    )
    published = [plan.published[position] for position in plain]
    of_published = pairs_of(pairs, np.array(plain, np.int64))
    return published, of_published, Passages(np.array(records, np.int64), *changes)
