"""How wide intervals are, where they lie, and where the values of events lie (section 5.1).

Everything is in a domain that runs from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from stentor.encoding.columns import Float64

#: Of measured widths, of where intervals of one width lie, and of values.
WIDTH_BINS, LOW_BINS, VALUE_BINS = 16, 32, 64
#: Intervals that are as good as equally wide.
NARROWEST = 1e-9

#: Nodes and weights that integrate polynomials up to degree 15 exactly, from −1 to 1.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


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
        place = np.searchsorted(edges, x, side="right") - 1
        inside = (place >= 0) & (place < bins)
        return np.where(inside, heights[np.clip(place, 0, bins - 1)], 0.0)

    def low_cdf(y: Float64, x: Float64) -> Float64:
        place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, bins - 1)
        share = np.clip(y / np.maximum(1.0 - x, NARROWEST), 0.0, 1.0) * LOW_BINS
        left = np.minimum(share.astype(np.int64), LOW_BINS - 1)
        start = lows[place, left]
        total: Float64 = start + (share - left) * (lows[place, left + 1] - start)
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
