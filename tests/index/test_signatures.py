"""Kernels are compiled for one kind of arguments each, but for a few that are named here."""

import os
import subprocess
import sys

#: Kernels that are compiled more than once, and why.
SEVERAL = {
    "index.sort.sort_slice": "what is sorted is of several types",
    "index.ap_tree.match.cell_along": "coordinates of 32 bits in nodes, 64 in subscriptions",
    "index.ap_tree.partitions.columns_of": "so here",
    "index.ap_tree.partitions.rows_of": "so here",
}
COUNT = """
from numba.core import types
from stentor import _jit
from stentor.engine.warm import compile_kernels, warmable

def form(one):  # without saying whether it can be written
    if isinstance(one, types.BaseTuple):
        name = getattr(one, "instance_class", tuple).__name__
        return {"BEReadArrays": "BEStarTreeArrays"}.get(name, name)  # of a BE*-Tree
    if one == types.uint8:  # of a column, as it stands there
        return types.int64
    return (one.dtype, one.ndim) if isinstance(one, types.Array) else one

for name in warmable():
    compile_kernels(name)
for one in _jit._KERNELS:
    name = f"{one.py_func.__module__}.{one.py_func.__name__}".removeprefix("stentor.")
    forms = {tuple(map(form, signature)) for signature in one.signatures}
    print(name, len(one.signatures), len(forms))
"""


def test_a_kernel_has_one_signature(tmp_path):
    # A cache of its own: what is loaded does not tell what it was made of. Optimising changes no
    # type.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COUNT],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_OPT": "0", "STENTOR_QUIET": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = {name: (int(n), int(f)) for name, n, f in map(str.split, done.stdout.splitlines())}
    assert sum(signatures for signatures, _ in found.values()) > 400
    # While a tree is changed its arrays can be written, and while it is asked they cannot.
    assert {name for name, (n, forms) in found.items() if forms > 1 or n > 2} == set(SEVERAL)
