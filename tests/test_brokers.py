"""Brokers: what is told to whom, in which order, and what is refused."""

import pytest

from stentor.broker import Broker, Overlay, Store, policy_of
from stentor.broker.interest import Interest
from stentor.broker.keys import CLIENT
from stentor.broker.messages import Greeting, Want
from stentor.errors import (
    DuplicateEventError,
    RecordError,
    SettingsError,
    TypeConflictError,
    UnknownIdError,
)
from stentor.language.parser import parse
from stentor.model import Changes, Event, Point, Schema, Subscription
from stentor.model.record import Move, Publish, Subscribe, Unsubscribe
from tests.broker_records import (
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
    greeting = Greeting(
        (Interest("b1/odd", odd), Interest("b1/fine", fine.subscription)), frozenset(), 0
    )
    for messages in ([Unsubscribe("b1/x", 0), Subscribe(odd, 0), fine], [greeting]):
        answers = broker.receive("b1", messages).answers
        assert any(isinstance(answer, TypeConflictError) for answer in answers)
        assert [*broker.wants("b1")] == ["b1/fine"]
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
