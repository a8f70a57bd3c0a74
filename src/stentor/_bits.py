"""Counting the zeros around the ones of a word: one instruction where a loop takes dozens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

_WIDTH: Final = 64
_CONFIG: Any = numba.config  # its attributes are made at run time
_TYPES: Any = types  # it has no types

Count = Callable[[np.uint64], np.uint64]


def _trailing_zeros(word: np.uint64) -> np.uint64:
    plain = int(word)
    return np.uint64((plain & -plain).bit_length() - 1 if plain else _WIDTH)


def _leading_zeros(word: np.uint64) -> np.uint64:
    return np.uint64(_WIDTH - int(word).bit_length())


def _instruction(name: str) -> Any:
    """A kernel's way to the instruction *name* of the compiler's language."""

    def compiled(context: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            zero_is_defined = ir.Constant(ir.IntType(1), 0)
            return getattr(builder, name)(arguments[0], zero_is_defined)

        return _TYPES.uint64(_TYPES.uint64), generate

    return intrinsic(compiled)


#: How many zeros stand below the lowest one of a word, and above the highest; 64 where it has none.
trailing_zeros: Count = _trailing_zeros if _CONFIG.DISABLE_JIT else _instruction("cttz")
leading_zeros: Count = _leading_zeros if _CONFIG.DISABLE_JIT else _instruction("ctlz")
