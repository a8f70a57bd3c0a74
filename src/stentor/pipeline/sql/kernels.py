"""What the functions of Spark SQL share: their arguments as arrays, and their tests, compiled.

A point is what an event can have: an array of two numbers, or a struct of x and y, lon and lat,
longitude and latitude. A literal is a column too, with one value in all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from stentor._jit import inner_kernel, kernel
from stentor.encoding.columns import Float64, Int64, UInt8, read_only
from stentor.encoding.terms import TermColumns
from stentor.index.verify.circle import circle_contains
from stentor.index.verify.polygon import side_of_ring
from stentor.index.verify.scratch import same_bytes
from stentor.model import Kind
from stentor.model.geometry import BORDER, INSIDE, circle_terms
from stentor.wire.cells import read_cells

Booleans = npt.NDArray[np.bool_]
_circle_terms = inner_kernel(circle_terms)


@kernel
def rows_with_term(terms: TermColumns, hashed: np.uint64, term: UInt8, found: Booleans) -> None:
    """Whether each row of *terms* has *term*, which has the hash *hashed*."""
    for row in range(len(found)):
        found[row] = False
        for position in range(terms.start[row], terms.start[row + 1]):
            data = terms.data[terms.byte_start[position] : terms.byte_stop[position]]
            if terms.hash[position] == hashed and same_bytes(data, term):
                found[row] = True
                break


@kernel
def points_in_circles(
    x: Float64,
    y: Float64,
    centre_x: Float64,
    centre_y: Float64,
    radius: Float64,
    plane: bool,
    found: Booleans,
) -> None:
    """Whether each point is in the circle of its own row."""
    for row in range(len(found)):
        cosine, limit = _circle_terms(centre_y[row], radius[row], plane)
        found[row] = circle_contains(x[row], y[row], centre_x[row], centre_y[row], cosine, limit)


@kernel
def points_in_polygon(
    x: Float64, y: Float64, ring_x: Float64, ring_y: Float64, ring_start: Int64, found: Booleans
) -> None:
    """Whether each point is in the outer ring, which is the first, and in no hole."""
    for row in range(len(found)):
        found[row] = True
        for ring in range(len(ring_start) - 1):
            side = side_of_ring(
                x[row], y[row], ring_x, ring_y, ring_start[ring], ring_start[ring + 1]
            )
            if side == BORDER:
                break
            if (side == INSIDE) != (ring == 0):
                found[row] = False
                break


def rows_by_text(column: Any) -> Iterator[tuple[str, Booleans]]:
    """Each text of *column*, an Arrow array of strings, and the rows that have it.

    Cost: one pass for each text. A literal is one text in all rows.
    """
    for text in column.unique().drop_null().to_pylist():
        yield text, pc.equal(column, text).fill_null(False).to_numpy(zero_copy_only=False)


class Numbers(NamedTuple):
    """Numbers or points by row; a point that is none (NaN, off the globe) is not valid."""

    x: Float64
    y: Float64
    valid: Booleans


def read_numbers(column: Any, kind: Kind, plane: bool) -> Numbers:
    """The points (or, of that *kind*, the numbers) of *column*."""
    cells = read_cells(column, field="of a place", kind=kind, plane=plane)
    valid = cells.valid.copy()
    valid[list(cells.reasons)] = False
    if cells.kind not in (kind, None):
        valid[:] = False
    if not valid.any():  # its values may be strings
        nothing = read_only(np.zeros(len(valid)))
        return Numbers(nothing, nothing, valid)
    x, y = (read_only(np.ascontiguousarray(numbers)) for numbers in (cells.low, cells.high))
    return Numbers(x, y, valid)
