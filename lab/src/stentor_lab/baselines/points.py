"""Intervals as points: larger in every dimension means wider on every side."""

from __future__ import annotations

import numpy as np

from stentor._jit import kernel_inline
from stentor.encoding.columns import Float64


def points_of(low: Float64, high: Float64) -> Float64:
    """The points of rectangles given by their sides, (rectangles, attributes) each.

    >>> points_of(np.array([[1.0, 0.0]]), np.array([[2.0, np.inf]]))
    array([[-1.,  2., -0., inf]])
    """
    return np.ascontiguousarray(np.stack((-low, high), axis=2).reshape(len(low), -1))


@kernel_inline
def dominates(points: Float64, dims: int, one: int, other: int) -> bool:
    """Whether point *one* is at least as large as point *other* everywhere."""
    left = points[one * dims : one * dims + dims]
    right = points[other * dims : other * dims + dims]
    for dim in range(dims):
        if left[dim] < right[dim]:
            return False
    return True


@kernel_inline
def goes_before(points: Float64, dims: int, one: int, other: int) -> bool:
    """Whether *one*, which dominates *other*, may cover it: of equal ones only the older may."""
    return one < other or not dominates(points, dims, other, one)
