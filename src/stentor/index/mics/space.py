"""The content space that several parties agree on: named dimensions, cells, one curve through them.

Whoever has it turns subscriptions and events into the same numbers: a broker, its neighbour, or a
client that takes this work off its broker (MICS, section 6.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from numbers import Real
from typing import Any, Final, Self

import numpy as np

from stentor.encoding.columns import EventColumns, SubscriptionColumns, all_read_only
from stentor.encoding.partition import Partition
from stentor.errors import SettingsError
from stentor.index.bounds import AXIS_NAMES
from stentor.index.mics.attributes import choose_dimensions, partition_of
from stentor.index.mics.bounds import Axes
from stentor.index.mics.postings import MOST_KEY_BITS
from stentor.index.mics.projection import Projection
from stentor.index.mics.settings import EQUAL, MicsSettings
from stentor.model import Schema

#: About how many ranges a box has while numbers of dimensions are compared.
RANGES: Final = 8
AXES: Final = {name: axis for axis, name in AXIS_NAMES.items()}


def _is_number(number: object) -> bool:
    try:
        return isinstance(number, Real) and isfinite(number)
    except (OverflowError, TypeError):  # NumPy takes a span of time for a number
        return False


def _float(raw: Any) -> float:
    if np.iscomplexobj(raw):  # of which NumPy would leave out a part
        raise TypeError(f"{raw!r} is no real number")
    return float(raw)


def _are(many: object, kind: type) -> bool:
    return isinstance(many, tuple) and all(isinstance(one, kind) for one in many)


@dataclass(frozen=True)
class Dimension:
    """An attribute from *low* to *high*, or one axis of a location.

    What lies outside is in the first or the last cell. Strings count by their first bytes, as
    columns hold them; `Space.chosen` knows where they lie.
    """

    attribute: str
    low: float
    high: float
    axis: str = "value"  # or x, y
    edges: tuple[float, ...] = ()  # where each cell but the first begins; none: equal cells

    def __post_init__(self) -> None:
        if not isinstance(self.attribute, str):
            raise SettingsError(f"an attribute's name is a text, got {self.attribute!r}")
        if str(self.axis) not in AXES:
            raise SettingsError(f"axis={self.axis!r} of {self.attribute!r}; expected value, x or y")
        if not _are(self.edges, Real) or not all(map(_is_number, self.edges)):
            raise SettingsError(f"edges of {self.attribute!r} are numbers in a tuple")
        if not (_is_number(self.low) and _is_number(self.high) and self.low < self.high):
            raise SettingsError(
                f"{self.attribute!r} goes from {self.low} to {self.high}; expected low < high"
            )


@dataclass(frozen=True)
class Space:
    """Some dimensions, each cut into 2^bits − 1 cells and one for what has no value.

    >>> space = Space((Dimension("price", 0, 1000), Dimension("stock", 0, 100)), bits=4)
    >>> Space.from_dict(space.to_dict()) == space
    True
    """

    dimensions: tuple[Dimension, ...]
    bits: int = 8

    def __post_init__(self) -> None:
        if not _are(self.dimensions, Dimension):
            raise SettingsError("dimensions are Dimensions in a tuple")
        if type(self.bits) is not int or self.bits < 1:
            raise SettingsError(f"bits={self.bits!r}; expected a whole number of at least 1")
        if not self.dimensions or len(self.dimensions) * self.bits > MOST_KEY_BITS:
            raise SettingsError(
                f"{len(self.dimensions)} dimensions × {self.bits} bits; expected at least one "
                f"dimension and at most {MOST_KEY_BITS} bits in all"
            )
        for one in self.dimensions:
            cells = (1 << self.bits) - 1
            if one.edges and (len(one.edges) != cells - 1 or list(one.edges) != sorted(one.edges)):
                raise SettingsError(
                    f"{one.attribute!r} has {len(one.edges)} edges; expected {cells - 1}, ascending"
                )
        if len({(one.attribute, one.axis) for one in self.dimensions}) < len(self.dimensions):
            raise SettingsError(
                "two dimensions are the same; expected each attribute and axis once"
            )
        if len({bool(one.edges) for one in self.dimensions}) > 1:
            raise SettingsError("some dimensions have edges; expected all of them or none")
        _ = self.partition

    @classmethod
    def chosen(
        cls,
        columns: SubscriptionColumns,
        schema: Schema,
        *,
        dimensions: int = 3,
        bits: int = 8,
        cells: str = EQUAL,
        history: EventColumns | None = None,
    ) -> Self:
        """The most selective dimensions for the subscriptions *columns*, *dimensions* at most.

        With `cells="variable"` cells are finer where the events of *history* gather, or, without
        it, where subscriptions begin and end (section 6.3).
        """
        settings = MicsSettings(dimensions=dimensions, bits=bits, cells=cells, ranges=RANGES)
        alternatives = np.arange(len(columns.predicate_start) - 1)
        chosen = choose_dimensions(columns, alternatives, history, settings)
        if not chosen:
            raise SettingsError(
                "the subscriptions have too few different bounds to choose from; "
                "name the dimensions"
            )
        partition = partition_of(chosen, settings)
        names = schema.by_code
        edges = [end.tolist() for end in partition.edges] or [[]] * len(chosen)
        found = (
            Dimension(names[one.attribute], low, high, AXIS_NAMES[one.axis], tuple(ends))
            for one, low, high, ends in zip(
                chosen, partition.low.tolist(), partition.high.tolist(), edges, strict=True
            )
        )
        return cls(tuple(found), bits)

    @cached_property
    def partition(self) -> Partition:
        """How the dimensions are cut."""
        low = np.array([one.low for one in self.dimensions], np.float64)
        high = np.array([one.high for one in self.dimensions], np.float64)
        edges = tuple(np.array(one.edges, np.float64) for one in self.dimensions if one.edges)
        return Partition(self.bits, low, high, edges)

    def on(self, schema: Schema) -> Projection:
        """What turns columns of *schema* into ranges; an unknown name has no value anywhere."""
        codes = [schema.code(one.attribute) for one in self.dimensions]
        axes = [AXES[one.axis] for one in self.dimensions]
        dimensions = Axes(np.array(codes, np.int32), np.array(axes, np.uint8))
        return Projection(all_read_only(dimensions), self.partition)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form, from which `from_dict` makes an equal space."""
        dimensions = [
            {
                "attribute": one.attribute,
                "low": one.low,
                "high": one.high,
                "axis": one.axis,
                "edges": list(one.edges),
            }
            for one in self.dimensions
        ]
        return {"bits": self.bits, "dimensions": dimensions}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:
        """The space that *raw* describes; a SettingsError where it describes none."""
        try:
            dimensions = tuple(
                Dimension(
                    str(one["attribute"]),
                    _float(one["low"]),
                    _float(one["high"]),
                    str(one.get("axis", "value")),
                    tuple(map(_float, one.get("edges", ()))),
                )
                for one in raw["dimensions"]
            )
            bits = int(raw.get("bits", 8))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise SettingsError(
                "a space has `dimensions`, each with attribute, low and high; "
                f"{type(error).__name__}: {error}"
            ) from None
        return cls(dimensions, bits)
