"""Every index of the catalogue in any order of changes and questions, against `evaluate`."""

import numpy as np
import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from stentor.encoding.events import TimedEvent, encode_events
from stentor.index.catalog import index_class, names
from tests.support import grid, strategies
from tests.support.slow_index import SlowIndex, encoded, rows_by_event, scores_by_event

SCHEMA = grid.schema()
#: Settings with which a few rows and events are enough for what takes thousands otherwise.
SMALL = [
    "be_star_tree capacity=2 window=2",
    "be_star_tree capacity=1 alpha=0.0 beta=1.5 loss=histogram split=approximate window=1",
    "packed pending=0",
    "packed pending=0 home=nodes",
    "packed pending=2 foreground=4",
]
few_subscriptions = st.lists(strategies.subscriptions(until=True, max_predicates=4), max_size=3)
few_events = st.lists(strategies.events(until=True), min_size=1, max_size=3)


def machine(group):
    """The machine that tries the indexes of *group*, all of them in the order that is drawn."""

    class Machine(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            self.slow = SlowIndex()
            self.seq = self.time = 0

        @initialize(subscriptions=few_subscriptions)
        def build(self, subscriptions):
            columns = encoded(subscriptions, SCHEMA)
            self.indexes = {name: index_class(name).build(columns) for name in group}
            self.slow.insert(subscriptions)

        def each(self):
            for name, index in self.indexes.items():
                note(name)
                yield index

        @rule(seconds=st.sampled_from([0, 1, 3]))
        def wait(self, seconds):
            self.time += seconds * strategies.SECOND

        @rule(subscriptions=few_subscriptions)
        def insert(self, subscriptions):
            columns = encoded(subscriptions, SCHEMA)
            first = self.slow.insert(subscriptions, self.seq)
            for index in self.each():
                assert index.insert(columns, self.seq) == first

        def some_rows(self, data, rows):
            """A few of *rows*, not only the smallest."""
            chosen = data.draw(st.sets(st.sampled_from(sorted(rows)), min_size=1, max_size=3))
            return np.array(sorted(chosen), np.int64)

        @precondition(lambda self: self.slow.standing())
        @rule(data=st.data())
        def remove(self, data):
            rows = self.some_rows(data, self.slow.standing())
            for index in self.each():
                index.remove(rows)
            self.slow.remove(rows.tolist())

        @precondition(lambda self: self.slow.standing())
        @rule(data=st.data())
        def close_then_remove(self, data):
            rows = self.some_rows(data, self.slow.standing())
            self.seq += 1
            for index in self.each():
                index.close(rows, np.full(len(rows), self.seq))
            self.slow.close(rows.tolist(), self.seq)
            self.ask_of([data.draw(strategies.events())])
            for index in self.each():
                index.remove(rows)
            self.slow.remove(rows.tolist())

        @precondition(lambda self: self.slow.standing())
        @rule(data=st.data())
        def move(self, data):
            rows = self.some_rows(data, self.slow.standing())
            places = [data.draw(strategies.points()) for _ in rows]
            for index in self.each():
                index.move(rows, np.array(places, np.float64))
            self.slow.move(rows.tolist(), places)

        @rule(events=few_events)
        def hold(self, events):
            columns = encode_events([TimedEvent(event) for event in events], SCHEMA)
            first = self.slow.hold(events)
            for index in self.each():
                assert index.hold(columns) == first

        @precondition(lambda self: self.slow.live())
        @rule(data=st.data())
        def drop(self, data):
            rows = self.some_rows(data, self.slow.live())
            for index in self.each():
                index.drop(rows)
            self.slow.drop(rows.tolist())

        @rule()
        def forget_dropped(self):
            expected = self.slow.forget_dropped()
            for index in self.each():
                assert index.forget_dropped().tolist() == expected

        @rule(events=few_events)
        def match(self, events):
            self.ask_of(events)

        def ask_of(self, events):
            """Match *events* as the records that come next, in every way."""
            arrivals = []
            for event in events:
                self.seq += 1
                arrivals.append(TimedEvent(event, self.time, self.seq))
            columns = encode_events(arrivals, SCHEMA)
            expected, best = self.slow.match(arrivals), self.slow.top(arrivals, 2)
            for index in self.each():
                assert rows_by_event(index.match(columns)) == expected
                assert rows_by_event(index.match(columns, threads=2)) == expected
                assert scores_by_event(index.top(columns, 2)) == best

        @rule(subscriptions=few_subscriptions)
        def match_live(self, subscriptions):
            columns, expected = encoded(subscriptions, SCHEMA), self.slow.match_live(subscriptions)
            for index in self.each():
                assert rows_by_event(index.match_live(columns)) == expected

        @invariant()
        def everything_is_in_order(self):
            rows, live = list(self.slow.standing()), list(self.slow.live())
            for index in self.each():
                index.check()
                assert index.current_rows().tolist() == rows
                assert index.live.current_rows().tolist() == live

    return Machine


@pytest.mark.parametrize("group", [names()[::2], names()[1::2], SMALL], ids=", ".join)
def test_any_order_of_changes_and_questions_is_answered_as_evaluate_does(group):
    run_state_machine_as_test(machine(group))
