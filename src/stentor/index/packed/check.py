"""The invariants of a packed index, asserted in plain NumPy: for tests."""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import Int64, SubscriptionColumns
from stentor.index.packed.layout import PackedSegment
from stentor.index.packed.match import Pending


def check_packed(
    columns: SubscriptionColumns,
    segments: tuple[PackedSegment, ...],
    pending: Pending,
    current: Int64,
) -> None:
    """Assert that each of the *current* alternatives is pending or in a segment, as it is now.

    What is in several locations counts in the latest: it moved since it came to the others.
    """
    later = pending.alternative
    assert len(np.unique(later)) == len(later)
    for segment in reversed(segments):
        assert (np.diff(segment.alternatives) > 0).all(), "ascending, each in one home"
        for home, held in zip(segment.homes, segment.held, strict=True):
            assert home.count <= len(held)
            home.check(columns, np.setdiff1d(held, later))
        later = np.union1d(later, segment.alternatives)
    assert np.isin(current, later).all(), "no current alternative is missing"
