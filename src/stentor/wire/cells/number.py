"""Columns of numbers and booleans → doubles; an integer that may not be exact is in doubt."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stentor.model import Kind
from stentor.model.values.number import EXACT
from stentor.wire.cells.layout import Booleans, Cells, fixed_width, validity


def integer_cells(array: Any) -> Cells:
    """The cells of an Arrow array of integers."""
    values = fixed_width(array, array.type.to_pandas_dtype())
    doubles = values.astype(np.float64)
    valid = validity(array)
    doubt = None if are_exact(values) else rounded(values, doubles) & valid
    return Cells(Kind.NUMBER, valid, doubles, doubles, doubtful=doubt)


def float_cells(array: Any) -> Cells:
    """The cells of an Arrow array of floats: NaN is missing, −0.0 is 0.0."""
    values = fixed_width(array, array.type.to_pandas_dtype())
    doubles = values.astype(np.float64, copy=False) + 0.0
    valid = validity(array)
    is_nan = np.isnan(doubles)
    if is_nan.any():
        valid &= ~is_nan
    return Cells(Kind.NUMBER, valid, doubles, doubles)


def boolean_cells(array: Any) -> Cells:
    """The cells of an Arrow array of booleans: 0 and 1."""
    doubles = fixed_width(array.cast(pa.uint8()), np.uint8).astype(np.float64)
    return Cells(Kind.BOOLEAN, validity(array), doubles, doubles)


def decimal_cells(array: Any) -> Cells:
    """The cells of an Arrow array of decimals: the nearest doubles; integers must be exact."""
    # Through text, because Arrow's own conversion does not always find the nearest double.
    parsed = array.cast(pa.string()).cast(pa.float64())
    doubles = fixed_width(parsed, np.float64) + 0.0
    valid = validity(array)
    return Cells(Kind.NUMBER, valid, doubles, doubles, doubtful=valid & (np.abs(doubles) >= EXACT))


def are_exact(integers: npt.NDArray[Any]) -> bool:
    """Whether all *integers* are surely doubles."""
    if integers.dtype.itemsize < 8 or not len(integers):
        return True
    return bool(integers.min() >= -EXACT and integers.max() <= EXACT)


def rounded(integers: npt.NDArray[Any], doubles: npt.NDArray[np.float64]) -> Booleans:
    """Which of the *doubles* are not the *integers* that they were made of."""
    # The largest integers round up to a double that no longer fits the integers' own type.
    too_large = doubles >= 2.0 ** (63 if integers.dtype.kind == "i" else 64)
    back = np.where(too_large, 0.0, doubles).astype(integers.dtype)
    return np.asarray(too_large | (back != integers))
