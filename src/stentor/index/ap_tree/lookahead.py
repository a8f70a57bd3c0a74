"""What a partition costs when its children are partitioned the other way.

Equation 1 looks one level down. A grid whose cells are then cut by keywords costs far less than it
says, since few of a message's keywords are asked for in one cell; cuts that are then gridded cost
less too. So the two orders are compared, not the first steps of them.
"""

from __future__ import annotations

import math

from stentor._jit import kernel_inline, kernel_part
from stentor.index.ap_tree.layout import Policy
from stentor.index.ap_tree.partitions import Work, children_for


@kernel_part
def cuts_of_sample(work: Work, keywords: int, count: int, sample: float, policy: Policy) -> float:
    """What keyword partition would cost *sample* entries, drawn from the *count* of the node.

    work.weight and work.likely are of the node's keywords. A message visits the cuts of those
    keywords that it has and that are among the sample's.
    """
    if sample <= policy.leaf or keywords == 0:
        return float(sample + policy.visit)
    part = sample / count
    hits = 0.0
    for keyword in range(keywords):
        weight = work.weight[keyword + 1] - work.weight[keyword]
        chance = work.likely[keyword + 1] - work.likely[keyword]
        hits += chance * (1.0 - math.exp(-weight * part))
    cuts = children_for(policy, int(sample))
    without = sample * (1.0 - work.weight[keywords] / count)
    cost = min(hits, float(cuts)) * (sample / cuts + policy.visit) + policy.visit
    return float(cost + without + (policy.visit if without > 0.0 else 0.0))


@kernel_part
def space_then_keywords(work: Work, keywords: int, count: int, policy: Policy) -> float:
    """The cost of a grid with the cells that work.expected says, each then cut by keywords."""
    cell, kept = work.expected[0], work.expected[1]
    cost = policy.visit + min(
        cell + policy.visit, cuts_of_sample(work, keywords, count, cell, policy)
    )
    if kept > 0.0:
        cost += min(kept + policy.visit, cuts_of_sample(work, keywords, count, kept, policy))
    return float(cost)


@kernel_part
def keywords_then_space(
    work: Work, cuts: int, cells: int, count: int, without: int, policy: Policy
) -> float:
    """The cost of the cuts in work.cut, each then gridded; *cells* is what the node's grid has."""
    reached = (work.expected[0] + work.expected[1]) / count if cells > 0 else 1.0
    cost = policy.visit
    for cut in range(cuts):
        start, stop = work.cut[cut], work.cut[cut + 1]
        weight = work.weight[stop] - work.weight[start]
        chance = min(1.0, work.likely[stop] - work.likely[start])
        cost += chance * gridded(weight, reached, cells, policy)
    return cost + (gridded(float(without), reached, cells, policy) if without > 0 else 0.0)


@kernel_inline
def gridded(weight: float, reached: float, cells: int, policy: Policy) -> float:
    """What *weight* entries cost, in a grid where that pays: a coarser one reaches more."""
    flat = weight + policy.visit
    if weight <= policy.leaf or cells == 0:
        return flat
    own = children_for(policy, int(weight))
    share = min(1.0, reached + 1.0 / own)
    return min(flat, weight * share + 2.0 * policy.visit)
