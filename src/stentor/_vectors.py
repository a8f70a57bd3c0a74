"""Eight lanes compared at once: what the lists of `index/packed` test their granules by.

Written as portable LLVM vectors: the same source becomes SSE, AVX2, AVX-512 or NEON. Plain Python
does the same with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import types

from stentor._jit import instruction

#: Lanes of a granule.
LANES: Final = 8
_TYPES: Any = types
_BYTE, _SHORT, _INDEX, _WORD = (ir.IntType(bits) for bits in (8, 16, 32, 64))
UInt16 = npt.NDArray[np.uint16]
UInt64 = npt.NDArray[np.uint64]


def _lanes_inside(
    bounds: UInt16, granule: int, first: int, last: int, second: int, final: int
) -> np.uint64:
    low_a, high_a, low_b, high_b = bounds[4 * LANES * granule : 4 * LANES * (granule + 1)].reshape(
        4, LANES
    )
    inside = (low_a <= last) & (high_a >= first) & (low_b <= final) & (high_b >= second)
    return np.uint64(np.packbits(inside, bitorder="little")[0])


def _lanes_having(signature: UInt64, granule: int, lacking: np.uint64) -> np.uint64:
    needed = signature[LANES * granule : LANES * (granule + 1)]
    return np.uint64(np.packbits(needed & lacking == 0, bitorder="little")[0])


def _loaded(context: Any, builder: Any, array: Any, of: Any, position: Any, lane: Any) -> Any:
    """A vector of lanes from *position* of an *array* on, wherever it lies."""
    data = context.make_array(of)(context, builder, array).data
    address = builder.gep(data, [position])
    vector = builder.load(builder.bitcast(address, ir.VectorType(lane, LANES).as_pointer()))
    vector.align = lane.width // 8
    return vector


def _spread(builder: Any, value: Any, lane: Any) -> Any:
    """*value* in every lane."""
    vector = ir.VectorType(lane, LANES)
    one = value if value.type == lane else builder.trunc(value, lane)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), one, _INDEX(0))
    zeros = ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)


def _mask(builder: Any, lanes: Any) -> Any:
    """One bit for each of the truths *lanes*."""
    return builder.zext(builder.bitcast(lanes, _BYTE), _WORD)


def _compiled_inside(
    context: Any, bounds: Any, granule: Any, first: Any, last: Any, second: Any, final: Any
) -> Any:
    """The types of a call, and the function that generates LLVM code for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, granule, first, last, second, final = arguments
        start = builder.mul(granule, _WORD(4 * LANES))
        column = [
            _loaded(
                context,
                builder,
                array,
                signature.args[0],
                builder.add(start, _WORD(LANES * number)),
                _SHORT,
            )
            for number in range(4)
        ]
        inside = builder.icmp_unsigned("<=", column[0], _spread(builder, last, _SHORT))
        for lanes, operator, value in (
            (column[1], ">=", first),
            (column[2], "<=", final),
            (column[3], ">=", second),
        ):
            one = builder.icmp_unsigned(operator, lanes, _spread(builder, value, _SHORT))
            inside = builder.and_(inside, one)
        return _mask(builder, inside)

    whole = _TYPES.int64
    return _TYPES.uint64(bounds, whole, whole, whole, whole, whole), generate


def _compiled_having(context: Any, signature: Any, granule: Any, lacking: Any) -> Any:
    """The types of a call, and the function that generates LLVM code for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, granule, lacking = arguments
        start = builder.mul(granule, _WORD(LANES))
        needed = _loaded(context, builder, array, signature.args[0], start, _WORD)
        missed = builder.and_(needed, _spread(builder, lacking, _WORD))
        nothing = ir.Constant(ir.VectorType(_WORD, LANES), [0] * LANES)
        return _mask(builder, builder.icmp_unsigned("==", missed, nothing))

    return _TYPES.uint64(signature, _TYPES.int64, _TYPES.uint64), generate


#: The lanes of a granule whose bounds meet first … last along one axis and second … final along
#: another, a bit each. A granule has four columns of lanes: low, high, low, high.
lanes_inside: Callable[[UInt16, int, int, int, int, int], np.uint64] = instruction(
    _lanes_inside, _compiled_inside
)
#: The lanes of a granule whose signature has no bit that is *lacking*.
lanes_having: Callable[[UInt64, int, np.uint64], np.uint64] = instruction(
    _lanes_having, _compiled_having
)
