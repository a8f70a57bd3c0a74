"""The invariants of blocks, asserted in plain Python: for tests."""

from __future__ import annotations

import math

import numpy as np

from stentor.encoding.columns import LAST, Int64, SubscriptionColumns
from stentor.encoding.kinds import KEYWORDS, MISSING, NEGATED, REGIONS, is_among
from stentor.encoding.ragged import children
from stentor.index.bounds import VALUE, X, Y
from stentor.index.scan.build import ScanBlocks
from stentor.index.scan.layout import BLOCK, BUCKET_SHIFT, LIVE, NO_TERM, ScanFilters


def check_blocks(store: ScanBlocks, columns: SubscriptionColumns, live: Int64) -> None:
    """Assert that *store* holds the alternatives *live*, each once, under the right bits."""
    filters, (member, signature, line) = store.filters, store.blocks
    members = member[: store.count]
    assert (np.diff(members) > 0).all(), "members ascend"
    slots = np.searchsorted(members, live)
    assert (slots < store.count).all()
    assert np.array_equal(members[slots], live), "each live alternative has a slot"
    by_block = np.unpackbits(line.view(np.uint8), bitorder="little").reshape(-1, store.lines, BLOCK)
    bits = by_block.transpose(0, 2, 1).reshape(-1, store.lines)
    assert not bits[store.count :].any(), "a free slot has no bits"
    assert bits[slots, LIVE].all(), "live alternatives are marked"
    predicates, offsets = children(columns.predicate_start, live)
    position = np.repeat(np.arange(len(live)), np.diff(offsets))
    for row in range(len(filters.attribute)):
        set_lines = bits[slots, filters.line_start[row] : filters.line_start[row + 1]]
        is_bounded = np.zeros(len(live), bool)
        is_bounded[position[columns.attribute[predicates] == filters.attribute[row]]] = True
        assert set_lines[~is_bounded].all(), "what is not bounded may be anything"
        for alternative, found in zip(
            live[is_bounded].tolist(), set_lines[is_bounded].tolist(), strict=True
        ):
            possible = _possible_lines(columns, alternative, filters, row)
            assert found == possible, (alternative, row)
    if len(filters.bucket_use):
        term_bits = bits[slots, NO_TERM : filters.line_start[0]]
        assert (term_bits.sum(axis=1) == 1).all(), "each alternative is in one line of terms"
        for bucket, alternative in zip(term_bits.argmax(axis=1) - 1, live.tolist(), strict=True):
            needed = _needed_buckets(columns, alternative)
            assert bucket in needed if needed else bucket == -1
    fresh = ScanBlocks(filters)
    fresh.append(columns, live)
    assert np.array_equal(fresh.blocks.signature[: len(live)], signature[slots])


def _needed_buckets(columns: SubscriptionColumns, alternative: int) -> set[int]:
    """The buckets of the terms that the alternative cannot do without."""
    start, stop = columns.predicate_start[alternative : alternative + 2].tolist()
    needed: set[int] = set()
    for predicate in range(start, stop):
        strings = slice(columns.operand_start[predicate], columns.operand_stop[predicate])
        if columns.kind[predicate] == KEYWORDS and columns.string_mark[strings].sum() == LAST:
            needed |= {one >> BUCKET_SHIFT for one in columns.string_hash[strings].tolist()}
    return needed


def _possible_lines(
    columns: SubscriptionColumns, alternative: int, filters: ScanFilters, row: int
) -> list[bool]:
    """Of a filter's lines those in whose cell the alternative may hold; the first is for none."""
    edges = filters.edge[filters.edge_start[row] : filters.edge_start[row + 1]].tolist()
    cells = list(zip([-math.inf, *edges], [*edges, math.inf], strict=True))
    possible = [True] * (1 + len(cells))
    start, stop = columns.predicate_start[alternative : alternative + 2].tolist()
    for predicate in range(start, stop):
        if columns.attribute[predicate] != filters.attribute[row]:
            continue
        kind = int(columns.kind[predicate])
        if kind == MISSING:
            possible[1:] = [False] * len(cells)
            continue
        possible[0] = False
        low, high = _bounds(columns, predicate, int(filters.axis[row]))
        for cell, (cell_low, cell_stop) in enumerate(cells, start=1):
            below = low < cell_stop or cell == len(cells)
            above = high >= cell_low
            possible[cell] &= (below or above) if low > high else (below and above)
    return possible


def _bounds(columns: SubscriptionColumns, predicate: int, axis: int) -> tuple[float, float]:
    kind = int(columns.kind[predicate])
    is_region = is_among(kind, REGIONS)
    if kind & NEGATED or is_region == (axis == VALUE):
        return -math.inf, math.inf
    if not is_region:
        return float(columns.low[predicate]), float(columns.high[predicate])
    pair = int(columns.operand_start[predicate]) + {X: 0, Y: 1}[axis]
    return float(columns.pair_low[pair]), float(columns.pair_high[pair])
