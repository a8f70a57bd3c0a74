"""The settings of an AP-Tree; the words of its variants are these fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stentor.errors import SettingsError

#: Values of the settings that are words; the first is the default.
WORDS: Final = {
    "order": ("rare", "frequent"),
    "partition": ("heuristic", "dp", "even"),
    "priority": ("cost", "keywords", "space"),
    "messages": ("tree", "keywords", "space"),
    "places": ("centres", "area"),
}


@dataclass(frozen=True, slots=True)
class ApTreeSettings:
    """The defaults are tuned (docs/papers/ap_tree.md); `PAPER` has the paper's values."""

    fanout: int = 16384  # f: most cuts or cells of a node
    leaf: int = 32  # θ_p: a leaf with more is split, if that gains something
    grain: float = 2.0  # cuts or cells of a node by what it holds: so many to fill a leaf; 0: f
    order: str = "rare"  # which keywords come first: those that few entries have, or many
    partition: str = "heuristic"  # of keywords: Algorithm 3, Algorithm 2, or equal weights
    priority: str = "cost"  # or always by keywords (space) first where that gains something
    visit: float = 8.0  # what visiting a node costs, in subscriptions that are compared
    lookahead: bool = True  # whether the cost of a partition counts what its children will do
    places: str = "centres"  # where events are, without a history: as the centres, or anywhere
    terms: float = 8.0  # how many terms an event has, without a history
    copies: float = 3.0  # most copies of a subscription in all, on average
    rebuilds: bool = True  # whether a node whose distribution has changed is rebuilt
    divergence: float = 0.02  # θ_KL: when it has; beyond what chance makes of that
    share: float = 0.001  # only of nodes with this share of all entries
    collapse: float = 1.0  # a node with less than this part of a leaf becomes one
    moving: bool = True  # whether what moves costs is weighed too: AP+-Tree
    messages: str = "tree"  # where live events are listed: in the leaves, or AP+k, AP+s
    duplicates: int = 64  # most nodes that list one live event, before it stays further up

    def __post_init__(self) -> None:
        for name, least in (("fanout", 2), ("leaf", 1), ("duplicates", 1)):
            if getattr(self, name) < least:
                raise SettingsError(f"ap_tree: {name} is {getattr(self, name)}; at least {least}")
        for name in ("grain", "visit", "terms", "divergence", "share", "collapse"):
            if not getattr(self, name) >= 0:
                raise SettingsError(f"ap_tree: {name} is {getattr(self, name)}; at least 0")
        if not self.copies >= 1:
            raise SettingsError(f"ap_tree: copies is {self.copies}; at least 1")
        for name, words in WORDS.items():
            if getattr(self, name) not in words:
                raise SettingsError(
                    f"ap_tree: {name} is {getattr(self, name)!r}; one of {', '.join(words)}"
                )


#: Section 5.1.1: f = 200, θ_p = 40, θ_KL = 0.001, most frequent keyword first, uniform locations.
PAPER: Final = ApTreeSettings(
    fanout=200,
    leaf=40,
    grain=0.0,
    order="frequent",
    visit=0.0,
    lookahead=False,
    places="area",
    copies=8.0,
    divergence=0.001,
)

PRESETS: Final = {"paper": PAPER}
