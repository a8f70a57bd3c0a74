"""Named tuples of arrays among the arrays of a folder: each under a prefix of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar, cast

import numpy.typing as npt

from stentor.errors import FolderError
from stentor.index.storage import Arrays

Bundle = TypeVar("Bundle", bound=tuple[npt.NDArray[Any], ...])


def with_prefix(prefix: str, bundle: tuple[npt.NDArray[Any], ...]) -> Arrays:
    """The arrays of *bundle*, a named tuple, as `write_arrays` takes them."""
    named = cast("NamedTuple", bundle)._asdict()
    return {f"{prefix}.{name}": array for name, array in named.items()}


def bundle_of(kind: type[Bundle], prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Bundle:
    """The named tuple *kind* that was written under *prefix*."""
    names = [f"{prefix}.{name}" for name in cast("type[NamedTuple]", kind)._fields]
    for name in names:
        if name not in arrays:
            raise FolderError(f"the folder has no array {name}; write it again with this Stentor")
    return kind(*(arrays[name] for name in names))
