"""Which list each alternative is filed in: that of the rarest key it needs.

An alternative needs all keys of a predicate that has one group, and of another predicate those of
some group: then it is filed once for each group. What has no rare key is filed under an attribute
that its event must have, in the list of predicates as wide as its own; what needs no attribute,
under ANY_EVENT.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import Float64, Int32, Int64, SubscriptionColumns, UInt8
from stentor.encoding.kinds import MISSING, is_region
from stentor.index.bounds import VALUE, X, Y
from stentor.index.packed.lists.axes import axis_at
from stentor.index.packed.lists.keys import MANY_GROUPS, KeyTokens
from stentor.index.packed.lists.layout import (
    ANY_EVENT,
    CLASSES,
    LEAST,
    MOST_CELL,
    NO_AXIS,
    NO_CODE,
    ListAxes,
    UInt16,
    whole,
)

#: A predicate that leaves so little of its axis is narrow, and middling.
NARROW, MIDDLING = 1 / 16, 1 / 4
#: So many entries of a list say which axes it is cut along.
MOST_ASKED: Final = 32
#: No token is an entry's key: it is filed under an attribute, or under ANY_EVENT.
NO_TOKEN: Final = -1


class Entries(NamedTuple):
    """Alternatives in lists; one that is in several is there several times."""

    owner: Int64  # (entries,) position among the alternatives
    token: Int64  # (entries,) the key's token, or NO_TOKEN
    code: Int64  # (entries,) the list


class Assigned(NamedTuple):
    """What alternatives are filed by."""

    columns: SubscriptionColumns
    alternatives: Int64
    predicate_at: Int64  # (alternatives + 1,) where their predicates begin, among all of theirs
    cells: UInt16  # (4 × predicates,)
    axes: ListAxes
    tokens: KeyTokens
    uses: Int64  # (codes,) how often each key is needed
    is_shared: UInt8  # (codes,)


@kernel
def choose_keys(
    assigned: Assigned,
    attribute_uses: Int64,
    attribute_code: Int32,
    next_code: int,
    entries: Entries,
) -> tuple[int, int]:
    """Fill *entries*, and *attribute_code* from *next_code* on; how many there are of each."""
    tokens, count = assigned.tokens, 0
    for owner in range(len(assigned.alternatives)):
        best, chosen, is_set = np.inf, whole(NO_TOKEN), False
        token, stop = tokens.start[owner], tokens.start[owner + 1]
        while token < stop:
            after = next_predicate(tokens, token, stop)
            if tokens.group[after - 1] == 0:
                for one in range(token, after):
                    if assigned.uses[tokens.code[one]] < best:
                        best, chosen, is_set = assigned.uses[tokens.code[one]], one, False
            else:
                cost = group_cost(assigned, token, after)
                if cost < best:
                    best, chosen, is_set = cost, token, True
            token = after
        attribute_cost, slot, region = cheapest_attribute(assigned, owner, attribute_uses)
        if chosen != NO_TOKEN and best * region <= attribute_cost:
            if not is_set:
                count = add_entry(entries, count, owner, chosen, tokens.code[chosen])
                continue
            after = next_predicate(tokens, chosen, stop)
            while chosen < after:
                rarest = rarest_of_group(assigned, chosen, after)
                count = add_entry(entries, count, owner, rarest, tokens.code[rarest])
                group = tokens.group[chosen]
                while chosen < after and tokens.group[chosen] == group:
                    chosen += 1
        else:
            code = whole(ANY_EVENT)
            if slot >= 0:
                if attribute_code[slot] == NO_CODE:
                    attribute_code[slot] = next_code
                    next_code += 1
                code = whole(attribute_code[slot])
            count = add_entry(entries, count, owner, NO_TOKEN, code)
    return count, next_code


@kernel_inline
def add_entry(entries: Entries, count: int, owner: int, token: int, code: int) -> int:
    """Append an entry; how many there are now."""
    entries.owner[count] = owner
    entries.token[count] = token
    entries.code[count] = code
    return count + 1


@kernel_inline
def next_predicate(tokens: KeyTokens, token: int, stop: int) -> int:
    """The first token after *token* of another predicate, or *stop*: O(log tokens)."""
    predicate, step = tokens.predicate[token], 1
    while token + step < stop and tokens.predicate[token + step] == predicate:
        token, step = token + step, 2 * step
    low, high = token + 1, min(token + step, stop)
    while low < high:
        middle = (low + high) >> 1
        if tokens.predicate[middle] == predicate:
            low = middle + 1
        else:
            high = middle
    return low


@kernel_inline
def rarest_of_group(assigned: Assigned, token: int, stop: int) -> int:
    """The rarest token of the group that begins with *token*."""
    tokens = assigned.tokens
    rarest, group = token, tokens.group[token]
    while token < stop and tokens.group[token] == group:
        if assigned.uses[tokens.code[token]] < assigned.uses[tokens.code[rarest]]:
            rarest = token
        token += 1
    return rarest


@kernel_inline
def group_cost(assigned: Assigned, token: int, stop: int) -> float:
    """How often the rarest keys of all groups of a predicate are needed together."""
    tokens, cost, group = assigned.tokens, 0.0, 0
    while token < stop:
        cost += assigned.uses[tokens.code[rarest_of_group(assigned, token, stop)]]
        group = tokens.group[token]
        while token < stop and tokens.group[token] == group:
            token += 1
    return cost / (group + 1) if group >= MANY_GROUPS else cost


@kernel_inline
def share_left(assigned: Assigned, owner: int, number: int) -> float:
    """The share of its axes that the predicate *number* of *owner* leaves, about."""
    columns, axes = assigned.columns, assigned.axes
    predicate = columns.predicate_start[assigned.alternatives[owner]] + number
    cell = 4 * (assigned.predicate_at[owner] + number)
    attribute = columns.attribute[predicate]
    sides = 2 if is_region(columns.kind[predicate]) else 1
    share = 1.0
    for side in range(sides):
        axis = axis_at(axes, attribute, VALUE if sides == 1 else X + side)
        if axis == NO_AXIS:
            return 1.0
        cuts = axes.cut_start[axis + 1] - axes.cut_start[axis]
        low, high = (
            whole(assigned.cells[cell + 2 * side]),
            whole(assigned.cells[cell + 2 * side + 1]),
        )
        share *= min(1.0, (min(high, cuts) - max(low, 1) + 1) / max(1, cuts))
    return max(share, 0.0)


@kernel_inline
def cheapest_attribute(
    assigned: Assigned, owner: int, attribute_uses: Int64
) -> tuple[float, int, float]:
    """The cost of filing *owner* under an attribute, its position in `attribute_code`, a share.

    The cost is compared with how often keys are needed, times the share of locations that a region
    leaves: lists of keys are cut by locations, too. The position is −1 where there is no attribute.
    """
    columns = assigned.columns
    best, slot, region = np.inf, -1, 1.0
    first = columns.predicate_start[assigned.alternatives[owner]]
    for number in range(assigned.predicate_at[owner + 1] - assigned.predicate_at[owner]):
        predicate = first + number
        if columns.kind[predicate] == MISSING:
            continue
        share = share_left(assigned, owner, number)
        if is_region(columns.kind[predicate]):
            region = min(region, share + 1e-6)
        attribute = columns.attribute[predicate]
        cost = attribute_uses[attribute] * (share + 1e-6)
        if cost < best:
            width = 0 if share <= NARROW else (1 if share <= MIDDLING else 2)
            best, slot = cost, CLASSES * attribute + width
    return best, slot, region


@kernel_inline
def axis_cells(assigned: Assigned, owner: int, axis: int) -> tuple[int, int]:
    """The cells that *owner* allows along *axis*; (LEAST, NOT_ASKED) where it does not ask."""
    low, high = LEAST, MOST_CELL + 1
    if axis == NO_AXIS:
        return low, high
    columns, axes = assigned.columns, assigned.axes
    first = columns.predicate_start[assigned.alternatives[owner]]
    for number in range(assigned.predicate_at[owner + 1] - assigned.predicate_at[owner]):
        predicate = first + number
        if columns.kind[predicate] == MISSING:
            continue
        attribute = columns.attribute[predicate]
        cell = 4 * (assigned.predicate_at[owner] + number)
        if is_region(columns.kind[predicate]):
            for side in range(2):
                if axis_at(axes, attribute, X + side) == axis:
                    low = max(low, whole(assigned.cells[cell + 2 * side]))
                    high = min(high, whole(assigned.cells[cell + 2 * side + 1]))
        elif axis_at(axes, attribute, VALUE) == axis:
            low = max(low, whole(assigned.cells[cell]))
            high = min(high, whole(assigned.cells[cell + 1]))
    return low, high


@kernel
def choose_list_axes(
    assigned: Assigned,
    entries: Entries,
    starts: Int64,
    order: Int64,
    weight: Float64,
    chosen: Int32,
) -> None:
    """Fill *chosen*: for each list the two axes that its entries bound the most.

    *order* has the entries by list, *starts* where each begins; *weight* (axes) is zeros.
    """
    columns, axes = assigned.columns, assigned.axes
    for code in range(len(starts) - 1):
        stop = min(starts[code + 1], starts[code] + MOST_ASKED)
        for position in range(starts[code], stop):
            owner = entries.owner[order[position]]
            first = columns.predicate_start[assigned.alternatives[owner]]
            for number in range(assigned.predicate_at[owner + 1] - assigned.predicate_at[owner]):
                predicate = first + number
                if columns.kind[predicate] == MISSING:
                    continue
                attribute = columns.attribute[predicate]
                share = 1.0 - share_left(assigned, owner, number) + 1e-9
                if is_region(columns.kind[predicate]):
                    weight[axis_at(axes, attribute, X)] += share
                    weight[axis_at(axes, attribute, Y)] += share
                else:
                    weight[axis_at(axes, attribute, VALUE)] += share
        weight[NO_AXIS] = 0.0
        for position in range(starts[code], stop):
            owner = entries.owner[order[position]]
            first = columns.predicate_start[assigned.alternatives[owner]]
            for number in range(assigned.predicate_at[owner + 1] - assigned.predicate_at[owner]):
                attribute = columns.attribute[first + number]
                for side in range(3):
                    axis = axis_at(axes, attribute, side)
                    if weight[axis] > weight[chosen[2 * code]]:
                        chosen[2 * code + 1] = chosen[2 * code]
                        chosen[2 * code] = axis
                    elif axis != chosen[2 * code] and weight[axis] > weight[chosen[2 * code + 1]]:
                        chosen[2 * code + 1] = axis
        for position in range(starts[code], stop):
            owner = entries.owner[order[position]]
            first = columns.predicate_start[assigned.alternatives[owner]]
            for number in range(assigned.predicate_at[owner + 1] - assigned.predicate_at[owner]):
                for side in range(3):
                    weight[axis_at(axes, columns.attribute[first + number], side)] = 0.0


@kernel_inline
def needed_tokens(tokens: KeyTokens, key: int, start: int, stop: int) -> tuple[int, int]:
    """Those of the predicate *start* … *stop* that are needed where *key* is; it may be one."""
    if tokens.group[stop - 1] == 0:
        return start, stop
    if not start <= key < stop:
        return stop, stop
    first, last = key, key + 1
    while first > start and tokens.group[first - 1] == tokens.group[key]:
        first -= 1
    while last < stop and tokens.group[last] == tokens.group[key]:
        last += 1
    return first, last
