"""How wide the cells of each level should be (section 5).

Wide cells catch more intervals in the level that is meant for them; narrow ones are stabbed by
fewer values. The best widths catch the most while a value stabs no more than η cells on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from stentor.encoding.columns import Float64
from stentor.index.mo_tree.densities import Densities, integrate

#: Widths of a level that are tried, from the least to the greatest.
POINTS = 17
_HALVINGS = 40
_GOLDEN = (5.0**0.5 - 1.0) / 2.0
#: By how much adding up in another order may exceed η.
ROUNDING = 1e-9


def linear_targets(levels: int) -> tuple[float, ...]:
    """The widest intervals that each level is meant for, i / L. Paper: Lemma 2."""
    return tuple((level + 1) / levels for level in range(levels))


def even_targets(counts: Sequence[int], densities: Densities) -> tuple[float, ...]:
    """Targets with which each cell gets as many intervals as any other. Paper: equation 1."""
    grid = np.unique(np.append(np.linspace(0.0, 1.0, 129), densities.kinks))
    pieces = [
        integrate(densities.width, start, stop, densities.kinks)
        for start, stop in pairwise(grid.tolist())
    ]
    below = np.concatenate([[0.0], np.cumsum(pieces)])
    shares = np.cumsum(counts) / sum(counts) * below[-1]
    return (*np.interp(shares[:-1], below, grid).tolist(), 1.0)


def width_bounds(count: int, target: float) -> tuple[float, float]:
    """The least and the greatest useful width of cells for intervals up to *target*.

    Paper: Lemma 3.
    """
    if count == 1:
        return 1.0, 1.0
    return target, (target * (count - 1) + 1.0) / count


def stabbed(count: int, width: float, densities: Densities) -> float:
    """How many of *count* cells of *width* a value stabs on average. Paper: equation 2."""
    starts = _starts(count, width)
    inside = densities.value_cdf(starts + width) - densities.value_cdf(starts)
    return float(inside.sum())


def success_rate(count: int, width: float, x: Float64, densities: Densities) -> Float64:
    """The share of intervals of width *x* that some cell contains: r. Paper: equation 4."""
    apart = _apart(count, width)
    starts = _starts(count, width).reshape(-1, *[1] * x.ndim)
    reach = np.maximum(width - x, 0.0)  # a low end so far from a cell's start is inside
    inside = (densities.low_cdf(starts + reach, x) - densities.low_cdf(starts, x)).sum(axis=0)
    return np.where(width - x >= apart, 1.0, np.minimum(inside, 1.0))


def intercepted(count: int, width: float, above: float, target: float, dens: Densities) -> float:
    """The share of all intervals, wider than *above*, up to *target*, that the level catches.

    Paper: equation 6.
    """
    overlap = (count * width - 1.0) / (count - 1) if count > 1 else 1.0  # Lemma 1

    def caught(x: Float64) -> Float64:
        return success_rate(count, width, x, dens) * dens.width(x)

    return integrate(caught, above, target, np.append(dens.kinks, [overlap, width]))


class Levels:
    """The problem: what each level catches, and how often it is stabbed, by its width."""

    def __init__(
        self, counts: Sequence[int], targets: Sequence[float], densities: Densities
    ) -> None:
        self.counts, self.targets, self.densities = counts, targets, densities
        self.bounds = [width_bounds(*pair) for pair in zip(counts, targets, strict=True)]

    def caught(self, widths: Sequence[float]) -> float:
        """The share of intervals that their own levels catch."""
        return sum(self.gain(level, width) for level, width in enumerate(widths))

    def expected(self, widths: Sequence[float]) -> float:
        """The cells that a value stabs on average."""
        return sum(self.cost(level, width) for level, width in enumerate(widths))

    def gain(self, level: int, width: float) -> float:
        above = self.targets[level - 1] if level else 0.0
        return intercepted(self.counts[level], width, above, self.targets[level], self.densities)

    def cost(self, level: int, width: float) -> float:
        return stabbed(self.counts[level], width, self.densities)


def best_widths(levels: Levels, most: float, *, exact: bool = True) -> tuple[float, ...]:
    """The widths that catch the most intervals while a value stabs at most *most* cells.

    The greatest widths where these do, and the least where even those exceed *most*. Not *exact*,
    they are the best of POINTS widths for each level. Cost: milliseconds, exactly about a second.

    Paper: equation 7, Theorem 1.
    """
    least, greatest = zip(*levels.bounds, strict=True)
    if levels.expected(greatest) <= most + ROUNDING:
        return tuple(greatest)
    if levels.expected(least) > most + ROUNDING:
        return tuple(least)
    of_grid = _best_of_grid(levels, most)
    if not exact:
        return of_grid
    by_multiplier = _by_multiplier(levels, most)
    return max(of_grid, by_multiplier, key=levels.caught)


def _best_of_grid(levels: Levels, most: float) -> tuple[float, ...]:
    """The best of all combinations of a few widths for each level.

    Of the combinations for the levels so far only those are kept that catch more than all cheaper
    ones, so the number of them stays small.
    """
    cost, gain = np.zeros(1), np.zeros(1)
    rest = [min(levels.cost(i, width) for width in pair) for i, pair in enumerate(levels.bounds)]
    picks = np.zeros((1, 0))
    for level, (low, high) in enumerate(levels.bounds):
        widths = np.unique(np.linspace(low, high, POINTS))
        costs = np.array([levels.cost(level, width) for width in widths])
        gains = np.array([levels.gain(level, width) for width in widths])
        cost = (cost[:, np.newaxis] + costs).reshape(-1)
        gain = (gain[:, np.newaxis] + gains).reshape(-1)
        picks = np.concatenate(
            [np.repeat(picks, len(widths), axis=0), np.tile(widths, len(picks))[:, np.newaxis]],
            axis=1,
        )
        order = np.lexsort((-gain, cost))
        order = order[cost[order] + sum(rest[level + 1 :]) <= most + ROUNDING]
        best = np.maximum.accumulate(gain[order])
        kept = order[np.append(True, best[1:] > best[:-1])[: len(order)]]
        cost, gain, picks = cost[kept], gain[kept], picks[kept]
    return tuple(picks[-1].tolist())


def _by_multiplier(levels: Levels, most: float) -> tuple[float, ...]:
    """The widths at which each level gains the same λ for one more stabbed cell (Theorem 1)."""

    def widths_at(price: float) -> tuple[float, ...]:
        return tuple(_best_at(levels, level, price) for level in range(len(levels.bounds)))

    low, high = 0.0, 1.0
    while levels.expected(widths_at(high)) > most and high < 1e9:
        high *= 2.0
    for _ in range(_HALVINGS):
        price = (low + high) / 2.0
        if levels.expected(widths_at(price)) > most:
            low = price
        else:
            high = price
    found = widths_at(high)
    return (
        found
        if levels.expected(found) <= most + ROUNDING
        else tuple(bound[0] for bound in levels.bounds)
    )


def _best_at(levels: Levels, level: int, price: float) -> float:
    """The width of *level* at which what it catches, less its cost at *price*, is greatest."""

    def worth(width: float) -> float:
        return levels.gain(level, width) - price * levels.cost(level, width)

    low, high = levels.bounds[level]
    grid = np.linspace(low, high, POINTS)
    best = int(np.argmax([worth(width) for width in grid]))
    low, high = float(grid[max(0, best - 1)]), float(grid[min(POINTS - 1, best + 1)])
    for _ in range(_HALVINGS):
        one, other = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if worth(one) < worth(other):
            low = one
        else:
            high = other
    return (low + high) / 2.0


def _starts(count: int, width: float) -> Float64:
    """Where each of *count* cells of *width* begins."""
    return np.asarray(np.arange(count) * _apart(count, width), np.float64)


def _apart(count: int, width: float) -> float:
    return (1.0 - width) / (count - 1) if count > 1 else 0.0
