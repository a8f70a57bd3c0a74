"""Long seeded runs of index operations, each answer compared with the scan's."""

from random import Random

import numpy as np

from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.ragged import take
from stentor.index.catalog import index_class
from tests.soak.test_long_run import SECOND, Source
from tests.support import grid
from tests.support.checked import checked
from tests.support.slow_index import encoded

SCHEMA = grid.schema()
#: How many things one call changes or asks about.
SOME = [1, 1, 2, 5, 20]


class Run:
    """Calls on one index, drawn from a seed; every few of them the invariants are checked."""

    def __init__(self, name, seed):
        self.random, self.source = Random(seed), Source(seed)
        self.index = checked(index_class(name)).build(self.subscriptions(30))
        self.seq = self.done = 0

    def to(self, operations):
        """Go on until there were so many *operations*."""
        calls = [self.insert, self.insert, self.remove, self.move, self.move_and_match, self.hold]
        calls += [self.hold, self.drop, self.match, self.match, self.top, self.match_live]
        calls += [self.forget_dropped]
        number = 0
        while self.done < operations:
            self.random.choice(calls)()
            number += 1
            if number % 50 == 0:
                self.index.check()
        self.index.check()

    def subscriptions(self, count):
        found = []
        for _ in range(count):
            record = self.source.record()
            while not hasattr(record, "subscription"):
                record = self.source.record()
            found.append(record.subscription)
        return encoded(found, SCHEMA)

    def events(self, count):
        now, arrivals = self.source.now, []
        for _ in range(count):
            self.seq += 1
            time = now + self.random.choice([0, 2, 9]) * SECOND
            arrivals.append(TimedEvent(self.source.event(), time, self.seq))
        return encode_events(arrivals, SCHEMA)

    def some(self, rows):
        count = min(len(rows), self.random.choice(SOME))
        self.done += count
        return np.array(sorted(self.random.sample(rows.tolist(), count)), np.int64)

    def count(self):
        count = self.random.choice(SOME)
        self.done += count
        return count

    def insert(self):
        self.index.insert(self.subscriptions(self.count()), self.seq)

    def remove(self):
        self.index.remove(self.some(self.index.index.current_rows()))

    def places(self, rows):
        return np.array([self.source.place() for _ in rows], np.float64).reshape(-1, 2)

    def move(self):
        rows = self.some(self.index.index.current_rows())
        self.index.move(rows, self.places(rows))

    def move_and_match(self):
        rows = self.some(self.index.index.current_rows())
        self.index.move_and_match(rows, self.places(rows))

    def hold(self):
        events = self.events(self.count())
        if self.random.random() < 0.7:  # as an engine does with what is published
            self.index.match(events)
            if self.random.random() < 0.3:
                self.insert()
        rows = [row for row in range(len(events.until)) if self.random.random() < 0.8]
        self.index.hold(take(events, np.array(rows, np.int64)))

    def drop(self):
        self.index.drop(self.some(self.index.index.live.current_rows()))

    def forget_dropped(self):
        if self.random.random() < 0.2:
            self.index.forget_dropped()

    def match(self):
        self.index.match(self.events(self.count()))

    def top(self):
        self.index.top(self.events(self.count()), self.random.choice([1, 2, 7]))

    def match_live(self):
        self.index.match_live(self.subscriptions(self.count()))
