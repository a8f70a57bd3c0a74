"""The MO-Tree: events and subscriptions in one structure, matched in both directions.

    layer      an indexing attribute, cut into cells: overlapping ones in several levels for the
               intervals of subscriptions, disjoint ones and a null cell for the values of events
    bucket     where a cell of each layer crosses: items of one kind, next to each other
      granule  eight items: the first four dimensions, a byte for each item's low and high
      card     one item: 24 more dimensions, a signature, who it is; a cache line
    event      → the cells that it stabs in each layer → their buckets → granules → cards → the
               exact verifier
    subscription → the cells of events that it meets → the same

An item is in one bucket; nothing is ever split or merged. Each alternative of a
subscription is an item.

Paper: MO-Tree: An Efficient Forwarding Engine for Spatiotemporal-aware Pub/Sub Systems.
"""

from stentor.index.mo_tree.index import MoTree

__all__ = ["MoTree"]
