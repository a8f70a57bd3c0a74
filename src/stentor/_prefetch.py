"""Asking for memory before it is needed: what a kernel can do where it knows where it goes next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_READ, _KEEP, _DATA = 0, 3, 1  # to be read, kept in all caches, no instructions

_TOOLS: Any = cgutils  # it has no types
_CONFIG: Any = numba.config  # its attributes are made at run time


def _nothing(array: npt.NDArray[Any], place: int) -> None:
    """What is left of it in plain Python."""


def _compiled(context: Any, array: Any, place: Any) -> Any:
    """The types of a call, and what writes it in the compiler's language."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), _TOOLS.voidptr_t)
        flag = ir.IntType(32)
        function = _TOOLS.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [_TOOLS.voidptr_t, flag, flag, flag]),
            "llvm.prefetch.p0i8",
        )
        builder.call(function, [address, *(flag(one) for one in (_READ, _KEEP, _DATA))])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


_INTRINSIC: Any = intrinsic(_compiled)

#: Have the cache line of an array at a place, which must lie in it, brought near.
prefetch: Callable[[npt.NDArray[Any], int], None] = _nothing if _CONFIG.DISABLE_JIT else _INTRINSIC
