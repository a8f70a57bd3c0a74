"""Workloads are deterministic, of the promised form, and equal in each of their forms."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from stentor.encoding.collected import Asked
from stentor.encoding.columns import EventColumns, SubscriptionColumns
from stentor.encoding.events import Arrival, encode_events
from stentor.encoding.invariants import check
from stentor.encoding.parameters import ParameterEncoder
from stentor.encoding.ragged import take
from stentor.encoding.subscriptions import Standing, encode_subscriptions
from stentor.engine import Engine
from stentor.errors import SettingsError, StentorError
from stentor.language.admit import admit
from stentor.language.parser import parse
from stentor.model import Point, Schema
from stentor.model.time import NEVER, parse_timestamp
from stentor.wire.event_tables import events_from_table
from stentor.wire.events import event_from_dict
from stentor.wire.records import record_from_dict
from stentor.workloads import city, city_faults, city_interests, phones
from stentor.workloads.distributions import (
    MOST_WORDS,
    distinct_zipf_ranks,
    random_of,
    rounded,
    weighted_choices,
    word_codes,
    words,
    zipf_ranks,
)
from stentor.workloads.expressions import Expressions
from stentor.workloads.intervals import ATTRIBUTES, Intervals
from stentor.workloads.pickups import read_pickups
from stentor.workloads.spatial_keyword import SPACE, SpatialKeyword

COUNT = 200
RECIPES = [
    SpatialKeyword(),
    SpatialKeyword(smallest=1e-8, largest=0.1, keywords=2, drift=0.5),
    Intervals(),
    Intervals(seed=3, predicates=4, alpha=0.0),
    Expressions(match_share=0.02),
    Expressions(seed=2, dimensions=30, clusters=0, alpha=1.0, weighted_events=True),
]


def encoded(texts, schema: Schema) -> SubscriptionColumns:
    forms = [admit(text, schema, where="here")[1] for text in texts]
    return encode_subscriptions([Standing(form) for form in forms], schema)


def encoded_events(records, schema: Schema) -> EventColumns:
    return encode_events([Arrival(event_from_dict(record, schema)) for record in records], schema)


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
    read = events_from_table(events.table(), recipe.schema)
    assert not read.rejected
    assert_equal(events.columns(), read.columns._replace(seq=np.zeros(COUNT, np.int64)))


def test_drawn_circles_around_subscribers_are_what_the_encoder_makes_of_their_texts():
    recipe = Intervals(predicates=4)
    subscriptions = recipe.subscriptions(COUNT)
    columns = subscriptions.moving_columns()
    check(columns)
    schema = recipe.schema
    forms = [admit(text, schema, where="here")[1] for text in subscriptions.moving_texts()]
    places = [Point(*place) for place in zip(subscriptions.x, subscriptions.y, strict=True)]
    standing = [Standing(*pair) for pair in zip(forms, places, strict=True)]
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
        asked = Asked(
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
        (city.Afternoon, "people", 0),
        (city.Afternoon, "bad", -1),
        (city.Afternoon, "leaving", 1.0),
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
    asked = Asked([str(row) for row in range(50)], np.full((50, 2), np.nan), np.full(50, NEVER))
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


# The city.


SMALL = {"people": 60, "shops": 10, "events": 60, "moves": 80, "leaving": 0.3}


def test_an_afternoon_has_as_many_records_of_each_kind_as_was_asked():
    afternoon = city.Afternoon(**SMALL, bad=0.1)
    records = list(afternoon.records())
    assert len(records) == len(afternoon) == sum(afternoon.happenings.values())
    assert afternoon.happenings["fault"] == round(0.1 * (60 + 60 + 80 + 18))
    good = Counter(record["op"] for record in city.Afternoon(**SMALL, bad=0.0).records())
    assert good == {"subscribe": 60, "publish": 60, "move": 80, "unsubscribe": 18}


def test_an_afternoon_is_the_same_each_time_and_another_with_another_seed():
    one = list(city.Afternoon(**SMALL).records())
    assert one == list(city.Afternoon(**SMALL).records())
    assert one != list(city.Afternoon(**SMALL, seed=2).records())


def test_times_ascend_through_the_afternoon():
    times = [parse_timestamp(one["time"]) for one in city.Afternoon(**SMALL, bad=0.2).records()]
    assert all(earlier <= later for earlier, later in pairwise(times))
    assert times[0] == parse_timestamp("2026-05-16 11:00:00+02:00")
    assert times[-1] < parse_timestamp("2026-05-16 18:00:00+02:00")


@pytest.mark.parametrize("schema", [Schema(), Schema.declare(city.KINDS)])
def test_good_records_are_read_with_a_learned_and_with_a_declared_schema(schema):
    for record in city.Afternoon(**SMALL, bad=0.0).records():
        record_from_dict(record, schema)
    assert {name: schema.kind(name) for name in city.KINDS} == city.KINDS


def test_every_interest_is_an_expression():
    random = Random(1)
    for taste in city_interests.TASTES:
        for _ in range(20):
            parse(taste(random), schema=Schema.declare(city.KINDS))


def test_only_people_who_are_there_move_and_leave():
    there = set()
    for record in city.Afternoon(**SMALL | {"leaving": 0.8}, bad=0.0, seed=4).records():
        match record["op"]:
            case "subscribe":
                assert record["id"] not in there
                there.add(record["id"])
            case "unsubscribe":
                there.remove(record["id"])
            case "move":
                assert record["id"] in there


@pytest.mark.parametrize("people", [1, 2, 10, 11])
def test_a_few_people_are_enough_whoever_leaves(people):
    afternoon = city.Afternoon(people=people, shops=1, events=3, moves=30, leaving=0.99, bad=0.5)
    assert len(list(afternoon.records())) == len(afternoon)


def test_people_walk_no_faster_than_they_can():
    places = {}
    for record in city.Afternoon(**SMALL, bad=0.0).records():
        if record["op"] in ("subscribe", "move"):
            now = parse_timestamp(record["time"]) / 1e6
            x, y = record["at"]
            if record["op"] == "move":
                x0, y0, then = places[record["id"]]
                metres = np.hypot((x - x0) * 58_600, (y - y0) * 111_195)
                assert metres <= 1.31 * (now - then) + 1.0
            places[record["id"]] = x, y, now


#: Faults that only an engine can find: it knows who is there and what time it is.
BY_THE_ENGINE = {"_over_before_it_came", "_unknown_person"}


@pytest.mark.parametrize("make", city_faults.FAULTS, ids=lambda make: make.__name__)
def test_every_fault_is_refused_and_changes_nothing(make):
    for schema in (Schema.declare(city.KINDS), learned()):
        before = schema.to_dict()
        record = make("bad-1", "2026-05-16T13:00:00+02:00", [11.6, 58.2])
        if make.__name__ in BY_THE_ENGINE:
            record_from_dict(record, schema)
        else:
            with pytest.raises(StentorError):
                record_from_dict(record, schema)
        assert schema.to_dict() == before


def learned() -> Schema:
    """A schema after the first records of an afternoon."""
    schema = Schema()
    for record in city.Afternoon(people=20, shops=5, events=20, moves=0, bad=0.0).records():
        record_from_dict(record, schema)
    return schema


@pytest.mark.parametrize("schema", [None, city.KINDS], ids=["learned", "declared"])
def test_an_engine_refuses_the_faults_and_nothing_else(schema):
    afternoon = city.Afternoon(**SMALL, bad=0.3)
    records = list(afternoon.records())
    answers = list(Engine(schema=schema).step(records))
    refused = [
        record
        for record, answer in zip(records, answers, strict=True)
        if isinstance(answer, StentorError)
    ]
    assert len(refused) == afternoon.happenings["fault"] > 50
    assert {record.get("id", "bad-")[:4] for record in refused} == {"bad-", "nobo"}
    delivered = [answer for answer in answers if isinstance(answer, list) and answer]
    assert len(delivered) > 20
