"""The memory of structures: arrays that grow at the end.

An array is doubled when it is full, so that an appended row costs a constant; a view keeps its
address while rows are appended behind it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import Columns, dtypes
from stentor.encoding.ragged import OFFSETS, with_offsets

_SMALLEST_CAPACITY = 16
#: Bytes from which an array is large, and those that it then reserves, if they are more than twice.
LARGE, _FAR = 1 << 20, 1 << 32
Array = TypeVar("Array", bound=npt.NDArray[Any])


def spacious(count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """At least *count* zeros, and far more where zeros that are never touched cost nothing."""
    size = np.dtype(dtype).itemsize
    if count * size >= LARGE:
        with suppress(MemoryError):  # where even addresses are counted, or limited
            return np.zeros(max(2 * count, _FAR // size), dtype)
    return np.zeros(count, dtype)


def touched(array: npt.NDArray[Any], used: int) -> int:
    """The bytes in memory of a spacious *array* of which so much is *used*."""
    return array.nbytes if array.nbytes < LARGE else max(LARGE, used * array.itemsize)


class GrowingArray:
    """An array of one dtype that values are appended to; its `view` is read-only.

    Invariant: a view that was handed out keeps its length and its address for good.
    Invariant: wherever an exception interrupts `extend`, the view shows what it showed before.
    """

    __slots__ = ("_array", "_used")

    def __init__(self, dtype: npt.DTypeLike, used: int = 0) -> None:
        self._array: npt.NDArray[Any] = np.zeros(used, dtype)
        self._used = used

    def __len__(self) -> int:
        return self._used

    @property
    def nbytes(self) -> int:
        """Bytes in memory: of a large array those that were written to."""
        return touched(self._array, self._used)

    @property
    def writable(self) -> npt.NDArray[Any]:
        """The used part, to be changed in place."""
        return self._array[: self._used]

    @property
    def view(self) -> npt.NDArray[Any]:
        """The used part, read-only: what kernels take."""
        view = self._array[: self._used]
        view.flags.writeable = False
        return view

    def keep(self, values: npt.NDArray[Any]) -> None:
        """Replace the content by *values*, which nobody else writes."""
        self._array, self._used = values, len(values)

    def extend(self, values: npt.NDArray[Any] | int, count: int) -> None:
        """Add *count* *values*, or *count* times one value, at the end."""
        start = self._used
        stop = start + count
        if stop > len(self._array):
            capacity = max(stop, 2 * len(self._array), _SMALLEST_CAPACITY)
            grown = spacious(capacity, self._array.dtype)
            grown[:start] = self._array[:start]
            self._array = grown
        if count:  # what is kept may be read-only
            self._array[start:stop] = values
        self._used = stop


class GrowingColumns(Generic[Columns]):
    """Columns that the rows of other columns are appended to."""

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

    def keep(self, columns: Columns) -> None:
        """Replace the content by *columns*, which nobody else writes."""
        for name, values in columns._asdict().items():
            self._arrays[name].keep(values)
        self._view = None

    def append(self, columns: Columns) -> None:
        """Add the rows of *columns* at the end.

        Cost: what they hold, amortised; tens of microseconds for one row.
        """
        offsets = OFFSETS[self._kind]
        sizes = {name: len(array) - (name in offsets) for name, array in self._arrays.items()}
        for name, values in with_offsets(columns, sizes)._asdict().items():
            self._arrays[name].extend(values, len(values))
        self._view = None


def extended(array: Array, size: int, fill: float = 0) -> Array:
    """*array* with a capacity of at least *size*, new values *fill*; itself if it has that."""
    if len(array) >= size:
        return array
    capacity: Any = np.full(max(size, 2 * len(array), 16), fill, array.dtype)
    capacity[: len(array)] = array
    return capacity  # type: ignore[no-any-return]
