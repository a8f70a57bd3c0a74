"""`kernel` for kernels that neither allocate nor keep an array.

Numba counts references to every array that a function is handed or slices, with atomic
operations: 20 to 40 times the cost of the verifier's own work, and more where threads share an
array. Kernels here only borrow what their caller holds, so counting is switched off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from stentor import _jit

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A kernel that counts no references: it must not allocate, nor return an array."""
    return _with_options(function, _nrt=False, no_cfunc_wrapper=True)


def kernel_part(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The same for what only kernels call: without a way in from Python it compiles faster."""
    return _with_options(function, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def kernel_inline(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A part that is copied into each kernel that calls it.

    Handing a few dozen arrays over takes longer than testing a predicate.
    """
    return _with_options(
        function, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True
    )


def _with_options(
    function: Callable[Parameters, Result], **options: bool
) -> Callable[Parameters, Result]:
    compiled = _jit.kernel(function)
    getattr(compiled, "targetoptions", {}).update(options)  # none where the JIT is off
    return compiled
