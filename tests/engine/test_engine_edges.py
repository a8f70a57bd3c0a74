"""What users and reviewers ran into: each was wrong once."""

import threading
from dataclasses import replace
from random import Random

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import stentor
from stentor import Engine, Event, Limits, RecordLimits, Schema, col
from stentor.engine import folder
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
from stentor.model import Changes, Constant, Kind
from stentor.model import schema as schema_module


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
    real, saved = folder.read_arrays, []

    def read_arrays(part, **options):
        if part.name == folder.SUBSCRIPTIONS and not saved:
            saved.append(True)
            later.save(path)
        return real(part, **options)

    monkeypatch.setattr(folder, "read_arrays", read_arrays)
    opened = Engine.open(path, clock=None)
    assert opened.publish({"id": "e", "a": 1, "b": 1}) == ["new"]


def test_a_changed_byte_is_found_unless_the_folder_is_trusted(tmp_path):
    engine = Engine(clock=None)
    engine.subscribe("ana", "a = 1")
    engine.save(tmp_path / "kept")
    file = tmp_path / "kept" / "subscriptions" / "columns.low.npy"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    Engine.open(tmp_path / "kept", verify=False)
    for verify in (None, True):
        with pytest.raises(stentor.errors.FolderError, match="not those that were written"):
            Engine.open(tmp_path / "kept", verify=verify)


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
    engine.subscribe("ana", "a > 0")  # what nobody asks for is not looked at
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


TOO_HEAVY = "weight(a > 1, 1e308) AND weight(a < 5, 1e308)"


def errors_of(report):
    """What was wrong with each record; None where nothing was."""
    return [str(answer) if isinstance(answer, StentorError) else None for answer in report]


def every_refusal(expression, constants=None):
    """The errors of every way to ask an engine for *expression*.

    *constants* are the values of its parameters where it has any.
    """
    engine = Engine(clock=None)
    with pytest.raises(StentorError) as single:
        engine.subscribe("s", expression, parameters=constants)
    texts = {str(single.value)}
    if constants is not None:
        table = pa.table(
            {"id": list("abcd"), **{name: [one] * 4 for name, one in constants.items()}}
        )
        texts |= set(errors_of(engine.subscribe_batch(table, expression)))
    else:
        table = pa.table({"id": list("abcd"), "expression": [expression] * 4})
        texts |= set(errors_of(engine.subscribe_batch(table)))
        record = {"op": "subscribe", "id": "s", "expression": expression}
        texts |= set(errors_of(engine.step([record])))
    assert len(engine) == 0
    assert engine.stats()["attributes"] == 0
    return texts


def test_weights_whose_sum_is_no_number_are_refused_in_every_way_to_subscribe():
    assert len(every_refusal(TOO_HEAVY)) == 1
    heavy = "weight(a > 1, :w) AND weight(a < 5, :v)"
    for weights in ({"w": 1e308, "v": 1e308}, {"w": 1e101, "v": 0.0}, {"w": -1.0, "v": 3.0}):
        (reason,) = every_refusal(heavy, weights)
        assert "a weight is" in reason
    tree = stentor.weight(col("a") > 1, 1e100).expression
    with pytest.raises(StentorError, match="a weight is at most 1e\\+100"):
        Engine().subscribe("s", replace(tree, weight=1e101))
    with pytest.raises(StentorError, match="a weight is finite"):
        Engine().subscribe("s", replace(tree, weight=float("nan")))


def test_the_heaviest_expression_and_event_have_a_score():
    engine = Engine(clock=None)
    many = " AND ".join(f"weight(a{n} > 0, 1e100)" for n in range(1000))
    engine.subscribe("s", many)
    names = [f"a{n}" for n in range(1000)]
    event = {"id": "e", **dict.fromkeys(names, 1), "weights": dict.fromkeys(names, 1e100)}
    ((_, score),) = engine.top(event)
    assert score == pytest.approx(1e203)
    table = pa.table({"id": ["e"], "a": [1.0], "weights": [{"a": 1e101}]})
    assert "at most 1e+100" in errors_of(engine.publish_batch(table))[0]
    with pytest.raises(RecordError, match="at most 1e\\+100"):
        engine.publish({"id": "e", "a": 1, "weights": {"a": 1e308}})


FIELDS = ("id", "until", "time", "weights", "seq", "op")


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_of_records_cannot_be_asked_for(name):
    (reason,) = every_refusal(f"price < 3 OR {name} = 5")
    assert f"'{name}' is a field of every record" in reason
    assert f"'event_{name}'" in reason
    assert "^" in reason
    (bound,) = every_refusal(f"{name} = :p", {"p": 5})
    assert f"'event_{name}'" in bound
    with pytest.raises(StentorError, match="field of every record"):
        Engine().subscribe("s", col(name) == 5)
    with pytest.raises(SettingsError, match="field of every record"):
        Engine(schema={name: "number"})


def test_no_other_name_of_a_flat_event_is_taken():
    engine = Engine(clock=None)
    names = ("at", "expression", "attributes", "field", "row", "loc", "score", "subscription")
    for name in names:
        engine.subscribe(name, f"{name} = 5")
        assert engine.publish({"id": "e", name: 5}) == [name]
        table = pa.table({"id": ["e"], name: [5]})
        assert list(engine.publish_batch(table)) == [[name]]


def test_a_nested_attribute_with_the_name_of_a_field_harms_nothing():
    engine = Engine(clock=None)
    engine.subscribe("s", "price < 5")
    event = {"id": "e", "attributes": {"price": 3, "time": 7, "id": "x"}}
    assert engine.publish(event) == ["s"]


def test_what_an_earlier_version_took_in_is_still_shown_and_explained(tmp_path, monkeypatch):
    texts = ["time > 3", "has_any(text, 'nurs*')", "weight(a > 1, 1e300)"]
    engine = Engine(clock=None)
    monkeypatch.setattr(Limits, "are_of_our_own", property(lambda self: True))
    for number, text in enumerate(texts):
        engine.subscribe(str(number), text)
    monkeypatch.undo()
    engine.save(tmp_path / "old")
    opened = Engine.open(tmp_path / "old", clock=None)
    assert [opened.get(id)["expression"] for id in opened] == [
        "time > 3", "has_any(text, 'nurs*')", "weight(a > 1, 1e+300)"
    ]  # fmt: skip
    explained = str(opened.explain("0", {"id": "e", "time": 5}))
    assert "time is a field of every record, not an attribute" in explained
    assert "missing" not in explained
    assert opened.publish({"id": "e", "text": "nurs", "a": 2}) == ["1", "2"]
    opened.rebuild()
    opened.redundant()


@pytest.mark.parametrize(
    "word", ["nurs*", "*ing", "n?rse", "nurs?", "nurs%", "%ing", "nurs_", "_ing"]
)
def test_a_part_of_a_word_is_refused_with_advice(word):
    for function in ("has_any", "has_all"):
        (reason,) = every_refusal(f"{function}(t, 'nurse', '{word}')")
        assert "whole words" in reason
        assert "LIKE" in reason
        assert "whole words" in every_refusal(f"{function}(t, :w)", {"w": word}).pop()
    with pytest.raises(StentorError, match="whole words"):
        Engine().subscribe("s", col("t").has_any(word))


def test_words_with_signs_that_are_no_wildcards_are_taken():
    for word in ("50%", "wi-fi", "snake_case", "__init__", "5 * 3", "c++"):
        engine = Engine(clock=None)
        engine.subscribe("s", f"has_all(t, '{word}')")
        assert engine.publish({"id": "e", "t": f"say {word}!"}) == ["s"]


def test_a_long_list_is_not_tried_against_everything_else(monkeypatch):
    tried = []
    real = simplify.literal_truth
    monkeypatch.setattr(simplify, "literal_truth", lambda *given: tried.append(1) or real(*given))
    strings = ", ".join(f"'s{n}'" for n in range(5000))
    few = ", ".join(f"'s{n}'" for n in range(500))
    text = f"b IN ({strings}) AND b LIKE '%' AND has_any(b, {few})"
    (alternative,) = normalise(stentor.parse(text)).alternatives
    assert not tried
    assert [type(predicate.test).__name__ for predicate in alternative] == [
        "Membership",
        "Pattern",
        "Keywords",
    ]
    engine = Engine(clock=None)
    engine.subscribe("s", text)
    assert engine.publish({"id": "e", "b": "s7"}) == ["s"]
    assert engine.publish({"id": "e", "b": "s4999"}) == []


# What a learned schema takes in.


def test_events_of_junk_attributes_do_not_fill_a_learned_schema():
    engine = Engine(clock=None)
    engine.subscribe("ana", "price < 300")
    for number in range(11):
        engine.publish({"id": number, "price": 1, **junk(number, 9_999)})
    assert len(engine.schema) < 50_000
    engine.subscribe("bo", "colour = 'red' AND size > 1")
    assert engine.publish({"id": "e", "colour": "red", "size": 2, "new": True}) == ["bo"]
    assert engine.publish({"id": "f", "price": 2}) == ["ana"]


def junk(number, count=99):
    return {f"junk{number}_{n}": n for n in range(count)}


@pytest.fixture
def small_schema(monkeypatch):
    """A hundredth of the room."""
    for name in ("MOST_ATTRIBUTES", "MOST_UNASKED", "MANY_NEW"):
        monkeypatch.setattr(schema_module, name, getattr(schema_module, name) // 100)


@pytest.mark.usefixtures("small_schema")
def test_live_events_of_junk_attributes_give_the_room_back_when_they_end():
    engine = Engine(clock=None)
    for number in range(30):
        engine.publish({"id": number, **junk(number)}, until=number + 3, time=number)
        assert len(engine.schema) < 500
    assert engine.publish({"id": "e", "new": True}) == []


@pytest.mark.usefixtures("small_schema")
def test_junk_in_one_step_leaves_room_for_subscriptions_and_for_what_comes_later():
    engine = Engine(clock=None)
    records = [{"op": "publish", "id": number, **junk(number)} for number in range(11)]
    report = engine.step([*records, {"op": "subscribe", "id": "ana", "expression": "price < 300"}])
    refused = [number for number, answer in enumerate(report) if isinstance(answer, RecordError)]
    assert refused == list(range(5, 11))
    assert "no subscription asks for" in str(report[5])
    assert engine.publish({"id": "e", "price": 1, "new": 2}) == ["ana"]


@pytest.mark.usefixtures("small_schema")
def test_a_schema_in_which_live_events_hold_all_room_still_takes_subscriptions():
    engine = Engine(clock=None)
    for number in range(5):
        engine.publish({"id": number, **junk(number)}, until=100, time=0)
    with pytest.raises(RecordError, match="no subscription asks for"):
        engine.publish({"id": "no room", **junk("more")})
    assert engine.subscribe("ana", "junk0_7 = 7 AND colour IS NULL") == Changes(added=["0"])
    engine.publish({"id": "time passes"}, time=100)
    with pytest.raises(RecordError):  # room is looked for after a refusal, not before
        engine.publish({"id": "later", **junk("more")})
    assert engine.publish({"id": "later", **junk("more")}) == []
    assert len(engine.schema) < 500


def test_a_conflict_with_an_event_that_is_remembered_names_both():
    engine = Engine(clock=None)
    engine.publish({"id": "e1", "price": "cheap"})
    with pytest.raises(TypeConflictError, match=r"number in .*but a string in event 'e1'"):
        engine.subscribe("ana", "price < 300")


@pytest.mark.parametrize("index", ["scan", "ap_tree", "mo_tree", "be_star_tree", "mics"])
def test_forgetting_what_nobody_has_changes_no_answer(index, monkeypatch, tmp_path):
    monkeypatch.setattr(schema_module, "MANY_NEW", 6)
    random = Random(5)
    forgetting = Engine(index, clock=None)
    keeping = Engine(index, clock=None, schema=Schema())
    names = [f"{kind}{n}" for kind in ("number", "string") for n in range(40)]

    def value(name):
        return random.randrange(3) if name.startswith("number") else random.choice("abc")

    def asked():
        chosen = random.sample(names, 2)
        return " AND ".join(f"{name} = {value(name)!r}" for name in chosen)

    forgotten = 0
    for seq in range(400):
        id = f"s{random.randrange(12)}"
        match random.randrange(6):
            case 0:
                record = {"op": "subscribe", "id": id, "expression": asked(), "time": seq}
            case 1:
                record = {"op": "unsubscribe", "id": id, "time": seq}
            case _:
                some = {name: value(name) for name in random.sample(names, 30)}
                until = random.choice([None, seq + 4])
                record = {"op": "publish", "id": f"e{seq}", "time": seq, "until": until, **some}
        before = len(forgetting.schema)
        first, second = (one.step([record])[0] for one in (forgetting, keeping))
        assert repr(first) == repr(second)
        forgotten += len(forgetting.schema) < before
        if seq == 200:
            forgetting.save(tmp_path / "saved")
            forgetting = Engine.open(tmp_path / "saved", clock=None)
    assert forgotten > 10
