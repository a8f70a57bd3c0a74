"""Moving a part of an array to another place in it: one call where a loop takes its time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy.typing as npt
from numba.core import cgutils, types
from numba.extending import intrinsic

_CONFIG: Any = numba.config  # its attributes are made at run time
_TYPES: Any = types  # it has no types
_TOOLS: Any = cgutils


def _plain(array: npt.NDArray[Any], target: int, source: int, count: int) -> None:
    array[target : target + count] = array[source : source + count].copy()


def _compiled(context: Any, array: Any, target: Any, source: Any, count: Any) -> Any:
    """The types of a call, and what writes it in the compiler's language."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        of = signature.args[0]
        data = context.make_array(of)(context, builder, arguments[0]).data
        to, start = (builder.gep(data, [place]) for place in arguments[1:3])
        size = context.get_constant(_TYPES.intp, context.get_abi_sizeof(data.type.pointee))
        _TOOLS.raw_memmove(builder, to, start, arguments[3], size)
        return context.get_dummy_value()

    return _TYPES.void(array, _TYPES.intp, _TYPES.intp, _TYPES.intp), generate


_INTRINSIC: Any = intrinsic(_compiled)

#: Have *count* elements of an array that begin at *source* stand at *target*; both may overlap.
move: Callable[[npt.NDArray[Any], int, int, int], None] = (
    _plain if _CONFIG.DISABLE_JIT else _INTRINSIC
)
