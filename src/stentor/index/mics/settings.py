"""The settings of a MICS index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stentor.encoding.partition import MOST_VARIABLE_BITS
from stentor.errors import SettingsError
from stentor.index.mics.postings import MOST_KEY_BITS

EQUAL, VARIABLE = "equal", "variable"


@dataclass(frozen=True)
class MicsSettings:
    """The space that is indexed."""

    dimensions: int = 3  # onto which the content space is projected, at most
    bits: int = 10  # of a coordinate: 2^bits cells in each dimension
    cells: str = VARIABLE  # as wide as a sample says, or equal
    ranges: int = 2  # of an alternative, about: larger boxes are made of larger cells
    filters: int = 24  # attributes whose cells are kept beside a range, at most

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("dimensions", self.dimensions, 1, 16),
            ("bits", self.bits, 2, MOST_VARIABLE_BITS),
            ("ranges", self.ranges, 1, 1 << 20),
            ("filters", self.filters, 0, 64),
        ):
            if not least <= value <= most:
                raise SettingsError(f"{name}={value}; expected {least} to {most}")
        if self.dimensions * self.bits > MOST_KEY_BITS:
            raise SettingsError(
                f"{self.dimensions} dimensions × {self.bits} bits; expected at most "
                f"{MOST_KEY_BITS} in all: take fewer dimensions or bits"
            )
        if self.cells not in (EQUAL, VARIABLE):
            raise SettingsError(f"cells={self.cells}; expected {EQUAL} or {VARIABLE}")


#: Section 7: three dimensions of 256 equal intervals. A side of 8 of them gives about 64 ranges;
#: larger boxes, which the paper does not have, would give up to 65,536.
PAPER: Final = MicsSettings(dimensions=3, bits=8, cells=EQUAL, ranges=64, filters=0)
