"""Brokers: a tree of them delivers what one engine delivers."""

import math
import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.broker import Broker, Dimension, Overlay, Space, Store, policy_of
from stentor.broker.interest import Interest, RangeInterest
from stentor.broker.keys import CLIENT
from stentor.broker.messages import Greeting, Want
from stentor.errors import (
    DuplicateEventError,
    FolderError,
    RecordError,
    SettingsError,
    StentorError,
    TypeConflictError,
    UnknownIdError,
)
from stentor.index.catalog import names
from stentor.language.parser import parse
from stentor.model import Changes, Constant, Event, Kind, Point, Range, Schema, Subscription
from stentor.model.record import Move, Publish, Subscribe, Unsubscribe
from stentor.testing import grid, strategies
from tests.overlay_runs import Compared, renamed

OPERATIONS = int(os.environ.get("STENTOR_SOAK_OPERATIONS", "20000"))
SECOND = 1_000_000
SCHEMA = {"price": "number", "stock": "number", "loc": "point"}

POLICIES = ("none", "covering", "covering k=3", "poset", "mics", "mics gap=9", "mics ranges=2")
SPACE = Space(
    (
        Dimension("price", 0, 20),
        Dimension("loc", 0, 0.08, "x"),
        Dimension("loc", 0, 0.08, "y"),
    ),
    bits=3,
)


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


def prices(**attributes):
    return {name: Constant(Kind.NUMBER, float(one)) for name, one in attributes.items()}


def event(id, *, until=None, **attributes):
    return Publish(Event(id, prices(**attributes), until=until), 0)


def wish(id, text, *, at=None, until=None, time=0):
    schema = Schema.declare(SCHEMA)
    return Subscribe(Subscription(id, parse(text, schema=schema), at, until), time)


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


def row_of(count, policy, **settings):
    """Brokers b0 – b1 – … in a row."""
    links = [(f"b{one}", f"b{one + 1}") for one in range(count - 1)]
    brokers = [f"b{one}" for one in range(count)]
    schema = Schema.declare(SCHEMA)
    overlay = Overlay(brokers, links, policy=policy, schema=schema, space=SPACE, **settings)
    overlay.run()
    overlay.carried.clear()
    return overlay


def counts(overlay):
    """How many messages of each kind were carried."""
    total = {}
    for carried, count in overlay.carried.items():
        total[carried.kind] = total.get(carried.kind, 0) + count
    return total


def test_what_is_covered_stays_at_home():
    for policy, expected in (("none", 4), ("covering", 2), ("poset", 2)):
        overlay = row_of(3, policy)
        overlay.feed("b0", wish("wide", "price < 300"))
        overlay.feed("b0", wish("narrow", "price < 200"))
        assert counts(overlay) == {"subscribe": expected}
        assert overlay.feed("b2", event("e", price=7)) == ["narrow", "wide"]
        assert counts(overlay)["publish"] == 2
        overlay.check()


def test_what_a_neighbour_wants_does_not_silence_what_others_want_from_it():
    """One set for the whole broker would tell b2 nothing of `narrow`, and lose its events."""
    overlay = row_of(3, "covering")
    overlay.feed("b2", wish("wide", "price < 300"))
    overlay.feed("b0", wish("narrow", "price < 200"))
    assert overlay.feed("b2", event("e", price=7)) == ["narrow", "wide"]


def test_a_wide_subscription_that_ends_leaves_nobody_unheard():
    """b1 hears of the time before b0 does, which alone can tell it of `narrow`."""
    overlay = row_of(2, "covering")
    overlay.feed("b0", wish("wide", "price < 300", until=10 * SECOND))
    overlay.feed("b0", wish("narrow", "price < 200", until=20 * SECOND))
    late = Publish(Event("e", prices(price=7)), 15 * SECOND)
    assert overlay.feed("b1", late) == ["narrow"]
    assert [*overlay.brokers["b1"].wants("b0")] == ["b0/narrow"]
    overlay.check()


def all_get_through(overlay, broker, attributes, subscription):
    """Whether events at *broker* that come between all messages are given to *subscription*."""
    probes = [f"probe {number}" for number in range(12)]
    for id in probes:
        overlay.send(broker, [Publish(Event(id, attributes), overlay.time)])
        overlay.carry(1)
    return overlay.run() == [(subscription, id, True) for id in probes]


@pytest.mark.parametrize("change", ["goes", "ends", "shrinks", "moves"])
@pytest.mark.parametrize("policy", POLICIES)
def test_what_takes_over_is_told_before_what_goes_is_withdrawn(policy, change):
    overlay = row_of(2, policy)
    here = Point(0, 0)
    wide = "ST_DWithin(loc, here(), 3000)"
    overlay.feed("b0", wish("wide", wide, at=here, until=9 * SECOND))
    overlay.feed("b0", wish("narrow", "ST_DWithin(loc, here(), 1000)", at=here))
    match change:
        case "goes":
            overlay.send("b0", [Unsubscribe("wide")])
        case "ends":
            overlay.pass_time(9 * SECOND)
        case "shrinks":
            overlay.send("b0", [wish("wide", f"{wide} AND price < 3", at=here)])
        case "moves":
            overlay.send("b0", [Move("wide", Point(0.07, 0.07))])
    assert all_get_through(overlay, "b1", prices(price=8) | {"loc": here}, "narrow")
    overlay.check()


def test_what_takes_over_from_a_neighbours_other_policy_is_told_first():
    """To b2 `wide` was a subscription that covered `narrow`, and is ranges that do not."""
    policy = dict.fromkeys(["b0", "b1", "b2"], "covering")
    overlay = row_of(3, policy, stores={"b0": Store()})
    for shrunk, told in (("price > 15", "mics"), ("price > 12", "covering")):
        overlay.feed("b0", wish("wide", "price < 10"))
        overlay.feed("b1", wish("narrow", "price < 5"))
        overlay.cut("b0", "b1")
        overlay.feed("b0", wish("wide", shrunk))
        policy["b0"] = told
        overlay.restart("b0")
        overlay.heal("b0", "b1")
        assert all_get_through(overlay, "b2", prices(price=3), "narrow")
        overlay.check()


@pytest.mark.parametrize(("before", "after"), [("covering", "mics"), ("mics", "covering")])
def test_what_a_neighbour_tells_in_another_way_is_never_missing(before, after):
    policy = {"b0": before, "b1": "covering", "b2": "covering"}
    overlay = row_of(3, policy, stores={"b0": Store()})
    overlay.feed("b0", wish("ana", "price < 10"))
    policy["b0"] = after
    overlay.restart("b0")
    assert all_get_through(overlay, "b2", prices(price=3), "ana")
    overlay.check()


@pytest.mark.parametrize(("before", "after"), [("covering", "mics"), ("mics", "covering")])
def test_what_a_neighbours_other_policy_makes_redundant_is_withdrawn(before, after):
    policy = {"b0": before, "hub": "covering", "b2": after, "b3": "none"}
    links = [("b0", "hub"), ("hub", "b2"), ("hub", "b3")]
    stores = {"b0": Store()}
    overlay = Overlay(policy, links, policy=policy, space=SPACE, stores=stores)
    overlay.feed("b0", wish("ana", "price < 10"))
    overlay.feed("b2", wish("ben", "price < 12"))
    assert [*overlay.brokers["b3"].wants("hub")] == ["b0/ana", "b2/ben"]
    policy["b0"] = after
    overlay.restart("b0")
    overlay.run()
    overlay.check()
    assert [*overlay.brokers["b3"].wants("hub")] == ["b2/ben"]
    assert overlay.feed("b3", event("e", price=3)) == ["ana", "ben"]


@pytest.mark.parametrize(
    "message",
    [
        Greeting((), frozenset(), 9 * SECOND, SPACE),
        Want("b1/ben", ((0, 1),), 9 * SECOND),
        Unsubscribe("b1/nobody", 9 * SECOND),
        Publish(Event("over", {}, until=SECOND), 9 * SECOND),
    ],
    ids=lambda message: type(message).__name__,
)
def test_every_message_says_what_time_it_is(message):
    broker = Broker("b0", space=SPACE)
    for neighbour in ("b1", "b2"):
        broker.add_neighbour(neighbour)
        broker.connect(neighbour)
    broker.receive(CLIENT, [wish("ana", "price < 3", until=9 * SECOND)])
    sent = broker.receive("b1", [message]).sent
    assert ("b2", Unsubscribe("b0/ana", 9 * SECOND)) in sent
    assert broker.time == 9 * SECOND
    broker.check()


def test_time_that_passes_withdraws_what_is_over():
    overlay = row_of(3, "none")
    overlay.feed("b0", wish("ana", "price < 300", until=10 * SECOND))
    overlay.pass_time(10 * SECOND)
    overlay.run()
    assert not overlay.brokers["b2"].wants("b1")
    overlay.check()


def test_a_late_subscriber_gets_the_live_events_of_the_whole_overlay_each_once():
    overlay = row_of(4, "covering")
    for broker in overlay.brokers:
        overlay.feed(broker, event(f"of {broker}", until=9 * SECOND, price=7))
    everything = [f"of {broker}" for broker in overlay.brokers]
    assert overlay.feed("b0", wish("ana", "price < 300")) == Changes(everything)
    assert counts(overlay)["publish"] == 3 + 2 + 1
    assert overlay.feed("b0", wish("ben", "price < 200")) == Changes(everything)
    assert overlay.feed("b1", wish("cleo", "price < 400")) == Changes(everything)
    assert counts(overlay)["publish"] == 3 + 2 + 1 + 1, "only b0's own had not come to b1"


def test_an_overlay_forgets_the_ids_of_what_is_over():
    overlay = row_of(2, "none")
    for number in range(5):
        time = number * SECOND
        overlay.feed("b0", wish(f"s{number}", "price < 3", until=time + SECOND, time=time))
        overlay.feed("b0", event(f"e{number}", until=time + SECOND, price=4))
    assert ([*overlay._homes], [*overlay._live]) == (["s4"], ["e4"])
    overlay.pass_time(5 * SECOND)
    overlay.run()
    assert ([*overlay._homes], [*overlay._live]) == ([], [])
    overlay.check()


def test_live_events_that_are_over_leave_nothing_behind():
    broker = Broker("b0", schema=Schema.declare(SCHEMA), space=SPACE)
    broker.add_neighbour("b1")
    broker.connect("b1")
    broker.receive(CLIENT, [event("stays", until=99 * SECOND, price=3)])
    for burst in range(8):
        over = (burst + 1) * SECOND
        broker.receive(CLIENT, [event(f"{burst} {n}", until=over, price=3) for n in range(500)])
        asked = broker.receive("b1", [Want("b1/ana", ((0, 511 - burst),), 0)])
        assert len(asked.sent) == 501 if burst == 0 else not asked.sent, "sent as they came"
        broker.pass_time(over)
    assert len(broker._tables.events._postings._keys) < 2500
    assert broker.stats()["live events"] == 1
    assert broker.links["b1"].holds == {"stays"}
    broker.check()
    broker.connect("b1")
    [again] = broker.receive("b1", [Want("b1/ana", ((0, 400),), 0)]).sent
    assert again.message.event.id == "stays"


def test_what_a_client_changes_often_is_kept_once():
    broker = Broker("b0", policy="mics", schema=Schema.declare(SCHEMA), space=SPACE)
    broker.add_neighbour("b1")
    late = 999 * SECOND
    near = wish("ana", "ST_DWithin(loc, here(), 1000)", at=Point(0, 0), until=late)
    broker.receive(CLIENT, [near])
    for number in range(100):
        comes, goes = wish("ben", "price < 3", until=late), Unsubscribe("ben")
        broker.receive(CLIENT, [Move("ana", Point(number % 8 / 100, 0)), comes, goes])
    assert len(broker._tables.clients._endings) < 100
    table = broker.links["b1"].policy._ranges._table
    assert len(table._id_of) + len(table._free) < 10
    assert broker.pass_time(late) == []
    assert broker.stats()["subscriptions"] == 0
    broker.check()


def test_a_move_travels_as_a_move_and_only_where_the_place_matters():
    overlay = row_of(2, "none")
    overlay.feed("b0", wish("near", "ST_DWithin(loc, here(), 1000)", at=Point(0, 0)))
    overlay.feed("b0", wish("far", "price < 300", at=Point(0, 0)))
    there = Publish(Event("e", {"loc": Point(1, 1)}, until=9 * SECOND), 0)
    assert overlay.feed("b1", there) == []
    assert overlay.feed("b0", Move("near", Point(1, 1))) == Changes(["e"])
    assert overlay.feed("b0", Move("near", Point(0, 0))) == Changes([], ["e"])
    assert overlay.feed("b0", Move("far", Point(1, 1))) == Changes()
    assert counts(overlay) == {"subscribe": 2, "move": 2, "publish": 1}
    overlay.check()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_healed_link_carries_what_each_side_lacks(policy):
    overlay = row_of(2, policy)
    overlay.feed("b0", wish("ana", "price < 300"))
    overlay.cut("b0", "b1")
    assert overlay.feed("b1", event("kept", until=9 * SECOND, price=7)) == []
    assert overlay.feed("b1", event("fleeting", price=7)) == []
    overlay.feed("b0", wish("ben", "stock < 300"))
    overlay.heal("b0", "b1")
    overlay.heal("b0", "b1")
    assert overlay.run() == [("ana", "kept", True)]
    assert overlay.feed("b1", event("e", stock=7)) == ["ben"]
    overlay.check()


@pytest.mark.parametrize("policy", ["covering", "mics"])
def test_a_healed_link_carries_no_live_event_that_the_other_side_holds(policy):
    overlay = row_of(3, policy)
    overlay.feed("b0", wish("ana", "price < 300"))
    assert overlay.feed("b2", event("e", until=9 * SECOND, price=7)) == ["ana"]
    for one, other in (("b0", "b1"), ("b1", "b2")):
        overlay.cut(one, other)
        overlay.heal(one, other)
    assert overlay.run() == []
    assert overlay.feed("b2", wish("ben", "price < 300")) == Changes(["e"])
    assert counts(overlay)["publish"] == 2, "once over each link, before they were cut"
    overlay.check()


@pytest.mark.parametrize("policy", POLICIES)
def test_what_a_cut_link_was_carrying_comes_when_it_is_healed(policy):
    overlay = row_of(2, policy)
    overlay.feed("b0", wish("ana", "price < 300"))
    overlay.send("b1", [event("kept", until=9 * SECOND, price=7), event("lost", price=7)])
    overlay.send("b0", [wish("ben", "stock < 300")])
    overlay.cut("b0", "b1")
    overlay.heal("b0", "b1")
    assert overlay.run() == [("ana", "kept", True)]
    assert overlay.feed("b1", event("e", stock=7)) == ["ben"]
    overlay.check()


def test_a_broker_goes_on_from_its_file(tmp_path):
    path = tmp_path / "broker.sqlite"
    store = Store(path)
    broker = Broker("b0", store=store)
    broker.add_neighbour("b1")
    broker.connect("b1")
    broker.receive(CLIENT, [wish("ana", "price < 300", until=50 * SECOND)])
    broker.receive("b1", [wish("b1/ben", "stock > 3"), event("e", until=9 * SECOND, price=7)])
    store.close()
    opened = Broker("b0", store=Store(path))
    opened.check()
    assert [*opened.wants("b1")] == ["b1/ben"]
    assert opened.stats() == {
        "subscriptions": 1,
        "table entries": 1,
        "ranges": 0,
        "live events": 1,
    }
    [(to, greeting)] = opened.connect("b1")
    assert (to, [one.name for one in greeting.told], greeting.held) == ("b1", ["b0/ana"], {"e"})
    again = opened.receive("b1", [event("e", until=9 * SECOND, price=7)])
    assert again.deliveries == again.sent == []
    assert opened.receive(CLIENT, [event("e2", price=1, stock=5)]).deliveries == [
        ("ana", "e2", True)
    ]


def test_a_broker_goes_on_without_what_was_over_before_it_stopped():
    store = Store()
    broker = Broker("b0", store=store)
    broker.receive(CLIENT, [wish("ana", "price < 300", until=5 * SECOND)])
    broker.receive(CLIENT, [wish("ben", "price < 300", until=5 * SECOND)])
    broker.receive(CLIENT, [wish("ben", "price < 300", until=9 * SECOND)])
    broker.receive(CLIENT, [event("e", until=5 * SECOND, colour=7)])
    broker.pass_time(5 * SECOND)
    for one in (broker, Broker("b0", store=store)):
        one.check()
        subscriptions, events = one.standing()
        assert ([wanted.id for wanted in subscriptions], [*events]) == (["ben"], [])
        assert "colour" in one.schema, "learned from what is over"


def test_a_broker_that_dies_within_a_batch_stands_where_it_stood_before(tmp_path, monkeypatch):
    path = tmp_path / "broker.sqlite"
    broker = Broker("b0", store=Store(path))
    broker.add_neighbour("b1")
    broker.receive(CLIENT, [wish("ana", "price < 300"), event("e", until=9 * SECOND, price=7)])

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "keep_event", die)
    batch = [wish("ben", "stock < 300"), Unsubscribe("ana"), event("e2", until=9 * SECOND, price=7)]
    with pytest.raises(KeyboardInterrupt):
        broker.receive(CLIENT, batch)
    monkeypatch.undo()
    opened = Broker("b0", store=Store(path))
    opened.check()
    assert [one.name for one in opened.links["b1"].policy.told.values()] == ["b0/ana"]
    assert opened.receive(CLIENT, batch).deliveries == []
    assert opened.receive(CLIENT, [event("e3", price=1, stock=5)]).deliveries == [
        ("ben", "e3", True)
    ]


def test_what_a_dead_broker_had_not_handed_over_its_clients_get_all_the_same(tmp_path):
    def opened():
        stores = {name: Store(tmp_path / name) for name in ("b0", "b1")}
        return Overlay(stores, [("b0", "b1")], stores=stores)

    overlay = opened()
    overlay.send("b0", [wish("ana", "price < 3"), event("e1", price=1)])
    again = opened()
    assert again.run() == [("ana", "e1", True)]
    assert again.run() == []
    assert opened().run() == []
    again.send("b0", [Move("ana", Point(0, 0)), event("e2", until=9 * SECOND, price=1)])
    last = opened()
    assert last.brokers["b0"].undelivered() == [("ana", "e2", True)]
    last.brokers["b0"].delivered()
    assert last.brokers["b0"].undelivered() == []


def test_an_overlay_goes_on_from_the_stores_of_another(tmp_path):
    def opened(policy, space=SPACE):
        stores = {name: Store(tmp_path / name) for name in ("b0", "b1", "b2")}
        links = [("b0", "b1"), ("b1", "b2")]
        overlay = Overlay(stores, links, policy=policy, space=space, stores=stores)
        deliveries = overlay.run()
        overlay.check()
        return overlay, deliveries, stores

    def closed(stores):
        for store in stores.values():
            store.close()

    overlay, _, stores = opened("covering")
    assert overlay.feed("b2", event("e", until=9 * SECOND, price=3)) == []
    overlay.feed("b0", wish("ana", "price < 5"))
    overlay.feed("b0", wish("ben", "price < 4", until=5 * SECOND))
    closed(stores)
    finer = Space(SPACE.dimensions, bits=5)
    for policy, space in (("mics", SPACE), ("none", SPACE), ("mics", finer), ("covering", None)):
        overlay, deliveries, stores = opened(policy, space)
        assert deliveries == []
        assert overlay.feed("b2", event("fleeting", price=3)) == ["ana", "ben"]
        closed(stores)
    overlay, _, stores = opened({"b0": "mics", "b1": "poset", "b2": "none"})
    late = Publish(Event("late", prices(price=3)), 5 * SECOND)
    assert overlay.feed("b2", late) == ["ana"]
    overlay.check()
    closed(stores)


def test_a_name_that_is_longer_than_any_clients_id_survives_a_restart():
    overlay = row_of(2, "none", stores={"b0": Store(), "b1": Store()})
    id = "|/ü" + 508 * "x"  # with its broker's name it is longer than an id may be
    overlay.feed("b0", wish(id, "price < 300"))
    for broker in ("b0", "b1"):
        overlay.restart(broker)
        overlay.run()
        overlay.check()
    assert overlay.feed("b1", event("e", price=7)) == [id]


def test_an_overlay_of_other_links_forgets_who_is_no_neighbour_any_more():
    stores = {name: Store() for name in ("b0", "b1", "b2")}
    for policy in ("none", "covering", "mics"):
        for links in ([("b0", "b1"), ("b1", "b2")], [("b0", "b2"), ("b2", "b1")]):
            overlay = Overlay(stores, links, policy=policy, space=SPACE, stores=stores)
            overlay.run()
            overlay.feed("b1", wish("ana", "price < 3"))
            overlay.check()
            assert overlay.feed("b0", event("e", price=1)) == ["ana"]
    overlay.feed("b1", Unsubscribe("ana"))
    assert not any(broker.stats()["table entries"] for broker in overlay.brokers.values())
    overlay.check()


def test_an_overlay_that_goes_on_knows_whose_ids_stand():
    stores = {"b0": Store(), "b1": Store()}
    for number in range(2):
        overlay = Overlay(stores, [("b0", "b1")], schema=Schema.declare(SCHEMA), stores=stores)
        overlay.run()
        if number == 0:
            overlay.feed("b0", wish("ana", "price < 3", until=9 * SECOND, time=5 * SECOND))
            overlay.feed("b0", event("e", until=9 * SECOND, price=4))
    assert overlay.time == 5 * SECOND
    assert isinstance(overlay.feed("b1", wish("ana", "price < 3")), SettingsError)
    assert isinstance(overlay.feed("b1", event("e", price=4)), DuplicateEventError)
    assert overlay.feed("b1", wish("ana", "price < 3", time=9 * SECOND)) == Changes()
    overlay.check()


def test_a_file_that_is_no_brokers_is_refused(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(FolderError, match="no broker's database"):
        Store(path)
    store = Store()
    store.keep_fact("version", 99)
    other = tmp_path / "newer"
    newer = Store(other)
    newer.keep_fact("version", 99)
    newer.close()
    with pytest.raises(FolderError, match="version 99"):
        Store(other)


def test_two_together_silence_a_third():
    overlay = row_of(2, "mics")
    overlay.feed("b0", wish("low", "price < 6"))
    overlay.feed("b0", wish("high", "price >= 6"))
    overlay.feed("b0", wish("across", "price BETWEEN 3 AND 9"))
    assert counts(overlay) == {"ranges": 2}
    overlay.feed("b0", Unsubscribe("low"))
    assert counts(overlay) == {"ranges": 4}, "`across` takes over, then `low` is withdrawn"
    assert overlay.feed("b1", event("e", price=4)) == ["across"]
    overlay.check()


def test_what_takes_over_a_part_is_told_beside_what_was_told_before():
    overlay = row_of(2, "mics")
    overlay.feed("b0", wish("low", "price < 6"))
    overlay.feed("b0", wish("across", "price BETWEEN 3 AND 12"))
    overlay.feed("b0", Unsubscribe("low"))
    assert overlay.feed("b1", event("e1", price=4)) == ["across"]
    assert overlay.feed("b1", event("e2", price=11)) == ["across"]
    overlay.check()


def test_what_a_cell_lets_through_for_nothing_ends_at_the_broker():
    overlay = row_of(3, "mics")
    overlay.feed("b0", wish("ana", "price < 1"))
    assert overlay.feed("b2", event("near", price=2)) == []
    assert overlay.feed("b2", event("far", price=19)) == []
    assert counts(overlay)["publish"] == 2, "`near` came over two links, `far` over none"
    assert overlay.unwanted == 1


def test_a_gap_that_is_filled_saves_messages_and_costs_events():
    narrow = Space((Dimension("price", 0, 7),), bits=3)
    told = {}
    for policy in ("mics", "mics gap=3"):
        overlay = Overlay(["b0", "b1"], [("b0", "b1")], policy=policy, space=narrow)
        overlay.run()
        for id, price in (("a", 1), ("b", 5), ("c", 3)):
            overlay.feed("b0", wish(id, f"price = {price}"))
        assert overlay.feed("b1", event("e", price=2)) == []
        told[policy] = counts(overlay)["ranges"], overlay.unwanted
        overlay.check()
    assert told == {"mics": (3, 0), "mics gap=3": (2, 1)}


def test_ranges_reach_a_late_subscriber_of_a_broker_that_tells_subscriptions():
    """b1 tells subscriptions, but what b0 tells it are ranges: it hands them on, and merges."""
    overlay = row_of(4, {"b0": "mics", "b1": "covering", "b2": "none", "b3": "covering"})
    overlay.feed("b3", event("e", until=9 * SECOND, price=7))
    assert overlay.feed("b0", wish("ana", "price < 9")) == Changes(["e"])
    assert overlay.feed("b0", wish("ben", "price < 8 AND stock IS NULL")) == Changes(["e"])
    assert counts(overlay)["ranges"] == 3
    assert overlay.feed("b3", event("e2", price=7, stock=1)) == ["ana"]
    overlay.feed("b0", Unsubscribe("ana"))
    assert overlay.feed("b3", event("e3", price=7)) == ["ben"]
    overlay.check()


def test_a_move_takes_its_ranges_along():
    overlay = row_of(3, "mics")
    overlay.feed("b0", wish("near", "ST_DWithin(loc, here(), 1000)", at=Point(0, 0)))
    there = Publish(Event("e", {"loc": Point(0.07, 0.07)}, until=9 * SECOND), 0)
    assert overlay.feed("b2", there) == []
    assert counts(overlay) == {"ranges": 2}
    assert overlay.feed("b0", Move("near", Point(0.07, 0.07))) == Changes(["e"])
    assert counts(overlay) == {"ranges": 4, "publish": 2}
    overlay.check()


def test_a_range_event_travels_to_all_that_one_of_its_values_may_please():
    overlay = row_of(2, "mics")
    overlay.feed("b0", wish("ana", "price BETWEEN 9 AND 10"))
    wide = Event("e", {"price": Range(Kind.NUMBER, 2.0, 18.0)})
    assert overlay.feed("b1", Publish(wide, 0)) == ["ana"]


def test_a_neighbour_that_greets_too_early_is_refused_as_its_live_events_would_be_lost():
    one, other = (Broker(name, schema=Schema.declare(SCHEMA)) for name in ("b0", "b1"))
    one.add_neighbour("b1")
    other.add_neighbour("b0")
    one.receive(CLIENT, [event("e", until=9 * SECOND, price=1)])
    other.receive(CLIENT, [wish("ana", "price < 3")])
    [(_, greeting)] = other.connect("b0")
    assert "`connect` it first" in str(*one.receive("b1", [greeting]).answers)
    one.connect("b1")
    [(_, sent)] = one.receive("b1", [greeting]).sent
    assert other.receive("b0", [sent]).deliveries == [("ana", "e", True)]


def test_brokers_with_other_spaces_do_not_understand_each_other():
    one = Broker("b0", policy="mics", space=SPACE)
    other = Broker("b1", policy="mics", space=Space(SPACE.dimensions, bits=4))
    none = Broker("b2")
    for broker in (one, other, none):
        broker.add_neighbour("b9")
        [(_, greeting)] = broker.connect("b9")
    assert "different spaces" in str(*other.receive("b9", [greeting]).answers)
    assert other.receive(CLIENT, [wish("ana", "price < 3")]).sent == [], "refused, so told nothing"
    assert "does not have" in str(*none.receive("b9", [Want("b0/ana", ((0, 1),), 0)]).answers)
    for ranges in (((0, 512),), ((5, 4),), ((-1, 4),)):
        told = [
            Want("b0/ana", ranges, 0),
            Greeting((RangeInterest("ana", ranges),), set(), 0, SPACE),
        ]
        for message in told:
            assert "beyond 0 … 511" in str(*one.receive("b9", [message]).answers)
            assert not one.wants("b9")
    one.receive("b9", [Want("b0/never told", (), 0)])
    one.check()


def test_what_a_neighbour_says_that_cannot_be_changes_nothing():
    broker = Broker("b0", schema=Schema.declare(SCHEMA))
    broker.add_neighbour("b1")
    broker.connect("b1")
    other = Schema.declare({"price": "string"})
    odd = Subscription("b1/odd", parse("price = 'high'", schema=other))
    fine = wish("b1/fine", "price < 3")
    greeting = Greeting(
        (Interest("b1/odd", odd), Interest("b1/fine", fine.subscription)), frozenset(), 0
    )
    for messages in ([Unsubscribe("b1/x", 0), Subscribe(odd, 0), fine], [greeting]):
        answers = broker.receive("b1", messages).answers
        assert any(isinstance(answer, TypeConflictError) for answer in answers)
        assert [*broker.wants("b1")] == ["b1/fine"]
        broker.check()


def test_what_could_not_be_read_back_is_refused_and_the_others_are_not(tmp_path):
    path = tmp_path / "broker.sqlite"
    broker = Broker("b0", store=Store(path))
    far = Point(math.inf, 0.0)
    records = [
        wish("", "price < 3"),
        wish("\ud800", "price < 3"),
        wish("x" * 513, "price < 3"),
        wish("ana", "ST_DWithin(loc, here(), 9)", at=Point(0.0, 0.0)),
        wish("ben", "ST_DWithin(loc, here(), 9)", at=Point(math.nan, 0.0)),
        Move("ana", far, 0),
        event("", price=3),
        Publish(Event("far", {"loc": far}, until=9 * SECOND), 0),
        Publish(Event("here", {"loc": Point(0.0, 0.0)}, until=9 * SECOND), 0),
    ]
    answers = broker.receive(CLIENT, records).answers
    assert [isinstance(one, RecordError) for one in answers] == [
        *(True, True, True, False, True, True, True, True, False),
    ]
    assert answers[-1] == ["ana"]
    opened = Broker("b0", store=Store(path))
    opened.check()
    assert opened.stats()["live events"] == opened.stats()["subscriptions"] == 1


def test_a_store_belongs_to_one_broker(tmp_path):
    files = {name: tmp_path / name for name in ("b0", "b1")}
    Overlay(files, [("b0", "b1")], stores=files)
    with pytest.raises(FolderError, match="store of the broker 'b1', not of 'b0'"):
        Overlay(files, [("b0", "b1")], stores={"b0": files["b1"], "b1": files["b0"]})
    with pytest.raises(SettingsError, match="no brokers here"):
        Overlay(["b0"], [], stores=files)
    with pytest.raises(FolderError, match="cannot be opened"):
        Store(tmp_path / "no folder" / "b0")


def test_what_a_healed_link_has_to_say_comes_before_the_next_record():
    overlay = row_of(2, "covering")
    overlay.cut("b0", "b1")
    overlay.feed("b0", {"op": "subscribe", "id": "ana", "expression": "price < 5"})
    overlay.feed("b1", {"op": "publish", "id": "kept", "price": 3, "until": 60, "time": 0})
    overlay.heal("b0", "b1")
    assert overlay.feed("b1", {"op": "publish", "id": "e", "price": 4}) == ["ana"]
    assert overlay.run() == [("ana", "kept", True)]
    answer = overlay.feed("b1", {"op": "unsubscribe", "id": "zoe"})
    assert str(answer) == "no subscription has the id 'zoe'"
    with pytest.raises(RecordError):
        overlay.feed("b1", {"op": "subscribe"})


def test_mistakes_are_named():
    with pytest.raises(SettingsError, match="closes a circle"):
        Overlay(["a", "b", "c"], [("a", "b"), ("b", "c"), ("c", "a")])
    with pytest.raises(SettingsError, match="'b' has no policy"):
        Overlay(["a", "b"], [("a", "b")], policy={"a": "none"})
    with pytest.raises(SettingsError, match="no broker 'x'"):
        Overlay(["a"], [("a", "x")])
    with pytest.raises(SettingsError, match="no policy"):
        policy_of("covering k=0")
    for name in ("", "mics gap=-1", "mics k=3", "none k=1", "mics ranges=0", "mics gap"):
        with pytest.raises(SettingsError, match="no policy"):
            policy_of(name)
    with pytest.raises(SettingsError, match="needs the space"):
        Broker("a", policy="mics")
    with pytest.raises(SettingsError, match="neither"):
        Broker("a/b")
    for name in ("", "a|b", "a/b"):
        with pytest.raises(SettingsError, match="neither"):
            Broker("a").add_neighbour(name)
    overlay = row_of(2, "none")
    with pytest.raises(SettingsError, match="no link joins"):
        overlay.cut("b0", "b7")
    with pytest.raises(SettingsError, match="no store"):
        overlay.restart("b0")
    with pytest.raises(SettingsError, match="no neighbour"):
        overlay.brokers["b0"].receive("b7", [])
    with pytest.raises(SettingsError, match="already"):
        overlay.brokers["b0"].add_neighbour("b1")


def test_an_id_that_is_over_elsewhere_may_come_and_move_in_one_batch():
    overlay = row_of(2, "none")
    overlay.feed("b0", wish("ana", "ST_DWithin(loc, here(), 9)", at=Point(0, 0), until=9 * SECOND))
    again = wish("ana", "ST_DWithin(loc, here(), 9)", at=Point(0, 0), time=9 * SECOND)
    assert overlay.send("b1", [again, Move("ana", Point(1, 1))]) == [Changes(), Changes()]
    assert overlay.send("b1", [again, Unsubscribe("ana"), again]) == [Changes()] * 3
    assert isinstance(overlay.send("b0", [again])[0], SettingsError)


def test_ids_that_belong_elsewhere_are_refused():
    overlay = row_of(2, "none")
    overlay.feed("b0", wish("ana", "price < 3", until=9 * SECOND))
    overlay.feed("b0", event("e", until=9 * SECOND))
    assert isinstance(overlay.feed("b1", event("e")), DuplicateEventError)
    assert isinstance(overlay.feed("b1", wish("ana", "price < 3")), SettingsError)
    assert isinstance(overlay.feed("b1", Move("ana", Point(0, 0))), UnknownIdError)
    assert isinstance(overlay.feed("b1", Unsubscribe("nobody")), UnknownIdError)
    assert overlay.feed("b1", wish("ana", "price < 3", time=9 * SECOND)) == Changes()
    overlay.check()
