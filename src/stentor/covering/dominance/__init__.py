"""Which points dominate a point: the rectangle containment problem after its reduction.

A subscription of intervals is the point (−low, high, −low, high, …); it covers another where its
point is at least as large in every dimension (paper: Indexing for Subscription Covering, IV.A).

    forest, tree_changes, tree_search    bucket k-d trees: a leaf is compared by vectors;
                                         one that never splits is the vector scan
    curve, curve_changes, curve_search   sorted Z-keys in blocks; keys.py defines them
    rows                                 one point after the other: the honest baseline
"""
