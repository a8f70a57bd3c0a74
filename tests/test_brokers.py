"""Brokers: a tree of them delivers what one engine delivers."""

import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.broker import Broker, Dimension, Overlay, Space, Store, policy_of
from stentor.broker.keys import CLIENT
from stentor.errors import (
    DuplicateEventError,
    FolderError,
    SettingsError,
    UnknownIdError,
)
from stentor.index.catalog import names
from stentor.language.parser import parse
from stentor.model import Changes, Constant, Event, Kind, Point, Schema, Subscription
from stentor.model.record import Move, Publish, Subscribe, Unsubscribe
from stentor.testing import grid, strategies
from tests.overlay_runs import Compared, renamed

OPERATIONS = int(os.environ.get("STENTOR_SOAK_OPERATIONS", "20000")) // 20
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


@pytest.mark.parametrize("count", [2, 7, 50])
@pytest.mark.parametrize("policy", ["none", "covering", "mics", "mixed"])
def test_a_long_life_with_cuts_and_restarts_delivers_what_one_engine_delivers(count, policy):
    draw = random.Random(f"{count} {policy}")
    links = random_tree(draw, count)
    brokers = [f"b{number}" for number in range(count)]
    if policy == "mixed":
        policy = {name: draw.choice(POLICIES) for name in brokers}
    schema = Schema.declare(SCHEMA)
    run = Compared(links, schema=schema, policy=policy, space=SPACE, choose=draw.randrange)
    time = 0
    for number in range(OPERATIONS // 9):
        time += draw.randrange(3) * SECOND
        what = draw.random()
        if what < 0.03:
            run.cut(draw.randrange(count))
        elif what < 0.06:
            run.heal_all()
        elif what < 0.08:
            run.restart(draw.choice(brokers))
        run.feed(draw.choice(brokers), drawn_record(draw, number, time))
        if number % 25 == 0:
            run.check()
    run.heal_all()
    run.check()


@pytest.mark.parametrize("policy", POLICIES)
def test_messages_that_cross_on_their_way_lead_to_the_same_answers(policy):
    draw = random.Random(policy)
    brokers = [f"b{number}" for number in range(9)]
    run = Compared(
        random_tree(draw, 9),
        schema=Schema.declare(SCHEMA),
        policy=policy,
        space=SPACE,
        choose=draw.randrange,
    )
    number = 0
    for _ in range(12):
        burst = []
        for _ in range(8):
            record = drawn_record(draw, number, 0)
            if not isinstance(record, Publish) or record.event.until is not None:
                burst.append((draw.choice(brokers), record))
            number += 1
        run.feed_at_once(burst)
        run.check()


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


def test_a_healed_link_carries_what_each_side_lacks():
    overlay = row_of(2, "covering")
    overlay.feed("b0", wish("ana", "price < 300"))
    overlay.cut("b0", "b1")
    assert overlay.feed("b1", event("kept", until=9 * SECOND, price=7)) == []
    assert overlay.feed("b1", event("fleeting", price=7)) == []
    overlay.feed("b0", wish("ben", "stock < 300"))
    overlay.heal("b0", "b1")
    overlay.heal("b0", "b1")
    assert overlay.run() == [("ana", "kept", True)]
    assert [*overlay.brokers["b1"].wants("b0")] == ["b0/ana", "b0/ben"]
    overlay.check()


def test_what_a_cut_link_was_carrying_comes_when_it_is_healed():
    overlay = row_of(2, "covering")
    overlay.feed("b0", wish("ana", "price < 300"))
    overlay.send("b1", [event("kept", until=9 * SECOND, price=7)])
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


def test_mistakes_are_named():
    with pytest.raises(SettingsError, match="closes a circle"):
        Overlay(["a", "b", "c"], [("a", "b"), ("b", "c"), ("c", "a")])
    with pytest.raises(SettingsError, match="no broker 'x'"):
        Overlay(["a"], [("a", "x")])
    with pytest.raises(SettingsError, match="no policy"):
        policy_of("covering k=0")
    with pytest.raises(SettingsError, match="neither"):
        Broker("a/b")
    overlay = row_of(2, "none")
    with pytest.raises(SettingsError, match="no link joins"):
        overlay.cut("b0", "b7")
    with pytest.raises(SettingsError, match="no store"):
        overlay.restart("b0")
    with pytest.raises(SettingsError, match="no neighbour"):
        overlay.brokers["b0"].receive("b7", [])
    with pytest.raises(SettingsError, match="already"):
        overlay.brokers["b0"].add_neighbour("b1")


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
