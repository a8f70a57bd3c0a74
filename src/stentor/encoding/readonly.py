"""Read-only views: the one form in which kernels take what they read.

Whether an array can be written is part of its type, so a kernel that met both forms would be
compiled twice.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Dtype = TypeVar("Dtype", bound=np.generic)
Bundle = TypeVar("Bundle", bound=tuple[Any, ...])


def read_only(array: npt.NDArray[Dtype]) -> npt.NDArray[Dtype]:
    """A plain read-only view of *array*."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def all_read_only(bundle: Bundle) -> Bundle:
    """A named tuple of read-only views of the arrays of *bundle*."""
    return type(bundle)(*map(read_only, bundle))
