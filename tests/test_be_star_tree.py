"""The BE*-Tree: its paper's examples, its answers after any history, what it adapts to."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stentor
from stentor.encoding.columns import SPAN, EventColumns, SubscriptionColumns, empty, sealed
from stentor.encoding.events import Arrival, encode_events
from stentor.encoding.ragged import take
from stentor.errors import FolderError, SettingsError
from stentor.index.be_star_tree import BEStarTree
from stentor.index.be_star_tree.settings import Settings, paper_capacity
from stentor.index.catalog import index_class, structure_class
from stentor.index.scan import Scan
from stentor.model import Scoring
from stentor.model.time import NEVER
from stentor.testing import grid, strategies
from stentor.testing.checked import Checked
from stentor.testing.slow_index import SlowIndex, encoded, scores_by_event
from stentor.workloads.expressions import Expressions

SCHEMA = grid.schema()
#: Leaves overflow, buckets merge and the window fills after a few records and events.
SMALL = "be_star_tree capacity=2 window=2"
VARIANTS = [
    SMALL,
    "be_star_tree capacity=1 alpha=0.0 beta=1.5 window=1",
    "be_star_tree capacity=3 split=approximate loss=histogram rank=sum width=2",
]


def intervals(rows):
    """Columns of subscriptions, each a dict from an attribute's code to (low, high[, weight])."""
    asked = [(attribute, *box) for row in rows for attribute, box in sorted(row.items())]
    counts = np.array([len(row) for row in rows], np.int64)
    return sealed(
        empty(SubscriptionColumns)._replace(
            alternative_start=np.arange(len(rows) + 1),
            predicate_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            kind=np.full(len(asked), SPAN, np.uint8),
            attribute=np.array([one[0] for one in asked], np.int32),
            low=np.array([one[1] for one in asked], float),
            high=np.array([one[2] for one in asked], float),
            weight=np.array([one[3] if len(one) > 3 else 1.0 for one in asked]),
            operand_start=np.zeros(len(asked), np.int32),
            operand_stop=np.zeros(len(asked), np.int32),
            position=np.full(2 * len(rows), np.nan),
            until=np.full(len(rows), NEVER),
        )
    )


def published(rows):
    """Columns of events, each a dict from an attribute's code to a number or (low, high)."""
    pairs = [
        value if isinstance(value, tuple) else (value, value)
        for row in rows
        for _, value in sorted(row.items())
    ]
    counts = np.array([len(row) for row in rows], np.int64)
    nothing = np.zeros(len(rows) + 1, np.int64)
    return sealed(
        empty(EventColumns)._replace(
            value_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            attribute=np.array([attribute for row in rows for attribute in sorted(row)], np.int32),
            low=np.array([low for low, _ in pairs], float),
            high=np.array([high for _, high in pairs], float),
            string=np.full(len(pairs), -1, np.int32),
            term_start=nothing,
            weight_start=nothing,
            until=np.full(len(rows), NEVER),
            time=np.zeros(len(rows), np.int64),
            seq=np.zeros(len(rows), np.int64),
        )
    )


def root_facts(index):
    """How deep and how wide the tree is, for tests that ask whether it did something."""
    return index.stats()["buckets"], index.stats()["records"]


# The paper's examples.


@pytest.mark.parametrize(
    ("expression", "event", "weights", "score"),
    [
        (
            (
                "weight(credit_score > 650, 0.4) AND weight(num_visits > 10, 0.2) "
                "AND weight(age BETWEEN 22 AND 36, 0.4)"
            ),
            {"credit_score": 732, "num_visits": 17, "age": 27},
            {"credit_score": 0.2, "num_visits": 0.2, "age": 0.6},
            0.36,
        ),
        (
            (
                "weight(category = 'green jobs', 0.2) AND weight(hours_per_week > 15, 0.5) "
                "AND weight(hourly_rate < 45, 0.3)"
            ),
            {"category": "green jobs", "hours_per_week": 20, "hourly_rate": 30},
            {"category": 0.4, "hours_per_week": 0.1, "hourly_rate": 0.5},
            0.28,
        ),
    ],
)
def test_the_papers_advertisement_and_job_score_as_it_says(expression, event, weights, score):
    engine = stentor.Engine(index="be_star_tree")
    engine.subscribe("it", expression)
    engine.subscribe("another", f"{expression} AND weight(missing IS NULL, 0)")
    engine.subscribe("never", f"{expression} AND missing > 1")
    found = engine.top({"id": "e", **event, "weights": weights}, k=5)
    assert found == [("another", pytest.approx(score)), ("it", pytest.approx(score))]


def test_the_largest_contribution_alone_counts_where_the_user_says_so():
    engine = stentor.Engine(index="be_star_tree")
    engine.subscribe("many", "weight(a > 0, 0.5) AND weight(b > 0, 0.5) AND weight(c > 0, 0.5)")
    engine.subscribe("one", "weight(a > 0, 0.9)")
    event = {"id": "e", "a": 1, "b": 1, "c": 1}
    assert engine.top(event, k=1) == [("many", 1.5)]
    assert engine.top(event, k=1, scoring="max") == [("one", 0.9)]
    assert engine.step([{"op": "publish", **event}], top=1, scoring="max")[0] == ["one"]
    with pytest.raises(SettingsError, match="no scoring 'most'"):
        engine.top(event, scoring="most")


# Any history.


@given(
    subscriptions=st.lists(strategies.subscriptions(max_predicates=4), max_size=12),
    some=st.lists(strategies.events(), max_size=3),
    k=st.integers(1, 5),
    scoring=st.sampled_from(Scoring),
)
def test_the_k_best_are_those_of_a_full_sort_by_any_scoring(subscriptions, some, k, scoring):
    arrivals = [Arrival(event) for event in some]
    events = encode_events(arrivals, SCHEMA)
    columns = encoded(subscriptions, SCHEMA)
    for name in ("scan", SMALL):
        index = index_class(name).build(columns)
        found = index.top(events, k, scoring=scoring)
        assert scores_by_event(found) == SlowIndex(subscriptions).top(arrivals, k, scoring)


def drawn_subscription(random, dimensions):
    asked = random.sample(range(dimensions), random.randint(0, 4))
    row = {}
    for attribute in asked:
        low = random.randint(0, 30)
        span = random.choice([0, 0, 1, 5, 40])
        ends = random.choice([(low, low + span)] * 5 + [(low, np.inf), (-np.inf, low)])
        row[attribute] = (*ends, random.choice([0.0, 1.0, 1.0, 0.1, 2.5]))
    return row


def drawn_event(random, dimensions):
    row = {}
    for attribute in random.sample(range(dimensions), random.randint(0, dimensions)):
        low = random.randint(-1, 40)
        row[attribute] = random.choice([low, low, (low, low + random.choice([1, 10]))])
    return row


@pytest.mark.parametrize("name", ["be_star_tree capacity=8 window=16", *VARIANTS])
def test_a_long_run_of_seeded_operations_equals_the_scan(name):
    """20,000 operations in all, over the four of them."""
    random, dimensions = Random(name), 12
    index = Checked(structure_class(name)())
    standing, done = [], 0
    while done < 5000:
        batch = random.choice([1, 3, 40])
        kind = random.random()
        if kind < 0.45:
            first = index.insert(
                intervals([drawn_subscription(random, dimensions) for _ in range(batch)])
            )
            standing += range(first, first + batch)
        elif kind < 0.75 and standing:
            random.shuffle(standing)
            gone = [standing.pop() for _ in range(min(len(standing), batch))]
            index.remove(np.array(gone, np.int64))
        else:
            events = published([drawn_event(random, dimensions) for _ in range(batch)])
            index.match(events)
            index.top(events, random.randint(1, 4), scoring=random.choice(list(Scoring)))
        done += batch
        if random.random() < 0.1:
            index.index.check()
    index.index.check()
    index.remove(np.array(standing, np.int64))
    index.index.check()
    assert root_facts(index.index) == (1, 0), "nothing is left but the root"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_bulk_and_dynamic_construction_answer_like_the_scan(alpha, weighted):
    recipe = Expressions(dimensions=60, match_share=0.02, alpha=alpha, weighted_events=weighted)
    columns, events = recipe.subscriptions(4000).columns(), recipe.events(64).columns()
    scan = Scan.build(columns)
    dynamic = structure_class("be_star_tree capacity=16")()
    for start in range(0, 4000, 1000):
        dynamic.insert(take(columns, np.arange(start, start + 1000)))
    history = recipe.events(64).columns()
    for index in (dynamic, BEStarTree.build(columns), BEStarTree.build(columns, history)):
        index.check()
        for found, expected in zip(index.match(events), scan.match(events), strict=True):
            np.testing.assert_array_equal(found, expected)
        for k in (1, 5, 2000):
            for found, expected in zip(index.top(events, k), scan.top(events, k), strict=True):
                np.testing.assert_array_equal(found, expected)


def test_a_tree_of_a_thousand_dimensions_and_expressions_longer_than_a_record_is_exact():
    recipe = Expressions(dimensions=1400, predicates=40, values=60, match_share=0.1)
    columns, events = recipe.subscriptions(300).columns(), recipe.events(20).columns()
    index, scan = structure_class(SMALL).build(columns), Scan.build(columns)
    index.check()
    for found, expected in zip(index.match(events), scan.match(events), strict=True):
        np.testing.assert_array_equal(found, expected)


# What the search leaves out.


def test_the_best_are_found_without_testing_most_of_the_matches():
    recipe = Expressions(dimensions=50, match_share=0.05)
    index = BEStarTree.build(recipe.subscriptions(20_000).columns())
    events = recipe.events(32).columns()
    tested = index.effort(events)["records/event"]
    searched = [index.search_effort(events, k)["records/event"] for k in (1, 5)]
    assert searched[0] < tested / 5
    assert searched[0] <= searched[1] < tested / 2


# Adaptation.


def test_a_shifted_distribution_is_followed():
    """Attribute 0 is asked for by all; after the shift events have a range there that meets all."""
    random = Random(1)

    def point():
        value = random.randrange(1000)
        return value, value

    index = structure_class("be_star_tree window=4")()
    index.insert(intervals([{0: point(), random.randint(1, 20): point()} for _ in range(2000)]))

    def drawn(first):
        others = [random.sample(range(1, 21), 5) for _ in range(512)]
        return published([{0: first(), **{other: point() for other in row}} for row in others])

    before, after = drawn(point), drawn(lambda: (0, 1000))
    index.match(before)
    index.insert(intervals([{2: (1, 1)}]))
    assert index.effort(before)["records/event"] < 50, "attribute 0 leaves few"
    suffering = index.effort(after)["records/event"]
    assert suffering > 1000, "attribute 0 leaves all"
    index.match(after)
    index.insert(intervals([{2: (1, 1)}]))
    assert index.effort(after)["records/event"] < suffering / 5
    index.check()
    scan = Scan.build(index.subscriptions.columns)
    np.testing.assert_array_equal(index.match(after).rows, scan.match(after).rows)


def test_what_cannot_be_filed_better_is_not_filed_anew_each_time():
    index = structure_class("be_star_tree capacity=8 window=4")()
    index.insert(intervals([{0: (place, place), 1: (place, place)} for place in range(100)]))
    wide = published([{0: (0, 49), 1: (50, 99)} for _ in range(512)])
    index.match(wide)
    assert index.adapt() == 100, "the other attribute might have been better"
    for _ in range(5):
        index.match(wide)
        assert index.adapt() == 0


def test_siblings_are_kept_apart_by_the_width_of_events():
    rows = [{0: (place, place)} for place in range(200)]
    near, apart = (
        structure_class("be_star_tree capacity=8")(),
        structure_class("be_star_tree capacity=8 window=1")(),
    )
    events = published([{0: (place, place + 20)} for place in range(0, 180, 3)] * 3)
    apart.insert(intervals([{0: (-9, -9)}]))
    apart.match(events)
    apart.adapt()
    for index in (near, apart):
        index.insert(intervals(rows))
        index.check()
    # A range that falls between two siblings as far apart as it is wide meets one of them at most.
    assert apart.effort(events)["nodes/event"] < near.effort(events)["nodes/event"]
    assert np.array_equal(apart.match(events).rows, near.match(events).rows + 1)


# Files and settings.


def test_a_saved_tree_is_opened_read_only_and_answers_the_same(tmp_path):
    recipe = Expressions(dimensions=40, match_share=0.02)
    columns, events = recipe.subscriptions(2000).columns(), recipe.events(32).columns()
    index = BEStarTree.build(columns)
    index.save(tmp_path / "index")
    opened = BEStarTree.open(tmp_path / "index", columns)
    opened.check()
    for found, expected in zip(opened.match(events), index.match(events), strict=True):
        np.testing.assert_array_equal(found, expected)
    gone = opened.match(events).rows[:5]
    opened.remove(gone)
    index.remove(gone)
    for k in (1, 4):
        for found, expected in zip(opened.top(events, k), index.top(events, k), strict=True):
            np.testing.assert_array_equal(found, expected)
    with pytest.raises(FolderError, match="other subscriptions"):
        BEStarTree.open(tmp_path / "index", recipe.subscriptions(3).columns())


def test_the_papers_values_are_one_word():
    paper = structure_class("be_star_tree paper").settings
    assert (paper.capacity, paper.alpha, paper.beta, paper.rank) == (5, 0.1, 4.0, "sum")
    assert [paper_capacity(share) for share in (0.0001, 0.05, 0.2)] == [5, 20, 160]


@pytest.mark.parametrize(
    "word",
    ["capacity=0", "alpha=0.7", "beta=0.5", "split=best", "rank=most", "loss=none", "width=0"],
)
def test_a_setting_that_means_nothing_is_refused(word):
    with pytest.raises(SettingsError, match=word.partition("=")[0]):
        structure_class(f"be_star_tree {word}")


def test_settings_have_the_defaults_of_the_class():
    assert BEStarTree.settings == Settings()
