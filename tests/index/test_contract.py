"""What every index of the catalogue answers, in place, layered and opened from a folder."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import currently_in_test_context, given, note
from hypothesis import strategies as st

from stentor.encoding.columns import EventColumns, SubscriptionColumns, empty
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.ragged import take
from stentor.errors import ReadOnlyError
from stentor.index.catalog import index_class, names, structure_of
from stentor.index.structure import Structure
from stentor.model import Event, Point, Subscription, Truth
from stentor.model.values.time import NEVER
from tests.support import grid, strategies
from tests.support.drawn_once import folder_in_memory, for_each
from tests.support.slow_index import SlowIndex, encoded, rows_by_event, scores_by_event

SCHEMA = grid.schema()
NO_ATTRIBUTES = TimedEvent(Event("e", {}))
some_subscriptions = st.lists(strategies.subscriptions(until=True, max_predicates=4), max_size=5)
#: Sizes around those of blocks.
sizes = st.sampled_from([0, 1, 7, 63, 64, 65, 129, 1025])


@st.composite
def arrivals(draw, max_size=4):
    """Events in an order of records that began some time ago."""
    time, events = 0, []
    for event in draw(st.lists(strategies.events(until=True), max_size=max_size)):
        time += draw(st.sampled_from([0, strategies.SECOND, 4 * strategies.SECOND]))
        events.append(TimedEvent(event, time, seq=10 + len(events)))
    return events


def columns_of(subscriptions):
    return encoded(subscriptions, SCHEMA)


def events_of(some):
    return encode_events(some, SCHEMA)


def rows_of(some):
    return np.array(sorted(some), np.int64)


def some_of(rows, data):
    """Some of *rows*, ascending."""
    return [row for row in rows if data.draw(st.booleans())]


def built(name, columns):
    return index_class(name).build(columns)


def grown(name, columns):
    """Filled row by row, where *built* is filled at once."""
    index = index_class(name)()
    for row in range(len(columns.until)):
        assert index.insert(take(columns, np.array([row]))) == row
    return index


def opened(name, columns):
    """Saved and opened again."""
    kind = index_class(name)
    with folder_in_memory() as folder:
        structure_of(kind).build(columns).save(Path(folder, "index"))
        return kind.open(Path(folder, "index"), columns)


#: A packed index without its small sizes: everything is in homes at once, or merged all the time.
SMALL = ["packed pending=0", "packed pending=2 foreground=8", "packed pending=0 home=nodes"]
NAMES = [*names(), *SMALL]
every_index = pytest.mark.parametrize("name", NAMES)
on_every_index = for_each("name", NAMES)


def each(name, subscriptions, *, changing=False):
    """The index *name* of *subscriptions*, come about in every way, and what it must answer.

    With *changing*, not in the way in which it can only be read.
    """
    columns = columns_of(subscriptions)
    for start in (built, grown, opened):
        if start is opened and changing and issubclass(index_class(name), Structure):
            continue
        if currently_in_test_context():
            note(start.__name__)
        yield start(name, columns), SlowIndex(subscriptions)


def agree(index, slow, some):
    """Assert that *index* says of *some* arrivals what *slow* says, in every way of asking."""
    index.check()
    events, expected = events_of(some), slow.match(some)
    assert rows_by_event(index.match(events)) == expected
    assert rows_by_event(index.match(events, threads=2)) == expected
    assert scores_by_event(index.top(events, 2)) == slow.top(some, 2)
    assert index.current_rows().tolist() == list(slow.standing())


@given(subscriptions=some_subscriptions, some=arrivals())
@on_every_index
def test_matches_are_those_of_evaluate(name, subscriptions, some):
    for index, slow in each(name, subscriptions):
        agree(index, slow, some)


@given(subscriptions=some_subscriptions, size=sizes, some=arrivals(), data=st.data())
@on_every_index
def test_many_rows_are_matched_like_few(name, subscriptions, size, some, data):
    if not subscriptions:
        size = 0
    turn = np.resize(np.arange(len(subscriptions)), size).astype(np.int64)
    index = built(name, take(columns_of(subscriptions), turn))
    gone = data.draw(st.sets(st.integers(0, size - 1), max_size=5)) if size else set()
    index.remove(rows_of(gone))
    few = SlowIndex(subscriptions)
    rows = [
        [row for row in range(size) if row % len(subscriptions) in wanted and row not in gone]
        for wanted in few.match(some)
    ]
    for threads in (1, 2):
        assert rows_by_event(index.match(events_of(some), threads=threads)) == rows
        scored = scores_by_event(index.top(events_of(some), max(size, 1), threads=threads))
        assert [[row for row, _ in of_event] for of_event in scored] == rows
        for of_event, best in zip(scored, few.top(some, max(len(subscriptions), 1)), strict=True):
            scores = dict(best)
            assert all(score == scores[row % len(subscriptions)] for row, score in of_event)


@given(subscriptions=some_subscriptions, some=arrivals(), k=st.integers(1, 7))
@on_every_index
def test_top_gives_the_k_best_and_all_that_tie_with_the_last(name, subscriptions, some, k):
    twice = [*subscriptions, *subscriptions]
    index, slow = built(name, columns_of(twice)), SlowIndex(twice)
    for threads in (1, 2):
        found = index.top(events_of(some), k, threads=threads)
        assert scores_by_event(found) == slow.top(some, k)


@given(subscriptions=some_subscriptions, later=some_subscriptions, some=arrivals(), data=st.data())
@on_every_index
def test_rows_come_and_go(name, subscriptions, later, some, data):
    count = len(subscriptions) + len(later)
    gone = some_of(range(count), data)
    for index, slow in each(name, subscriptions, changing=True):
        assert index.insert(columns_of(later)) == slow.insert(later) == len(subscriptions)
        assert index.count == count
        slow.remove(gone)
        for _ in range(2):  # removing what is removed changes nothing
            index.remove(rows_of(gone))
        agree(index, slow, some)
        assert [row for row in range(count) if not index.is_current(row)] == gone


@given(subscriptions=some_subscriptions, some=arrivals(), data=st.data())
@on_every_index
def test_a_row_holds_for_the_records_of_its_span_only(name, subscriptions, some, data):
    since = [data.draw(st.integers(8, 16)) for _ in subscriptions]
    ending = some_of(range(2 * len(subscriptions)), data)
    seq = data.draw(st.integers(9, 16))
    for index, slow in each(name, subscriptions, changing=True):
        for one, began in zip(subscriptions, since, strict=True):
            index.insert(columns_of([one]), began)
            slow.insert([one], began)
        index.close(rows_of(ending), np.full(len(ending), seq))
        slow.close(ending, seq)
        agree(index, slow, some)


@given(subscriptions=some_subscriptions, some=arrivals(), data=st.data())
@on_every_index
def test_a_row_that_moves_keeps_its_number_and_takes_its_circles_along(
    name, subscriptions, some, data
):
    moving, gone = (some_of(range(len(subscriptions)), data) for _ in range(2))
    places = [data.draw(strategies.points()) for _ in moving]
    for index, slow in each(name, subscriptions, changing=True):
        index.remove(rows_of(gone))
        slow.remove(gone)
        index.move(rows_of(moving), np.array(places, np.float64).reshape(-1, 2))
        slow.move(moving, places)
        agree(index, slow, some)
        assert {row: index.position(row) for row in slow.standing()} == {
            row: one.at for row, one in slow.standing().items()
        }


@given(subscriptions=some_subscriptions, live=arrivals(), more=arrivals(), data=st.data())
@on_every_index
def test_live_events_are_matched_backwards(name, subscriptions, live, more, data):
    count = len(live) + len(more)
    gone = some_of(range(count), data)
    for index, slow in each(name, subscriptions):
        for some in (live, more):
            events = [arrival.event for arrival in some]
            assert index.hold(events_of(some)) == slow.hold(events)
        assert index.live.count == count
        index.drop(rows_of(gone))
        slow.drop(gone)
        index.check()
        found = index.match_live(columns_of(subscriptions))
        assert rows_by_event(found) == slow.match_live(subscriptions)
        assert index.live.current_rows().tolist() == list(slow.live())


@given(subscriptions=some_subscriptions, some=arrivals(), data=st.data())
@on_every_index
def test_what_stands_can_be_built_anew(name, subscriptions, some, data):
    gone = some_of(range(len(subscriptions)), data)
    kept = [one for row, one in enumerate(subscriptions) if row not in gone]
    for index, _ in each(name, subscriptions):
        index.remove(rows_of(gone))
        again = built(name, index.columns_of(index.current_rows()))
        agree(again, SlowIndex(kept), some)
        untils = [NEVER if one.until is None else one.until for one in kept]
        assert index.until(index.current_rows()).tolist() == untils
        assert [again.position(row) for row in range(len(kept))] == [one.at for one in kept]


@every_index
def test_an_index_of_nothing_answers_with_nothing(name):
    nothing, one = empty(EventColumns), events_of([NO_ATTRIBUTES])
    for index, _ in each(name, []):
        index.check()
        assert index.count == len(index.current_rows()) == 0
        assert rows_by_event(index.match(nothing)) == []
        assert rows_by_event(index.match_live(empty(SubscriptionColumns))) == []
        assert rows_by_event(index.match(one, threads=2)) == [[]]
        assert scores_by_event(index.top(one, 3)) == [[]]
        assert scores_by_event(index.top(nothing, 3)) == []


@every_index
def test_true_wants_every_event_and_false_none(name):
    everything, nothing = Subscription("a", Truth(True)), Subscription("b", Truth(False))
    for index, _ in each(name, [everything, nothing]):
        assert rows_by_event(index.match(events_of([NO_ATTRIBUTES] * 3))) == [[0]] * 3


@every_index
def test_an_opened_structure_is_read_only_and_says_what_to_do(name):
    index = opened(name, columns_of([Subscription("a", Truth(True))]))
    if not isinstance(index, Structure):
        assert index.insert(columns_of([Subscription("b", Truth(True))])) == 1
        return
    with pytest.raises(ReadOnlyError, match="layered"):
        index.insert(columns_of([Subscription("b", Truth(True))]))
    with pytest.raises(ReadOnlyError, match="layered"):
        index.move(rows_of([0]), np.array([Point(0.0, 0.0)]))
    with pytest.raises(ReadOnlyError, match="layered"):
        index.close(rows_of([0]), np.array([1]))


@every_index
def test_stats_count_what_stands(name):
    index = built(name, columns_of([Subscription(id, Truth(True)) for id in "abc"]))
    index.remove(rows_of([1]))
    index.hold(events_of([NO_ATTRIBUTES]))
    stats = index.stats()
    assert (stats["index"], stats["subscriptions"], stats["live events"]) == (name, 2, 1)
    assert stats["bytes"] > 0
