"""Owners and labels: who an event is for, who is listed, what is saved."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stentor
from stentor.engine import among
from stentor.errors import RecordError, SettingsError
from stentor.index.catalog import names
from stentor.model import Changes, EventChanges
from tests.support import grid, strategies
from tests.support.drawn_once import folder_in_memory, for_each
from tests.support.oracle import Oracle

every_index = pytest.mark.parametrize("index", names())


def tenants():
    engine = stentor.Engine(clock=None)
    for id, tenant, owner in (("a1", "acme", "ada"), ("a2", "acme", "bob"), ("b1", "bolt", "ada")):
        engine.subscribe(id, "price < 300", owner=owner, labels={"tenant": tenant})
    engine.subscribe("free", "price < 300")
    return engine


def test_an_event_is_for_those_alone_that_have_its_labels():
    engine = tenants()
    event = {"id": "e", "price": 1}
    assert engine.publish(event) == ["a1", "a2", "b1", "free"]
    assert engine.publish(event, among={"tenant": "acme"}) == ["a1", "a2"]
    assert engine.publish({**event, "among": {"tenant": "bolt"}}) == ["b1"]
    assert engine.publish(event, among={"tenant": "acme", "plan": "x"}) == []
    assert engine.publish({**event, "price": 900}, among={"tenant": "acme"}) == []
    report = engine.publish_batch(
        pa.table({"id": ["e", "f"], "price": [1, 2], "among": [{"tenant": "acme"}, None]})
    )
    assert list(report) == [["a1", "a2"], ["a1", "a2", "b1", "free"]]
    top = engine.publish_batch([{**event, "among": {"tenant": "acme"}}, event], top=1)
    assert list(top) == [["a1"], ["a1"]]


def test_a_live_event_is_found_by_those_alone_that_have_its_labels():
    engine = stentor.Engine(clock=None)
    engine.publish({"id": "e", "price": 1}, until=60, time=0, among={"tenant": "acme"})
    assert engine.event("e")["among"] == {"tenant": "acme"}
    assert engine.subscribe("free", "price < 2") == Changes()
    assert engine.subscribe("a", "price < 2", labels={"tenant": "acme"}) == Changes(["e"])
    assert engine.subscribe("a", "price < 2", labels={"tenant": "bolt"}) == Changes([], ["e"])
    assert engine.update({"id": "e", "price": 1}, until=60) == EventChanges(["a", "free"])
    assert engine.update({"id": "e", "price": 1}, until=60, among={"tenant": "bolt"}) == (
        EventChanges(left=["free"], stayed=["a"])
    )


def test_subscriptions_are_listed_and_ended_by_owner_and_labels():
    engine = tenants()
    assert engine.subscriptions() == ["a1", "a2", "b1", "free"]
    assert engine.subscriptions(owner="ada") == ["a1", "b1"]
    assert engine.subscriptions(labels={"tenant": "acme"}) == ["a1", "a2"]
    assert engine.subscriptions(owner="ada", labels={"tenant": "acme"}) == ["a1"]
    assert engine.subscriptions(owner="nobody") == []
    assert engine.get("a1")["owner"] == "ada"
    assert engine.unsubscribe_all(owner="ada") == ["a1", "b1"]
    assert engine.subscriptions() == ["a2", "free"]
    with pytest.raises(SettingsError):
        engine.unsubscribe_all()


def test_owners_and_labels_are_columns_of_tables():
    engine = stentor.Engine(clock=None)
    frame = pd.DataFrame(
        {
            "id": ["a", "b", "c"],
            "most": [1, 2, 3],
            "owner": ["ada", None, "ada"],
            "labels": [{"t": "x"}, {"t": "y"}, {"t": "x" * 600}],
        }
    )
    report = engine.subscribe_batch(frame, "price < :most")
    assert [type(one).__name__ for one in report] == ["Changes", "Changes", "RecordError"]
    assert engine.subscriptions(owner="ada") == ["a"]
    assert engine.publish({"id": "e", "price": 0}, among={"t": "y"}) == ["b"]


@pytest.mark.parametrize(
    "bad", [7, "acme", {"t": [1]}, {"": "x"}, {f"l{n}": "x" for n in range(99)}]
)
def test_what_is_no_label_is_refused(bad):
    engine = stentor.Engine(clock=None)
    with pytest.raises(RecordError):
        engine.subscribe("a", "TRUE", labels=bad)
    with pytest.raises(RecordError):
        engine.publish({"id": "e"}, among=bad)
    assert len(engine) == 0


@given(history=strategies.histories(labelled=True), event=strategies.events())
@for_each("index", ["scan", "ap_tree layered"])  # labels are beside the index
def test_saved_labels_are_those_that_were_given(index, history, event):
    engine, oracle = (
        stentor.Engine(index, schema=grid.schema(), clock=None),
        Oracle(schema=grid.schema()),
    )
    engine.step(history)
    oracle.answers(history)
    with folder_in_memory() as folder:
        engine.save(Path(folder, "engine"))
        opened = stentor.Engine.open(Path(folder, "engine"), clock=None)
    for labels in grid.LABELS:
        for one in (engine, opened):
            right = [id for id in oracle if labels.items() <= oracle[id].labels.items()]
            assert one.subscriptions(labels=labels) == right
    for owner in grid.OWNERS[1:]:
        right = [id for id in oracle if oracle[id].owner == owner]
        assert opened.subscriptions(owner=owner) == right
    later = strategies.replace(event, id="later", among=grid.LABELS[1], until=None)
    assert opened.publish(later) == oracle.answers([strategies.Publish(later)])[0]


@given(history=strategies.histories(labelled=True), share=st.sampled_from([0.0, 1.0]))
def test_a_large_share_is_found_by_the_index(history, share):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(among, "FEW_ROWS", 0)
        patch.setattr(among, "LARGE_SHARE", share)
        engine, oracle = (
            stentor.Engine(schema=grid.schema(), clock=None),
            Oracle(schema=grid.schema()),
        )
        answers = [one if not isinstance(one, Exception) else None for one in engine.step(history)]
        right = [one if not isinstance(one, Exception) else None for one in oracle.answers(history)]
        assert answers == right


def test_those_that_are_over_by_then_are_not_among_the_ended():
    engine = stentor.Engine(clock=None)
    for id, until in (("ana", None), ("ben", 5), ("cem", None)):
        engine.subscribe(id, "TRUE", owner="acme", until=until, time=1)
    assert engine.unsubscribe_all("acme", time=9) == ["ana", "cem"]
    assert list(engine) == []
