"""`auto`: what it measures, when it changes, and that nothing that is answered depends on it."""

from itertools import count, pairwise

import numpy as np
import pytest

from stentor import Engine
from stentor.engine import auto, cold
from stentor.index import catalog
from stentor.index.catalog import structure_of
from stentor.index.trial import TrialResult, measure
from tests.support.workloads import Profiles


def name_of(engine):
    return structure_of(type(engine._state.index)).name


def stopwatch(**seconds):
    """A stopwatch for which structures take these *seconds*, in the order in which they come."""
    ticks = []
    for one in seconds.values():
        for _ in range(3):
            ticks += [0.0, one]
    return iter(ticks).__next__


recipe = Profiles(dimensions=60, match_share=0.2, predicates=4, values=9)


@pytest.mark.parametrize(("other", "chosen"), [(1.0, "be_star_tree"), (1.4, "packed")])
def test_another_structure_is_taken_only_where_it_is_much_faster(other, chosen):
    columns, events = recipe.subscriptions(60), recipe.events(70)
    times = stopwatch(packed=1.5, be_star_tree=other)
    found = measure(columns, events, 1000, ["be_star_tree"], times)
    assert found.name == chosen
    assert found.microseconds.keys() == {"packed", "be_star_tree"}
    assert (found.subscriptions, found.events, found.measured_at) == (60, 70, 1000)
    assert "sample" in found.reason


@pytest.fixture
def small(monkeypatch):
    """Few are many, and every kernel is ready."""
    monkeypatch.setattr(catalog, "_MANY", 50)
    monkeypatch.setattr(cold, "are_ready", lambda name: True)


def says(monkeypatch, name):
    """Let a measurement say *name*."""

    def measured(columns, events, count):
        return TrialResult(name, "it is told to", {"packed": 2.0, name: 1.0}, 50, 64, count)

    monkeypatch.setattr(auto, "measure", measured)


def publish(engine, numbers, many=70):
    records = [{"op": "publish", "id": f"e{next(numbers)}", "a": n % 80} for n in range(many)]
    return [list(one) for one in engine.step(records)]


def test_an_engine_changes_by_itself_while_it_changes(monkeypatch, small, tmp_path):
    says(monkeypatch, "be_star_tree")
    engine, plain, numbers = Engine(clock=None), Engine("scan", clock=None), count()
    for n in range(60):
        for one in (engine, plain):
            one.subscribe(f"s{n}", f"a > {n} AND a < {n + 9}")
    for one in (engine, plain):
        one.publish({"id": "live", "a": 7}, until=2e9, time=0)
    assert name_of(engine) == "packed"
    assert engine.stats()["auto"]["name"] == "packed"
    assert publish(engine, numbers) == publish(plain, numbers)
    engine._auto.trial.wait()
    for one in (engine, plain):  # after the index was built, before it is adopted
        with_more = [
            {"op": "subscribe", "id": "later", "expression": "a < 7"},
            {"op": "unsubscribe", "id": "s3"},
            {"op": "subscribe", "id": "s4", "expression": "a = 70"},
        ]
        one.step(with_more)
    assert name_of(engine) == "be_star_tree"
    engine._state.index.check()
    assert publish(engine, numbers) == publish(plain, numbers)
    assert engine.subscribe("new", "a = 7") == plain.subscribe("new", "a = 7")
    told = engine.stats()["auto"]
    assert told["name"] == "be_star_tree"
    assert told["microseconds"] == {"packed": 2.0, "be_star_tree": 1.0}
    engine.save(tmp_path / "engine")
    opened = Engine.open(tmp_path / "engine", clock=None)
    assert name_of(opened) == "be_star_tree"
    assert opened.stats()["auto"]["reason"] == "it is told to"
    opened.rebuild()
    assert name_of(opened) == "be_star_tree"
    assert publish(opened, numbers) == publish(plain, numbers)


def test_it_is_measured_again_at_each_doubling(monkeypatch, small):
    asked = []

    def measured(columns, events, count):
        asked.append(count)
        return TrialResult("packed", "told", {"packed": 1.0}, 50, 64, count)

    monkeypatch.setattr(auto, "measure", measured)
    engine, numbers = Engine(clock=None), count()
    for n in range(260):
        engine.subscribe(f"s{n}", f"a = {n}")
        if n % 10 == 0:
            publish(engine, numbers)
            if engine._auto.trial is not None:
                engine._auto.trial.wait()
    assert len(asked) == 3
    assert all(later >= 2 * before for before, later in pairwise(asked))
    assert engine.stats()["auto"]["measured_at"] == asked[-1]


def test_subscribers_that_move_stay_in_packed(monkeypatch, small):
    says(monkeypatch, "be_star_tree")
    engine, numbers = Engine(clock=None), count()
    for n in range(60):
        engine.subscribe(f"s{n}", "ST_DWithin(loc, here(), 1000)", at=(n, 0))
    publish(engine, numbers)
    engine._auto.trial.wait()
    publish(engine, numbers)
    assert engine._auto.trial is None
    assert name_of(engine) == "packed"


def test_a_named_index_is_never_measured(small):
    engine, numbers = Engine("packed", clock=None), count()
    for n in range(60):
        engine.subscribe(f"s{n}", f"a = {n}")
    publish(engine, numbers)
    assert engine._auto.trial is None
    assert "auto" not in engine.stats()


def test_structures_really_are_timed():
    columns, events = recipe.subscriptions(300), recipe.events(80)
    found = measure(columns, events, 300)
    assert found.name in found.microseconds
    assert all(np.isfinite(one) and one > 0 for one in found.microseconds.values())
