"""A broker's store: it goes on where it stopped, whatever happened."""

import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from stentor.broker import Broker, Dimension, Overlay, Space, Store
from stentor.broker.interest import CLIENT
from stentor.broker.store import KeptInterest
from stentor.errors import (
    DuplicateEventError,
    FolderError,
    RecordError,
    SettingsError,
)
from stentor.model import Changes, Event, Point, Schema, Subscription
from stentor.model.record import Move, Publish, Unsubscribe
from tests.support.broker_records import (
    SCHEMA,
    SECOND,
    SPACE,
    event,
    prices,
    row_of,
    wish,
)


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
    assert [*opened.interests_of("b1")] == ["b1/ben"]
    assert opened.stats() == {
        "subscriptions": 1,
        "table entries": 1,
        "ranges": 0,
        "live events": 1,
    }
    [(to, greeting)] = opened.connect("b1")
    assert (to, [one.name for one in greeting.interests], greeting.live_ids) == (
        "b1",
        ["b0/ana"],
        {"e"},
    )
    again = opened.receive("b1", [event("e", until=9 * SECOND, price=7)])
    assert again.deliveries == again.sent == []
    assert opened.receive(CLIENT, [event("e2", price=1, stock=5)]).deliveries == [
        ("ana", "e2", True)
    ]


def test_a_reopened_broker_reads_an_expression_when_it_is_asked_for(tmp_path):
    path, here = tmp_path / "broker.sqlite", "ST_DWithin(loc, here(), 500) AND price < 300"
    store = Store(path)
    broker = Broker("b0", store=store)
    broker.receive(CLIENT, [wish("ana", here, at=Point(1, 2)), wish("ben", "price < 200")])
    store.close()
    opened = Broker("b0", store=Store(path))
    kept = opened._tables.clients
    assert all(isinstance(kept[id], KeptInterest) for id in ("ana", "ben"))
    near = Publish(Event("e", {**prices(price=7), "loc": Point(3, 4)}), 0)
    assert opened.receive(CLIENT, [near]).deliveries == [("ben", "e", True)]
    opened.receive(CLIENT, [Move("ana", Point(3, 4), 0)])
    assert isinstance(kept["ana"], Subscription)
    assert isinstance(kept["ben"], KeptInterest)
    near = replace(near, event=replace(near.event, id="e2"))
    assert [one.subscription for one in opened.receive(CLIENT, [near]).deliveries] == ["ana", "ben"]
    opened.add_neighbour("b1")
    [(_, greeting)] = opened.connect("b1")
    assert sorted(one.name for one in greeting.interests) == ["b0/ana", "b0/ben"]


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
        subscriptions, events = one.contents()
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
    assert [one.name for one in opened.links["b1"].policy.announced.values()] == ["b0/ana"]
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
    again = opened()
    assert again.run() == []
    again.send("b0", [Move("ana", Point(0, 0)), event("e2", until=9 * SECOND, price=1)])
    last = opened()
    [(number, delivery)] = last.brokers["b0"].undelivered().items()
    assert delivery == ("ana", "e2", True)
    last.brokers["b0"].acknowledge([number])
    assert last.brokers["b0"].undelivered() == {}


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
    overlay.acknowledge()
    closed(stores)
    finer = Space(SPACE.dimensions, bits=5)
    for policy, space in (("mics", SPACE), ("none", SPACE), ("mics", finer), ("covering", None)):
        overlay, deliveries, stores = opened(policy, space)
        assert deliveries == []
        assert overlay.feed("b2", event("fleeting", price=3)) == ["ana", "ben"]
        overlay.acknowledge()
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
    with pytest.raises(FolderError, match="no store of Stentor's"):
        Store(path)
    store = Store()
    store.keep_fact("version", 99)
    other = tmp_path / "newer"
    newer = Store(other)
    newer.keep_fact("version", 99)
    newer.close()
    with pytest.raises(FolderError, match="version 99"):
        Store(other)


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


def test_stores_that_version_1_wrote_go_on(tmp_path):
    """Written by Stentor before deliveries had numbers: one of `ben` had not been handed over."""
    script = Path(__file__).with_name("broker_stores_version_1.sql").read_text("utf-8")
    files = {}
    for part in script.split("-- ")[2:]:
        name, _, statements = part.partition("\n")
        files[name] = tmp_path / name
        with closing(sqlite3.connect(files[name])) as old:
            old.executescript(statements)
    space = Space((Dimension("price", 0, 20),), bits=3)
    for links in ([("west", "hub"), ("hub", "east")], [("hub", "west"), ("west", "east")]):
        overlay = Overlay(files, links, policy="covering", space=space, stores=files)
        owed = [("ben", "plain", True)] if links[0] == ("west", "hub") else []
        assert overlay.run() == owed
        overlay.check()
        assert overlay.time == 20 * SECOND
        sold = {"op": "publish", "id": "e", "price": 2, "sold": "2026-05-05"}
        assert overlay.feed("east", sold) == ["ana", "ben"]
        assert overlay.feed("hub", {**sold, "sold": "2025-05-05"}) == ["ben"]
        assert overlay.feed("hub", {"op": "publish", "id": "e", "loc": [0.01, 0.021]}) == ["near"]
        late = {"op": "subscribe", "id": "zoe", "expression": "sold > TIMESTAMP '2026-02-01'"}
        assert overlay.feed("hub", late).added == ["lamp"]
        assert overlay.feed("hub", {"op": "unsubscribe", "id": "zoe"}) == Changes()
        overlay.acknowledge()
        overlay.close()
