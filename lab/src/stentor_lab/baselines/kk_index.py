"""KK-Index: an inverted list whose lists have grids.

Paper: AP-Tree, section 5.2.1: 40 cells a side, for subscriptions and for messages.
"""

from __future__ import annotations

from stentor_lab.baselines.spatial_rival import SpatialLayout, SpatialRival


class KkIndex(SpatialRival):
    """KK-Index: an inverted list whose lists have grids."""

    name = "kk_index"
    layout = SpatialLayout(keywords_first=True, grid=40)
