"""Subscription indexing: each yes is proven, and for conjunctions of bounds each no as well."""

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.covering.covers import alternatives_of, covers
from stentor.covering.indexed import SubsumptionIndex
from stentor.covering.subsumption import subsumption, without
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.ragged import take
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.errors import SettingsError, UnknownIdError
from stentor.index.catalog import index_class
from stentor.language.check import check_and_learn
from stentor.language.evaluate import evaluate
from stentor.language.parser import parse
from stentor.model import Constant, Event, Kind, Schema
from tests.support import grid
from tests.support.covering_strategies import normalised, related
from tests.support.slow_index import encoded
from tests.support.strategies import events

KINDS = {"a": "number", "b": "number", "c": "number", "sold": "boolean", "loc": "point"}
FEWER = settings.default.max_examples // 2


def schema():
    return Schema.declare(KINDS)


def columns_of(texts, of):
    forms = [check_and_learn(text, of, where="here")[1] for text in texts]
    return encode_subscriptions([NormalisedSubscription(form, None) for form in forms], of)


def index_of(texts, **settings):
    index = SubsumptionIndex(schema(), **settings)
    index.subscribe_batch(
        [f"s{number}" for number in range(len(texts))], columns_of(texts, index.schema)
    )
    index.check()
    return index


def related_to(index, text):
    return index.relate(columns_of([text], index.schema))[0]


# What bounds on a few whole numbers can tell apart, these events do.
VALUES = [None, *(half / 2 for half in range(-1, 14))]
GRID = [
    Event(
        "e",
        {
            name: Constant(Kind.NUMBER, value)
            for name, value in zip("ab", point, strict=True)
            if value is not None
        },
    )
    for point in itertools.product(VALUES, VALUES)
]


@cache
def matched(text):
    expression = parse(text, schema=schema())
    return {number for number, event in enumerate(GRID) if evaluate(expression, event).truth}


@st.composite
def bounds(draw, name):
    low, high = sorted((draw(st.integers(0, 5)), draw(st.integers(0, 5))))
    return draw(
        st.sampled_from(
            [
                f"{name} BETWEEN {low} AND {high}",
                f"{name} BETWEEN {low} AND {high}",
                f"{name} >= {low} AND {name} < {high + 1}",
                f"{name} > {low}",
                f"{name} <= {high}",
                f"{name} != {low}",
                f"{name} IS NULL",
                f"{name} IS NOT NULL",
                "TRUE",
            ]
        )
    )


conjunctions = st.tuples(bounds("a"), bounds("b")).map(" AND ".join)


@given(texts=st.lists(conjunctions, min_size=1, max_size=10), new=conjunctions)
def test_bounds_are_related_exactly_as_the_events_that_match_them(texts, new):
    index = index_of(texts)
    found = related_to(index, new)
    sets, mine = [matched(text) for text in texts], matched(new)
    ids = [f"s{number}" for number in range(len(texts))]
    assert found.covered_by == [id for id, one in zip(ids, sets, strict=True) if mine <= one]
    assert found.covers == [id for id, one in zip(ids, sets, strict=True) if one <= mine]
    assert bool(found.subsumed_by) == (mine <= set().union(*sets))
    together = [sets[ids.index(id)] for id in found.subsumed_by]
    assert mine <= set().union(*together) or not found.subsumed_by
    assert not found.gave_up
    for merger in found.mergers:
        one = (
            index_class("scan")
            .build(merger.columns)
            .match(encode_events(map(TimedEvent, GRID), schema()))
        )
        union = set(np.flatnonzero(np.diff(one.starts)).tolist())
        assert union == mine | sets[ids.index(merger.id)]


@given(
    pair=st.tuples(*[st.tuples(st.integers(0, 5), st.integers(0, 5)).map(sorted)] * 3),
    swapped=st.booleans(),
)
def test_boxes_that_differ_in_one_attribute_merge_where_they_touch(pair, swapped):
    (low, high), (other_low, other_high), (b_low, b_high) = pair
    one, other = (
        f"a >= {x} AND a < {y + 1} AND b BETWEEN {b_low} AND {b_high}"
        for x, y in ((low, high), (other_low, other_high))
    )
    if swapped:
        one, other = other, one
    found = related_to(index_of([one, "c = 1"]), other)
    touch = low <= other_high + 1 and other_low <= high + 1
    settled = found.covered_by or found.covers
    assert [merger.id for merger in found.mergers] == (["s0"] if touch and not settled else [])


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("a BETWEEN 0 AND 5", "a > 5 AND a <= 9", "a BETWEEN 0 AND 9"),
        ("a < 5", "a >= 3", "a IS NOT NULL"),
        ("sold = TRUE AND a = 1", "sold = FALSE AND a = 1", "sold IS NOT NULL AND a = 1"),
        (
            "ST_Within(loc, ST_MakeEnvelope(0, 0, 5, 5)) AND a < 3",
            "ST_Within(loc, ST_MakeEnvelope(5, 0, 9, 5)) AND a < 3",
            "ST_Within(loc, ST_MakeEnvelope(0, 0, 9, 5)) AND a < 3",
        ),
    ],
)
def test_what_is_merged_asks_for_both(one, other, both):
    index = index_of([one])
    (merger,) = related_to(index, other).mergers
    merged = index_of([])
    merged.subscribe("m", merger.columns)
    found = related_to(merged, both)
    assert found.covered_by == found.covers == ["m"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a BETWEEN 0 AND 5", "a BETWEEN 5.5 AND 9"),  # a gap
        ("a < 5", "a > 5"),  # a gap of one double
        ("a < 5 AND b < 5", "a >= 5 AND b < 4"),  # they differ in two
        ("a < 5 AND b < 5", "b < 5 AND c < 5"),
        ("a < 5", "a IS NULL"),
        (
            "ST_Within(loc, ST_MakeEnvelope(0, 0, 5, 5))",
            "ST_Within(loc, ST_MakeEnvelope(5, 0, 9, 6))",
        ),
        (
            "ST_Within(loc, ST_MakeEnvelope(170, 0, 180, 5))",
            "ST_Within(loc, ST_MakeEnvelope(175, 0, -175, 5))",
        ),
    ],
)
def test_what_is_not_one_conjunction_is_not_merged(one, other):
    assert related_to(index_of([one]), other).mergers == []


@pytest.mark.parametrize(
    ("texts", "new", "by"),
    [
        # A missing attribute satisfies no bound: all numbers together are not all events.
        (["a < 5", "a >= 5"], "TRUE", []),
        (["a < 5", "a >= 5"], "a IS NOT NULL", ["s0", "s1"]),
        (["a < 5", "a >= 5", "a IS NULL"], "b = 1", ["s0", "s1", "s2"]),
        (["a < 5 AND b < 5", "a >= 4", "b >= 5"], "a < 9 AND b IS NOT NULL", ["s0", "s1", "s2"]),
        (["a < 5 AND b < 5", "a >= 4", "b > 5"], "a < 9 AND b IS NOT NULL", []),
        (["sold = TRUE", "sold = FALSE"], "sold IS NOT NULL AND a = 1", ["s0", "s1"]),
        (
            [
                "ST_Within(loc, ST_MakeEnvelope(0, 0, 5, 9))",
                "ST_Within(loc, ST_MakeEnvelope(5, 0, 9, 9))",
            ],
            "ST_Within(loc, ST_MakeEnvelope(1, 1, 8, 8)) AND a = 1",
            ["s0", "s1"],
        ),
        (  # the union of two circles is not looked into
            ["ST_DWithin(loc, ST_Point(0, 0), 1000)", "ST_DWithin(loc, ST_Point(0.001, 0), 1000)"],
            "ST_Within(loc, ST_MakeEnvelope(-0.0085, -0.001, 0.0095, 0.001))",
            [],
        ),
        (["a < 5 OR a > 6", "a BETWEEN 5 AND 6"], "a BETWEEN 0 AND 9", ["s0", "s1"]),
        (["a < 5 OR a >= 5"], "a BETWEEN 0 AND 9", ["s0"]),  # covered, by two alternatives
    ],
)
def test_several_subsume_together_what_none_covers(texts, new, by):
    assert related_to(index_of(texts), new).subsumed_by == by


def test_strings_and_words_are_subtracted_test_by_test():
    of = Schema.declare({"s": "string", "t": "string"})
    index = SubsumptionIndex(of)
    texts = ["s < 'm'", "s >= 'm' AND has_all(t, 'red')", "NOT has_all(t, 'red')", "s LIKE 'a%'"]
    index.subscribe_batch(list("wxyz"), columns_of(texts, of))
    assert related_to(index, "s IS NOT NULL AND has_all(t, 'blue')").subsumed_by == ["w", "x", "y"]
    assert related_to(index, "s IN ('n', 'o') AND t = 'a red one'").covered_by == ["x"]
    assert related_to(index, "s > 'b'").subsumed_by == []  # t may be missing


def test_it_gives_up_at_its_limit_and_then_knows_nothing():
    texts = [
        f"a BETWEEN {x} AND {x + 1} AND b BETWEEN {y} AND {y + 1}"
        for x in range(8)
        for y in range(8)
    ]
    new = "a BETWEEN 0 AND 8 AND b BETWEEN 0 AND 8"
    found = related_to(index_of(texts), new)
    assert len(found.subsumed_by) == 64
    limited = related_to(index_of(texts, most_steps=50), new)
    assert (limited.subsumed_by, limited.gave_up) == ([], True)
    assert limited.covers == found.covers


@settings(max_examples=FEWER)
@given(
    given_ones=related(min_size=2, max_size=10), asked=st.lists(events(), min_size=1, max_size=20)
)
def test_no_event_tells_the_difference_whatever_the_language(given_ones, asked):
    of = grid.schema()
    *others, new = given_ones
    index = SubsumptionIndex(of)
    ids = [f"s{number}" for number in range(len(others))]
    index.subscribe_batch(ids, encoded(others, of))
    index.check()
    found = index.relate(encoded([new], of))[0]
    by_id = dict(zip(ids, others, strict=True))
    for id, other in by_id.items():  # the first phase loses nobody
        assert not covers(normalised(other), normalised(new), of) or id in found.covered_by
        assert not covers(normalised(new), normalised(other), of) or id in found.covers
    columns = {merger.id: merger.columns for merger in found.mergers}
    for event in asked:
        truth = {id: holds(other, event) for id, other in by_id.items()}
        if holds(new, event):
            assert all(truth[id] for id in found.covered_by)
            assert any(truth[id] for id in found.subsumed_by) or not found.subsumed_by
        else:
            assert not any(truth[id] for id in found.covers)
        for id, one in columns.items():
            matches = index_class("scan").build(one).match(encode_events([TimedEvent(event)], of))
            assert len(matches.rows) == (holds(new, event) or truth[id])


def holds(subscription, event):
    return bool(evaluate(subscription.expression, event, here=subscription.at).truth)


commands = st.lists(st.tuples(st.integers(0, 9), st.none() | conjunctions), max_size=40)


@settings(max_examples=FEWER)
@given(history=commands, new=conjunctions)
def test_any_history_leaves_what_stands(history, new):
    index = SubsumptionIndex(schema())
    stand = {}
    for number, text in history:
        id = f"s{number}"
        if text is not None:
            index.subscribe(id, columns_of([text], index.schema))
            stand.pop(id, None)
            stand[id] = text
        elif id in stand:
            index.unsubscribe(id)
            del stand[id]
    index.check()
    assert set(index) == set(stand)
    found, mine = related_to(index, new), matched(new)
    sets = {id: matched(text) for id, text in stand.items()}
    assert found.covered_by == [id for id in stand if mine <= sets[id]]
    assert found.covers == [id for id in stand if sets[id] <= mine]
    assert bool(found.subsumed_by) == (bool(stand) and mine <= set().union(*sets.values()))


def test_rows_of_what_is_gone_are_left_out_in_time():
    index = SubsumptionIndex(schema())
    ids = [f"s{one}" for one in range(3000)]
    for number in range(3):
        ten = columns_of([f"a = {number} AND b = {one}" for one in range(10)], index.schema)
        index.subscribe_batch(ids, take(ten, np.arange(3000) % 10))
    for id in ids[10:]:
        index.unsubscribe(id)
    index.check()
    assert len(index._ids) < 5000
    assert related_to(index, "a = 2 AND b = 3").covered_by == ["s3"]


def test_few_of_many_have_to_be_evaluated():
    names = [f"x{number}" for number in range(7)]
    lows = np.random.default_rng(3).integers(0, 256, (3050, 7)).tolist()
    texts = [
        " AND ".join(
            f"{name} BETWEEN {low} AND {low + 3}" for name, low in zip(names, own, strict=True)
        )
        for own in lows
    ]
    index = SubsumptionIndex(Schema.declare(dict.fromkeys(names, "number")), "mics paper")
    texts, asked = texts[:3000], texts[3000:]
    index.subscribe_batch(texts, columns_of(texts, index.schema))
    new = columns_of(asked, index.schema)
    found = index.relate(new)
    assert index.queries == 50
    assert index.evaluated == sum(one.evaluated for one in found) < 50 * 5


def test_nothing_covers_less_than_everything_does():
    index = index_of(["a < 3", "a < 3 AND a > 5"])
    found = related_to(index, "b < 3 AND b > 5")  # a contradiction
    assert (found.covered_by, found.covers, found.mergers) == (["s0", "s1"], ["s1"], [])
    assert related_to(index, "b = 1").covers == ["s1"]


def test_settings_and_ids_that_make_no_sense_are_refused():
    with pytest.raises(SettingsError, match="expected mics"):
        SubsumptionIndex(schema(), "scan")
    with pytest.raises(SettingsError, match="expected 1 or more"):
        SubsumptionIndex(schema(), most_steps=0)
    index = index_of(["a < 3"])
    with pytest.raises(SettingsError, match="2 ids for 1"):
        index.subscribe_batch(["x", "y"], columns_of(["a < 3"], index.schema))
    with pytest.raises(UnknownIdError, match="'x'"):
        index.unsubscribe("x")
    with pytest.raises(UnknownIdError, match="'x'"):
        index.columns_of("x")


def test_a_piece_without_another_is_apart_from_it():
    of = schema()
    piece, taken = (
        alternatives_of(NormalisedSubscription(check_and_learn(text, of, where="here")[1]), of)[0]
        for text in ("a BETWEEN 0 AND 9", "a BETWEEN 3 AND 4 AND b > 2")
    )
    left = without(piece, taken, of)
    assert len(left) == 3  # a beside it; b missing; b too small
    assert all(without(one, taken, of) is None for one in left)
    assert subsumption((piece,), [(0, (taken,)), (1, tuple(left))], of, 100).by == {0, 1}


def test_what_reaches_to_the_largest_double_reaches_a_little_further():
    largest = "1.7976931348623157E308"
    index = index_of([f"a <= {largest}", "a < 5"])
    assert related_to(index, f"a = {largest}").covered_by == ["s0"]
    assert related_to(index, f"a >= -{largest}").covered_by == []
