"""SS-Index: a grid whose cells have inverted lists.

Paper: AP-Tree, section 5.2.1: 40 cells a side, for subscriptions and for messages.
"""

from __future__ import annotations

from stentor_lab.baselines.spatial_rival import SpatialLayout, SpatialRival


class SsIndex(SpatialRival):
    """SS-Index: a grid whose cells have inverted lists."""

    name = "ss_index"
    layout = SpatialLayout(keywords_first=False, grid=40)
