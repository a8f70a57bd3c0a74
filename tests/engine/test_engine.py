"""The engine record by record, against the oracle and by hand."""

import math
import warnings
from dataclasses import replace
from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stentor
from stentor.engine import state as engine_state
from stentor.errors import (
    AlreadyOverError,
    DuplicateEventError,
    ExpressionError,
    NeverMatchesWarning,
    RecordError,
    SettingsError,
    StentorError,
    TypeConflictError,
    UnknownAttributeError,
    UnknownIdError,
)
from stentor.index.catalog import names
from stentor.language.evaluate import evaluate
from stentor.language.parser import parse
from stentor.language.printer import to_text
from stentor.model import Changes, Constant, EventChanges, Range, Schema
from stentor.model.record import Move, Publish, Subscribe, Unsubscribe, Update, Withdraw
from stentor.model.values.time import FOR_GOOD
from stentor.wire.events import event_from_dict
from tests.support import grid, strategies
from tests.support.drawn_once import for_each
from tests.support.oracle import Oracle

every_index = pytest.mark.parametrize("index", names())
on_every_index = for_each("index", names())
NOW = 100.0


def engine_at(now=NOW, **settings):
    """An engine whose clock stands still."""
    return stentor.Engine(clock=lambda: now, **settings)


def seconds(micros):
    return None if micros is None else micros / strategies.SECOND


def fed(engine, record):
    """What *engine* answers to *record*, through its own method for it."""
    try:
        match record:
            case Publish(event, time):
                return engine.publish(event, time=seconds(time))
            case Update(event, time):
                return engine.update(event, time=seconds(time))
            case Withdraw(id, time):
                return EventChanges(left=engine.withdraw(id, time=seconds(time)))
            case Unsubscribe(id, time):
                return engine.unsubscribe(id, time=seconds(time)) or Changes()
            case Move(id, at, time):
                return engine.move(id, at, time=seconds(time))
            case Subscribe(one, time):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", NeverMatchesWarning)
                    return engine.subscribe(
                        one.id,
                        one.expression,
                        owner=one.owner,
                        labels=one.labels,
                        at=one.at,
                        until=seconds(one.until),
                        time=seconds(time),
                    )
    except StentorError as error:
        return error


def is_point_like(value):
    """Whether *value* is a range that holds one number: the same as that number."""
    return isinstance(value, Range) and value.low == value.high


def comparable(answer):
    return type(answer) if isinstance(answer, StentorError) else answer


# Against the oracle.


@given(history=strategies.histories(labelled=True), event=strategies.events())
@on_every_index
def test_every_record_is_answered_as_the_oracle_does(index, history, event):
    engine = stentor.Engine(index, schema=grid.schema(), clock=None)
    oracle = Oracle(schema=grid.schema())
    for record in history:
        expected = oracle.answer(record)
        assert comparable(fed(engine, record)) == comparable(expected)
        assert len(engine) == len(oracle)
        assert list(engine) == list(oracle)
        assert engine.live() == sorted(oracle.live)
    for id, live in oracle.live.items():
        told = None if live.until == FOR_GOOD else live.until
        values = {
            name: Constant(one.kind, one.low) if is_point_like(one) else one
            for name, one in live.attributes.items()
        }
        shown = event_from_dict(engine.event(id), grid.schema())
        assert shown == replace(live, attributes=values, until=told)
    assert engine.top(event, k=2) == oracle.top(event, 2)
    for id in grid.SUBSCRIBER_IDS:
        assert (id in engine) == (id in oracle)
        if id in oracle:
            one = oracle[id]
            shown = engine.get(id)
            assert parse(shown["expression"]) == one.expression
            assert shown.get("at") == (None if one.at is None else list(one.at))
            assert (shown.get("owner"), shown.get("labels", {})) == (one.owner, one.labels)
            explanation = engine.explain(id, event)
            truth, score = evaluate(one.expression, event, here=one.at)
            assert (explanation.matches, explanation.score) == (truth is True, score)
            assert str(explanation)
            assert explanation._repr_html_()


@given(strategies.histories())
def test_a_schema_that_is_learned_changes_no_answer(history):
    learning, declared = stentor.Engine(clock=None), Oracle(schema=grid.schema())
    for record in history:
        assert comparable(fed(learning, record)) == comparable(declared.answer(record))


@given(strategies.histories(), st.integers(1, 3))
def test_rebuilding_keeps_everything(history, limit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_state, "MIN_DEAD_ROWS", limit)
        engine = stentor.Engine(schema=grid.schema(), clock=None)
        oracle = Oracle(schema=grid.schema())
        for record in history:
            assert comparable(fed(engine, record)) == comparable(oracle.answer(record))
            assert list(engine) == list(oracle)


@every_index
def test_events_that_expire_leave_the_subscriptions_alone(index, monkeypatch):
    """No index is built, no subscription touched, and rows of events are given back."""
    monkeypatch.setattr(engine_state, "MIN_DEAD_ROWS", 8)
    engine, patient = (stentor.Engine(index=index, clock=None) for _ in range(2))
    both = (engine, patient)
    for one in both:
        for n in range(30):
            circle = "ST_DWithin(loc, here(), 1000)"
            text = f"has_any(text, 'w{n % 5}', 'w7') AND price > {n % 3} AND {circle}"
            one.subscribe(f"s{n}", text, at=(10, 50 + n / 1000), time=0)
    standing = engine._state.index
    building = type(standing).build
    monkeypatch.setattr(type(standing), "build", None)
    for n in range(200):
        event = {"id": f"e{n % 50}", "text": f"w{n % 9}", "price": n % 4, "loc": [10, 50.01]}
        until = n + (40 if n % 10 == 0 else 1 + n % 7)
        monkeypatch.setattr(engine_state, "MIN_DEAD_ROWS", 8)
        answer = engine.publish(event, until=until, time=n)
        assert engine._state.index.live.count <= 2 * (len(engine._state.events) + 8) + 1
        monkeypatch.setattr(engine_state, "MIN_DEAD_ROWS", 1 << 30)
        assert answer == patient.publish(event, until=until, time=n)
        if n % 5 == 0:
            at = (10, 50 + n % 12 / 1000)
            assert engine.move(f"s{n % 30}", at) == patient.move(f"s{n % 30}", at)
            assert engine.safe_region(f"s{n % 30}") == patient.safe_region(f"s{n % 30}")
    assert engine._state.index is standing
    assert patient._state.index.live.count > 4 * engine._state.index.live.count
    monkeypatch.setattr(type(standing), "build", building)
    standing.check()


def test_thousands_of_rows_that_are_gone_make_room():
    engine = engine_at()
    engine.publish({"id": "e", "a": 1}, until=NOW + 10)
    many = range(engine_state.MIN_DEAD_ROWS + 3)
    engine.step({"op": "subscribe", "id": n, "expression": f"a = {n}"} for n in many)
    engine.subscribe("late", "a >= 0")
    engine.step({"op": "unsubscribe", "id": n} for n in many[2:])
    assert engine._state.index.count == len(engine) == 3
    assert list(engine) == ["0", "1", "late"]
    assert engine.publish({"id": "f", "a": 1}) == ["1", "late"]
    assert engine.subscribe("later", "a = 1") == Changes(added=["e"])
    assert engine.get("1")["expression"] == "a = 1"


# Reports, by hand.


def test_publishing_reports_everyone_who_wants_it_sorted():
    engine = engine_at()
    for id in ("b", "c", "a", "ä", "B"):
        engine.subscribe(id, "price < 300")
    assert engine.publish({"id": "e", "price": 299}) == ["B", "a", "b", "c", "ä"]
    assert engine.publish({"id": "e", "price": 300}) == []


def test_a_new_subscription_reports_the_live_events_that_it_wants():
    engine = engine_at()
    engine.publish({"id": "live", "price": 1}, until=NOW + 5)
    engine.publish({"id": "gone", "price": 1})
    assert engine.subscribe("ana", "price = 1") == Changes(added=["live"], removed=[])


def test_a_replaced_subscription_reports_the_difference():
    engine = engine_at()
    for price in (1, 2, 3):
        engine.publish({"id": f"e{price}", "price": price}, until=NOW + 5)
    engine.subscribe("ana", "price <= 2")
    assert engine.subscribe("ana", "price >= 2") == Changes(added=["e3"], removed=["e1"])
    assert engine.subscribe("ana", "price >= 2 AND price >= 1") == Changes()
    assert len(engine) == 1


def test_a_move_reports_the_difference_and_coming_back_reports_again():
    engine = engine_at()
    engine.publish({"id": "west", "loc": [0, 0]}, until=NOW + 5)
    engine.publish({"id": "east", "loc": [1, 0]}, until=NOW + 5)
    engine.subscribe("ana", "ST_DWithin(loc, here(), 1000)", at=(0, 0))
    assert engine.move("ana", (1, 0)) == Changes(added=["east"], removed=["west"])
    assert engine.move("ana", (0, 0)) == Changes(added=["west"], removed=["east"])
    assert engine.get("ana")["at"] == [0.0, 0.0]


def test_unsubscribing_reports_nothing():
    engine = engine_at()
    engine.publish({"id": "e", "price": 1}, until=NOW + 5)
    engine.subscribe("ana", "price = 1")
    assert engine.unsubscribe("ana") is None
    assert engine.publish({"id": "f", "price": 1}) == []
    assert engine.subscribe("ana", "price = 1") == Changes(added=["e"])


def test_an_event_is_over_at_the_very_instant_of_its_until():
    engine = stentor.Engine(clock=None)
    engine.publish({"id": "e", "price": 1}, until=10, time=0)
    assert engine.subscribe("before", "price = 1", time=9.999999) == Changes(added=["e"])
    assert engine.subscribe("after", "price = 1", time=10) == Changes()
    assert engine.publish({"id": "e", "price": 1}, time=10) == ["after", "before"]


def test_a_subscription_is_over_at_the_very_instant_of_its_until():
    engine = stentor.Engine(clock=None)
    engine.subscribe("ana", "price = 1", until=10, time=0)
    assert engine.publish({"id": "e1", "price": 1}, time=9.999999) == ["ana"]
    assert "ana" in engine
    assert engine.publish({"id": "e2", "price": 1}, time=10) == []
    assert "ana" not in engine
    assert len(engine) == 0
    assert list(engine) == []


def test_what_is_over_is_taken_out_little_by_little():
    engine = stentor.Engine(clock=None)
    ending = [{"op": "subscribe", "id": n, "expression": "a = 1", "until": 10} for n in range(20)]
    ending += [{"op": "publish", "id": n, "until": 10} for n in range(20)]
    engine.step(ending)
    assert (engine.stats()["subscriptions"], engine.stats()["live events"]) == (20, 20)
    engine.publish({"id": "e"}, time=10)
    left = engine.stats()["subscriptions"]
    assert 0 < left < 20
    for _ in range(20):
        engine.publish({"id": "e"})
    assert (engine.stats()["subscriptions"], engine.stats()["live events"]) == (0, 0)


def test_logical_time_is_the_largest_seen_so_far():
    engine = stentor.Engine(clock=None)
    engine.subscribe("ana", "price = 1", until=10, time=0)
    engine.publish({"id": "e1", "price": 1}, time=20)
    assert engine.publish({"id": "e2", "price": 1}, time=5) == []


def test_a_moved_subscription_keeps_its_end():
    engine = stentor.Engine(clock=None)
    engine.subscribe("ana", "price = 1", until=10, time=0)
    engine.move("ana", (1, 1), time=1)
    assert engine.get("ana")["until"] == "1970-01-01T00:00:10+00:00"
    assert engine.publish({"id": "e", "price": 1}, time=10) == []


# Answers to what cannot be.


def test_an_unknown_id_is_a_clear_error():
    engine = engine_at()
    for call in (
        lambda: engine.unsubscribe("bo"),
        lambda: engine.move("bo", (0, 0)),
        lambda: engine.get("bo"),
        lambda: engine.explain("bo", {"id": "e"}),
    ):
        with pytest.raises(UnknownIdError, match="no subscription has the id 'bo'") as caught:
            call()
        assert caught.value.id == "bo"
        assert isinstance(caught.value, KeyError)


def test_what_is_over_is_unknown():
    engine = stentor.Engine(clock=None)
    engine.subscribe("ana", "price = 1", until=10, time=0)
    with pytest.raises(UnknownIdError):
        engine.move("ana", (0, 0), time=10)
    with pytest.raises(UnknownIdError):
        engine.unsubscribe("ana")


def test_the_id_of_a_live_event_cannot_be_published_again():
    engine = engine_at()
    engine.publish({"id": "e"}, until=NOW + 5)
    with pytest.raises(DuplicateEventError, match="'e' is live until"):
        engine.publish({"id": "e"})
    engine.publish({"id": "f"})
    engine.publish({"id": "f"})


def test_what_is_already_over_is_refused_and_changes_nothing():
    engine = engine_at()
    engine.subscribe("ana", "price = 1")
    with pytest.raises(AlreadyOverError, match="'e' was over"):
        engine.publish({"id": "e"}, until=NOW)
    with pytest.raises(AlreadyOverError, match="'ana' was over"):
        engine.subscribe("ana", "price = 2", until=NOW - 1)
    assert engine.publish({"id": "e", "price": 1}) == ["ana"]


def test_here_needs_a_position():
    with pytest.raises(RecordError, match="needs a position"):
        engine_at().subscribe("ana", "ST_DWithin(loc, here(), 1000)")


def test_a_contradiction_is_told_and_stands():
    engine = engine_at()
    with pytest.warns(NeverMatchesWarning, match="'ana' can never match"):
        engine.subscribe("ana", "price < 1 AND price > 2")
    assert "ana" in engine
    assert engine.publish({"id": "e", "price": 1}) == []
    assert "no event at all" in str(engine.explain("ana", {"id": "e", "price": 1}))


def test_a_type_conflict_names_both_uses_and_leaves_no_trace():
    engine = engine_at()
    engine.subscribe("ana", "price < 300")
    with pytest.raises(TypeConflictError, match=r"price.*string.*'e'.*number.*'ana'"):
        engine.publish({"id": "e", "price": "cheap", "new": 1})
    with pytest.raises(TypeConflictError):
        engine.subscribe("bo", "price = 'cheap' AND new = 'x'")
    assert "bo" not in engine
    assert engine.subscribe("bo", "new = 1") == Changes()


def test_a_declared_schema_knows_its_names():
    engine = engine_at(schema={"temperature": "number"})
    with pytest.raises(UnknownAttributeError, match="did you mean 'temperature'"):
        engine.subscribe("ana", "temprature > 30")
    engine.subscribe("ana", "temperature > 30")
    assert engine.publish({"id": "e", "temperature": 31, "wind": "unread"}) == ["ana"]


@pytest.mark.parametrize("text", ["price <", "", "price < 300 AND", "nonsense(1)"])
def test_a_bad_expression_changes_nothing(text):
    engine = engine_at()
    engine.subscribe("ana", "price = 1")
    with pytest.raises(ExpressionError):
        engine.subscribe("ana", text)
    assert engine.publish({"id": "e", "price": 1}) == ["ana"]


@pytest.mark.parametrize("bad", [None, "", 1.5, ["a"], "x" * 513])
def test_an_id_is_a_short_text_or_an_integer(bad):
    engine = engine_at()
    with pytest.raises(RecordError, match="id"):
        engine.subscribe(bad, "price = 1")
    with pytest.raises(RecordError, match="id"):
        engine.publish({"id": bad})


def test_settings_that_cannot_be_are_refused():
    engine = engine_at()
    with pytest.raises(SettingsError, match="k is 0"):
        engine.top({"id": "e"}, k=0)
    with pytest.raises(SettingsError, match="top is 0"):
        engine.step([], top=0)
    with pytest.raises(SettingsError, match="no index 'scam'; did you mean 'scan'"):
        stentor.Engine("scam")
    with pytest.raises(SettingsError, match="where to"):
        engine.move("ana", None)


# Time.


def test_the_clock_is_asked_only_for_records_without_a_time():
    asked = []
    engine = stentor.Engine(clock=lambda: asked.append(1) or NOW)
    engine.subscribe("ana", "price = 1", time=1)
    engine.publish({"id": "e", "price": 1}, time=2)
    assert not asked
    engine.publish({"id": "f", "price": 1})
    assert len(asked) == 1


def test_the_same_clock_gives_the_same_answers():
    def run():
        ticks = iter(range(100))
        engine = stentor.Engine(clock=lambda: next(ticks))
        answers = [engine.subscribe("ana", "price = 1", until=3)]
        answers += [engine.publish({"id": f"e{n}", "price": 1}, until=n + 3) for n in range(4)]
        return [*answers, engine.subscribe("bo", "price = 1")]

    assert run() == run()
    assert run() == [Changes(), ["ana"], ["ana"], [], [], Changes(added=["e3"])]


def test_the_clock_lets_subscriptions_end_without_any_record():
    now = [0.0]
    engine = stentor.Engine(clock=lambda: now[0])
    engine.subscribe("ana", "price = 1", until=10)
    assert len(engine) == 1
    now[0] = 10.0
    assert len(engine) == 0
    assert "ana" not in engine
    assert engine.top({"id": "e", "price": 1}) == []


FAR = ("2200-01-01", "9999-12-31T23:59:59Z")


def comes_at(engine, way, time):
    """Let a record come at *time*, or raise why it cannot."""
    match way:
        case "publish":
            return engine.publish({"id": "x", "a": 1}, time=time)
        case "move":
            return engine.move("ana", (1, 1), time=time)
        case "step":
            record = {"op": "subscribe", "id": "x", "expression": "a = 1", "time": time}
            report = engine.step([record])
        case "publish_batch":
            report = engine.publish_batch(pa.table({"id": ["x"], "a": [1], "time": [time]}))
        case "subscribe_batch":
            rows = pa.table({"id": ["x"], "expression": ["a = 1"], "time": [time]})
            report = engine.subscribe_batch(rows)
    raise report[0]


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("now", [lambda: 1.8e9, None])
@pytest.mark.parametrize("way", ["publish", "step", "publish_batch", "subscribe_batch", "move"])
def test_a_record_dated_far_ahead_is_refused_and_ends_nothing(far, now, way):
    engine = stentor.Engine(clock=now)
    engine.subscribe("ana", "a = 1", at=(0, 0), until=1.9e9, time=1.8e9)
    engine.publish({"id": "live", "a": 1}, until=1.9e9)
    with pytest.raises(RecordError, match=r"time: .* ahead of .*most_ahead"):
        comes_at(engine, way, far)
    assert engine.publish({"id": "e", "a": 1}) == ["ana"]
    assert engine.subscribe("bo", "a = 1") == Changes(added=["live"])
    assert list(engine) == ["ana", "bo"]


def test_how_far_ahead_a_record_may_be_is_a_setting():
    hour = timedelta(hours=1)
    for clock, start in ((lambda: 1e9, None), (None, 1e9)):
        engine = stentor.Engine(clock=clock, most_ahead=hour)
        engine.subscribe("ana", "a = 1", time=start)
        engine.publish({"id": "in", "a": 1}, time=1e9 + 3_600)
        with pytest.raises(RecordError, match="ahead"):
            engine.publish({"id": "out", "a": 1}, time=1e9 + 7_200.1)
        free = stentor.Engine(clock=clock, most_ahead=None)
        free.publish({"id": "in", "a": 1}, time=FAR[1])
    for wrong in (-hour, 3, "never", float("nan"), True):
        with pytest.raises(SettingsError, match="most_ahead"):
            stentor.Engine(most_ahead=wrong)


def test_records_cannot_lead_one_another_away_from_the_clock():
    engine = stentor.Engine(clock=lambda: 1e9)
    engine.publish({"id": "a"}, time=1e9 + 80_000)
    with pytest.raises(RecordError, match="ahead of the clock"):
        engine.publish({"id": "b"}, time=1e9 + 160_000)


starts = st.one_of(st.none(), st.integers(0, 19).map(lambda n: n * 86_400))
days = st.one_of(st.none(), st.integers(0, 40).map(lambda n: n * 86_400))


@given(
    times=st.lists(days, max_size=12), most=st.integers(0, 5), start=starts, has_clock=st.booleans()
)
def test_a_table_refuses_what_is_too_far_ahead_as_one_by_one(times, most, start, has_clock):
    def engine():
        clock = (lambda: start or 0) if has_clock else None
        one = stentor.Engine(clock=clock, most_ahead=timedelta(days=most))
        one.subscribe("ana", "TRUE", time=start)
        one.subscribe("bo", "TRUE", until=20 * 86_400)
        return one

    events = [{"id": f"e{n}", "time": time} for n, time in enumerate(times)]
    single, whole, table = engine(), engine(), engine()
    expected = [repr(single.step([{"op": "publish", **event}])[0]) for event in events]
    assert [
        repr(a) for a in whole.step([{"op": "publish", **event} for event in events])
    ] == expected
    columns = pa.table({name: [e[name] for e in events] for name in ("id", "time")})
    columns = columns.cast(pa.schema({"id": pa.string(), "time": pa.int64()}))
    assert [repr(a) for a in table.publish_batch(columns)] == expected
    assert list(single) == list(whole) == list(table)


@pytest.mark.parametrize("reading", [float("nan"), float("inf"), 1e300, "12", None, [1.0]])
def test_a_clock_that_gives_no_time_is_an_error_that_says_so(reading):
    engine = stentor.Engine(clock=lambda: reading)
    for use in (
        lambda: engine.publish({"id": "e"}),
        lambda: len(engine),
        lambda: engine.subscribe("a", "TRUE"),
    ):
        with pytest.raises(SettingsError, match="the clock gave"):
            use()


@pytest.mark.parametrize(
    "until", [200, 200.0, "1970-01-01T00:03:20Z", datetime(1970, 1, 1, 0, 3, 20)]
)
def test_instants_are_seconds_texts_or_datetimes(until):
    engine = engine_at()
    engine.subscribe("ana", "price = 1", until=until)
    assert engine.get("ana")["until"] == "1970-01-01T00:03:20+00:00"


# Questions.


def test_top_gives_the_best_first_and_equal_ones_by_id():
    engine = engine_at()
    engine.subscribe("c", "price < 300")
    engine.subscribe("b", "weight(price < 300, 2)")
    engine.subscribe("a", "price < 300 AND weight(stock > 0, 0)")
    engine.subscribe("d", "price > 300")
    event = {"id": "e", "price": 1, "stock": 1, "weights": {"price": 0.5}}
    assert engine.top(event, k=2) == [("b", 1.0), ("a", 0.5)]
    assert engine.top(event) == [("b", 1.0), ("a", 0.5), ("c", 0.5)]
    assert engine.step([event | {"op": "publish"}], top=2)[0] == ["b", "a"]


def test_an_explanation_shows_each_predicate():
    engine = engine_at()
    engine.subscribe("ana", "price < 300 AND brand = 'x' AND stock > 1")
    explanation = engine.explain("ana", {"id": "e", "price": 299, "brand": "y"})
    assert not explanation
    shown = str(explanation).splitlines()
    assert shown[0].startswith("ana does not want e")
    assert [line.split()[0] for line in shown[1:]] == ["✓", "✗", "?"]
    assert str(engine.explain("ana", {"id": "e", "price": 1, "brand": "x", "stock": 2})).startswith(
        "ana wants e, score 3"
    )


def test_get_gives_what_subscribe_takes():
    engine, other = engine_at(), engine_at()
    text = "price < 300 AND (brand = 'x' OR NOT has_any(text, 'red ipad'))"
    engine.subscribe("ana", text, at=(1, 2), until=200)
    shown = engine.get("ana")
    assert shown == {
        "id": "ana",
        "expression": to_text(parse(text)),
        "at": [1.0, 2.0],
        "until": "1970-01-01T00:03:20+00:00",
    }
    other.subscribe(**shown)
    assert other.get("ana") == shown


def test_stats_and_notebook_forms_show_what_is_there():
    engine = engine_at()
    engine.subscribe("<ana>", "price < 300")
    engine.publish({"id": "e", "price": 1}, until=NOW + 5)
    stats = engine.stats()
    assert (stats["subscriptions"], stats["live events"], stats["records"]) == (1, 1, 2)
    assert repr(engine) == "<Engine: 1 subscriptions, 1 live events, scan>"
    assert "<table>" in engine._repr_html_()
    assert "<ana>" not in engine.explain("<ana>", {"id": "<e>", "price": 1})._repr_html_()


def test_expressions_from_the_builder_are_taken_too():
    engine = engine_at()
    engine.subscribe("ana", (stentor.col("price") < 300) & ~stentor.col("sold"))
    assert engine.publish({"id": "e", "price": 1, "sold": False}) == ["ana"]
    assert engine.publish({"id": "e", "price": 1, "sold": True}) == []


@pytest.mark.parametrize(
    ("event", "wanted"),
    [
        ({"a": math.nan}, ["missing"]),
        ({"a": None}, ["missing"]),
        ({"a": math.inf}, ["large"]),
        ({"a": -math.inf}, ["small"]),
        ({"a": -0.0}, ["zero"]),
        ({"a": {"low": -1, "high": 5}}, ["small", "zero"]),
        ({"a": {"low": -math.inf, "high": math.inf}}, ["large", "small", "zero"]),
        ({"s": ""}, ["empty", "missing"]),
    ],
)
def test_odd_values_are_wanted_as_the_language_says(event, wanted):
    engine = engine_at()
    for id, text in {
        "missing": "a IS NULL",
        "zero": "a = 0",
        "small": "a < 0",
        "large": "a > 1e300",
        "empty": "s = ''",
    }.items():
        engine.subscribe(id, text)
    assert engine.publish({"id": "e", **event}) == wanted


def test_an_integer_that_no_double_holds_is_refused():
    engine = engine_at()
    with pytest.raises(RecordError, match="9007199254740993"):
        engine.publish({"id": "e", "a": 2**53 + 1})
    with pytest.raises(ExpressionError, match="9007199254740993"):
        engine.subscribe("ana", "a = 9007199254740993")


def test_a_text_of_ten_thousand_terms_is_searched():
    engine = engine_at()
    engine.subscribe("last", "has_all(text, 'w9999', 'W0')")
    engine.subscribe("none", "has_all(text, 'w10000')")
    assert engine.publish({"id": "e", "text": " ".join(f"w{n}" for n in range(10_000))}) == ["last"]


def test_on_a_plane_distances_are_plain():
    engine = engine_at(schema=Schema.declare({"loc": "point"}, plane=True))
    engine.subscribe("ana", "ST_DWithin(loc, here(), 5)", at=(1000, 1000))
    assert engine.publish({"id": "e", "loc": [1003, 1004]}) == ["ana"]
    assert engine.publish({"id": "f", "loc": [1003, 1004.001]}) == []
    engine.move("ana", (1003, 1004))
    assert engine.publish({"id": "f", "loc": [1003, 1004.001]}) == ["ana"]


@pytest.mark.parametrize("index", names())
def test_an_engine_that_is_rebuilt_for_a_history_answers_as_before(index):
    engine = stentor.Engine(index=index, clock=None)
    for number in range(40):
        engine.subscribe(f"s{number}", f"has_all(text, 'w{number % 7}') AND price < {number}")
    engine.publish({"id": "live", "text": "w1", "price": 3}, until=1e9, time=0)
    event = {"id": "e", "text": "w1 w2 w3", "price": 20}
    before = engine.publish(event)
    engine.rebuild(
        history=pa.table({"id": ["a", "b"], "text": ["w1 w9", "w2"], "price": [1.0, 2.0]})
    )
    assert engine.publish({**event, "id": "f"}) == before
    engine.rebuild()
    assert engine.publish({**event, "id": "g"}) == before
    assert engine.subscribe("late", "has_all(text, 'w1')").added == ["live"]
    with pytest.raises(StentorError):
        engine.rebuild(history=[1, 2])


@every_index
@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_says_how_many_candidates_each_event_had(index, threads):
    engine = stentor.Engine(index, clock=None, threads=threads)
    for number in range(40):
        engine.subscribe(f"s{number}", f"a = {number % 4} AND b < {number}")
    events = [{"id": f"e{n}", "a": n % 5, "b": n % 7} for n in range(1200)]
    events[3] = {"id": "", "a": 1}
    report = engine.publish_batch(events, candidates=True)
    assert report.candidates is not None
    assert report.candidates.shape == (1200,)
    wanted = [0 if n == 3 else len(answer) for n, answer in enumerate(report)]
    assert (report.candidates >= wanted).all()
    assert report.candidates[3] == 0
    for one in (0, 1, 2, 600, 1199):
        alone = engine.publish_batch(events[one : one + 1], candidates=True)
        assert alone.candidates.tolist() == [report.candidates[one]]
    assert engine.publish_batch(events).candidates is None


def test_candidates_of_the_best_alone_are_not_counted():
    with pytest.raises(SettingsError, match="without top"):
        stentor.Engine(clock=None).publish_batch([], top=1, candidates=True)


def test_stats_tell_the_bytes_of_ids_and_texts_too():
    engine = stentor.Engine(clock=None)
    before = engine.stats()
    for number in range(100):
        engine.subscribe(f"subscriber {number:05}", f"price < {number} AND brand = 'apple'")
    after = engine.stats()
    assert after["bytes of ids"] - before["bytes of ids"] > 100 * len("subscriber 00000")
    assert after["bytes of texts"] - before["bytes of texts"] > 100 * len(
        "price < 0 AND brand = ''"
    )
    own = sum(after[f"bytes of {part}"] for part in ("columns", "ids", "texts"))
    assert after["bytes"] >= own
