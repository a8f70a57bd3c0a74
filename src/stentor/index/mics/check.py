"""The invariants of postings, asserted in plain Python: for tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stentor.encoding.columns import Int64
from stentor.encoding.hilbert.ranges import Ranges
from stentor.index.mics.postings import CLASSES, MOST_KEY_BITS, Postings
from stentor.index.mics.range_table.check import listed, pairs


def check_postings(
    postings: Postings, current: Int64, ranges_of: Callable[[Int64], Ranges]
) -> None:
    """Assert that *postings* hold the ranges of the *current* owners, in their classes.

    They may hold those of others too: a layer over an index hides rows without removing them.
    """
    low, high, owner = listed(postings.pieces)
    mask = np.uint64((1 << MOST_KEY_BITS) - 1)
    kind = low >> np.uint64(MOST_KEY_BITS)
    assert np.array_equal(np.bincount(kind.astype(np.int64), minlength=CLASSES), postings.classes)
    assert (kind == high >> np.uint64(MOST_KEY_BITS)).all()
    assert [int(length).bit_length() for length in (high - low).tolist()] == kind.tolist()
    owners = np.unique(owner)
    assert np.isin(current, owners).all()
    ranges = ranges_of(owners)
    expected = zip(
        np.repeat(owners, np.diff(ranges.starts)).tolist(),
        pairs(*ranges[1:]),
        strict=True,
    )
    assert sorted(zip(owner.tolist(), pairs(low & mask, high & mask), strict=True)) == sorted(
        expected
    )
