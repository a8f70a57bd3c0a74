"""The policy of subscription indexing: exact subsumption and merging in many dimensions."""

import random

import pytest

from stentor.broker import Overlay, policy_of
from stentor.broker.interest import Interest, InterestTable
from stentor.language.evaluate import evaluate
from stentor.language.printer import to_text
from stentor.model import Event, Schema
from stentor.model.record import Move, Subscribe, Unsubscribe
from tests.support.broker_records import SCHEMA, counts, event, prices, row_of, wish


def announced_texts(overlay, receiver="b1", sender="b0"):
    """What *receiver* was announced by *sender*, by name."""
    interests = overlay.brokers[receiver].interests_of(sender)
    return {name: to_text(one.subscription.expression) for name, one in interests.items()}


def test_what_several_hold_together_is_not_announced_and_nothing_comes_in_vain():
    overlay = row_of(3, "subsumption")
    overlay.feed("b0", wish("low", "price <= 50 AND stock > 0"))
    overlay.feed("b0", wish("high", "price BETWEEN 51 AND 99 AND stock > 1"))
    before = counts(overlay)
    overlay.feed("b0", wish("both", "price BETWEEN 20 AND 50 AND stock > 2"))
    overlay.feed("b0", wish("beyond", "price IN (40, 60) AND stock > 2"))
    assert counts(overlay) == before == {"subscribe": 4}
    assert overlay.feed("b2", event("e", price=40, stock=3)) == ["beyond", "both", "low"]
    assert overlay.feed("b2", event("f", stock=3)) == []
    assert counts(overlay)["publish"] == 2, "the second went nowhere"
    overlay.check()


def test_what_can_be_one_is_announced_as_one():
    overlay = row_of(3, "subsumption")
    overlay.feed("b0", wish("low", "price <= 50 AND stock > 0"))
    overlay.feed("b0", wish("high", "stock > 0 AND price > 50 AND price <= 70"))
    assert announced_texts(overlay) == {"b0/low": "stock > 0 AND price <= 70"}
    assert announced_texts(overlay, "b2", "b1") == announced_texts(overlay)
    overlay.feed("b0", wish("rest", "price > 70 AND stock > 0"))
    assert announced_texts(overlay) == {"b0/low": "stock > 0 AND price IS NOT NULL"}
    assert overlay.feed("b2", event("e", price=60, stock=1)) == ["high"]
    overlay.feed("b0", Unsubscribe("high", 0))
    assert overlay.feed("b2", event("f", price=60, stock=1)) == []
    assert overlay.unwanted == 0, "what is merged is no wider than what it was merged of"
    overlay.feed("b0", Unsubscribe("low", 0))
    assert announced_texts(overlay) == {"b0/rest": "price > 70 AND stock > 0"}
    assert overlay.feed("b2", event("g", price=80, stock=1)) == ["rest"]
    overlay.check()


def test_what_is_merged_may_be_merged_again_and_hold_others():
    overlay = row_of(2, "subsumption")
    for name, text in (
        ("a", "price BETWEEN 0 AND 1 AND stock = 1"),
        ("c", "price BETWEEN 5 AND 6 AND stock = 1"),
        ("d", "price = 3 AND stock = 1"),
        ("b", "price BETWEEN 1 AND 5 AND stock = 1"),
    ):
        overlay.feed("b0", wish(name, text))
    assert [*announced_texts(overlay).values()] == ["stock = 1 AND price >= 0 AND price <= 6"]
    overlay.feed("b0", Unsubscribe("b", 0))
    assert sorted(announced_texts(overlay)) == ["b0/a", "b0/c", "b0/d"]
    overlay.check()


def test_boxes_booleans_and_timestamps_are_merged_and_survive_a_restart(tmp_path):
    kinds = {"loc": "point", "sold": "timestamp", "new": "boolean", "price": "number"}
    stores = {name: tmp_path / name for name in ("b0", "b1")}
    overlay = Overlay(
        stores,
        [("b0", "b1")],
        policy="subsumption",
        stores=stores,
        schema=Schema.declare(kinds),
        clock=None,
    )
    box = "ST_Within(loc, ST_MakeEnvelope({}, 0, {}, 1))"
    for name, text in (
        ("west", box.format(0, 1)),
        ("east", box.format(1, 2)),
        ("old", "price = 1 AND sold < TIMESTAMP '2026-01-01T00:00:00Z'"),
        ("young", "price = 1 AND sold >= TIMESTAMP '2026-01-01T00:00:00Z'"),
        ("later", "price = 2 AND sold > TIMESTAMP '2026-01-01T00:00:00Z'"),
        ("latest", "price = 2 AND sold > TIMESTAMP '2026-01-02T00:00:00Z'"),
        ("between", "price = 2 AND sold = TIMESTAMP '2026-01-01T00:00:00Z'"),
        ("new", "new AND price > 9"),
        ("used", "NOT new AND price > 9"),
    ):
        answer = overlay.feed("b0", {"op": "subscribe", "id": name, "expression": text})
        assert not isinstance(answer, Exception)
    texts = announced_texts(overlay)
    assert sorted(texts.values()) == [
        "ST_Within(loc, ST_MakeEnvelope(0, 0, 2, 1))",
        "price = 1 AND sold IS NOT NULL",
        "price = 2 AND sold >= TIMESTAMP '2026-01-01T00:00:00+00:00'",
        "price > 9 AND new IS NOT NULL",
    ]
    overlay.check()
    for name in stores:
        overlay.restart(name)
    overlay.run()
    overlay.check()
    assert sorted(announced_texts(overlay).values()) == sorted(texts.values())
    overlay.close()


def test_a_step_is_the_limit_of_what_is_subtracted():
    for policy, expected in (("subsumption", 2), ("subsumption steps=1", 3)):
        overlay = row_of(2, policy)
        overlay.feed("b0", wish("low", "price < 5 AND stock > 1"))
        overlay.feed("b0", wish("high", "price > 3 AND stock > 0"))
        overlay.feed("b0", wish("both", "price BETWEEN 2 AND 7 AND stock > 2"))
        assert counts(overlay)["subscribe"] == expected


def drawn_wish(draw, name):
    low, stock = draw.randrange(6), draw.randrange(3)
    text = draw.choice(
        (
            f"price BETWEEN {low} AND {low + draw.randrange(3)} AND stock = {stock}",
            f"price >= {low} AND stock BETWEEN {stock} AND {stock + 1}",
            f"price < {low} AND stock = {stock}",
            f"price = {low} OR stock = {stock}",
            f"price = {low}",
        )
    )
    return wish(name, text)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_announced_matches_exactly_what_is_wanted_after_every_message(seed):
    """Of one policy: whatever came and went, and in whatever order its messages are read."""
    draw = random.Random(seed)
    schema = Schema.declare(SCHEMA)
    policy = policy_of("subsumption")(schema, None)
    events = [
        Event("e", prices(**given))
        for price in (None, *range(9))
        for stock in (None, *range(5))
        for given in ({k: v for k, v in (("price", price), ("stock", stock)) if v is not None},)
    ]
    held = {}  # what the neighbour holds

    def wanted(subscriptions):
        wanting = list(subscriptions)
        return {
            number
            for number, one in enumerate(events)
            if any(evaluate(sub.expression, one).truth for sub in wanting)
        }

    def read(messages, settled):
        for message in messages:
            match message:
                case Subscribe(subscription):
                    held[subscription.id] = subscription
                case Unsubscribe(name):
                    del held[name]
                case Move():
                    raise AssertionError("nobody has moved")
            assert wanted(held.values()) >= settled, "between two messages something is missing"

    for _ in range(60):
        before = wanted(one.subscription for one in policy.interests.values())
        names = draw.sample("abcdefghij", draw.choice((1, 1, 1, 3)))
        known = [name for name in names if name in policy.interests]
        if known and draw.random() < 0.5:
            messages = policy.withdraw(known[0], 0)
        else:
            names = names if not known else known[:1]
            drawn = [Interest(one, drawn_wish(draw, one).subscription) for one in names]
            messages = policy.announce(InterestTable(drawn, schema, None), 0)
        now = wanted(one.subscription for one in policy.interests.values())
        read(messages, before & now)
        assert wanted(held.values()) == now, "no more and no less"
        policy.check()
    assert len(held) <= len(policy.interests)
