"""What a processor can do and Numba has no name for: count zeros, move bytes, prefetch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types

from stentor._jit import instruction

_WIDTH: Final = 64

#: Numba has no type hints.
_TYPES: Any = types
_TOOLS: Any = cgutils
_READ, _KEEP, _DATA = 0, 3, 1  # to be read, kept in all caches, no instructions

Count = Callable[[np.uint64], np.uint64]


def _trailing_zeros(word: np.uint64) -> np.uint64:
    plain = int(word)
    return np.uint64((plain & -plain).bit_length() - 1 if plain else _WIDTH)


def _leading_zeros(word: np.uint64) -> np.uint64:
    return np.uint64(_WIDTH - int(word).bit_length())


def _written(name: str) -> Any:
    """A function that generates LLVM code for a call of *name*."""

    def compiled(context: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            zero_is_defined = ir.Constant(ir.IntType(1), 0)
            return getattr(builder, name)(arguments[0], zero_is_defined)

        return _TYPES.uint64(_TYPES.uint64), generate

    return compiled


#: The number of zero bits below the lowest set bit of a word, and above the highest; 64 for 0.
trailing_zeros: Count = instruction(_trailing_zeros, _written("cttz"))

leading_zeros: Count = instruction(_leading_zeros, _written("ctlz"))


def _copy(array: npt.NDArray[Any], target: int, source: int, count: int) -> None:
    array[target : target + count] = array[source : source + count].copy()


def _compiled_move(context: Any, array: Any, target: Any, source: Any, count: Any) -> Any:
    """The types of a call, and the function that generates LLVM code for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        of = signature.args[0]
        data = context.make_array(of)(context, builder, arguments[0]).data
        to, start = (builder.gep(data, [offset]) for offset in arguments[1:3])
        size = context.get_constant(_TYPES.intp, context.get_abi_sizeof(data.type.pointee))
        _TOOLS.raw_memmove(builder, to, start, arguments[3], size)
        return context.get_dummy_value()

    return _TYPES.void(array, _TYPES.intp, _TYPES.intp, _TYPES.intp), generate


#: Copy *count* elements of an array from *source* on to *target*; both may overlap.
move: Callable[[npt.NDArray[Any], int, int, int], None] = instruction(_copy, _compiled_move)


def _nothing(array: npt.NDArray[Any], position: int) -> None:
    """Plain Python needs no prefetching."""


def _compiled_prefetch(context: Any, array: Any, position: Any) -> Any:
    """The types of a call, and the function that generates LLVM code for it."""

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

    return _TYPES.void(array, _TYPES.intp), generate


#: Bring the cache line of an array at a position, which must lie in it, into the cache.
prefetch: Callable[[npt.NDArray[Any], int], None] = instruction(_nothing, _compiled_prefetch)
