"""Brokers: interests are announced no further than they must be, events come to all who want them.

    messages       what travels, as objects and as JSON; what is refused; what clients are given
    interest       what a link knows of somebody's interest: a subscription, or ranges of a space
    learning       what brokers learn of attributes, and where they disagree
    policies       what a link is announced: everything, what covers the rest, or merged ranges
    subsumption    a policy more: what others do not hold together, merged where it can be
    announcements  a link, and how what one link says is announced over the others
    tables         who wants what at a broker, its live events, and events on their way
    broker         one broker, a plain object: message in, messages out
    store          a broker's state in SQLite, a file that `engine/database` locks
    overlay        a tree of brokers in one process, with counts of what each link carried

Paper: section 2 of the MICS paper; the covering paper's
introduction (docs/brokers.md).
"""

from stentor.broker.broker import Broker
from stentor.broker.messages import (
    AnnounceRanges,
    BrokerOutput,
    Delivery,
    Learned,
    LinkGreeting,
    Outgoing,
)
from stentor.broker.overlay import Overlay
from stentor.broker.policies import Policy, policy_of
from stentor.broker.store import Store
from stentor.index.mics.space import Dimension, Space

#: Names of version 0.1.
Greeting, Sent = LinkGreeting, Outgoing

__all__ = [
    "AnnounceRanges",
    "Broker",
    "BrokerOutput",
    "Delivery",
    "Dimension",
    "Greeting",
    "Learned",
    "LinkGreeting",
    "Outgoing",
    "Overlay",
    "Policy",
    "Sent",
    "Space",
    "Store",
    "policy_of",
]
