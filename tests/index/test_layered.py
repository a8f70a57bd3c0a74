"""Base, delta and tombstones together, against one index that does the same."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.encoding.columns import (
    Int64,
    MatchPairs,
    SubscriptionColumns,
    empty,
    event_count,
    subscription_count,
)
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.ragged import take
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.errors import SettingsError
from stentor.index.catalog import choose, index_class, names
from stentor.index.layered import LEAST_MERGED, layered
from stentor.index.scan import Scan
from stentor.index.structure import Structure
from stentor.index.table import RowSpans
from stentor.index.verify import Candidates, verify
from stentor.language.normalise import normalise
from stentor.language.parser import parse
from stentor.model import Constant, Event, Kind, Point, Schema
from tests.support.checked import Checked, checked
from tests.support.workloads import WordsAndPlaces

SCHEMA = Schema.declare({"price": "number", "colour": "string", "text": "string", "loc": "point"})
WISHES = [
    "price < 2",
    "price BETWEEN 1 AND 2 AND weight(colour = 'red', 2)",
    "weight(price >= 1, 0.5) OR colour IN ('red', 'blue')",
    "has_all(text, 'ipad')",
    "ST_DWithin(loc, here(), 1000)",
    "ST_DWithin(loc, here(), 150000) AND weight(price != 1, 3)",
    "NOT ST_DWithin(loc, here(), 1000) OR has_any(text, 'ipad', 'discount')",
    "ST_Within(loc, ST_MakeEnvelope(0, 0, 1, 1))",
    "colour IS NULL",
]
PLACES = [Point(x, y) for x in (0.0, 1.0) for y in (0.0, 1.0)]
NOBODY = np.zeros(0, np.int64)


@cache
def pool():
    """Every wish at every place, some of which end."""
    return encode_subscriptions(
        [
            NormalisedSubscription(normalise(parse(wish)), place, 50 if number % 7 == 0 else None)
            for number, (wish, place) in enumerate((w, p) for w in WISHES for p in PLACES)
        ],
        SCHEMA,
    )


@cache
def events():
    """Events at several places in the order of records, before and after some pool rows end."""
    arrivals = []
    for number in range(24):
        attributes = {
            "price": Constant(Kind.NUMBER, float(number % 4)),
            "text": Constant(Kind.STRING, ["iPad", "discount", "none"][number % 3]),
            "loc": PLACES[number % 4],
        }
        if number % 5:
            attributes["colour"] = Constant(Kind.STRING, ["red", "blue"][number % 2])
        weights = {"price": 2.0} if number % 2 else {}
        event = Event(str(number), attributes, weights, until=100)
        arrivals.append(TimedEvent(event, time=40 + number, seq=number))
    return encode_events(arrivals, SCHEMA)


class Exhaustive(Structure):
    """The slowest structure: every alternative is a candidate."""

    name = "exhaustive"

    def _match_tile(self, events):
        return _settled(self.subscriptions.columns, self.subscriptions.validity, events)

    def match_live(self, columns):
        always = RowSpans(np.zeros(subscription_count(columns), np.uint8), NOBODY, NOBODY)
        for array in always:
            array.flags.writeable = False
        rows = self.live.current_rows()
        pairs = _settled(columns, always, take(self.live.columns, rows))
        event = np.repeat(rows, np.diff(pairs.starts))
        order = np.argsort(pairs.rows, kind="stable")
        counts = np.bincount(pairs.rows, minlength=subscription_count(columns))
        return MatchPairs(np.concatenate([[0], np.cumsum(counts)]), event[order])


def _settled(columns, validity, events):
    alternatives = np.arange(len(columns.predicate_start) - 1)
    event = np.repeat(np.arange(event_count(events)), len(alternatives))
    candidates = Candidates(
        event, np.tile(alternatives, event_count(events)), np.zeros(0, np.uint8)
    )
    return verify(columns, validity, events, candidates)


STRUCTURES = [Exhaustive, Scan]

some = st.lists(st.integers(0, 99), min_size=1, max_size=4)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), some),
        st.tuples(st.just("remove"), some),
        st.tuples(st.just("move"), some),
        st.tuples(st.just("close"), some),
        st.tuples(st.just("hold"), some),
        st.tuples(st.just("forget dropped"), some),
        st.tuples(st.just("drop"), some),
    ),
    max_size=8,
)


def chosen(numbers: list[int], count: int) -> Int64:
    return np.array(numbers, np.int64) % count if count else NOBODY


def apply(index, operation, numbers, step):
    """Do one random operation; the numbers mean rows, pool rows, events and places."""
    rows, live = chosen(numbers, index.count), chosen(numbers, index.live.count)
    match operation:
        case "insert":
            added = chosen(numbers, subscription_count(pool()))
            index.insert(take(pool(), added), added - 20 if step % 2 else step)
        case "remove":
            index.remove(rows)
        case "move":
            places = [PLACES[(number // 3) % 4] for number in numbers[: len(rows)]]
            index.move(rows, np.array(places, np.float64).reshape(-1, 2))
        case "close":
            index.close(rows, rows % 24)
        case "forget dropped":
            index.forget_dropped()
        case "hold":
            index.hold(take(events(), chosen(numbers, event_count(events()))))
        case "drop":
            index.drop(live)


def assert_same(found, expected):
    assert type(found) is type(expected)
    for name, one, other in zip(found._fields, found, expected, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=name)


def assert_equal_indexes(one, other):
    one.check()
    assert one.count == other.count
    assert_same(one.match(events()), other.match(events()))
    for k in (1, 2, 5):
        assert_same(one.top(events(), k), other.top(events(), k))
    assert_same(one.match_live(pool()), other.match_live(pool()))
    np.testing.assert_array_equal(one.current_rows(), other.current_rows())
    assert one.live.current_rows().tolist() == other.live.current_rows().tolist()
    standing = other.current_rows()
    assert_same(one.columns_of(standing[::-1]), other.columns_of(standing[::-1]))
    every = np.arange(other.count)
    np.testing.assert_array_equal(one.until(every), other.until(every))
    rows = np.arange(other.count)
    np.testing.assert_array_equal(one.until(rows), other.until(rows))
    for row in rows.tolist():
        assert one.is_current(row) == other.is_current(row)
    for row in standing.tolist():
        assert one.position(row) == other.position(row)
    assert one.stats()["subscriptions"] == other.stats()["subscriptions"]
    assert one.stats()["live events"] == other.stats()["live events"]


@pytest.mark.parametrize("structure", STRUCTURES)
@given(base=some | st.just([]), operations=operations)
def test_layers_answer_as_one_index_that_does_the_same(structure, base, operations):
    columns = take(pool(), chosen(base, subscription_count(pool())))
    one, other = layered(structure).build(columns), structure.build(columns)
    assert_equal_indexes(one, other)
    for step, (operation, numbers) in enumerate(operations):
        apply(one, operation, numbers, step)
        apply(other, operation, numbers, step)
        assert_equal_indexes(one, other)


@pytest.mark.parametrize("structure", STRUCTURES)
@given(base=some, operations=operations)
def test_merging_changes_no_answer_to_the_records_that_come_next(structure, base, operations):
    index = layered(structure).build(take(pool(), chosen(base, subscription_count(pool()))))
    for step, (operation, numbers) in enumerate(operations):
        apply(index, operation, numbers, step)
    fresh, rows = index.merged()
    fresh.check()
    assert rows.tolist() == index.current_rows().tolist()
    later = events()._replace(seq=events().seq + 1000)
    later.seq.flags.writeable = False
    index.remove(np.setdiff1d(np.arange(index.count), rows))  # closed ones: over by then
    found, expected = fresh.match(later), index.match(later)
    assert_same(MatchPairs(found.starts, rows[found.rows]), expected)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_an_opened_base_stays_untouched_but_for_hidden_rows(structure, tmp_path):
    columns = take(pool(), np.arange(12))
    structure.build(columns).save(tmp_path / "index")
    index = layered(structure).open(tmp_path / "index", columns)
    before = [array.copy() for array in columns]
    plain = structure.build(columns)
    for both in (index, plain):
        both.move(np.array([4, 5, 4]), np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]))
        both.close(np.array([6, 4]), np.array([5, 9]))
        both.remove(np.array([0, 6]))
    assert_equal_indexes(index, plain)
    for array, was in zip(columns, before, strict=True):
        np.testing.assert_array_equal(array, was)


def test_a_removed_row_of_the_base_comes_back_by_no_means():
    index = layered(Exhaustive).build(take(pool(), np.arange(8)))
    index.remove(np.array([4]))
    index.move(np.array([4]), np.zeros((1, 2)))
    index.close(np.array([4]), np.array([99]))
    assert not index.is_current(4)
    assert 4 not in index.match(events()).rows
    index.check()


def test_rows_stay_the_same_when_they_are_filed_again():
    index = layered(Exhaustive).build(take(pool(), np.arange(16, 20)))  # within 1 km of here()
    inserted = index.insert(take(pool(), np.array([0])))
    index.move(np.array([2]), np.array([[0.0, 0.0]]))
    assert inserted == 4
    assert index.count == 5
    assert index.position(2) == Point(0.0, 0.0)
    at_origin = take(events(), np.array([0]))
    assert index.match(at_origin).rows.tolist() == [0, 2, 4]


def test_a_base_is_merged_when_a_share_of_it_has_changed():
    index = layered(Exhaustive).build(take(pool(), np.zeros(10 * LEAST_MERGED, np.int64)))
    index.insert(take(pool(), np.zeros(LEAST_MERGED + 1, np.int64)))
    assert not index.should_merge()
    assert index.should_merge(share=0.05)
    index.remove(np.arange(LEAST_MERGED - 1))
    assert not index.should_merge()
    index.remove(np.array([LEAST_MERGED]))
    assert index.should_merge()


def test_a_small_delta_is_left_alone_however_small_the_base():
    index = layered(Exhaustive)()
    index.insert(take(pool(), np.zeros(LEAST_MERGED, np.int64)))
    assert not index.should_merge()
    index.insert(take(pool(), np.zeros(1, np.int64)))
    assert index.should_merge()


def test_the_name_says_what_is_layered():
    assert layered(Scan).name == "scan layered"
    assert layered(Scan)().stats()["index"] == "scan layered"
    assert layered(Scan) is layered(Scan)


# The catalogue.


def test_every_name_of_the_catalogue_names_a_class_of_that_name():
    assert names()[:2] == ["scan", "scan layered"]
    for name in names():
        assert index_class(name).name == name
    assert index_class("auto").name == choose(empty(SubscriptionColumns)) == "scan"


def test_auto_is_the_scan_for_a_few_and_packed_for_many():
    many = WordsAndPlaces(1, vocabulary=1000).subscriptions(20_000)
    assert choose(many) == "packed"
    assert choose(take(many, np.arange(19_999))) == "scan"


@pytest.mark.parametrize(
    ("name", "hint"), [("scn", "did you mean 'scan'"), ("?", "there are auto, scan, scan layered")]
)
def test_an_unknown_name_gets_the_nearest_one_and_the_list(name, hint):
    with pytest.raises(SettingsError, match="no index") as raised:
        index_class(name)
    assert hint in str(raised.value)


# The checked index.


@given(base=some | st.just([]), operations=operations)
def test_a_checked_index_agrees_with_itself(base, operations):
    index = checked(layered(Scan)).build(take(pool(), chosen(base, subscription_count(pool()))))
    for step, (operation, numbers) in enumerate(operations):
        apply(index, operation, numbers, step)
    index.check()
    index.match(events())
    index.top(events(), 2)
    index.match_live(pool())
    Checked(index.index).check()


class Forgetful(Exhaustive):
    """A structure with a mistake: it never finds row 3."""

    name = "forgetful"

    def _match_tile(self, events):
        pairs = super()._match_tile(events)
        keep = pairs.rows != 3
        kept = np.concatenate([[0], np.cumsum(keep)])
        return MatchPairs(kept[pairs.starts], pairs.rows[keep])


def test_a_checked_index_says_which_rows_are_missing():
    index = checked(Forgetful).build(take(pool(), np.arange(8)))
    with pytest.raises(AssertionError) as raised:
        index.match(events())
    assert str(raised.value).splitlines()[:2] == [
        "forgetful: match differs from scan",
        "    event 0: missing [3]",
    ]
    with pytest.raises(AssertionError, match=r"top 5 differs(.|\n)*missing \[\(3, "):
        index.top(events(), 5)
