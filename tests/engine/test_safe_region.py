"""Safe regions: inside, nothing changes but by expiry; beyond, something can."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stentor import Engine, Event
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.ragged import take
from stentor.engine.safe_region import SafeRegion
from stentor.errors import NeverMatchesWarning, RecordError, SettingsError, UnknownIdError
from stentor.index.catalog import names
from stentor.index.circles import Circles
from stentor.index.safe_distance import SafeDistances, distance_bounds, radius_bounds
from stentor.language.evaluate import evaluate
from stentor.language.parser import parse
from stentor.language.tree import all_of, any_of
from stentor.model import Circle, Not, Point, Schema, Within
from stentor.model.geometry import EARTH_RADIUS, circle_terms, distance, in_circle
from stentor.model.record import Move, Publish
from tests.support import grid, strategies

every_index = pytest.mark.parametrize("index", names())

NEAR = "has_all(text, 'jazz') AND ST_DWithin(loc, here(), 500)"
HOME = Point(151.2, -33.87)


def beside(metres: float, place: Point = HOME, bearing: float = 90.0) -> Point:
    """The place so many *metres* away: along a great circle that starts at *bearing*."""
    arc, course = metres / EARTH_RADIUS, math.radians(bearing)
    latitude, longitude = math.radians(place.y), math.radians(place.x)
    y = math.sin(latitude) * math.cos(arc)
    y = math.asin(max(-1.0, min(1.0, y + math.cos(latitude) * math.sin(arc) * math.cos(course))))
    turned = math.atan2(
        math.sin(course) * math.sin(arc) * math.cos(latitude),
        math.cos(arc) - math.sin(latitude) * math.sin(y),
    )
    x = (math.degrees(longitude + turned) + 180.0) % 360.0 - 180.0
    return Point(x, math.degrees(y))


def jazz(id: str, metres: float, **attributes):
    return {"id": id, "text": "jazz tonight", "loc": list(beside(metres)), **attributes}


def standing(expression: str = NEAR, at: Point = HOME, **settings) -> Engine:
    engine = Engine(clock=None, **settings)
    engine.subscribe("ana", expression, at=at, time=0)
    return engine


# By hand.


@every_index
def test_the_nearest_border_counts_be_the_event_inside_or_outside(index):
    engine = standing(index=index)
    engine.publish(jazz("far", 900), until=60)
    assert engine.safe_region("ana").distance == pytest.approx(400, abs=1e-3)
    engine.publish(jazz("near", 350), until=60)
    assert engine.safe_region("ana").distance == pytest.approx(150, abs=1e-3)
    engine.publish({**jazz("quiet", 499), "text": "chess"}, until=60)
    region = engine.safe_region("ana")
    assert region.distance == pytest.approx(150, abs=1e-3)
    assert region.at == HOME
    assert region.impact == pytest.approx(651, abs=0.1)


def test_a_region_is_unlimited_where_nothing_lives_that_could_match():
    engine = standing()
    region = engine.safe_region("ana")
    assert region.distance == region.impact == math.inf
    engine.publish({"id": "e1", "text": "jazz"}, until=60)  # nobody knows where
    engine.publish(jazz("e2", 10))  # matched once, and forgotten
    assert engine.safe_region("ana").distance == math.inf
    assert engine.safe_region("ana").contains((0.0, 0.0))


def test_a_subscription_that_asks_for_no_place_of_its_own_may_go_anywhere():
    engine = standing("has_all(text, 'jazz') AND ST_DWithin(loc, ST_Point(151.2, -33.87), 500)")
    engine.publish(jazz("e1", 499), until=60)
    region = engine.safe_region("ana")
    assert (region.distance, region.impact) == (math.inf, -math.inf)
    engine.subscribe("ben", "has_all(text, 'jazz')")
    assert engine.safe_region("ben") == SafeRegion("ben", None, math.inf, -math.inf)
    assert engine.safe_region("ben").contains(HOME)


def test_events_that_are_over_do_not_count():
    engine = standing()
    engine.publish(jazz("short", 510), until=60, time=1)
    engine.publish(jazz("long", 700), until=90, time=2)
    assert engine.safe_region("ana").distance == pytest.approx(10, abs=1e-3)
    engine.publish({"id": "tick"}, time=60)
    assert engine.safe_region("ana").distance == pytest.approx(200, abs=1e-3)
    engine.publish({"id": "tock"}, time=90)
    assert engine.safe_region("ana").distance == math.inf


def test_an_unexpired_event_is_over_for_a_question_once_the_clock_says_so():
    now = [0.0]
    engine = Engine(clock=lambda: now[0])
    engine.subscribe("ana", NEAR, at=HOME)
    engine.publish(jazz("e1", 510), until=60)
    now[0] = 61.0
    assert engine.safe_region("ana").distance == math.inf


@pytest.mark.parametrize(
    ("expression", "metres", "expected"),
    [
        # a ring: the nearer of its borders
        ("ST_DWithin(loc, here(), 500) AND NOT ST_DWithin(loc, here(), 100)", 180, 80),
        ("ST_DWithin(loc, here(), 500) AND NOT ST_DWithin(loc, here(), 100)", 470, 30),
        ("ST_DWithin(loc, here(), 500) AND NOT ST_DWithin(loc, here(), 100)", 60, 40),
        # outside of both circles, both must come
        ("ST_DWithin(loc, here(), 500) AND ST_DWithin(loc, here(), 100)", 800, 700),
        ("NOT ST_DWithin(loc, here(), 500)", 800, 300),
        ("NOT ST_DWithin(loc, here(), 500)", 420, 80),
        # an alternative that holds wherever the subscriber is
        ("ST_DWithin(loc, here(), 500) OR has_all(text, 'jazz')", 490, math.inf),
        ("ST_DWithin(loc, here(), 500) OR has_all(text, 'chess')", 490, 10),
        # a wider alternative takes over where a narrower one ends
        ("ST_DWithin(loc, here(), 500) OR weight(ST_DWithin(loc, here(), 900), 2)", 490, 410),
        ("ST_DWithin(loc, here(), 500) OR (price < 3 AND ST_DWithin(loc, here(), 900))", 490, 10),
        # half of the way round the globe holds everything
        ("ST_DWithin(loc, here(), 20100000)", 800, math.inf),
        ("NOT ST_DWithin(loc, here(), 20100000)", 800, math.inf),
        ("ST_DWithin(loc, here(), 500) AND price < 3", 490, math.inf),
        ("ST_DWithin(loc, here(), 500) AND price IS NULL", 490, 10),
        ("ST_DWithin(home, here(), 500)", 490, math.inf),
    ],
)
def test_the_form_of_an_expression_says_which_border_counts(expression, metres, expected):
    engine = standing(expression)
    engine.publish(jazz("e1", metres), until=60)
    assert engine.safe_region("ana").distance == pytest.approx(expected, abs=1e-3)


def test_a_plane_measures_in_its_own_units():
    engine = Engine(clock=None, schema=Schema(plane=True))
    engine.subscribe("ana", "ST_DWithin(loc, here(), 2)", at=(0, 0))
    engine.publish({"id": "e1", "loc": [3, 4]}, until=60, time=0)
    region = engine.safe_region("ana")
    assert region.distance == pytest.approx(3)
    assert region.contains((2.9, 0))
    assert not region.contains((3.1, 0))


def test_a_region_follows_moves_and_drops_and_rebuilding():
    engine = standing()
    engine.publish(jazz("e1", 900), until=60, time=1)
    engine.move("ana", beside(100))
    assert engine.safe_region("ana").distance == pytest.approx(300, abs=1e-3)
    engine._state = engine._state.rebuilt(engine._index_class)
    assert engine.safe_region("ana").distance == pytest.approx(300, abs=1e-3)


def test_an_opened_engine_knows_regions_of_what_was_saved(tmp_path):
    engine = standing()
    engine.publish(jazz("e1", 900), until=60, time=1)
    engine.save(tmp_path / "kept")
    opened = Engine.open(tmp_path / "kept", clock=None)
    assert opened.safe_region("ana") == engine.safe_region("ana")
    opened.move("ana", beside(100))
    assert opened.safe_region("ana").distance == pytest.approx(300, abs=1e-3)


def test_a_place_that_nobody_knows_changes_nothing_until_it_is_known():
    engine = standing()
    engine.publish(jazz("e1", 490), until=60)
    state = engine._state
    columns = take(state.index.columns_of(np.array([0])), np.array([0]))
    circle = columns.pair_low.copy()
    circle[2] = math.nan
    unknown = columns._replace(pair_low=circle)
    assert SafeDistances(state.index.live).of(unknown, 0).tolist() == [math.inf]


def test_unknown_ids_and_bad_places_are_refused():
    engine = standing()
    with pytest.raises(UnknownIdError):
        engine.safe_region("ben")
    with pytest.raises(SettingsError):
        engine.safe_region("ana").contains(None)
    with pytest.raises(RecordError):
        engine.safe_region("ana").contains("here")


# New events.


def test_only_regions_that_an_event_shrinks_are_told():
    engine = standing()
    engine.subscribe("ben", NEAR, at=beside(5_000))
    engine.subscribe("cleo", "ST_DWithin(loc, here(), 500) AND price < 3", at=HOME)
    engine.publish(jazz("first", 900), until=60, time=1)
    regions = [engine.safe_region(id) for id in ("ana", "ben", "cleo")]
    assert regions[0].distance == pytest.approx(400, abs=1e-3)

    event = jazz("second", 700)
    (told,) = engine.shrunk_by(event, regions)
    assert told.id == "ana"
    assert told.distance == pytest.approx(200, abs=1e-3)
    engine.publish(event, until=60)
    assert engine.safe_region("ana") == told
    assert engine.shrunk_by(event, [told]) == []
    assert engine.shrunk_by(jazz("third", 901), [told]) == []


def test_regions_of_those_who_went_or_moved_are_left_out():
    engine = standing()
    for id in ("ben", "cleo", "dora"):
        engine.subscribe(id, NEAR, at=HOME, until=50 if id == "dora" else None)
    regions = [engine.safe_region(id) for id in ("ana", "ben", "cleo", "dora")]
    engine.move("ben", beside(1))
    engine.unsubscribe("cleo")
    engine.publish({"id": "tick"}, time=55)
    assert [region.id for region in engine.shrunk_by(jazz("e1", 490), regions)] == ["ana"]
    assert engine.shrunk_by(jazz("e1", 490), []) == []


def test_an_event_is_asked_about_without_being_published():
    engine = standing()
    assert engine.shrunk_by(jazz("e1", 490)) == []  # no region was given yet
    region = engine.safe_region("ana")
    assert region.impact == math.inf
    (told,) = engine.shrunk_by(jazz("e1", 900))
    assert told.distance == pytest.approx(400, abs=1e-3)
    assert [told] == engine.shrunk_by(jazz("e1", 900), [region])
    assert engine.safe_region("ana") == region  # nothing has changed
    assert engine.shrunk_by({"id": "e2", "text": "jazz"}) == []  # it is nowhere


def test_a_question_about_regions_teaches_the_schema_nothing():
    engine = standing()
    engine.shrunk_by({"id": "e1", "colour": "red"}, [engine.safe_region("ana")])
    assert "colour" not in engine.schema


# By chance.

CIRCLES = st.builds(Circle, st.none(), st.sampled_from(grid.RADII))
HERE = st.builds(Within, st.sampled_from(["loc", "home"]), CIRCLES)
LITERALS = HERE | HERE.map(Not) | strategies.predicates(("price", "text", "loc"))
EXPRESSIONS = st.recursive(
    LITERALS,
    lambda inner: st.lists(inner, min_size=2, max_size=3).flatmap(
        lambda some: st.sampled_from([all_of(some), any_of(some)])
    ),
    max_leaves=5,
).filter(strategies.uses_here)
PLACES = strategies.points() | st.builds(Point, st.floats(-180, 180), st.floats(-90, 90))


@st.composite
def situations(draw: st.DrawFn):
    """An expression, where its subscriber is, and live events at all sorts of distances."""
    at = draw(PLACES)
    radii = [*grid.RADII[:3], 500.0, 1e5]
    far = st.builds(
        lambda radius, off, bearing: beside(abs(radius + off), at, bearing),
        st.sampled_from(radii),
        st.sampled_from([0.0, 1e-9, -1e-9, 1.0, -1.0, 300.0]),
        st.floats(0, 360),
    )
    places = PLACES | far
    events = [
        Event(
            f"e{number}",
            {
                name: draw(places if name in ("loc", "home") else strategies.values(name))
                for name in draw(st.sets(st.sampled_from(["loc", "home", "price", "text"])))
            },
        )
        for number in range(draw(st.integers(1, 4)))
    ]
    return draw(EXPRESSIONS), at, events


def held(expression, at, events, plane) -> tuple[Engine, SafeRegion]:
    schema = Schema.declare(grid.KINDS, plane=plane)
    engine = Engine(clock=None, schema=schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NeverMatchesWarning)
        engine.subscribe("ana", expression, at=at, time=0)
    for event in events:
        engine.publish(event, until=60)
    return engine, engine.safe_region("ana")


def places_of(event) -> list[Point]:
    return [value for value in event.attributes.values() if isinstance(value, Point)]


def answers(expression, at, events, plane) -> list[bool]:
    return [evaluate(expression, event, here=at, plane=plane).truth is True for event in events]


@given(situations(), st.lists(PLACES, max_size=3), st.data())
def test_inside_its_region_no_answer_on_the_globe_changes(situation, places, data):
    expression, at, events = situation
    _, region = held(expression, at, events, plane=False)
    before = answers(expression, at, events, False)
    reach = min(region.distance, math.pi * EARTH_RADIUS)
    for _ in range(4):
        share = data.draw(st.sampled_from([1.0, 1.0 - 1e-12, 0.999999, 0.5, 1e-9]))
        places = [*places, beside(share * reach, at, data.draw(st.floats(0, 360)))]
    places += [place for event in events for place in places_of(event)]
    for place in places:
        if region.contains(place):
            assert answers(expression, place, events, False) == before, place


@given(situations(), st.data())
def test_inside_its_region_no_answer_on_a_plane_changes(situation, data):
    expression, at, events = situation
    _, region = held(expression, at, events, plane=True)
    before = answers(expression, at, events, True)
    reach = min(region.distance, 1e9)
    for _ in range(4):
        share = data.draw(st.sampled_from([1.0, 1.0 - 1e-12, 0.999999, 0.5, 1e-9]))
        bearing = data.draw(st.floats(0, 2 * math.pi))
        gone = share * reach
        place = Point(at.x + gone * math.cos(bearing), at.y + gone * math.sin(bearing))
        if region.contains(place):
            assert answers(expression, place, events, True) == before, place


@given(st.floats(-60, 60), st.floats(0, 359), st.floats(1, 5_000), st.floats(1, 20_000))
def test_just_beyond_the_region_of_one_circle_the_answer_changes(latitude, bearing, radius, away):
    at = Point(151.2, latitude)
    there = beside(away, at, bearing)
    expression = parse(f"ST_DWithin(loc, here(), {radius!r})")
    event = Event("e1", {"loc": there})
    _, region = held(expression, at, [event], plane=False)
    assume(region.distance > 1e-3)
    outward = bearing if away > radius else bearing + 180.0
    beyond = beside(region.distance + 1e-3, at, outward)
    assert not region.contains(beyond)
    assert answers(expression, beyond, [event], False) != answers(expression, at, [event], False)


@given(situations())
def test_a_region_after_an_event_is_the_region_that_the_event_shrinks_it_to(situation):
    expression, at, events = situation
    engine, region = held(expression, at, events[:-1], plane=False)
    told = engine.shrunk_by(events[-1], [region])
    engine.publish(events[-1], until=60)
    after = engine.safe_region("ana")
    assert told == ([after] if after.distance < region.distance else [])
    if told:
        away = [distance(*at, *place, plane=False) for place in places_of(events[-1])]
        assert min(away) <= region.impact


@given(PLACES, PLACES, st.sampled_from([*grid.RADII, 1.0, 700.0, 1e7]), st.booleans())
def test_bounds_hold_what_circles_decide(centre, place, radius, plane):
    low, high = distance_bounds(*centre, *place, plane)
    measured = distance(*centre, *place, plane)
    assert low <= measured <= high
    inner, outer = radius_bounds(place.y, radius, plane)
    inside = in_circle(*place, *centre, *circle_terms(centre.y, radius, plane))
    if inside:
        assert low <= outer
    else:
        assert high >= inner


# Regions that the engine keeps.


def test_publishing_says_whose_region_a_live_event_shrinks():
    engine = standing()
    engine.subscribe("ben", NEAR.replace("jazz", "tea"), at=HOME)
    engine.publish(jazz("first", 900), until=60, time=1)
    before = engine.safe_regions(["ana", "ben"])
    assert before == [engine.safe_region("ana"), engine.safe_region("ben")]
    assert engine.publish(jazz("passing", 600)).shrunk == []  # it does not stay
    assert engine.publish({**jazz("quiet", 600), "text": "chess"}, until=60).shrunk == []
    wanted_by = engine.publish(jazz("second", 700), until=60)
    assert wanted_by == []
    (told,) = wanted_by.shrunk
    assert told == engine.safe_region("ana")
    assert told.distance == pytest.approx(200, abs=1e-3)
    assert engine.publish(jazz("third", 901), until=60).shrunk == []
    engine.subscribe("dora", NEAR, at=HOME)  # who has no region is told nothing
    assert [one.id for one in engine.publish(jazz("fourth", 510), until=60).shrunk] == ["ana"]


@every_index
def test_who_asks_twice_is_told_once_be_the_event_short_or_long(index):
    engine = standing(index=index)
    engine.subscribe("ben", NEAR, at=HOME)
    engine.safe_regions(["ana", "ben", "ana"])
    long = " ".join(["jazz", *(f"word{number}" for number in range(200))])
    for metres, text in ((900, "jazz"), (800, long), (700, "jazz")):
        told = engine.publish({**jazz(f"e{metres}", metres), "text": text}, until=60, time=1).shrunk
        assert [(one.id, round(one.distance)) for one in told] == [
            ("ana", metres - 500),
            ("ben", metres - 500),
        ]
        assert told == engine.safe_regions(["ana", "ben"])
    engine.move("ana", beside(5_000))
    engine.unsubscribe("ben")
    assert engine.publish(jazz("near", 510), until=60).shrunk == []


def test_a_region_ends_with_a_move_a_replacement_and_a_subscription():
    engine = standing()
    for id in ("ben", "cleo", "dora", "emil"):
        engine.subscribe(id, NEAR, at=HOME, until=50 if id == "dora" else None)
    engine.safe_regions(["ana", "ben", "cleo", "dora", "emil"])
    engine.move("ben", beside(1))
    engine.unsubscribe("cleo")
    engine.subscribe("emil", NEAR, at=HOME)
    engine.publish({"id": "tick"}, time=55)
    assert [one.id for one in engine.publish(jazz("e1", 490), until=90).shrunk] == ["ana"]
    engine.safe_region("ben")
    assert [one.id for one in engine.publish(jazz("e2", 495), until=90).shrunk] == ["ana", "ben"]


def test_a_batch_says_it_record_by_record_and_regions_survive_a_rebuild():
    engine = standing()
    engine.subscribe("ben", NEAR, at=HOME)
    engine.safe_regions(["ana", "ben"])
    engine.rebuild()
    records = [
        {"op": "publish", **jazz("e1", 900), "until": 60},
        {"op": "publish", **jazz("e2", 950), "until": 60},
        {"op": "move", "id": "ben", "at": [0, 0]},
        {"op": "publish", **jazz("e3", 600), "until": 60},
    ]
    told = [(record, one.id, round(one.distance)) for record, one in engine.step(records).shrunk]
    assert told == [(0, "ana", 400), (0, "ben", 400), (3, "ana", 100)]


@given(plane=st.booleans(), data=st.data())
def test_whoever_an_event_could_matter_to_is_told_and_nobody_else(plane, data):
    """Kept regions against `shrunk_by` of all of them, which looks at each that is near."""
    schema = Schema.declare(grid.KINDS, plane=plane)
    one_by_one = Engine(clock=None, schema=schema)
    batched = Engine(clock=None, schema=schema)
    ids = [f"s{number}" for number in range(data.draw(st.integers(1, 4)))]
    for id in ids:
        expression, at, _ = data.draw(situations())
        for engine in (one_by_one, batched):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NeverMatchesWarning)
                engine.subscribe(id, expression, at=at, time=0)
    for engine in (one_by_one, batched):
        known = {region.id: region for region in engine.safe_regions(ids)}
    events = [event for _ in range(2) for event in data.draw(situations())[2]]
    records, expected = [], []
    for number, drawn in enumerate(events):
        event = Event(f"e{number}", drawn.attributes, until=60_000_000)
        if data.draw(st.booleans()):
            mover, at = data.draw(st.sampled_from(ids)), data.draw(PLACES)
            records.append(Move(mover, at))
            one_by_one.move(mover, at)
            known.pop(mover, None)
        told = one_by_one.shrunk_by(event, known.values())
        by_id = sorted(told, key=lambda region: region.id)
        assert sorted(one_by_one.shrunk_by(event), key=lambda region: region.id) == by_id
        assert one_by_one.publish(event).shrunk == by_id
        known |= {region.id: region for region in told}
        expected += [(len(records), region) for region in told]
        records.append(Publish(event))
    found = batched.step(records).shrunk
    assert sorted(found, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("plane", [False, True])
def test_circles_hold_what_they_hold_however_they_come_and_go(plane):
    chance = np.random.default_rng(5)
    circles, known = Circles(plane=plane), {}
    schema = Schema.declare(grid.KINDS, plane=plane)
    for _ in range(10):
        keys = np.unique(chance.integers(0, 3_000, 200))
        centres = chance.uniform(-80, 80, (len(keys), 2)).round()
        radii = chance.choice([0.0, 1.0, 5.0] if plane else [1.0, 3e5, np.inf, 3e7], len(keys))
        circles.put(keys, centres, radii, *np.zeros((2, len(keys)), np.uint64))
        known |= dict(zip(keys.tolist(), zip(centres, radii, strict=True), strict=True))
        for key in chance.choice(sorted(known), 40, replace=False).tolist():
            circles.remove(np.array([key]))
            del known[key]
        for key in chance.choice(sorted(known), 10, replace=False).tolist():
            known[key] = known[key][0], known[key][1] / 2 if known[key][1] < np.inf else 1e6
            circles.shrink(np.array([key]), np.array([known[key][1]]))
        places = chance.uniform(-90, 90, (20, 2)).round()
        events = [Event(str(number), {"loc": Point(*at)}) for number, at in enumerate(places)]
        columns = encode_events([TimedEvent(event) for event in events], schema)
        pairs = circles.around(columns, np.ones(schema.code("loc") + 1, np.bool_))
        found = set(zip(*(one.tolist() for one in pairs), strict=True))
        for event, place in enumerate(places):
            for key, (centre, radius) in known.items():
                away = distance(*centre.tolist(), *place.tolist(), plane)
                if away <= radius:
                    assert (event, key) in found
                elif away > radius * 1.001 + 1.0:
                    assert (event, key) not in found
        assert {key for _, key in found} <= known.keys()
        assert len(circles) == len(known)
