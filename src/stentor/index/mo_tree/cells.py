"""Values and intervals of a layer → cells (sections 4.3.1 and 4.3.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import Int64, all_read_only
from stentor.index.mo_tree.layout import PIECES, LevelCells, MoDimensions

#: The open end of a level's last cell.
BEYOND = 2.0
#: More than the errors that adding up positions from 0 to 1 can make.
ROUNDING = 1e-9


def cells_of_levels(
    counts: Sequence[int], widths: Sequence[Sequence[float]], event_cells: int
) -> LevelCells:
    """Cells of layers in which level i has counts[i] cells of widths[layer][i].

    Neighbours of a level are (1 − width) / (count − 1) apart, so that they overlap by
    (count · width − 1) / (count − 1): Lemma 1.
    """
    low, high, rate = [], [], []
    for layer in widths:
        for count, width in zip(counts, layer, strict=True):
            apart = (1.0 - width) / (count - 1) if count > 1 else 0.0
            lows = np.arange(count) * apart
            rate.append(1.0 / apart if apart > 0.0 else 0.0)
            low.append(lows)
            high.append(np.append(lows[:-1] + width, BEYOND))
    return all_read_only(
        LevelCells(
            level_start=np.cumsum([0, *counts]),
            width=np.array(widths, np.float64).reshape(-1),
            rate=np.array(rate, np.float64),
            low=np.concatenate([np.zeros(0), *low]),
            high=np.concatenate([np.zeros(0), *high]),
            event_cells=np.array([event_cells]),
        )
    )


@kernel_inline
def domain_position(dimensions: MoDimensions, dimension: int, value: float) -> float:
    """Where *value* is in its domain, 0 to 1; ascending in *value*, 0 for what is no number.

    Cost: O(log PIECES).
    """
    knot = dimensions.knot[dimension * (PIECES + 1) : (dimension + 1) * (PIECES + 1)]
    if not value > knot[0]:
        return 0.0
    if value >= knot[PIECES]:
        return 1.0
    piece, ahead = 0, PIECES // 2
    while ahead > 0:
        if knot[piece + ahead] <= value:
            piece += ahead
        ahead >>= 1
    within = (value - knot[piece]) * dimensions.rate[dimension * PIECES + piece]
    if not within > 0.0:  # infinite times zero too
        within = 0.0
    return float((piece + min(within, 1.0)) / PIECES)


@kernel
def interval_cell(cells: LevelCells, layer: int, low: float, high: float) -> int:
    """The smallest cell that contains *low* … *high*; of several the nearest by its centre.

    Cost: O(levels). Paper: section 4.3.2.
    """
    levels = len(cells.level_start) - 1
    first_cell = layer * cells.level_start[levels]
    for level in range(levels):
        start = cells.level_start[level]
        last = cells.level_start[level + 1] - 1 - start
        rate, width = cells.rate[layer * levels + level], cells.width[layer * levels + level]
        if high - low > width + ROUNDING:
            continue
        # Cells of a level are equally wide, so if one of them contains it, the nearest does.
        at = 0.5 * (low + high - width) * rate + 0.5
        nearest = min(last, max(0, int(at)))
        here = first_cell + start + nearest
        is_clear = ROUNDING < at - nearest < 1.0 - ROUNDING  # not midway between two
        if is_clear and cells.low[here] <= low and high < cells.high[here]:
            return int(start + nearest)
        chosen, distance = -1, BEYOND
        for cell in range(max(0, nearest - 1), min(last, nearest + 1) + 1):
            here = first_cell + start + cell
            if cells.low[here] <= low and high < cells.high[here]:
                away = abs(cells.low[here] + 0.5 * width - 0.5 * (low + high))
                if away < distance:
                    chosen, distance = cell, away
        if chosen >= 0:
            return int(start + chosen)
    return int(cells.level_start[levels] - 1)


@kernel
def stabbed_cells(
    cells: LevelCells, layer: int, low: float, high: float, first: Int64, last: Int64
) -> int:
    """How many ranges *first* … *last* of cells meet *low* … *high*: at most one for each level.

    Of a single value, the cells that it stabs. Paper: Algorithm 2, line 4.
    """
    levels = len(cells.level_start) - 1
    first_cell = layer * cells.level_start[levels]
    found = 0
    for level in range(levels):
        start = cells.level_start[level]
        count = cells.level_start[level + 1] - start
        lows = cells.low[first_cell + start : first_cell + start + count]
        highs = cells.high[first_cell + start : first_cell + start + count]
        one, other = 0, count - 1
        rate = cells.rate[layer * levels + level]
        if rate > 0.0:  # a guess, which rounding may have put one off
            one = max(0, int((low - cells.width[layer * levels + level]) * rate) - 1)
            other = min(count - 1, int(high * rate) + 1)
        while one < count and highs[one] <= low:
            one += 1
        while other >= 0 and lows[other] > high:
            other -= 1
        if one <= other:
            first[found], last[found] = start + one, start + other
            found += 1
    return found


@kernel_inline
def value_cell(cells: LevelCells, at: float) -> int:
    """The disjoint cell that holds the position *at*. Paper: section 4.3.1."""
    values = cells.event_cells[0] - 1
    return int(min(int(at * values), values - 1))
