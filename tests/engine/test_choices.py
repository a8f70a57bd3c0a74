"""Events that are one of several: sets of alternatives and what is excluded, through every door."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor import Engine
from stentor.encoding.choices import spread_choices, with_choices
from stentor.encoding.event_back import event_of
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.ragged import concatenate, take
from stentor.errors import RecordError
from stentor.language.evaluate import evaluate
from stentor.language.parser import parse
from stentor.model import Constant, Event, Kind, OneOf, Range, Schema
from stentor.model.values import read_value
from stentor.wire.cells import read_cells
from stentor.wire.events import event_from_dict, event_to_dict, plain
from stentor.wire.limits import RecordLimits
from tests.support import grid, strategies

RED_OR_BLUE = {"in": ["red", "blue"]}


def numbers(*values):
    return tuple(Constant(Kind.NUMBER, float(one)) for one in values)


@pytest.mark.parametrize(
    ("text", "event", "expected"),
    [
        ("color = 'red'", {"color": RED_OR_BLUE}, True),
        ("color != 'red'", {"color": RED_OR_BLUE}, True),
        ("color != 'red' AND color != 'blue'", {"color": RED_OR_BLUE}, False),
        ("color LIKE 'r%' AND color LIKE '%e'", {"color": RED_OR_BLUE}, False),
        ("has_all(color, 'red blue')", {"color": RED_OR_BLUE}, False),
        ("NOT has_any(color, 'red')", {"color": RED_OR_BLUE}, True),
        ("color = 'red' AND size = 1", {"color": RED_OR_BLUE, "size": {"in": [1, 2]}}, True),
        ("price > 5 AND price < 7", {"price": {"in": [4, 8]}}, False),
        ("price > 5 AND price < 7", {"price": {"not": 6}}, True),
        ("price = 6", {"price": {"not": 6}}, False),
        ("price IN (6, 7)", {"price": {"not_in": [6, 7]}}, False),
        ("price IN (6, 8)", {"price": {"not_in": [6, 7]}}, True),
        ("flag = true", {"flag": {"not": True}}, False),
        ("price IS NULL", {"price": {"not": 6}}, False),
    ],
)
def test_some_one_value_satisfies_all_that_is_asked_of_its_attribute(text, event, expected):
    expression, raw = parse(text), {"id": "e", **event}
    assert bool(evaluate(expression, event_from_dict(raw, Schema())).truth) is expected
    engine = Engine(clock=None)
    engine.subscribe("s", text)
    ids = ["s"] if expected else []
    assert engine.publish(raw) == ids
    assert list(engine.publish_batch([raw])) == [ids]
    assert engine.matches(raw) == ids if hasattr(engine, "matches") else True
    assert bool(engine.explain("s", raw)) is expected


@given(st.lists(strategies.events(id="e", until=True), max_size=3))
def test_events_come_back_from_columns_as_they_were(events):
    schema = grid.schema()
    columns = encode_events([TimedEvent(one) for one in events], schema)
    twice = concatenate([columns, take(columns, with_choices(columns))])
    for row, event in enumerate(events):
        found = event_of(twice, row, "e", schema).attributes
        assert found == {
            name: Constant(one.kind, one.low)
            if isinstance(one, Range) and one.low == one.high
            else one
            for name, one in event.attributes.items()
        }


@given(strategies.events(id="e"))
def test_every_choice_is_an_event_that_has_one_of_the_values(event):
    schema = grid.schema()
    columns = encode_events([TimedEvent(event)], schema)
    choices, of = spread_choices(columns)
    assert not len(with_choices(choices))
    assert not of.any()
    seen = [event_of(choices, row, "e", schema) for row in range(len(of))]
    for name, value in event.attributes.items():
        if isinstance(value, OneOf):
            assert {one.attributes[name] for one in seen} == set(value.members)
    for row, one in enumerate(seen):
        alone = encode_events([TimedEvent(one)], schema)
        chosen = take(choices, np.array([row]))
        assert sorted(chosen.term_hash.tolist()) == sorted(alone.term_hash.tolist())
        assert sorted(chosen.term_bytes.tolist()) == sorted(alone.term_bytes.tolist())


@given(strategies.events(id="e"))
def test_a_dict_of_an_event_is_read_as_the_event(event):
    raw = event_to_dict(event)
    read = event_from_dict(raw, grid.schema())
    assert event_to_dict(read) == raw
    for name, value in event.attributes.items():
        if isinstance(value, OneOf):
            assert read.attributes[name] == value


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"in": [2, 1, 2.0]}, OneOf(Kind.NUMBER, numbers(1, 2))),
        ({"in": [2]}, Constant(Kind.NUMBER, 2.0)),
        ({"in": None, "low": 1}, Range(Kind.NUMBER, 1.0, float("inf"))),
        ({"in": None, "not": None}, None),
        ({"not": False}, Constant(Kind.BOOLEAN, 1.0)),
        ({"in": ["x"]}, Constant(Kind.STRING, "x")),
    ],
)
def test_an_object_says_what_a_value_may_be(raw, expected):
    assert read_value(raw) == expected


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"in": []}, "holds values of one kind, got none"),
        ({"in": [1, "a"]}, "holds values of one kind, got number and string"),
        ({"in": 5}, "holds an array of values"),
        ({"in": [[1]]}, "a value among several is a number"),
        ({"in": [None]}, "a value among several is a number"),
        ({"not_in": [True, False]}, "no value is left"),
        ({"not": "red"}, "all strings but some are no value of an event"),
        ({"not": float("inf")}, "an infinite number cannot be left out"),
        ({"in": [1], "low": 2}, "one of these, not in and low"),
        ({"low": "a", "high": "m"}, "a range goes between two numbers or two timestamps"),
    ],
)
def test_what_is_no_set_is_refused_with_a_sentence(raw, sentence):
    with pytest.raises(RecordError, match=sentence):
        read_value(raw, field="x")
    with pytest.raises(RecordError, match=sentence):
        Engine(clock=None).publish({"id": "e", "x": raw})


def test_an_event_of_the_model_has_no_other_ranges_than_all_but_some():
    ranges = (Range(Kind.NUMBER, 0.0, 1.0), Range(Kind.NUMBER, 5.0, 9.0))
    with pytest.raises(RecordError, match="names them, or is all but some"):
        Engine(clock=None).publish(Event("e", {"x": OneOf(Kind.NUMBER, ranges)}))


def test_an_event_has_a_limited_number_of_choices():
    limits = RecordLimits(choices=6)
    fine = {"id": "e", "a": {"in": [1, 2]}, "b": {"in": ["x", "y", "z"]}}
    assert event_from_dict(fine, Schema(), limits)
    with pytest.raises(RecordError, match="chosen in 8 ways; the limit is 6"):
        event_from_dict(
            {"id": "e", "a": {"in": [1, 2]}, "b": {"in": [*range(4)]}}, Schema(), limits
        )
    array = pa.array([{"in": [*range(7)]}, {"in": [1, 2]}])
    cells = read_cells(array, field="a", limits=limits)
    assert list(cells.reasons) == [0]
    assert list(cells.one_of) == [1]


ROWS = [
    {"id": "1", "color": RED_OR_BLUE, "price": {"not_in": [3, 5]}},
    {"id": "2", "color": {"in": ["green"]}, "price": {"low": 1, "high": 4}},
    {"id": "3", "color": None, "price": {"in": [3, 5]}},
    {"id": "4", "color": {"in": ["blue", "green"]}, "price": None},
]
WANTED = {
    "a": "color = 'blue'",
    "b": "price = 3",
    "c": "color != 'blue' AND price > 4",
    "d": "has_any(color, 'green')",
}
ANSWERS = [["a", "c"], ["b", "d"], ["b"], ["a", "d"]]


def wanting_engine(**settings):
    engine = Engine(clock=None, **settings)
    for id, text in WANTED.items():
        engine.subscribe(id, text)
    return engine


@pytest.mark.parametrize(
    "index", ["scan", "ap_tree", "be_star_tree", "mo_tree", "mics", "packed", "packed layered"]
)
def test_single_events_batches_and_live_events_agree_in_every_structure(index):
    engine = wanting_engine(index=index)
    assert [sorted(engine.publish(row)) for row in ROWS] == ANSWERS
    assert [sorted(one) for one in engine.publish_batch(ROWS)] == ANSWERS
    assert [sorted(one) for one in engine.publish_batch(pa.Table.from_pylist(ROWS))] == ANSWERS
    engine = Engine(clock=None, index=index)
    for row in ROWS:
        engine.publish({**row, "until": 1e9})
    for id, text in WANTED.items():
        wanted = [row["id"] for row, ids in zip(ROWS, ANSWERS, strict=True) if id in ids]
        assert sorted(engine.subscribe(id, text).added) == wanted
    passage = engine.update({**ROWS[0], "color": {"in": ["red", "green"]}, "until": 1e9})
    assert (sorted(passage.entered), sorted(passage.left)) == (["d"], ["a"])
    assert engine.event("4")["color"] == {"in": ["blue", "green"]}


def test_a_saved_folder_and_a_durable_one_keep_what_events_may_be(tmp_path):
    engine = Engine(clock=None)
    engine.publish({**ROWS[0], "until": 1e9})
    engine.save(tmp_path / "saved")
    durable = Engine.open(tmp_path / "durable", durable=True, clock=None)
    durable.publish({**ROWS[0], "until": 1e9})
    durable.close()
    for folder, settings in (("saved", {}), ("durable", {"durable": True})):
        opened = Engine.open(tmp_path / folder, clock=None, **settings)
        assert opened.event("1")["color"] == {"in": ["blue", "red"]}
        assert opened.event("1")["price"] == {"not_in": [3, 5]}
        assert opened.subscribe("a", "color = 'red'").added == ["1"]
        assert opened.subscribe("b", "price = 3 OR price = 5").added == []


def test_scores_and_the_first_alternative_are_those_of_the_best_choice():
    engine = Engine(clock=None)
    engine.subscribe("s", "weight(color = 'red', 2) OR weight(color = 'blue', 3)")
    engine.subscribe("t", "weight(color = 'red', 2.5)")
    assert engine.top({"id": "e", "color": RED_OR_BLUE}, 1) == [("s", 3.0)]


def test_the_object_of_a_null_and_another_name_is_nested_through_every_door():
    """`{"low": 1, "avg": null}` has the name of a range and one that no range has."""
    row = {"id": "1", "r": {"low": 1, "avg": None}}
    whole = {"id": "2", "r": {"low": 1, "high": None}}
    of = pa.struct([("low", pa.float64()), ("avg", pa.float64())])
    table = pa.table({"id": ["1"], "r": pa.array([row["r"]], of)})
    for event in (row, json.loads(json.dumps(row)), table):
        engine = Engine(clock=None)
        engine.subscribe("nested", "r.low < 5")
        batch = event if event is table else [event]
        assert list(engine.publish_batch(batch)) == [["nested"]]
    engine = Engine(clock=None)
    engine.subscribe("range", "r > 5")
    assert engine.publish(whole) == ["range"]


@given(strategies.events(id="e"))
def test_a_value_is_written_as_it_is_read(event):
    for value in event.attributes.values():
        if isinstance(value, OneOf):
            assert read_value(plain(value), value.kind) == value


@pytest.mark.parametrize("index", ["scan", "ap_tree"])
def test_a_safe_region_ends_where_some_choice_would_change_the_answer(index):
    found = []
    for color in ("red", RED_OR_BLUE):
        engine = Engine(clock=None, index=index)
        engine.subscribe("s", "ST_DWithin(loc, here(), 1000) AND color = 'red'", at=[0, 0])
        event = {"loc": [0, 0.03], "color": color, "until": 1e9}
        engine.publish({"id": "1", **event})
        region = engine.safe_region("s")
        nearer = engine.publish({"id": "2", **event, "loc": [0, 0.02]})
        found.append((region, list(nearer), nearer.shrunk, engine.move("s", [0, 0.021])))
    assert found[0] == found[1]


def test_a_reason_is_that_of_a_choice_and_none_where_some_choice_matches():
    engine = wanting_engine()
    assert [one for one in engine.why_not(ROWS[0], [*WANTED]) if one is None] == [None, None]
