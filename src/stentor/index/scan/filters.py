"""The choice of filters: which attributes, and where to cut their values into cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stentor.encoding.columns import Float64, Int32, Int64, SubscriptionColumns
from stentor.encoding.kinds import KEYWORDS
from stentor.encoding.ragged import children, expand_slices
from stentor.index.bounds import bounds_of
from stentor.index.scan.layout import BUCKET_SHIFT, BUCKETS, LIVE, NO_FILTER, NO_TERM, ScanFilters

MOST_FILTERS = 32
#: Lines of all filters together: 24 KB of a block's masks stay in the first cache.
MOST_LINES = 384
LEAST_CELLS, MOST_CELLS = 8, 64
#: A line that leaves more than this share of the alternatives costs more than it saves, so an
#: attribute that fewer than the rest of them bound is no filter.
MOST_LEFT = 0.95
#: About how many alternatives are looked at.
SAMPLE = 1 << 14


class _Use(NamedTuple):
    """How often predicates narrow an attribute (or a coordinate of a location), and to what."""

    times: int
    attribute: int
    axis: int
    ends: Float64


def choose_filters(columns: SubscriptionColumns, alternatives: Int64) -> ScanFilters:
    """The best filters for *alternatives*, judged by a sample.

    Cost: a sort of the sample's bounds.
    """
    sample = alternatives[:: max(1, len(alternatives) // SAMPLE)]
    least = (1.0 - MOST_LEFT) * len(sample)
    predicates, _ = children(columns.predicate_start, sample)
    uses = [use for use in _uses(columns, predicates) if use.times >= least]
    uses.sort(key=lambda use: use.times, reverse=True)
    uses = sorted(uses[:MOST_FILTERS], key=lambda use: (use.attribute, use.axis))
    bucket_use = _bucket_use(columns, predicates, least)
    cells = min(MOST_CELLS, max(LEAST_CELLS, MOST_LINES // max(1, len(uses)) - 1))
    first_line = NO_TERM + 1 + BUCKETS if len(bucket_use) else LIVE + 1
    edges = [_edges(use.ends, cells) for use in uses]
    first_of = np.full(columns.attribute.max(initial=-1) + 1, NO_FILTER, np.int32)
    for filter_row, use in reversed(list(enumerate(uses))):
        first_of[use.attribute] = filter_row
    return ScanFilters(
        attribute=np.array([use.attribute for use in uses], np.int32),
        axis=np.array([use.axis for use in uses], np.uint8),
        edge_start=np.cumsum([0, *(len(edge) for edge in edges)]),
        edge=np.concatenate([np.zeros(0), *edges]),
        # A line for events without the attribute, and one cell more than there are edges.
        line_start=np.cumsum([first_line, *(len(edge) + 2 for edge in edges)]),
        first_of=first_of,
        bucket_use=bucket_use,
    )


def _uses(columns: SubscriptionColumns, predicates: Int64) -> Iterator[_Use]:
    """How *predicates* use each attribute that they narrow."""
    for bounds in bounds_of(columns, predicates):
        yield from _axis_uses(*bounds)


def _axis_uses(attribute: Int32, axis: int, low: Float64, high: Float64) -> Iterator[_Use]:
    narrowed = np.isfinite(low) | np.isfinite(high)
    attribute, ends = attribute[narrowed], np.stack([low[narrowed], high[narrowed]])
    order = np.argsort(attribute, kind="stable")
    codes, starts = np.unique(attribute[order], return_index=True)
    for code, rows in zip(codes.tolist(), np.split(order, starts[1:]), strict=False):
        yield _Use(len(rows), code, axis, ends[:, rows])


def _bucket_use(columns: SubscriptionColumns, predicates: Int64, least: float) -> Int64:
    """How often the terms of each bucket are wanted; empty where fewer than *least* need any."""
    asking = predicates[columns.kind[predicates] == KEYWORDS]
    if len(asking) < max(1, least):
        return np.zeros(0, np.int64)
    strings, _ = expand_slices(columns.operand_start[asking], columns.operand_stop[asking])
    bucket = (columns.string_hash[strings] >> np.uint64(BUCKET_SHIFT)).astype(np.int64)
    return np.bincount(bucket, minlength=BUCKETS)


def _edges(ends: Float64, cells: int) -> Float64:
    """Where *cells* cells (or fewer) meet: at quantiles, so that each is about as busy."""
    shares = np.arange(1, cells) / cells
    return np.unique(np.quantile(ends[np.isfinite(ends)], shares, method="inverted_cdf"))
