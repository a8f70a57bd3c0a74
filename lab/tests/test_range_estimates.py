"""Equations 1 to 3 of the MICS paper, beside what a curve gives."""

import numpy as np
import pytest

from stentor.encoding.hilbert import HilbertCurve
from stentor_lab.baselines.range_estimates import affordable_dimensions, expected_ranges, surface


@pytest.mark.parametrize(("sides", "dimensions"), [(4, 2), (16, 2), (4, 3), (8, 3)])
def test_equation_3_is_near_the_average_number_of_ranges(sides, dimensions):
    curve = HilbertCurve(dimensions, 8)
    low = np.random.default_rng(1).integers(0, 256 - sides, (4000, dimensions))
    found = np.diff(curve.ranges(low, low + sides - 1).starts).mean()
    assert found == pytest.approx(expected_ranges([sides] * dimensions), rel=0.05)


def test_equation_2_is_the_surface():
    assert surface([2, 3, 4]) == 2 * (2 * 3 + 3 * 4 + 2 * 4)
    assert expected_ranges([2, 3, 4]) == surface([2, 3, 4]) / 6


def test_projection_keeps_as_many_dimensions_as_the_ranges_allow():
    assert affordable_dimensions([8, 8, 8], 64) == 3
    assert affordable_dimensions([8, 8, 8], 63) == 2
    assert affordable_dimensions([8, 8, 8], 1) == 1
