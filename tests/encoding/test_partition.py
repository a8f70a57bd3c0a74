"""Values to cells: domains that can be cut."""

import numpy as np
import pytest

from stentor.encoding.partition import Partition
from stentor.errors import SettingsError


@pytest.mark.parametrize(
    ("low", "high"), [(-np.inf, 0.0), (0.0, np.inf), (np.nan, 1.0), (2.0, 2.0)]
)
def test_a_domain_without_ends_or_width_is_refused(low, high):
    with pytest.raises(SettingsError, match="both finite"):
        Partition.equal([0.0, low], [1.0, high], bits=4)


def test_the_widest_domain_is_cut_into_equal_cells():
    most = np.finfo(np.float64).max
    cells = Partition.equal([-most], [most], bits=3)
    values = np.array([[-np.inf], [-most], [-1.0], [1.0], [most], [np.inf], [np.nan]])
    assert cells.coordinates(values).ravel().tolist() == [1, 1, 4, 4, 7, 7, 0]
