"""Keyword partition: where to cut ordered keywords (section 3.3.2).

Keywords are given by their cumulated weights w (entries that have them next) and probabilities p.
A cut of the keywords i … j − 1 costs (w + visit) · p: what is looked at there, if a message comes.
"""

from __future__ import annotations

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import Float64, Int32

#: More steps of dynamic programming than this are not taken: the heuristic stands in.
MOST_STEPS = 200_000_000


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
    place = 0
    cut[0] = 0
    for number in range(1, cuts):
        place = max(place, cut[number - 1] + 1)
        goal = total * number / cuts
        # The nearer one of two ends.
        while (
            place < keywords - (cuts - number) and weight[place + 1] - goal <= goal - weight[place]
        ):
            place += 1
        cut[number] = min(place, keywords - (cuts - number))
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
) -> None:
    """Algorithm 2, by equation 2: the cheapest of all cuts.

    *best* (2 × (keywords + 1)) and *choice* (cuts × (keywords + 1)) are scratch. Where c cuts
    start at keyword i, choice[c][i] is where the first of them ends. Cost: O(cuts · keywords²).
    """
    width = keywords + 1
    for start in range(keywords):
        best[start] = cut_cost(weight, likely, visit, start, keywords)
    for more in range(2, cuts + 1):
        now, before = (more - 1) % 2 * width, more % 2 * width
        for start in range(keywords - more + 1):
            least, chosen = -1.0, start + 1
            for stop in range(start + 1, keywords - more + 2):
                cost = cut_cost(weight, likely, visit, start, stop) + best[before + stop]
                if least < 0.0 or cost < least:
                    least, chosen = cost, stop
            best[now + start] = least
            choice[(more - 1) * width + start] = chosen
    cut[0] = 0
    for number in range(1, cuts):
        cut[number] = choice[(cuts - number) * width + cut[number - 1]]
    cut[cuts] = keywords
