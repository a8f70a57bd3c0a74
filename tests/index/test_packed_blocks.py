"""Blocks against `evaluate`, and against plain comparisons of many drawn bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.encoding.columns import (
    NO_STRING,
    EventColumns,
    SubscriptionColumns,
    event_count,
    read_only_columns,
)
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.kinds import BOX, INTERVAL, MISSING, PRESENT
from stentor.encoding.ragged import take
from stentor.index.packed.blocks import Blocks
from stentor.index.packed.homes import found_for
from stentor.index.table import SubscriptionTable
from stentor.index.verify import Candidates, verify
from stentor.language.parser import parse
from stentor.model import Constant, Event, Kind, Point, Subscription, Truth
from stentor.model.values.time import NEVER
from tests.support import grid, strategies
from tests.support.slow_index import SlowIndex, encoded, rows_by_event

SCHEMA = grid.schema()
subscriptions = st.lists(strategies.subscriptions(max_predicates=4), min_size=1, max_size=6)
some_events = st.lists(strategies.events(several=False), max_size=4)


def alternatives_of(columns):
    return np.arange(len(columns.predicate_start) - 1)


def pairs_of(blocks, events, capacity=8, one=False):
    """What *blocks* find, in memory that grows by asking again."""
    ask = blocks.match_one if one else blocks.match
    found = found_for(capacity)
    while (count := ask(events, found)) > len(found.event):
        found = found_for(count)
    return [array[:count] for array in found]


def matched(blocks, columns, events, **how):
    """The rows of each event; each pair that is covered must be a match."""
    table = SubscriptionTable()
    table.append(columns)
    event, alternative, covered = pairs_of(blocks, events, **how)
    everything = verify(
        table.columns, table.validity, events, Candidates(event, alternative, covered * 0)
    )
    trusted = verify(table.columns, table.validity, events, Candidates(event, alternative, covered))
    assert rows_by_event(everything) == rows_by_event(trusted), "covered pairs match"
    return rows_by_event(trusted)


@given(some=subscriptions, events=some_events, copies=st.sampled_from([1, 9, 300]))
def test_blocks_find_what_evaluate_finds(some, events, copies):
    columns = encoded(some, SCHEMA)
    turn = np.tile(np.arange(len(some)), copies)
    many = take(columns, turn)
    blocks = Blocks.build(many, alternatives_of(many))
    blocks.check(many, alternatives_of(many))
    arrived = [TimedEvent(event) for event in events]
    expected = SlowIndex(some).match(arrived)
    expected = [[row for row in range(len(turn)) if turn[row] in rows] for rows in expected]
    encoded_events = encode_events(arrived, SCHEMA)
    assert matched(blocks, many, encoded_events) == expected
    for position, event in enumerate(arrived):
        alone = encode_events([event], SCHEMA)
        assert matched(blocks, many, alone, one=True) == [expected[position]]


ATTRIBUTES = 24  # more than a record holds
LOCATION_CODE = ATTRIBUTES


def drawn_columns(random, count, *, asked, domain, one_location=False, attributes=ATTRIBUTES):
    """Subscriptions of *asked* intervals each, and of a box, over few values: borders are met."""
    kinds, attribute, low, high, pairs, starts = [], [], [], [], [], [0]
    for _ in range(count):
        for code in np.sort(random.choice(attributes, random.integers(0, asked + 1), False)):
            kind = random.choice([INTERVAL, INTERVAL, INTERVAL, INTERVAL, MISSING, PRESENT])
            ends = np.sort(random.integers(0, domain, 2)).astype(float)
            if random.random() < 0.2:
                ends[random.integers(2)] = random.choice([-np.inf, np.inf])
                ends.sort()
            if kind != INTERVAL:
                ends = np.array([-np.inf, np.inf])
            kinds.append(kind)
            attribute.append(code)
            low.append(ends[0])
            high.append(ends[1])
        if random.random() < 0.9:
            x, y = (3.0, 4.0) if one_location else random.integers(0, domain, 2)
            size = random.integers(0, 4, 2)
            kinds.append(BOX)
            attribute.append(LOCATION_CODE)
            low.append(-np.inf)
            high.append(np.inf)
            pairs += [(x, x + size[0] + 1e-9), (y, y + size[1] + 1e-9)]
        starts.append(len(kinds))
    is_box = np.array(kinds) == BOX
    operand = np.where(is_box, 2 * (np.cumsum(is_box) - 1), 0)
    sides = np.array(pairs, float).reshape(-1, 2)
    return read_only_columns(
        SubscriptionColumns(
            alternative_start=np.arange(count + 1),
            predicate_start=np.array(starts),
            kind=np.array(kinds, np.uint8),
            attribute=np.array(attribute, np.int32),
            low=np.array(low),
            high=np.array(high),
            weight=np.ones(len(kinds)),
            operand_start=operand.astype(np.int32),
            operand_stop=(operand + 2 * is_box).astype(np.int32),
            pair_low=sides[:, 0],
            pair_high=sides[:, 1],
            string_hash=np.zeros(0, np.uint64),
            string_mark=np.zeros(0, np.uint8),
            string_start=np.zeros(1, np.int64),
            string_bytes=np.zeros(0, np.uint8),
            position=np.full(2 * count, np.nan),
            until=np.full(count, NEVER),
        )
    )


def drawn_events(random, count, *, domain, ranges=False):
    """Events with most attributes, of values on and just beside the bounds."""
    starts, attribute, low, high = [0], [], [], []
    for _ in range(count):
        codes = np.flatnonzero(random.random(ATTRIBUTES) < 0.8)
        value = random.integers(0, domain, len(codes)).astype(float)
        near = random.random(len(codes))
        value = np.where(near < 0.1, np.nextafter(value, np.inf), value)
        value = np.where(near > 0.9, np.nextafter(value, -np.inf), value)
        other = value + random.integers(0, 3, len(codes)) if ranges else value
        attribute += codes.tolist()
        low += value.tolist()
        high += other.tolist()
        if random.random() < 0.9:
            attribute.append(LOCATION_CODE)
            x, y = random.integers(0, domain, 2) + random.choice([0.0, 1e-9, -1e-9, 2e-9], 2)
            low.append(x)
            high.append(y)
        starts.append(len(attribute))
    none = np.zeros(count + 1, np.int64)
    return read_only_columns(
        EventColumns(
            value_start=np.array(starts),
            attribute=np.array(attribute, np.int32),
            low=np.array(low),
            high=np.array(high),
            string=np.full(len(low), NO_STRING, np.int32),
            string_hash=np.zeros(0, np.uint64),
            string_start=np.zeros(1, np.int64),
            string_bytes=np.zeros(0, np.uint8),
            term_start=none,
            term_hash=np.zeros(0, np.uint64),
            term_byte_start=np.zeros(0, np.int64),
            term_byte_stop=np.zeros(0, np.int64),
            term_bytes=np.zeros(0, np.uint8),
            weight_start=none,
            weight_attribute=np.zeros(0, np.int32),
            weight=np.zeros(0),
            until=np.full(count, NEVER),
            time=np.zeros(count, np.int64),
            seq=np.arange(count),
        )
    )


def every_row(columns, events):
    """The matches of each event, every pair verified."""
    table = SubscriptionTable()
    table.append(columns)
    rows = np.arange(len(columns.until))
    event = np.repeat(np.arange(event_count(events)), len(rows))
    all_pairs = Candidates(event, np.tile(rows, event_count(events)), np.zeros(0, np.uint8))
    return rows_by_event(verify(table.columns, table.validity, events, all_pairs))


WORLDS = {
    "few values": {"asked": 5, "domain": 4},
    "many values": {"asked": 4, "domain": 3000},
    "more attributes than a record holds": {"asked": 24, "domain": 8},
    "everything in one location": {"asked": 3, "domain": 10, "one_location": True},
    "boxes alone": {"asked": 0, "domain": 20},
}


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("ranges", [False, True])
def test_many_blocks_find_what_the_verifier_finds(name, ranges):
    random = np.random.default_rng(list(WORLDS).index(name))
    columns = drawn_columns(random, 2500, **WORLDS[name])
    events = drawn_events(random, 80, domain=WORLDS[name]["domain"], ranges=ranges)
    blocks = Blocks.build(columns, alternatives_of(columns))
    blocks.check(columns, alternatives_of(columns))
    expected = every_row(columns, events)
    assert matched(blocks, columns, events) == expected
    assert matched(Blocks.over(blocks.arrays()), columns, events) == expected
    event, _, covered = pairs_of(blocks, events)
    if name != "more attributes than a record holds" and len(event):
        assert covered.mean() > 0.2, "most are proved"


def test_what_is_removed_is_not_found():
    random = np.random.default_rng(5)
    columns = drawn_columns(random, 3000, asked=2, domain=9)
    events = drawn_events(random, 60, domain=9)
    blocks = Blocks.build(columns, np.arange(1000, 3000))
    gone = np.sort(random.choice(3000, 700, False))
    blocks.remove(gone)
    blocks.remove(gone[:10])
    kept = np.setdiff1d(np.arange(1000, 3000), gone)
    blocks.check(columns, kept)
    assert blocks.count == len(kept)
    is_kept = np.isin(np.arange(3000), kept)
    expected = [[row for row in rows if is_kept[row]] for rows in every_row(columns, events)]
    assert matched(blocks, columns, events) == expected


def test_an_event_that_all_want_grows_what_is_found():
    columns = take(encoded([Subscription("all", Truth(True))], SCHEMA), np.zeros(5000, np.int64))
    blocks = Blocks.build(columns, alternatives_of(columns))
    events = encode_events([TimedEvent(Event("e", {}))] * 3, SCHEMA)
    _, _, covered = pairs_of(blocks, events, capacity=100)
    assert len(covered) == 15_000
    assert covered.all()


def test_no_alternatives_match_nothing():
    columns = encoded([], SCHEMA)
    blocks = Blocks.build(columns, alternatives_of(columns))
    events = encode_events([TimedEvent(Event("e", {}))], SCHEMA)
    assert (
        pairs_of(blocks, events)[0].tolist() == pairs_of(blocks, events, one=True)[0].tolist() == []
    )
    blocks.remove(np.arange(3))
    blocks.check(columns, alternatives_of(columns))


def test_who_moves_is_found_where_they_are_or_handed_back():
    random = np.random.default_rng(6)
    around = ["ST_DWithin(loc, here(), 1500)", "ST_DWithin(loc, here(), 300) AND price > 1"]
    count, spread = 4000, 0.2
    given_at = random.uniform(0, spread, (count, 2))
    some = [
        Subscription(
            str(row), parse(around[row % 2], schema=SCHEMA), at=Point(*given_at[row].tolist())
        )
        for row in range(2)
    ]
    table = SubscriptionTable()
    table.append(take(encoded(some, SCHEMA), np.arange(count) % 2))
    table.move(np.arange(count), given_at)
    blocks = Blocks.build(table.columns, alternatives_of(table.columns))
    near, far = np.arange(0, 1000), np.arange(1000, 1040)
    given_at[near] += random.normal(0, 0.0005, (len(near), 2))
    given_at[far] = random.uniform(-80, 80, (len(far), 2))
    table.move(np.arange(count), given_at)
    every = np.arange(near[0], far[-1] + 1)
    placed = [blocks.move(table.columns, some) for some in (near, far)]
    back = np.setdiff1d(every, np.concatenate(placed))
    assert np.isin(far, back).all(), "in location they would stretch their blocks"
    assert len(back) < 300
    kept = np.setdiff1d(np.arange(count), back)
    blocks.check(table.columns, kept)
    assert blocks.count == len(kept)
    assert not len(blocks.move(table.columns, back)), "they are gone"
    points = random.uniform(0, spread, (60, 2)).tolist()
    events = [TimedEvent(Event("e", {"loc": Point(*at), "price": _number(2)})) for at in points]
    columns = encode_events(events, SCHEMA)
    is_kept = np.isin(np.arange(count), kept)
    expected = [[row for row in rows if is_kept[row]] for rows in every_row(table.columns, columns)]
    assert any(expected)
    assert matched(blocks, table.columns, columns) == expected


def _number(value):
    return Constant(Kind.NUMBER, float(value))
