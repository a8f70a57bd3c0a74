"""A tree of brokers delivers what one engine delivers, whatever is cut, healed and restarted."""

import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.broker import Dimension, Space
from stentor.errors import (
    StentorError,
)
from stentor.index.catalog import names
from stentor.model import Event, Point, Schema
from stentor.model.record import Move, Publish, Subscribe, Unsubscribe
from stentor.testing import grid, strategies
from tests.broker_records import (
    POLICIES,
    SCHEMA,
    SECOND,
    SPACE,
    prices,
    wish,
)
from tests.overlay_runs import Compared, renamed

OPERATIONS = int(os.environ.get("STENTOR_SOAK_OPERATIONS", "20000"))


@st.composite
def trees(draw, max_brokers=6):
    """Links of a random tree."""
    count = draw(st.integers(2, max_brokers))
    return [(f"b{draw(st.integers(0, one - 1))}", f"b{one}") for one in range(1, count)]


GRID_DIMENSIONS = (
    Dimension("price", -1, 3),
    Dimension("stock", 0, 2),
    Dimension("loc", -180, 180, "x"),
    Dimension("loc", -90, 90, "y"),
    Dimension("home", 0, 0.01, "x"),
    Dimension("sold", 0, 1),
    Dimension("brand", 0, 1),
    Dimension("unheard of", 0, 1),
)
spaces = st.builds(
    Space,
    st.lists(st.sampled_from(GRID_DIMENSIONS), min_size=1, max_size=3, unique=True).map(tuple),
    st.integers(2, 4),
)

faults = st.one_of(
    st.tuples(st.just("cut"), st.integers(0, 9)),
    st.tuples(st.just("heal"), st.integers(0, 9)),
    st.tuples(st.just("restart"), st.integers(0, 9)),
)


@settings(max_examples=settings.default.max_examples // 2)
@given(
    trees(),
    strategies.histories(max_size=24),
    st.lists(st.integers(0, 9), min_size=24, max_size=24),
    st.dictionaries(st.integers(0, 23), faults, max_size=8),
    st.lists(st.sampled_from(POLICIES), min_size=6, max_size=6),
    spaces,
    st.integers(0, 2**16),
)
def test_a_tree_of_brokers_delivers_what_one_engine_delivers(
    links, history, places, faulty, policies, space, seed
):
    brokers = list(dict.fromkeys(name for link in links for name in link))
    policy = dict(zip(brokers, policies, strict=False))
    choose = random.Random(seed).randrange
    run = Compared(links, schema=grid.schema(), policy=policy, space=space, choose=choose)
    for number, record in enumerate(history):
        if number in faulty:
            what, which = faulty[number]
            if what == "restart":
                run.restart(brokers[which % len(brokers)])
            else:
                getattr(run, what)(which)
        run.feed(brokers[places[number] % len(brokers)], renamed(record, number))
        run.check()
    run.heal_all()
    run.check()


def drawn_record(draw, number, time):
    """A record of any kind: many subscriptions cover one another, some move, some end."""
    id = f"s{draw.randrange(60)}"
    low = draw.randrange(20)
    kind = draw.random()
    place = Point(draw.randrange(8) / 100, draw.randrange(8) / 100)
    if kind < 0.3:
        text = draw.choice(
            (
                f"price < {low}",
                f"price BETWEEN {low} AND {low + 5}",
                f"price < {low} AND stock > {draw.randrange(5)}",
                f"ST_DWithin(loc, here(), {draw.choice((1000, 3000, 9000))})",
                f"ST_DWithin(loc, here(), 4000) AND price < {low}",
            )
        )
        until = draw.choice((None, time + draw.randrange(1, 60) * SECOND))
        return wish(id, text, at=place, until=until, time=time)
    if kind < 0.45:
        return Move(id, place, time)
    if kind < 0.55:
        return Unsubscribe(id, time)
    attributes = prices(price=draw.randrange(20), stock=draw.randrange(6)) | {"loc": place}
    until = draw.choice((None, time + draw.randrange(1, 60) * SECOND))
    return Publish(Event(f"e{number}", attributes, until=until), time)


def random_tree(draw, count):
    return [(f"b{draw.randrange(one)}", f"b{one}") for one in range(1, count)]


def tree_of(count, policy, draw):
    """A random tree of *count* brokers, compared with one engine."""
    links = random_tree(draw, count)
    if policy == "mixed":
        policy = {f"b{number}": draw.choice(POLICIES) for number in range(count)}
    schema = Schema.declare(SCHEMA)
    return Compared(links, schema=schema, policy=policy, space=SPACE, choose=draw.randrange)


def break_something(run, draw):
    """Perhaps cut a link, heal all links, or restart a broker."""
    what = draw.random()
    if what < 0.03:
        run.cut(draw.randrange(99))
    elif what < 0.06:
        run.heal_all()
    elif what < 0.08:
        run.restart(draw.choice([*run.overlay.brokers]))


@pytest.mark.parametrize("count", [2, 7, 50])
@pytest.mark.parametrize("policy", ["none", "covering", "mics", "mixed"])
def test_record_by_record_a_tree_delivers_what_one_engine_delivers(count, policy):
    draw = random.Random(f"{count} {policy}")
    run = tree_of(count, policy, draw)
    time = 0
    for number in range(OPERATIONS // 200):
        time += draw.randrange(3) * SECOND
        break_something(run, draw)
        run.feed(f"b{draw.randrange(count)}", drawn_record(draw, number, time))
        if number % 25 == 0:
            run.check()
    run.heal_all()
    run.check()


LIVES = [
    ("none", 7),
    ("covering", 12),
    ("covering k=3", 7),
    ("poset", 7),
    ("mics", 12),
    ("mics gap=9", 7),
    ("mixed", 50),
]


@pytest.mark.parametrize(("policy", "count"), LIVES)
def test_a_long_life_of_bursts_that_cross_leaves_everybody_what_one_engine_gives(policy, count):
    draw = random.Random(policy)
    run = tree_of(count, policy, draw)
    per_burst = 80
    for burst in range(OPERATIONS // len(LIVES) // per_burst):
        time = burst * SECOND
        numbers = range(burst * per_burst, (burst + 1) * per_burst)
        records = [drawn_record(draw, number, time) for number in numbers]
        for _ in range(5):
            break_something(run, draw)
        run.feed_at_once([(f"b{draw.randrange(count)}", record) for record in records])
        if burst % 10 == 0:
            run.check()
    run.heal_all()
    run.check()


@pytest.mark.parametrize("policy", [*POLICIES, "mixed"])
def test_between_any_two_messages_nothing_is_missing_that_somebody_settled_wants(policy):
    """Events come while subscriptions change and their messages are carried one at a time."""
    draw = random.Random(policy)
    run = tree_of(8, policy, draw)
    overlay = run.overlay
    for burst in range(OPERATIONS // 2000):
        expected, changing = {}, set()
        for number in range(40):
            record = drawn_record(draw, f"{burst} {number}", burst * SECOND)
            broker = run._home(f"b{draw.randrange(8)}", record)
            if isinstance(record, Publish):
                [wanting] = run.engine.step([record])
                expected[record.event.id] = set(wanting)
                overlay.send(broker, [record])
            elif len(changing) < 6 and not isinstance(run.engine.step([record])[0], StentorError):
                id = record.subscription.id if isinstance(record, Subscribe) else record.id
                changing.add(id)
                if isinstance(record, Subscribe):
                    run.home[id] = broker
                overlay.send(broker, [record])
            overlay.carry(1)
        while overlay.carry(1):
            pass
        got = [one for one in overlay.deliveries() if one.subscription not in changing]
        assert len(set(got)) == len(got)
        assert {(one.event, one.subscription) for one in got} == {
            (id, one) for id, wanting in expected.items() for one in wanting - changing
        }
        overlay.check()


@pytest.mark.parametrize("index", names())
def test_any_index_matches_for_a_broker(index):
    draw = random.Random(3)
    run = Compared(
        [("b0", "b1"), ("b1", "b2")], schema=Schema.declare(SCHEMA), index=index, policy="covering"
    )
    for number in range(60):
        record = drawn_record(draw, number, number * SECOND)
        run.feed(f"b{draw.randrange(3)}", record)
    run.check()
