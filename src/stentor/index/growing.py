"""Arrays that grow at the end: doubled when full, so that an appended row costs a constant."""

from __future__ import annotations

from typing import Any, Generic

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import Columns, dtypes
from stentor.encoding.ragged import OFFSETS, shifted

_SMALLEST_CAPACITY = 16


class GrowingArray:
    """An array of one dtype that rows are added to; what it shows is read-only.

    Invariant: a view that was handed out keeps its length and its address for good.
    """

    __slots__ = ("_room", "_used")

    def __init__(self, dtype: npt.DTypeLike, used: int = 0) -> None:
        self._room: npt.NDArray[Any] = np.zeros(used, dtype)
        self._used = used

    def __len__(self) -> int:
        return self._used

    @property
    def nbytes(self) -> int:
        return self._room.nbytes

    @property
    def writable(self) -> npt.NDArray[Any]:
        """The used part, to be changed in place."""
        return self._room[: self._used]

    @property
    def view(self) -> npt.NDArray[Any]:
        """The used part, read-only: what kernels take."""
        view = self._room[: self._used]
        view.flags.writeable = False
        return view

    def extend(self, values: npt.NDArray[Any] | int, count: int) -> None:
        """Add *count* *values*, or *count* times one value, at the end."""
        start = self._used
        self._used = stop = start + count
        if stop > len(self._room):
            room = np.empty(max(stop, 2 * len(self._room), _SMALLEST_CAPACITY), self._room.dtype)
            room[:start] = self._room[:start]
            self._room = room
        self._room[start:stop] = values


class GrowingColumns(Generic[Columns]):
    """Columns that other columns are added to."""

    def __init__(self, kind: type[Columns]) -> None:
        self._kind: type[Columns] = kind
        self._arrays = {
            name: GrowingArray(dtype, 1 if name in OFFSETS[kind] else 0)
            for name, dtype in dtypes(kind).items()
        }
        self._view: Columns | None = None

    def __getitem__(self, name: str) -> GrowingArray:
        return self._arrays[name]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values())

    @property
    def view(self) -> Columns:
        """All rows, sealed, without a copy; made once between two changes."""
        if self._view is None:
            self._view = self._kind(*(array.view for array in self._arrays.values()))
        return self._view

    def append(self, columns: Columns) -> None:
        """Add the rows of *columns* at the end.

        Cost: what they hold, amortised; tens of microseconds for one row.
        """
        offsets = OFFSETS[self._kind]
        sizes = {name: len(array) - (name in offsets) for name, array in self._arrays.items()}
        for name, values in shifted(columns, sizes)._asdict().items():
            self._arrays[name].extend(values, len(values))
        self._view = None
