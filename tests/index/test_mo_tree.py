"""The MO-Tree's cells and buckets: the paper's figures, its invariants, its maintenance."""

import math
import os
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stentor
import stentor.index.mo_tree.index as mo_tree_index
from stentor.encoding.columns import SubscriptionColumns, empty
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.ragged import events_between, take
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.errors import FolderError, SettingsError
from stentor.index.bounds import VALUE
from stentor.index.catalog import structure_class
from stentor.index.mo_tree import MoTree
from stentor.index.mo_tree.attributes import AttributeChoice, dimensions_of, quantiles, widths
from stentor.index.mo_tree.build import MoTreeLayers
from stentor.index.mo_tree.cells import (
    cells_of_levels,
    domain_position,
    interval_cell,
    stabbed_cells,
)
from stentor.index.mo_tree.check import check_subscriptions
from stentor.index.mo_tree.index import FEW, STEP, SWEPT
from stentor.index.mo_tree.items import items_of_alternatives, items_of_events, new_items
from stentor.index.mo_tree.layout import LOST, NO_SLOT
from stentor.index.mo_tree.settings import PAPER
from stentor.language.check import check_and_learn
from stentor.model import Constant, Event, Kind, Point, Range, Schema
from tests.support.index_runs import Run
from tests.support.rows import matched_by_rows
from tests.support.workloads import Intervals

OPERATIONS = int(os.environ.get("STENTOR_SOAK_OPERATIONS", "20000"))
UNIT = Schema.declare({"a1": "number", "a2": "number", "a3": "number"})
SHOP = Schema.declare({"price": "number", "stock": "number", "brand": "string", "loc": "point"})
#: Figure 2: seven cells of 1/4, three of 1/2, one of 1; eight for values and one for none.
FIGURE_2 = cells_of_levels((7, 3, 1), [(1 / 4, 1 / 2, 1.0)] * 2, 9)


def columns_of(texts, schema, at=None):
    forms = [check_and_learn(text, schema, where="here")[1] for text in texts]
    return encode_subscriptions([NormalisedSubscription(form, at) for form in forms], schema)


def events_of(records, schema, until=None):
    def value(one):
        if isinstance(one, tuple):
            return Range(Kind.NUMBER, *one)
        if isinstance(one, (Point, str)):
            return one if isinstance(one, Point) else Constant(Kind.STRING, one)
        return Constant(Kind.NUMBER, float(one))

    arrivals = [
        TimedEvent(Event(f"e{row}", {k: value(v) for k, v in record.items()}, until=until), 0, row)
        for row, record in enumerate(records)
    ]
    return encode_events(arrivals, schema)


def figure_3():
    """Two layers, a1 and a2, cut as in Figure 2."""
    nothing = np.zeros(0)
    candidates = [
        AttributeChoice(UNIT.code(name), VALUE, widths(0.0, 1.0), 1.0, nothing, nothing, nothing)
        for name in ("a1", "a2")
    ]
    return MoTreeLayers(dimensions_of(candidates), FIGURE_2, 2)


def stabbed(low, high=None):
    """The numbers, from 1, of the cells of Figure 2 that meet a value or a range."""
    first, last = np.zeros(3, np.int64), np.zeros(3, np.int64)
    found = stabbed_cells(FIGURE_2, 0, low, low if high is None else high, first, last)
    return [cell + 1 for n in range(found) for cell in range(first[n], last[n] + 1)]


def rows_of(pairs, one=0):
    return pairs.rows[pairs.starts[one] : pairs.starts[one + 1]].tolist()


# Figures 2 and 3, Table 2.


def test_the_value_of_figure_2_stabs_five_cells():
    assert stabbed(0.3) == [2, 3, 8, 9, 11]


@given(st.floats(0.0, 1.0))
def test_no_value_stabs_more_than_five_cells_so_two_layers_filter_79_percent(value):
    assert len(stabbed(value)) <= 5
    assert round(1 - 5**2 / 11**2, 3) == 0.793


def test_the_values_an_interval_of_figure_2_meets_are_in_three_cells():
    tree = figure_3()
    items = new_items(3, ending=True)
    events = events_of([{"a1": at, "a2": 0.0} for at in (0.7, 0.8, 0.9)], UNIT)
    items_of_events(events, np.arange(3), tree.dimensions, tree.cells, tree.query(), items)
    assert (items.bucket // 9 + 1).tolist() == [6, 7, 8]


@pytest.mark.parametrize(
    ("text", "cells", "bucket"),
    [
        ("a1 BETWEEN 0.2 AND 0.3 AND a2 BETWEEN 0.5 AND 0.8", (2, 10), 21),
        ("a1 BETWEEN 0.3 AND 0.7", (9, 11), 99),
        ("a3 BETWEEN 0.5 AND 0.8", (11, 11), 121),
    ],
)
def test_the_subscriptions_of_table_2_are_in_their_buckets(text, cells, bucket):
    tree, items = figure_3(), new_items(1, ending=False)
    columns = columns_of([text], UNIT)
    items_of_alternatives(columns, np.arange(1), tree.dimensions, tree.cells, tree.query(), items)
    assert items.bucket[0] + 1 == bucket
    assert (items.bucket[0] // 11 + 1, items.bucket[0] % 11 + 1) == cells


@pytest.mark.parametrize(
    ("record", "cells", "bucket"),
    [
        ({"a1": 0.3, "a2": 0.8}, (3, 7), 25),
        ({"a1": 0.4}, (4, 9), 36),
        ({"a3": 0.6}, (9, 9), 81),
    ],
)
def test_the_events_of_table_2_are_in_their_buckets(record, cells, bucket):
    tree, items = figure_3(), new_items(1, ending=True)
    items_of_events(
        events_of([record], UNIT), np.arange(1), tree.dimensions, tree.cells, tree.query(), items
    )
    assert items.bucket[0] + 1 == bucket
    assert (items.bucket[0] // 9 + 1, items.bucket[0] % 9 + 1) == cells


# Cells.

positions = st.one_of(st.floats(0.0, 1.0), st.sampled_from([k / 16 for k in range(17)]))
some_cells = st.builds(
    lambda counts, shares: cells_of_levels(
        (*counts, 1), [(*(share for _, share in zip(counts, shares, strict=False)), 1.0)], 9
    ),
    st.lists(st.integers(2, 9), min_size=1, max_size=3),
    st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3),
)


@given(some_cells, positions, positions)
def test_an_interval_is_in_the_smallest_nearest_cell_that_contains_it(cells, one, other):
    low, high = sorted((one, other))
    chosen = interval_cell(cells, 0, low, high)
    assert cells.low[chosen] <= low
    assert high < cells.high[chosen]
    level = np.searchsorted(cells.level_start, chosen, side="right") - 1
    for below in range(cells.level_start[level]):
        assert not (cells.low[below] <= low and high < cells.high[below]), "a smaller one"
    width = cells.width[level]
    away = [
        abs(cells.low[cell] + width / 2 - (low + high) / 2)
        for cell in range(*cells.level_start[level : level + 2])
        if cells.low[cell] <= low and high < cells.high[cell]
    ]
    assert abs(cells.low[chosen] + width / 2 - (low + high) / 2) == pytest.approx(min(away))


@given(some_cells, positions, positions, positions, positions)
def test_whatever_meets_an_interval_stabs_its_cell(cells, one, other, start, stop):
    low, high = sorted((one, other))
    first, last = np.zeros(4, np.int64), np.zeros(4, np.int64)
    least, most = sorted((start, stop))
    found = stabbed_cells(cells, 0, least, most, first, last)
    visited = {cell for n in range(found) for cell in range(first[n], last[n] + 1)}
    for cell in range(cells.level_start[-1]):
        meets = cells.low[cell] <= most and least < cells.high[cell]
        assert (cell in visited) == meets
    if low <= most and least <= high:
        assert interval_cell(cells, 0, low, high) in visited


def test_areas_wider_than_all_cells_but_the_top_one_are_found():
    """Filed in a cell that does not contain them, they would be lost outside it."""
    narrow = [f"price BETWEEN {n} AND {n + 3}" for n in range(300)]
    wide = ["price BETWEEN 2 AND 298", "price > 1", "price < 299", "price BETWEEN 90 AND 250"]
    index = MoTree.build(columns_of([*narrow, *wide], SHOP))
    index.check()
    for price in (3, 100, 149, 249, 297):
        found = rows_of(index.match(events_of([{"price": price}], SHOP)))
        assert [row - 300 for row in found if row >= 300] == [
            *(0, 1, 2),
            *([3] if 90 <= price <= 250 else []),
        ]


# Every kind of attribute.


def some_wishes(count, seed=1):
    """Texts that use every kind of attribute, and nothing at all now and then."""
    random = np.random.default_rng(seed)
    brands = ["apple", "huawei", "nokia", "samsung", "sony", "xiaomi"]

    def wish():
        x, y = random.uniform(10, 11), random.uniform(59, 60)
        low = random.integers(0, 900)
        kinds = [
            f"price BETWEEN {low} AND {low + random.integers(1, 200)}",
            f"price > {low}",
            f"stock IN ({low}, {low + 1}, {low + 40})",
            f"brand = '{random.choice(brands)}'",
            f"brand LIKE '{random.choice(brands)[:2]}%'",
            f"NOT brand = '{random.choice(brands)}'",
            "stock IS NULL",
            "price IS NOT NULL",
            f"ST_Within(loc, ST_MakeEnvelope({x}, {y}, {x + 0.1}, {y + 0.1}))",
            f"ST_DWithin(loc, ST_Point({x}, {y}), {random.integers(500, 9000)})",
            "ST_Within(loc, ST_MakeEnvelope(179.0, 59.0, 10.5, 60.0))",
            f"NOT ST_DWithin(loc, ST_Point({x}, {y}), 90000)",
        ]
        chosen = random.choice(len(kinds), random.integers(1, 4), replace=False)
        joint = " OR " if random.random() < 0.2 else " AND "
        return joint.join(kinds[one] for one in chosen)

    return [wish() for _ in range(count)]


def some_records(count, seed=2):
    random = np.random.default_rng(seed)

    def record():
        given = {
            "price": float(random.integers(-50, 1100)),
            "stock": float(random.integers(0, 940)),
            "brand": str(random.choice(["apple", "huawei", "nokia", "zte", ""])),
            "loc": Point(random.uniform(9.9, 11.2), random.uniform(58.9, 60.2)),
        }
        if random.random() < 0.3:
            given["price"] = (given["price"], given["price"] + random.integers(0, 400))
        return {name: value for name, value in given.items() if random.random() < 0.8}

    return [record() for _ in range(count)]


@cache
def shop(count=3000, name="mo_tree"):
    columns, events = columns_of(some_wishes(count), SHOP), events_of(some_records(400), SHOP)
    return structure_class(name).build(columns), columns, events


@pytest.mark.parametrize(
    "name", ["mo_tree", "mo_tree paper", "mo_tree layers=2 levels=6", "mo_tree layers=1 stabbed=3"]
)
def test_matches_are_those_of_the_row_scan(name):
    index, _, events = shop(name=name)
    index.check()
    expected = matched_by_rows(index, events)
    found = index.match(events)
    assert np.array_equal(found.starts, expected.starts)
    assert np.array_equal(found.rows, expected.rows)
    assert len(found.rows) > 1000


@pytest.mark.parametrize("name", ["mo_tree", "mo_tree paper"])
def test_live_events_are_found_as_the_row_scan_finds_their_subscriptions(name):
    index, columns, events = shop(name=name)
    for live in (structure_class(name).of_events(events), structure_class(name).build(columns)):
        if not live.live.count:
            live.hold(events)
        live.check()
        found = live.match_live(columns)
        expected = matched_by_rows(index, events)
        forwards = {
            (row, event) for event in range(len(events.until)) for row in rows_of(expected, event)
        }
        backwards = {(row, e) for row in range(3000) for e in rows_of(found, row)}
        assert backwards == forwards


def test_attributes_are_chosen_by_popularity_selectivity_and_uniformity():
    recipe = Intervals(predicates=10)
    layers = MoTree.build(recipe.subscriptions(2000)).stats()["layers"]
    loc = recipe.schema.code("loc")
    assert [(one["attribute"], one["axis"]) for one in layers[:2]] == [(loc, "x"), (loc, "y")]
    for layer in layers:
        assert layer["popularity"] > 0.8
        assert 0.5 < layer["selectivity"] < 1.0
        assert 0.5 < layer["uniformity"] <= 1.0
        assert layer["widths"] == sorted(layer["widths"])
        assert layer["widths"][-1] == 1.0


def test_strings_have_a_layer_by_their_leading_characters():
    words = [f"{first}{second}x" for first in "abcdefghijkl" for second in "aeiou"]
    index = MoTree.build(columns_of([f"brand = '{word}'" for word in words * 4], SHOP))
    layers = index.stats()["layers"]
    assert [one["attribute"] for one in layers] == [SHOP.code("brand")]
    events = events_of([{"brand": "cex"}, {"brand": "zz"}, {}], SHOP)
    found = index.match(events)
    assert [len(rows_of(found, one)) for one in range(3)] == [4, 0, 0]
    assert index.counted_work(events)["slots/event"] < len(words)


def test_events_without_the_attribute_visit_the_whole_domain_cell_only():
    texts = [f"price BETWEEN {n} AND {n + 5}" for n in range(500)]
    index = MoTree.build(columns_of([*texts, "price IS NULL", "stock > 3"], SHOP))
    events = events_of([{"stock": 5}], SHOP)
    assert rows_of(index.match(events)) == [500, 501]
    assert index.counted_work(events)["buckets/event"] == 1


def test_ranges_visit_every_cell_that_they_touch():
    texts = [f"price BETWEEN {n} AND {n + 1}" for n in range(0, 1000, 2)]
    index = MoTree.build(columns_of(texts, SHOP))
    found = rows_of(index.match(events_of([{"price": (99, 301)}], SHOP)))
    assert found == [row for row in range(500) if 2 * row <= 301 and 2 * row + 1 >= 99]


def test_a_live_range_across_cells_has_a_bucket_of_its_own_kind_and_is_found():
    texts = [f"price BETWEEN {n} AND {n + 5}" for n in range(500)]
    index = MoTree.build(columns_of(texts, SHOP))
    index.hold(events_of([{"price": (40, 440)}, {"price": (40, 40.001)}, {"price": 40}], SHOP))
    index.check()
    assert index._tree.events.buckets.used[-1] == 1
    found = index.match_live(columns_of(["price = 40", "price = 440", "price IS NULL"], SHOP))
    assert [rows_of(found, one) for one in range(3)] == [[0, 1, 2], [0], []]


# Maintenance.


def moving(count, predicates=4):
    return Intervals(predicates=predicates).moving(count)


def is_packed(pool):
    buckets = pool.buckets
    return bool((buckets.start[:-1] + buckets.room[:-1] == buckets.start[1:]).all())


def test_buckets_are_next_to_each_other_after_a_build_and_never_far_from_it():
    columns = moving(3000)
    index = MoTree.build(columns)
    pool = index._tree.subscriptions
    assert is_packed(pool)
    rows, rebuilt = np.arange(0, 3000, 5), 0
    for place in range(12):  # a crowd that goes from one bucket to the next
        index.move(rows, np.full((600, 2), (121.25 + 0.03 * place, 31.05 + 0.02 * place)))
        index.check()
        rebuilt += index._tree.subscriptions is not pool
        pool = index._tree.subscriptions
        assert pool.buckets.tally[LOST] < 2 * pool.items
    assert rebuilt


def test_a_member_that_moves_within_its_bucket_keeps_its_slot():
    columns = moving(2000)
    index = MoTree.build(columns)
    slots = index._tree.subscriptions.slot_of.copy()
    rows = np.arange(0, 2000, 7)
    index.move(rows, columns.position.reshape(-1, 2)[rows] + 1e-9)
    assert np.mean(index._tree.subscriptions.slot_of[rows] == slots[rows]) > 0.95
    index.move(rows, columns.position.reshape(-1, 2)[rows[::-1]])
    assert np.mean(index._tree.subscriptions.slot_of[rows] == slots[rows]) < 0.5
    index.check()


def test_what_is_removed_leaves_its_bucket():
    index = MoTree.build(moving(1000))
    index.hold(Intervals().events(1000))
    rows = np.arange(0, 1000, 3)
    for _ in range(2):
        index.remove(rows)
        index.drop(rows)
        assert index._tree.subscriptions.items == index._tree.events.items == 1000 - len(rows)
        assert (index._tree.subscriptions.slot_of[rows] == NO_SLOT).all()
        index.check()


def test_an_index_that_grows_from_nothing_chooses_its_attributes_now_and_then():
    columns, index = moving(600), MoTree()
    layers = []
    for row in range(600):
        index.insert(take(columns, np.array([row])))
        layers.append(index._tree.layers)
    assert layers[0] == layers[2 * FEW - 1] == 0
    assert layers[2 * FEW] == 3
    events = Intervals(predicates=4).events(100)
    assert np.array_equal(index.match(events).rows, matched_by_rows(index, events).rows)


def test_live_events_alone_are_filed_by_their_places():
    events = Intervals().events(500)
    index = MoTree.of_events(events)
    assert index._tree.layers == 3
    assert index._tree.events.buckets.used.max() < 100
    index.check()


# Time.


def with_until(events, until):
    return events._replace(until=np.asarray(until, np.int64))


def test_an_event_leaves_its_bucket_at_the_exact_instant_when_it_is_visited():
    index = MoTree.build(columns_of([f"price > {n}" for n in range(500)], SHOP))
    index.hold(with_until(events_of([{"price": 100}] * 3, SHOP), [10, 11, 12]))
    asking = columns_of(["price = 100"], SHOP)
    for now, left in ((9, [0, 1, 2]), (10, [1, 2]), (11, [2]), (12, [])):
        index.advance(now)
        assert rows_of(index.match_live(asking)) == left
        assert index._tree.events.items == len(left)
        index.check()
    assert index.live.current_count == 3, "whoever holds them drops them"
    index.drop(np.arange(3))
    assert index.live.current_count == 0


def test_visiting_takes_expired_events_out_of_the_visited_buckets_only():
    recipe = Intervals(predicates=4)
    index = MoTree.build(recipe.subscriptions(2000))
    index.hold(with_until(recipe.events(3000), np.full(3000, 5)))
    index._now = 5  # without a sweep
    index.match_live(recipe.subscriptions(3))
    assert 0 < index._tree.events.items < 3000
    index.check()


def test_a_bounded_sweep_reaches_events_that_nobody_asks_for():
    recipe = Intervals(predicates=4)
    index = MoTree.build(recipe.subscriptions(2000))
    index.hold(with_until(recipe.events(3000), np.arange(3000) % 2 * 1000 + 5))
    buckets = len(index._tree.events.buckets.used)
    for now in range(6, 6 + buckets // SWEPT + 1):
        index.advance(now)
    index.check()
    assert index._tree.events.items == 1500


def test_time_that_goes_back_changes_nothing():
    index = MoTree()
    index.hold(with_until(events_of([{"price": 1}], SHOP), [7]))
    index.advance(6)
    index.advance(5)
    assert rows_of(index.match_live(columns_of(["price = 1"], SHOP))) == [0]


def test_a_moving_subscriber_gets_the_live_events_around():
    engine = stentor.Engine("mo_tree", clock=None)
    for number in range(200):
        engine.subscribe(f"other{number}", f"price < {number}")
    for id, x in (("near", 151.2), ("far", 151.3), ("over", 151.2)):
        until = 5_000_000 if id == "over" else 90_000_000
        engine.publish({"id": id, "price": 9, "loc": [x, -33.9]}, until=until, time=1_000_000)
    text = "price < 10 AND ST_DWithin(loc, here(), 1000)"
    here = (151.2, -33.9)
    assert engine.subscribe("ana", text, at=here, time=4_999_999).added == ["near", "over"]
    assert engine.subscribe("bo", text, at=here, time=5_000_000).added == ["near"]
    changes = engine.move("ana", (151.3, -33.9), time=6_000_000)
    assert (changes.added, changes.removed) == (["far"], ["near"])
    assert "ana" in engine.publish({"id": "new", "price": 9, "loc": [151.3, -33.9]})


def test_a_long_run_of_changes_is_answered_as_by_the_scan_while_time_passes():
    run = Run("mo_tree", seed=5)
    for part in range(1, 11):
        run.to(OPERATIONS * part // 10)
        run.index.advance(run.source.now)


def test_a_run_over_many_small_buckets_is_answered_as_by_the_scan():
    Run("mo_tree layers=4 levels=3 growth=linear event_cells=4 stabbed=4", seed=6).to(
        OPERATIONS // 10
    )


@pytest.mark.parametrize("step", [1, 7, 40])
def test_a_rebuild_in_many_steps_is_answered_as_by_the_scan(monkeypatch, step):
    monkeypatch.setattr(mo_tree_index, "STEP", step)
    run = Run("mo_tree", seed=step)
    in_between = 0
    for part in range(1, 41):
        run.to(OPERATIONS // 10 * part // 40)
        in_between += run.index.index._former is not None
        run.index.check()
        run.index.advance(run.source.now)
    assert in_between, "now and then there are two trees"


def test_a_rebuild_does_a_bounded_share_of_its_work_in_each_call(monkeypatch):
    filed = []
    file = MoTreeLayers.insert_subscriptions

    def counted(tree, columns, alternatives):
        filed.append(len(alternatives))
        file(tree, columns, alternatives)

    columns = Intervals(3, 4).subscriptions(4 * STEP)
    index = MoTree.build(take(columns, np.arange(STEP)))
    monkeypatch.setattr(MoTreeLayers, "insert_subscriptions", counted)
    former, most = set(), 0
    for row in range(STEP, 4 * STEP):
        filed.clear()
        index.insert(take(columns, np.arange(row, row + 1)))
        most = max(most, sum(filed))
        former.add(index._former)
    assert len(former) > 1, "it was rebuilt"
    assert most <= STEP + 1


def test_a_saved_tree_is_a_whole_one(tmp_path, monkeypatch):
    monkeypatch.setattr(mo_tree_index, "STEP", 8)
    recipe = Intervals(3, 4)
    columns, events = recipe.subscriptions(300), recipe.events(20)
    index = MoTree.build(take(columns, np.arange(100)))
    for row in range(100, 300):
        index.insert(take(columns, np.arange(row, row + 1)))
        if index._former is not None:
            break
    assert index._former is not None
    index.save(tmp_path / "index")
    opened = MoTree.open(tmp_path / "index", index.subscriptions.columns)
    assert opened.match(events).rows.tolist() == index.match(events).rows.tolist()
    opened.check()


def test_cells_at_quantiles_prune_a_city_in_which_everybody_is_in_one_square():
    recipe = Intervals(1, 4, hot=True, reach=(20.0, 100.0))
    columns, events = recipe.subscriptions(20_000), recipe.events(2_000)
    history, unseen = events_between(events, 200, None), events_between(events, 0, 200)
    slots = {
        name: structure_class(name).build(columns, history).counted_work(unseen)["slots/event"]
        for name in ("mo_tree", "mo_tree pieces=widths")
    }
    assert slots["mo_tree"] < slots["mo_tree pieces=widths"] / 4


@given(st.lists(st.floats(allow_nan=False), min_size=1), st.floats(), st.floats())
def test_positions_ascend_with_values_whatever_the_knots(ends, one, other):
    finite = [end for end in ends if math.isfinite(end)]
    if not finite:
        return
    for knots in (quantiles(np.array(ends)), widths(min(finite), max(finite))):
        dimension = dimensions_of(
            [AttributeChoice(0, VALUE, knots, 1.0, np.zeros(0), np.zeros(0), np.zeros(0))]
        )
        plain = getattr(
            domain_position, "py_func", domain_position
        )  # only kernels can call the compiled one
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = (plain(dimension, 0, value) for value in sorted([one, other]))
        assert 0.0 <= low <= high <= 1.0 or math.isnan(one) or math.isnan(other)


# Settings, files.


def test_the_paper_s_settings_are_a_preset():
    index = structure_class("mo_tree paper").build(Intervals().subscriptions(3000))
    assert index.settings == PAPER
    assert (index.stats()["buckets"], index.stats()["event buckets"]) == (10**6, 10**6 + 1)


@pytest.mark.parametrize(
    "words",
    [
        *("layers=0", "levels=17", "growth=wild", "stabbed=0.5", "stabbed=nan"),
        *("event_cells=1", "layers=8", "layers=4 event_cells=100"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(words):
    with pytest.raises(SettingsError):
        structure_class(f"mo_tree {words}")


def test_a_folder_of_other_subscriptions_is_refused(tmp_path):
    MoTree.build(columns_of(["price > 3"], SHOP)).save(tmp_path / "index")
    with pytest.raises(FolderError, match="other subscriptions"):
        MoTree.open(tmp_path / "index", empty(SubscriptionColumns))


def test_an_opened_tree_matches_as_the_one_that_was_saved(tmp_path):
    index, columns, events = shop()
    index.save(tmp_path / "index")
    opened = MoTree.open(tmp_path / "index", columns)
    opened.check()
    assert opened.stats()["layers"] == index.stats()["layers"]
    assert np.array_equal(opened.match(events).rows, index.match(events).rows)
    opened.remove(np.arange(0, 3000, 2))
    left = opened.match(events).rows
    assert np.array_equal(left, [row for row in index.match(events).rows if row % 2])


def test_history_says_where_the_values_of_events_are():
    recipe = Intervals(predicates=4)
    columns = recipe.subscriptions(2000)
    history = Intervals(hotspots=1).events(3000)  # all at one place
    plain = structure_class("mo_tree stabbed=5").build(columns)
    measured = structure_class("mo_tree stabbed=5").build(columns, history)
    assert plain.stats()["layers"][0]["widths"] != measured.stats()["layers"][0]["widths"]
    events = events_between(history, 0, 100)
    assert np.array_equal(plain.match(events).rows, measured.match(events).rows)


def test_check_finds_an_item_in_a_wrong_bucket():
    columns = moving(500)
    index = MoTree.build(columns)
    tree = index._tree
    buckets = tree.subscriptions.writable
    buckets.card[tree.subscriptions.slot_of[3] * 8 + 1] += np.uint64(1 << 32)
    with pytest.raises(AssertionError):
        check_subscriptions(tree, index.subscriptions.columns, np.arange(500))
    assert math.isfinite(index.stats()["bytes"])
