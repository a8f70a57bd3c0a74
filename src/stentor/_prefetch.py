"""Asking for memory before it is needed: what a kernel can do where it knows where it goes next."""

from __future__ import annotations

from typing import Any

import numba
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_READ, _KEEP, _DATA = 0, 3, 1  # to be read, kept in all caches, no instructions


def prefetch(array: npt.NDArray[Any], place: int) -> None:
    """Have the cache line of *array* at *place*, which must lie in it, brought near."""


def _prefetch(context: Any, array: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        data = context.make_array(kind)(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        flag = ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, flag, flag, flag]),
            "llvm.prefetch.p0i8",
        )
        builder.call(function, [address, *(flag(one) for one in (_READ, _KEEP, _DATA))])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


if not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    prefetch = intrinsic(_prefetch)  # noqa: F811
