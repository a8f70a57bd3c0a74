"""A long run of seeded plain operations: the engine against the oracle.

20,000 operations, or as many as STENTOR_SOAK_OPERATIONS says.
"""

import os
from dataclasses import replace
from random import Random

import pytest

import stentor
from stentor.engine import state as engine_state
from stentor.errors import StentorError
from stentor.index.catalog import names
from stentor.language.tree import all_of, any_of
from stentor.model import (
    Between,
    Box,
    Circle,
    Comparison,
    Constant,
    Event,
    Has,
    In,
    IsNull,
    Kind,
    Like,
    Not,
    Overlaps,
    Range,
    Subscription,
    Weighted,
    Within,
)
from stentor.model.record import Move, Publish, Subscribe, Unsubscribe
from stentor.model.values.members import set_of
from stentor.wire.records import record_to_dict
from stentor.wire.table_writers import events_to_table
from tests.support import grid
from tests.support.oracle import Oracle

OPERATIONS = int(os.environ.get("STENTOR_SOAK_OPERATIONS", "20000"))
SUBSCRIBERS = [f"s{number}" for number in range(25)]
EVENTS = [f"e{number}" for number in range(40)]
SECOND = 1_000_000


class Source:
    """Records of all kinds, from a seed."""

    def __init__(self, seed):
        self.random = Random(seed)
        self.now = 0

    def records(self, count):
        return [self.record() for _ in range(count)]

    def record(self):
        time = None
        if self.random.random() < 0.8:
            time = max(0, self.now + self.random.choice([0, 1, 1, 2, -4]) * SECOND // 4)
            self.now = max(self.now, time)
        kind = self.random.random()
        if kind < 0.55:
            return Publish(self.event(), time)
        id = self.random.choice(SUBSCRIBERS)
        if kind < 0.8:
            expression = self.expression(3)
            return Subscribe(Subscription(id, expression, self.place(), self.until(0.3)), time)
        return Move(id, self.place(), time) if kind < 0.95 else Unsubscribe(id, time)

    def until(self, share):
        """Some time from now, or a little before, for this *share* of what comes."""
        if self.random.random() < share:
            return self.now + self.random.randint(-1, 30) * SECOND
        return None

    def place(self):
        return self.random.choice(grid.POINTS)

    def event(self):
        attributes = {name: self.value(name) for name in grid.KINDS if self.random.random() < 0.7}
        weights = {
            name: self.random.choice(grid.WEIGHTS)
            for name in grid.KINDS
            if self.random.random() < 0.1
        }
        return Event(self.random.choice(EVENTS), attributes, weights, self.until(0.5))

    def value(self, attribute):
        kind = grid.KINDS[attribute]
        if kind is Kind.POINT:
            return self.place()
        if kind is Kind.SET:
            return set_of(self.member() for _ in range(self.random.randint(0, 3)))
        if attribute in grid.TEXTS:
            words = self.random.choices(grid.WORDS, k=self.random.randint(0, 4))
            return Constant(kind, " ".join(words))
        one, other = self.constant(kind), self.constant(kind)
        if kind in (Kind.NUMBER, Kind.TIMESTAMP) and self.random.random() < 0.3:
            return Range(kind, min(one.value, other.value), max(one.value, other.value))
        return one

    def member(self):
        one = self.random.choice(grid.MEMBERS)
        return Constant(Kind.STRING if isinstance(one, str) else Kind.NUMBER, one)

    def constant(self, kind):
        return Constant(kind, self.random.choice(grid.constants(kind)))

    def expression(self, depth):
        form = self.random.random()
        if depth == 0 or form < 0.35:
            weight = self.random.choice(grid.WEIGHTS)
            predicate = self.predicate()
            return predicate if weight == 1.0 else Weighted(predicate, weight)
        if form < 0.5:
            return Not(self.expression(depth - 1))
        children = [self.expression(depth - 1) for _ in range(2)]
        return all_of(children) if form < 0.75 else any_of(children)

    def predicate(self):
        attribute, kind = self.random.choice(list(grid.KINDS.items()))
        if self.random.random() < 0.1:
            return IsNull(attribute)
        if kind is Kind.POINT:
            return Within(attribute, self.region())
        if kind is Kind.SET:
            return Overlaps(attribute, tuple(self.member() for _ in range(2)))
        forms = [self.comparison, self.is_in]
        if kind is not Kind.BOOLEAN:
            forms.append(self.between)
        if kind is Kind.STRING:
            forms.append(self.like)
        if attribute in grid.TEXTS:
            forms += [self.has, self.has]
        return self.random.choice(forms)(attribute, kind)

    def comparison(self, attribute, kind):
        operators = ["=", "!="] if kind is Kind.BOOLEAN else ["=", "!=", "<", "<=", ">", ">="]
        return Comparison(attribute, self.random.choice(operators), self.constant(kind))

    def is_in(self, attribute, kind):
        return In(attribute, tuple(self.constant(kind) for _ in range(self.random.randint(1, 4))))

    def between(self, attribute, kind):
        return Between(attribute, self.constant(kind), self.constant(kind))

    def like(self, attribute, _):
        return Like(attribute, self.random.choice(grid.PATTERNS))

    def has(self, attribute, _):
        words = self.random.choices(grid.WORDS, k=self.random.randint(1, 3))
        return Has(attribute, tuple(words), self.random.random() < 0.5)

    def region(self):
        one, other = self.place(), self.place()
        if self.random.random() < 0.5:
            return Box(one.x, min(one.y, other.y), other.x, max(one.y, other.y))
        centre = None if self.random.random() < 0.5 else one
        return Circle(centre, self.random.choice(grid.RADII))


def comparable(answers):
    return [type(one) if isinstance(one, StentorError) else one for one in answers]


@pytest.mark.parametrize("index", names())
def test_a_long_run_is_answered_as_the_oracle_does(index, tmp_path, monkeypatch):
    monkeypatch.setattr(engine_state, "MIN_DEAD_ROWS", 300)  # so that it is rebuilt now and then
    source = Source(f"a long run of {index}")
    engine = stentor.Engine(index, schema=grid.schema(), clock=None)
    oracle = Oracle(schema=grid.schema())
    done = 0
    while done < OPERATIONS // len(names()):
        records = source.records(source.random.choice([1, 5, 20, 100]))
        top = source.random.choice([None, None, 3])
        way = source.random.random()
        if way < 0.4:
            answers = engine.step(records, top=top)
        elif way < 0.8:
            answers = engine.step(map(record_to_dict, records), top=top)
        else:
            records = [replace(one, time=None) for one in records if isinstance(one, Publish)]
            events = events_to_table([one.event for one in records], grid.schema())
            answers = engine.publish_batch(events, top=top)
        done += len(records)
        where = f"{index}, up to operation {done:,}"
        assert comparable(answers) == comparable(oracle.answers(records, top=top)), where
        if source.random.random() < 0.03:
            engine.save(tmp_path / "saved")
            engine = stentor.Engine.open(tmp_path / "saved", clock=None)
        engine._state.index.check()
        assert list(engine) == list(oracle), where
