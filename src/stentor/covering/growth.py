"""Arrays that grow while what they hold stays in place."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = TypeVar("Array", bound=npt.NDArray[Any])


def longer(array: Array, size: int, fill: float = 0) -> Array:
    """*array* with room for *size* values and more, the new ones *fill*; itself where it has it."""
    if len(array) >= size:
        return array
    room: Any = np.full(max(size, 2 * len(array), 16), fill, array.dtype)
    room[: len(array)] = array
    return room  # type: ignore[no-any-return]
