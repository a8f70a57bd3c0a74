"""The IQ-Tree: a quadtree whose cells have inverted lists.

Paper: Chen, Cong, Cao 2013 (AP-Tree, sections 3.1 and 5.1.1). Its cost model weighs what a copy
costs against the messages that a cell gets; ours does so cell by cell, from the root down.
"""

from __future__ import annotations

from stentor_lab.baselines.spatial_rival import SpatialLayout, SpatialRival


class IqTree(SpatialRival):
    """The IQ-Tree: a quadtree whose cells have inverted lists."""

    name = "iq_tree"
    layout = SpatialLayout(keywords_first=False, copy=0.0005)
