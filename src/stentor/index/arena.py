"""The memory of structures: arrays that grow at the end.

An array is doubled when it is full, so that an appended row costs a constant; a view keeps its
address while rows are appended behind it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from stentor._jit import direct, kernel
from stentor.encoding.columns import Columns, Int64, SubscriptionColumns, dtypes
from stentor.encoding.kinds import KIND_MASK, WITH_PAIRS, WITH_STRINGS
from stentor.encoding.ragged import OFFSETS, refuse_too_many, with_offsets

#: Rows that are appended one array after another only where they are more.
FEW = 64
_ARE_OFFSETS = [name in OFFSETS[SubscriptionColumns] for name in SubscriptionColumns._fields]
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
        self.reserve(count)
        start = self._used
        stop = start + count
        if count:  # what is kept may be read-only
            self._array[start:stop] = values
        self._used = stop

    def reserve(self, count: int) -> bool:
        """See to it that *count* more fit; whether what there is has moved for that."""
        start = self._used
        stop = start + count
        if stop <= len(self._array):
            return False
        capacity = max(stop, 2 * len(self._array), _SMALLEST_CAPACITY)
        grown = spacious(capacity, self._array.dtype)
        grown[:start] = self._array[:start]
        self._array = grown
        return True

    @property
    def capacity(self) -> npt.NDArray[Any]:
        """All that is reserved, writable; nothing, where what is kept is read-only."""
        return self._array if self._array.flags.writeable else self._array[:0].copy()

    def take_in(self, count: int) -> None:
        """Let *count* that were written behind the others be used."""
        self._used += count


class GrowingColumns(Generic[Columns]):
    """Columns that the rows of other columns are appended to."""

    def __init__(self, kind: type[Columns]) -> None:
        self._kind: type[Columns] = kind
        self._arrays = {
            name: GrowingArray(dtype, 1 if name in OFFSETS[kind] else 0)
            for name, dtype in dtypes(kind).items()
        }
        self._view: Columns | None = None
        self._capacity: SubscriptionColumns | None = None  # of what `_append_few` writes to
        self._sizes = np.zeros(len(self._arrays), np.int64)

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
        self._view = self._capacity = None

    def append(self, columns: Columns) -> None:
        """Add the rows of *columns* at the end.

        Cost: what they hold, amortised; tens of microseconds for one row.
        """
        offsets = OFFSETS[self._kind]
        sizes = {name: len(array) - (name in offsets) for name, array in self._arrays.items()}
        if self._kind is SubscriptionColumns and len(columns.until) <= FEW:
            self._append_few(columns, sizes)
        else:
            for name, values in with_offsets(columns, sizes)._asdict().items():
                self._arrays[name].extend(values, len(values))
            self._capacity = None  # arrays may have moved
        self._view = None

    def _append_few(self, columns: Any, sizes: dict[str, int]) -> None:
        """`append` by one kernel: for one row seventeen arrays take longer than what they hold."""
        refuse_too_many(columns, sizes)
        arrays = list(self._arrays.values())
        is_grown = [
            array.reserve(len(values) - is_offset)
            for array, values, is_offset in zip(arrays, columns, _ARE_OFFSETS, strict=True)
        ]
        if self._capacity is None or True in is_grown:
            self._capacity = SubscriptionColumns(*(array.capacity for array in arrays))
        for position, size in enumerate(sizes.values()):
            self._sizes[position] = size
        _append_rows(self._capacity, self._sizes, columns)
        for array, values, is_offset in zip(arrays, columns, _ARE_OFFSETS, strict=True):
            array.take_in(len(values) - is_offset)


@kernel
def append_rows(into: SubscriptionColumns, sizes: Int64, columns: SubscriptionColumns) -> None:
    """Write *columns* into the arrays *into*, of which *sizes* are used, behind what is there."""
    alternatives, predicates, operands = sizes[1], sizes[2], sizes[7]
    pairs, strings, width = sizes[9], sizes[11], sizes[14]
    row = sizes[16]
    for i in range(len(columns.until)):
        into.alternative_start[row + i + 1] = columns.alternative_start[i + 1] + alternatives
        into.position[2 * (row + i)] = columns.position[2 * i]
        into.position[2 * (row + i) + 1] = columns.position[2 * i + 1]
        into.until[row + i] = columns.until[i]
    for i in range(len(columns.predicate_start) - 1):
        into.predicate_start[alternatives + i + 1] = columns.predicate_start[i + 1] + predicates
    for i in range(len(columns.kind)):
        kind = np.int64(columns.kind[i])
        shift = 0
        if WITH_PAIRS >> (kind & KIND_MASK) & 1 == 1:
            shift = pairs
        elif WITH_STRINGS >> (kind & KIND_MASK) & 1 == 1:
            shift = strings
        into.kind[predicates + i] = kind
        into.attribute[predicates + i] = columns.attribute[i]
        into.low[predicates + i] = columns.low[i]
        into.high[predicates + i] = columns.high[i]
        into.weight[predicates + i] = columns.weight[i]
        into.operand_start[operands + i] = columns.operand_start[i] + shift
        into.operand_stop[operands + i] = columns.operand_stop[i] + shift
    for i in range(len(columns.pair_low)):
        into.pair_low[pairs + i] = columns.pair_low[i]
        into.pair_high[pairs + i] = columns.pair_high[i]
    for i in range(len(columns.string_hash)):
        into.string_hash[strings + i] = columns.string_hash[i]
        into.string_mark[strings + i] = columns.string_mark[i]
        into.string_start[strings + i + 1] = columns.string_start[i + 1] + width
    for i in range(len(columns.string_bytes)):
        into.string_bytes[width + i] = columns.string_bytes[i]


_append_rows = direct(append_rows)


def extended(array: Array, size: int, fill: float = 0) -> Array:
    """*array* with a capacity of at least *size*, new values *fill*; itself if it has that."""
    if len(array) >= size:
        return array
    capacity: Any = np.full(max(size, 2 * len(array), 16), fill, array.dtype)
    capacity[: len(array)] = array
    return capacity  # type: ignore[no-any-return]
