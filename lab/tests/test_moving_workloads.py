"""The AP-Tree's workloads: Boolean expressions, drift, travellers, messages that end, real data."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from stentor.encoding.check import check
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.ragged import take
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.errors import SettingsError
from stentor.index.catalog import structure_class
from stentor.language.check import check_and_learn
from stentor.model import Box
from stentor.model.geometry import distance
from stentor.wire.events import event_from_dict
from stentor_lab.workloads import real_messages
from stentor_lab.workloads.boolean_keyword import BooleanSubscriptions
from stentor_lab.workloads.distributions import random_of
from stentor_lab.workloads.moving_keyword import CITY, LIFE, MovingKeyword, moment
from stentor_lab.workloads.moving_names import MovingNames
from stentor_lab.workloads.real_files import VARIABLE, opened, roads_of
from stentor_lab.workloads.real_messages import RealMessages
from stentor_lab.workloads.roads import SPEEDS, RoadNetwork, Travellers
from stentor_lab.workloads.spatial_keyword import SpatialKeyword


def assert_equal(one, other) -> None:
    for name, left, right in zip(one._fields, one, other, strict=True):
        np.testing.assert_array_equal(left, right, err_msg=name)


def encoded(texts, schema, places=None):
    forms = [check_and_learn(text, schema, where="here")[1] for text in texts]
    places = [None] * len(forms) if places is None else places
    return encode_subscriptions(list(map(NormalisedSubscription, forms, places)), schema)


# Boolean expressions.


def test_boolean_columns_are_what_the_encoder_makes_of_their_texts():
    recipe = SpatialKeyword()
    drawn = BooleanSubscriptions.of(recipe, 500)
    columns = drawn.columns()
    check(columns)
    assert_equal(columns, encoded(drawn.texts(), recipe.schema))


def test_boolean_expressions_join_all_and_any_by_and_and_or():
    forms = Counter()
    for text in BooleanSubscriptions.of(SpatialKeyword(), 2000).texts():
        words = text.partition("ST_Within")[0]
        forms[words.count("has_any"), words.count("has_all"), " OR " in words] += 1
    assert set(forms) == {
        (0, 1, False),
        (1, 0, False),
        (1, 1, False),
        (2, 0, False),
        (0, 2, True),
        (1, 1, True),
    }
    assert min(forms.values()) > 30


# Drift.


def test_what_comes_later_has_other_words_and_other_places():
    def favourites(codes):
        return {word for word, _ in Counter(codes.reshape(-1).tolist()).most_common(30)}

    recipe = SpatialKeyword(drift=1.0, vocabulary=1000)
    codes = recipe.subscriptions(20_000).codes
    assert len(favourites(codes[:4000]) & favourites(codes[-4000:])) < 8
    steady = SpatialKeyword(vocabulary=1000).subscriptions(20_000).codes
    assert len(favourites(steady[:4000]) & favourites(steady[-4000:])) > 15
    first, last = recipe.events(500), recipe.events(500, when=1.0)
    assert len(favourites(first.codes) & favourites(last.codes)) < 8
    assert abs(np.median(first.x) - np.median(last.x)) > 0.5


def test_without_drift_the_time_of_a_message_does_not_matter_and_each_part_is_another():
    recipe = SpatialKeyword()
    assert_equal(recipe.events(20).columns(), recipe.events(20, when=1.0).columns())
    assert not np.array_equal(recipe.events(20).codes, recipe.events(20, part=1).codes)


# Roads.


def test_every_road_has_its_way_back_and_the_length_of_the_globe():
    roads = RoadNetwork.city(CITY, blocks=16)
    every = np.arange(len(roads.start))
    np.testing.assert_array_equal(roads.start[roads.back], roads.stop)
    np.testing.assert_array_equal(roads.back[roads.back], every)
    np.testing.assert_array_equal(
        roads.first, np.searchsorted(roads.start, np.arange(len(roads.x) + 1))
    )
    for road in every[::37]:
        start, stop = roads.start[road], roads.stop[road]
        measured = distance(roads.x[start], roads.y[start], roads.x[stop], roads.y[stop], False)
        assert roads.metres[road] == pytest.approx(measured, rel=1e-4)
    assert roads.x.min() == CITY.west
    assert roads.y.max() == CITY.north
    assert len(set(roads.speed.tolist())) == 3


def test_travellers_keep_to_the_roads_and_to_their_speed():
    roads = RoadNetwork.city(CITY, blocks=16)
    travellers = Travellers(roads, 500)
    before = travellers.places()
    for _ in range(5):
        travellers.step()
        after = travellers.places()
        moved = [distance(*one, *other, False) for one, other in zip(before, after, strict=True)]
        assert max(moved) <= 30 * SPEEDS.max() * 1.001
        assert np.median(moved) > 30
        before = after
    starts, stops = (np.stack((roads.x[e], roads.y[e]), axis=1) for e in (roads.start, roads.stop))
    for place in after[:50]:
        along = stops - starts
        share = ((place - starts) * along).sum(axis=1) / (along**2).sum(axis=1)
        nearest = starts + np.clip(share, 0, 1)[:, np.newaxis] * along
        assert np.hypot(*(place - nearest).T).min() < 1e-9


def test_travellers_turn_round_only_where_the_road_ends():
    x, y = np.array([0.0, 0.01, 0.02, 0.01]), np.array([0.0, 0.0, 0.0, 0.01])
    ends = np.array([0, 1, 1]), np.array([1, 2, 3])
    roads = RoadNetwork.of(x, y, *ends, np.full(3, 10.0))
    travellers = Travellers(roads, 1000)
    every = np.arange(len(roads.start))
    for _ in range(20):
        turned = travellers._turned(every)
        np.testing.assert_array_equal(roads.start[turned], roads.stop)
        dead_end = np.diff(roads.first)[roads.stop] == 1
        np.testing.assert_array_equal(turned == roads.back, dead_end)
    seen = {int(travellers._turned(np.array([0]))[0]) for _ in range(100)}
    assert len(seen) == 2  # at the crossing, both of the other roads are taken


def test_a_faster_velocity_goes_farther_and_one_seed_goes_one_way():
    roads = RoadNetwork.city(CITY, blocks=16)

    def gone(velocity, seed=1):
        travellers = Travellers(roads, 300, velocity=velocity, seed=seed)
        before = travellers.places()
        travellers.step()
        return np.hypot(*(travellers.places() - before).T).mean(), travellers.places()

    assert gone(2.0)[0] > 1.3 * gone(1.0)[0]
    np.testing.assert_array_equal(gone(1.0)[1], gone(1.0)[1])
    assert not np.array_equal(gone(1.0)[1], gone(1.0, seed=2)[1])


def test_networks_without_roads_or_blocks_are_refused():
    nowhere = np.zeros(0, np.int64)
    with pytest.raises(SettingsError):
        RoadNetwork.of(np.zeros(1), np.zeros(1), nowhere, nowhere, np.zeros(0))
    with pytest.raises(SettingsError):
        RoadNetwork.city(CITY, blocks=1)


# Moving subscriptions and messages that end.


def test_circle_columns_are_what_the_encoder_makes_of_their_texts():
    recipe = MovingKeyword()
    drawn = recipe.subscriptions(recipe.travellers(200).places())
    columns = drawn.columns()
    check(columns)
    assert_equal(columns, encoded(drawn.texts(), recipe.schema, list(drawn.places())))


def test_circles_have_the_share_of_the_space_that_is_asked_for():
    words = SpatialKeyword(space=CITY, smallest=0.001, largest=0.001)
    recipe = MovingKeyword(words)
    radius = recipe.subscriptions(recipe.travellers(10).places()).radius
    width = distance(CITY.west, -33.875, CITY.east, -33.875, False)
    height = distance(0.0, CITY.south, 0.0, CITY.north, False)
    np.testing.assert_allclose(math.pi * radius**2, 0.001 * width * height, rtol=0.01)


def test_messages_come_at_their_timestamp_and_end_ten_later():
    recipe = MovingKeyword()
    columns = recipe.messages(20, 3)
    check(columns)
    assert set(columns.time.tolist()) == {moment(3)}
    assert set(columns.until.tolist()) == {moment(3 + LIFE)}
    drawn = recipe.words.events(20, part=3)
    texts = encode_events(
        [TimedEvent(event_from_dict(record, recipe.schema)) for record in drawn.records()],
        recipe.schema,
    )
    assert_equal(columns._replace(time=texts.time, until=texts.until), texts)


def test_a_tenth_of_the_live_messages_ends_with_each_timestamp():
    until = MovingKeyword().live_messages(1000).until
    for step in range(LIFE + 1):
        assert np.count_nonzero(until <= moment(step)) == 100 * step


# Real data.


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder with a few lines of each file, one of them packed."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    names = ["feature_id|name|class|state|county|map|lat|lon"]
    rest = "Stream|Ohio|Clark|Río"
    names += [f'{row}|Old "Mill" {row}|{rest}|{30 + row / 100}|-90.5' for row in range(60)]
    names += ["98|東京|||||31.0|-90.5", "99|Far away|Stream|Alaska|||60.0|-150.0"]
    with pa.CompressedOutputStream(str(tmp_path / "gnis_us_names.psv.zst"), "zstd") as file:
        file.write("\n".join(names).encode())
    news = ["split\tgroup\tdoc\tsubject\ttext"]
    news += [f'train\tg\t{row}\ts\tthe word{row} "and the end{row % 9}' for row in range(300)]
    (tmp_path / "news20.tsv").write_text("\n".join(news))
    places = "\n".join(f"{row},1,37.{row:03},-122.{row:03}" for row in range(100))
    (tmp_path / "sf_cab_pickups.csv").write_text(f"unix_time,cab,lat,lon\n{places}\n")
    return tmp_path


def test_names_are_messages_of_their_words_at_their_places(data):
    messages = real_messages.names()
    assert len(messages) == 61  # without the one that is far away
    columns = messages.columns(0, 61)
    check(columns)
    words = set(messages.vocabulary.to_pylist())
    assert {"old", "mill", "stream", "ohio", "clark"} <= words
    words_of_one = np.diff(messages.word_start)
    assert sorted(words_of_one.tolist()) == [0] + [8] * 60  # none, of a name in other letters
    assert len(messages.subscriptions(500).until) == 500
    assert messages.files == "gnis_us_names.psv"
    assert messages.history_count == 3


def test_subscriptions_are_drawn_from_messages_and_match_them(data):
    messages = real_messages.cabs()
    columns = messages.subscriptions(50)
    check(columns)
    assert len(columns.until) == 50
    keywords = np.diff(np.flatnonzero(np.concatenate(([1], columns.string_mark))))
    assert set(keywords.tolist()) == {1, 2, 3, 4, 5}
    pairs = structure_class("scan").build(columns).match(messages.columns(0, len(messages)))
    assert set(pairs.rows.tolist()) == set(range(50))  # each wants the message that it came from
    assert all(word != "the" for word in messages.vocabulary.take(messages.word).to_pylist())


def test_a_message_holds_each_of_its_words_once(data):
    messages = real_messages.cabs()
    for row in range(len(messages)):
        word = messages.word[messages.word_start[row] : messages.word_start[row + 1]].tolist()
        assert len(set(word)) == len(word) <= 30


def test_roads_are_stretched_over_the_space(data):
    lines = ["# a map", "N 7 0 0", "N 8 50 0", "N 9 50 200", "E 0 7 8 50", "E 1 8 9 200"]
    (data / "map.txt").write_text("\n".join(lines))
    roads = roads_of("map.txt", Box(0.0, 0.0, 1.0, 2.0))
    assert roads.x.tolist() == [0.0, 1.0, 1.0]
    assert roads.y.tolist() == [0.0, 0.0, 2.0]
    assert roads.stop.tolist() == [1, 2, 0, 1]


def test_missing_files_and_folders_are_told_by_name(data, monkeypatch):
    with pytest.raises(SettingsError, match=r"no ais_positions\.csv\.zst nor ais_positions\.csv"):
        real_messages.ships()
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(SettingsError, match=f"let {VARIABLE} name the folder"):
        opened("news20.tsv")


def test_real_words_move_with_their_subscribers():
    """What `MovingNames` asks for is what its messages have, within a circle of its subscriber."""
    names = RealMessages(
        pa.array(["red", "hill", "lake"]),
        np.array([0, 2, 3, 4]),
        np.array([0, 1, 2, 0], np.int32),
        np.array([0.0, 5.0, 10.0]),
        np.array([0.0, 5.0, 10.0]),
        Box(0.0, 0.0, 10.0, 10.0),
        "three places",
    )
    recipe = MovingNames(MovingKeyword(), names.stretched(CITY), 3)
    index = structure_class("scan")()
    index.insert(recipe.subscriptions(np.full((2, 2), 151.1)))
    index.hold(recipe.live_messages())
    asked = words_asked(recipe.names, 2)
    for message, words in enumerate([{"red", "hill"}, {"lake"}, {"red"}]):
        here = [recipe.names.x[message], recipe.names.y[message]]
        index.move(np.arange(2), np.array([here, here]))
        found = index.match_live(index.columns_of(np.arange(2)))
        for row in range(2):
            wanted = found.rows[found.starts[row] : found.starts[row + 1]].tolist()
            assert wanted == ([message] if asked[row] <= words else [])


def words_asked(names, count):
    """The words of the first *count* subscriptions."""
    random = random_of(1, real_messages._REAL_SUBSCRIPTIONS)
    _, keywords, chosen = names._asked(random, count)
    vocabulary = names.vocabulary.to_pylist()
    return [
        {vocabulary[word] for word in row[:number].tolist()}
        for row, number in zip(chosen, keywords, strict=True)
    ]


def test_messages_of_real_words_come_in_time_and_again():
    names = RealMessages(
        pa.array(["red", "hill"]),
        np.arange(4),
        np.array([0, 1, 0], np.int32),
        np.array([0.0, 5.0, 10.0]),
        np.array([0.0, 5.0, 10.0]),
        Box(0.0, 0.0, 10.0, 10.0),
        "three places",
    )
    recipe = MovingNames(MovingKeyword(), names.stretched(CITY), 3)
    live, later = recipe.live_messages(), recipe.messages(5, 2)
    assert live.time.tolist() == sorted(live.time.tolist())
    assert (later.time == moment(2)).all()
    assert (later.until == moment(2 + LIFE)).all()
    assert_equal(take(later, np.array([0, 1])), take(later, np.array([3, 4])))
    assert names.stretched(CITY).x.tolist() == [CITY.west, 151.15, CITY.east]
