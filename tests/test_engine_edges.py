"""What users and reviewers ran into: each was wrong once."""

import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import stentor
from stentor import Engine, Event, Limits, RecordLimits, Schema, col
from stentor.engine import standing
from stentor.errors import (
    LimitError,
    RecordError,
    SettingsError,
    StentorError,
    TypeConflictError,
    UnknownAttributeError,
    UnknownIdError,
)
from stentor.language import simplify
from stentor.language.normalise import normalise
from stentor.model import Constant, Kind


def test_a_list_is_tried_against_the_rest_once_not_once_for_each_alternative(monkeypatch):
    tried = []
    real = simplify.literal_truth
    monkeypatch.setattr(simplify, "literal_truth", lambda *given: tried.append(1) or real(*given))
    strings = ", ".join(f"'s{n}'" for n in range(100))
    either = " OR ".join(f"c = {n}" for n in range(20))
    form = normalise(stentor.parse(f"b IN ({strings}) AND b LIKE '%' AND ({either})"))
    assert len(form.alternatives) == 20
    assert len(tried) == 100


def test_long_lists_count_when_an_expression_is_multiplied_out():
    numbers = ", ".join(map(str, range(5000)))
    either = " OR ".join(f"c = {n}" for n in range(900))
    with pytest.raises(LimitError, match="predicates and values"):
        normalise(stentor.parse(f"a IN ({numbers}) AND ({either})"))


def test_a_save_between_two_reads_is_not_mixed_into_what_is_opened(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    engine = Engine(clock=None)
    engine.subscribe("old", "a = 1")
    engine.save(path)
    later = Engine(clock=None)
    later.subscribe("new", "b = 1 AND a = 1")
    real, saved = standing.read_arrays, []

    def read_arrays(part, **options):
        if part.name == standing.SUBSCRIPTIONS and not saved:
            saved.append(True)
            later.save(path)
        return real(part, **options)

    monkeypatch.setattr(standing, "read_arrays", read_arrays)
    opened = Engine.open(path, clock=None)
    assert opened.publish({"id": "e", "a": 1, "b": 1}) == ["new"]


def test_a_changed_byte_is_found_where_it_is_asked_for(tmp_path):
    engine = Engine(clock=None)
    engine.subscribe("ana", "a = 1")
    engine.save(tmp_path / "kept")
    file = tmp_path / "kept" / "subscriptions" / "columns.low.npy"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    Engine.open(tmp_path / "kept")
    with pytest.raises(stentor.errors.FolderError, match="not those that were written"):
        Engine.open(tmp_path / "kept", verify=True)


def test_threads_that_teach_the_schema_give_each_attribute_its_own_code():
    engine = Engine(clock=None)

    def subscribe(thread):
        for number in range(30):
            engine.subscribe(f"{thread}-{number}", f"a{thread}_{number} = 1")

    threads = [threading.Thread(target=subscribe, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(engine.schema.code(name) for name in engine.schema) == list(range(120))
    assert len(list(engine)) == 120


def test_questions_teach_the_schema_nothing():
    engine = Engine(clock=None)
    assert engine.top({"price": "cheap"}) == []
    engine.subscribe("ana", "price < 3")
    with pytest.raises(TypeConflictError):
        engine.top({"price": "cheap"})
    with pytest.raises(TypeConflictError):
        engine.explain("ana", Event("e", {"price": Constant(Kind.STRING, "cheap")}))
    assert "text" not in engine.schema


def test_a_subscription_without_its_position_teaches_the_schema_nothing():
    engine = Engine(clock=None)
    with pytest.raises(RecordError, match="needs a position"):
        engine.subscribe("ana", "ST_DWithin(loc, here(), 5)")
    [answer] = engine.step(
        [{"op": "subscribe", "id": "a", "expression": "ST_DWithin(loc, here(), 5)"}]
    )
    assert isinstance(answer, RecordError)
    engine.publish({"id": "e1", "loc": "downtown"})


def test_an_event_in_a_dict_may_carry_its_time():
    engine = Engine(clock=None)
    engine.subscribe("ana", "price < 3", until=100, time=0)
    assert engine.publish({"id": "e1", "price": 1, "time": 500}) == []
    with pytest.raises(RecordError, match="time"):
        engine.publish({"id": "e2", "price": 1, "time": "soon"})


def test_geojson_and_cloudevents_are_published_as_they_are():
    engine = Engine(clock=None)
    engine.subscribe("ana", "price < 3")
    feature = {"type": "Feature", "id": "f", "geometry": None, "properties": {"price": 1}}
    event = {"specversion": "1.0", "type": "t", "source": "s", "id": "1", "data": {"price": 1}}
    assert engine.publish(feature) == ["ana"]
    assert engine.publish(event) == ["ana"]
    assert engine.step([feature])[0] == ["ana"]


def test_ids_may_be_integers_everywhere():
    engine = Engine(clock=None)
    engine.subscribe(7, "a = 1")
    assert 7 in engine
    assert np.int64(7) in engine
    assert engine.get(7)["id"] == "7"
    assert engine.explain(7, {"a": 1})
    assert [] not in engine
    assert "\ud800" not in engine
    with pytest.raises(UnknownIdError):
        engine.get(8)


def test_what_stands_can_be_shown_whatever_the_limits_are_now(tmp_path):
    large = Limits(bytes=10_000_000, alternatives=5_000, predicates=5_000)
    wide = Engine(clock=None, limits=large)
    text = " OR ".join(f"a = {number} AND b < 1" for number in range(1_500))
    wide.subscribe("ana", text)
    assert not wide.explain("ana", {"a": 1, "b": 2})
    wide.save(tmp_path / "kept")
    narrow = Engine.open(tmp_path / "kept", limits=RecordLimits(expression=Limits(bytes=100)))
    assert narrow.get("ana")["expression"] == text
    assert not narrow.explain("ana", {"a": 1, "b": 2})


def test_what_stands_on_a_plane_can_be_shown():
    engine = Engine(clock=None, schema=Schema(plane=True))
    engine.subscribe("ana", "ST_DWithin(loc, ST_Point(500, 900), 10)")
    assert engine.get("ana")["expression"] == "ST_DWithin(loc, ST_Point(500, 900), 10)"


def test_a_negative_parameter_behind_a_minus_can_be_shown():
    engine = Engine(clock=None)
    engine.subscribe_batch(pa.table({"id": ["a", "b"], "x": [-5, 5]}), "price > -:x")
    assert engine.get("a")["expression"] == "price > 5"
    assert engine.get("b")["expression"] == "price > -5"


def test_one_subscription_may_have_parameters():
    engine = Engine(clock=None)
    engine.subscribe("ana", "brand = :brand", parameters={"brand": "O'Neill"})
    assert engine.publish({"id": "e", "brand": "O'Neill"}) == ["ana"]


def test_a_declared_schema_is_closed_to_event_objects_too():
    engine = Engine(schema={"price": "number"}, clock=None)
    engine.publish(Event("e1", {"other": Constant(Kind.NUMBER, 1.0)}))
    with pytest.raises(UnknownAttributeError):
        engine.subscribe("ana", "other < 3")


def test_a_built_tree_with_two_kinds_is_a_type_conflict():
    with pytest.raises(TypeConflictError):
        Engine().subscribe("ana", (col("a") < 5) & (col("a") == "x"))


@pytest.mark.parametrize("event", [Event("e", {"a": 1.0}), {"id": "e", "a": np.array([[1, 2]])}])
def test_values_that_cannot_be_used_are_told_and_stop_nothing(event):
    engine = Engine(clock=None)
    with pytest.raises(RecordError):
        engine.publish(event)
    if isinstance(event, dict):
        good = {"op": "publish", "id": "g", "b": 1}
        assert engine.step([{"op": "publish", **event}, good])[1] == []


@pytest.mark.parametrize(
    ("raw", "matches"),
    [
        (np.float32(2.5), True), (np.int64(2), True), (np.longdouble(2), True),
        (np.bool_(True), None), (float("nan"), False), (pd.NA, False),
        (pd.NaT, False), (np.datetime64("NaT"), False),
        (10**400, None),
    ],
)  # fmt: skip
def test_values_of_numpy_and_pandas_are_taken_for_what_they_are(raw, matches):
    engine = Engine(clock=None)
    engine.subscribe("ana", "a < 5")
    if matches is None:
        with pytest.raises(StentorError):
            engine.publish({"id": "e", "a": raw})
    else:
        assert engine.publish({"id": "e", "a": raw}) == (["ana"] if matches else [])


def test_places_of_numpy_are_places():
    engine = Engine(clock=None)
    engine.subscribe("ana", "ST_DWithin(loc, here(), 5)", at=(np.float32(1), np.int64(2)))
    assert engine.publish({"id": "e", "loc": np.array([1.0, 2.0])}) == ["ana"]
    assert engine.publish({"id": "f", "loc": {"lon": 1, "lat": 2}}) == ["ana"]


def test_instants_of_numpy_are_instants():
    engine = Engine(clock=None)
    engine.subscribe("ana", "TRUE", until=np.datetime64("1970-01-01T00:00:10"), time=0)
    assert engine.publish({"id": "e"}, time=np.int64(11)) == []


@pytest.mark.parametrize("op", ["publish", "subscribe"])
def test_a_table_of_moves_does_nothing_else(op):
    engine = Engine(clock=None)
    with pytest.raises(RecordError, match="`step` takes records of all kinds"):
        engine.move_batch(pa.table({"id": ["a"], "at": [[1.0, 1.0]], "op": [op]}))


def test_contradictions_are_counted_in_every_way_to_subscribe():
    text = "active NOT IN (TRUE, FALSE) AND price < {}"
    table = pa.table({"id": ["a", "b", "c"], "expression": [text.format(n) for n in range(3)]})
    records = [{"op": "subscribe", **row} for row in table.to_pylist()]
    assert Engine().subscribe_batch(table).never == [0, 1, 2]
    assert Engine().step(records).never == [0, 1, 2]
    assert "3 can never match" in repr(Engine().step(records))


def test_wrong_settings_are_settings_errors():
    engine = Engine(clock=None)
    wrong = [
        lambda: Engine(threads=0),
        lambda: Engine(threads=None),
        lambda: Engine(clock=5),
        lambda: Engine(schema=["price"]),
        lambda: engine.top({"a": 1}, k=1.5),
        lambda: engine.step({"op": "publish"}),
        lambda: engine.step([], top=0),
        lambda: engine.subscribe_batch(pa.table({"id": ["a"]}), "name = :id"),
    ]
    for one in wrong:
        with pytest.raises(SettingsError):
            one()


def test_an_engine_without_subscriptions_is_still_an_engine():
    assert Engine()
    assert Schema()
