"""Index classes by name; a structure is imported when it is first asked for."""

from __future__ import annotations

import difflib
import importlib
from typing import cast

from stentor.encoding.columns import SubscriptionColumns, empty
from stentor.errors import SettingsError
from stentor.index.contract import Index
from stentor.index.layered import Layered, layered
from stentor.index.structure import Structure
from stentor.index.variants import variant

#: Where each structure's class stands.
_STRUCTURES = {
    "scan": ("stentor.index.scan", "Scan"),
    "mo_tree": ("stentor.index.mo_tree", "MoTree"),
    "ap_tree": ("stentor.index.ap_tree", "ApTree"),
    "mics": ("stentor.index.mics", "Mics"),
}

#: What turns the name of a structure into that of its layered form.
_LAYERED = " layered"

AUTO = "auto"


def names() -> list[str]:
    """Every index there is, with its own settings: each structure in place, and layered.

    >>> names()[:2]
    ['scan', 'scan layered']
    """
    return [name + form for name in _STRUCTURES for form in ("", _LAYERED)]


def index_class(name: str, columns: SubscriptionColumns | None = None) -> type[Index]:
    """The class called *name*; for 'auto' what `choose` says of *columns*, where they are known.

    Words after the name of a structure are its settings (`variants.py`); the last may say that it
    is layered.
    """
    words = name.split()
    if words == [AUTO]:
        words = choose(empty(SubscriptionColumns) if columns is None else columns).split()
    is_layered = words[-1:] == [_LAYERED.strip()]
    structure = structure_class(" ".join(words[:-1] if is_layered else words))
    return layered(structure) if is_layered else structure


def structure_class(name: str) -> type[Structure]:
    """The class of the structure that *name* says, with its settings."""
    base, *settings = name.split() or [""]
    if base not in _STRUCTURES:
        known = [AUTO, *names()]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise SettingsError(f"no index {name!r}; {hint}there are {', '.join(known)}")
    module, class_name = _STRUCTURES[base]
    structure = getattr(importlib.import_module(module), class_name)
    return variant(structure, tuple(settings))


def structure_of(index: type[Index]) -> type[Structure]:
    """The structure that *index* is, or that it is a layered form of."""
    return index.structure if issubclass(index, Layered) else cast("type[Structure]", index)


def choose(columns: SubscriptionColumns) -> str:
    """The name of the index that suits *columns*: 'scan', which serves every workload.

    >>> choose(empty(SubscriptionColumns))
    'scan'
    """
    return "scan"
