"""The exact verifier, on columns made by hand and on the smallest expressions.

That it agrees with `evaluate` on the whole language stands in `test_encoding_equals_evaluate.py`.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stentor.encoding.columns import (
    INNER,
    LAST,
    MatchPairs,
    ScoredPairs,
    all_read_only,
    read_only_columns,
)
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.kinds import (
    BOX,
    CIRCLE,
    INTERVAL,
    KEYWORDS,
    KIND_MASK,
    MEMBERSHIP,
    NEGATED,
    OWN_CIRCLE,
    PATTERN,
    PredicateKind,
)
from stentor.encoding.ragged import take
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.index.table import RowSpans
from stentor.index.verify import Candidates, best_of, reasons_of, scores_of, verify
from stentor.index.verify import reasons as why
from stentor.language.evaluate import evaluate
from stentor.language.normalise import normalise
from stentor.language.parser import parse
from stentor.model import (
    Box,
    Circle,
    Comparison,
    Constant,
    Event,
    Kind,
    Like,
    Not,
    Point,
    Polygon,
    Range,
    Schema,
    Within,
)
from stentor.model.geometry import EARTH_RADIUS
from tests.support.plain import (
    PlainEvent,
    PlainPredicate,
    PlainSubscription,
    PlainValue,
    event_columns,
    subscription_columns,
)

SCHEMA = Schema.declare(
    {"price": "number", "brand": "string", "text": "string", "loc": "point", "spare": "number"}
)
PRICE, BRAND, TEXT, LOC = range(4)
PLANE = Schema.declare({"loc": "point"}, plane=True)
NOWHERE = np.zeros(0, np.uint8)
ALWAYS = np.zeros(0, np.int64)


def always(rows):
    return all_read_only(RowSpans(np.zeros(rows, np.uint8), ALWAYS, ALWAYS))


def every_pair(columns, events):
    """Each event with each alternative."""
    alternatives, count = len(columns.predicate_start) - 1, len(events.until)
    event = np.repeat(np.arange(count), alternatives)
    return Candidates(event, np.tile(np.arange(alternatives), count), NOWHERE)


def matches(columns, events, validity=None):
    """The rows that each event matches."""
    validity = validity or always(len(columns.until))
    starts, rows = verify(columns, validity, events, every_pair(columns, events))
    return [rows[start:stop].tolist() for start, stop in pairwise(starts)]


def encoded(expressions, schema=SCHEMA, at=None):
    trees = [parse(one) if isinstance(one, str) else one for one in expressions]
    return encode_subscriptions(
        [NormalisedSubscription(normalise(tree), at) for tree in trees], schema
    )


def event_of(attributes, weights=None):
    kinds = {float: Kind.NUMBER, str: Kind.STRING}
    return Event(
        "e",
        {
            name: Constant(kinds[type(value)], value) if type(value) in kinds else value
            for name, value in attributes.items()
        },
        weights or {},
    )


def columns_of_events(*events, schema=SCHEMA):
    return encode_events([TimedEvent(event) for event in events], schema)


def agrees(expression, event, schema=SCHEMA):
    """Whether *expression* matches *event*, if `evaluate` says the same."""
    tree = parse(expression) if isinstance(expression, str) else expression
    events = columns_of_events(event, schema=schema)
    found = matches(encoded([tree], schema), events) == [[0]]
    assert found == (evaluate(tree, event, plane=schema.plane).truth is True)
    return found


# Numbers.


@pytest.mark.parametrize(
    ("expression", "value", "expected"),
    [
        ("price < 2", 2.0, False),
        ("price < 2", math.nextafter(2.0, 0.0), True),
        ("price <= 2", Range(Kind.NUMBER, 2.0, 9.0), True),
        ("price < 2", Range(Kind.NUMBER, 2.0, 9.0), False),
        ("price IN (1, 3, 5, 7)", 5.0, True),
        ("price IN (1, 3, 5, 7)", 4.0, False),
        ("price IN (1, 3, 5, 7)", 8.0, False),
        ("price IN (1, 3, 5, 7)", Range(Kind.NUMBER, 3.5, 4.5), False),
        ("price IN (1, 3, 5, 7)", Range(Kind.NUMBER, 3.5, 5.0), True),
        ("price IN (1, 3, 5, 7)", Range(Kind.NUMBER, -9.0, 9.0), True),
        ("price != 3", 3.0, False),
        ("price != 3", Range(Kind.NUMBER, 3.0, 3.0), False),
        ("price != 3", math.inf, True),
        ("price > 0 AND price < 9 AND price != 3", Range(Kind.NUMBER, 3.0, 4.0), True),
    ],
)
def test_numbers_and_ranges_meet_closed_intervals(expression, value, expected):
    assert agrees(expression, event_of({"price": value})) == expected


@pytest.mark.parametrize(
    "expression", ["price != 3", "brand NOT IN ('a')", "NOT has_any(text, 'a')", "brand < 'z'"]
)
def test_a_missing_attribute_satisfies_nothing(expression):
    assert not agrees(expression, event_of({"spare": 1.0}))


def test_a_missing_attribute_is_null():
    assert agrees("price IS NULL", event_of({"spare": 1.0}))
    assert not agrees("price IS NULL", event_of({"price": 1.0}))
    assert agrees("price IS NOT NULL", event_of({"price": 1.0}))


def test_an_attribute_beyond_all_that_the_events_have_is_missing():
    columns = encoded(["spare IS NULL", "spare > 0", "price > 0"])
    assert matches(columns, columns_of_events(event_of({"price": 1.0}))) == [[0, 2]]


# Strings.

letters = st.text("ab_%\\é東🎉", max_size=8)


@given(text=letters, pattern=letters, negated=st.booleans())
@example(text="a", pattern="%\\", negated=False)
@example(text="aab", pattern="%ab", negated=False)
@example(text="東", pattern="_", negated=False)
@example(text="aé", pattern="%_", negated=True)
def test_like_is_the_definition_of_like(text, pattern, negated):
    like = Like("brand", pattern)
    agrees(Not(like) if negated else like, event_of({"brand": text}))


def test_a_pattern_of_many_wildcards_is_not_exponential():
    assert not agrees(Like("brand", "%a" * 30 + "b"), event_of({"brand": "a" * 2000}))


@given(
    text=st.sampled_from(["", "a", "ab", "abcdefgh", "abcdefgi", "é", "z", "\uffff", "🎉"]),
    end=st.sampled_from(["", "a", "abcdefgh", "abcdefghi", "é", "\uffff", "🎉"]),
    operator=st.sampled_from(["<", "<=", ">", ">=", "=", "!="]),
    negated=st.booleans(),
)
def test_strings_are_ordered_by_code_points(text, end, operator, negated):
    one = Comparison("brand", operator, Constant(Kind.STRING, end))
    agrees(Not(one) if negated else one, event_of({"brand": text}))


def one_of(strings, negated=False):
    operands = tuple((code, 0, data) for code, data in strings)
    kind = MEMBERSHIP | NEGATED if negated else MEMBERSHIP
    return PlainPredicate(kind, BRAND, -math.inf, math.inf, 1.0, operands)


def test_strings_of_equal_hash_are_told_apart_by_their_bytes():
    lists = [
        [(5, b"red")],
        [(5, b"tan")],
        [(5, b"blue"), (5, b"pink"), (5, b"red")],
        [(1, b"x"), (5, b"blue"), (5, b"pink"), (9, b"z")],
        [(5, b"redder"), (5, b"re")],
    ]
    columns = subscription_columns(
        PlainSubscription(((one_of(strings, negated),),))
        for negated in (False, True)
        for strings in lists
    )
    red = PlainEvent((PlainValue(BRAND, 0.0, 0.0, (5, b"red")),))
    assert matches(columns, event_columns([red])) == [[0, 2, 6, 8, 9]]


def terms(groups, negated=False):
    operands = tuple(
        (code, LAST if place == len(group) else INNER, data)
        for group in groups
        for place, (code, data) in enumerate(group, start=1)
    )
    kind = KEYWORDS | NEGATED if negated else KEYWORDS
    return PlainPredicate(kind, TEXT, -math.inf, math.inf, 1.0, operands)


def test_terms_of_equal_hash_are_told_apart_by_their_bytes():
    wishes = [
        terms([[(8, b"ipad")]]),
        terms([[(8, b"ipod")]]),
        terms([[(8, b"ipad"), (8, b"mini")]]),
        terms([[(8, b"ipad"), (8, b"ipod")], [(8, b"mini")]]),
        terms([[(16, b"ipad")]]),
        terms([[(8, b"ipod")]], negated=True),
        terms([[(8, b"ipad")], [(8, b"ipod")]], negated=True),
    ]
    columns = subscription_columns(PlainSubscription(((wish,),)) for wish in wishes)
    text = PlainValue(TEXT, 0.0, 0.0, (1, b"iPad mini"))
    event = PlainEvent((text,), ((8, b"ipad"), (8, b"mini")))
    assert matches(columns, event_columns([event])) == [[0, 2, 3, 5]]


@pytest.mark.parametrize("kind", [max(PredicateKind) + 1, KIND_MASK])
def test_a_kind_that_is_not_known_matches_nothing(kind):
    pairs = ((-1.0, 1.0), (-1.0, 1.0), (0.0, 0.0), (-1.0, 9.0), (9.0, 1.0))
    strings = tuple((5, 0, b"%") for _ in pairs)
    columns = subscription_columns(
        PlainSubscription(((PlainPredicate(one, BRAND, -math.inf, math.inf, 1.0, operands),),))
        for one in (MEMBERSHIP, PATTERN, BOX, CIRCLE)
        for operands in ([pairs] if one in (BOX, CIRCLE) else [strings])
    )
    point = PlainEvent((PlainValue(BRAND, 0.0, 0.0),))
    string = PlainEvent((PlainValue(BRAND, 0.0, 0.0, (5, b"%")),))
    events = event_columns([point, string])
    assert matches(columns, events) == [[2, 3], [0, 1, 2, 3]]
    for strange in (kind, kind | NEGATED):
        unknown = columns._replace(kind=np.full_like(columns.kind, strange))
        assert matches(read_only_columns(unknown), events) == [[], []]


def test_what_is_no_string_satisfies_no_predicate_on_strings():
    wishes = [one_of([(5, b"red")], negated=True), terms([[(8, b"a")]], negated=True)]
    columns = subscription_columns(PlainSubscription(((wish,),)) for wish in wishes)
    numbers = (PlainValue(BRAND, 1.0, 1.0), PlainValue(TEXT, 1.0, 1.0))
    assert matches(columns, event_columns([PlainEvent(numbers)])) == [[]]


def test_a_text_of_ten_thousand_terms_is_searched_whole():
    words = [f"w{number}" for number in range(10_000)]
    columns = encoded(["has_all(text, 'w0', 'w9999')", "has_any(text, 'x', 'w5000')", "price > 0"])
    both = columns_of_events(event_of({"text": " ".join(words)}), event_of({"text": "w0"}))
    assert matches(columns, both) == [[0, 1], []]


# Places.

degrees = st.floats(-180, 180) | st.sampled_from([0.0, 180.0, -180.0, 179.999])
heights = st.floats(-90, 90) | st.sampled_from([0.0, 90.0, -90.0])
places = st.builds(Point, degrees, heights)


@given(centre=places, place=places, share=st.floats(0, 1.1))
def test_a_circle_decides_its_border_as_the_model_does(centre, place, share):
    radii = [share * math.pi * EARTH_RADIUS]
    a = math.sin(math.radians(place.y - centre.y) / 2)
    b = math.sin(math.radians(place.x - centre.x) / 2)
    h = a * a + math.cos(math.radians(place.y)) * math.cos(math.radians(centre.y)) * b * b
    to_place = 2 * EARTH_RADIUS * math.asin(math.sqrt(min(1.0, max(0.0, h))))
    radii += [to_place, math.nextafter(to_place, 0.0), math.nextafter(to_place, math.inf)]
    event = event_of({"loc": place})
    for radius in radii:
        agrees(Within("loc", Circle(centre, radius)), event)


@given(corners=st.lists(places, min_size=3, max_size=6), place=places, share=st.floats(0, 1))
def test_a_polygon_decides_its_border_as_the_model_does(corners, place, share):
    polygon = Polygon(((*corners, corners[0]), (*corners[:3], corners[0])))
    first, second = corners[:2]
    on_edge = Point(first.x + share * (second.x - first.x), first.y + share * (second.y - first.y))
    for one in (place, first, on_edge):
        agrees(Within("loc", polygon), event_of({"loc": one}))
        agrees(Not(Within("loc", polygon)), event_of({"loc": one}))


def test_a_hole_is_outside_and_its_border_inside():
    outer = (Point(0, 0), Point(9, 0), Point(9, 9), Point(0, 9), Point(0, 0))
    hole = (Point(3, 3), Point(6, 3), Point(6, 6), Point(3, 6), Point(3, 3))
    within = Within("loc", Polygon((outer, hole)))
    found = {
        name: agrees(within, event_of({"loc": place}))
        for name, place in {
            "inside": Point(1, 1),
            "hole": Point(4, 4),
            "border of the hole": Point(3, 4),
            "corner": Point(9, 9),
            "outside": Point(10, 1),
        }.items()
    }
    assert [name for name, is_inside in found.items() if is_inside] == [
        "inside",
        "border of the hole",
        "corner",
    ]


@given(box=st.builds(Box, degrees, heights, degrees, heights), place=places)
def test_a_box_may_cross_the_antimeridian(box, place):
    agrees(Within("loc", box), event_of({"loc": place}))
    agrees(Not(Within("loc", box)), event_of({"loc": Point(box.west, box.south)}))


def test_distances_on_a_plane_are_plain():
    near = Within("loc", Circle(Point(0, 0), 5.0))
    assert agrees(near, event_of({"loc": Point(3, 4)}), PLANE)
    assert not agrees(near, event_of({"loc": Point(3, math.nextafter(4, 9))}), PLANE)


def test_a_place_that_nobody_knows_is_neither_near_nor_far():
    unknown = (math.nan, math.nan)
    pairs = (unknown, unknown, unknown, (math.nan, 1.0), (1.0, 0.0))
    kinds = (OWN_CIRCLE, OWN_CIRCLE | NEGATED)
    columns = subscription_columns(
        PlainSubscription(((PlainPredicate(kind, LOC, -math.inf, math.inf, 1.0, pairs),),))
        for kind in kinds
    )
    events = event_columns([PlainEvent((PlainValue(LOC, 0.0, 0.0),))])
    assert matches(columns, events) == [[]]
    found = reasons_of(columns, always(2), events, MatchPairs(np.array([0, 2]), np.arange(2)))
    assert found.code.tolist() == [why.LOCATION_UNKNOWN] * 2


# Scores.


def test_the_best_alternative_that_holds_gives_the_score():
    columns = encoded(
        [
            "weight(price > 0, 0.1) AND weight(brand = 'a', 0.2) OR weight(price > 5, 9)",
            "weight(price > 0, 0.3)",
            "TRUE",
        ]
    )
    events = columns_of_events(
        event_of({"price": 1.0, "brand": "a"}, {"price": 3.0, "spare": 5.0}),
        event_of({"price": 9.0, "brand": "a"}, {"brand": 0.5}),
    )
    pairs = verify(columns, always(3), events, every_pair(columns, events))
    assert pairs.starts.tolist() == [0, 3, 6]
    scores = scores_of(columns, events, pairs)
    # In the order of the predicates, which is that of the attributes' names.
    assert scores.tolist() == [0.2 * 1.0 + 0.1 * 3.0, 0.3 * 3.0, 0.0, 9.0, 0.3, 0.0]


def test_what_does_not_match_scores_less_than_anything():
    columns = encoded(["price > 5", "price < 5 AND price > 5"])
    events = columns_of_events(event_of({"price": 1.0}))
    pairs = MatchPairs(np.array([0, 2]), np.array([0, 1]))
    assert scores_of(columns, events, pairs).tolist() == [-math.inf, -math.inf]


def test_the_best_keep_all_ties_with_the_last_of_them():
    starts = np.array([0, 4, 4, 5])
    pairs = ScoredPairs(starts, np.array([2, 3, 5, 7, 1]), np.array([1.0, 2.0, 1.0, 0.5, 0.0]))
    best = best_of(pairs, 2)
    assert best.starts.tolist() == [0, 3, 3, 4]
    assert best.rows.tolist() == [2, 3, 5, 1]
    assert best.scores.tolist() == [1.0, 2.0, 1.0, 0.0]
    assert best_of(pairs, 1).rows.tolist() == [3, 1]
    assert best_of(pairs, 99).rows.tolist() == pairs.rows.tolist()
    nobody = ScoredPairs(np.zeros(3, np.int64), np.zeros(0, np.int64), np.zeros(0))
    assert best_of(nobody, 2).starts.tolist() == [0, 0, 0]


# Settling.


def prices(*spans):
    """A subscription with one alternative for each of *spans*."""
    return PlainSubscription(
        tuple((PlainPredicate(INTERVAL, PRICE, low, high, 1.0),) for low, high in spans)
    )


def offers(*values):
    return event_columns(
        [PlainEvent((PlainValue(PRICE, value, value),), time=10, seq=10) for value in values]
    )


def settled(columns, validity, events, *candidates):
    event, alternative, covered = (np.array(one) for one in zip(*candidates, strict=True))
    found = verify(
        columns, validity, events, Candidates(event, alternative, covered.astype(np.uint8))
    )
    return found.starts.tolist(), found.rows.tolist()


def test_candidates_come_in_any_order_and_rows_go_out_ascending_each_once():
    # Rows 0 … 3 have the alternatives 0, 1 … 2, none, 3 … 4.
    columns = subscription_columns(
        [prices((0, 9)), prices((0, 9), (5, 9)), prices(), prices((7, 9), (0, 9))]
    )
    candidates = [(e, a, 0) for a in (4, 2, 0, 3, 1, 2) for e in (2, 0, 1)]
    assert settled(columns, always(4), offers(1.0, 6.0, 20.0), *candidates) == (
        [0, 3, 6, 6],
        [0, 1, 3, 0, 1, 3],
    )


def test_covered_candidates_are_believed_and_the_others_verified():
    columns = subscription_columns([prices((0, 1)), prices((0, 1))])
    assert settled(columns, always(2), offers(5.0), (0, 0, 1), (0, 1, 0)) == ([0, 1], [0])


@pytest.mark.parametrize("covered", [0, 1])
def test_a_row_is_found_only_while_it_holds(covered):
    until = [10**6, 10**6, 10**6, 10**6, 10, 11]
    columns = subscription_columns([prices((0, 9))._replace(until=end) for end in until])
    validity = all_read_only(
        RowSpans(
            np.array([0, 1, 0, 0, 0, 0], np.uint8),
            np.array([9, 0, 10, 0, 0, 0]),  # the event is number 10
            np.array([99, 99, 99, 10, 99, 11]),
        )
    )
    candidates = [(0, row, covered) for row in range(6)]
    assert settled(columns, validity, offers(1.0), *candidates) == ([0, 2], [0, 5])


def test_no_candidates_are_no_matches():
    columns = subscription_columns([prices((0, 9))])
    none = Candidates(np.zeros(0, np.int64), np.zeros(0, np.int64), NOWHERE)
    found = verify(columns, always(1), offers(1.0, 2.0), none)
    assert found.starts.tolist() == [0, 0, 0]
    assert found.rows.tolist() == []


def test_alternatives_find_their_rows_however_many_each_row_has():
    counts = [0, 1, 1, 2, 0, 0, 3, 0, 1, 0]
    columns = subscription_columns([prices(*[(0, 9)] * count) for count in counts])
    rows = np.repeat(np.arange(10), counts)
    for alternative, row in enumerate(rows.tolist()):
        found = settled(columns, always(10), offers(1.0), (0, alternative, 0))
        assert found == ([0, 1], [row])


# Reasons.


@pytest.mark.parametrize(
    ("expression", "code", "attribute"),
    [
        ("price > 0", why.MATCHES, None),
        ("price < 0 AND price > 1", why.NEVER_MATCHES, None),
        ("spare > 0", why.ATTRIBUTE_MISSING, "spare"),
        ("price IS NULL", why.ATTRIBUTE_PRESENT, "price"),
        ("price > 7", why.NUMBER_OUTSIDE, "price"),
        ("price IN (1, 7)", why.NUMBER_OUTSIDE, "price"),
        ("brand = 'b'", why.STRING_DIFFERS, "brand"),
        ("brand NOT LIKE 'a%'", why.STRING_DIFFERS, "brand"),
        ("brand > 'b'", why.STRING_DIFFERS, "brand"),
        ("has_all(text, 'red', 'ipad')", why.TERM_MISSING, "text"),
        ("NOT has_any(text, 'red')", why.TERM_PRESENT, "text"),
        ("ST_Within(loc, ST_MakeEnvelope(5, 5, 6, 6))", why.LOCATION_OUTSIDE, "loc"),
        ("NOT ST_DWithin(loc, ST_Point(0, 0), 9)", why.LOCATION_INSIDE, "loc"),
        # The second alternative gets one predicate further than the others.
        ("spare = 1 OR brand = 'a' AND price = 7 OR brand = 'b'", why.NUMBER_OUTSIDE, "price"),
    ],
)
def test_a_reason_names_what_failed(expression, code, attribute):
    columns = encoded([expression])
    event = event_of({"price": 5.0, "brand": "a", "text": "red tea", "loc": Point(0.0, 0.0)})
    pair = MatchPairs(np.array([0, 1]), np.array([0]))
    found = reasons_of(columns, always(1), columns_of_events(event), pair)
    assert found.code.tolist() == [code]
    predicate = int(found.predicate[0])
    names = list(SCHEMA)
    assert (None if predicate < 0 else names[columns.attribute[predicate]]) == attribute


def test_a_row_that_does_not_hold_is_not_blamed_on_a_predicate():
    columns = take(encoded(["price > 9"]), np.zeros(3, np.int64))
    columns = columns._replace(until=np.array([10, 99, 99]))
    events = encode_events([TimedEvent(event_of({"price": 1.0}), time=10, seq=5)], SCHEMA)
    validity = all_read_only(RowSpans(np.array([0, 1, 0], np.uint8), np.array([0, 0, 5]), ALWAYS))
    pairs = MatchPairs(np.array([0, 3]), np.arange(3))
    found = reasons_of(all_read_only(columns), validity, events, pairs)
    assert found.code.tolist() == [why.OVER, why.NOT_HOLDING, why.NOT_HOLDING]
    assert found.predicate.tolist() == [why.NO_PREDICATE] * 3
