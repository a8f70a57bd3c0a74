"""Packed while it grows, moves and shrinks: how many segments and entries there are then."""

import threading

import numpy as np
import pytest

from stentor._jit import is_plain
from stentor.encoding.ragged import take
from stentor.index.catalog import structure_class
from stentor.index.packed import index as packed_index
from stentor.index.packed import insert
from stentor.index.packed.lists.layout import LONG
from stentor.index.table import SubscriptionTable
from stentor.model import Schema
from tests.support.workloads import encoded, encoded_events

SCHEMA = Schema.declare({"text": "string", "loc": "point", "a": "number"})
#: All merges happen in the call that makes them due, so that they can be counted.
AT_ONCE = "packed pending=16 foreground=1000000000"
FAN_IN, PENDING = 4, 16


def words_and_numbers(count, random):
    """Subscriptions for one of a few words and a range of numbers."""
    low = random.integers(0, 90, count)
    return [f"has_all(text, 'w{n % 37}') AND a BETWEEN {a} AND {a + 9}" for n, a in enumerate(low)]


def around(count, random, *, words=40, reach=3000):
    """Columns of subscribers in a square degree, each around a location of their own."""
    columns = encoded(
        [f"has_all(text, 'w{n}') AND ST_DWithin(loc, here(), {reach})" for n in range(words)],
        SCHEMA,
        np.zeros((words, 2)),
    )
    table = SubscriptionTable()
    table.append(take(columns, np.arange(count) % words))
    table.move(np.arange(count), random.uniform(0, 1, (count, 2)))
    return table.columns


def anywhere(count, random, *, words=40):
    """Events in the square degree, each with some of the words."""
    return encoded_events(
        [
            {
                "id": f"e{n}",
                "loc": random.uniform(0, 1, 2).tolist(),
                "a": int(random.integers(0, 99)),
                "text": " ".join(f"w{one}" for one in random.integers(0, words, 9)),
            }
            for n in range(count)
        ],
        SCHEMA,
    )


def agree(index, scan, events):
    """Assert that *index* and *scan* find the same; how many matches there are."""
    found, expected = index.match(events), scan.match(events)
    assert np.array_equal(found.starts, expected.starts)
    assert np.array_equal(found.rows, expected.rows)
    return len(found.rows)


def entries(index):
    """How many alternatives there are in segments, those that are out of date too."""
    return sum(segment.size for segment in index._segments.all)


def most_segments(count):
    """As many as there may be of *count* subscriptions, whatever the order of their batches."""
    tiers = 1
    while count >= PENDING * FAN_IN**tiers:
        tiers += 1
    return (FAN_IN - 1) * tiers


@pytest.mark.parametrize("part", [1, 7, 17, 200])
def test_segments_of_like_size_become_one_though_nothing_is_matched(part):
    random = np.random.default_rng(part)
    count = 250 if part == 1 else 3_000
    columns = encoded(words_and_numbers(count, random), SCHEMA)
    index, scan = structure_class(AT_ONCE)(), structure_class("scan").build(columns)
    for start in range(0, count, part):
        index.insert(take(columns, np.arange(start, min(start + part, count))))
        assert len(index._segments.all) <= most_segments(index.count)
    assert len(index._segments.all) <= count / part / 2
    assert entries(index) + len(index._pending.alternative) == count
    index.check()
    assert agree(index, scan, anywhere(60, random))


def test_batches_of_any_size_in_any_order_leave_few_segments():
    random = np.random.default_rng(3)
    sizes = 17 * 4 ** random.integers(0, 4, 60)
    columns = encoded(words_and_numbers(int(sizes.max()), random), SCHEMA)
    index = structure_class(AT_ONCE)()
    for size in sizes.tolist():
        index.insert(take(columns, np.arange(size)))
        assert len(index._segments.all) <= most_segments(index.count)


def test_a_segment_that_was_merged_in_threads_is_in_its_tier():
    random = np.random.default_rng(4)
    columns = encoded(words_and_numbers(4_000, random), SCHEMA)
    index = structure_class("packed pending=16 foreground=64")()
    for start in range(0, 4_000, 20):
        index.insert(take(columns, np.arange(start, start + 20)))
        assert len(index._segments.all) <= insert.MOST_SEGMENTS + 1
        index.wait()
    assert len(index._segments.all) <= most_segments(4_000) + FAN_IN
    assert agree(index, structure_class("scan").build(columns), anywhere(60, random))


def test_events_that_are_matched_pay_for_one_segment_of_all():
    random = np.random.default_rng(5)
    columns = encoded(words_and_numbers(1_060, random), SCHEMA)
    index, events = structure_class(AT_ONCE)(), anywhere(100, random)
    for start in range(0, 1_060, 20):
        index.insert(take(columns, np.arange(start, start + 20)))
    assert len(index._segments.all) > 2
    index.match(events)
    assert [segment.size for segment in index._segments.all] == [1_060]
    index.insert(take(columns, np.arange(20)))
    index.match(events)
    assert len(index._segments.all) == 2, "twenty are not yet worth it"
    for _ in range(60):
        index.match(events)
    assert [segment.size for segment in index._segments.all] == [1_080]


@pytest.mark.parametrize("reach", [3_000, 30_000])
@pytest.mark.parametrize("words", [1, 40])
@pytest.mark.parametrize("home", ["cost", "lists", "blocks", "nodes"])
def test_who_moves_anywhere_again_and_again_leaves_few_entries(home, words, reach):
    random = np.random.default_rng(6)
    count = 1_500
    columns = around(count, random, words=words, reach=reach)
    index = structure_class(f"{AT_ONCE} home={home}").build(columns)
    scan, found = structure_class("scan").build(columns), 0
    for step in range(30):
        rows = np.unique(random.integers(0, count, 400))
        to = random.uniform(0, 1, (len(rows), 2))
        index.move(rows, to)
        scan.move(rows, to)
        assert entries(index) <= 2 * count + packed_index.FEW_GONE
        assert len(index._segments.all) <= most_segments(2 * count)
        if step % 5 == 0:
            index.check()
            found += agree(index, scan, anywhere(40, random, words=words))
    assert found or (words, reach) == (40, 3_000)


@pytest.mark.parametrize("home", ["lists", "blocks"])
@pytest.mark.parametrize("words", [2, 40])
def test_a_short_move_happens_in_place(home, words):
    random = np.random.default_rng(7)
    count = 20 * LONG * words if words == 2 else 30 * words
    columns = around(count, random, words=words)
    index = structure_class(f"{AT_ONCE} home={home}").build(columns)
    scan = structure_class("scan").build(columns)
    rows, moved_on = np.arange(count), 0
    for _ in range(6):
        to = index.positions(rows) + random.normal(0, 0.0005, (count, 2))
        index.move(rows, to)
        scan.move(rows, to)
        moved_on += entries(index) + len(index._pending.alternative) - count
        index.check()
        assert agree(index, scan, anywhere(40, random, words=words))
    assert moved_on <= 0.3 * 6 * count


def test_who_moves_is_in_no_nodes_which_could_not_move_them():
    random = np.random.default_rng(11)
    schema = Schema.declare({"loc": "point", **{f"a{n}": "number" for n in range(40)}})
    bounds = [f"a{n % 40} BETWEEN {n % 7} AND 9 AND a{n % 39} < {n % 5 + 5}" for n in range(900)]
    texts = [
        f"{text} AND ST_DWithin(loc, here(), 9)" if n % 3 else text for n, text in enumerate(bounds)
    ]
    columns = encoded(texts, schema, random.uniform(0, 1, (900, 2)))
    index = structure_class(AT_ONCE).build(columns)
    (segment,) = index._segments.all
    held = dict(zip((home.name for home in segment.homes), segment.held, strict=True))
    moves = [text.endswith("here(), 9)") for text in texts]
    row = np.searchsorted(columns.alternative_start, np.arange(900), side="right") - 1
    assert len(held["nodes"]) > 250
    assert not np.array(moves)[row[held["nodes"]]].any()


def test_an_alternative_of_several_lists_and_several_circles_moves_in_all_of_them():
    random = np.random.default_rng(8)
    texts = [
        f"has_any(text, 'w{n % 40} w{n % 7} w{n % 3}') AND ST_DWithin(loc, here(), {900 + n}) "
        f"AND ST_Within(loc, ST_MakeEnvelope(0, 0, 0.{n % 9 + 1}, 1)) AND a > {n % 5} "
        f"AND NOT ST_DWithin(loc, here(), {n % 4}) AND has_all(text, 'w{n % 5}')"
        for n in range(2_000)
    ]
    columns = encoded(texts, SCHEMA, random.uniform(0, 1, (2_000, 2)))
    index = structure_class(f"{AT_ONCE} home=lists").build(columns)
    scan, found = structure_class("scan").build(columns), 0
    for step in range(12):
        rows = np.unique(random.integers(0, 2_000, 700))
        to = random.uniform(0, 1, (len(rows), 2))
        if step % 3:
            to = index.positions(rows) + random.normal(0, 0.001, (len(rows), 2))
        to[:9] = [179.9999, 0]  # across 180°: no bounds at all
        index.move(rows, to)
        scan.move(rows, to)
        index.check()
        found += agree(index, scan, anywhere(60, random, words=12))
    assert found


@pytest.mark.skipif(is_plain(), reason="plain kernels merge in the call itself")
def test_what_is_to_be_left_out_while_a_merge_runs_is_left_out_after_it(monkeypatch):
    random = np.random.default_rng(9)
    columns = encoded(words_and_numbers(8_000, random), SCHEMA)
    index = structure_class("packed pending=16 foreground=100")()
    may_go_on, together = threading.Event(), insert.together

    def held_up(*given):
        if threading.current_thread().name == "stentor packed merge":
            may_go_on.wait(60)
        return together(*given)

    monkeypatch.setattr(insert, "together", held_up)
    for start in range(0, 8_000, 2_000):
        index.insert(take(columns, np.arange(start, start + 2_000)))
    assert index._segments.is_merging
    index.remove(np.arange(7_900))
    assert entries(index) >= 8_000, "the merge is still under way"
    may_go_on.set()
    index.wait()
    index.remove(np.arange(7_900, 7_910))
    index.wait()
    assert entries(index) <= 100
    index.check()
    scan = structure_class("scan").build(columns)
    scan.remove(np.arange(7_910))
    assert agree(index, scan, anywhere(60, random))


@pytest.mark.skipif(is_plain(), reason="plain kernels merge in the call itself")
def test_what_moves_while_segments_are_merged_is_found(monkeypatch):
    random = np.random.default_rng(10)
    count = 3_000
    columns = around(count, random)
    index, scan = structure_class("packed pending=16 foreground=100")(), structure_class("scan")()
    may_go_on, together = threading.Event(), insert.together

    def held_up(*given):
        found = together(*given)
        if threading.current_thread().name == "stentor packed merge":
            may_go_on.wait(60)
        return found

    monkeypatch.setattr(insert, "together", held_up)
    for start in range(0, count, 300):
        for one in (index, scan):
            one.insert(take(columns, np.arange(start, start + 300)))
    assert index._segments.is_merging
    for step in range(8):
        if step == 4:
            may_go_on.set()
            index.wait()
        rows = np.unique(random.integers(0, count, 500))
        to = index.positions(rows) + random.normal(0, (0.001, 0.3)[step % 2], (len(rows), 2))
        for one in (index, scan):
            one.move(rows, to)
        index.check()
        assert agree(index, scan, anywhere(60, random))
