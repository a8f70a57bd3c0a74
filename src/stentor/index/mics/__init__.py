"""MICS: subscriptions as ranges on a Hilbert curve, merged into one ordered table.

A box of cells is a few ranges of numbers, a publication one number. Ranges of all subscriptions are
merged: what is inside one range of the table is covered, by one subscription or by several, so that
covering, subsumption, merging and matching are each one look-up.

    s ─▶ [32,35] [45,46] [50,55]        the ranges of a subscription
    table    ├──┤      ├──────────┤     disjoint, ascending          28 ✗   52 ✓
    announced ├──┤     ├─┤ ├──────┤     announced to the listener
    passive    ├┤                       covered when it came: announced when that is removed

Paper: H. Jafarpour, S. Mehrotra, N. Venkatasubramanian, M. Montanari: MICS: An Efficient Content
Space Representation Model for Publish/Subscribe Systems (2009).
"""

from stentor.index.mics.index import Mics
from stentor.index.mics.range_table.table import Coverage, RangeTable, Withdrawal, covers

__all__ = ["Coverage", "Mics", "RangeTable", "Withdrawal", "covers"]
