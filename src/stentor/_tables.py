"""Thirty-two lanes at once, each looking up a byte of its own: what nodes of `index/packed` do.

A table has a byte for each of 32 slots. A column has, for each lane, the slot that it asks about;
one permutation of the table's bytes answers all lanes. Written as portable LLVM vectors, which it
turns into what the processor has (vpshufb, tbl); plain Python does the same with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from stentor._jit import instruction
from stentor._lines import BYTE, FLOAT, INT, LONG, TOOLS, TYPES, everywhere, loaded, pointer_to

#: Lanes of a node, and slots of a table.
LANES: Final = 32
_SHORT = ir.IntType(16)
_BYTES = ir.VectorType(BYTE, LANES)
_HALF: Final = 16
UInt8 = npt.NDArray[np.uint8]
UInt16 = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float32]


def _bits_of(truths: npt.NDArray[np.bool_]) -> np.uint64:
    return np.uint64(sum(1 << lane for lane in np.flatnonzero(truths).tolist()))


def _lanes_meeting(
    pool: UInt8, slots: int, bounds: int, stride: int, columns: int, low: UInt8, high: UInt8
) -> np.uint64:
    met = np.ones(LANES, np.bool_)
    for column in range(columns):
        slot = pool[slots + column * stride :][:LANES] & 31
        first = bounds + 2 * column * stride
        met &= pool[first:][:LANES] <= high[slot]
        met &= pool[first + stride :][:LANES] >= low[slot]
    return _bits_of(met)


def _permuted(builder: Any, table: Any, index: Any, count: int) -> Any:
    """The bytes of *table* that the lanes of *index* name: LLVM makes one permutation of it."""
    result = ir.Constant(ir.VectorType(BYTE, count), ir.Undefined)
    for lane in range(count):
        one = builder.zext(builder.extract_element(index, INT(lane)), INT)
        result = builder.insert_element(result, builder.extract_element(table, one), INT(lane))
    return result


def _variable(builder: Any, value: Any) -> Any:
    """A variable that begins as *value*."""
    made = TOOLS.alloca_once(builder, value.type)
    builder.store(value, made)
    return made


def _stepped(builder: Any, variable: Any, step: Any) -> Any:
    """The pointer in *variable*, which goes on by *step* bytes."""
    pointer = builder.load(variable)
    builder.store(builder.gep(pointer, [step]), variable)
    return pointer


def _compiled_meeting(
    context: Any,
    pool: Any,
    slots: Any,
    bounds: Any,
    stride: Any,
    columns: Any,
    low: Any,
    high: Any,
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        array, slots, bounds, stride, columns, low, high = given
        kinds = signature.args
        tables = [
            loaded(builder, pointer_to(context, builder, kinds[at], table, LONG(0), BYTE), _BYTES)
            for at, table in ((5, low), (6, high))
        ]
        slot = _variable(builder, pointer_to(context, builder, kinds[0], array, slots, BYTE))
        bound = _variable(builder, pointer_to(context, builder, kinds[0], array, bounds, BYTE))
        met = _variable(builder, ir.Constant(_BYTES, [255] * LANES))
        with TOOLS.for_range(builder, columns):
            index = loaded(builder, _stepped(builder, slot, stride), _BYTES)
            lows = loaded(builder, _stepped(builder, bound, stride), _BYTES)
            highs = loaded(builder, _stepped(builder, bound, stride), _BYTES)
            meets = builder.and_(
                builder.icmp_unsigned("<=", lows, _permuted(builder, tables[1], index, LANES)),
                builder.icmp_unsigned(">=", highs, _permuted(builder, tables[0], index, LANES)),
            )
            builder.store(builder.and_(builder.load(met), builder.sext(meets, _BYTES)), met)
        truths = builder.icmp_signed("<", builder.load(met), ir.Constant(_BYTES, [0] * LANES))
        return builder.zext(builder.bitcast(truths, INT), LONG)

    whole = TYPES.int64
    return TYPES.uint64(pool, whole, whole, whole, whole, low, high), generate


#: The lanes, a bit each, whose columns (slots, and low and high bounds, each *stride* bytes after
#: the one before) all meet what the tables *low* and *high* hold for their slots.
lanes_meeting: Callable[[UInt8, int, int, int, int, UInt8, UInt8], np.uint64] = instruction(
    _lanes_meeting, _compiled_meeting
)


def _lanes_reaching(
    pool: UInt8,
    slots: int,
    weights: int,
    stride: int,
    columns: int,
    table: UInt8,
    is_sum: int,
    least: int,
    most: UInt16,
) -> np.uint64:
    total = np.zeros(LANES, np.int64)
    for column in range(columns):
        slot = pool[slots + column * stride :][:LANES] & 31
        weight = pool[weights + column * stride :][:LANES].astype(np.int64)
        product = (weight * table[slot] + 15) >> 4
        total = total + product if is_sum else np.maximum(total, product)
    most[:] = total
    return _bits_of(total >= least)


def _compiled_reaching(
    context: Any,
    pool: Any,
    slots: Any,
    weights: Any,
    stride: Any,
    columns: Any,
    table: Any,
    is_sum: Any,
    least: Any,
    most: Any,
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        array, slots, weights, stride, columns, table, is_sum, least, most = given
        kinds = signature.args
        values = loaded(
            builder, pointer_to(context, builder, kinds[5], table, LONG(0), BYTE), _BYTES
        )
        slot = _variable(builder, pointer_to(context, builder, kinds[0], array, slots, BYTE))
        weight = _variable(builder, pointer_to(context, builder, kinds[0], array, weights, BYTE))
        wide, half = ir.VectorType(_SHORT, _HALF), ir.VectorType(BYTE, _HALF)
        totals = [_variable(builder, ir.Constant(wide, [0] * _HALF)) for _ in range(2)]
        adds = everywhere(builder, builder.icmp_signed("!=", is_sum, LONG(0)), _HALF)
        with TOOLS.for_range(builder, columns):
            at, beside = _stepped(builder, slot, stride), _stepped(builder, weight, stride)
            # Two halves: a permutation of 32 bytes that is widened becomes 32 moves.
            for number, total in enumerate(totals):
                index = loaded(builder, at, half, _HALF * number)
                one = builder.zext(_permuted(builder, values, index, _HALF), wide)
                other = builder.zext(loaded(builder, beside, half, _HALF * number), wide)
                rounded = builder.add(builder.mul(one, other), ir.Constant(wide, [15] * _HALF))
                product = builder.lshr(rounded, ir.Constant(wide, [4] * _HALF))
                before = builder.load(total)
                larger = builder.select(
                    builder.icmp_unsigned(">", product, before), product, before
                )
                builder.store(builder.select(adds, builder.add(before, product), larger), total)
        needed = everywhere(builder, builder.trunc(least, _SHORT), _HALF)
        mask = LONG(0)
        for number, total in enumerate(totals):
            value = builder.load(total)
            target = pointer_to(context, builder, kinds[8], most, LONG(_HALF * number), wide)
            builder.store(value, target).align = 2
            truths = builder.bitcast(builder.icmp_unsigned(">=", value, needed), _SHORT)
            shifted = builder.shl(builder.zext(truths, LONG), LONG(_HALF * number))
            mask = builder.or_(mask, shifted)
        return mask

    whole = TYPES.int64
    return TYPES.uint64(pool, whole, whole, whole, whole, table, whole, whole, most), generate


#: The lanes whose weights times what *table* has for their slots come to *least* or more, in units
#: of 16: their sum, or the greatest alone. *most* (32) is what each comes to, rounded up.
lanes_reaching: Callable[[UInt8, int, int, int, int, UInt8, int, int, UInt16], np.uint64] = (
    instruction(_lanes_reaching, _compiled_reaching)
)


def _numbers_reaching(numbers: Floats, position: int, least: float) -> np.uint64:
    return _bits_of(numbers[position : position + LANES] >= least)


def _compiled_numbers(context: Any, numbers: Any, position: Any, least: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = ir.VectorType(FLOAT, LANES)
        pointer = pointer_to(context, builder, signature.args[0], given[0], given[1], FLOAT)
        reach = builder.fcmp_ordered(
            ">=", loaded(builder, pointer, kind), everywhere(builder, given[2], LANES)
        )
        return builder.zext(builder.bitcast(reach, INT), LONG)

    return TYPES.uint64(numbers, TYPES.int64, TYPES.float32), generate


#: Which of the 32 numbers from a position on are at least so large, a bit each.
numbers_reaching: Callable[[Floats, int, float], np.uint64] = instruction(
    _numbers_reaching, _compiled_numbers
)
