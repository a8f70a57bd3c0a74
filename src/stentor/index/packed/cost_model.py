"""Which home an alternative goes to.

Lists are entered by a key: where that is rare, few events look at the alternative at all. Blocks
are reached by location and bounds, and look at 512 alternatives at a time: they are for what every
event might concern. A list is the faster home as long as at most one in `RARE` alternatives needs
the key.

Where more attributes are bounded than the records of a block hold, an attribute that few bound is
such a key, too: an event that lacks it passes its lists by.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import LAST, Float64, Int64, SubscriptionColumns
from stentor.encoding.kinds import KEYWORDS, MISSING
from stentor.encoding.ragged import children
from stentor.index.packed.blocks.layout import MOST_DIMENSIONS
from stentor.index.packed.lists.keys import token_count, token_hash

#: A key that one of so many alternatives needs is rare; an attribute is at one of fewer.
RARE, RARE_ATTRIBUTE = 64, 10
#: Fewer than these are not worth a home of their own.
FEW: Final = 256
#: Counters of keys: two keys that share one are thought to be less rare than they are.
_COUNTER_BITS: Final = 20
_SHIFT: Final = np.uint64(64 - _COUNTER_BITS)
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)


def choose_homes(columns: SubscriptionColumns, alternatives: Int64) -> dict[str, Int64]:
    """*alternatives*, each under the name of its home. Cost: two passes over their keys."""
    uses = np.full(len(alternatives), np.inf)
    counters = np.zeros(1 << _COUNTER_BITS, np.int64)
    count_keys(columns, alternatives, counters)
    rarest_keys(columns, alternatives, counters, uses)
    is_rare = uses * RARE <= len(alternatives)
    predicates, starts = children(columns.predicate_start, alternatives)
    attribute = columns.attribute[predicates][columns.kind[predicates] != MISSING]
    if np.count_nonzero(by_attribute := np.bincount(attribute)) > MOST_DIMENSIONS:
        # Every event is as likely to have an attribute as an alternative is to bound it, about.
        known = np.append(by_attribute, len(alternatives))
        each = np.where(
            columns.kind[predicates] == MISSING, len(known) - 1, columns.attribute[predicates]
        )
        least = np.minimum.reduceat(np.append(known[each], len(alternatives)), starts[:-1])
        least[starts[:-1] == starts[1:]] = len(alternatives)
        is_rare |= least * RARE_ATTRIBUTE <= len(alternatives)
    if np.count_nonzero(~is_rare) < FEW:
        return {"lists": alternatives}
    return {"lists": alternatives[is_rare], "blocks": alternatives[~is_rare]}


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
    needed, least = 0.0, np.inf
    for operand in range(first, first + count):
        least = min(least, float(counters[counter_of(columns, predicate, operand)]))
        if not is_words or columns.string_mark[operand] == LAST:
            needed, least = needed + least, np.inf
    return needed
