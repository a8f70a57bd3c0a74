"""Records, brokers in a row, and the space that broker tests share."""

from stentor.broker import Dimension, Overlay, Space
from stentor.language.parser import parse
from stentor.model import Constant, Event, Kind, Schema, Subscription
from stentor.model.record import Publish, Subscribe

SECOND = 1_000_000
SCHEMA = {"price": "number", "stock": "number", "loc": "point"}

POLICIES = (
    "none",
    "covering",
    "covering k=3",
    "poset",
    "subsumption",
    "subsumption steps=2",
    "mics",
    "mics gap=9",
    "mics ranges=2",
)
SPACE = Space(
    (
        Dimension("price", 0, 20),
        Dimension("loc", 0, 0.08, "x"),
        Dimension("loc", 0, 0.08, "y"),
    ),
    bits=3,
)


def prices(**attributes):
    return {name: Constant(Kind.NUMBER, float(one)) for name, one in attributes.items()}


def event(id, *, until=None, **attributes):
    return Publish(Event(id, prices(**attributes), until=until), 0)


def wish(id, text, *, at=None, until=None, time=0):
    schema = Schema.declare(SCHEMA)
    return Subscribe(Subscription(id, parse(text, schema=schema), at, until), time)


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
