"""Which points dominate a point: the rectangle containment problem after its reduction (paper: IV).

Intervals become points: larger in every dimension means wider on every side. Bucket k-d trees, any
number of them in one set of arrays.
"""

from __future__ import annotations
