"""The AP-Tree's worked examples, partitions, invariants and adaptation.

What every index of the catalogue must answer is tested in test_contract.py and test_machine.py.
"""

import os
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor import Engine
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.ragged import take
from stentor.errors import FolderError, SettingsError
from stentor.index.ap_tree import state as store_module
from stentor.index.ap_tree.cost_model import HAS_MOVED, PACE, STEP
from stentor.index.ap_tree.entries import MOST_KEYS
from stentor.index.ap_tree.keyword_cuts import (
    HALVINGS,
    cost_of_cuts,
    even_cuts,
    heuristic_cuts,
    optimal_cuts,
)
from stentor.index.ap_tree.layout import (
    COPIES,
    FIELDS,
    KEYWORDS,
    KIND,
    LEAF,
    LIST_SIZE,
    LISTED,
    NODES,
    NONE,
    OFFSET,
    SIZE,
    SPACE,
    START,
    X,
    Y,
)
from stentor.index.ap_tree.match import MOST_CELLS, points_of
from stentor.index.ap_tree.partitions import lines_along
from stentor.index.catalog import index_class
from stentor.index.scan import Scan
from stentor.index.storage.arrays import read_arrays, write_arrays
from stentor.language.parser import parse
from stentor.model import Point, Schema, Subscription
from stentor.model.geometry import distance
from stentor.wire.events import event_from_dict
from tests.support.checked import checked
from tests.support.index_runs import Run
from tests.support.slow_index import encoded, rows_by_event
from tests.support.workloads import CITY, WordsAndPlaces, places

OPERATIONS = int(os.environ.get("STENTOR_SOAK_OPERATIONS", "20000"))
SCHEMA = Schema.declare({"text": "string", "loc": "point", "brand": "string"})

# The running example. Figure 3 is not in the text; these data satisfy all that Examples 2 to 6 and
# section 3.1 say of it: which keywords come first and second, who is where, who wants what.
EXAMPLE = {
    "s1": ("w1 w2", (0, 0, 6, 6)),
    "s2": ("w1 w3 w4", (3, 3, 5, 5)),
    "s3": ("w2 w3", (6, 6, 9, 9)),
    "s4": ("w1 w5", (0, 0, 5, 5)),
    "s5": ("w1 w2 w6", (7, 0, 9, 2)),
    "s6": ("w2 w5", (6, 1, 8, 3)),
    "s7": ("w3 w4", (3, 3, 6, 6)),
    "s8": ("w4 w6", (0, 7, 2, 9)),
    "s9": ("w5 w6", (7, 7, 9, 9)),
}
M1 = {"id": "m1", "text": "w2 w3 w4", "loc": [4.0, 4.0]}
M2 = {"id": "m2", "text": "w1 w2 w5", "loc": [1.0, 1.0]}


def columns_of(wanted):
    """The columns of keywords in boxes, or of expressions."""
    texts = []
    for one in wanted:
        if isinstance(one, str):
            texts.append(one)
            continue
        words, (west, south, east, north) = one
        wanted = ", ".join(f"'{word}'" for word in words.split())
        box = f"ST_Within(loc, ST_MakeEnvelope({west}, {south}, {east}, {north}))"
        texts.append(f"has_all(text, {wanted}) AND {box}" if words else box)
    return encoded(
        [Subscription(f"s{n}", parse(text, schema=SCHEMA)) for n, text in enumerate(texts)], SCHEMA
    )


def events_of(*records, until=None):
    found = [event_from_dict(record, SCHEMA) for record in records]
    return encode_events([TimedEvent(event, 0, seq) for seq, event in enumerate(found)], SCHEMA)


def tree_of(index):
    return index._store.tree


def fields_of(index, node):
    return tree_of(index).node[node * FIELDS : (node + 1) * FIELDS]


def nodes_of(index):
    """The fields of all nodes."""
    tree = tree_of(index)
    return tree.node[: int(tree.counter[0]) * FIELDS].reshape(-1, FIELDS)


def matched(index, *records):
    names = list(EXAMPLE)
    return [
        [names[row] for row in rows] for rows in rows_by_event(index.match(events_of(*records)))
    ]


EXAMPLE_TREE = "ap_tree paper fanout=3 leaf=1 terms=1"


@pytest.mark.parametrize("settings", ["", " priority=keywords", " priority=space"])
def test_the_running_example_is_answered_as_in_example_2(settings):
    index = index_class(EXAMPLE_TREE + settings).build(columns_of(EXAMPLE.values()))
    index.check()
    assert matched(index, M1, M2) == [["s7"], ["s1", "s4"]]


def test_the_running_example_has_the_cuts_of_example_3():
    index = index_class(EXAMPLE_TREE + " priority=keywords").build(columns_of(EXAMPLE.values()))
    root = fields_of(index, 0)
    assert root[KIND] == KEYWORDS
    tree, start = tree_of(index), int(root[START])
    # c[w1], c[w2, w3], c[w4, w5], and the one for keywords that nobody asks for yet.
    assert tree.bound[start : start + root[SIZE]].tolist() == [0, 1, 3, 6]
    second = fields_of(index, tree.child[start])
    assert (second[KIND], second[OFFSET]) == (KEYWORDS, 1)
    # {s1, s2, s4, s5} have w2, w3, w5 next: one cut each, a leaf each.
    bounds = tree.bound[second[START] : second[START] + second[SIZE]].tolist()
    assert bounds == [0, 2, 4, 6]
    cuts = tree.child[second[START] : second[START] + 3]
    assert [fields_of(index, node)[KIND] for node in cuts[1:]] == [LEAF, LEAF]
    assert sum(int(fields_of(index, node)[11]) for node in cuts) == 4


def test_a_grid_alone_gives_the_same_answers_as_in_example_4():
    index = index_class("ap_tree paper fanout=4 leaf=1 priority=space").build(
        columns_of(EXAMPLE.values())
    )
    root = fields_of(index, 0)
    assert (root[KIND], root[X] * root[Y]) == (SPACE, 4)
    assert matched(index, M1, M2) == [["s7"], ["s1", "s4"]]


def test_few_entries_are_looked_at_as_in_example_6():
    index = index_class(EXAMPLE_TREE).build(columns_of(EXAMPLE.values()))
    effort = index.counted_work(events_of(M1))
    assert effort["candidates/event"] == 1, "s7, and nobody else"
    assert effort["entries/event"] < len(EXAMPLE)


# Where keywords are cut.


def cumulated(values):
    return np.concatenate([[0.0], np.cumsum(np.array(values, np.float64))])


def cut_by(method, weight, likely, visit, cuts):
    keywords = len(weight) - 1
    cut = np.zeros(cuts + 1, np.int32)
    if method is even_cuts:
        even_cuts(weight, keywords, cuts, cut)
    elif method is heuristic_cuts:
        heuristic_cuts(weight, likely, visit, keywords, cuts, cut)
    else:
        best, choice = np.zeros(2 * keywords + 2), np.zeros(cuts * (keywords + 1), np.int32)
        halving = np.zeros(HALVINGS, np.int64)
        optimal_cuts(weight, likely, visit, keywords, cuts, cut, best, choice, halving)
    assert cut[0] == 0
    assert cut[-1] == keywords
    assert (np.diff(cut) > 0).all(), "every cut has a keyword"
    return cost_of_cuts(weight, likely, visit, cut, cuts)


keywords = st.lists(st.tuples(st.integers(1, 50), st.floats(0.0, 0.9)), min_size=1, max_size=8)


@given(keywords, st.integers(1, 8), st.sampled_from([0.0, 8.0]))
def test_optimal_cuts_cost_no_more_than_any_other_cuts(drawn, cuts, visit):
    weight = cumulated([weight for weight, _ in drawn])
    likely = cumulated([chance for _, chance in drawn])
    count = len(drawn)
    cuts = min(cuts, count)
    least = min(
        cost_of_cuts(weight, likely, visit, np.array([0, *inner, count], np.int32), cuts)
        for inner in combinations(range(1, count), cuts - 1)
    )
    optimal = cut_by(optimal_cuts, weight, likely, visit, cuts)
    assert optimal == pytest.approx(least)
    heuristic = cut_by(heuristic_cuts, weight, likely, visit, cuts)
    even = cut_by(even_cuts, weight, likely, visit, cuts)
    assert optimal <= heuristic + 1e-9
    assert heuristic <= even + 1e-9


@given(st.integers(1, 6), st.integers(1, 6))
def test_even_cuts_are_optimal_where_probabilities_follow_equal_weights(each, cuts):
    weight = cumulated([3.0] * (each * cuts))
    likely = weight / 1000.0
    assert cut_by(even_cuts, weight, likely, 0.0, cuts) == pytest.approx(
        cut_by(optimal_cuts, weight, likely, 0.0, cuts)
    )


# Where lines stand.

boxes = st.lists(st.tuples(st.floats(0, 100), st.floats(0, 20)), min_size=1, max_size=30)


@given(boxes, st.integers(2, 6), st.booleans())
def test_lines_ascend_and_stay_inside_their_region(drawn, cells, by_area):
    lows = np.sort(np.array([low for low, _ in drawn]))
    highs = np.sort(np.array([low + length for low, length in drawn]))
    points = np.sort((lows + highs) / 2)
    line = np.empty(cells)
    low, high = float(lows[0]), float(highs[-1])
    lines_along(lows, highs, points, len(drawn), len(drawn), int(by_area), low, high, cells, line)
    assert (np.diff(line[: cells - 1]) >= 0).all()
    assert ((line[: cells - 1] >= low) & (line[: cells - 1] <= high)).all()


# Every way to build a tree, and long runs of changes.

SMALL = "ap_tree paper leaf=2 fanout=4"
VARIANTS = {
    "the paper's": SMALL,
    "tuned": "ap_tree leaf=8 fanout=16 visit=1",
    "dp": SMALL + " partition=dp terms=3",
    "even": SMALL + " partition=even rebuilds=no",
    "keyword priority": SMALL + " priority=keywords",
    "space priority": SMALL + " priority=space order=rare",
    "few copies of messages": SMALL + " duplicates=2",
    "AP+k": SMALL + " messages=keywords",
    "AP+s": SMALL + " messages=space",
}


@pytest.mark.parametrize("settings", VARIANTS)
def test_any_run_of_changes_is_answered_as_by_the_scan(settings):
    Run(VARIANTS[settings], seed=7).to(OPERATIONS // 10)


def test_a_long_run_of_changes_is_answered_as_by_the_scan():
    Run(SMALL, seed=11).to(OPERATIONS)


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize(
    "name",
    ["ap_tree", "ap_tree paper", "ap_tree priority=keywords", "ap_tree priority=space"],
)
def test_thousands_of_subscriptions_are_matched_as_by_the_scan(name, history):
    recipe = WordsAndPlaces(5)
    columns, events = recipe.subscriptions(6000), recipe.events(300)
    past = recipe.events(500) if history else None
    index = index_class(name).build(columns, past)
    index.check()
    expected = Scan.build(columns).match(events)
    for one, other in zip(index.match(events), expected, strict=True):
        assert np.array_equal(one, other)


def test_every_live_subscription_stands_in_leaves_after_all_others_are_gone():
    columns = WordsAndPlaces(5).subscriptions(3000)
    index = index_class("ap_tree").build(columns)
    assert index.stats()["depth"] > 0
    index.remove(np.arange(10, 3000))
    index.check()
    stats = index.stats()
    assert (stats["depth"], stats["leaves"]) == (0, 1), "what is small is a leaf again"
    assert stats["copies per entry"] == 1


def test_subscriptions_that_coincide_share_a_leaf_however_many():
    same = [("w1 w2", (1, 1, 2, 2))] * 500
    index = index_class("ap_tree leaf=4").build(columns_of(same))
    index.check()
    assert index.stats()["depth"] < 10
    assert [len(rows) for rows in rows_by_event(index.match(events_of(M1, M2)))] == [0, 500]


def test_alternatives_and_groups_share_one_delivery():
    index = index_class("ap_tree").build(
        columns_of(
            [
                "has_any(text, 'w1', 'w2', 'w9') OR has_all(text, 'w5')",
                "brand IN ('Apple', 'Huawei') AND has_any(text, 'w7', 'w8', 'w9')",
                "(has_all(text, 'w1') OR has_all(text, 'w2')) AND NOT has_any(text, 'w5', 'w6')",
            ]
        )
    )
    index.check()
    assert index.stats()["keywords"] == 6
    found = index.match(events_of(M1, M2, {"id": "m3", "text": "w7 w9", "brand": "Huawei"}))
    assert rows_by_event(found) == [[0, 2], [0], [0, 1]]


def test_an_event_without_a_location_visits_only_entries_without_a_region():
    index = index_class(SMALL).build(
        columns_of(
            [
                *EXAMPLE.values(),
                "has_all(text, 'w2')",
                "ST_Within(loc, ST_MakeEnvelope(-180, -90, 180, 90))",
            ]
        )
    )
    found = index.match(events_of({"id": "m", "text": "w1 w2 w3 w4 w5 w6"}))
    assert rows_by_event(found) == [[9]]


# Live events.


def test_an_event_is_found_by_a_subscription_for_a_word_that_was_unknown():
    index = index_class(SMALL).build(columns_of(EXAMPLE.values()))
    index.hold(events_of({"id": "m", "text": "brand new words", "loc": [100.0, 80.0]}))
    wanted = columns_of(
        ["has_all(text, 'new', 'words')", "has_all(text, 'old')", "has_all(text, 'w1')"]
    )
    assert rows_by_event(index.match_live(wanted)) == [[0], [], []]
    index.insert(wanted)
    index.check()
    assert rows_by_event(index.match_live(wanted)) == [[0], [], []]


def test_events_that_are_gone_leave_the_lists_when_many_are():
    recipe = WordsAndPlaces(5, vocabulary=500)
    index = index_class("ap_tree").build(recipe.subscriptions(500))
    index.hold(recipe.events(6000))
    kept = nodes_of(index)[:, LIST_SIZE].sum()
    index.drop(np.arange(5500))
    assert nodes_of(index)[:, LIST_SIZE].sum() < kept / 5
    index.check()


def test_expired_events_are_never_reported():
    index = index_class(SMALL).build(columns_of(EXAMPLE.values()))
    index.hold(events_of(M1, M2))
    index.drop(np.array([0]))
    assert rows_by_event(index.match_live(columns_of([EXAMPLE["s7"], EXAMPLE["s1"]]))) == [[], [1]]


@settings(max_examples=settings.default.max_examples // 5)
@given(st.lists(st.tuples(st.floats(-0.06, 0.06), st.floats(-0.06, 0.06)), min_size=1, max_size=6))
def test_a_moved_subscription_wants_what_a_new_one_there_would(steps):
    circle = "ST_DWithin(loc, here(), 3000)"
    texts = [f"has_all(text, 'w1') AND {circle}", f"has_any(text, 'w2', 'w3') AND {circle}", circle]
    subscribers = [
        Subscription(f"s{n}", parse(text, schema=SCHEMA), Point(10.0, 50.0))
        for n, text in enumerate(texts)
    ]
    messages = [
        {
            "id": f"m{n}",
            "text": f"w{n % 4}",
            "loc": [10 + 0.01 * (n % 13 - 6), 50 + 0.01 * (n % 7 - 3)],
        }
        for n in range(91)
    ]
    index = index_class("ap_tree paper leaf=1 fanout=4").build(encoded(subscribers * 4, SCHEMA))
    index.hold(events_of(*messages))
    rows = np.arange(12)
    before = [set(found) for found in rows_by_event(index.match_live(index.columns_of(rows)))]
    for x, y in steps:
        places = np.tile([10.0 + x, 50.0 + y], (12, 1))
        added, removed = (rows_by_event(pairs) for pairs in index.move_and_match(rows, places))
        after = [set(found) for found in rows_by_event(index.match_live(index.columns_of(rows)))]
        assert [set(new) for new in added] == [
            new - old for old, new in zip(before, after, strict=True)
        ]
        assert [set(old) for old in removed] == [
            old - new for old, new in zip(before, after, strict=True)
        ]
        before = after
    index.check()


def test_what_moves_fast_is_partitioned_by_keywords_first():
    recipe = WordsAndPlaces(3, space=CITY)
    at = places(np.random.default_rng(1), CITY, 4000, 200)
    index = index_class("ap_tree paper").build(recipe.around(at))
    still = np.count_nonzero(nodes_of(index)[:, KIND] == SPACE)
    rows = np.arange(4000)
    index.match(recipe.events(10))
    for side in (0.0, 1.0, 0.0):  # from one end of the city to the other
        index.move(
            rows, np.tile([CITY.west + side * (CITY.east - CITY.west), CITY.south], (4000, 1))
        )
    index.move(rows, at)
    index.rebuild()
    assert np.count_nonzero(nodes_of(index)[:, KIND] == SPACE) < still
    index.check()


# Following the workload.


@pytest.mark.parametrize("order", ["rare", "frequent"])
def test_a_workload_that_drifts_is_followed(order):
    recipe = WordsAndPlaces(5, vocabulary=5000, drift=1.0)
    columns = recipe.subscriptions(8000)
    later = recipe.events(400, when=1.0)
    name = f"ap_tree paper order={order}"
    looked_at = {}
    for rebuilds in ("yes", "no"):
        index = index_class(f"{name} rebuilds={rebuilds}").build(take(columns, np.arange(4100)))
        for start in range(4100, 8000, 100):
            index.insert(take(columns, np.arange(start, start + 100)))
        index.check()
        looked_at[rebuilds] = index.counted_work(later)["entries/event"]
        assert (index.stats()["nodes built anew"] > 0) or rebuilds == "no"
    assert looked_at["yes"] < looked_at["no"]


# Files, names.


def test_what_was_saved_is_opened_read_only_and_matches(tmp_path):
    recipe = WordsAndPlaces(5)
    columns, events = recipe.subscriptions(2000), recipe.events(100)
    index = index_class("ap_tree").build(columns)
    index.hold(events)
    index.save(tmp_path / "tree")
    opened = index_class("ap_tree").open(tmp_path / "tree", columns)
    opened.check()
    for one, other in zip(opened.match(events), index.match(events), strict=True):
        assert np.array_equal(one, other)
    with pytest.raises(FolderError, match="other subscriptions"):
        index_class("ap_tree").open(tmp_path / "tree", take(columns, np.arange(10)))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ap_tree fanout=1", "fanout is 1; at least 2"),
        ("ap_tree fan=3", "no setting 'fan'"),
        ("ap_tree papier", "did you mean 'paper'"),
        ("ap_tree order=any", "one of rare, frequent"),
        ("ap_tree leaf=many", "expected a whole number"),
        ("ap_tree rebuilds=maybe", "expected yes or no"),
        ("ap_tree copies=nan", "copies is nan"),
    ],
)
def test_settings_that_make_no_sense_are_refused(name, message):
    with pytest.raises(SettingsError, match=message):
        index_class(name)


def test_a_name_says_all_settings_and_nothing_twice():
    assert index_class("ap_tree  fanout=16384 paper leaf=40 layered").name == (
        "ap_tree paper fanout=16384 layered"
    )


def test_a_branch_has_a_child_or_none():
    index = index_class(SMALL).build(columns_of(EXAMPLE.values()))
    leaves = nodes_of(index)[nodes_of(index)[:, KIND] == LEAF]
    assert leaves[:, SIZE].sum() == index._store.tree.counter[6]
    assert (tree_of(index).child[1 : int(tree_of(index).counter[2])] != 0).all()
    assert NONE in tree_of(index).child


# What a review found.


def test_an_unknown_word_that_is_wanted_twice_is_found():
    index = index_class("ap_tree leaf=1 fanout=4 visit=0 rebuilds=no").build(
        columns_of([f"has_all(text, 'w{n}', 'v{n}')" for n in range(40)])
    )
    for n in range(20):  # a k-node under the cut of new words
        index.insert(columns_of([f"has_all(text, 'n', 'm{n % 9}', 'k{n}')"]))
    index.hold(events_of({"id": "a", "text": "zz"}, {"id": "b", "text": "zz yy"}))
    wanted = columns_of(
        [
            "has_any(text, 'zz', 'q1') AND has_all(text, 'zz')",
            "has_all(text, 'zz') AND has_all(text, 'yy', 'zz')",
        ]
    )
    assert rows_by_event(index.match_live(wanted)) == [[0, 1], [1]]


def test_a_circle_beyond_the_pole_is_not_judged_by_the_corners_of_a_cell():
    lon, centre = 76.5, Point(76.5 - 180.0, 89.0)
    corners = [(x, y) for x in (72.0, 81.0) for y in (75.0, 76.0)]
    reached = max(distance(*centre, *corner, plane=False) for corner in corners)
    radius = (reached + distance(*centre, lon, 75.0001, plane=False)) / 2
    boxes = ["ST_Within(loc, ST_MakeEnvelope(-180, 50, -179, 51))"] * 70
    circle = Subscription("s", parse(f"ST_DWithin(loc, here(), {radius!r})", schema=SCHEMA), centre)
    standing = [Subscription("b", parse(box, schema=SCHEMA)) for box in boxes]
    index = checked(index_class("ap_tree messages=space")).build(
        encoded([*standing, circle], SCHEMA)
    )
    index.hold(events_of({"id": "m", "loc": [lon, 75.0001]}))
    index.move_and_match(np.array([70]), np.array([[centre.x, 89.002]]))


def test_subscribers_who_leave_the_region_of_the_tree_are_followed():
    circle = "ST_DWithin(loc, here(), 500)"
    columns = encoded(
        [
            Subscription(f"s{n}", parse(circle, schema=SCHEMA), Point(10.0, 50.0))
            for n in range(2000)
        ],
        SCHEMA,
    )
    index = index_class("ap_tree").build(columns)
    random = np.random.default_rng(3)
    rows = np.arange(2000)
    for _ in range(3):
        index.move(
            rows, np.column_stack([random.uniform(5, 15, 2000), random.uniform(45, 55, 2000)])
        )
        index.check()
    messages = [
        {"id": f"m{n}", "loc": [float(random.uniform(5, 15)), float(random.uniform(45, 55))]}
        for n in range(50)
    ]
    assert index.counted_work(events_of(*messages))["entries/event"] < 100


def test_rows_that_were_removed_can_be_removed_and_moved_again():
    index = index_class(SMALL).build(columns_of(EXAMPLE.values()))
    index.remove(np.array([3, 3]))
    index.remove(np.array([3]))
    index.move(np.array([3]), np.array([[9.0, 9.0]]))
    index.check()
    assert matched(index, M2) == [["s1"]]


def test_a_leaf_that_cannot_be_split_with_gain_stays_one_when_it_is_tried_again():
    index = index_class("ap_tree leaf=4").build(columns_of([("w1 w2", (1, 1, 2, 2))] * 50))
    leaves = np.flatnonzero(nodes_of(index)[:, KIND] == LEAF)
    large = [node for node in leaves.tolist() if fields_of(index, node)[SIZE] > 4]
    assert large
    for node in large:
        size = fields_of(index, node)[SIZE]
        index._store.rebuild(index.subscriptions.columns, node, None)
        assert (fields_of(index, node)[KIND], fields_of(index, node)[SIZE]) == (LEAF, size)
    index.check()


def test_words_of_subscriptions_that_went_are_forgotten():
    index = index_class("ap_tree").build(columns_of([f"has_all(text, 'w{n}')" for n in range(50)]))
    for n in range(3000):
        first = index.insert(columns_of([f"has_all(text, 'x{n}', 'y{n}')"]))
        index.remove(np.array([first]))
    index.check()
    assert index.stats()["keywords"] < 2200


# Lists of words, of any length.


@pytest.mark.parametrize("also", ["", "lang = 'en' AND "])
@pytest.mark.parametrize("kind", ["has_any", "IN"])
def test_what_is_looked_at_grows_with_what_matches_however_many_words_are_listed(kind, also):
    schema = Schema.declare({"text": "string", "brand": "string", "lang": "string"})
    random = np.random.default_rng(5)
    count, vocabulary = 1000, 6000
    for words in (1, 2, 15, 16, 17, 18, 40, 100, 200):
        texts = []
        for _ in range(count):
            drawn = random.choice(vocabulary, words, replace=False)
            listed = ", ".join(f"'w{n}'" for n in drawn)
            one = f"has_any(text, {listed})" if kind == "has_any" else f"brand IN ({listed})"
            texts.append(also + one)
        columns = encoded(
            [Subscription(f"s{n}", parse(text, schema=schema)) for n, text in enumerate(texts)],
            schema,
        )
        records = []
        for n in range(48):
            drawn = random.choice(vocabulary, 8)
            text = " ".join(f"w{m}" for m in drawn)
            record = {"id": f"e{n}", "text": text, "brand": f"w{drawn[0]}", "lang": "en"}
            records.append(TimedEvent(event_from_dict(record, schema), 0, n))
        events = encode_events(records, schema)
        index = index_class("ap_tree").build(columns)
        effort, found = index.counted_work(events), index.match(events)
        matches = len(found.rows) / len(records)
        wanted = 8 if kind == "has_any" else 1
        # A leaf or two for each word that is asked for, and what the words have in common.
        assert effort["entries/event"] <= 48 * wanted + 4 * matches, words
        assert effort["entries/event"] < count, "no more than the scan looks at"
        assert effort["candidates/event"] <= 8 + 2 * matches, words
        for one, other in zip(found, Scan.build(columns).match(events), strict=True):
            assert np.array_equal(one, other)


def test_lists_of_one_subscription_are_bounded_all_together():
    listed = ", ".join(f"'w{n}'" for n in range(900))
    choices = " OR ".join(f"has_all(text, 'c{n}')" for n in range(30))
    index = index_class("ap_tree").build(
        columns_of([f"has_any(text, {listed}) AND ({choices})", f"has_any(text, {listed})"])
    )
    index.check()
    # 30 alternatives of 900 words are more than one subscription is filed under; 900 are not.
    assert index._store.entries == 30 + 900
    found = index.match(events_of({"id": "a", "text": "w899 c3"}, {"id": "b", "text": "w0"}))
    assert rows_by_event(found) == [[0, 1], [1]]


def test_many_words_that_all_are_needed_are_not_repeated_for_each_choice():
    needed = ", ".join(f"'n{n}'" for n in range(300))
    listed = ", ".join(f"'w{n} v{n}'" for n in range(200))
    columns = columns_of([f"has_all(text, {needed}) AND has_any(text, {listed})"])
    index = index_class("ap_tree leaf=2").build(columns)
    index.check()
    entries = index._store.entries_of(columns, np.arange(1), learn=False)
    assert len(entries.alternative) == 200
    assert len(entries.key) <= 200 * (MOST_KEYS + 2)
    every = " ".join(f"n{n}" for n in range(300))
    found = index.match(
        events_of({"id": "a", "text": f"{every} w7 v7"}, {"id": "b", "text": f"{every} w7 v8"})
    )
    assert rows_by_event(found) == [[0], []]
    index.remove(np.array([0]))
    index.check()


# Histories in any order.


@pytest.mark.parametrize("order", ["west to east", "north to south", "as they came"])
def test_a_history_in_any_order_is_as_good(order):
    recipe = WordsAndPlaces(5)
    columns, events = recipe.subscriptions(6000), recipe.events(300, when=1.0)
    past = recipe.events(5000, part=1)
    x, y = points_of(past, index_class("ap_tree").build(columns)._store.location).T
    keys = {"west to east": x, "north to south": -y, "as they came": np.arange(len(x))}
    efforts = {}
    for name, rows in (
        ("any", np.random.default_rng(1).permutation(len(x))),
        ("ordered", np.argsort(keys[order], kind="stable")),
    ):
        index = index_class("ap_tree priority=space").build(columns, take(past, rows))
        effort = index.counted_work(events)
        efforts[name] = effort["entries/event"] + 8 * effort["nodes/event"]
    without = index_class("ap_tree priority=space").build(columns).counted_work(events)
    assert efforts["ordered"] <= 1.15 * efforts["any"]
    assert efforts["ordered"] <= 1.15 * (without["entries/event"] + 8 * without["nodes/event"])


# What was learned of motion.


def moved_engine(index="ap_tree"):
    """An engine in which half of the subscribers move fast, among messages."""
    engine = Engine(index=index, clock=None)
    random = np.random.default_rng(4)
    for n in range(60):
        text = f"has_all(text, 'w{n % 10}') AND ST_DWithin(loc, here(), 2000)"
        engine.subscribe(f"s{n}", text, at=(10 + n / 100, 50), time=0)
    for n in range(90):
        engine.move(f"s{n % 30}", (10 + random.uniform(0, 1), 50 + random.uniform(0, 1)))
        engine.publish({"id": f"e{n}", "text": f"w{n % 10}", "loc": [10.1, 50.1]})
    return engine


def pace_of(engine):
    """The steps by id, and messages in a timestamp."""
    index, rows = engine._state.index, engine._state.index.current_rows()
    learned = index.learned(rows)
    ids = engine._state.subscribers.ids.take(rows).to_pylist()
    steps = learned[STEP].reshape(-1, 2)
    by_id = {id: tuple(step) for id, step in zip(ids, steps.tolist(), strict=True)}
    timestamps, messages = learned[PACE].tolist()
    moved = dict(zip(ids, learned[HAS_MOVED].tolist(), strict=True))
    return by_id, moved, pytest.approx(timestamps), messages


def test_what_was_learned_of_motion_outlives_rebuilding_and_saving(tmp_path):
    engine = moved_engine()
    steps, moved, timestamps, messages = before = pace_of(engine)
    assert sum(moved.values()) == 30
    assert (timestamps, messages) == (3.0, 90)
    assert sum(step != (0.0, 0.0) for step in steps.values()) == 30
    engine.rebuild()
    assert pace_of(engine) == before
    engine.save(tmp_path / "kept")
    opened = Engine.open(tmp_path / "kept", clock=None)
    assert pace_of(opened) == before
    opened.move("s1", (10.5, 50.5))
    opened.move("s31", (10.6, 50.5))
    opened.publish({"id": "f", "text": "w1", "loc": [10.1, 50.1]})
    later = pace_of(opened)
    assert later[0]["s2"] == steps["s2"], "in the base"
    assert later[0]["s31"] == pytest.approx((0.29, 0.5)), "in the delta"
    assert (sum(later[1].values()), later[3]) == (31, 91)
    opened.rebuild()
    assert pace_of(opened) == later
    opened.save(tmp_path / "again")
    assert pace_of(Engine.open(tmp_path / "again", clock=None)) == later


def test_what_is_saved_is_built_for_what_moves(tmp_path):
    recipe = WordsAndPlaces(3, space=CITY)
    at = places(np.random.default_rng(1), CITY, 4000, 200)
    index = index_class("ap_tree paper").build(recipe.around(at))
    rows = np.arange(4000)
    index.match(recipe.events(10))
    for side in (0.0, 1.0, 0.0):
        index.move(
            rows, np.tile([CITY.west + side * (CITY.east - CITY.west), CITY.south], (4000, 1))
        )
    index.move(rows, at)
    columns = index.columns_of(rows)
    grids = []
    for learned in ({}, index.learned(rows)):
        fresh = index_class("ap_tree paper").build(columns, None, learned)
        fresh.save(tmp_path / "tree")
        opened = index_class("ap_tree paper").open(tmp_path / "tree", columns)
        grids.append(np.count_nonzero(nodes_of(opened)[:, KIND] == SPACE))
        assert opened.learned(rows).keys() == learned.keys()
    assert grids[1] < grids[0]


def test_a_tree_of_the_first_version_is_opened(tmp_path):
    recipe = WordsAndPlaces(5)
    columns, events = recipe.subscriptions(500), recipe.events(100)
    index = index_class("ap_tree").build(columns)
    index.save(tmp_path / "tree")
    arrays, meta = read_arrays(tmp_path / "tree", kind="ap_tree")
    old = {**arrays, "tree.clause": arrays["tree.clause"].astype(np.uint8)}
    meta = {name: meta[name] for name in ("place", "entries", "built", "reach")}
    write_arrays(tmp_path / "old", old, kind="ap_tree", meta=meta)
    opened = index_class("ap_tree").open(tmp_path / "old", columns)
    opened.check()
    for one, other in zip(opened.match(events), index.match(events), strict=True):
        assert np.array_equal(one, other)
    write_arrays(tmp_path / "new", arrays, kind="ap_tree", meta={**meta, "version": 99})
    with pytest.raises(FolderError, match="newer Stentor"):
        index_class("ap_tree").open(tmp_path / "new", columns)
    motion = {STEP: np.zeros(2), HAS_MOVED: np.zeros(1, np.uint8), PACE: np.ones(2)}
    write_arrays(tmp_path / "other", {**arrays, **motion}, kind="ap_tree", meta=meta)
    with pytest.raises(FolderError, match="motion of other subscriptions"):
        index_class("ap_tree").open(tmp_path / "other", columns)


# Optimal cuts.


@given(st.integers(2, 40), st.integers(1, 40), st.sampled_from([0.1, 0.9]), st.integers(0, 9))
def test_optimal_cuts_by_halving_are_those_of_trying_all(count, cuts, most, seed):
    random = np.random.default_rng(seed)
    cuts = min(cuts, count)
    weight = cumulated(random.integers(1, 50, count))
    likely = cumulated(random.uniform(0, most, count) * (random.random(count) < 0.7))
    best = [cut_cost_of(weight, likely, 8.0, start, count) for start in range(count)]
    for more in range(2, cuts + 1):
        best = [
            min(
                cut_cost_of(weight, likely, 8.0, start, stop) + best[stop]
                for stop in range(start + 1, count - more + 2)
            )
            for start in range(count - more + 1)
        ]
    assert cut_by(optimal_cuts, weight, likely, 8.0, cuts) == pytest.approx(best[0])


def cut_cost_of(weight, likely, visit, start, stop):
    chance = min(1.0, likely[stop] - likely[start])
    return (weight[stop] - weight[start] + visit) * chance


def test_thousands_of_keywords_are_cut_optimally_and_more_than_affordable_with_a_word(monkeypatch):
    columns = columns_of([f"has_all(text, 'w{n % 5000}')" for n in range(6000)])
    index = index_class("ap_tree paper partition=dp").build(columns)
    assert index.stats()["nodes cut by the heuristic"] == 0
    assert index.stats()["keyword nodes"] > 0
    monkeypatch.setattr(store_module, "MOST_CHOICES", 1000)
    with pytest.warns(UserWarning, match="too many keywords for optimal cuts"):
        index = index_class("ap_tree paper partition=dp").build(columns)
    assert index.stats()["nodes cut by the heuristic"] > 0
    index.check()
    assert "nodes cut by the heuristic" not in index_class("ap_tree").build(columns).stats()


# Memory for live events.


def test_events_take_no_more_memory_than_they_need():
    recipe = WordsAndPlaces(5, vocabulary=500)
    index = index_class("ap_tree").build(recipe.subscriptions(3000))
    before = index.stats()
    events = recipe.events(4000)
    for start in range(0, 4000, 100):
        index.hold(take(events, np.arange(start, start + 100)))
    tree = tree_of(index)
    used, listed = int(tree.counter[NODES]), int(tree.counter[LISTED])
    assert len(tree.node) // FIELDS <= 1.5 * used + 64
    assert len(tree.listed) <= 1.5 * listed + 64
    kept = nodes_of(index)[:, LIST_SIZE].sum()
    assert listed <= 3 * kept, "blocks of powers of two, and those that were left for larger ones"
    index.drop(np.arange(3990))
    assert index.forget_dropped().tolist() == list(range(3990, 4000))
    index.check()
    tree = tree_of(index)
    assert nodes_of(index)[:, LIST_SIZE].sum() == len(tree.listed) < kept / 100
    index.drop(np.arange(10))
    index.forget_dropped()
    index.check()
    assert index.stats()["leaves"] == before["leaves"], "those for messages alone are gone"
    assert (tree_of(index).counter[LISTED], index.live.count) == (0, 0)


# Wide circles.


def test_copies_of_wide_boxes_are_bounded_whenever_they_come():
    random = np.random.default_rng(2)

    def boxes(count, width):
        at = random.uniform(-40, 40, (count, 2))
        return columns_of([("", (x, y, x + width, y + width)) for x, y in at.tolist()])

    index = index_class("ap_tree").build(boxes(6000, 0.02))
    places = max(nodes_of(index)[:, X] * nodes_of(index)[:, Y])
    assert places > 4 * MOST_CELLS, "a grid for small ones"
    for _ in range(10):
        index.insert(boxes(200, 40.0))
        copies, entries = tree_of(index).counter[COPIES], index._store.entries
        assert copies <= 2 * index.settings.copies * entries
    index.check()
