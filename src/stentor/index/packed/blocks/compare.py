"""Codes of an event against those of a record, or of all records below a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from stentor._jit import instruction
from stentor._lines import BYTE, FLOAT, INT, LONG, TYPES, loaded, meeting, pointer_to
from stentor.encoding.columns import UInt8
from stentor.index.packed.blocks.layout import (
    ABOVE,
    BELOW,
    BOX,
    FLAGS,
    HEAD_HIGH,
    HIGH,
    LACKING,
    MAY_MATCH,
    MOST_DIMENSIONS,
    POINT,
    STRICT_POINT,
    SURELY,
    UNDECIDED,
    VALUE_HIGH,
)

Floats = npt.NDArray[np.float32]
_LANES: Final = 32  # codes that are compared at a time


def _all_lanes(builder: Any, mask: Any, lanes: int) -> Any:
    """Whether the first *lanes* of 32 comparisons are true."""
    rest = (1 << _LANES) - (1 << lanes)
    return builder.icmp_unsigned("==", builder.or_(builder.bitcast(mask, INT), INT(rest)), INT(-1))


def _head_meets(heads: UInt8, position: int, codes: UInt8, start: int) -> bool:
    low, high = heads[position : position + 32], heads[position + 32 : position + 64]
    value_low, value_high = codes[start : start + 32], codes[start + 32 : start + 64]
    return bool((low <= value_high).all() and (high >= value_low).all())


def _compiled_head_meets(context: Any, heads: Any, position: Any, codes: Any, start: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = ir.VectorType(BYTE, _LANES)
        head = pointer_to(context, builder, signature.args[0], given[0], given[1], kind)
        event = pointer_to(context, builder, signature.args[2], given[2], given[3], kind)
        meets = meeting(
            builder,
            loaded(builder, head, kind),
            loaded(builder, head, kind, HEAD_HIGH),
            loaded(builder, event, kind),
            loaded(builder, event, kind, VALUE_HIGH),
            strict=False,
        )
        return _all_lanes(builder, meets, _LANES)

    return TYPES.boolean(heads, TYPES.intp, codes, TYPES.intp), generate


#: Whether the codes that a node spans meet those of an event.
head_meets: Callable[[UInt8, int, UInt8, int], bool] = instruction(
    _head_meets, _compiled_head_meets
)


def _verdict(records: UInt8, position: int, codes: UInt8, start: int) -> int:
    record, event = records[position : position + 64], codes[start : start + LACKING + 4]
    lanes = slice(0, MOST_DIMENSIONS)
    low, high = record[:32][lanes], record[HIGH : HIGH + 32][lanes]

    def lane(offset: int) -> UInt8:
        return event[offset : offset + 32][lanes]

    def floats(source: UInt8, offset: int) -> Floats:
        return np.frombuffer(source[offset : offset + 16].tobytes(), np.float32)

    box, flags = floats(record, BOX), int.from_bytes(record[FLAGS : FLAGS + 4].tobytes(), "little")
    lacking = int.from_bytes(event[LACKING : LACKING + 4].tobytes(), "little")
    may = bool((low <= lane(VALUE_HIGH)).all() and (high >= lane(0)).all())
    may = may and bool((box <= floats(event, POINT)).all()) and not flags & lacking
    surely = may and bool((low < lane(ABOVE)).all() and (high > lane(BELOW)).all())
    surely = surely and bool((box < floats(event, STRICT_POINT)).all()) and not flags & UNDECIDED
    return MAY_MATCH * may + SURELY * surely


def _compiled_verdict(context: Any, records: Any, position: Any, codes: Any, start: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind, sides = ir.VectorType(BYTE, _LANES), ir.VectorType(FLOAT, 4)
        record = pointer_to(context, builder, signature.args[0], given[0], given[1], kind)
        event = pointer_to(context, builder, signature.args[2], given[2], given[3], kind)
        low, high = loaded(builder, record, kind), loaded(builder, record, kind, HIGH)
        value_low, value_high, above, below = (
            loaded(builder, event, kind, offset) for offset in (0, VALUE_HIGH, ABOVE, BELOW)
        )
        box = loaded(builder, record, sides, BOX)
        flags = loaded(builder, record, INT, FLAGS)

        def all_sides(relation: str, offset: int) -> Any:
            mask = builder.fcmp_ordered(relation, box, loaded(builder, event, sides, offset))
            return builder.icmp_unsigned(
                "==", builder.bitcast(mask, ir.IntType(4)), ir.IntType(4)(15)
            )

        def has_none(bits: Any) -> Any:
            return builder.icmp_unsigned("==", builder.and_(flags, bits), INT(0))

        within = meeting(builder, low, high, value_low, value_high, strict=False)
        strictly = meeting(builder, low, high, below, above, strict=True)
        may = builder.and_(_all_lanes(builder, within, MOST_DIMENSIONS), all_sides("<=", POINT))
        may = builder.and_(may, has_none(loaded(builder, event, INT, LACKING)))
        surely = builder.and_(
            _all_lanes(builder, strictly, MOST_DIMENSIONS), all_sides("<", STRICT_POINT)
        )
        surely = builder.and_(builder.and_(may, surely), has_none(INT(UNDECIDED)))
        parts = [
            builder.select(truth, LONG(bit), LONG(0))
            for truth, bit in ((may, MAY_MATCH), (surely, SURELY))
        ]
        return builder.or_(*parts)

    return TYPES.int64(records, TYPES.intp, codes, TYPES.intp), generate


#: What a record says of an event: MAY_MATCH, and SURELY where nothing is left to verify.
verdict: Callable[[UInt8, int, UInt8, int], int] = instruction(_verdict, _compiled_verdict)
