"""The RQ-Tree: an inverted list whose lists have quadtrees.

Paper: AP-Tree, section 5.1.1: the keyword-prioritised variant of the IQ-Tree. The cost model counts
how often the keyword comes, too, so that only long lists are cut into cells.
"""

from __future__ import annotations

from stentor_lab.baselines.spatial_rival import SpatialLayout, SpatialRival


class RqTree(SpatialRival):
    """The RQ-Tree: an inverted list whose lists have quadtrees."""

    name = "rq_tree"
    layout = SpatialLayout(keywords_first=True, copy=0.000005)
