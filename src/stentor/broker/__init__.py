"""Brokers: subscriptions spread no further than they must, events come to all who want them.

    messages   what travels: records, greetings; what clients are given
    interest   a subscription as a link knows it
    policies   what a link is told: everything, or what covers the rest
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

__all__ = ["Broker", "Delivery", "Greeting", "Overlay", "Policy", "Sent", "Store", "policy_of"]
