"""The MICS index: cells, dimensions, two phases, long runs."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.hilbert import HilbertCurve
from stentor.encoding.hilbert.ranges import Ranges
from stentor.encoding.partition import (
    ANYTHING,
    NEEDED,
    UNWANTED,
    Partition,
    coarsened,
    estimated_ranges,
)
from stentor.encoding.ragged import take
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.errors import FolderError, SettingsError
from stentor.index.catalog import index_class
from stentor.index.mics import Mics, RangeTable
from stentor.index.mics.check import check_postings
from stentor.index.mics.postings import Postings
from stentor.index.structure import Structure
from stentor.language.check import check_and_learn
from stentor.model import Constant, Event, Kind, Range, Schema
from tests.support.index_runs import Run

OPERATIONS = int(os.environ.get("STENTOR_SOAK_OPERATIONS", "20000"))
SCHEMA = Schema.declare({"a": "number", "b": "number", "c": "number", "d": "number"})
numbers = st.floats(allow_nan=False)


def columns_of(texts):
    forms = [check_and_learn(text, SCHEMA, where="here")[1] for text in texts]
    return encode_subscriptions([NormalisedSubscription(form, None) for form in forms], SCHEMA)


def events_of(*attributes):
    def value(given):
        low, high = given if isinstance(given, tuple) else (given, given)
        if low == high:
            return Constant(Kind.NUMBER, float(low))
        return Range(Kind.NUMBER, float(low), float(high))

    return encode_events(
        [
            TimedEvent(Event("e", {name: value(one) for name, one in of.items()}))
            for of in attributes
        ],
        SCHEMA,
    )


def grid_texts(count):
    """Boxes on a and b, the wider ones on c; nothing on d."""
    return [
        f"a BETWEEN {x} AND {x + 3} AND b BETWEEN {y} AND {y + 5} AND c < {50 + x}"
        for x in range(0, count * 4, 4)
        for y in range(0, count * 4, 4)
    ]


def test_figure_3_has_a_false_positive_of_the_augmentation_that_the_verifier_settles():
    # s1 lies inside s2's cells, which the corner cell of p3 = 50 is the last of.
    s1 = "a BETWEEN 4.4 AND 6.3 AND b BETWEEN 2.5 AND 5.5"
    p3 = {"a": 6.7, "b": 2.2}
    curve = HilbertCurve(2, 3)
    table = RangeTable()
    table.subscribe("s1", curve.ranges([(4, 2)], [(6, 5)]).of(0))
    assert table.covers(int(curve.numbers([(int(p3["a"]), int(p3["b"]))])[0]))
    index = Mics.build(columns_of([s1]))
    events = events_of(p3, {"a": 5.0, "b": 3.0})
    assert index.match(events).starts.tolist() == [0, 0, 1]


@given(low=numbers, width=st.floats(1e-3, 1e12), bits=st.integers(2, 8), values=st.lists(numbers))
def test_cells_ascend_with_values_and_leave_the_null_coordinate_free(low, width, bits, values):
    low = min(max(low, -1e300), 1e300)
    sample = np.array([low, low + width, 0.0, *values])
    high = max(low + width, float(np.nextafter(low, np.inf)))
    for cells in (Partition.equal([low], [high], bits), Partition.from_sample([sample], bits)):
        ordered = np.sort(np.array([-np.inf, *values, low, np.inf])).reshape(-1, 1)
        coordinates = cells.coordinates(ordered).reshape(-1)
        assert (np.diff(coordinates.astype(np.int64)) >= 0).all()
        assert coordinates.min() >= 1
        assert coordinates.max() <= cells.curve.last
        assert cells.coordinates(np.array([[np.nan]])).tolist() == [[0]]


def test_variable_cells_hold_equally_many_of_the_sample():
    sample = np.random.default_rng(1).zipf(1.6, 10_000).astype(float)
    sample += np.random.default_rng(2).random(10_000)
    cells = Partition.from_sample([sample], 4)
    counts = np.bincount(cells.coordinates(sample.reshape(-1, 1)).reshape(-1).astype(int))
    assert counts[0] == 0
    assert counts[1:].min() > 10_000 / 15 / 1.2
    equal = Partition.equal([sample.min()], [sample.max()], 4)
    crowded = np.bincount(equal.coordinates(sample.reshape(-1, 1)).reshape(-1).astype(int))
    assert crowded.max() > 9_000


def test_a_missing_value_is_only_in_boxes_that_do_not_need_one():
    cells = Partition.equal([0, 0], [1, 1], 3)
    bounds = np.zeros((3, 2)), np.ones((3, 2))
    need = np.array([[NEEDED, NEEDED], [ANYTHING, NEEDED], [UNWANTED, NEEDED]], np.uint8)
    table = cells.ranges(*bounds, need)
    without_a, with_both = cells.numbers(np.array([[np.nan, 0.5], [0.5, 0.5]])).tolist()
    holds = [
        [any(low <= number <= high for low, high in table.of(box)) for box in range(3)]
        for number in (without_a, with_both)
    ]
    assert holds == [[False, True, True], [True, True, False]]


@given(data=st.data(), most=st.integers(1, 40))
def test_coarsened_boxes_hold_the_given_ones_and_need_no_more_ranges(data, most):
    curve = HilbertCurve(data.draw(st.integers(1, 3)), data.draw(st.integers(1, 5)))
    corner = st.lists(
        st.integers(0, curve.last), min_size=curve.dimensions, max_size=curve.dimensions
    )
    ends = np.sort(np.array([[data.draw(corner), data.draw(corner)]], np.uint64), axis=1)
    low, high = coarsened(ends[:, 0], ends[:, 1], curve, most)
    assert (low <= ends[:, 0]).all()
    assert (high >= ends[:, 1]).all()
    if estimated_ranges(ends[:, 0], ends[:, 1], curve.last)[0] <= most:
        assert low.tolist() == ends[:, 0].tolist()
        assert high.tolist() == ends[:, 1].tolist()
    assert np.diff(curve.ranges(low, high).starts)[0] <= max(1, 8 * most)


def test_the_most_selective_dimensions_are_chosen():
    index = index_class("mics dimensions=2").build(columns_of(grid_texts(12)))
    chosen = index.stats()["dimensions"]
    assert [one["attribute"] for one in chosen] == [0, 1]
    assert chosen[0]["selectivity"] > chosen[1]["selectivity"] > 0.5


def test_few_of_many_alternatives_become_candidates():
    index = Mics.build(columns_of(grid_texts(20)))
    events = events_of(
        {"a": 41, "b": 42, "c": 1}, {"b": 42, "c": 1}, {"a": (40, 47), "b": 42, "c": 1}
    )
    assert np.diff(index.match(events).starts).tolist() == [1, 0, 2]
    assert index.counted_work(events)["candidates/event"] < 16


@pytest.mark.parametrize("name", ["mics", "mics paper"])
def test_whoever_wants_no_value_is_no_candidate_where_there_is_one(name):
    texts = [f"a IS NULL AND b BETWEEN {low} AND {low + 1}" for low in range(50)]
    texts += [f"a BETWEEN {low} AND {low + 1} AND b < 60" for low in range(50)]
    index = index_class(name).build(columns_of(texts))
    both, without_a = events_of({"a": 99, "b": 20}), events_of({"b": 20.5})
    assert index.counted_work(both)["candidates/event"] <= 2  # the last cell reaches to infinity
    assert index.counted_work(without_a)["candidates/event"] < 10
    assert index.match(without_a).rows.tolist() == [20]


@pytest.mark.parametrize("far", [1.7976931348623157e308, -1.7976931348623157e308, 5e-324, 0.0])
def test_a_dimension_of_one_value_has_cells(far):
    cells = Partition.from_sample([np.array([far, far])], 4)
    assert cells.coordinates(np.array([[-math.inf], [far], [math.inf]])).tolist() == [
        [1],
        [15],
        [15],
    ]
    index = Mics.build(columns_of([f"a = {far!r}", "a IS NULL"]))
    index.check()
    assert index.match(events_of({"a": far}, {})).rows.tolist() == [0, 1]


def test_related_rows_are_those_that_share_cells():
    index = Mics.build(columns_of(grid_texts(20)))
    index.remove(np.array([1]))
    asked = columns_of(["a BETWEEN 0 AND 2 AND b BETWEEN 0 AND 4", "d = 1"])
    found = index.related(asked)
    near = found.rows[: found.starts[1]].tolist()
    assert 0 in near
    assert 1 not in near
    assert len(near) < 40
    assert found.starts[2] - found.starts[1] == 399  # nothing is known of d


@pytest.mark.parametrize("name", ["mics", "mics paper", "mics cells=equal ranges=1 bits=2"])
def test_an_opened_index_answers_like_the_one_that_was_saved(name, tmp_path: Path):
    columns = columns_of(grid_texts(12))
    index = index_class(name).build(columns)
    index.save(tmp_path / "index")
    opened = index_class(name).open(tmp_path / "index", columns)
    events = events_of({"a": 41, "b": 42, "c": 1}, {"a": (0, 20), "b": (0, 20), "c": 0})
    opened.remove(np.array([0]))
    before, after = index.match(events), opened.match(events)
    assert np.diff(before.starts).tolist() == [1, 36]
    assert sorted(before.rows.tolist()) == sorted([0, *after.rows.tolist()])
    with pytest.raises(FolderError, match="other subscriptions"):
        index_class(name).open(tmp_path / "index", columns_of(grid_texts(2)))


def test_what_comes_in_place_of_others_brings_its_own_dimensions():
    index = index_class("mics dimensions=2").build(columns_of(grid_texts(12)))
    assert {one["attribute"] for one in index.stats()["dimensions"]} == {0, 1}
    others = columns_of([text.replace("a ", "d ") for text in grid_texts(12)])
    for start in range(0, 144, 12):
        index.remove(np.arange(start, start + 12))
        index.insert(take(others, np.arange(start, start + 12)))
        index.check()
    index.insert(take(others, np.arange(1)))
    assert {one["attribute"] for one in index.stats()["dimensions"]} == {3, 1}
    events = events_of({"d": 41, "b": 42, "c": 1}, {"a": 41, "b": 42, "c": 1})
    assert np.diff(index.match(events).starts).tolist() == [1, 0]


def test_an_index_of_nothing_finds_nothing_also_when_opened(tmp_path: Path):
    index = Mics.build(columns_of([]))
    events = events_of({"a": 1}, {})
    assert index.match(events).starts.tolist() == [0, 0, 0]
    index.save(tmp_path / "index")
    opened = Mics.open(tmp_path / "index", columns_of([]))
    assert opened.match(events).starts.tolist() == [0, 0, 0]
    assert index.counted_work(events) == {"candidates/event": 0.0, "ranges/event": 0.0}


def test_removed_and_filed_again_rows_are_neither_found_nor_kept(tmp_path: Path):
    columns = columns_of(grid_texts(12))
    index = Mics.build(columns)
    events = events_of({"a": 1, "b": 1, "c": 0})
    for _ in range(8):
        first = index.insert(columns)
        index.remove(np.arange(first - 144, first))
        index.check()
        assert index.match(events).rows.tolist() == [first]
        assert index.counted_work(events)["candidates/event"] == 1
    assert index.stats()["ranges"] < 144 * 6
    assert sum(leaves.size for leaves in index._runs.leaves) < 3 * 144 * 6
    index.save(tmp_path / "index")
    opened = Mics.open(tmp_path / "index", index.subscriptions.columns)
    opened.remove(np.arange(first))
    assert opened.match(events).rows.tolist() == [first]


def test_what_is_gone_may_be_removed_again_after_a_new_choice():
    columns = columns_of(grid_texts(12))
    index = Mics.build(columns)
    index.remove(np.arange(143, 144))
    for _ in range(2):
        first = index.insert(columns)
        index.remove(np.arange(first, index.count))
    index.insert(take(columns, np.arange(1)))
    index.remove(np.arange(140, index.count))
    index.check()
    assert index.stats()["subscriptions"] == 140


def test_stats_tell_what_a_subscription_takes():
    index = Mics.build(columns_of(grid_texts(20)))
    stats = index.stats()
    beside = stats["bytes"] - Structure.stats(index)["bytes"]
    assert stats["bytes/subscription"] == beside / 400
    assert 30 < stats["bytes/subscription"] < 300
    assert stats["ranges"] >= 400


VARIANTS = [
    "mics",
    "mics paper",
    "mics ranges=1 bits=2 filters=1",
    "mics ranges=64 bits=12 dimensions=4 filters=0 cells=equal",
]
FAR = [-math.inf, -1.7976931348623157e308, -1e9, -1.0, 0.0, 5e-324, 1.0, 2.5, 1e9, math.inf]


@st.composite
def far_texts(draw):
    def one(name):
        low, high = sorted((draw(st.sampled_from(FAR[1:-1])), draw(st.sampled_from(FAR[1:-1]))))
        return draw(
            st.sampled_from(
                [
                    f"{name} BETWEEN {low!r} AND {high!r}",
                    f"{name} > {low!r}",
                    f"{name} <= {high!r}",
                    f"{name} = {low!r}",
                    f"{name} != {low!r}",
                    f"{name} IS NULL",
                    f"{name} IS NOT NULL",
                    f"({name} < {low!r} OR {name} > {high!r})",
                    "TRUE",
                ]
            )
        )

    return " AND ".join(one(name) for name in "abc")


far_values = st.sampled_from(FAR) | st.tuples(st.sampled_from(FAR), st.sampled_from(FAR)).map(
    lambda pair: tuple(sorted(pair))
)
far_events = st.fixed_dictionaries({}, optional=dict.fromkeys("abcd", far_values))


@pytest.mark.parametrize("chunk", [1, 7, 1 << 16])
def test_alternatives_are_filed_alike_in_any_portions(chunk, monkeypatch):
    monkeypatch.setattr("stentor.index.mics.index.CHUNK", chunk)
    index = Mics.build(columns_of(grid_texts(5)))
    index.check()
    assert index.match(events_of({"a": 1, "b": 1, "c": 0})).rows.tolist() == [0]
    assert index.stats()["ranges"] == Mics.build(columns_of(grid_texts(5))).stats()["ranges"]


@settings(max_examples=settings.default.max_examples // 2)
@given(
    name=st.sampled_from(VARIANTS),
    texts=st.lists(far_texts(), min_size=1, max_size=30),
    asked=st.lists(far_events, min_size=1, max_size=8),
    gone=st.sets(st.integers(0, 200), max_size=40),
)
def test_far_values_ranges_and_missing_ones_are_found_as_the_scan_finds_them(
    name, texts, asked, gone
):
    columns = columns_of(texts)
    several = take(columns, np.arange(5 * len(texts)) % len(texts))
    events = events_of(*asked)
    index, scan = (index_class(one).build(columns, events) for one in (name, "scan"))
    for one in (index, scan):
        one.insert(several)
        one.remove(np.array(sorted(row for row in gone if row < one.count), np.int64))
    index.check()
    found, expected = index.match(events, threads=2), scan.match(events)
    assert found.starts.tolist() == expected.starts.tolist()
    assert found.rows.tolist() == expected.rows.tolist()


def test_more_candidates_than_there_is_room_for_are_found_again(monkeypatch):
    index = Mics.build(columns_of(["a > 0"] * 3000))
    events = events_of(*[{"a": 1 + number} for number in range(40)])
    assert len(index.match(events).rows) == 3000 * 40
    monkeypatch.setattr("stentor.index.mics.index.MOST_CANDIDATES", 10_000)
    halved = index.match(events)
    assert np.diff(halved.starts).tolist() == [3000] * 40
    assert (np.diff(halved.rows.reshape(40, 3000), axis=1) == 1).all()
    several = columns_of([*["a < 5 OR a > 7"] * 8, "a < 0"])
    assert np.diff(index.related(several).starts).tolist() == [3000] * 8 + [0]


ranges_of_owners = st.lists(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), min_size=1, max_size=4), max_size=12
)


@given(given_ones=ranges_of_owners, gone=st.sets(st.integers(0, 11)), low=st.integers(0, 50))
def test_postings_give_the_owners_of_a_number(given_ones, gone, low):
    postings = Postings()
    ranges = [[(start, start + more) for start, more in one] for one in given_ones]
    for owner, one in enumerate(ranges):
        postings.add(np.array([owner]), as_ranges([one]))
    stand = [owner for owner in range(len(ranges)) if owner not in gone]
    postings.remove(np.array([owner for owner in gone if owner < len(ranges)], np.int64))
    check_postings(
        postings,
        np.array(stand, np.int64),
        lambda owners: as_ranges([sorted(ranges[owner]) for owner in owners.tolist()]),
    )
    _, owners = postings.owners_of(as_ranges([[(low, low + 2)]]))
    assert sorted(set(owners.tolist())) == [
        owner
        for owner in stand
        if any(start <= low + 2 and stop >= low for start, stop in ranges[owner])
    ]


def as_ranges(boxes):
    starts = np.cumsum([0, *(len(box) for box in boxes)])
    flat = np.array([pair for box in boxes for pair in box], np.uint64).reshape(-1, 2)
    return Ranges(starts, *(np.ascontiguousarray(flat[:, end]) for end in (0, 1)))


@pytest.mark.parametrize(
    "words", ["bits=1", "dimensions=0", "dimensions=8 bits=8", "filters=65", "cells=round"]
)
def test_settings_that_make_no_sense_are_refused(words):
    with pytest.raises(SettingsError, match="expected"):
        index_class(f"mics {words}")


def test_partitions_that_make_no_sense_are_refused():
    with pytest.raises(SettingsError, match="low < high"):
        Partition.equal([1.0], [1.0], 4)
    with pytest.raises(SettingsError, match="expected 2 to 16"):
        Partition.from_sample([np.zeros(3)], 17)
    with pytest.raises(SettingsError, match="no value in the sample"):
        Partition.from_sample([np.array([np.nan])], 4)


@pytest.mark.parametrize(
    ("name", "share"),
    [("mics", 1), ("mics paper", 4), ("mics ranges=1 dimensions=2 layered", 5)],
)
def test_a_long_run_answers_like_the_scan(name, share):
    Run(name, seed=9).to(OPERATIONS // share)
