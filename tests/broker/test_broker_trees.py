"""A tree of brokers delivers what one engine delivers, whatever is cut, healed and restarted."""

import json
import os
import random
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.broker import Broker, Dimension, Space
from stentor.broker.messages import from_json, to_json
from stentor.errors import (
    StentorError,
)
from stentor.index.catalog import names
from stentor.model import Event, Point, Schema
from stentor.model.record import Move, Publish, Subscribe, Unsubscribe
from tests.support import grid, strategies
from tests.support.broker_records import (
    POLICIES,
    SCHEMA,
    SECOND,
    SPACE,
    prices,
    wish,
)
from tests.support.overlay_runs import Compared, renamed

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


@settings(max_examples=settings.default.max_examples // 4)
@given(
    trees(max_brokers=4),
    strategies.histories(max_size=16),
    st.lists(st.sampled_from(POLICIES), min_size=4, max_size=4),
    spaces,
)
def test_every_message_may_travel_as_json(links, history, policies, space):
    brokers = list(dict.fromkeys(name for link in links for name in link))
    kinds = set()

    def receive(broker, source, messages):
        read = []
        for message in messages:
            raw = json.loads(json.dumps(to_json(message)))
            read.append(from_json(raw, broker.schema))
            assert read[-1] == message
            kinds.add(raw["op"])
        return received(broker, source, read)

    received = Broker.receive
    with mock.patch.object(Broker, "receive", receive):
        policy = dict(zip(brokers, policies, strict=False))
        run = Compared(links, schema=grid.schema(), policy=policy, space=space)
        for number, record in enumerate(history):
            run.feed(brokers[number % len(brokers)], renamed(record, number))
        run.check()
    assert "greeting" in kinds


@st.composite
def forests(draw, brokers):
    """Links of a random tree of *brokers*, some of which may be missing."""
    order = draw(st.permutations(brokers))
    links = [(order[draw(st.integers(0, one - 1))], order[one]) for one in range(1, len(order))]
    missing = draw(st.sampled_from([0, 0, 0, 1]))
    return links[missing:]


@st.composite
def openings(draw):
    """Brokers, how they are joined at first, and how from some records on."""
    brokers = [f"b{number}" for number in range(draw(st.integers(2, 6)))]
    one = st.tuples(
        forests(brokers),
        st.lists(st.sampled_from(POLICIES), min_size=6, max_size=6),
        spaces,
    )
    return brokers, draw(one), draw(st.dictionaries(st.integers(1, 23), one, min_size=1))


@settings(max_examples=settings.default.max_examples // 2)
@given(
    openings(),
    strategies.histories(max_size=24),
    st.lists(st.integers(0, 9), min_size=24, max_size=24),
    st.integers(0, 2**16),
)
def test_an_overlay_that_is_opened_again_as_another_tree_delivers_what_one_engine_delivers(
    opened, history, places, seed
):
    brokers, first, later = opened

    def reopen(links, policies, space):
        run.reopen(links, dict(zip(brokers, policies, strict=False)), space)

    run = Compared((), brokers=brokers, schema=grid.schema(), choose=random.Random(seed).randrange)
    reopen(*first)
    for number, record in enumerate(history):
        if number in later:
            reopen(*later[number])
        run.feed(brokers[places[number] % len(brokers)], renamed(record, number))
        run.check()
    reopen(*first)
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
                f"price BETWEEN {low} AND {low + 5} AND stock = {draw.randrange(2)}",
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
    """Perhaps cut a link, heal all links, restart a broker, or open all of them as another tree."""
    what = draw.random()
    if what < 0.03:
        run.cut(draw.randrange(99))
    elif what < 0.06:
        run.heal_all()
    elif what < 0.08:
        run.restart(draw.choice([*run.overlay.brokers]))
    elif what < 0.085:
        brokers = draw.sample([*run.stores], len(run.stores))
        links = [(brokers[draw.randrange(one)], brokers[one]) for one in range(1, len(brokers))]
        run.reopen(links, {name: draw.choice(POLICIES) for name in brokers}, SPACE)


@pytest.mark.parametrize("count", [2, 7, 50])
@pytest.mark.parametrize("policy", ["none", "covering", "subsumption", "mics", "mixed"])
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
    ("subsumption", 7),
    ("mics", 12),
    ("mics gap=9", 7),
    ("mixed", 20),
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
            overlay.transmit(1)
        while overlay.transmit(1):
            pass
        got = [one for one in overlay.deliveries() if one.subscription not in changing]
        assert len(set(got)) == len(got)
        assert {(one.event, one.subscription) for one in got} == {
            (id, one) for id, wanting in expected.items() for one in wanting - changing
        }
        overlay.check()


@pytest.mark.parametrize("policy", [*POLICIES, "mixed"])
def test_what_covers_for_a_while_leaves_nothing_uncovered_wherever_time_passes(policy):
    """Coverers end or move away, while each broker hears of the time when it does.

    Nothing waits for the links: an event is given to all who stand from before it until after it.
    """
    draw = random.Random(f"for a while {policy}")
    run = tree_of(6, policy, draw)
    overlay, engine = run.overlay, run.engine
    time = 0
    for burst in range(OPERATIONS // 4000):
        for _ in range(30):  # nested circles, of which the wide ones end or move first
            id, radius = f"s{draw.randrange(40)}", draw.choice((500, 2000, 8000))
            until = draw.choice((None, time + draw.randrange(1, 9_500 // radius + 4) * SECOND))
            at = Point(draw.randrange(3) / 100, draw.randrange(3) / 100)
            text = f"ST_DWithin(loc, here(), {radius})"
            record = wish(f"{id} {radius}", text, at=at, until=until, time=time)
            if draw.random() < 0.3:
                record = Move(record.subscription.id, at, time)
            broker = run._home(f"b{draw.randrange(6)}", record)
            [answer] = engine.step([record])
            overlay.send(broker, [record])
            if isinstance(record, Subscribe) and not isinstance(answer, StentorError):
                run.home[record.subscription.id] = broker
                run.ends[record.subscription.id] = until
        overlay.run()
        expected, moved, first = set(), set(), time
        for number in range(20):
            time += draw.choice((0, 0, SECOND))
            if draw.random() < 0.2:
                name = f"b{draw.randrange(6)}"  # it alone hears of the time
                overlay.time = max(overlay.time, time)
                overlay._catch_up(name)
            if draw.random() < 0.3 and run.home:
                id = draw.choice([*run.home])
                record = Move(id, Point(draw.randrange(3) / 100, 0), time)
                if not isinstance(engine.step([record])[0], StentorError):
                    moved.add(id)
                    overlay.send(run.home[id], [record])
            place = Point(draw.randrange(3) / 100, draw.randrange(3) / 100)
            record = Publish(Event(f"{burst} {number}", {"loc": place}), time)
            [wanting] = engine.step([record])
            expected |= {(one, record.event.id) for one in wanting}
            overlay.send(f"b{draw.randrange(6)}", [record])
            overlay.transmit(1)
        got = [(one.subscription, one.event) for one in overlay.run()]
        run.time = time
        ended = {id for id, until in run.ends.items() if until is not None and until <= time}
        ended_before = {id for id in ended if run.ends[id] <= first}
        run._pass_time()
        assert len(set(got)) == len(got)
        settled = {one for one in expected if one[0] not in moved}
        assert {one for one in got if one[0] not in moved} <= settled
        assert set(got) >= {one for one in settled if one[0] not in ended}
        assert not {id for id, _ in got} & ended_before
        overlay.pass_time(time)
        overlay.run()
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
