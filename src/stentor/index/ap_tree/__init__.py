"""The AP-Tree and the AP+-Tree: subscriptions by keywords and by place, whichever tells more.

    root    k-node   cuts of ordered keywords   │ new │ dummy: no keyword left
    cut   → s-node   cells of an uneven grid          │ dummy: contains the region
    cell  → leaf     slots: signature, box, alternative; live messages that come this way

    message → each cut of its keywords, its cell, and the dummies, down to leaves
            → what signature and box leave there → the exact verifier

A cost model decides for each node how it is partitioned, and what moves counts in it. Entries come
and go in their leaves; leaves are split and nodes collapsed; a node whose entries are spread
otherwise than it was built for is built anew.

Paper: Wang, Zhang, Zhang, Lin, Huang: AP-Tree (ICDE 2015) and its extension to moving
subscriptions. docs/papers/ap_tree.md has the symbols, and where this differs.
"""

from stentor.index.ap_tree.index import ApTree

__all__ = ["ApTree"]
