"""Index classes by name; a structure is imported when it is first asked for."""

from __future__ import annotations

import difflib
import importlib
from typing import cast

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import (
    BOX,
    NEGATED,
    ONE_OF,
    SPAN,
    SPANS,
    TERMS,
    SubscriptionColumns,
    empty,
)
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
    "be_star_tree": ("stentor.index.be_star_tree", "BEStarTree"),
    "mics": ("stentor.index.mics", "Mics"),
}

#: What turns the name of a structure into that of its layered form.
_LAYERED = " layered"

AUTO = "auto"
#: Alternatives from which an index other than the scan pays, and the share of them that decides.
_MANY, _VERY_MANY, _MOST = 20_000, 100_000, 0.5


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
    """The name of the index that suits *columns*, by rules that were measured (docs/engine.md).

    >>> choose(empty(SubscriptionColumns))
    'scan'
    """
    alternatives = len(columns.predicate_start) - 1
    if alternatives < _MANY:
        return "scan"
    kind = columns.kind
    of_words = _share(columns, np.isin(kind, (TERMS, ONE_OF)), 1)
    if of_words >= _MOST:
        return "ap_tree"
    is_region = (kind >= BOX) & (kind < NEGATED)
    places = _share(columns, is_region, 1)
    bounds = _share(columns, is_region | (kind == SPAN) | (kind == SPANS), 3)
    return "mo_tree" if alternatives >= _VERY_MANY and min(places, bounds) >= _MOST else "scan"


def _share(columns: SubscriptionColumns, chosen: npt.NDArray[np.bool_], least: int) -> float:
    """The share of alternatives that have at least so many *chosen* predicates."""
    before = np.concatenate([[0], np.cumsum(chosen)])
    counts = before[columns.predicate_start[1:]] - before[columns.predicate_start[:-1]]
    return float(np.mean(counts >= least))
