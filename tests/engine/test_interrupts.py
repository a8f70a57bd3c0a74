"""A change happened or it did not, wherever an exception cuts it off.

One engine is interrupted at chosen lines of its own code, again and again; two twins that nobody
interrupts stand before and after the same operation. `HYPOTHESIS_PROFILE=soak` tries thousands.
"""

from __future__ import annotations

import os
import random
import sys
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

import stentor
from stentor import Engine
from stentor.engine import state as engine_state
from stentor.errors import BrokenEngineError, SettingsError, StentorError
from stentor.index.catalog import names

IS_SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
OPERATIONS, TRIES = (400, 20) if IS_SOAK else (24, 3)
EVERY = [*names(), "be_star_tree capacity=2 window=2"]
INDEXES = EVERY if IS_SOAK else [*names()[::2], "scan layered", "mo_tree layered"]

PACKAGE = str(Path(stentor.__file__).parent)
WORDS = ("jazz", "chess", "tea")
IDS = [f"s{number}" for number in range(12)]


class Interrupt(BaseException):
    """What no code expects."""


class Lines:
    """Counts the lines of Stentor's code that run in the block; raises at one of them."""

    def __init__(self, last=None, error=Interrupt):
        self.count, self._last, self._error = 0, last, error

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_):
        sys.settrace(self._before)

    def _trace(self, frame, event, _):
        file = frame.f_code.co_filename
        if not file.startswith(PACKAGE) and not file.endswith("contextlib.py"):
            return None
        if event in ("line", "call"):
            self.count += 1
            if self.count == self._last:
                sys.settrace(None)
                raise self._error("in the middle of things")
        return self._trace


def expression(chance):
    alternatives = []
    for _ in range(chance.choice((1, 1, 2))):
        parts = [f"has_any(text, '{chance.choice(WORDS)}')", f"price < {chance.randrange(1, 9)}"]
        parts.append(f"ST_DWithin(loc, here(), {chance.choice((1, 2))})")
        alternatives.append(" AND ".join(chance.sample(parts, chance.randrange(1, 4))))
    return " OR ".join(alternatives)


def place(chance):
    return [chance.randrange(6), chance.randrange(6)]


def event(chance, id):
    return {
        "id": id,
        "text": chance.choice(WORDS),
        "price": chance.randrange(9),
        "loc": place(chance),
    }


OPS = ("subscribe", "subscribe", "unsubscribe", "move", "publish", "publish", "update", "withdraw")


def record(chance, number, time, *, op=None):
    op = op or chance.choice(OPS)
    made = {"op": op, "id": chance.choice(IDS), "time": time}
    if op == "subscribe":
        made |= {"expression": expression(chance), "at": place(chance), "labels": label(chance)}
        made["owner"] = chance.choice(WORDS)
    if op == "move":
        made["at"] = place(chance)
    if op == "publish":
        made |= event(chance, f"e{number}")
    if op == "update":
        made |= event(chance, f"u{chance.randrange(5)}")
    if op == "withdraw":
        made["id"] = f"u{chance.randrange(5)}"
    if op in ("publish", "update"):
        made["among"] = label(chance)
    if op in ("subscribe", "publish", "update") and chance.random() < 0.6:
        made["until"] = time + chance.randrange(1, 6)
    return made


def label(chance):
    return chance.choice(({}, {}, {"of": "north"}, {"of": "south"}))


def single(chance, number, time):
    """A record as a call of its own."""
    op = chance.choice((*OPS, "end_all"))
    if op == "end_all":
        owner = chance.choice(WORDS)
        return lambda engine: engine.unsubscribe_all(owner, time=time)
    made = record(chance, number, time, op=op)
    if op in ("publish", "update"):
        return lambda engine: getattr(engine, op)({n: v for n, v in made.items() if n != "op"})
    return lambda engine: getattr(engine, op)(**{n: v for n, v in made.items() if n != "op"})


def answered(call):
    """*call*, whose refusal is an answer too."""

    def answer(engine):
        try:
            return [call(engine)]
        except StentorError as error:
            return [error]

    return answer


def operation(chance, number):
    """Something that is done to an engine; the same to each that it is done to."""
    time = number // 3
    kinds = ("one",) * 3 + ("call",) * 4
    kind = chance.choice((*kinds, "step", "step", "moves", "table", "events", "updates", "rebuild"))
    if kind == "call":
        return answered(single(chance, number, time))
    if kind == "one":
        made = [record(chance, number, time)]
        return lambda engine: list(engine.step(made))
    if kind == "step":
        many = [record(chance, f"{number}-{one}", time) for one in range(5)]
        return lambda engine: list(engine.step(many))
    if kind == "moves":
        moved = pa.table(
            {"id": IDS[:6], "at": [place(chance) for _ in range(6)], "time": [time] * 6}
        )
        return lambda engine: list(engine.move_batch(moved))
    if kind == "table":
        columns = {"id": chance.sample(IDS, 4), "at": [place(chance) for _ in range(4)]}
        table = pa.table({**columns, "word": chance.choices(WORDS, k=4), "time": [time] * 4})
        asked = "has_all(text, :word) OR ST_DWithin(loc, here(), 1)"
        return lambda engine: list(engine.subscribe_batch(table, asked))
    if kind == "events":
        rows = [{**event(chance, f"b{number}-{one}"), "time": time} for one in range(3)]
        events = pa.Table.from_pylist(rows)
        return lambda engine: list(engine.publish_batch(events))
    if kind == "updates":
        rows = [{**event(chance, f"u{one}"), "time": time} for one in range(0, 5, 2)]
        changed = pa.Table.from_pylist(rows)
        return lambda engine: list(engine.update_batch(changed))
    return lambda engine: engine.rebuild()


PROBES = [event(random.Random(seed), "probe") for seed in range(6)]


def shown(answers):
    return [repr(answer) for answer in answers or []]


def seen(engine):
    """All that an engine says of itself, which changes nothing."""
    ids = list(engine)
    stats = engine.stats()
    state = engine._state
    reported = zip(*state.regions.reported(), strict=True)
    kept = {state.subscribers.ids[row]: far for row, far in reported}
    return (
        kept,
        [engine.get(id) for id in ids],
        [engine.subscriptions(word) for word in WORDS],
        engine.subscriptions(labels={"of": "north"}),
        [engine.event(id) for id in engine.live()],
        [engine.top(asked, k=len(IDS)) for asked in PROBES],
        [engine.safe_region(id) for id in ids],
        [bool(engine.explain(id, asked)) for id in ids for asked in PROBES[:2]],
        {name: stats[name] for name in ("subscriptions", "live events", "records")},
    )


def fresh(index):
    return Engine(index, schema=stentor.Schema(plane=True), clock=None)


def assert_refused(engine, folder):
    """A broken engine answers nothing at all."""
    for refused in (
        lambda: engine.subscribe("ana", "price < 3"),
        lambda: engine.publish({"id": "e"}),
        lambda: engine.step([]),
        lambda: engine.top({"price": 3}),
        lambda: engine.get("s1"),
        lambda: engine.save(folder),
        lambda: engine.rebuild(),
        lambda: len(engine),
        lambda: engine.stats(),
    ):
        with pytest.raises(BrokenEngineError):
            refused()


@pytest.mark.parametrize("index", INDEXES)
def test_a_change_that_is_interrupted_happened_or_did_not(index, monkeypatch, tmp_path):
    monkeypatch.setattr(engine_state, "MIN_DEAD_ROWS", 6)  # rebuilds are common
    warnings.simplefilter("ignore")
    chance = random.Random(index)
    engine, before, after = fresh(index), fresh(index), fresh(index)
    outcomes = {"before": 0, "after": 0, "broken": 0}
    for number in range(OPERATIONS):
        operate = operation(chance, number)
        with Lines() as lines:
            expected = shown(operate(after))
        if number == OPERATIONS // 2:  # the second half is done to what was opened
            before.save(tmp_path / "kept")
            engine = Engine.open(tmp_path / "kept", clock=None)
            seen(engine)  # regions are not saved
        seen(before)  # which lets the engine know all regions
        was, will_be = seen(before), seen(after)
        has_happened = False
        for _ in range(TRIES):
            error = chance.choice((Interrupt, KeyboardInterrupt, MemoryError))
            try:
                with Lines(chance.randrange(1, lines.count + 1), error):
                    operate(engine)
                has_happened = True  # it took fewer lines than the twin's
            except error:
                pass
            try:
                now = seen(engine)
            except BrokenEngineError:
                outcomes["broken"] += 1
                assert_refused(engine, tmp_path / "never")
                before.save(tmp_path / "kept")
                engine = Engine.open(tmp_path / "kept", clock=None)
                seen(engine)
                continue
            assert now == (was if now == was and not has_happened else will_be)
            has_happened = now != was or has_happened
            outcomes["after" if has_happened else "before"] += 1
            if has_happened:
                break
        if not has_happened:
            assert shown(operate(engine)) == expected
            assert seen(engine) == will_be
        operate(before)
        engine._state.index.check()
    assert not (tmp_path / "never").exists()
    assert outcomes["before"] > outcomes["after"]
    assert outcomes["broken"] <= sum(outcomes.values()) // 50


def interrupted(monkeypatch):
    """An engine whose last change was cut off."""
    engine = Engine(clock=None)
    engine.subscribe("ana", "price < 3")
    with monkeypatch.context() as patched:
        patched.setattr(type(engine._state.texts), "extend", raising(Interrupt))
        with pytest.raises(Interrupt):
            engine.subscribe("ben", "price < 5")
    return engine


def raising(error):
    def raises(*_, **__):
        raise error("cut off")

    return raises


def test_events_go_to_the_right_subscriber_after_a_change_that_was_cut_off(monkeypatch):
    engine = interrupted(monkeypatch)
    engine.subscribe("cleo", "price > 7")
    assert list(engine) == ["ana", "cleo"]
    assert engine.publish({"id": "e1", "price": 8}) == ["cleo"]
    assert engine.publish({"id": "e2", "price": 2}) == ["ana"]


def test_what_cannot_be_undone_is_refused_until_it_can(monkeypatch, tmp_path):
    engine = interrupted(monkeypatch)
    with monkeypatch.context() as patched:
        patched.setattr(engine_state.State, "undone", raising(MemoryError))
        assert_refused(engine, tmp_path / "never")
        with pytest.raises(BrokenEngineError, match=r"MemoryError: cut off.*saved last"):
            repr(engine)
    assert not (tmp_path / "never").exists()
    assert list(engine) == ["ana"]


def test_a_signal_handler_in_the_middle_of_a_change_is_refused(monkeypatch, tmp_path):
    engine = Engine(clock=None)
    real = type(engine._state.texts).extend

    def extend(*given):
        assert_refused(engine, tmp_path / "never")  # as a handler would, in the same thread
        return real(*given)

    monkeypatch.setattr(type(engine._state.texts), "extend", extend)
    engine.subscribe("ana", "price < 3")
    assert list(engine) == ["ana"]


@pytest.mark.parametrize("top", [2**70, 2**31, 0, 1.5])
def test_a_count_that_no_array_can_hold_changes_nothing(top):
    engine = Engine(clock=None)
    engine.subscribe("ana", "price < 3")
    record = {"op": "publish", "id": "e", "price": 1}
    for asked in (
        lambda: engine.step([record], top=top),
        lambda: engine.publish_batch(pa.table({"id": ["e"], "price": [1]}), top=top),
        lambda: engine.top({"price": 1}, k=top),
    ):
        with pytest.raises(
            SettingsError, match="whole number of at least 1, at most 2,147,483,647"
        ):
            asked()
    assert list(engine.step([record], top=1)) == [["ana"]]
