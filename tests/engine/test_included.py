"""What subscribers are told: attributes that were chosen, the owner, the alternative that holds."""

import json
import re

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import stentor
from stentor.errors import SettingsError
from stentor.language.evaluate import evaluate
from stentor.language.parser import parse
from stentor.model import Constant, Range
from stentor.wire.events import event_from_dict, event_to_dict
from tests.support import grid, strategies

pytestmark = pytest.mark.filterwarnings("ignore::stentor.errors.NeverMatchesWarning")


def told(table):
    return table.select(["event", "subscription", "owner", "alternative", "attributes"]).to_pylist()


def shop():
    engine = stentor.Engine(clock=None)
    engine.subscribe("ana", "price < 300 OR brand = 'acme'", owner="a")
    engine.subscribe("bo", "price > 300 OR size > 9 OR brand = 'acme'")
    return engine


def test_a_delivery_tells_the_chosen_attributes_the_owner_and_the_alternative():
    events = [
        {"id": "e1", "price": 280, "brand": "acme", "loc": [1.0, 2.0]},
        {"id": "e2", "price": 500, "brand": "zed"},
        {"id": "e3", "price": 300},
    ]
    rows = told(shop().publish_batch(events, include=["price", "loc", "colour"]).matches)
    for row in rows:
        row["attributes"] = json.loads(row["attributes"])
    first = {"price": 280, "loc": [1.0, 2.0]}
    engine = shop()
    assert [(row["event"], row["subscription"], row["owner"]) for row in rows] == [
        *(("e1", "ana", "a"), ("e1", "bo", None), ("e2", "bo", None))
    ]
    assert [row["attributes"] for row in rows] == [first, first, {"price": 500}]
    held = [engine.alternatives(row["subscription"])[row["alternative"]] for row in rows]
    assert held[2] == "price > 300"
    everything = shop().publish_batch(events, include="all").matches["attributes"][0].as_py()
    assert json.loads(everything) == {"price": 280, "brand": "acme", "loc": [1.0, 2.0]}
    assert "owner" not in shop().publish_batch(events).matches.column_names


def test_updates_tell_what_the_event_is_now_and_withdrawals_whom_they_concern():
    engine = shop()
    records = [
        {"op": "update", "id": "tv", "price": 100},
        {"op": "update", "id": "tv", "price": 400},
        {"op": "update", "id": "tv", "price": 401},
        {"op": "subscribe", "id": "cy", "expression": "price > 9"},
        {"op": "withdraw", "id": "tv"},
        {"op": "publish", "id": "x", "price": 1},
    ]
    report = engine.step(records, include="all")
    found = [
        (row["record"], row["subscription"], row["change"], row["alternative"], row["attributes"])
        for row in report.changes.to_pylist()
    ]
    assert found == [
        (0, "ana", "entered", found[0][3], '{"price":100}'),
        (1, "bo", "entered", found[1][3], '{"price":400}'),
        (1, "ana", "left", None, '{"price":400}'),
        (3, "cy", "added", None, None),
        (4, "bo", "left", None, None),
        (4, "cy", "left", None, None),
    ]
    assert engine.alternatives("ana")[found[0][3]] == "price < 300"
    assert told(report.stayed)[0]["attributes"] == '{"price":401}'
    assert told(report.matches)[0]["owner"] == "a"
    again = engine.update_batch([{"id": "tv", "price": 1}], include=["price"])
    assert again.changes["owner"].to_pylist() == ["a"]


@given(
    subscriptions=st.lists(strategies.subscriptions(), min_size=1, max_size=5),
    events=st.lists(strategies.events(), min_size=1, max_size=5),
    top=st.sampled_from([None, 2]),
)
def test_the_alternative_is_the_first_that_holds(subscriptions, events, top):
    engine = stentor.Engine(schema=grid.schema(), clock=None)
    for number, one in enumerate(subscriptions):
        engine.subscribe(f"s{number}", one.expression, at=one.at)
    raws = [{**event_to_dict(one), "id": f"e{number}"} for number, one in enumerate(events)]
    for raw in raws:
        raw.pop("until", None)
    assume("inf" not in f"{raws}")  # JSON and the language have no word for it
    report = engine.publish_batch(raws, top=top, include="all")
    plain = engine.publish_batch(raws, top=top)
    assert report.matches.select(plain.matches.column_names).equals(plain.matches)
    for row in report.matches.to_pylist():
        number = int(row["subscription"][1:])
        event = event_from_dict(raws[row["record"]], grid.schema())
        texts = engine.alternatives(row["subscription"])
        assume(not any(re.search(r"\binf\b", text) for text in texts))
        here = subscriptions[number].at
        holds = [
            evaluate(parse(text, schema=grid.schema()), event, here=here).truth for text in texts
        ]
        assert holds.index(True) == row["alternative"]
        again = event_from_dict(
            {"id": "x", "attributes": json.loads(row["attributes"])}, grid.schema()
        )
        assert pointed(again.attributes) == pointed(event.attributes)


def pointed(attributes):
    """*attributes* in which a range of one value is that value: so it is encoded."""
    return {
        name: Constant(one.kind, one.low) if isinstance(one, Range) and one.low == one.high else one
        for name, one in attributes.items()
    }


@pytest.mark.parametrize("wrong", ["price", 3, [3], [""], {"a": None}.values()])
def test_what_names_no_attributes_is_refused(wrong):
    with pytest.raises(SettingsError, match="include"):
        stentor.Engine().publish_batch([], include=wrong)


def test_a_table_tells_the_same_as_dicts():
    rows = [{"id": f"e{n}", "price": float(n), "brand": "acme"} for n in range(20)]
    table = pa.Table.from_pylist(rows)
    one, other = (shop().publish_batch(given, include=["brand"]) for given in (rows, table))
    assert one.matches.equals(other.matches)
