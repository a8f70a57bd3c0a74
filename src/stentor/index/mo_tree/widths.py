"""How wide the cells of each level should be, by what was measured (section 5).

Wide cells catch more intervals in the level that is meant for them; narrow ones are stabbed by
fewer values. The best widths catch the most while a value stabs no more than η cells on average.
Domains run from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from stentor.encoding.columns import Float64

#: Histogram bins of measured widths, of where intervals of one width lie, and of values.
WIDTH_BINS, LOW_BINS, VALUE_BINS = 16, 32, 64
#: Intervals that are as good as equally wide.
NARROWEST = 1e-9
#: Nodes and weights that integrate polynomials up to degree 15 exactly, from −1 to 1.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
#: Widths of a level that are tried, from the least to the greatest.
POINTS = 17
_HALVINGS = 40
_GOLDEN = (5.0**0.5 - 1.0) / 2.0
#: By how much adding up in another order may exceed η.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Densities:
    """The densities that cells are fitted to; any function will do.

    *low_cdf(y, x)* is the share of the intervals of width x whose low end is at most y.
    """

    width: Callable[[Float64], Float64]  # P_w(x)
    low_cdf: Callable[[Float64, Float64], Float64]  # of P_l(y | x), added up
    value_cdf: Callable[[Float64], Float64]  # of P_e(z), added up
    kinks: Float64 = field(default_factory=lambda: np.array([0.0, 1.0]))  # where P_w is not smooth


def uniform() -> Densities:
    """Both ends of an interval anywhere, and values too: the example of section 5.3."""
    return Densities(lambda x: 2.0 * (1.0 - x), _low_anywhere, _value_anywhere)


def zipf(exponent: float = 1.0, narrowest: float = 0.01) -> Densities:
    """Widths by Zipf's law: (x + narrowest)^−exponent; intervals and values lie anywhere."""

    def weight(x: Float64) -> Float64:
        powers: Float64 = (x + narrowest) ** -exponent
        return powers

    kinks = np.concatenate([[0.0], np.geomspace(narrowest, 1.0, 16)])
    total = integrate(weight, 0.0, 1.0, kinks)
    return Densities(lambda x: weight(x) / total, _low_anywhere, _value_anywhere, kinks)


def measured(low: Float64, high: Float64, values: Float64) -> Densities:
    """The densities of a sample of intervals and of values, as histograms."""
    width = high - low
    edges = np.unique(np.quantile(width, np.linspace(0.0, 1.0, WIDTH_BINS + 1)))
    if edges[-1] - edges[0] < NARROWEST:
        edges = np.array([max(0.0, edges[0] - NARROWEST), edges[0] + NARROWEST])
    shares = np.histogram(width, edges)[0] / len(width)
    heights = shares / np.diff(edges)
    bins = len(heights)
    of = np.clip(np.searchsorted(edges, width, side="right") - 1, 0, bins - 1)
    at = np.divide(low, 1.0 - width, out=np.zeros_like(low), where=width < 1.0)
    column = np.clip((at * LOW_BINS).astype(np.int64), 0, LOW_BINS - 1)
    counts = np.zeros((bins, LOW_BINS + 1))
    np.add.at(counts, (of, column + 1), 1.0)
    lows = np.cumsum(counts, axis=1)
    lows /= np.maximum(lows[:, -1:], 1.0)
    value_share = np.histogram(np.clip(values, 0.0, 1.0), VALUE_BINS, (0.0, 1.0))[0]
    below = np.concatenate([[0.0], np.cumsum(value_share / max(1, len(values)))])
    value_edges = np.linspace(0.0, 1.0, VALUE_BINS + 1)

    def density(x: Float64) -> Float64:
        position = np.searchsorted(edges, x, side="right") - 1
        inside = (position >= 0) & (position < bins)
        return np.where(inside, heights[np.clip(position, 0, bins - 1)], 0.0)

    def low_cdf(y: Float64, x: Float64) -> Float64:
        position = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, bins - 1)
        share = np.clip(y / np.maximum(1.0 - x, NARROWEST), 0.0, 1.0) * LOW_BINS
        left = np.minimum(share.astype(np.int64), LOW_BINS - 1)
        start = lows[position, left]
        total: Float64 = start + (share - left) * (lows[position, left + 1] - start)
        return total

    return Densities(
        density, low_cdf, lambda z: np.interp(z, value_edges, below), np.append(edges, [0.0, 1.0])
    )


def integrate(
    function: Callable[[Float64], Float64], start: float, stop: float, kinks: Float64
) -> float:
    """The integral of *function* from *start* to *stop*, piece by piece between *kinks*."""
    if stop <= start:
        return 0.0
    inner = kinks[(kinks > start) & (kinks < stop)]
    ends = np.concatenate([[start], np.unique(inner), [stop]])
    half = np.diff(ends)[:, np.newaxis] / 2.0
    middle = (ends[:-1, np.newaxis] + ends[1:, np.newaxis]) / 2.0
    return float((half * _WEIGHTS * function(middle + half * _NODES)).sum())


def _low_anywhere(y: Float64, x: Float64) -> Float64:
    return np.clip(y / np.maximum(1.0 - x, NARROWEST), 0.0, 1.0)


def _value_anywhere(z: Float64) -> Float64:
    return np.clip(z, 0.0, 1.0)


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


def caught_share(count: int, width: float, above: float, target: float, dens: Densities) -> float:
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
        return caught_share(self.counts[level], width, above, self.targets[level], self.densities)

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
