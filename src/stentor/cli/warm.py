"""`stentor warm`: compile kernels ahead."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import typer

from stentor.engine.cold import Compilation
from stentor.engine.warm import compile_kernels, warmable
from stentor.errors import SettingsError


def command(
    structures: Annotated[
        list[str] | None,
        typer.Argument(metavar="[STRUCTURE]…", help="What to compile; without any, everything."),
    ] = None,
) -> None:
    """Compile the kernels of STRUCTURE… ahead, so that no engine has to wait for them.

    They are kept in the user's cache folder; what is there already takes no time.

        stentor warm scan ap_tree
    """
    names = list(dict.fromkeys(structures or warmable()))
    unknown = [name for name in names if name not in warmable()]
    if unknown:
        raise SettingsError(f"no structure {unknown[0]!r}; there are {', '.join(warmable())}")
    _compile(names[0])  # alone: most of what it needs, all the others need
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(_compile, names[1:]))


def _compile(name: str) -> None:
    compilation = Compilation(name)
    was_there = compilation.is_compiled()
    compilation.begin(is_small=False)
    if not compilation.is_compiled():
        compile_kernels(name)  # no child could be started, or it failed: here one sees why
    print(f"{name}: {'compiled before' if was_there else 'compiled'}")
