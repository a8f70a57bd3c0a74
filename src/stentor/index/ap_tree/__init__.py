"""The AP-Tree and the AP+-Tree: subscriptions by keywords and by location.

    root    k-node   cuts of ordered keywords   │ new │ dummy: no keyword left
    cut   → s-node   cells of an uneven grid          │ dummy: contains the region
    cell  → leaf     slots: signature, box, alternative; live events that reach the leaf

    event → each cut of its keywords, its cell, and the dummies, down to leaves
          → candidates: what signature and box do not rule out → the exact verifier

A cost model, which includes the cost of moves, decides how each node is partitioned. Entries are
inserted into and removed from leaves; leaves are split and nodes collapsed; a node whose entries
are distributed otherwise than when it was built is rebuilt.

Paper: Wang, Zhang, Zhang, Lin, Huang: AP-Tree (ICDE 2015) and its extension to moving
subscriptions. docs/papers/ap_tree.md has the symbols, and where this differs.
"""

from stentor.index.ap_tree.index import ApTree

__all__ = ["ApTree"]
