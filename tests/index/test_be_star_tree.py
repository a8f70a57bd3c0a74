"""The BE*-Tree: its paper's examples, its answers after any history, what it adapts to."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stentor
from stentor.encoding.columns import EventColumns, SubscriptionColumns, empty, read_only_columns
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.kinds import INTERVAL
from stentor.encoding.ragged import take
from stentor.errors import FolderError, SettingsError
from stentor.index.be_star_tree import BEStarTree
from stentor.index.be_star_tree.settings import BEStarTreeSettings
from stentor.index.catalog import index_class, structure_class
from stentor.index.scan import Scan
from stentor.index.storage.arrays import read_arrays, write_arrays
from stentor.index.verify.candidates import Tally
from stentor.model import Scoring
from stentor.model.values.time import NEVER
from stentor.wire.events import event_from_dict
from tests.support import grid, strategies
from tests.support.checked import Checked
from tests.support.slow_index import SlowIndex, encoded, scores_by_event
from tests.support.workloads import Profiles

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
    wanted = [(attribute, *box) for row in rows for attribute, box in sorted(row.items())]
    counts = np.array([len(row) for row in rows], np.int64)
    return read_only_columns(
        empty(SubscriptionColumns)._replace(
            alternative_start=np.arange(len(rows) + 1),
            predicate_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            kind=np.full(len(wanted), INTERVAL, np.uint8),
            attribute=np.array([one[0] for one in wanted], np.int32),
            low=np.array([one[1] for one in wanted], float),
            high=np.array([one[2] for one in wanted], float),
            weight=np.array([one[3] if len(one) > 3 else 1.0 for one in wanted]),
            operand_start=np.zeros(len(wanted), np.int32),
            operand_stop=np.zeros(len(wanted), np.int32),
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
    return read_only_columns(
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
    arrivals = [TimedEvent(event) for event in some]
    events = encode_events(arrivals, SCHEMA)
    columns = encoded(subscriptions, SCHEMA)
    for name in ("scan", SMALL):
        index = index_class(name).build(columns)
        found = index.top(events, k, scoring=scoring)
        assert scores_by_event(found) == SlowIndex(subscriptions).top(arrivals, k, scoring)


def drawn_subscription(random, dimensions):
    wanted = random.sample(range(dimensions), random.randint(0, 4))
    row = {}
    for attribute in wanted:
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
    current, done = [], 0
    while done < 5000:
        batch = random.choice([1, 3, 40])
        kind = random.random()
        if kind < 0.45:
            first = index.insert(
                intervals([drawn_subscription(random, dimensions) for _ in range(batch)])
            )
            current += range(first, first + batch)
        elif kind < 0.75 and current:
            random.shuffle(current)
            gone = [current.pop() for _ in range(min(len(current), batch))]
            index.remove(np.array(gone, np.int64))
        else:
            events = published([drawn_event(random, dimensions) for _ in range(batch)])
            index.match(events)
            index.top(events, random.randint(1, 4), scoring=random.choice(list(Scoring)))
        done += batch
        if random.random() < 0.1:
            index.index.check()
    index.index.check()
    index.remove(np.array(current, np.int64))
    index.index.check()
    assert root_facts(index.index) == (1, 0), "nothing is left but the root"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_bulk_and_dynamic_construction_answer_like_the_scan(alpha, weighted):
    recipe = Profiles(dimensions=60, match_share=0.02, alpha=alpha, weighted_events=weighted)
    columns, events = recipe.subscriptions(4000), recipe.events(64)
    scan = Scan.build(columns)
    dynamic = structure_class("be_star_tree capacity=16")()
    for start in range(0, 4000, 1000):
        dynamic.insert(take(columns, np.arange(start, start + 1000)))
    history = recipe.events(64)
    for index in (dynamic, BEStarTree.build(columns), BEStarTree.build(columns, history)):
        index.check()
        for found, expected in zip(index.match(events), scan.match(events), strict=True):
            np.testing.assert_array_equal(found, expected)
        for k in (1, 5, 2000):
            for found, expected in zip(index.top(events, k), scan.top(events, k), strict=True):
                np.testing.assert_array_equal(found, expected)


def test_a_tree_of_a_thousand_dimensions_and_expressions_longer_than_a_record_is_exact():
    recipe = Profiles(dimensions=1400, predicates=40, values=60, match_share=0.1)
    columns, events = recipe.subscriptions(300), recipe.events(20)
    index, scan = structure_class(SMALL).build(columns), Scan.build(columns)
    index.check()
    for found, expected in zip(index.match(events), scan.match(events), strict=True):
        np.testing.assert_array_equal(found, expected)


# What the search leaves out.


def test_the_best_are_found_without_testing_most_of_the_matches():
    recipe = Profiles(dimensions=50, match_share=0.05)
    index = BEStarTree.build(recipe.subscriptions(20_000))
    events = recipe.events(32)
    tested = index.counted_work(events)["records/event"]
    searched = [index.top_effort(events, k)["records/event"] for k in (1, 5)]
    assert searched[0] < tested / 5
    assert searched[0] <= searched[1] < tested / 2


def test_weighted_events_are_searched_by_each_records_own_weights():
    """By its total times the event's greatest weight, no record could be left out."""
    recipe = Profiles(dimensions=50, match_share=0.05, weighted_events=True)
    index = BEStarTree.build(recipe.subscriptions(20_000))
    events = recipe.events(32)
    tested = index.counted_work(events)["records/event"]
    assert index.top_effort(events, 1)["records/event"] < tested / 15


# Inputs that might make a chain, or one large leaf.


def values(name, count):
    """*count* values, or intervals, in an order that is hard on a tree."""
    random, steps = Random(name), [float(step) for step in range(count)]
    doubled = [2.0 ** (1000 * step / count - 500) for step in range(count)]
    return {
        "ascending": steps,
        "descending": steps[::-1],
        "random": random.sample(steps, count),
        "from both sides": [step if step % 2 else -step for step in steps],
        "clustered": sorted(1e6 * random.randrange(20) + random.gauss(0, 9) for _ in steps),
        "doubling": doubled,
        "halving": doubled[::-1],
        "doubling from both sides": [x if n % 2 else -x for n, x in enumerate(doubled)],
        "near each other": [1.0 + step * 2.0**-52 for step in steps],
        "sliding": [(step, step + 40) for step in steps],
        "some wide": [(step, step + 900 if step % 30 == 0 else step) for step in steps],
    }[name]


HARD = [
    "ascending",
    "descending",
    "random",
    "from both sides",
    "clustered",
    "doubling",
    "halving",
    "doubling from both sides",
    "near each other",
    "sliding",
    "some wide",
]


@pytest.mark.parametrize("name", HARD)
def test_one_attribute_in_any_order_is_no_chain(name):
    wanted = [one if isinstance(one, tuple) else (one, one) for one in values(name, 3000)]
    columns = intervals([{0: one} for one in wanted])
    events = published([{0: Random(1).choice(one)} for one in wanted[::50]])
    expected = Scan.build(columns).match(events)
    inserted = structure_class("be_star_tree capacity=16")()
    for start in range(0, len(wanted), 100):
        inserted.insert(take(columns, np.arange(start, start + 100)))
    for index in (inserted, structure_class("be_star_tree capacity=16").build(columns)):
        index.check()
        np.testing.assert_array_equal(index.match(events).rows, expected.rows)
        effort = index.counted_work(events)
        assert effort["nodes/event"] < 40, "a chain of 3,000 has more than a hundred"
        assert effort["records/event"] < 100 + 4 * len(expected.rows) / len(events.until)
    gone = np.random.default_rng(1).permutation(len(wanted))
    for rows in (gone[:1500], gone[1500:2990]):
        inserted.remove(rows)
        inserted.check()
    left = np.sort(gone[2990:])
    np.testing.assert_array_equal(
        inserted.match(events).rows, expected.rows[np.isin(expected.rows, left)]
    )


@pytest.mark.parametrize("row", [{0: (5, 5)}, {0: (5, 5), 1: (1, 2)}, {}])
def test_removing_among_equal_subscriptions_moves_none_of_the_others(row):
    index = structure_class("be_star_tree capacity=8")()
    index.insert(intervals([row] * 1000))
    before = index._store.tree.offset[:1000].copy()
    events = published([{0: 5, 1: 1}, {0: 6}])
    gone = np.arange(0, 960, 2)
    for some in np.split(gone, 8):
        index.remove(some)
        index.check()
    left = np.setdiff1d(np.arange(1000), gone)
    assert index.match(events).rows.tolist() == left.tolist() * (1 if row else 2)
    assert index._store.tree.offset[left].tolist() == before[left].tolist()
    index.remove(left[:40])
    index.check()
    assert len(set(index._store.tree.offset[left[40:]].tolist())) == len(left) - 40
    assert index._store.tree.offset[left].tolist() != before[left].tolist(), "half is swept out"
    index.remove(left[40:])
    index.check()
    assert root_facts(index) == (1, 0)


@pytest.mark.parametrize("prefix", ["", "user-", "https://example.org/a/long/way/to/user-" * 9])
def test_strings_are_told_apart_however_long_they_begin_alike(prefix):
    engine = stentor.Engine(index="be_star_tree")
    for number in range(400):
        engine.subscribe(f"s{number}", f"user = '{prefix}{number:06}' AND score > {number % 7}")
    index = engine._state.index
    records = [
        {"id": f"e{number}", "user": f"{prefix}{number:06}", "score": 9}
        for number in range(0, 500, 5)
    ]
    events = encode_events(
        [TimedEvent(event_from_dict(record, engine.schema)) for record in records], engine.schema
    )
    events = events._replace(seq=np.full(100, 10**6))
    assert len(index.match(events).rows) == 80
    assert index.counted_work(events)["candidates/event"] <= 0.8
    index.check()


def test_pairs_of_strings_that_begin_alike_are_not_all_candidates():
    engine = stentor.Engine(index="be_star_tree")
    for number in range(400):
        engine.subscribe(f"s{number}", f"user IN ('user-{number:06}', 'user-{number + 1:06}')")
    index = engine._state.index
    records = [{"id": f"e{number}", "user": f"user-{number:06}"} for number in range(1, 101)]
    events = encode_events(
        [TimedEvent(event_from_dict(record, engine.schema)) for record in records], engine.schema
    )
    events = events._replace(seq=np.full(100, 10**6))
    assert len(index.match(events).rows) == 200
    assert index.counted_work(events)["candidates/event"] < 0.45 * 400
    index.check()


def test_a_pool_that_grows_stays_where_it_is():
    index = structure_class("be_star_tree")()
    index.insert(intervals([{number % 5: (number, number + 1)} for number in range(20_000)]))
    word = index._store.tree.word
    index.insert(intervals([{number % 5: (number, number + 1)} for number in range(40_000)]))
    assert np.shares_memory(word, index._store.tree.word)


# Rows that hold for some records only.


def test_rows_that_hold_since_a_record_need_no_verifier_after_it():
    columns = intervals([{0: (number, number)} for number in range(50)])
    index = BEStarTree.build(columns)
    index.insert(columns, since=7)
    events = published([{0: number} for number in range(50)])
    before, after = (events._replace(seq=np.full(50, seq)) for seq in (7, 8))
    assert len(index.match(before).rows) == 50
    settled = Tally.candidates
    assert len(index.match(after).rows) == 100
    index.top(after, 1)
    index.close(np.array([3]), np.array([9]))
    index.remove(np.array([3]))
    assert len(index.match(after).rows) == 99
    assert Tally.candidates == settled
    index.close(np.array([4]), np.array([8]))
    assert len(index.match(after).rows) == 98
    assert Tally.candidates > settled


def test_rows_that_end_need_no_verifier_before_and_after_their_end():
    columns = intervals([{0: (number, number)} for number in range(50)])
    until = np.full(50, NEVER)
    until[:5] = 100
    index = BEStarTree.build(columns._replace(until=until))
    events = published([{0: number} for number in range(50)])
    early, late = (events._replace(time=np.full(50, time)) for time in (99, 100))
    settled = Tally.candidates
    assert len(index.match(early).rows) == 50
    assert Tally.candidates == settled
    assert len(index.match(late).rows) == 45
    index.remove(np.arange(5))
    for _ in range(3):
        assert len(index.match(late).rows) == 45
    settled = Tally.candidates
    assert len(index.match(late).rows) == 45
    assert Tally.candidates == settled


# Adaptation.


def misfiled(index, count):
    """Let *index* have *count* rows that attribute 0 tells apart, until events are wide there."""
    random = Random(1)
    index.insert(
        intervals(
            [
                {0: (number, number), random.randint(1, 20): (number % 50, number % 50)}
                for number in range(count)
            ]
        )
    )
    return published(
        [
            {0: (0, count), **dict.fromkeys(random.sample(range(1, 21), 3), random.randrange(50))}
            for _ in range(512)
        ]
    )


def test_time_that_passes_is_enough_to_adapt_and_no_call_files_many_anew(monkeypatch):
    monkeypatch.setattr("stentor.index.be_star_tree.index.REINSERTED", 300)
    index = structure_class("be_star_tree window=4")()
    wide = misfiled(index, 1000)
    before = index.counted_work(wide)["records/event"]
    index.match(wide)
    index.advance(0)
    assert len(index._recycled) == 700
    index.remove(np.arange(0, 1000, 3))
    for _ in range(3):
        index.check()
        index.advance(0)
    assert not len(index._recycled)
    index.check()
    assert index.counted_work(wide)["records/event"] < before / 3
    expected = Scan.build(index.subscriptions.columns).match(wide).rows
    assert np.array_equal(index.match(wide).rows, expected[expected % 3 > 0])


def test_an_opened_tree_is_built_anew_for_events_that_it_wastes_much_on(tmp_path):
    tree = structure_class("be_star_tree window=4")()
    wide = misfiled(tree, 3000)
    tree.save(tmp_path / "index")
    layered = index_class("be_star_tree window=4 layered")
    index = layered.open(tmp_path / "index", tree.subscriptions.columns)
    narrow = published([{0: number} for number in range(512)])
    index.match(narrow)
    assert not index.should_merge()
    index.match(wide)
    assert index.should_merge()
    merged, rows = index.merged()
    assert len(rows) == 3000
    assert (
        merged.counted_work(wide)["records/event"]
        < index.base.counted_work(wide)["records/event"] / 5
    )
    built_for = layered(merged)
    built_for.match(wide)
    assert not built_for.should_merge(), "building it once more would change nothing"


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
    assert index.counted_work(before)["records/event"] < 50, "attribute 0 leaves few"
    suffering = index.counted_work(after)["records/event"]
    assert suffering > 1000, "attribute 0 leaves all"
    index.match(after)
    index.insert(intervals([{2: (1, 1)}]))
    assert index.counted_work(after)["records/event"] < suffering / 5
    index.check()
    scan = Scan.build(index.subscriptions.columns)
    np.testing.assert_array_equal(index.match(after).rows, scan.match(after).rows)


def test_what_cannot_be_filed_better_is_not_filed_anew_each_time():
    index = structure_class("be_star_tree capacity=8 window=4")()
    index.insert(intervals([{0: (number, number), 1: (number, number)} for number in range(100)]))
    wide = published([{0: (0, 49), 1: (50, 99)} for _ in range(512)])
    index.match(wide)
    assert index.rebalance() == 100, "the other attribute might have been better"
    for _ in range(5):
        index.match(wide)
        assert index.rebalance() == 0


def test_siblings_are_kept_apart_by_the_width_of_events():
    rows = [{0: (number, number)} for number in range(200)]
    near, apart = (
        structure_class("be_star_tree capacity=8")(),
        structure_class("be_star_tree capacity=8 window=1")(),
    )
    events = published([{0: (number, number + 20)} for number in range(0, 180, 3)] * 3)
    apart.insert(intervals([{0: (-9, -9)}]))
    apart.match(events)
    apart.rebalance()
    for index in (near, apart):
        index.insert(intervals(rows))
        index.check()
    # A range that falls between two siblings as far apart as it is wide meets one of them at most.
    assert apart.counted_work(events)["nodes/event"] < near.counted_work(events)["nodes/event"]
    assert np.array_equal(apart.match(events).rows, near.match(events).rows + 1)


# Files and settings.


def test_a_saved_tree_is_opened_read_only_and_answers_the_same(tmp_path):
    recipe = Profiles(dimensions=40, match_share=0.02)
    columns, events = recipe.subscriptions(2000), recipe.events(32)
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
        BEStarTree.open(tmp_path / "index", recipe.subscriptions(3))


def test_a_tree_of_an_earlier_layout_is_built_anew_when_it_is_opened(tmp_path):
    columns = intervals([{number % 3: (number, number)} for number in range(200)])
    index = structure_class(SMALL).build(columns)
    index.save(tmp_path / "now")
    arrays, meta = read_arrays(tmp_path / "now", kind="be_star_tree")
    del meta["layout"], arrays["usual"], arrays["heaviest"]
    arrays = {**arrays, "word": np.zeros_like(arrays["word"])}
    write_arrays(tmp_path / "then", arrays, kind="be_star_tree", meta=meta)
    opened = structure_class(SMALL).open(tmp_path / "then", columns)
    opened.check()
    events = published([{number % 3: number} for number in range(200)])
    np.testing.assert_array_equal(opened.match(events).rows, np.arange(200))
    np.testing.assert_array_equal(opened.top(events, 1).rows, np.arange(200))
    opened.remove(np.arange(100))
    np.testing.assert_array_equal(opened.match(events).rows, np.arange(100, 200))


def test_the_papers_values_are_one_word():
    paper = structure_class("be_star_tree paper").settings
    assert (paper.capacity, paper.alpha, paper.beta, paper.rank) == (5, 0.1, 4.0, "sum")


@pytest.mark.parametrize(
    "word",
    ["capacity=0", "alpha=0.7", "beta=0.5", "split=best", "rank=most", "loss=none", "width=0"],
)
def test_a_setting_that_means_nothing_is_refused(word):
    with pytest.raises(SettingsError, match=word.partition("=")[0]):
        structure_class(f"be_star_tree {word}")


def test_settings_have_the_defaults_of_the_class():
    assert BEStarTree.settings == BEStarTreeSettings()
