"""What brokers learn of attributes: it is kept, it travels, and conflicts are told."""

from itertools import pairwise

import pytest

from stentor.broker import Broker, Dimension, Overlay, Space, Store
from stentor.broker.interest import CLIENT
from stentor.broker.messages import Learned
from stentor.errors import SettingsError, StentorError, StoreError, TypeConflictError
from stentor.model import Kind, Schema
from stentor.wire.records import record_from_dict
from tests.support.broker_records import POLICIES, SECOND

#: By kind: a value as JSON has it, and an expression that it satisfies.
OF_KINDS = {
    "number": (7.5, "a > 7"),
    "string": ("x", "a = 'x'"),
    "boolean": (True, "a = TRUE"),
    "timestamp": ("2026-03-01T00:00:00+00:00", "a > TIMESTAMP '2026-01-01'"),
    "point": ([1.0, 2.0], "ST_DWithin(a, ST_Point(1.0, 2.0), 10)"),
    "range": ({"low": 1, "high": 5}, "a > 2"),
    "range of time": (
        {"low": "2026-03-01T00:00:00+00:00", "high": "2026-04-01T00:00:00+00:00"},
        "a > TIMESTAMP '2026-03-15'",
    ),
    "text": ("two words", "has_all(a, 'words')"),
    "text that reads as a timestamp": ("2026-03-01T00:00:00+00:00", "a LIKE '2026%'"),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("policy", ["covering", "mics"])
@pytest.mark.parametrize("kind", OF_KINDS)
def test_an_overlay_that_has_learned_a_kind_is_opened_again(tmp_path, kind, policy, weighted):
    value, text = OF_KINDS[kind]
    files = {name: tmp_path / name for name in ("b0", "b1")}
    space = Space((Dimension("b", 0, 9),), bits=2)

    def opened():
        return Overlay(files, [("b0", "b1")], policy=policy, space=space, stores=files)

    overlay = opened()
    if weighted:  # then the name is known before its kind is
        first = {"op": "publish", "id": "w", "b": 1, "weights": {"a": 2}, "until": 90, "time": 0}
        assert overlay.feed("b1", first) == []
        overlay.close()
        overlay = opened()
    overlay.feed("b0", {"op": "subscribe", "id": "ana", "expression": text, "time": 0})
    assert overlay.feed("b1", {"op": "publish", "id": "e", "a": value, "until": 60}) == ["ana"]
    for number in range(2):
        overlay.acknowledge()
        overlay.close()
        overlay = opened()
        assert overlay.run() == []
        overlay.check()
        event = {"op": "publish", "id": f"e {number}", "a": value, "until": 60}
        assert overlay.feed("b1", event) == ["ana", "ben 0"][: number + 1]
        wanted = {"op": "subscribe", "id": f"ben {number}", "expression": text}
        assert overlay.feed("b1", wanted).added == ["e", "e 0", "e 1"][: number + 2]
    assert Broker("b0", policy="none", store=Store(files["b0"])).schema.kind("a") == (
        overlay.schema.kind("a")
    )


class Pair:
    """Two brokers, or more in a row, each with a schema of its own, and messages between them."""

    def __init__(self, count=2, policy="none", space=None):
        names = [f"b{number}" for number in range(count)]
        self.brokers = {name: Broker(name, policy=policy, space=space) for name in names}
        self.waiting, self.answers, self.deliveries = [], {name: [] for name in names}, []
        self.links = list(pairwise(names))
        for one, other in self.links:
            self.brokers[one].add_neighbour(other)
            self.brokers[other].add_neighbour(one)

    def connect(self):
        for one, other in self.links:
            for sender, receiver in ((one, other), (other, one)):
                self._send(sender, self.brokers[sender].connect(receiver))
        self.carry()
        return self

    def feed(self, broker, **record):
        read = record_from_dict({"time": 0, **record}, self.brokers[broker].schema)
        outcome = self.brokers[broker].receive(CLIENT, [read])
        self._take(broker, outcome)
        self.carry()
        return outcome.answers[0]

    def carry(self):
        while self.waiting:
            sender, receiver, message = self.waiting.pop(0)
            outcome = self.brokers[receiver].receive(sender, [message])
            self.answers[receiver] += [
                one for one in outcome.answers if isinstance(one, StentorError)
            ]
            self._take(receiver, outcome)

    def _take(self, broker, outcome):
        self.deliveries += [(one.subscription, one.event) for one in outcome.deliveries]
        self._send(broker, outcome.sent)

    def _send(self, sender, sent):
        self.waiting += [(sender, receiver, message) for receiver, message in sent]


@pytest.mark.parametrize("policy", POLICIES)
def test_what_one_broker_learns_all_learn_whatever_its_policy_hides(policy):
    """The text of b2's event is a timestamp: `narrow`, which b2 is never told, says so."""
    space = Space((Dimension("price", 0, 20),), bits=3)
    pair = Pair(3, policy, space).connect()
    pair.feed("b0", op="subscribe", id="wide", expression="price < 9")
    pair.feed(
        "b0",
        op="subscribe",
        id="narrow",
        expression="price < 5 AND sold > TIMESTAMP '2026-01-01'",
    )
    assert pair.brokers["b2"].schema.kind("sold") is Kind.TIMESTAMP
    pair.feed("b2", op="publish", id="e", price=3, sold="2026-03-01")
    assert sorted(pair.deliveries) == [("narrow", "e"), ("wide", "e")]
    assert not any(pair.answers.values())
    late = Broker("b3", space=space)
    late.add_neighbour("b2")
    pair.brokers["b2"].add_neighbour("b3")
    late.connect("b2")
    late.receive("b2", [sent.message for sent in pair.brokers["b2"].connect("b3")])
    assert late.schema.kind("sold") is Kind.TIMESTAMP, "a greeting has all"


def test_brokers_that_learned_different_kinds_both_say_so_and_go_on():
    pair = Pair()
    pair.feed("b0", op="subscribe", id="ana", expression="a > 3")
    pair.feed("b0", op="subscribe", id="ben", expression="b > 3")
    pair.feed("b1", op="publish", id="e0", a="text")
    for _ in range(2):  # it is told with each greeting
        pair.answers = {name: [] for name in pair.brokers}
        pair.connect()
        for here, there in (("b0", "b1"), ("b1", "b0")):
            conflict = pair.answers[here][0]
            assert isinstance(conflict, TypeConflictError)
            assert conflict == pair.brokers[here].conflicts[there, "a"]
            for part in (here, there, "'a'", "a number in subscription 'ana'", "a string in event"):
                assert part in str(conflict), conflict
    pair.deliveries.clear()
    pair.feed("b1", op="publish", id="e1", b=5)
    assert pair.deliveries == [("ben", "e1")], "what is not in conflict passes"
    pair.feed("b1", op="publish", id="e2", a="text", b=5)
    assert pair.deliveries == [("ben", "e1")]
    assert "'a'" in str(pair.answers["b0"][-1]), "and what is, is refused with its reason"
    for broker in pair.brokers.values():
        broker.check()


def test_what_is_learned_on_both_sides_at_once_is_told():
    pair = Pair(3).connect()
    one, other = pair.brokers["b0"], pair.brokers["b2"]
    for broker, value in ((one, 5), (other, "five")):
        raw = {"op": "publish", "id": broker.name, "a": value, "time": 0}
        outcome = broker.receive(CLIENT, [record_from_dict(raw, broker.schema)])
        assert [type(sent.message) for sent in outcome.sent] == [Learned]
        pair._take(broker.name, outcome)
    pair.carry()
    told = [error for errors in pair.answers.values() for error in errors]
    assert {type(error) for error in told} == {TypeConflictError}
    assert pair.brokers["b1"].schema.kind("a") is Kind.NUMBER, "it came first"
    assert [*pair.brokers["b1"].conflicts] == [("b2", "a")]
    assert [*pair.brokers["b2"].conflicts] == [("b1", "a")]
    text = str(pair.brokers["b2"].conflicts["b1", "a"])
    assert "event 'b0' at the broker 'b0'" in text
    assert "event 'b2' at the broker 'b2'" in text


def learned(path, name, value):
    broker = Broker(name, store=Store(path))
    raw = {"op": "publish", "id": f"of {name}", "a": value, "b": 3, "until": 9, "time": 0}
    broker.receive(CLIENT, [record_from_dict(raw, broker.schema)])
    broker.close()


def test_stores_of_an_overlay_that_disagree_are_told_and_left_as_they_are(tmp_path):
    files = {name: tmp_path / name for name in ("b0", "b1", "b2")}
    for name, value in (("b0", 5), ("b1", "five"), ("b2", True)):
        learned(files[name], name, value)
    before = {name: path.read_bytes() for name, path in files.items()}
    told = set()
    for order in (files, dict(reversed(files.items()))):
        with pytest.raises(SettingsError) as caught:
            Overlay(order, [("b0", "b1"), ("b1", "b2")], stores=order)
        told.add(str(caught.value))
    [text] = told
    for part in ("'b0' and 'b1'", "'b0' and 'b2'", "number", "string", "boolean", "'of b1'"):
        assert part in text
    assert {name: path.read_bytes() for name, path in files.items()} == before
    schema = Schema.declare({"a": "number", "b": "number"})
    with pytest.raises(StoreError, match=r"row 1 of events .*'a'"):
        Overlay(files, [], schema=schema, stores=files)
    schema = Schema.declare({"b": "number"})  # then nobody looks at `a`
    overlay = Overlay(files, [("b0", "b1"), ("b1", "b2")], schema=schema, stores=files)
    found = overlay.feed("b0", {"op": "subscribe", "id": "ana", "expression": "b > 1"})
    assert found.added == ["of b0", "of b1", "of b2"]
    overlay.check()


def test_a_schema_that_was_declared_is_declared_again():
    stores = {"b0": Store(), "b1": Store()}
    schema = Schema.declare({"price": "number"})
    Overlay(stores, [("b0", "b1")], schema=schema, stores=stores).feed(
        "b0", {"op": "publish", "id": "e", "price": 3, "until": 9 * SECOND, "time": 0}
    )
    stores["b1"].keep_fact("schema", schema.to_dict())
    again = Overlay(stores, [("b0", "b1")], stores=stores)
    assert again.schema.to_dict() == schema.to_dict()
