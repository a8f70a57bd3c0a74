"""Blocks against `evaluate`, and against plain comparisons of many drawn bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.encoding.columns import SubscriptionColumns, event_count, read_only, read_only_columns
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.kinds import BOX, INTERVAL, MISSING, PRESENT
from stentor.encoding.ragged import take
from stentor.index.packed.blocks import Blocks
from stentor.index.packed.homes import found_for
from stentor.index.table import SubscriptionTable
from stentor.index.verify import Candidates, verify
from stentor.model import Event
from tests.support import grid, strategies
from tests.support.slow_index import SlowIndex, encoded, rows_by_event

SCHEMA = grid.schema()
subscriptions = st.lists(strategies.subscriptions(max_predicates=4), min_size=1, max_size=6)
some_events = st.lists(strategies.events(), max_size=4)


def alternatives_of(columns):
    return np.arange(len(columns.predicate_start) - 1)


def pairs_of(blocks, events, capacity=8, one=False):
    """What *blocks* find, in memory that grows by asking again."""
    ask = blocks.match_one if one else blocks.match
    found = found_for(capacity)
    while (count := ask(events, found)) > len(found.event):
        found = found_for(count)
    return [array[:count] for array in found]


def matched(blocks, columns, events, **how):
    """The rows of each event; each pair that is covered must be a match."""
    table = SubscriptionTable()
    table.append(columns)
    event, alternative, covered = pairs_of(blocks, events, **how)
    everything = verify(
        table.columns, table.validity, events, Candidates(event, alternative, covered * 0)
    )
    trusted = verify(table.columns, table.validity, events, Candidates(event, alternative, covered))
    assert rows_by_event(everything) == rows_by_event(trusted), "covered pairs match"
    return rows_by_event(trusted)


@given(some=subscriptions, events=some_events, copies=st.sampled_from([1, 9, 300]))
def test_blocks_find_what_evaluate_finds(some, events, copies):
    columns = encoded(some, SCHEMA)
    turn = np.tile(np.arange(len(some)), copies)
    many = take(columns, turn)
    blocks = Blocks.build(many, alternatives_of(many))
    blocks.check(many, alternatives_of(many))
    arrived = [TimedEvent(event) for event in events]
    expected = SlowIndex(some).match(arrived)
    expected = [[row for row in range(len(turn)) if turn[row] in rows] for rows in expected]
    encoded_events = encode_events(arrived, SCHEMA)
    assert matched(blocks, many, encoded_events) == expected
    for position, event in enumerate(arrived):
        alone = encode_events([event], SCHEMA)
        assert matched(blocks, many, alone, one=True) == [expected[position]]
