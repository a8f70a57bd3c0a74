"""The papers' rivals by name, as the product's catalogue has its structures.

A rival is imported when it is first named; whatever is no rival is a structure of the product, so
that one name serves every experiment.
"""

from __future__ import annotations

import importlib
from typing import Final, NamedTuple

from stentor.encoding.columns import SubscriptionColumns
from stentor.index.catalog import AUTO, choose, structure_class
from stentor.index.structure import Structure


class RivalEntry(NamedTuple):
    """Where a rival is, how figures call it, whose it is, and how ours relates to a public one."""

    module: str
    class_name: str
    shown: str
    source: str
    public: str


_HERE = "stentor_lab.baselines"
_NONE = "no public program known; written from its paper"
_PUBLIC = "github.com/xizeroplus/matching-algorithm has one in C++; ours has"
_IN_PYTHON = "the authors give theirs on request; ours has both phases, is built in Python"
RIVALS: Final = {
    "row_scan": RivalEntry(
        f"{_HERE}.row_scan",
        "RowScan",
        "SCAN",
        "a sequential scan; every paper's naive rival",
        "none needed",
    ),
    "iq_tree": RivalEntry(
        f"{_HERE}.iq_tree",
        "IqTree",
        "IQ-Tree",
        "Chen, Cong, Cao: An efficient query indexing mechanism for filtering geo-textual data",
        _NONE,
    ),
    "rq_tree": RivalEntry(
        f"{_HERE}.rq_tree",
        "RqTree",
        "RQ-Tree",
        "the AP-Tree paper, section 5.1.1",
        _NONE,
    ),
    "ss_index": RivalEntry(
        f"{_HERE}.ss_index",
        "SsIndex",
        "SS-Index",
        "the AP-Tree paper, section 5.2.1",
        _NONE,
    ),
    "kk_index": RivalEntry(
        f"{_HERE}.kk_index",
        "KkIndex",
        "KK-Index",
        "the AP-Tree paper, section 5.2.1",
        _NONE,
    ),
    "rt_tree": RivalEntry(
        f"{_HERE}.rt_tree",
        "RtTree",
        "R^t-Tree",
        "Li, Wang, Wang, Feng: Location-aware publish/subscribe (2013)",
        "the papers used its authors’ program, which is not public",
    ),
    "k_index": RivalEntry(
        f"{_HERE}.k_index",
        "KIndex",
        "k-index",
        "Whang et al.: Indexing Boolean expressions (2009)",
        _NONE,
    ),
    "propagation": RivalEntry(
        f"{_HERE}.propagation",
        "Propagation",
        "Propagation",
        "Fabret et al.: Filtering algorithms (2001)",
        _NONE,
    ),
    "gryphon": RivalEntry(
        f"{_HERE}.gryphon",
        "Gryphon",
        "Gryphon",
        "Aguilera et al.: Matching events in a content-based system (1999)",
        _NONE,
    ),
    "be_tree": RivalEntry(
        f"{_HERE}.be_tree",
        "BeTree",
        "BE-Tree",
        "Sadoghi, Jacobsen: BE-Tree (2011)",
        _IN_PYTHON,
    ),
    "tama": RivalEntry(
        f"{_HERE}.tama",
        "Tama",
        "TAMA",
        "Zhao, Wu: Towards approximate event processing (2011)",
        f"{_PUBLIC} its levels and its counting, and verifies",
    ),
    "op_index": RivalEntry(
        f"{_HERE}.op_index",
        "OpIndex",
        "OpIndex",
        "Zhang, Chan, Tan: An efficient index for e-commerce databases (2014)",
        f"{_PUBLIC} its pivots and operators",
    ),
    "beq_tree": RivalEntry(
        f"{_HERE}.beq_tree",
        "BeqTree",
        "BEQ-Tree",
        "Guo et al.: Location-aware pub/sub system, Elaps (2015)",
        f"{_PUBLIC} its cells and sorted lists",
    ),
    "r_star_tree": RivalEntry(
        f"{_HERE}.r_star_tree",
        "RStarTree",
        "R*-Tree",
        "Beckmann et al.: The R*-tree (1990)",
        "libspatialindex itself, the one that the MO-Tree paper used, through the package rtree",
    ),
}


def rival_names() -> list[str]:
    """Every rival there is."""
    return list(RIVALS)


def any_structure(name: str, columns: SubscriptionColumns | None = None) -> type[Structure]:
    """The rival called *name*, else the product's structure; `auto` chooses for *columns*."""
    if name in RIVALS:
        entry = RIVALS[name]
        found: type[Structure] = getattr(importlib.import_module(entry.module), entry.class_name)
        return found
    if name == AUTO and columns is not None:
        return structure_class(choose(columns))
    return structure_class(name)


def shown_name(name: str) -> str:
    """How figures call the structure *name*."""
    if name in RIVALS:
        return RIVALS[name].shown
    return _SHOWN.get(name, name)


_SHOWN: Final = {
    "scan": "block scan",
    "ap_tree": "AP-Tree (tuned)",
    "ap_tree paper": "AP-Tree",
    "be_star_tree": "BE*-Tree (tuned)",
    "mo_tree": "MO-Tree (tuned)",
    "mo_tree paper": "MO-Tree",
    "mics": "MICS (tuned)",
    "mics paper": "MICS",
}
