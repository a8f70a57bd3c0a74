"""Workloads are deterministic, of the promised form, and equal in each of their forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from stentor.encoding.check import check
from stentor.encoding.columns import EventColumns, SubscriptionColumns
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.parameters import ParameterEncoder
from stentor.encoding.ragged import take
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.encoding.template import SubscriptionHeads
from stentor.errors import SettingsError
from stentor.language.check import check_and_learn
from stentor.language.parser import parse
from stentor.model import Point, Schema
from stentor.model.values.time import NEVER
from stentor.wire.events import event_from_dict
from stentor.wire.tables import read_event_table
from stentor_lab.workloads import phones
from stentor_lab.workloads.distributions import (
    MOST_WORDS,
    distinct_zipf_ranks,
    random_of,
    rounded,
    weighted_choices,
    word_codes,
    words,
    zipf_ranks,
)
from stentor_lab.workloads.expressions import Expressions
from stentor_lab.workloads.intervals import ATTRIBUTES, Intervals
from stentor_lab.workloads.pickups import read_pickups
from stentor_lab.workloads.rules import Rules
from stentor_lab.workloads.spatial_keyword import SPACE, SpatialKeyword

COUNT = 200
RECIPES = [
    SpatialKeyword(),
    SpatialKeyword(smallest=1e-8, largest=0.1, keywords=2, drift=0.5),
    Intervals(),
    Intervals(seed=3, predicates=4, alpha=0.0),
    Expressions(match_share=0.02),
    Rules(),
    Rules(seed=2, predicates=3, attributes=30, values=9, domain=100, width=12),
    Expressions(seed=2, dimensions=30, clusters=0, alpha=1.0, weighted_events=True),
]


def encoded(texts, schema: Schema) -> SubscriptionColumns:
    forms = [check_and_learn(text, schema, where="here")[1] for text in texts]
    return encode_subscriptions([NormalisedSubscription(form) for form in forms], schema)


def encoded_events(records, schema: Schema) -> EventColumns:
    return encode_events(
        [TimedEvent(event_from_dict(record, schema)) for record in records], schema
    )


def assert_equal(one, other) -> None:
    for name, left, right in zip(one._fields, one, other, strict=True):
        np.testing.assert_array_equal(left, right, err_msg=name)


# Recipes of papers.


@pytest.mark.parametrize("recipe", RECIPES)
def test_drawn_subscriptions_are_what_the_encoder_makes_of_their_texts(recipe):
    subscriptions = recipe.subscriptions(COUNT)
    columns = subscriptions.columns()
    check(columns)
    assert_equal(columns, encoded(subscriptions.texts(), recipe.schema))


@pytest.mark.parametrize("recipe", RECIPES)
def test_drawn_events_are_what_the_encoder_makes_of_their_records(recipe):
    events = recipe.events(COUNT)
    columns = events.columns()
    check(columns)
    assert_equal(columns, encoded_events(events.records(), recipe.schema))


@pytest.mark.parametrize("recipe", RECIPES)
def test_drawn_events_are_what_their_table_says(recipe):
    events = recipe.events(COUNT)
    read = read_event_table(events.table(), recipe.schema)
    assert not read.rejected
    assert_equal(events.columns(), read.columns._replace(seq=np.zeros(COUNT, np.int64)))


def test_drawn_circles_around_subscribers_are_what_the_encoder_makes_of_their_texts():
    recipe = Intervals(predicates=4)
    subscriptions = recipe.subscriptions(COUNT)
    columns = subscriptions.moving_columns()
    check(columns)
    schema = recipe.schema
    forms = [
        check_and_learn(text, schema, where="here")[1] for text in subscriptions.moving_texts()
    ]
    places = [Point(*place) for place in zip(subscriptions.x, subscriptions.y, strict=True)]
    standing = [NormalisedSubscription(*pair) for pair in zip(forms, places, strict=True)]
    assert_equal(columns, encode_subscriptions(standing, schema))


def test_real_places_are_taken_where_they_are_given(tmp_path, monkeypatch):
    random = np.random.default_rng(1)
    x, y = random.normal(-122.4, 0.02, 5000), random.normal(37.8, 0.02, 5000)
    x[:500], y[:500] = -122.41, 37.79  # a taxi rank
    x[500], y[500] = 0.0, 0.0  # a receiver that had no fix
    rows = "".join(f"{i},1,{lat},{lon}\n" for i, (lat, lon) in enumerate(zip(y, x, strict=True)))
    (tmp_path / "sf_cab_pickups.csv").write_text(f"unix_time,cab,lat,lon\n{rows}")
    monkeypatch.setenv("STENTOR_DATA", str(tmp_path))
    places = read_pickups()
    assert (places.busy_x[0], places.busy_y[0]) == pytest.approx((-122.41, 37.79), abs=0.0005)
    recipe = Intervals(places=places)
    subscriptions, events = recipe.subscriptions(COUNT), recipe.events(COUNT)
    assert places.space.west > -123
    for drawn in (subscriptions, events):
        assert (
            (drawn.x >= places.space.west - 0.001) & (drawn.x <= places.space.east + 0.001)
        ).all()
    assert_equal(subscriptions.columns(), encoded(subscriptions.texts(), recipe.schema))


def test_tables_of_constants_say_the_same_as_texts():
    recipe = SpatialKeyword()
    subscriptions = recipe.subscriptions(COUNT)
    columns = subscriptions.columns()
    seen = []
    for rows, expression, table in subscriptions.tables():
        asked = SubscriptionHeads(
            rows.astype(str).tolist(), np.full((len(rows), 2), np.nan), np.full(len(rows), NEVER)
        )
        values = {name: table[name] for name in table.column_names}
        read = ParameterEncoder(expression, recipe.schema).encode(values, asked)
        assert_equal(read.columns, take(columns, rows))
        seen += rows.tolist()
    assert sorted(seen) == list(range(COUNT))


@pytest.mark.parametrize("recipe", RECIPES)
def test_one_seed_gives_one_workload_and_another_seed_another(recipe):
    again = replace(recipe)
    other = replace(recipe, seed=recipe.seed + 1)
    texts = list(recipe.subscriptions(20).texts())
    assert texts == list(again.subscriptions(20).texts())
    assert texts != list(other.subscriptions(20).texts())
    assert_equal(recipe.events(20).columns(), again.events(20).columns())


def test_rectangles_take_between_a_hundredth_and_one_percent_of_the_space():
    boxes = SpatialKeyword().subscriptions(2000).boxes
    space = (SPACE.east - SPACE.west) * (SPACE.north - SPACE.south)
    share = (boxes.east - boxes.west) * (boxes.north - boxes.south) / space
    assert share.max() < 0.0101
    inside = (boxes.west > SPACE.west) & (boxes.east < SPACE.east)
    inside &= (boxes.south > SPACE.south) & (boxes.north < SPACE.north)
    assert share[inside].min() > 0.000095
    assert 0.004 < share[inside].mean() < 0.006


def test_subscriptions_have_one_to_five_keywords_and_messages_nine_different_terms():
    recipe = SpatialKeyword(vocabulary=18)
    assert set(recipe.subscriptions(500).keywords.tolist()) == {1, 2, 3, 4, 5}
    assert all(len(set(record["text"].split())) == 9 for record in recipe.events(100).records())


def test_interval_events_have_fifteen_to_twenty_values_and_popular_attributes_more_often():
    valid = Intervals().events(2000).valid
    assert set(valid.sum(axis=1).tolist()) == set(range(15, 21))
    asked = np.bincount(Intervals().subscriptions(2000).attribute.reshape(-1), minlength=20)
    assert asked[0] > 2 * asked[19]
    alike = np.bincount(Intervals(alpha=0.0).subscriptions(2000).attribute.reshape(-1))
    assert alike.max() < 1.3 * alike.min()
    assert len(asked) == len(ATTRIBUTES)


@pytest.mark.parametrize(
    ("recipe", "setting", "value"),
    [
        (SpatialKeyword, "vocabulary", 10),
        (SpatialKeyword, "vocabulary", MOST_WORDS + 1),
        (SpatialKeyword, "smallest", 0.0),
        (SpatialKeyword, "smallest", 0.02),
        (SpatialKeyword, "largest", 1.5),
        (SpatialKeyword, "keywords", 10),
        (SpatialKeyword, "drift", 1.01),
        (Intervals, "predicates", 21),
        (Intervals, "predicates", 0),
        (Intervals, "alpha", -0.5),
        (Expressions, "predicates", 16),
        (Expressions, "match_share", 0.0),
    ],
)
def test_a_recipe_that_cannot_be_drawn_is_refused(recipe, setting, value):
    with pytest.raises(SettingsError):
        recipe(**{setting: value})


# Distributions.


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_ranks_follow_zipfs_law(exponent):
    ranks = zipf_ranks(random_of(1, 0), (200_000,), 50, exponent)
    assert ranks.min() == 0
    assert ranks.max() == 49
    counts = np.bincount(ranks)
    # In the continuous form rank 3 covers 4…5 and rank 15 covers 16…17.
    expected = (16.5 / 4.5) ** exponent
    assert counts[3] / counts[15] == pytest.approx(expected, rel=0.1)


def test_skipped_ranks_make_the_most_frequent_ones_rarer():
    plain = zipf_ranks(random_of(1, 0), (20_000,), 1000)
    skipping = zipf_ranks(random_of(1, 0), (20_000,), 1000, skipped=20)
    assert np.count_nonzero(skipping == 0) < np.count_nonzero(plain == 0) / 3


def test_distinct_ranks_are_distinct_and_too_few_to_be_so_are_refused():
    ranks = distinct_zipf_ranks(random_of(1, 0), 500, 5, 10)
    assert all(len(set(row)) == 5 for row in ranks.tolist())
    with pytest.raises(SettingsError):
        distinct_zipf_ranks(random_of(1, 0), 500, 5, 9)


def test_weighted_choices_choose_exactly_as_many_as_asked():
    counts = np.arange(1, 6).repeat(100)
    chosen = weighted_choices(random_of(1, 0), np.array([5.0, 4.0, 3.0, 2.0, 1.0]), counts)
    np.testing.assert_array_equal(chosen.sum(axis=1), counts)
    assert chosen[:100, 0].sum() > chosen[:100, 4].sum()


def test_words_are_all_different_and_in_the_order_of_their_codes():
    codes = word_codes(np.arange(MOST_WORDS))
    assert len(np.unique(codes)) == MOST_WORDS
    some = np.sort(codes[:1000])
    assert words(some) == sorted(set(words(some)))


def test_rounded_numbers_are_what_their_text_says():
    values = rounded(random_of(1, 0).uniform(-180, 180, 1000), 4)
    assert [float(f"{value:.4f}") for value in values] == values.tolist()
    assert str(rounded(np.array([-0.00001]), 4)[0]) == "0.0"


# Phones.


def test_each_shape_of_phones_means_the_same_as_text_and_as_a_table():
    recipe = phones.Phones()
    asked = SubscriptionHeads(
        [str(row) for row in range(50)], np.full((50, 2), np.nan), np.full(50, NEVER)
    )
    for shape, expression in enumerate(phones.SHAPES):
        table = recipe.constants(shape, 50)
        values = {name: table[name] for name in table.column_names}
        read = ParameterEncoder(expression, recipe.schema).encode(values, asked)
        assert not read.errors
        assert_equal(read.columns, encoded(recipe.texts(shape, 50), recipe.schema))


def test_mixed_texts_take_turns_and_new_shapes_hardly_repeat():
    recipe = phones.Phones()
    texts = recipe.mixed_texts(6)
    columns = [recipe.texts(shape, 2) for shape in range(4)]
    assert texts == [*(column[0] for column in columns), columns[0][1], columns[1][1]]
    new = list(recipe.new_shapes(300))
    for text in new:
        parse(text, schema=recipe.schema)
    attributes = [tuple(word for word in text.split() if word in phones.KINDS) for text in new]
    assert len(set(attributes)) > 250


def test_an_offer_has_ten_attributes_and_nine_terms():
    table = phones.Phones().offers(20)
    assert set(table.column_names) == {"id", *phones.KINDS}
    assert len(phones.KINDS) == 11
    assert all(len(set(text.split())) == 9 for text in table["text"].to_pylist())
    assert isinstance(table, pa.Table)
