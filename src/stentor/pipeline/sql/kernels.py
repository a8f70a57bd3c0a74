"""What the functions of Spark SQL test of every row of a batch: terms and places, compiled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stentor._jit import kernel, kernel_part
from stentor.encoding.columns import Float64, Int64, UInt8
from stentor.encoding.terms import TermColumns
from stentor.index.verify.place import circle_contains, side_of_ring
from stentor.index.verify.text import same_bytes
from stentor.model.geometry import BORDER, INSIDE, circle_terms

Booleans = npt.NDArray[np.bool_]

_circle_terms = kernel_part(circle_terms)


@kernel
def rows_with_term(terms: TermColumns, hashed: np.uint64, term: UInt8, held: Booleans) -> None:
    """Whether each row of *terms* has *term*, which has the hash *hashed*."""
    for row in range(len(held)):
        held[row] = False
        for place in range(terms.start[row], terms.start[row + 1]):
            data = terms.data[terms.byte_start[place] : terms.byte_stop[place]]
            if terms.hash[place] == hashed and same_bytes(data, term):
                held[row] = True
                break


@kernel
def points_in_circles(
    x: Float64,
    y: Float64,
    centre_x: Float64,
    centre_y: Float64,
    radius: Float64,
    plane: bool,
    held: Booleans,
) -> None:
    """Whether each point is in the circle of its own row."""
    for row in range(len(held)):
        cosine, limit = _circle_terms(centre_y[row], radius[row], plane)
        held[row] = circle_contains(x[row], y[row], centre_x[row], centre_y[row], cosine, limit)


@kernel
def points_in_polygon(
    x: Float64, y: Float64, ring_x: Float64, ring_y: Float64, ring_start: Int64, held: Booleans
) -> None:
    """Whether each point is in the outer ring, which is the first, and in no hole."""
    for row in range(len(held)):
        held[row] = True
        for ring in range(len(ring_start) - 1):
            side = side_of_ring(
                x[row], y[row], ring_x, ring_y, ring_start[ring], ring_start[ring + 1]
            )
            if side == BORDER:
                break
            if (side == INSIDE) != (ring == 0):
                held[row] = False
                break
