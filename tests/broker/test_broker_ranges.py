"""The policy mics: ranges are told, and route."""

from stentor.broker import Broker, Dimension, Overlay, Space
from stentor.broker.interest import CLIENT, RangeInterest
from stentor.broker.messages import AnnounceRanges, LinkGreeting
from stentor.model import Changes, Event, Kind, Point, Range
from stentor.model.record import Move, Publish, Unsubscribe
from tests.support.broker_records import (
    SECOND,
    SPACE,
    counts,
    event,
    row_of,
    wish,
)


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


def test_brokers_with_other_spaces_do_not_understand_each_other():
    one = Broker("b0", policy="mics", space=SPACE)
    other = Broker("b1", policy="mics", space=Space(SPACE.dimensions, bits=4))
    none = Broker("b2")
    for broker in (one, other, none):
        broker.add_neighbour("b9")
        [(_, greeting)] = broker.connect("b9")
    assert "different spaces" in str(*other.receive("b9", [greeting]).answers)
    assert other.receive(CLIENT, [wish("ana", "price < 3")]).sent == [], "refused, so told nothing"
    assert "does not have" in str(
        *none.receive("b9", [AnnounceRanges("b0/ana", ((0, 1),), 0)]).answers
    )
    for ranges in (((0, 512),), ((5, 4),), ((-1, 4),)):
        told = [
            AnnounceRanges("b0/ana", ranges, 0),
            LinkGreeting((RangeInterest("ana", ranges),), set(), 0, SPACE),
        ]
        for message in told:
            assert "beyond 0 … 511" in str(*one.receive("b9", [message]).answers)
            assert not one.interests_of("b9")
    one.receive("b9", [AnnounceRanges("b0/never told", (), 0)])
    one.check()
