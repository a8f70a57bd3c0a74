"""Which home an alternative goes to.

Lists are entered by a key: where that is rare, few events look at the alternative at all. Blocks
are reached by location and bounds, and look at 512 alternatives at a time: they are for what every
event might concern. A list is the faster home as long as at most one in `RARE` alternatives needs
the key.

Where more attributes are bounded than the records of a block hold, an attribute that few bound is
such a key, too: an event that lacks it passes the alternative by. Those are in nodes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import LAST, Float64, Int64, SubscriptionColumns, UInt8
from stentor.encoding.kinds import INTERVAL, KEYWORDS, KIND_MASK, MEMBERSHIP, MISSING, OWN_CIRCLE
from stentor.encoding.ragged import children
from stentor.index.packed.blocks.layout import MOST_DIMENSIONS
from stentor.index.packed.lists.axes import MOST_AXES
from stentor.index.packed.lists.keys import MANY_GROUPS, token_count, token_hash
from stentor.index.packed.settings import COST

Bool = npt.NDArray[np.bool_]
#: A key that one of so many alternatives needs is rare; an attribute is at one of fewer.
RARE, RARE_ATTRIBUTE = 64, 10
#: Fewer than these are not worth a home of their own.
FEW: Final = 256
#: Counters of keys: two keys that share one are thought to be less rare than they are.
_COUNTER_BITS: Final = 20
_SHIFT: Final = np.uint64(64 - _COUNTER_BITS)
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)


def choose_homes(
    columns: SubscriptionColumns, alternatives: Int64, home: str = COST
) -> dict[str, Int64]:
    """*alternatives*, each under the name of its home. Cost: two passes over their keys.

    With a *home* other than COST all go there; to nodes those that are along an axis.
    """
    if home == "nodes":
        chosen = are_along_axes(columns, alternatives)
        return {"lists": alternatives[~chosen], home: alternatives[chosen]}
    if home != COST:
        return {home: alternatives}
    uses = np.full(len(alternatives), np.inf)
    counters = np.zeros(1 << _COUNTER_BITS, np.int64)
    count_keys(columns, alternatives, counters)
    rarest_keys(columns, alternatives, counters, uses)
    is_rare = uses * RARE <= len(alternatives)
    in_nodes = without_few(go_by_attribute(columns, alternatives, is_rare))
    in_blocks = without_few(~is_rare & ~in_nodes)
    homes = {"lists": ~in_nodes & ~in_blocks, "nodes": in_nodes, "blocks": in_blocks}
    return {name: alternatives[chosen] for name, chosen in homes.items()}


def go_by_attribute(columns: SubscriptionColumns, alternatives: Int64, is_rare: Bool) -> Bool:
    """Which of *alternatives* are best found by an attribute that few bound.

    Every event is as likely to have an attribute as an alternative is to bound it, about. One that
    *is_rare* by a key is found by that, unless most of its predicates are ranges: these are tested
    faster in nodes. What moves with its subscriber is not for nodes, which cannot move it.
    """
    count = len(alternatives)
    predicates, starts = children(columns.predicate_start, alternatives)
    kind, attribute = columns.kind[predicates], columns.attribute[predicates]
    is_bound = have_axes(kind)  # words and strings are found by keys alone
    by_attribute = np.bincount(attribute[is_bound])
    if not MOST_DIMENSIONS < np.count_nonzero(by_attribute) <= MOST_AXES // 2:
        return np.zeros(count, np.bool_)
    each = np.append(by_attribute, count)[np.where(is_bound, attribute, len(by_attribute))]
    least = np.minimum.reduceat(np.append(each, count), starts[:-1])
    is_range = (kind != INTERVAL) | (columns.low[predicates] < columns.high[predicates])
    ranges = np.add.reduceat(np.append(is_range, False).astype(np.int64), starts[:-1])
    is_few = (starts[:-1] < starts[1:]) & (least * RARE_ATTRIBUTE <= count)
    has_ranges = 2 * ranges > np.diff(starts)
    circles = np.append(kind & KIND_MASK == OWN_CIRCLE, False).astype(np.int64)
    moves = np.add.reduceat(circles, starts[:-1]) > 0
    chosen: Bool = is_few & (~is_rare | has_ranges) & ~moves
    return chosen


def have_axes(kind: UInt8) -> Bool:
    """Which predicates of these kinds bound a value or a location: nodes can go by them."""
    found: Bool = ~np.isin(kind, (MISSING, KEYWORDS, MEMBERSHIP))
    return found


def are_along_axes(columns: SubscriptionColumns, alternatives: Int64) -> Bool:
    """Which of *alternatives* have a predicate that nodes can go by."""
    predicates, starts = children(columns.predicate_start, alternatives)
    bound = np.concatenate([[0], np.cumsum(have_axes(columns.kind[predicates]))])
    found: Bool = bound[starts[1:]] > bound[starts[:-1]]
    return found


def without_few(chosen: Bool) -> Bool:
    """*chosen*, or none where they are too few for a home."""
    return chosen if np.count_nonzero(chosen) >= FEW else np.zeros(len(chosen), np.bool_)


@kernel_inline
def counter_of(columns: SubscriptionColumns, predicate: int, operand: int) -> int:
    """The counter of a key."""
    return int(np.int64(token_hash(columns, predicate, operand) * _SPREAD >> _SHIFT))


@kernel
def count_keys(columns: SubscriptionColumns, alternatives: Int64, counters: Int64) -> None:
    """Count how often each key is needed."""
    for alternative in alternatives:
        for predicate in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            first = np.int64(columns.operand_start[predicate])
            for operand in range(first, first + token_count(columns, predicate)):
                counters[counter_of(columns, predicate, operand)] += 1


@kernel
def rarest_keys(
    columns: SubscriptionColumns, alternatives: Int64, counters: Int64, uses: Float64
) -> None:
    """Lower *uses* of each alternative to those of the rarest key, or keys, it can be filed by."""
    for position in range(len(alternatives)):
        alternative = alternatives[position]
        for predicate in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            count = token_count(columns, predicate)
            if count > 0:
                needed = predicate_uses(columns, predicate, count, counters)
                uses[position] = min(uses[position], needed)


@kernel_inline
def predicate_uses(
    columns: SubscriptionColumns, predicate: int, count: int, counters: Int64
) -> float:
    """How often the rarest keys of all groups of *predicate* are needed together."""
    first, is_words = (
        np.int64(columns.operand_start[predicate]),
        columns.kind[predicate] == KEYWORDS,
    )
    needed, least, groups = 0.0, np.inf, 0
    for operand in range(first, first + count):
        least = min(least, float(counters[counter_of(columns, predicate, operand)]))
        if not is_words or columns.string_mark[operand] == LAST:
            needed, least, groups = needed + least, np.inf, groups + 1
    return needed / groups if groups > MANY_GROUPS else needed
