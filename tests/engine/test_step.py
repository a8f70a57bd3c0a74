"""Many records at a time give what one record at a time gives, however they are cut."""

from itertools import pairwise

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stentor
from stentor.errors import RecordError, SettingsError, StentorError, UnknownIdError
from stentor.index.catalog import names
from stentor.model import Changes, Event
from stentor.model.record import Publish, Subscribe
from stentor.wire.records import record_to_dict
from stentor.wire.table_writers import events_to_table, subscriptions_to_table
from tests.support import grid, strategies
from tests.support.drawn_once import for_each
from tests.support.oracle import Oracle

PASSAGES = ("entered", "left")
on_every_index = for_each("index", names())


def engine_of(index="auto", **settings):
    return stentor.Engine(index, schema=grid.schema(), clock=None, **settings)


def comparable(answers):
    return [type(one) if isinstance(one, StentorError) else one for one in answers]


def oracle_answers(records, **asked):
    return comparable(Oracle(schema=grid.schema()).answers(records, **asked))


@st.composite
def cut_histories(draw):
    """A history, and the same in parts."""
    history = draw(strategies.histories(max_size=20, labelled=draw(st.booleans())))
    cuts = sorted(draw(st.lists(st.integers(0, len(history)), max_size=4)))
    edges = [0, *cuts, len(history)]
    return history, [history[start:stop] for start, stop in pairwise(edges)]


@given(cut=cut_histories(), event=strategies.events())
@on_every_index
def test_a_history_is_answered_the_same_however_it_is_cut(index, cut, event):
    history, parts = cut
    oracle = Oracle(schema=grid.schema())
    expected = comparable(oracle.answers(history))
    for engine, cuts in ((engine_of(index), parts), (engine_of(index, threads=2), [history])):
        assert comparable([one for part in cuts for one in engine.step(part)]) == expected
        assert list(engine) == list(oracle)
        assert len(engine) == len(oracle)
        assert engine.top(event, k=2) == oracle.top(event, 2)
        for id in oracle:
            assert engine.get(id).get("at") == (oracle[id].at and list(oracle[id].at))


@given(cut=cut_histories(), k=st.integers(1, 3))
@on_every_index
def test_with_top_an_event_is_for_its_best_only(index, cut, k):
    history, parts = cut
    engine = engine_of(index)
    answers = [one for part in parts for one in engine.step(part, top=k)]
    assert comparable(answers) == oracle_answers(history, top=k)


@given(strategies.histories())
def test_records_may_be_dicts(history):
    dicts = [record_to_dict(record) for record in history]
    assert comparable(engine_of().step(dicts)) == oracle_answers(history)


@given(strategies.histories())
def test_tables_of_a_report_say_what_its_answers_say(history):
    report = engine_of().step(history)
    answers = list(report)
    assert len(report) == len(answers) == len(history)
    assert report[-1] == answers[-1]
    assert report[:2] == answers[:2]
    matches = [
        {"record": record, "event": history[record].event.id, "subscription": id}
        for record, answer in enumerate(answers)
        if isinstance(answer, list)
        for id in answer
    ]
    by_record = sorted(report.matches.to_pylist(), key=lambda row: tuple(row.values()))
    assert by_record == sorted(matches, key=lambda row: tuple(row.values()))
    changes = [
        (record, change, other)
        for record, answer in enumerate(answers)
        for change in ("added", "removed", "entered", "left")
        for other in getattr(answer, change, ())
    ]
    told = [
        (row["record"], row["change"], row["subscription" if change in PASSAGES else "event"])
        for row in report.changes.to_pylist()
        if (change := row["change"])
    ]
    assert sorted(told) == sorted(changes)
    assert [record for record, _, _ in told] == sorted(record for record, _, _ in told)
    stayed = [
        (record, id)
        for record, answer in enumerate(answers)
        for id in getattr(answer, "stayed", ())
    ]
    rows = report.stayed.to_pylist()
    assert sorted((row["record"], row["subscription"]) for row in rows) == sorted(stayed)
    errors = [record for record, one in enumerate(answers) if isinstance(one, StentorError)]
    assert report.rejected.column("record").to_pylist() == errors
    assert f"{len(history)} records" in repr(report)
    assert report._repr_html_().startswith("<p>")


# Tables.

some_events = st.lists(strategies.events(until=True), max_size=8)
some_subscriptions = st.lists(strategies.subscriptions(until=True), max_size=6)


@given(subscriptions=some_subscriptions, events=some_events, later=some_subscriptions)
@on_every_index
def test_tables_are_answered_like_records(index, subscriptions, events, later):
    engine, oracle = engine_of(index), Oracle(schema=grid.schema())
    for batch in (subscriptions, later):
        answers = list(engine.subscribe_batch(subscriptions_to_table(batch)))
        assert comparable(answers) == comparable(oracle.answers(map(Subscribe, batch)))
        answers = list(engine.publish_batch(events_to_table(events, grid.schema())))
        assert comparable(answers) == comparable(oracle.answers(map(Publish, events)))
    assert list(engine) == list(oracle)


@given(some_subscriptions, some_events, st.integers(1, 3))
def test_the_best_of_a_table_are_those_of_its_events(subscriptions, events, k):
    engine, oracle = engine_of(), Oracle(schema=grid.schema())
    engine.subscribe_batch(subscriptions_to_table(subscriptions))
    oracle.answers(map(Subscribe, subscriptions))
    lasting = [Event(event.id, event.attributes, event.weights) for event in events]
    report = engine.publish_batch(events_to_table(lasting, grid.schema()), top=k)
    assert list(report) == oracle.answers(map(Publish, lasting), top=k)
    scores = [score for event in lasting for _, score in oracle.top(event, k)]
    assert report.matches.column("score").to_pylist() == scores


def test_pandas_frames_are_taken_like_tables():
    engine = stentor.Engine(clock=lambda: 0)
    asked = pd.DataFrame({"id": ["ana", "bo"], "expression": ["price < 300", "brand = 'x'"]})
    assert list(engine.subscribe_batch(asked)) == [Changes(), Changes()]
    events = pd.DataFrame({"id": ["e1", "e2"], "price": [299.0, None], "brand": ["x", "y"]})
    assert list(engine.publish_batch(events)) == [["ana", "bo"], []]
    assert list(engine.unsubscribe_batch(pd.DataFrame({"id": ["bo"]}))) == [Changes()]
    mixed = pd.DataFrame(
        {"op": ["publish", "unsubscribe"], "id": ["e3", "ana"], "price": [1, None]}
    )
    assert list(engine.step(mixed)) == [["ana"], Changes()]


def test_moves_and_ends_come_in_tables_too():
    engine = stentor.Engine(clock=lambda: 0)
    places = pa.table({"id": ["ana", "bo"], "at": [[0.0, 0.0], [1.0, 0.0]]})
    engine.subscribe_batch(places, "ST_DWithin(loc, here(), 1000)")
    engine.publish({"id": "e", "loc": [1, 0]}, until=10)
    moved = pa.table({"id": ["ana", "nobody", "bo"], "at": [[1.0, 0.0], [0.0, 0.0], [2.0, 0.0]]})
    report = engine.move_batch(moved)
    assert comparable(report) == [Changes(added=["e"]), UnknownIdError, Changes(removed=["e"])]
    report = engine.unsubscribe_batch(pa.table({"id": ["ana", "ana", "bo"]}))
    assert comparable(report) == [Changes(), UnknownIdError, Changes()]
    assert len(engine) == 0


# One expression with parameters.

WISHES = pa.table(
    {
        "id": ["a", "b", "c", "d"],
        "most": [1.0, 2.0, 2.0, None],
        "brand": ["x", "it's", "x", "x"],
        "word": ["red", "iPad", "red ipad", "red"],
        "far": [1000, 2000, 0, 5],
        "at": [[0.0, 0.0], [0.01, 0.0], [0.0, 0.0], [0.0, 0.0]],
    }
)
PARAMETRIC = (
    "weight(price <= :most, 2) AND brand = :brand AND has_any(text, :word) "
    "AND ST_DWithin(loc, here(), :far)"
)


def test_parameters_give_what_texts_give():
    by_parameters, by_texts = stentor.Engine(clock=None), stentor.Engine(clock=None)
    report = by_parameters.subscribe_batch(WISHES, PARAMETRIC)
    assert comparable(report) == [Changes(), Changes(), Changes(), comparable(report)[3]]
    assert isinstance(report[3], StentorError)
    for row in WISHES.to_pylist()[:3]:
        text = PARAMETRIC
        for name in ("most", "far"):
            text = text.replace(f":{name}", str(row[name]))
        for name in ("brand", "word"):
            text = text.replace(f":{name}", '"' + row[name] + '"')
        by_texts.subscribe(row["id"], text, at=row["at"])
        assert by_parameters.get(row["id"]) == by_texts.get(row["id"])
    for price in (0, 1, 2, 3):
        for brand in ("x", "it's"):
            event = {"id": "e", "price": price, "brand": brand, "text": "red ipad", "loc": [0, 0]}
            assert by_parameters.top(event) == by_texts.top(event)


def test_a_parameter_without_a_column_is_an_error():
    with pytest.raises(SettingsError, match="no column of that name"):
        stentor.Engine().subscribe_batch(pa.table({"id": ["a"]}), "price < :most")


# Bad records are data.


def test_a_bad_record_is_answered_with_its_error_and_stops_nothing():
    engine = stentor.Engine(clock=None)
    records = [
        {"op": "subscribe", "id": "ana", "expression": "price <"},
        {"op": "subscribe", "id": "bo", "expression": "price < 300"},
        {"op": "dance", "id": "bo"},
        {"op": "publish", "price": 1},
        {"op": "publish", "id": "e", "price": 1},
        {"op": "publish", "id": "f", "price": "free"},
        {"op": "move", "id": "bo", "at": [200, 0]},
        {"op": "subscribe", "id": "cy", "expression": "ST_DWithin(loc, here(), 5)"},
        42,
        {"op": "unsubscribe", "id": "bo"},
    ]
    report = engine.step(records)
    bad = [0, 2, 3, 5, 6, 7, 8]
    assert [number for number, one in enumerate(report) if isinstance(one, StentorError)] == bad
    assert report[4] == ["bo"]
    assert report.rejected.column("record").to_pylist() == bad
    assert len(engine) == 0


def test_bad_rows_of_a_table_are_answered_with_their_errors():
    engine = stentor.Engine(clock=None)
    table = pa.table(
        {
            "id": ["a", None, "c", "d", "a"],
            "expression": ["price < 1", "price < 1", "price <", None, "price < 2"],
        }
    )
    report = engine.subscribe_batch(table)
    assert comparable(report)[0] == comparable(report)[4] == Changes()
    assert all(isinstance(report[row], StentorError) for row in (1, 2, 3))
    assert list(engine) == ["a"]
    events = pa.table({"id": ["e", None, "f"], "price": [1.5, 1.5, float("nan")]})
    answers = list(engine.publish_batch(events))
    assert (answers[0], answers[2]) == (["a"], [])
    assert isinstance(answers[1], RecordError)


def test_what_is_no_table_is_refused():
    with pytest.raises(RecordError, match="expected an Arrow table"):
        stentor.Engine().publish_batch(7)
    with pytest.raises(RecordError, match="expression"):
        stentor.Engine().subscribe_batch(pa.table({"id": ["a"]}))


@pytest.mark.parametrize("nothing", [[], pa.table({"op": pa.array([], pa.string())})])
def test_a_step_of_nothing_reports_nothing(nothing):
    engine = stentor.Engine()
    report = engine.step(nothing)
    assert list(report) == []
    assert report.matches.num_rows == report.changes.num_rows == report.rejected.num_rows == 0
