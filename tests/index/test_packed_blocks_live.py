"""Live events in blocks against `evaluate`, and against the verifier for many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.encoding.columns import event_count
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.ragged import take
from stentor.index.live import LiveSignatures
from stentor.index.packed.blocks import LiveBlocks
from stentor.index.packed.blocks import live as live_module
from stentor.index.table import EventTable
from tests.index.test_packed_blocks import WORLDS, drawn_columns, drawn_events
from tests.support import grid, strategies
from tests.support.slow_index import SlowIndex, encoded, rows_by_event

SCHEMA = grid.schema()


class Held:
    """A table of live events, with blocks that follow it."""

    def __init__(self):
        self.table, self.blocks = EventTable(), LiveBlocks()

    def hold(self, events):
        self.table.append(events)
        self.blocks.hold(self.table)

    def drop(self, rows):
        self.table.hide(rows)
        self.blocks.drop(rows)

    def forget_dropped(self):
        kept = self.table.current_rows()
        self.table.keep(kept)
        self.blocks.keep(kept, self.table)

    def match(self, columns):
        self.blocks.check(self.table)
        return rows_by_event(self.blocks.match(columns, self.table))

    def expected(self, columns):
        """By the signatures of all events."""
        signatures = LiveSignatures()
        signatures.add(self.table.columns)
        return rows_by_event(signatures.match(columns, self.table))


@pytest.fixture
def small_tail(monkeypatch):
    monkeypatch.setattr(live_module, "TAIL", 16)


@given(
    some=st.lists(strategies.subscriptions(max_predicates=4), min_size=1, max_size=5),
    events=st.lists(strategies.events(several=False), min_size=1, max_size=5),
    copies=st.sampled_from([1, 400]),
)
def test_subscriptions_find_what_evaluate_finds(some, events, copies):
    held, turn = Held(), np.tile(np.arange(len(events)), copies)
    held.hold(take(encode_events([TimedEvent(event) for event in events], SCHEMA), turn))
    assert (held.blocks.segments > 0) == (len(turn) >= live_module.TAIL)
    wanted = SlowIndex(some).match([TimedEvent(event) for event in events])
    expected = [
        [row for row in range(len(turn)) if subscription in wanted[turn[row]]]
        for subscription in range(len(some))
    ]
    assert held.match(encoded(some, SCHEMA)) == expected


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("ranges", [False, True])
def test_many_live_events_are_found(name, ranges, small_tail):
    random = np.random.default_rng(7)
    columns = drawn_columns(random, 150, **WORLDS[name])
    events = drawn_events(random, 3000, domain=WORLDS[name]["domain"], ranges=ranges)
    held, start = Held(), 0
    while start < event_count(events):
        stop = min(event_count(events), start + int(random.integers(1, 400)))
        held.hold(take(events, np.arange(start, stop)))
        held.drop(np.unique(random.integers(0, held.table.count, 20)))
        start = stop
    assert 0 < held.blocks.segments <= live_module.MOST_SEGMENTS
    expected = held.expected(columns)
    assert any(expected)
    assert held.match(columns) == expected
    held.forget_dropped()
    assert held.match(columns) == held.expected(columns)
    held.hold(take(events, np.arange(40)))
    assert held.match(columns) == held.expected(columns)
    held.drop(np.arange(held.table.count))
    assert held.blocks.segments == 0
    assert held.match(columns) == [[]] * 150


def test_segments_are_joined_beside_what_goes_on(small_tail, monkeypatch):
    monkeypatch.setattr(live_module, "FOREGROUND", 64)
    random = np.random.default_rng(8)
    columns = drawn_columns(random, 60, asked=2, domain=9)
    events = drawn_events(random, 1500, domain=9)
    held = Held()
    for start in range(0, 1500, 25):
        held.hold(take(events, np.arange(start, start + 25)))
        if start % 100 == 0:
            held.drop(np.unique(random.integers(0, held.table.count, 9)))
            assert held.match(columns) == held.expected(columns)
