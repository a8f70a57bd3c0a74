"""Slices sorted in place by kernels, which cannot allocate."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from stentor._jit import kernel_inline


@kernel_inline
def sort_slice(values: npt.NDArray[Any], start: int, stop: int) -> None:
    """Put values[start:stop] in ascending order: Shell's way, so that none takes for ever.

    Most slices are short, or in order already.
    """
    gap = 1
    while 3 * gap + 1 < stop - start:
        gap = 3 * gap + 1
    while gap > 0:
        for place in range(start + gap, stop):
            moving = values[place]
            hole = place
            while hole >= start + gap and values[hole - gap] > moving:
                values[hole] = values[hole - gap]
                hole -= gap
            values[hole] = moving
        gap //= 3
