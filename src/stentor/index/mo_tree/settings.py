"""The settings of a MO-Tree."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stentor.errors import SettingsError

#: More buckets than this would take gigabytes while they are still empty.
MOST_BUCKETS = 1 << 24

LINEAR, HALVING = "linear", "halving"
QUANTILES, WIDTHS = "quantiles", "widths"


@dataclass(frozen=True)
class MoTreeSettings:
    """The shape of the tree; the defaults are what the benchmark found best."""

    layers: int = 3  # H: indexing attributes, at most
    levels: int = 4  # L: of cells for intervals in each layer
    growth: str = HALVING  # cells from the top level down: 1, 2, 3, … or 1, 3, 7, …
    stabbed: float = math.inf  # η: cells of a layer that a value stabs on average, at most
    event_cells: int = 33  # of a layer, for values; the null cell is one of them
    pieces: str = QUANTILES  # of a domain, alike: in how much lies in them, or in width

    def __post_init__(self) -> None:
        _within("layers", self.layers, 1, 8)
        _within("levels", self.levels, 1, 16)
        _within("event_cells", self.event_cells, 2, 1 << 16)
        if self.growth not in (LINEAR, HALVING):
            raise SettingsError(f"growth={self.growth}; expected {LINEAR} or {HALVING}")
        if self.pieces not in (QUANTILES, WIDTHS):
            raise SettingsError(f"pieces={self.pieces}; expected {QUANTILES} or {WIDTHS}")
        if math.isnan(self.stabbed) or self.stabbed < 1.0:
            raise SettingsError(
                f"stabbed={self.stabbed}: every value stabs the cell of the whole domain; "
                "take 1 or more, or inf for the widest cells"
            )
        for what, cells in (
            ("intervals", sum(self.level_counts)),
            ("events", self.event_cells),
        ):
            if cells**self.layers > MOST_BUCKETS:
                raise SettingsError(
                    f"{cells} cells for {what} in {self.layers} layers make "
                    f"{cells**self.layers:,} buckets, of at most {MOST_BUCKETS:,}; "
                    "take fewer layers, levels or event_cells"
                )

    @property
    def level_counts(self) -> tuple[int, ...]:
        """Cells of each level, the bottom first; the top one is the whole domain."""
        above = range(self.levels - 1, -1, -1)
        if self.growth == LINEAR:
            return tuple(level + 1 for level in above)
        return tuple((2 << level) - 1 for level in above)


def _within(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise SettingsError(f"{name}={value}; expected {least} to {most}")


#: Section 6.1: six layers, four levels of 4, 3, 2, 1 cells, η = 6.5, ten cells for events.
PAPER = MoTreeSettings(
    layers=6, levels=4, growth=LINEAR, stabbed=6.5, event_cells=10, pieces=WIDTHS
)
