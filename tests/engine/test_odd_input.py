"""Whatever comes from outside is answered, or refused with an error of Stentor's own.

Nothing else leaves the package, and what was refused has changed no answer.
"""

import datetime as dt
import math
import warnings
from collections import UserDict
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor import Engine, Event, Limits, Schema, evaluate, parse, polygon, to_text
from stentor.broker import Broker, Dimension, Greeting, Overlay, Space, Store, policy_of
from stentor.errors import RecordError, SettingsError, StentorError
from stentor.model import Constant, Kind, Point, Range, Subscription
from stentor.model.record import Move, Publish, Subscribe, Unsubscribe

warnings.filterwarnings("ignore", category=UserWarning)

FAR_ZONE = dt.timezone(dt.timedelta(hours=14))
ODD = [
    *(None, True, False, 0, -1, 2**53 + 1, 2**70, -(2**70), 10**400, 1.5, 1e308),
    *(math.nan, math.inf, -math.inf, Fraction(1, 3), 1j),
    *("", "x", "\ud800", "a\0b", "NaN", "9999-12-31T23:59:59Z", b"x", bytearray(b"x")),
    *map(Decimal, ("NaN", "sNaN", "Infinity", "1e999999", "1")),
    *([], [1], [1, 2], [[1]], [None, None], [math.nan, 1], [Decimal("sNaN"), 1], ["a", "b"]),
    *((), (1, 2), (2**70, 1), {1, 2}, frozenset(), range(3), object(), object, len),
    *({}, {"a": 1}, {1: 2}, {None: 1}, UserDict(id="u", price=1)),
    *({"lon": 1, "lat": Decimal("sNaN")}, {"low": Decimal("sNaN"), "high": 1}),
    *({"low": math.nan, "high": 1}, {"low": None, "high": 1}, {"low": "a", "high": 1}),
    *({"type": "Point", "coordinates": []}, {"type": "Point", "coordinates": ["a", "b"]}),
    *(np.int64(3), np.uint64(2**64 - 1), np.float32(2.5), np.float64("nan"), np.longdouble(1)),
    *(np.bool_(True), np.str_("s"), np.complex128(1), np.void(b"1"), np.timedelta64(1, "s")),
    *(np.datetime64("2026-01-01"), np.datetime64("NaT"), np.array(1), np.array([1, 2])),
    *(np.array([[1, 2]]), np.array([]), np.array(["a"]), np.array([None]), np.array([np.nan, 1])),
    *(pd.NA, pd.NaT, pd.Timestamp("2026-01-01"), pd.Series([1, 2]), pd.DataFrame()),
    *(pd.DataFrame({"id": [1]}), pd.DataFrame({"id": [object()]}), pa.scalar(1), pa.array([1])),
    *(pa.table({}), pa.table({"id": ["a"]}), pa.record_batch({"id": pa.array(["a"])})),
    *(dt.datetime.min, dt.datetime.max, dt.datetime(1, 1, 1, tzinfo=FAR_ZONE), dt.date.max),
    *(dt.time(1), dt.timedelta(1), Point(math.nan, 1), Point("a", "b"), Point(500, 1)),
    *(Constant(Kind.NUMBER, "x"), Constant(Kind.STRING, 1), Constant("?", 1)),
    *(Constant(Kind.NUMBER, math.nan), Range(Kind.NUMBER, 2, 1), Range(Kind.STRING, "a", "b")),
    *(Event("e", {}), Event(5, None, None, "x"), Move("ana", None), Unsubscribe(None)),
    *(
        Subscribe(None),
        Subscribe(Subscription("b", None)),
        Publish(None),
        Publish(Event("e", {}), "x"),
    ),
]


def events_with(odd):
    """Dicts in which *odd* stands wherever something can stand."""
    yield odd
    yield {"id": odd, "price": 1}
    for name in ("price", "new", "until", "time", "weights", "attributes", "seq", "op"):
        yield {"id": "e", name: odd}
    yield {"id": "e", "weights": {"price": odd}}
    yield {"id": "e", "attributes": {"new": odd}}
    yield {"id": "e", "loc": [odd, 1]}
    yield {"id": "e", "range": {"low": odd, "high": odd}}
    yield {"type": "Feature", "id": odd, "geometry": odd, "properties": odd}
    yield {"type": odd, "features": odd}
    point = {"type": "Point", "coordinates": odd}
    yield {"type": "Feature", "id": "f", "geometry": point, "properties": {"new": odd}}
    yield {"specversion": odd, "type": odd, "id": odd, "source": odd, "data": odd, "time": odd}
    sent = {"specversion": "1.0", "type": "t", "id": "c", "source": "s"}
    yield {**sent, "data": odd, "subject": odd, "datacontenttype": odd}
    yield {**sent, "data": {"new": odd}, "expirytime": odd}


def calls(engine, odd):
    """Every public method, with *odd* in the place of each of its arguments."""
    for event in events_with(odd):
        yield lambda event=event: engine.publish(event)
        yield lambda event=event: engine.top(event)
        yield lambda event=event: engine.explain("ana", event)
        yield lambda event=event: engine.step([event])
        if isinstance(event, dict):
            yield lambda event=event: engine.step([{"op": "publish", **event}])
    for name in ("until", "time"):
        yield lambda name=name: engine.publish({"id": "e"}, **{name: odd})
    for name in ("at", "until", "time", "parameters"):
        yield lambda name=name: engine.subscribe("bo", "price < :p", **{name: odd})
    yield lambda: engine.subscribe("bo", "price < :p", parameters={"p": odd})
    yield lambda: engine.subscribe(odd, "TRUE")
    yield lambda: engine.subscribe("bo", odd)
    for change in ("subscribe", "unsubscribe", "move"):
        for name in ("id", "expression", "at", "until", "time", "op", "seq"):
            record = {"op": change, "id": "nobody", name: odd}
            yield lambda record=record: engine.step([record])
    yield lambda: engine.unsubscribe(odd)
    yield lambda: engine.unsubscribe("nobody", time=odd)
    yield lambda: engine.move(odd, (1, 2))
    yield lambda: engine.move("ana", odd)
    yield lambda: engine.move("nobody", (1, odd), time=odd)
    table = pa.table({"id": ["e"], "price": [1]})
    yield lambda: engine.step(odd)
    yield lambda: engine.step([], top=odd)
    yield lambda: engine.step([{"op": "publish", "id": "e", "price": 1}], top=1, scoring=odd)
    yield lambda: engine.publish_batch(odd)
    yield lambda: engine.publish_batch(table, top=odd)
    yield lambda: engine.subscribe_batch(odd)
    yield lambda: engine.subscribe_batch(table, odd)
    yield lambda: engine.move_batch(odd)
    yield lambda: engine.unsubscribe_batch(odd)
    yield lambda: engine.rebuild(odd)
    yield lambda: engine.top({"price": 1}, k=odd)
    yield lambda: engine.top({"price": 1}, scoring=odd)
    yield lambda: engine.explain(odd, {"price": 1})
    yield lambda: engine.safe_region(odd)
    yield lambda: engine.safe_regions(odd)
    yield lambda: engine.safe_regions(["ana", odd])
    yield lambda: engine.shrunk_by(odd, [])
    yield lambda: engine.shrunk_by({"price": 1}, odd)
    yield lambda: engine.shrunk_by({"price": 1}, [odd])
    yield lambda: engine.get(odd)
    yield lambda: odd in engine
    if not isinstance(odd, str) or {"\0", "\ud800"} & set(odd):
        yield lambda: engine.save(odd)
        yield lambda: Engine.open(odd)
    yield lambda: Engine.open("/nowhere", verify=odd)
    for name in ("index", "schema", "limits", "threads", "most_ahead"):
        yield lambda name=name: Engine(**{name: odd})
    for kind in (odd, Kind.NUMBER):
        yield lambda kind=kind: Engine(schema={"price": kind} if kind is odd else {"": kind})


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """An odd argument may be a path: what is made there is not left in the repository."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("place", range(len(ODD)))
def test_odd_arguments_are_refused_by_errors_of_our_own(place):
    odd = ODD[place]
    engine = Engine(clock=None)
    engine.subscribe("ana", "price < 300", at=(1, 2))
    engine.publish({"id": "live", "price": 1}, until=100, time=0)
    for call in calls(engine, odd):
        with suppress(StentorError):
            call()
        if "ana" not in engine or engine.get("ana")["expression"] != "price < 300":
            engine.subscribe("ana", "price < 300", at=(1, 2))  # x and NaN are expressions, too
    assert "ana" in engine.publish({"id": "check", "price": 2}, time=50)
    assert "live" in engine.subscribe("new", "price = 1").added


def other_calls(odd):
    """What the package has beside the engine: the language, schemas."""
    tree = parse("price < 3")
    yield lambda: parse(odd)
    yield lambda: parse("price < 3", schema=odd)
    yield lambda: parse("price < 3", limits=odd)
    yield lambda: parse("price < :p", parameters={"p": odd})
    yield lambda: to_text(odd)
    yield lambda: evaluate(odd, Event("e", {}))
    yield lambda: evaluate(tree, odd)
    yield lambda: polygon(odd)
    yield lambda: polygon([(0, 0), (1, 1), odd])
    yield lambda: Schema.declare(odd)
    yield lambda: Schema.from_dict(odd)
    yield lambda: Schema.from_dict({"plane": False, "declared": False, "attributes": odd})
    entry = {"name": odd, "kind": odd, "where": odd}
    yield lambda: Schema.from_dict({"plane": False, "declared": False, "attributes": [odd]})
    yield lambda: Schema.from_dict({"plane": odd, "declared": odd, "attributes": [entry]})
    yield lambda: parse("price < 3", limits=Limits(odd))


@pytest.mark.parametrize("place", range(len(ODD)))
def test_the_language_and_schemas_refuse_odd_arguments_by_errors_of_our_own(place):
    for call in other_calls(ODD[place]):
        with suppress(StentorError):
            call()


def made_by_hand(odd):
    """Records of the model with *odd* in each place."""
    tree, at = parse("price < 3"), Point(1, 2)
    yield from (odd, Publish(odd), Subscribe(odd), Unsubscribe(odd), Move(odd, at))
    yield from (Move("ana", odd), Move("ana", Point(odd, 1)), Move("ana", at, odd))
    yield from (Publish(Event(odd, {})), Publish(Event("e", odd)), Publish(Event("e", {}, odd)))
    yield from (Publish(Event("e", {"price": odd})), Publish(Event("e", {}, {}, odd)))
    yield from (Publish(Event("e", {}), odd), Unsubscribe("nobody", odd))
    yield from (Subscribe(Subscription(odd, tree)), Subscribe(Subscription("s", odd)))
    yield from (Subscribe(Subscription("s", tree, odd)), Subscribe(Subscription("s", tree), odd))


def overlay_calls(odd):
    """Every public method of brokers and overlays, with *odd* in the place of each argument."""
    overlay, broker = Overlay(["west", "east"], [("west", "east")]), Broker("north")
    broker.add_neighbour("n")
    for record in made_by_hand(odd):
        yield lambda record=record: overlay.feed("west", record)
        yield lambda record=record: overlay.send("east", [record])
        yield lambda record=record: broker.receive("", [record])
        yield lambda record=record: broker.receive("n", [record])
    for event in events_with(odd):
        yield lambda event=event: overlay.feed("west", event)
    yield lambda: overlay.feed(odd, {"op": "publish", "id": "z"})
    yield lambda: overlay.send("east", odd)
    for method in (overlay.restart, overlay.reach, overlay.pass_time, overlay.transmit):
        yield lambda method=method: method(odd)
    for method in (overlay.cut, overlay.heal):
        yield lambda method=method: method(odd, "west")
        yield lambda method=method: method("east", odd)
    for method in (broker.connect, broker.disconnect, broker.interests_of, broker.pass_time):
        yield lambda method=method: method(odd)
    yield lambda: broker.add_neighbour(odd)
    yield lambda: broker.remove_neighbour(odd)
    yield lambda: broker.receive(odd, [])
    yield lambda: broker.receive("", odd)
    yield lambda: broker.receive("n", [Greeting(odd, odd, odd)])
    yield lambda: broker.forwarded(odd, 1)
    yield lambda: Broker("b").forwarded("n", odd)
    yield lambda: Broker("b").acknowledge(odd)
    yield lambda: Broker("b").acknowledge([odd])
    yield lambda: Overlay(odd, [])
    yield lambda: Overlay([odd], [])
    yield lambda: Overlay(["a", "b"], odd)
    yield lambda: Overlay(["a", "b"], [odd])
    yield lambda: Overlay(["a", "b"], [("a", odd)])
    for name in ("policy", "index", "schema", "space", "stores", "most_ahead"):
        yield lambda name=name: Overlay(["a", "b"], [("a", "b")], **{name: odd})
    for name in ("policy", "index", "schema", "space", "store", "most_ahead"):
        yield lambda name=name: Broker("b", **{name: odd})
    yield lambda: Overlay(["a"], [], policy={"a": odd})
    if not isinstance(odd, str):
        yield lambda: Overlay(["a"], [], stores={"a": odd})
        yield lambda: Store(odd)
    yield lambda: Broker(odd)
    yield lambda: policy_of(odd)
    yield lambda: Dimension(odd, 0, 1)
    yield lambda: Dimension("price", odd, 1)
    yield lambda: Dimension("price", 0, 1, odd)
    yield lambda: Space((Dimension("price", 0, odd),))
    yield lambda: Dimension("price", 0, 1, "value", odd)
    yield lambda: Space(odd)
    yield lambda: Space((odd,))
    yield lambda: Space((Dimension("price", 0, 1),), odd)
    yield lambda: Space.from_dict(odd)
    yield lambda: Space.from_dict({"dimensions": odd, "bits": odd})
    yield lambda: Space.from_dict({"dimensions": [{"attribute": "a", "low": odd, "high": odd}]})


@pytest.mark.parametrize("place", range(len(ODD)))
def test_brokers_refuse_odd_arguments_by_errors_of_our_own(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call in overlay_calls(ODD[place]):
        with suppress(StentorError):
            call()
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("odd", [{}, None, 1, b"x", True, [], object()])
def test_a_store_is_refused_where_it_is_no_path(odd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match="path"):
        Store(odd)
    with pytest.raises(SettingsError, match="path"):
        Overlay(["a"], [], stores={"a": odd})
    assert not [*tmp_path.iterdir()]


def test_a_record_that_an_overlay_refuses_for_what_it_is_moves_no_time():
    later = 50_000_000
    price = {"price": Constant(Kind.STRING, "x")}
    for bad in (
        Publish(None, later),
        Publish(Event(5, {}), later),
        Publish(Event("e", price), later),
        Subscribe(Subscription("b", None), later),
        Move("ana", None, later),
    ):
        overlay = Overlay(["west", "east"], [("west", "east")])
        ends = {"op": "subscribe", "id": "ana", "expression": "price < 3", "until": 5, "time": 0}
        overlay.feed("west", ends)
        assert isinstance(overlay.feed("west", bad), StentorError)
        assert overlay.feed("east", {"op": "publish", "id": "e", "price": 1}) == ["ana"]


def test_a_record_that_another_of_its_batch_makes_a_conflict_moves_no_time():
    number, string = Constant(Kind.NUMBER, 1.0), Constant(Kind.STRING, "x")
    asks = Subscribe(Subscription("ben", parse("cost < 3")), 0)
    for first in (Publish(Event("a", {"cost": number}), 0), asks):
        for bad in (
            Publish(Event("b", {"cost": string}), 50_000_000),
            Subscribe(Subscription("cleo", parse("cost = 'x'")), 50_000_000),
        ):
            overlay = Overlay(["west", "east"], [("west", "east")])
            ends = {"op": "subscribe", "id": "ana", "expression": "n < 3", "until": 5, "time": 0}
            overlay.feed("west", ends)
            fine, refused, last = overlay.send("west", [first, bad, Publish(Event("c", {}))])
            assert not isinstance(fine, StentorError)
            assert last == []
            assert isinstance(refused, StentorError)
            assert overlay.feed("east", {"op": "publish", "id": "e", "n": 1}) == ["ana"]


@pytest.mark.parametrize("name", ["index", "limits", "clock", "threads", "most_ahead"])
def test_a_setting_that_means_nothing_is_a_settings_error(name):
    with pytest.raises(SettingsError):
        Engine(**{name: object()})


def test_what_is_not_a_number_is_missing_whatever_its_type():
    engine = Engine(clock=None)
    engine.subscribe("ana", "price IS NULL")
    for number, nan in enumerate((math.nan, Decimal("NaN"), Decimal("sNaN"), np.float32("nan"))):
        assert engine.publish({"id": number, "price": nan}) == ["ana"]
        assert engine.publish({"id": number, "price": {"low": nan, "high": nan}}) == ["ana"]
        assert engine.publish({"id": number, "price": {"low": nan, "high": 1}}) == []


def test_nan_is_no_time_alone_as_in_a_table():
    engine = Engine(clock=None)
    for name in ("until", "time"):
        with pytest.raises(RecordError, match=name):
            engine.publish({"id": "e"}, **{name: math.nan})
        table = pa.table({"id": ["e"], name: [math.nan]})
        assert name in str(engine.publish_batch(table)[0])


# Tables: a bad cell is bad for its row, as it would be alone.

IDS = st.sampled_from(["a", "b", "c", "é", "", None, "x" * 600, "live"])
NUMBERS = st.sampled_from([None, 0, 1, 2, 2**53 + 1, -5])
CELLS = {
    pa.int64(): NUMBERS,
    pa.uint64(): st.sampled_from([None, 0, 1, 2**64 - 1]),
    pa.float64(): st.sampled_from([None, math.nan, math.inf, 0.5, 1.0, 1e300, -1e300]),
    pa.float32(): st.sampled_from([None, math.nan, 1.0]),
    pa.string(): st.sampled_from(
        [None, "", "x", "TRUE", "price = 1", "2026-01-01", "9999-99-99", "1"]
    ),
    pa.large_string(): st.sampled_from([None, "x", "2026-01-01", "a\0b"]),
    pa.dictionary(pa.int32(), pa.string()): st.sampled_from([None, "x", "y", "2026-01-01"]),
    pa.bool_(): st.sampled_from([None, True, False]),
    pa.decimal128(38, 2): st.sampled_from([None, Decimal("1.25"), Decimal(2**60 + 1)]),
    pa.timestamp("s"): st.sampled_from([None, 0, 5, 2**62, -(2**62)]),
    pa.timestamp("us", "UTC"): st.sampled_from([None, 0, 7_000_000, 2**62]),
    pa.timestamp("ns"): st.sampled_from([None, 0, 1, 2_000_000_000]),
    pa.date32(): st.sampled_from([None, 0, 20_000, 2**31 - 1]),
    pa.list_(pa.float64()): st.sampled_from(
        [None, [], [1.0], [1.0, 2.0], [None, 1.0], [500.0, 1.0]]
    ),
    pa.struct({"lon": pa.float64(), "lat": pa.float64()}): st.sampled_from(
        [None, {"lon": 1.0, "lat": 2.0}, {"lon": None, "lat": 1.0}, {"lon": math.nan, "lat": 0.0}]
    ),
    pa.struct({"low": pa.float64(), "high": pa.float64()}): st.sampled_from(
        [None, {"low": 1.0, "high": 2.0}, {"low": 2.0, "high": 1.0}, {"low": math.nan, "high": 1.0}]
    ),
    pa.binary(): st.sampled_from([None, b"x", b"\xff"]),
    pa.time64("us"): st.sampled_from([None, 0]),
    pa.duration("s"): st.sampled_from([None, 1]),
    pa.list_(pa.list_(pa.int8())): st.sampled_from([None, [[1]]]),
    pa.null(): st.none(),
}


def broken_text(count):
    """A column of strings, the last of which are not UTF-8."""
    data = b"ab" + b"\xff" * (count - 1)
    offsets = np.array([0, *range(2, count + 2)], np.int32)
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


@st.composite
def tables(draw, *columns):
    rows = draw(st.integers(1, 4))
    arrays = {}
    if draw(st.integers(0, 19)):
        arrays["id"] = pa.array(draw(st.lists(IDS, min_size=rows, max_size=rows)), pa.string())
    for name in draw(st.lists(st.sampled_from([*columns, "id"]), unique=True, max_size=4)):
        kind = draw(st.sampled_from([*CELLS]))
        cells = draw(st.lists(CELLS[kind], min_size=rows, max_size=rows))
        is_broken = kind == pa.string() and not draw(st.integers(0, 3))
        arrays[name] = broken_text(rows) if is_broken else pa.array(cells, kind)
    return pa.table(arrays)


def standing():
    engine = Engine(clock=None)
    for id in ("a", "b", "c", "é"):
        engine.subscribe(id, "price > 0 OR when > TIMESTAMP '1970-01-01'", at=(1, 2), time=0)
    engine.publish({"id": "live", "price": 1}, until=1000, time=0)
    return engine


def answers(report):
    """What is told of each record; of an error that it is one."""
    return ["refused" if isinstance(one, StentorError) else one for one in report]


def one_by_one(table, method, *more):
    """The answers of *method* to the rows of *table*, each in a table of its own."""
    engine, found = standing(), []
    for row in range(table.num_rows):
        try:
            found += answers(getattr(engine, method)(table.slice(row, 1), *more))
        except StentorError:
            found.append("refused")
    return found, sorted(engine)


def check_table(table, method, *more):
    engine = standing()
    try:
        report = getattr(engine, method)(table, *more)
    except StentorError:  # a column of a type that no record has: nothing happened
        assert sorted(engine) == sorted(standing())
        return
    report.matches, report.changes, report.rejected  # noqa: B018
    assert (answers(report), sorted(engine)) == one_by_one(table, method, *more)


RECORD = (
    "op",
    "price",
    "when",
    "loc",
    "text",
    "until",
    "time",
    "weights",
    "seq",
    "expression",
    "at",
)


@given(tables(*RECORD))
def test_a_step_of_a_table_is_its_rows_one_by_one(table):
    check_table(table, "step")


@given(tables("at", "time", "op"))
def test_moves_of_a_table_are_its_rows_one_by_one(table):
    check_table(table, "move_batch")


@given(tables("time", "op"))
def test_unsubscriptions_of_a_table_are_its_rows_one_by_one(table):
    check_table(table, "unsubscribe_batch")


@given(tables("expression", "at", "until", "time", "op", "seq"))
def test_subscriptions_of_a_table_are_its_rows_one_by_one(table):
    check_table(table, "subscribe_batch")


@given(
    tables("p", "at", "until", "time"), st.sampled_from(["price < :p", "text = :p", "when > :p"])
)
def test_parameters_of_a_table_are_its_rows_one_by_one(table, expression):
    check_table(table, "subscribe_batch", expression)


@given(tables("price", "when", "loc", "text", "until", "time", "weights", "op", "seq"))
def test_events_of_a_table_are_its_rows_one_by_one(table):
    check_table(table, "publish_batch")


def test_a_bad_cell_is_told_as_the_single_call_tells_it():
    moves = pa.table({"id": ["a", "b", "nobody"], "at": [[1.0, 2.0], [500.0, 1.0], [1.0, 2.0]]})
    report = standing().move_batch(moves)
    for row, (id, at) in enumerate(
        zip(["b", "nobody"], [(500.0, 1.0), (1.0, 2.0)], strict=True), 1
    ):
        with pytest.raises(StentorError) as single:
            standing().move(id, at)
        assert str(report[row]) == str(single.value)


def test_a_misspelt_column_of_subscriptions_is_told_as_a_step_tells_it():
    table = pa.table(
        {"id": ["a", "b", "c"], "expression": ["x > 1"] * 3, "untill": [5, None, 5], "add": [1] * 3}
    )
    rows = [{**row, "op": "subscribe"} for row in table.to_pylist()]
    engine, other = Engine(clock=None), Engine(clock=None)
    report, stepped = engine.subscribe_batch(table), other.step(rows)
    assert list(map(str, report)) == list(map(str, stepped))
    assert "did you mean 'until'?" in str(report[0])
    assert "no such field" in str(report[1])
    assert not len(engine)
    assert engine.subscribe_batch(table.drop_columns("add")).rejected["record"].to_pylist() == [
        0,
        2,
    ]
    assert list(engine) == ["b"]
