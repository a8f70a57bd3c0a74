"""Brokers: what is told to whom, in which order, and what is refused."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from stentor.broker import Broker, Overlay, Store, policy_of
from stentor.broker.interest import CLIENT, Interest, RangeInterest
from stentor.broker.messages import AnnounceRanges, Learned, LinkGreeting, from_json, to_json
from stentor.errors import (
    DuplicateEventError,
    RecordError,
    SettingsError,
    StentorError,
    TypeConflictError,
    UnknownIdError,
)
from stentor.language.parser import parse
from stentor.model import Changes, Constant, Event, Kind, Point, Schema, Subscription
from stentor.model.record import Move, Publish, Subscribe, Unsubscribe
from stentor.model.schema import AttributeUse
from stentor.model.values.time import BEGINNING
from tests.support.broker_records import (
    POLICIES,
    SCHEMA,
    SECOND,
    SPACE,
    counts,
    event,
    prices,
    row_of,
    wish,
)


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
    assert [*overlay.brokers["b1"].interests_of("b0")] == ["b0/narrow"]
    overlay.check()


def all_get_through(overlay, broker, attributes, subscription):
    """Whether events at *broker* that come between all messages are given to *subscription*."""
    probes = [f"probe {number}" for number in range(12)]
    for id in probes:
        overlay.send(broker, [Publish(Event(id, attributes), overlay.time)])
        overlay.transmit(1)
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
    assert [*overlay.brokers["b3"].interests_of("hub")] == ["b0/ana", "b2/ben"]
    policy["b0"] = after
    overlay.restart("b0")
    overlay.run()
    overlay.check()
    assert [*overlay.brokers["b3"].interests_of("hub")] == ["b2/ben"]
    assert overlay.feed("b3", event("e", price=3)) == ["ana", "ben"]


@pytest.mark.parametrize(
    "message",
    [
        LinkGreeting((), frozenset(), 9 * SECOND, SPACE),
        AnnounceRanges("b1/ben", ((0, 1),), 9 * SECOND),
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
    assert not overlay.brokers["b2"].interests_of("b1")
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
    homes = overlay._homes
    assert ([*homes.subscriptions], [*homes.events]) == (["s4"], ["e4"])
    overlay.pass_time(5 * SECOND)
    overlay.run()
    assert ([*homes.subscriptions], [*homes.events]) == ([], [])
    overlay.check()


def test_live_events_that_are_over_leave_nothing_behind():
    broker = Broker("b0", schema=Schema.declare(SCHEMA), space=SPACE)
    broker.add_neighbour("b1")
    broker.connect("b1")
    broker.receive(CLIENT, [event("stays", until=99 * SECOND, price=3)])
    for burst in range(8):
        over = (burst + 1) * SECOND
        broker.receive(CLIENT, [event(f"{burst} {n}", until=over, price=3) for n in range(500)])
        asked = broker.receive("b1", [AnnounceRanges("b1/ana", ((0, 511 - burst),), 0)])
        assert len(asked.sent) == 501 if burst == 0 else not asked.sent, "sent as they came"
        broker.pass_time(over)
    assert len(broker._tables.events._postings._keys) < 2500
    assert broker.stats()["live events"] == 1
    assert broker.links["b1"].live_ids == {"stays"}
    broker.check()
    broker.connect("b1")
    [again] = broker.receive("b1", [AnnounceRanges("b1/ana", ((0, 400),), 0)]).sent
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
    assert len(broker._tables.clients._heap) < 100
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


@pytest.mark.parametrize("how", ["heal", "restart", "reopen"])
@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_over_is_not_given_when_links_come_up_again(policy, how):
    """Time has passed at b2 alone; b0 and b1, whom nobody told, still hold all of it."""
    stores = {name: Store() for name in ("b0", "b1", "b2")}
    links = [("b0", "b1"), ("b1", "b2")]
    settings = {"policy": policy, "schema": Schema.declare(SCHEMA), "space": SPACE}
    overlay = Overlay(stores, links, stores=stores, **settings)
    overlay.feed("b0", wish("ana", "price < 300"))
    overlay.feed("b0", wish("short", "price < 300", until=10 * SECOND))
    overlay.cut("b0", "b1")
    overlay.cut("b1", "b2")
    overlay.feed("b1", event("over", until=9 * SECOND, price=7))
    overlay.feed("b1", event("live", until=99 * SECOND, price=7))
    overlay.feed("b2", Publish(Event("late", prices(price=900)), 20 * SECOND))
    if how == "reopen":
        overlay = Overlay(stores, links, stores=stores, **settings)
    elif how == "restart":
        overlay.links[overlay._pair("b0", "b1")] = True  # as if the link had come up by itself
        overlay.restart("b1")
    else:
        overlay.heal("b0", "b1")
    assert overlay.run() == [("ana", "live", True)]
    assert overlay.brokers["b0"].time == overlay.brokers["b1"].time == 20 * SECOND


FAR = int(12 * 365.25 * 86400) * SECOND


def test_a_record_from_the_future_is_refused_and_ends_nothing():
    overlay = row_of(3, "covering")
    overlay.feed("b0", wish("ana", "price < 300", until=99 * SECOND))
    overlay.feed("b1", event("e", until=99 * SECOND, price=7))
    refused = overlay.feed("b2", Publish(Event("far", prices(price=7)), FAR))
    assert isinstance(refused, RecordError)
    assert "most_ahead" in str(refused)
    assert overlay.time == 0
    assert overlay.feed("b2", event("now", price=7)) == ["ana"]
    overlay.check()
    for most_ahead in (None, timedelta(days=9999)):
        overlay = row_of(2, "none", most_ahead=most_ahead)
        overlay.feed("b0", wish("ana", "price < 300"))
        assert overlay.feed("b1", Publish(Event("far", prices(price=7)), FAR)) == ["ana"]
    overlay = row_of(2, "none", clock=lambda: 5.0)
    assert isinstance(overlay.feed("b0", Publish(Event("e", {}), 86_406 * SECOND)), RecordError)
    assert overlay.feed("b0", Publish(Event("e", {}), 86_405 * SECOND)) == []


def test_brokers_refuse_what_their_clients_send_from_the_future():
    broker = Broker("b0", schema=Schema.declare(SCHEMA))
    broker.add_neighbour("b1")
    broker.connect("b1")
    broker.receive(CLIENT, [wish("ana", "price < 300", until=99 * SECOND)])
    far = Publish(Event("far", prices(price=7)), FAR)
    steps = [Publish(Event(f"e{n}", prices(price=7)), n * FAR // 2) for n in (1, 2, 3)]
    answers = broker.receive(CLIENT, [far, event("e", price=7), *steps]).answers
    assert isinstance(answers[0], RecordError)
    assert answers[1:] == [["ana"], [], [], []], "each is ten years ahead of the one before"
    assert broker.time == steps[-1].time
    again = Broker("b0", schema=Schema.declare(SCHEMA))
    again.add_neighbour("b1")
    again.connect("b1")
    again.receive(CLIENT, [wish("ana", "price < 300")])
    assert again.receive("b1", [far]).answers == [["ana"]], "a neighbour has looked at it"
    watched = Broker("b0", clock=lambda: 5.0, most_ahead=timedelta(seconds=1), space=SPACE)
    watched.add_neighbour("b1")
    watched.connect("b1")
    late = 7 * SECOND
    for message in (
        Publish(Event("e", {}), late),
        AnnounceRanges("b1/ana", ((0, 1),), late),
        Learned((), late),
        LinkGreeting((), frozenset(), late, SPACE),
    ):
        [refused] = watched.receive("b1", [message]).answers
        assert "most_ahead" in str(refused)
        assert watched.time < 0


@pytest.mark.parametrize("source", [CLIENT, "b1"])
def test_whatever_is_sent_is_answered_by_an_error_of_ours_and_changes_nothing(source):
    broker = Broker("b0", schema=Schema.declare(SCHEMA), space=SPACE)
    broker.add_neighbour("b1")
    broker.connect("b1")
    fine = wish("ana", "price < 3").subscription
    bad_ids = ("", None, 7, "\ud800")
    bad_times = (None, 1.5, True, 2**70, "now")
    messages = [
        "hello",
        None,
        {"op": "publish", "id": "e"},
        *(Publish(Event(id, {}), 0) for id in (*bad_ids, "x" * 600)),
        *(Publish(Event("e", {}), time) for time in bad_times[1:]),
        *(Publish(Event("e", {}, until=time), 0) for time in bad_times[1:]),
        *(
            Publish(Event("e", {"price": value}), 0)
            for value in (3, "x", Constant(Kind.NUMBER, None), Point("a", 3), Constant("x", 3.0))
        ),
        Publish(Event("e", None), 0),
        Publish(Event("e", {}, None), 0),
        Publish("e", 0),
        *(Subscribe(replace(fine, id=id), 0) for id in bad_ids),
        Subscribe(replace(fine, expression="price < 3"), 0),
        Subscribe(replace(fine, expression=None), 0),
        Subscribe(replace(fine, at="here"), 0),
        Subscribe(replace(fine, until="soon"), 0),
        Subscribe(None, 0),
        *(Unsubscribe(id, 0) for id in bad_ids),
        *(Move("ana", at, 0) for at in (None, "x", Point(None, 3), Point(0, 999), (1, 2))),
        *(AnnounceRanges(id, ((0, 1),), 0) for id in bad_ids),
        *(
            AnnounceRanges("b1/x", ranges, 0)
            for ranges in (None, 7, "ab", ((1,),), ((0, "x"),), ((2, 1),))
        ),
        *(AnnounceRanges("b1/x", ((0, 1),), time) for time in bad_times),
        *(LinkGreeting(told, frozenset(), 0, SPACE) for told in (None, 7, ("x",), (None,))),
        *(LinkGreeting((), held, 0, SPACE) for held in (None, 7, {3})),
        *(LinkGreeting((), frozenset(), time, SPACE) for time in bad_times),
        *(Learned(learned, 0) for learned in (None, 7, ("x",), (("a", "colour", "x"),))),
        *(Learned((), time) for time in bad_times),
    ]
    for message in messages:
        outcome = broker.receive(source, [message])
        assert [isinstance(one, StentorError) for one in outcome.answers] == [True], message
        assert not outcome.sent
        broker.check()
        if isinstance(message, LinkGreeting):
            broker.connect("b1")
    broker.receive(CLIENT, [wish("ana", "price < 300")])
    assert broker.receive("b1", [event("e", price=7)]).answers == [["ana"]]
    overlay = row_of(2, "none")
    for message in messages[:3]:
        assert isinstance(overlay.send("b0", [message])[0], StentorError)


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


def test_what_a_neighbour_says_that_cannot_be_changes_nothing():
    broker = Broker("b0", schema=Schema.declare(SCHEMA))
    broker.add_neighbour("b1")
    broker.connect("b1")
    other = Schema.declare({"price": "string"})
    odd = Subscription("b1/odd", parse("price = 'high'", schema=other))
    fine = wish("b1/fine", "price < 3")
    greeting = LinkGreeting(
        (Interest("b1/odd", odd), Interest("b1/fine", fine.subscription)), frozenset(), 0
    )
    for messages in ([Unsubscribe("b1/x", 0), Subscribe(odd, 0), fine], [greeting]):
        answers = broker.receive("b1", messages).answers
        assert any(isinstance(answer, TypeConflictError) for answer in answers)
        assert [*broker.interests_of("b1")] == ["b1/fine"]
        broker.check()


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


@pytest.mark.parametrize(
    "message",
    [
        Learned(
            (
                AttributeUse("price", Kind.NUMBER, "event 'e' at the broker 'b1'"),
                AttributeUse("x", None, "y"),
            ),
            7,
        ),
        AnnounceRanges("b1/" + "x" * 600, ((0, 7), (9, 9)), BEGINNING),
        LinkGreeting(
            (
                Interest("b1/ana", wish("ana", "price < 3").subscription),
                RangeInterest("c", ((1, 2),)),
            ),
            frozenset({"e", "f"}),
            BEGINNING,
            SPACE,
            (AttributeUse("price", Kind.NUMBER, "here"),),
        ),
        LinkGreeting((), frozenset(), 0),
        Unsubscribe("b1/" + "x" * 600, BEGINNING),
        Move("b1/ana", Point(0.1, 0.2), None),
    ],
)
def test_a_message_is_the_same_after_json(message):
    raw = json.loads(json.dumps(to_json(message)))
    assert from_json(raw, Schema.declare(SCHEMA)) == message


@pytest.mark.parametrize(
    "change",
    [
        {"op": "dance"},
        {"op": None},
        {"op": ["ranges"]},
        {"time": "now"},
        {"time": None},
        {"id": 7},
        {"ranges": [[1]]},
        {"ranges": "all"},
    ],
)
def test_what_is_no_message_is_refused_with_a_reason(change):
    raw = to_json(AnnounceRanges("b1/ana", ((0, 7),), 5))
    with pytest.raises(RecordError):
        from_json({**raw, **change}, Schema.declare(SCHEMA))
    for missing in raw:
        with pytest.raises(RecordError):
            from_json({key: raw[key] for key in raw if key != missing}, Schema.declare(SCHEMA))
