"""The blocks of the scan against the verifier, asked about every row.

The verifier is held against `evaluate` in `test_verify.py` and `test_encoding_equals_evaluate.py`.
"""

import math
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.encoding.columns import (
    MatchPairs,
    ScoredPairs,
    SubscriptionColumns,
    empty,
    event_count,
    subscription_count,
)
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.hashing import attribute_seed, hash_bytes
from stentor.encoding.kinds import BOX
from stentor.encoding.ragged import concatenate, take
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.errors import FolderError, ReadOnlyError
from stentor.index.bounds import VALUE, X, Y
from stentor.index.scan import Scan, index
from stentor.index.scan.filters import MOST_CELLS, MOST_FILTERS, MOST_LINES, choose_filters
from stentor.index.scan.layout import BLOCK, LIVE, NO_TERM, WORDS
from stentor.index.verify import best_of, scores_of
from stentor.language.normalise import normalise
from stentor.language.parser import parse
from stentor.model import Constant, Event, Kind, Point, Range, Schema
from tests.support.rows import matched_by_rows
from tests.support.workloads import Intervals, WordsAndPlaces

SCHEMA = Schema.declare(
    {
        **{f"n{number}": "number" for number in range(6)},
        "brand": "string",
        "text": "string",
        "loc": "point",
        "rare": "number",
    }
)
WORDS_OF_TEXT = ["ipad", "red", "sale", "tea", "oslo", "bike"]
PLACES = [Point(x, y) for x in (-180.0, -179.5, 0.0, 0.5, 179.5) for y in (-0.5, 0.0, 0.5)]


def wishes(count, seed=1):
    """Standing subscriptions of every kind of predicate, about as selective as real ones."""
    random = np.random.default_rng(seed)

    def predicate():
        low = int(random.integers(0, 20))
        name = f"n{min(5, int(random.exponential(2)))}"
        word, other = random.choice(WORDS_OF_TEXT, 2)
        x, y = PLACES[random.integers(len(PLACES))]
        forms = [
            f"{name} BETWEEN {low} AND {low + int(random.integers(0, 9))}",
            f"{name} BETWEEN {low} AND {low + 5}",
            f"{name} > {low}",
            f"{name} IN ({low}, {low + 3}, {low + 9})",
            f"{name} IS NULL",
            f"brand = '{word}'",
            f"brand NOT IN ('{word}', '{other}')",
            f"brand LIKE '{word[:2]}%'",
            f"brand >= '{word}'",
            f"has_all(text, '{word}', '{other}')",
            f"has_any(text, '{word}', '{other}')",
            f"NOT has_any(text, '{word}')",
            f"ST_Within(loc, ST_MakeEnvelope({x}, {y}, {max(x, -x)}, {y + 0.5}))",
            f"ST_Within(loc, ST_MakeEnvelope({x}, {y}, {x + 0.5}, {y + 0.5}))",
            f"ST_Within(loc, ST_MakeEnvelope(179, {y}, -179, {y + 1}))",
            f"NOT ST_DWithin(loc, ST_Point({x}, {y}), 90000)",
            "ST_DWithin(loc, here(), 80000)",
            f"ST_DWithin(loc, here(), {int(random.integers(0, 200)) * 1000})",
            "rare = 3",
        ]
        return f"weight({forms[random.integers(len(forms))]}, {random.integers(0, 4) / 4})"

    found = []
    for _ in range(count):
        alternatives = [
            " AND ".join(predicate() for _ in range(random.integers(1, 4)))
            for _ in range(random.choice([1, 1, 1, 2, 3]))
        ]
        place = PLACES[random.integers(len(PLACES))]
        found.append(NormalisedSubscription(normalise(parse(" OR ".join(alternatives))), place))
    return found


@cache
def pool():
    """700 subscriptions, which are more than a thousand alternatives: several blocks."""
    columns = encode_subscriptions(wishes(700), SCHEMA)
    assert len(columns.predicate_start) > 2 * BLOCK
    return columns


@cache
def batch(count=60):
    """Events that lack attributes, and some whose numbers are ranges."""
    random = np.random.default_rng(2)
    arrivals = []
    for number in range(count):
        attributes = {}
        for name in range(6):
            low = float(random.integers(0, 20))
            if random.random() < 0.75:
                attributes[f"n{name}"] = Constant(Kind.NUMBER, low)
            elif random.random() < 0.5:
                high = low + float(random.integers(0, 12))
                attributes[f"n{name}"] = Range(Kind.NUMBER, low, high)
        if random.random() < 0.9:
            brand = str(random.choice([*WORDS_OF_TEXT, "ip", "zz"]))
            attributes["brand"] = Constant(Kind.STRING, brand)
        if random.random() < 0.9:
            some = random.choice(WORDS_OF_TEXT, random.integers(0, 5))
            attributes["text"] = Constant(Kind.STRING, " ".join(some))
        if random.random() < 0.9:
            attributes["loc"] = PLACES[random.integers(len(PLACES))]
        if number % 10 == 0:
            attributes["rare"] = Constant(Kind.NUMBER, 3.0)
        event = Event(str(number), attributes, {"n0": 2.0, "loc": 0.5})
        arrivals.append(TimedEvent(event, seq=number))
    return encode_events(arrivals, SCHEMA)


def assert_same(found, expected):
    assert type(found) is type(expected)
    for name, one, other in zip(found._fields, found, expected, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=name)


def assert_finds_what_the_rows_give(scan, events):
    scan.check()
    expected = matched_by_rows(scan, events)
    assert_same(scan.match(events), expected)
    return expected


# Blocks against rows.


def test_several_blocks_find_what_the_rows_give():
    scan = Scan.build(pool())
    pairs = assert_finds_what_the_rows_give(scan, batch())
    assert scan.stats()["blocks"] == 3
    assert len(pairs.rows) > 1000, "a workload without matches would prove nothing"
    filters = scan._store.filters
    assert {VALUE, X, Y} <= set(filters.axis.tolist())


@pytest.mark.parametrize(
    "recipe", [Intervals(3, predicates=2, hotspots=3), WordsAndPlaces(3, vocabulary=60, hotspots=3)]
)
def test_intervals_words_and_places_find_what_the_rows_give(recipe):
    scan = Scan.build(recipe.subscriptions(1500))
    pairs = assert_finds_what_the_rows_give(scan, recipe.events(40))
    assert len(pairs.rows) > 100


@pytest.mark.parametrize("count", [1, BLOCK - 1, BLOCK, BLOCK + 1])
def test_blocks_may_be_full_or_not(count):
    alone = encode_subscriptions([NormalisedSubscription(normalise(parse("n0 < 15")))], SCHEMA)
    scan = Scan.build(take(alone, np.zeros(count, np.int64)))
    assert_finds_what_the_rows_give(scan, batch())


def test_many_threads_find_the_same_in_the_same_order():
    scan = Scan.build(pool())
    for threads in (2, 3, 64, 1000):
        assert_same(scan.match(batch(), threads=threads), scan.match(batch()))
        assert_same(scan.top(batch(), 3, threads=threads), scan.top(batch(), 3))


def test_a_batch_is_larger_than_a_tile(monkeypatch):
    monkeypatch.setattr("stentor.index.structure.TILE", 7)
    scan = Scan.build(pool())
    assert_finds_what_the_rows_give(scan, batch())


@pytest.mark.parametrize(("first", "most"), [(1, 1 << 22), (1, 50), (1, 1)])
def test_candidates_that_do_not_fit_are_counted_and_found_again(monkeypatch, first, most):
    monkeypatch.setattr(index, "FIRST_CAPACITY", first)
    monkeypatch.setattr(index, "MOST_CAPACITY", most)
    scan = Scan.build(pool())
    assert_finds_what_the_rows_give(scan, batch())
    scan.hold(batch())
    found = scan.match_live(pool())
    monkeypatch.undo()
    assert_same(found, scan.match_live(pool()))


def test_nothing_is_found_in_nothing():
    scan = Scan()
    scan.check()
    assert scan.match(batch()).starts.tolist() == [0] * (event_count(batch()) + 1)
    assert scan.match_live(pool()).starts.tolist() == [0] * (subscription_count(pool()) + 1)
    none = take(batch(), np.zeros(0, np.int64))
    scan.insert(pool())
    assert_same(scan.match(none, threads=2), MatchPairs(np.zeros(1, int), np.zeros(0, int)))
    assert scan.top(none, 2).scores.tolist() == []


def test_a_subscription_that_never_matches_takes_no_slot():
    never = encode_subscriptions(
        [NormalisedSubscription(normalise(parse("n0 < 0 AND n0 > 1")))], SCHEMA
    )
    scan = Scan.build(concatenate([never, pool(), never]))
    assert_finds_what_the_rows_give(scan, batch())
    assert scan._store.count == len(pool().predicate_start) - 1


def test_an_event_that_everybody_wants_reaches_everybody():
    everything = encode_subscriptions([NormalisedSubscription(normalise(parse("TRUE")))], SCHEMA)
    scan = Scan.build(take(everything, np.zeros(2 * BLOCK, np.int64)))
    pairs = assert_finds_what_the_rows_give(scan, batch(5))
    assert len(pairs.rows) == 5 * 2 * BLOCK


# The best.


@pytest.mark.parametrize("k", [1, 2, 7, 10_000])
def test_the_top_are_the_best_of_all_matches_with_their_ties(k):
    scan = Scan.build(pool())
    pairs = matched_by_rows(scan, batch())
    scores = scores_of(scan.subscriptions.columns, batch(), pairs)
    top = scan.top(batch(), k)
    assert_same(top, best_of(ScoredPairs(*pairs, scores), k))
    for event in range(event_count(batch())):
        theirs = scores[pairs.starts[event] : pairs.starts[event + 1]]
        expected = sorted(theirs, reverse=True)[:k]
        found = top.scores[top.starts[event] : top.starts[event + 1]]
        assert sorted(found, reverse=True)[:k] == expected
        assert len(found) == np.count_nonzero(theirs >= min(expected, default=0.0))


# Backwards.


def test_matching_backwards_turns_matching_round():
    scan = Scan.build(pool())
    scan.hold(take(batch(), np.arange(20)))
    scan.hold(take(batch(), np.arange(20, 60)))
    scan.drop(np.array([3, 30, 59]))
    scan.check()
    forwards = matched_by_rows(scan, batch())
    expected = [[] for _ in range(subscription_count(pool()))]
    for event in range(60):
        if event not in (3, 30, 59):
            for row in forwards.rows[forwards.starts[event] : forwards.starts[event + 1]]:
                expected[row].append(event)
    starts, events = scan.match_live(pool())
    found = [events[a:b].tolist() for a, b in pairwise(starts)]
    assert found == expected
    assert sum(map(len, found)) > 1000


def test_matching_backwards_minds_neither_time_nor_order():
    scan = Scan()
    scan.hold(batch())
    over = pool()._replace(until=np.zeros(subscription_count(pool()), np.int64))
    over.until.flags.writeable = False
    assert_same(scan.match_live(over), scan.match_live(pool()))


# Changes.

rows_drawn = st.lists(st.integers(0, 10_000), min_size=1, max_size=40)


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.sampled_from(["insert", "remove", "move", "close"]), rows_drawn), max_size=8
    )
)
def test_a_scan_that_changed_finds_what_the_rows_give(steps):
    scan = Scan.build(take(pool(), np.arange(100)))
    for step, numbers in steps:
        rows = np.array(numbers, np.int64) % scan.count
        if step == "insert":
            scan.insert(
                take(pool(), np.array(numbers) % subscription_count(pool())), numbers[0] % 9
            )
        elif step == "remove":
            scan.remove(rows)
        elif step == "close":
            scan.close(rows, np.array(numbers) % 60)
        else:
            places = [PLACES[number % len(PLACES)] for number in numbers]
            scan.move(rows, np.array(places))
        assert_finds_what_the_rows_give(scan, batch())


def test_a_moved_subscriber_is_found_where_it_is_now():
    near = encode_subscriptions(
        [NormalisedSubscription(normalise(parse("ST_DWithin(loc, here(), 1000)")), PLACES[0])],
        SCHEMA,
    )
    scan = Scan.build(take(near, np.zeros(300, np.int64)))
    scan.move(np.array([7, 290]), np.array([PLACES[10], PLACES[10]]))
    event = Event("e", {"loc": PLACES[10]})
    assert scan.match(encode_events([TimedEvent(event)], SCHEMA)).rows.tolist() == [7, 290]
    scan.check()


def test_filters_are_chosen_again_when_the_alternatives_have_doubled():
    scan = Scan()
    chosen = []
    for _ in range(40):
        scan.insert(take(pool(), np.arange(100)))
        chosen.append(scan._store)
    assert 3 <= len({id(store) for store in chosen}) <= 8
    assert_finds_what_the_rows_give(scan, batch(10))


def test_one_by_one_is_the_same_as_all_at_once():
    scan = Scan()
    for row in range(150):
        scan.insert(take(pool(), np.array([row])))
    assert_same(scan.match(batch()), Scan.build(take(pool(), np.arange(150))).match(batch()))


def test_removed_rows_leave_their_slots_when_they_are_many():
    scan = Scan.build(pool())
    before = scan._store.count
    scan.remove(np.arange(0, 100))
    assert scan._store.count == before
    scan.remove(np.arange(0, 600))
    assert scan._store.count < before / 2
    assert_finds_what_the_rows_give(scan, batch())


def test_removing_twice_counts_once():
    scan = Scan.build(pool())
    for _ in range(20):
        scan.remove(np.arange(100))
    assert scan._store.count == len(pool().predicate_start) - 1


# Filters.


def test_filters_are_the_attributes_that_most_alternatives_bound():
    filters = choose_filters(pool(), np.arange(len(pool().predicate_start) - 1))
    names = [list(SCHEMA)[code] for code in filters.attribute]
    assert names == sorted(names, key=list(SCHEMA).index), "ascending by code"
    assert {"n0", "brand", "loc"} <= set(names)
    assert "text" not in names, "terms bound nothing"
    assert names.count("loc") == 2
    for row, code in enumerate(filters.attribute.tolist()):
        edges = filters.edge[filters.edge_start[row] : filters.edge_start[row + 1]]
        assert (np.diff(edges) > 0).all()
        assert np.isfinite(edges).all()
        assert filters.attribute[filters.first_of[code]] == code
    assert len(names) <= MOST_FILTERS
    assert filters.line_start[-1] - filters.line_start[0] <= MOST_LINES + len(names)


def test_few_filters_get_many_cells():
    columns = WordsAndPlaces(1).subscriptions(5000)
    filters = choose_filters(columns, np.arange(5000))
    assert filters.axis.tolist() == [X, Y]
    assert np.diff(filters.line_start).tolist() == [MOST_CELLS + 1] * 2


def test_an_attribute_of_few_values_gets_a_cell_for_each():
    texts = [f"brand = '{word}'" for word in WORDS_OF_TEXT for _ in range(30)]
    columns = encode_subscriptions(
        [NormalisedSubscription(normalise(parse(text))) for text in texts], SCHEMA
    )
    scan = Scan.build(columns)
    # Without the attribute, below the first value, and from each value on.
    assert np.diff(scan._store.filters.line_start).tolist() == [2 + len(WORDS_OF_TEXT)]
    assert_finds_what_the_rows_give(scan, batch())


def test_terms_are_a_filter_where_many_ask_for_them():
    texts = [f"has_all(text, 'common', 'rare{number}')" for number in range(300)]
    texts += ["has_any(text, 'common', 'rare1')", "NOT has_any(text, 'common')", "n0 > 0"] * 9
    columns = encode_subscriptions(
        [NormalisedSubscription(normalise(parse(text))) for text in texts], SCHEMA
    )
    scan = Scan.build(columns)
    filters = scan._store.filters
    assert filters.bucket_use.sum() > 600
    line = scan._store.blocks.line.reshape(-1, scan._store.lines, WORDS)
    by_line = np.bitwise_count(line[:, NO_TERM : filters.line_start[0]]).sum(axis=(0, 2))
    assert by_line[0] == 27, "what needs no term, or only one of several"
    assert by_line[1 + hash_bytes(b"common", attribute_seed("text")) // 2**58] < 10
    everything = " ".join(["common", *(f"rare{number}" for number in range(300))])
    messages = ["common rare7 rare8", "rare7", "common", "", everything]
    texts_of_events = [{"text": Constant(Kind.STRING, message)} for message in messages]
    arrivals = [TimedEvent(Event("e", text)) for text in [*texts_of_events, {}]]
    starts, _ = assert_finds_what_the_rows_give(scan, encode_events(arrivals, SCHEMA))
    assert np.diff(starts).tolist() == [2 + 9, 9, 9, 9, 300 + 9, 0]


def test_terms_are_no_filter_where_few_ask_for_them():
    texts = ["n0 > 1"] * 300 + ["has_all(text, 'ipad')"]
    columns = encode_subscriptions(
        [NormalisedSubscription(normalise(parse(text))) for text in texts], SCHEMA
    )
    scan = Scan.build(columns)
    assert len(scan._store.filters.bucket_use) == 0
    assert_finds_what_the_rows_give(scan, batch())


def test_boxes_across_the_antimeridian_are_in_the_cells_of_both_sides():
    text = "ST_Within(loc, ST_MakeEnvelope(170, -10, -170, 10))"
    others = [f"ST_Within(loc, ST_MakeEnvelope({x}, 0, {x + 5}, 5))" for x in range(-180, 170, 2)]
    columns = encode_subscriptions(
        [NormalisedSubscription(normalise(parse(one))) for one in [text, *others]], SCHEMA
    )
    assert (columns.kind == BOX).all()
    scan = Scan.build(columns)
    scan.check()
    places = [Point(x, 0.0) for x in (-180.0, -170.0, -169.0, 0.0, 169.0, 170.0, 180.0)]
    events = encode_events([TimedEvent(Event("e", {"loc": place})) for place in places], SCHEMA)
    starts, rows = assert_finds_what_the_rows_give(scan, events)
    wanted = [0 in rows[a:b] for a, b in pairwise(starts)]
    assert wanted == [True, True, False, False, False, True, True]


def test_unbounded_and_infinite_values_fall_into_cells():
    texts = [f"n0 > {number}" for number in range(100)] + [f"n0 < {number}" for number in range(99)]
    columns = encode_subscriptions(
        [NormalisedSubscription(normalise(parse(text))) for text in texts], SCHEMA
    )
    scan = Scan.build(columns)
    values = [Constant(Kind.NUMBER, value) for value in (-math.inf, -1.0, 50.0, math.inf)]
    values += [Range(Kind.NUMBER, -math.inf, math.inf), Range(Kind.NUMBER, 98.5, math.inf)]
    events = encode_events([TimedEvent(Event("e", {"n0": value})) for value in values], SCHEMA)
    starts, _ = assert_finds_what_the_rows_give(scan, events)
    assert np.diff(starts).tolist() == [99, 99, 98, 100, 199, 100]


def test_a_range_joins_the_cells_that_it_spans():
    texts = [f"n0 = {number}" for number in range(200)]
    columns = encode_subscriptions(
        [NormalisedSubscription(normalise(parse(text))) for text in texts], SCHEMA
    )
    scan = Scan.build(columns)
    spans = [(10.0, 10.0), (10.0, 13.0), (10.0, 60.5), (-5.0, 0.0), (150.0, 999.0)]
    events = encode_events(
        [TimedEvent(Event("e", {"n0": Range(Kind.NUMBER, *span)})) for span in spans], SCHEMA
    )
    starts, _ = assert_finds_what_the_rows_give(scan, events)
    assert np.diff(starts).tolist() == [1, 4, 51, 1, 50]


# Invariants, files, figures.


@pytest.mark.parametrize("line", [LIVE, 1, -1])
def test_a_flipped_bit_is_noticed(line):
    scan = Scan.build(pool())
    scan.check()
    lines = scan._store.lines
    scan._store._blocks.line[line % lines * WORDS] ^= np.uint64(1)
    with pytest.raises(AssertionError):
        scan.check()


def test_a_wrong_signature_or_member_is_noticed():
    for name, wrong in (("signature", 12345), ("member", 1)):
        scan = Scan.build(pool())
        getattr(scan._store._blocks, name)[0] = wrong
        with pytest.raises(AssertionError):
            scan.check()


def test_an_opened_scan_answers_as_the_saved_one(tmp_path):
    scan = Scan.build(pool())
    scan.remove(np.arange(50, 90))
    scan.save(tmp_path / "scan")
    opened = Scan.open(tmp_path / "scan", pool())
    opened.remove(np.arange(50, 90))
    assert_same(opened.match(batch()), scan.match(batch()))
    opened.remove(np.arange(100, 650))
    assert_finds_what_the_rows_give(opened, batch())
    assert not opened._store.blocks.line.flags.writeable
    with pytest.raises(ReadOnlyError):
        opened.insert(pool())


def test_an_empty_scan_can_be_saved_and_opened(tmp_path):
    Scan().save(tmp_path / "scan")
    opened = Scan.open(tmp_path / "scan", empty(SubscriptionColumns))
    opened.check()
    assert opened.match(batch()).rows.tolist() == []


def test_a_folder_that_belongs_to_other_subscriptions_is_refused(tmp_path):
    Scan.build(pool()).save(tmp_path / "scan")
    with pytest.raises(FolderError, match="other subscriptions"):
        Scan.open(tmp_path / "scan", take(pool(), np.arange(10)))


def test_a_cache_line_of_bits_begins_where_a_cache_line_does():
    for _ in range(5):
        scan = Scan.build(pool())
        assert scan._store.blocks.line.ctypes.data % 64 == 0


def test_figures_say_what_there_is():
    scan = Scan.build(pool())
    stats = scan.stats()
    assert stats["index"] == "scan"
    assert stats["subscriptions"] == 700
    assert stats["blocks"] == 3
    assert stats["filters"] == len(scan._store.filters.attribute)
    assert stats["bytes"] > scan.subscriptions.nbytes + scan._store.blocks.line.nbytes
