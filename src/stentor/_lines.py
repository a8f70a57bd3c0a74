"""Vectors of a processor for kernels: lines of 512 bits, eight boxes, sixteen cuts at a time.

A line is a value of its own to the compiler, which keeps it in registers; plain Python has it as
one whole number of 512 bits. Nothing here names a processor: LLVM takes what there is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import models, register_model

from stentor._jit import instruction

#: Numba and llvmlite have no type hints.
TYPES: Any = types
TOOLS: Any = cgutils
_MODELS: Any = models

#: 64-bit words of a line.
WORDS: Final = 8

BYTE, INT, LONG = (ir.IntType(width) for width in (8, 32, 64))
FLOAT, DOUBLE = ir.FloatType(), ir.DoubleType()
_LINE = ir.VectorType(LONG, WORDS)

UInt8 = npt.NDArray[np.uint8]
UInt64 = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float32]
Line = Any  # 512 bits


class LineType(TYPES.Type):  # type: ignore[misc]  # Numba has no types
    """A line of 512 bits, as a value."""

    def __init__(self) -> None:
        super().__init__(name="Line512")


@register_model(LineType)
class LineModel(_MODELS.PrimitiveModel):  # type: ignore[misc]
    """A line is one vector of eight words."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _LINE)


_LINES: Final = LineType()


def pointer_to(
    context: Any, builder: Any, kind: Any, array: Any, position: Any, target: Any
) -> Any:
    """A pointer to *target* at *position* of *array*."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [position]), target.as_pointer())


def loaded(builder: Any, pointer: Any, target: Any, skipped: int = 0) -> Any:
    """*target* from *pointer* on, *skipped* bytes further; aligned in any way."""
    if skipped:
        raw = builder.gep(builder.bitcast(pointer, BYTE.as_pointer()), [LONG(skipped)])
        pointer = builder.bitcast(raw, target.as_pointer())
    value = builder.load(builder.bitcast(pointer, target.as_pointer()))
    value.align = 1
    return value


def everywhere(builder: Any, value: Any, count: int) -> Any:
    """A vector of *count* times *value*."""
    kind = ir.VectorType(value.type, count)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, INT(0))
    zeros = ir.Constant(ir.VectorType(INT, count), [0] * count)
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), zeros)


def _bits(builder: Any, mask: Any, count: int, target: Any) -> Any:
    """A vector of *count* comparisons as bits of the number *target*."""
    packed = builder.bitcast(mask, ir.IntType(count))
    return builder.zext(packed, target) if count < target.width else packed


# Lines.


def _line_at(words: UInt64, position: int) -> int:
    return int.from_bytes(words[position : position + WORDS].tobytes(), "little")


def _compiled_line_at(context: Any, words: Any, position: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        pointer = pointer_to(context, builder, signature.args[0], given[0], given[1], _LINE)
        return loaded(builder, pointer, _LINE)

    return _LINES(words, TYPES.intp), generate


#: The line that begins at a position of words.
line_at: Callable[[UInt64, int], Line] = instruction(_line_at, _compiled_line_at)


def _put_line(words: UInt64, position: int, line: int) -> None:
    words[position : position + WORDS] = np.frombuffer(line.to_bytes(8 * WORDS, "little"), "<u8")


def _compiled_put_line(context: Any, words: Any, position: Any, line: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        pointer = pointer_to(context, builder, signature.args[0], given[0], given[1], _LINE)
        builder.store(given[2], pointer).align = 1
        return context.get_dummy_value()

    return TYPES.void(words, TYPES.intp, _LINES), generate


#: Write a line to words from a position on.
put_line: Callable[[UInt64, int, Line], None] = instruction(_put_line, _compiled_put_line)


def _compiled_pair(name: str) -> Any:
    """A function that generates LLVM code for the operation *name* of two lines."""

    def compiled(context: Any, one: Any, other: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            one, other = given
            if name == "and_not":
                return builder.and_(one, builder.not_(other))
            return getattr(builder, name)(one, other)

        return _LINES(_LINES, _LINES), generate

    return compiled


Pair = Callable[[Line, Line], Line]
#: The bits that are in both lines, in either, in the first alone.
both: Pair = instruction(lambda one, other: one & other, _compiled_pair("and_"))
either: Pair = instruction(lambda one, other: one | other, _compiled_pair("or_"))
first_alone: Pair = instruction(lambda one, other: one & ~other, _compiled_pair("and_not"))


def _compiled_any(context: Any, line: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        half = ir.VectorType(LONG, WORDS // 2)
        nothing = ir.Constant(_LINE, ir.Undefined)
        parts = [
            builder.shuffle_vector(
                given[0],
                nothing,
                ir.Constant(ir.VectorType(INT, WORDS // 2), list(range(start, start + WORDS // 2))),
            )
            for start in (0, WORDS // 2)
        ]
        joined = builder.or_(*parts)
        reduce = TOOLS.get_or_insert_function(
            builder.module, ir.FunctionType(LONG, [half]), "llvm.vector.reduce.or.v4i64"
        )
        return builder.icmp_unsigned("!=", builder.call(reduce, [joined]), LONG(0))

    return TYPES.boolean(_LINES), generate


#: Whether a line has a bit at all.
has_bits: Callable[[Line], bool] = instruction(lambda line: line != 0, _compiled_any)


def _filled_words(line: int) -> np.uint64:
    words = ((line >> 64 * word) & (2**64 - 1) for word in range(WORDS))
    return np.uint64(sum(1 << word for word, bits in enumerate(words) if bits))


def _compiled_filled_words(context: Any, line: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        mask = builder.icmp_unsigned("!=", given[0], ir.Constant(_LINE, [0] * WORDS))
        return _bits(builder, mask, WORDS, LONG)

    return TYPES.uint64(_LINES), generate


#: A bit for each word of a line that is not zero.
filled_words: Callable[[Line], np.uint64] = instruction(_filled_words, _compiled_filled_words)


# Boxes and cuts.


def _boxes_around(boxes: Floats, position: int, x: float, y: float) -> np.uint64:
    return _boxes_meeting(boxes, position, x, y, x, y)


def _boxes_meeting(
    boxes: Floats, position: int, west: float, south: float, east: float, north: float
) -> np.uint64:
    x1, y1, x2, y2 = boxes[position : position + 32].reshape(4, 8)
    meet = (x1 <= east) & (y1 <= north) & (x2 >= west) & (y2 >= south)
    return np.uint64(sum(1 << box for box in np.flatnonzero(meet).tolist()))


def _meeting(builder: Any, pointer: Any, west: Any, south: Any, east: Any, north: Any) -> Any:
    """A bit for each of eight boxes that meets the given one."""
    kind = ir.VectorType(FLOAT, 8)
    x1, y1, x2, y2 = (loaded(builder, pointer, kind, 32 * side) for side in range(4))
    wide = [everywhere(builder, side, 8) for side in (west, south, east, north)]
    low = builder.and_(
        builder.fcmp_ordered("<=", x1, wide[2]), builder.fcmp_ordered("<=", y1, wide[3])
    )
    high = builder.and_(
        builder.fcmp_ordered(">=", x2, wide[0]), builder.fcmp_ordered(">=", y2, wide[1])
    )
    return _bits(builder, builder.and_(low, high), 8, LONG)


def _compiled_boxes_around(context: Any, boxes: Any, position: Any, x: Any, y: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        pointer = pointer_to(context, builder, signature.args[0], given[0], given[1], FLOAT)
        return _meeting(builder, pointer, given[2], given[3], given[2], given[3])

    single = TYPES.float32
    return TYPES.uint64(boxes, TYPES.intp, single, single), generate


def _compiled_boxes_meeting(
    context: Any, boxes: Any, position: Any, west: Any, south: Any, east: Any, north: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        pointer = pointer_to(context, builder, signature.args[0], given[0], given[1], FLOAT)
        return _meeting(builder, pointer, *given[2:])

    single = TYPES.float32
    return TYPES.uint64(boxes, TYPES.intp, single, single, single, single), generate


#: A bit for each of the eight boxes (eight x1, y1, x2, y2) at a position that has a point in it.
boxes_around: Callable[[Floats, int, float, float], np.uint64] = instruction(
    _boxes_around, _compiled_boxes_around
)
#: A bit for each of them that a box meets.
boxes_meeting: Callable[[Floats, int, float, float, float, float], np.uint64] = instruction(
    _boxes_meeting, _compiled_boxes_meeting
)


def _cuts_up_to(cuts: npt.NDArray[Any], position: int, value: float) -> int:
    return int(np.count_nonzero(cuts[position : position + 16] <= value))


def _compiled_cuts_up_to(context: Any, cuts: Any, position: Any, value: Any) -> Any:
    single = FLOAT if cuts.dtype == TYPES.float32 else DOUBLE

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = ir.VectorType(single, 16)
        pointer = pointer_to(context, builder, signature.args[0], given[0], given[1], single)
        below = builder.fcmp_ordered(
            "<=", loaded(builder, pointer, kind), everywhere(builder, given[2], 16)
        )
        return builder.ctpop(_bits(builder, below, 16, LONG))

    return TYPES.int64(cuts, TYPES.intp, cuts.dtype), generate


#: How many of the sixteen cuts from a position on do not exceed a value; NaN exceeds all.
cuts_up_to: Callable[[npt.NDArray[Any], int, float], int] = instruction(
    _cuts_up_to, _compiled_cuts_up_to
)


# Bytes: codes of bounds.


def meeting(
    builder: Any, low: Any, high: Any, value_low: Any, value_high: Any, strict: bool
) -> Any:
    """Where low … high meets value_low … value_high."""
    less, more = ("<", ">") if strict else ("<=", ">=")
    return builder.and_(
        builder.icmp_unsigned(less, low, value_high), builder.icmp_unsigned(more, high, value_low)
    )


def _slots_meeting(low: UInt8, high: UInt8, position: int, first: int, last: int) -> np.uint64:
    lows, highs = low[position : position + 64], high[position : position + 64]
    meets = (lows <= last) & (highs >= first)
    return np.uint64(np.packbits(meets, bitorder="little").view(np.uint64)[0])


def _compiled_slots_meeting(
    context: Any, low: Any, high: Any, position: Any, first: Any, last: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = ir.VectorType(BYTE, 64)
        lows, highs = (
            loaded(
                builder,
                pointer_to(context, builder, signature.args[at], given[at], given[2], kind),
                kind,
            )
            for at in (0, 1)
        )
        first, last = (everywhere(builder, builder.trunc(given[at], BYTE), 64) for at in (3, 4))
        return builder.bitcast(meeting(builder, lows, highs, first, last, strict=False), LONG)

    number = TYPES.int64
    return TYPES.uint64(low, high, TYPES.intp, number, number), generate


#: A bit for each of the 64 slots from a position on whose low … high meets first … last.
slots_meeting: Callable[[UInt8, UInt8, int, int, int], np.uint64] = instruction(
    _slots_meeting, _compiled_slots_meeting
)
