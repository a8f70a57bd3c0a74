"""The settings of a BE*-Tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stentor.errors import SettingsError
from stentor.index.be_star_tree.layout import BEKernelSettings

SPLITS: Final = ("exhaustive", "approximate")
LOSSES: Final = ("popularity", "histogram")
RANKS: Final = ("mean", "sum")


@dataclass(frozen=True)
class BEStarTreeSettings:
    """The defaults were tuned: docs/papers/be_star_tree.md."""

    capacity: int = 64
    """Records in a leaf before it overflows: the paper's A."""
    alpha: float = 0.1
    """The share of an overflowing bucket that the left and the right one must get at least."""
    beta: float = 4.0
    """How many times as long a bucket may become by one record before a new one is put above it."""
    split: str = "exhaustive"
    """How a bucket is cut: exhaustive, approximate."""
    loss: str = "popularity"
    """What an attribute is thought to cost before it was measured: popularity, histogram."""
    rank: str = "mean"
    """Whether a p-node's rank is that of all its records (sum), or of each (mean)."""
    width: int = 128
    """Boxes of an alternative in its record; one that has more is verified."""
    apart: bool = True
    """Whether siblings are kept apart by the average width of events' ranges."""
    window: int = 128
    """Events that losses are measured over; 0: never."""
    recycle: float = 0.02
    """Predicates tested in vain, by event and record, from which on a p-node is recycled."""

    def __post_init__(self) -> None:
        whole = {"capacity": (1, 1 << 20), "width": (1, 1000), "window": (0, 1 << 20)}
        for name, (least, most) in whole.items():
            self._check(name, least, most, "a whole number")
        self._check("alpha", 0.0, 0.5, "a share")
        self._check("beta", 1.0, 1e300, "a number")
        self._check("recycle", 0.0, 1e300, "a number")
        for name, known in (("split", SPLITS), ("loss", LOSSES), ("rank", RANKS)):
            if getattr(self, name) not in known:
                raise SettingsError(
                    f"be_star_tree: {name}={getattr(self, name)}; there are {', '.join(known)}"
                )

    def _check(self, name: str, least: float, most: float, what: str) -> None:
        value = getattr(self, name)
        if not least <= value <= most:
            raise SettingsError(
                f"be_star_tree: {name}={value}; expected {what} from {least:g} to {most:g}"
            )

    @property
    def for_kernels(self) -> BEKernelSettings:
        """The settings that kernels take."""
        return BEKernelSettings(
            self.capacity,
            self.alpha,
            self.beta,
            self.split == "exhaustive",
            self.loss == "histogram",
            self.rank == "sum",
            self.width,
            max(self.recycle, 1e-9),
        )
