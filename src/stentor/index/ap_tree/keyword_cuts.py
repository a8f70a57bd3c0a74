"""Keyword partition: where to cut ordered keywords (section 3.3.2).

Keywords are given by their cumulated weights w (entries that have them next) and probabilities p.
A cut of the keywords i … j − 1 costs (w + visit) · p: what an event compares that visits it.
"""

from __future__ import annotations

import math

from stentor._jit import inner_kernel, kernel, kernel_inline
from stentor.encoding.columns import Float64, Int32, Int64

#: Optimal cuts take no more steps (some seconds) and no more choices (256 MB) than these; for more
#: the heuristic stands in, and the tree counts the node and warns.
MOST_STEPS, MOST_CHOICES = 2_000_000_000, 1 << 26
#: Scratch of `cheapest_stops`: four numbers for each halving of 2^31 keywords.
HALVINGS = 4 * 34


@kernel_inline
def cut_cost(weight: Float64, likely: Float64, visit: float, start: int, stop: int) -> float:
    """The cost of one cut, from the cumulated *weight* and probability *likely*."""
    chance = min(1.0, likely[stop] - likely[start])
    return float((weight[stop] - weight[start] + visit) * chance)


@kernel
def cost_of_cuts(weight: Float64, likely: Float64, visit: float, cut: Int32, cuts: int) -> float:
    """Equation 1 for the cuts that start at cut[0] … cut[cuts − 1]; cut[cuts] is the end."""
    cost = 0.0
    for number in range(cuts):
        cost += cut_cost(weight, likely, visit, cut[number], cut[number + 1])
    return cost


@kernel
def even_cuts(weight: Float64, keywords: int, cuts: int, cut: Int32) -> None:
    """Cuts of equal weight: optimal where p / w is the same for all keywords (equation 4).

    Each has a keyword at least. Cost: O(keywords).
    """
    total = weight[keywords]
    position = 0
    cut[0] = 0
    for number in range(1, cuts):
        position = max(position, cut[number - 1] + 1)
        goal = total * number / cuts
        # The nearer one of two ends.
        while (
            position < keywords - (cuts - number)
            and weight[position + 1] - goal <= goal - weight[position]
        ):
            position += 1
        cut[number] = min(position, keywords - (cuts - number))
    cut[cuts] = keywords


@kernel
def heuristic_cuts(
    weight: Float64, likely: Float64, visit: float, keywords: int, cuts: int, cut: Int32
) -> None:
    """Algorithm 3: even cuts, then each border moved to where the two beside it cost least.

    Cost: O(keywords), since a keyword is tried as the border of two pairs at most.
    """
    even_cuts(weight, keywords, cuts, cut)
    for number in range(1, cuts):
        before, after = cut[number - 1], cut[number + 1]
        best = cut[number]
        least = cut_cost(weight, likely, visit, before, best)
        least += cut_cost(weight, likely, visit, best, after)
        for border in range(before + 1, after):
            cost = cut_cost(weight, likely, visit, before, border)
            cost += cut_cost(weight, likely, visit, border, after)
            if cost < least:
                least, best = cost, border
        cut[number] = best


@kernel_inline
def is_affordable(keywords: int, cuts: int, choices: int) -> bool:
    """Whether `optimal_cuts` may take so many, with a capacity of so many *choices*."""
    steps = cuts * keywords * math.log2(2.0 * keywords)
    return bool(cuts * (keywords + 1) <= choices and steps <= MOST_STEPS)


@kernel
def optimal_cuts(
    weight: Float64,
    likely: Float64,
    visit: float,
    keywords: int,
    cuts: int,
    cut: Int32,
    best: Float64,
    choice: Int32,
    halving: Int64,
) -> None:
    """Algorithm 2, by equation 2: the cheapest of all cuts.

    A cut costs the lesser of (w + visit) · p and, where p is above 1, w + visit. The first of them
    satisfies the quadrangle inequality (w and p are sums), so that where the first of several cuts
    ends best never goes back as its start goes on, and halving finds it; for the second, ends
    compare alike from every start. The lesser of both as one cost satisfies nothing.

    *best* (2 × (keywords + 1)), *choice* (cuts × (keywords + 1)) and *halving* (HALVINGS) are
    scratch. Where c cuts start at keyword i, choice[c][i] is where the first of them ends.
    Cost: O(cuts · keywords · log keywords).
    """
    width = keywords + 1
    for start in range(keywords):
        best[start] = cut_cost(weight, likely, visit, start, keywords)
    for more in range(2, cuts + 1):
        now, before = (more - 1) % 2 * width, more % 2 * width
        rest, found = best[before : before + width], best[now : now + width]
        chosen = choice[(more - 1) * width : more * width]
        last = keywords - more + 1  # where the first cut ends at the latest
        cheapest_stops(weight, likely, visit, last, rest, found, chosen, halving)
        stop = last
        for start in range(last - 1, -1, -1):
            if weight[start + 1] + rest[start + 1] <= weight[stop] + rest[stop]:
                stop = start + 1
            cost = weight[stop] - weight[start] + visit + rest[stop]
            if cost < found[start]:
                found[start], chosen[start] = cost, stop
    cut[0] = 0
    for number in range(1, cuts):
        cut[number] = choice[(cuts - number) * width + cut[number - 1]]
    cut[cuts] = keywords


@inner_kernel
def cheapest_stops(
    weight: Float64,
    likely: Float64,
    visit: float,
    last: int,
    rest: Float64,
    found: Float64,
    chosen: Int32,
    halving: Int64,
) -> None:
    """For each start before *last* the stop where (w + visit) · p and the *rest* cost least."""
    halving[0], halving[1], halving[2], halving[3] = 0, last, 1, last
    top = 1
    while top > 0:
        top -= 1
        low, high = halving[4 * top], halving[4 * top + 1]  # starts
        first, final = halving[4 * top + 2], halving[4 * top + 3]  # their stops
        start = (low + high) >> 1
        least, best = math.inf, first
        for stop in range(max(first, start + 1), final + 1):
            cost = (weight[stop] - weight[start] + visit) * (likely[stop] - likely[start])
            cost += rest[stop]
            if cost < least:
                least, best = cost, stop
        found[start], chosen[start] = least, best
        if low < start:
            halving[4 * top], halving[4 * top + 1] = low, start
            halving[4 * top + 2], halving[4 * top + 3] = first, best
            top += 1
        if start + 1 < high:
            halving[4 * top], halving[4 * top + 1] = start + 1, high
            halving[4 * top + 2], halving[4 * top + 3] = best, final
            top += 1
