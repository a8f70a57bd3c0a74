"""The widths of cells: the lemmas of section 5, its example, and nothing better on a grid."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.index.mo_tree.attributes import quantiles, widths
from stentor.index.mo_tree.cells import cells_of_levels, interval_cell
from stentor.index.mo_tree.settings import MoTreeSettings
from stentor.index.mo_tree.widths import (
    Densities,
    Levels,
    best_widths,
    caught_share,
    even_targets,
    integrate,
    linear_targets,
    measured,
    stabbed,
    success_rate,
    uniform,
    width_bounds,
    zipf,
)

FEWER = settings(max_examples=max(1, settings.default.max_examples // 4), deadline=None)
EXAMPLE = Levels((4, 3, 2, 1), linear_targets(4), uniform())

counts = st.integers(2, 12)
shares = st.floats(0.01, 0.99)


@st.composite
def samples(draw):
    """The densities of some intervals and values that crowd somewhere."""
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    centre = random.beta(*draw(st.tuples(shares, shares)), 300)
    width = random.exponential(draw(st.sampled_from([0.01, 0.1, 0.5])), 300)
    low, high = np.clip(centre - width / 2, 0, 1), np.clip(centre + width / 2, 0, 1)
    return measured(low, high, random.beta(2.0, 5.0, 300))


densities = st.one_of(st.just(uniform()), st.floats(0.0, 2.0).map(zipf), samples())


@pytest.mark.parametrize(
    "end", [0.0, 5e-324, -3.0, math.nextafter(math.inf, 0), -math.nextafter(math.inf, 0)]
)
def test_knots_are_apart_where_all_ends_are_equal(end):
    for knots in (quantiles(np.full(7, end)), widths(end, end)):
        assert np.isfinite(knots).all()
        assert (np.diff(knots) >= 0).all()
        assert knots[0] < knots[-1]


def test_the_example_of_the_paper_comes_out():
    widths = best_widths(EXAMPLE, 6.0)
    assert widths == pytest.approx((3 / 8, 11 / 18, 5 / 6, 1.0), abs=1e-6)
    assert EXAMPLE.expected(widths) == pytest.approx(6.0, abs=1e-6)


def test_at_the_best_widths_every_level_gains_the_same_for_one_more_cell():
    """Theorem 1: what is caught and what it costs grow at one rate."""
    widths, step = best_widths(EXAMPLE, 6.0), 1e-4
    rates = [
        (EXAMPLE.gain(level, width + step) - EXAMPLE.gain(level, width - step))
        / (EXAMPLE.cost(level, width + step) - EXAMPLE.cost(level, width - step))
        for level, width in enumerate(widths[:-1])
    ]
    assert rates == pytest.approx([rates[0]] * 3, rel=1e-3)


def test_no_limit_gives_the_greatest_widths_and_too_low_a_limit_the_least():
    greatest = (7 / 16, 2 / 3, 7 / 8, 1.0)
    assert best_widths(EXAMPLE, math.inf) == pytest.approx(greatest)
    assert best_widths(EXAMPLE, 6.5) == pytest.approx(greatest), "the paper's own η"
    assert best_widths(EXAMPLE, 1.0) == pytest.approx((1 / 4, 1 / 2, 3 / 4, 1.0))


@pytest.mark.parametrize("exact", [False, True])
def test_the_limit_is_kept_and_used(exact):
    widths = best_widths(EXAMPLE, 5.7, exact=exact)
    assert 5.5 < EXAMPLE.expected(widths) <= 5.7 + 1e-9


@FEWER
@given(densities, st.lists(st.integers(2, 9), min_size=1, max_size=3), shares)
def test_no_widths_on_a_grid_are_better_and_the_expectation_is_within_the_limit(
    some, count_list, share
):
    level_counts = (*sorted(count_list, reverse=True), 1)
    levels = Levels(level_counts, even_targets(level_counts, some), some)
    least, greatest = (levels.expected(widths) for widths in zip(*levels.bounds, strict=True))
    most = min(least, greatest) + share * abs(greatest - least)
    widths = best_widths(levels, most, exact=False)
    if levels.expected([low for low, _ in levels.bounds]) <= most:
        assert levels.expected(widths) <= most + 1e-6
    grids = [np.linspace(low, high, 5) for low, high in levels.bounds[:-1]]
    for tried in product(*grids):
        if levels.expected((*tried, 1.0)) <= most:
            assert levels.caught((*tried, 1.0)) <= levels.caught(widths) + 1e-9


@given(counts, shares)
def test_lemma_1_neighbours_overlap_by_what_is_too_much(count, width):
    cells = cells_of_levels((count, 1), [(width, 1.0)], 2)
    overlap = (count * width - 1) / (count - 1)
    ends = cells.low[:count] + width
    assert ends[:-1] - cells.low[1:count] == pytest.approx(np.full(count - 1, overlap))
    assert (cells.low[0], ends[-1]) == pytest.approx((0.0, 1.0))


@given(counts, shares, st.floats(0.0, 1.0))
def test_lemma_3_the_greatest_width_catches_every_interval_up_to_the_target(count, target, at):
    _, width = width_bounds(count, target)
    cells = cells_of_levels((count, 1), [(width, 1.0)], 2)
    wide = target * (1 - 1e-9)
    low = at * (1 - wide)
    assert interval_cell(cells, 0, low, low + wide) < count
    least, _ = width_bounds(count, target)
    assert least == target, "cells that are narrower hold none of the widest"


@given(counts, shares, st.floats(0.0, 0.999))
def test_lemma_4_the_success_rate_where_intervals_lie_anywhere(count, width, x):
    rate = success_rate(count, width, np.array(x), uniform())
    expected = min(max(0.0, count * (width - x) / (1 - x)), 1.0)
    assert float(rate) == pytest.approx(expected, abs=1e-9)


@given(counts, shares)
def test_a_value_anywhere_stabs_as_many_cells_as_their_widths_make(count, width):
    assert stabbed(count, width, uniform()) == pytest.approx(count * width)


@FEWER
@given(densities, counts, shares, shares)
def test_rates_by_quadrature_are_those_of_sampled_intervals(some, count, one, other):
    """By trying each of many intervals whose widths and places follow the densities."""
    above, target = sorted((one, other))
    _, width = width_bounds(count, target)
    middle = (np.arange(4000) + 0.5) / 4000
    x = above + middle * (target - above)
    caught = (success_rate(count, width, x, some) * some.width(x)).mean() * (target - above)
    assert caught_share(count, width, above, target, some) == pytest.approx(caught, abs=0.02)


@FEWER
@given(densities)
def test_densities_add_up_to_one(some):
    assert integrate(some.width, 0.0, 1.0, some.kinks) == pytest.approx(1.0, abs=1e-3)
    x = np.array([0.1, 0.5])
    assert some.low_cdf(1.0 - x, x) == pytest.approx(np.ones(2), abs=1e-9)
    assert some.value_cdf(np.array([0.0, 1.0])) == pytest.approx([0.0, 1.0])


@FEWER
@given(densities, st.sampled_from([(3, 2, 1), (7, 3, 1), (15, 7, 3, 1)]))
def test_even_targets_give_each_cell_as_many_intervals(some, level_counts):
    targets = even_targets(level_counts, some)
    assert targets[-1] == 1.0
    assert list(targets) == sorted(targets)
    for count, above, target in zip(level_counts, (0.0, *targets), targets, strict=False):
        share = integrate(some.width, above, target, some.kinks)
        assert share == pytest.approx(count / sum(level_counts), abs=0.02)


def test_any_function_can_be_a_density():
    """Intervals of one width at one place: one cell is enough, and it is found."""
    some = Densities(
        width=lambda x: np.where(abs(x - 0.2) < 0.01, 50.0, 0.0),
        low_cdf=lambda y, x: (y >= 0.4 * (1 - x)).astype(float),
        value_cdf=lambda z: np.clip(z, 0.0, 1.0),
        kinks=np.array([0.0, 0.19, 0.21, 1.0]),
    )
    levels = Levels((3, 1), (0.21, 1.0), some)
    assert levels.caught(best_widths(levels, math.inf)) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("growth", "cells"), [("linear", (4, 3, 2, 1)), ("halving", (15, 7, 3, 1))]
)
def test_levels_grow_as_in_the_model_or_as_in_figure_2(growth, cells):
    assert MoTreeSettings(levels=4, growth=growth).level_counts == cells
