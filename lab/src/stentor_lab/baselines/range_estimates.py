"""About how many ranges a box has: what decides whether projection pays.

Paper: MICS, section 3.3, Equations 1 to 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def surface(extents: Sequence[float]) -> float:
    """The surface of a box with sides of so many cells (Equation 2).

    >>> surface([3, 4])
    14.0
    """
    sides = np.asarray(extents, np.float64)
    return 2.0 * sum(float(np.prod(np.delete(sides, side))) for side in range(len(sides)))


def expected_ranges(extents: Sequence[float]) -> float:
    """About how many ranges a box with sides of so many cells has (Equations 1 and 3).

    The limit of the average over all places for ever finer cells; at least 1.

    >>> expected_ranges([3, 4]), expected_ranges([16, 16, 16, 16])
    (3.5, 4096.0)
    """
    return max(1.0, surface(extents) / (2.0 * len(extents)))


def affordable_dimensions(extents: Sequence[float], most_ranges: float) -> int:
    """How many of the first dimensions can be kept so that a box has at most *most_ranges*.

    Where that is fewer than there are, projection onto those pays (section 5). At least 1.

    >>> affordable_dimensions([4, 4, 4, 4, 4, 4, 4], most_ranges=16)
    3
    """
    kept = len(extents)
    while kept > 1 and expected_ranges(extents[:kept]) > most_ranges:
        kept -= 1
    return kept
