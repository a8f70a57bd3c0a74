"""The k best of an event, without most of the others.

Weights lie in the leaves. A leaf is passed over where the sums of its weights cannot reach the k-th
best score (any line bounds them: score ≤ slope · promise + base, for the base that belongs to the
slope); a lane, where its own weights times the event's cannot. Only what is left is scored.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from stentor._intrinsics import prefetch, trailing_zeros
from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor._tables import LANES, lanes_meeting, lanes_reaching, numbers_reaching
from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns
from stentor.index.bounds import VALUE, X
from stentor.index.packed.lists.axes import axis_at
from stentor.index.packed.lists.layout import NO_AXIS, ListAxes, whole
from stentor.index.packed.match import Holding, holds_at
from stentor.index.packed.nodes.best import (
    BEST,
    COARSE,
    FOUND,
    GREATEST,
    LINES,
    MORE,
    NEEDED_FOR,
    OTHER,
    UNIT,
    WAITING,
    BestFound,
    BestScratch,
    add_best,
    add_waiting,
    bound_by,
    bound_of,
    draw_line,
    find_needed,
    least_score,
    take_waiting,
)
from stentor.index.packed.nodes.layout import (
    ALL_LANES,
    BELOW_IT,
    CLASSES,
    COUNT,
    DICTIONARY,
    FIELDS,
    HEIGHT,
    NO_ROOT,
    START,
    WIDTH,
    NodeArrays,
    NodeScratch,
)
from stentor.index.packed.nodes.match import (
    AHEAD,
    load_cells,
    load_table,
    met_lanes,
    prefetch_node,
    proved_lanes,
    unload_cells,
)
from stentor.index.verify.candidates import row_of
from stentor.index.verify.predicates import alternative_holds, alternative_score
from stentor.index.verify.scratch import EventScratch, load_event, weight_of
from stentor.model import Scoring

#: Products of two bytes are added up in units of 16.
_UNIT: Final = 16.0 / (255.0 * 255.0)
_NO_LANES: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_LINE: Final = 64
#: Of so many best, the lanes of a leaf are scored in the order of what they may reach.
FEW_BEST: Final = 8
#: Nodes whose first leaves are prefetched before the first is looked at.
SOON: Final = 12
SUM: Final = Scoring.SUM.value


class BestInputs(NamedTuple):
    """What is scored and verified exactly."""

    columns: SubscriptionColumns
    holding: Holding
    events: EventColumns
    scratch: EventScratch


@kernel
def top_nodes(
    axes: ListAxes,
    nodes: NodeArrays,
    inputs: BestInputs,
    scoring: int,
    known_start: Int64,
    known: BestFound,
    scratch: NodeScratch,
    best: BestScratch,
    found: BestFound,
) -> int:
    """The number of rows here that may be among the k best of all, beside those *known*.

    Those that do not fit into *found* are only counted.
    """
    best.size[FOUND] = 0
    for event in range(len(inputs.events.value_start) - 1):
        first = best.size[FOUND]
        best.size[WAITING] = best.size[BEST] = 0
        for position in range(known_start[event], known_start[event + 1]):
            add_best(best, known.row[position], known.score[position], inputs.holding.is_single)
        load_cells(axes, inputs.events, event, scratch)
        load_event(inputs.events, event, inputs.scratch)
        weigh_event(axes, nodes, inputs, event, scratch, best)
        find_needed(best)
        find_waiting(nodes, scratch, best)
        prefetch_first(nodes, best)
        loaded = whole(-1)
        while best.size[WAITING] > 0 and not best.bound[0] < least_score(best):
            node, lanes = take_waiting(best)
            loaded = scan_leaves(
                nodes, node, lanes, inputs, event, scoring, scratch, best, loaded, found
            )
        keep_best(best, first, found)
        forget_event(scratch, best)
        unload_cells(scratch)
    return int(best.size[FOUND])


@kernel_inline
def keep_best(best: BestScratch, first: int, found: BestFound) -> None:
    """Of what was *found* from *first* on keep what is among the best still."""
    if best.size[FOUND] > len(found.row):
        return  # it is found once more, with more memory
    least, kept = least_score(best), first
    for position in range(first, best.size[FOUND]):
        if found.score[position] >= least:
            found.event[kept], found.row[kept] = found.event[position], found.row[position]
            found.score[kept] = found.score[position]
            kept += 1
    best.size[FOUND] = kept


@kernel_inline
def forget_event(scratch: NodeScratch, best: BestScratch) -> None:
    """Clear what belongs to the event."""
    for position in range(scratch.used[0]):
        axis = scratch.axis[position]
        best.weight[axis] = 0.0
        best.weight_byte[axis] = 0
    if len(best.is_best) > 0:
        for position in range(best.size[BEST]):
            best.is_best[best.row[position]] = 0


@inner_kernel
def weigh_event(
    axes: ListAxes,
    nodes: NodeArrays,
    inputs: BestInputs,
    event: int,
    scratch: NodeScratch,
    best: BestScratch,
) -> None:
    """Fill in the event's weights, and the lines that bound scores."""
    events, greatest = inputs.events, 1.0
    for position in range(events.weight_start[event], events.weight_start[event + 1]):
        greatest = max(greatest, events.weight[position])
    most = 0.0
    for value in range(events.value_start[event], events.value_start[event + 1]):
        attribute = whole(events.attribute[value])
        own = weight_of(inputs.scratch, attribute)
        for side in (VALUE, X):
            axis = axis_at(axes, attribute, side)
            if axis != NO_AXIS:
                best.weight[axis] = own
                most = max(most, own * nodes.heaviest[axis])
    best.number[GREATEST] = greatest
    best.number[OTHER] = MORE * greatest * nodes.other[0]
    best.number[UNIT] = most * _UNIT
    count = scratch.used[0]
    for position in range(count):
        axis = scratch.axis[position]
        share = best.weight[axis] * nodes.heaviest[axis]
        # Where nothing weighs anything, or more than numbers can say, every lane may reach all.
        byte = math.ceil(share / most * 255.0) if 0.0 < most < math.inf else 255.0
        best.weight_byte[axis] = np.uint8(min(max(byte, 0.0), 255.0))
    for line in range(LINES):
        axis = (
            scratch.axis[line if count <= LINES else line * count // LINES] if line < count else 0
        )
        own, heaviest = best.weight[axis], nodes.heaviest[axis]
        slope = own / heaviest if line < count and heaviest > 0.0 else 1.0
        draw_line(nodes, scratch, best, line, slope)
        draw_line(nodes, scratch, best, LINES + line, own)


@inner_kernel
def find_waiting(nodes: NodeArrays, scratch: NodeScratch, best: BestScratch) -> None:
    """Fill the heap with the nodes above leaves that the event meets, by what is below them."""
    waiting = 0
    for position in range(scratch.used[0]):
        for width in range(CLASSES):
            root = nodes.root[CLASSES * scratch.axis[position] + width]
            if root != NO_ROOT:
                prefetch(nodes.head, FIELDS * root)
                scratch.waiting[waiting] = root
                waiting += 1
    done = 0
    while done < waiting:
        if done + AHEAD < waiting:
            prefetch_node(nodes, scratch.waiting[done + AHEAD])
        node = scratch.waiting[done]
        done += 1
        if nodes.promise[node] < best.needed[0] or nodes.total[node] < best.needed[1]:
            continue
        height = nodes.head[FIELDS * node + HEIGHT]
        if height == 0:
            add_waiting(best, bound_of(nodes, node, best), node, 0)
            continue
        lanes = met_lanes(nodes, node, scratch)
        if lanes == _NO_LANES:
            continue
        below = nodes.head[FIELDS * node + BELOW_IT]
        if height == 1:
            greatest = -1.0
            rest = lanes
            while rest != _NO_LANES:  # of those that are met, the highest promise says the most
                child = below + whole(trailing_zeros(rest))
                rest &= rest - _ONE
                greatest = max(greatest, nodes.promise[child])
                prefetch(nodes.head, FIELDS * child)
            add_waiting(best, bound_by(greatest, best), node, whole(lanes))
            continue
        while lanes != _NO_LANES:
            child = below + whole(trailing_zeros(lanes))
            lanes &= lanes - _ONE
            prefetch(nodes.head, FIELDS * child)
            scratch.waiting[waiting] = child
            waiting += 1


@kernel_inline
def scan_leaves(
    nodes: NodeArrays,
    node: int,
    lanes: int,
    inputs: BestInputs,
    event: int,
    scoring: int,
    scratch: NodeScratch,
    best: BestScratch,
    loaded: int,
    found: BestFound,
) -> int:
    """Look at the leaves *lanes* below *node* that may reach what is needed, or at a leaf."""
    if lanes == 0:
        return scan_leaf(nodes, node, inputs, event, scoring, scratch, best, loaded, found)
    below, rest = nodes.head[FIELDS * node + BELOW_IT], np.uint64(lanes)
    while True:
        if least_score(best) != best.number[NEEDED_FOR]:
            find_needed(best)
        rest &= numbers_reaching(nodes.promise, below, best.needed[0])
        rest &= numbers_reaching(nodes.total, below, best.needed[1])
        if rest == _NO_LANES:
            return loaded
        leaf = below + whole(trailing_zeros(rest))
        rest &= rest - _ONE
        if rest != _NO_LANES:
            prefetch_weights(nodes, below + whole(trailing_zeros(rest)))
        loaded = scan_leaf(nodes, leaf, inputs, event, scoring, scratch, best, loaded, found)


@kernel_inline
def prefetch_first(nodes: NodeArrays, best: BestScratch) -> None:
    """Prefetch the first leaf of each node that is looked at soon, and its dictionary."""
    soon = min(best.size[WAITING], SOON)
    for position in range(soon):
        prefetch(
            nodes.slot_start, nodes.head[FIELDS * first_leaf(nodes, best, position) + DICTIONARY]
        )
    for position in range(soon):
        prefetch_weights(nodes, first_leaf(nodes, best, position))


@kernel_inline
def first_leaf(nodes: NodeArrays, best: BestScratch, position: int) -> int:
    """The first leaf of what waits at *position*: itself, or below it."""
    node, lanes = best.node[position], best.lanes[position]
    if lanes == 0:
        return int(node)
    below = nodes.head[FIELDS * node + BELOW_IT]
    return int(below + whole(trailing_zeros(np.uint64(lanes))))


@kernel_inline
def prefetch_weights(nodes: NodeArrays, leaf: int) -> None:
    """Prefetch the slots and weights of *leaf*, and the axes of its dictionary."""
    head = nodes.head[FIELDS * leaf : FIELDS * leaf + FIELDS]
    start, slot = head[START], nodes.slot_start[head[DICTIONARY]]
    for at in range(start, start + 2 * head[COUNT] * head[WIDTH], _LINE):
        prefetch(nodes.lane, at)
    prefetch(nodes.slot_axis, slot)
    prefetch(nodes.slot_axis, min(slot + 16, len(nodes.slot_axis) - 1))


@inner_kernel
def scan_leaf(
    nodes: NodeArrays,
    leaf: int,
    inputs: BestInputs,
    event: int,
    scoring: int,
    scratch: NodeScratch,
    best: BestScratch,
    loaded: int,
    found: BestFound,
) -> int:
    """Add the lanes of *leaf* that match to the best; the dictionary that is loaded then.

    *loaded*, where it is not negative, is one whose weights are loaded; its bounds need not be.
    """
    head = nodes.head[FIELDS * leaf : FIELDS * leaf + FIELDS]
    dictionary, start, stride, width = head[DICTIONARY], head[START], head[COUNT], head[WIDTH]
    if dictionary != loaded:
        load_weights(nodes, dictionary, best)
    lanes = np.uint64(ALL_LANES >> (LANES - stride))
    lanes &= lanes_reaching(
        nodes.lane,
        start,
        start + width * stride,
        stride,
        width,
        best.table,
        1 if scoring == SUM else 0,
        least_units(best),
        best.most,
    )
    if lanes == _NO_LANES:
        return int(dictionary)
    load_table(nodes, dictionary, scratch)
    table = scratch.table
    lanes &= lanes_meeting(
        nodes.lane,
        start,
        start + 2 * width * stride,
        stride,
        width,
        table[:LANES],
        table[LANES : 2 * LANES],
    )
    if lanes == _NO_LANES:
        return int(dictionary)
    proved = proved_lanes(nodes, leaf, scratch)
    prefetch_scores(nodes, inputs.columns, head[BELOW_IT], lanes)
    while lanes != _NO_LANES:
        lane = next_lane(lanes, best)
        lanes &= ~(_ONE << np.uint64(lane))
        if best.most[lane] < least_units(best):
            continue
        consider(
            nodes.alternative[head[BELOW_IT] + lane],
            (proved >> lane) & 1 != 0,
            inputs,
            event,
            scoring,
            best,
            found,
        )
    return int(dictionary)


@kernel_inline
def load_weights(nodes: NodeArrays, dictionary: int, best: BestScratch) -> None:
    """Fill the table of the event's weights for the slots of *dictionary*."""
    first = nodes.slot_start[dictionary]
    for number in range(nodes.slot_start[dictionary + 1] - first):
        best.table[number] = best.weight_byte[nodes.slot_axis[first + number]]


@kernel_inline
def prefetch_scores(
    nodes: NodeArrays, columns: SubscriptionColumns, first: int, lanes: np.uint64
) -> None:
    """Prefetch where the predicates of *lanes* begin, then these, so that all wait together."""
    rest = lanes
    while rest != _NO_LANES:
        lane = whole(trailing_zeros(rest))
        rest &= rest - _ONE
        prefetch(columns.predicate_start, nodes.alternative[first + lane])
    while lanes != _NO_LANES:
        lane = whole(trailing_zeros(lanes))
        lanes &= lanes - _ONE
        predicate = columns.predicate_start[nodes.alternative[first + lane]]
        prefetch(columns.weight, predicate)
        prefetch(columns.attribute, predicate)


@kernel_inline
def least_units(best: BestScratch) -> int:
    """What a lane must reach at least, in the units of `lanes_reaching`."""
    least = least_score(best) - best.number[OTHER]
    unit = best.number[UNIT]
    if not (least > 0.0 and 0.0 < unit < math.inf):
        return 0
    return int(min(65535.0, COARSE * least / unit))


@kernel_inline
def next_lane(lanes: np.uint64, best: BestScratch) -> int:
    """The lane to be looked at now: of few best, the one that may reach the most."""
    lane = whole(trailing_zeros(lanes))
    if len(best.score) > FEW_BEST:
        return int(lane)
    rest = lanes & (lanes - _ONE)
    while rest != _NO_LANES:
        other = whole(trailing_zeros(rest))
        rest &= rest - _ONE
        if best.most[other] > best.most[lane]:
            lane = other
    return int(lane)


@kernel_inline
def consider(
    alternative: int,
    is_proved: bool,
    inputs: BestInputs,
    event: int,
    scoring: int,
    best: BestScratch,
    found: BestFound,
) -> None:
    """Add *alternative*, all of whose bounds are met, to the best if it matches."""
    columns, holding = inputs.columns, inputs.holding
    score = alternative_score(columns, alternative, inputs.scratch, scoring)
    if score < least_score(best):
        return
    row = alternative
    if not holding.is_single:
        row = row_of(columns.alternative_start, alternative)
    if not holds_at(columns, holding, row, inputs.events, event):
        return
    if not is_proved and not alternative_holds(columns, alternative, inputs.scratch):
        return
    count = best.size[FOUND]
    if count < len(found.row):
        found.event[count], found.row[count], found.score[count] = event, row, score
    best.size[FOUND] = count + 1
    add_best(best, row, score, holding.is_single)
