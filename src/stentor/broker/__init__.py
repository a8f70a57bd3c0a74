"""Brokers: subscriptions spread no further than they must, events come to all who want them.

    messages   what travels: records, ranges, greetings; what clients are given
    interest   what a link knows of somebody's wish: a subscription, or ranges of a space
    policies   what a link is told: everything, what covers the rest, or merged ranges
    tables     who wants what at a broker, and its live events
    telling    how what one link says is handed on to the others
    neighbours what neighbours say: their tables change, and it is handed on
    routing    how events are handed on to clients and over links
    broker     one broker, a plain object: message in, messages out
    store      a broker's state in SQLite
    overlay    a tree of brokers in one process, with counts of what each link carried

Paper: section 2 of the MICS paper; the covering paper's
introduction (docs/brokers.md).
"""

from stentor.broker.broker import Broker
from stentor.broker.messages import Delivery, Greeting, Sent
from stentor.broker.overlay import Overlay
from stentor.broker.policies import Policy, policy_of
from stentor.broker.store import Store
from stentor.index.mics.space import Dimension, Space

__all__ = [
    "Broker",
    "Delivery",
    "Dimension",
    "Greeting",
    "Overlay",
    "Policy",
    "Sent",
    "Space",
    "Store",
    "policy_of",
]
