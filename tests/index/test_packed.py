"""Packed at its limits: the same as the scan, wherever an array, a list or a record is full."""

import numpy as np
import pyarrow as pa
import pytest

from stentor import Engine
from stentor.encoding.events import TimedEvent, encode_events
from stentor.errors import StentorError
from stentor.index import catalog
from stentor.index.catalog import index_class, structure_of
from stentor.index.packed import index as packed_index
from stentor.language.parser import parse
from stentor.model import Event, Schema, Subscription
from tests.support.slow_index import SlowIndex, encoded, rows_by_event

ALL_IN_HOMES = "packed pending=0"
random = np.random.default_rng(7)


def answers(index, subscriptions, events):
    """What an engine with *index* says of *events*, together and one by one."""
    engine = Engine(index, clock=None)
    change(
        engine,
        "subscribe",
        [{"id": f"s{number}", "expression": text} for number, text in enumerate(subscriptions)],
    )
    records = [{"id": f"e{number}", **event} for number, event in enumerate(events)]
    together = change(engine, "publish", records)
    engine._state.index.check()
    single = [list(engine.publish({**record, "id": f"one-{record['id']}"})) for record in records]
    assert single == together
    return together


def change(engine, op, records):
    """Feed *records* to *engine* at once; what it answers."""
    answered = list(engine.step([{"op": op, **record} for record in records]))
    assert not any(isinstance(one, StentorError) for one in answered), answered
    return [list(one or ()) for one in answered]


def agree(subscriptions, events, index=ALL_IN_HOMES):
    """Assert that packed says what the scan says; how many matches there are."""
    found = answers(index, subscriptions, events)
    assert found == answers("scan", subscriptions, events)
    return sum(map(len, found))


@pytest.fixture
def little_memory(monkeypatch):
    """Let everything that grows by retry begin with next to nothing."""
    monkeypatch.setattr(packed_index, "FIRST_CAPACITY", 1)
    monkeypatch.setattr(packed_index, "MOST_CAPACITY", 64)


def test_an_event_that_everybody_wants_and_one_that_fails_at_the_last_predicate(little_memory):
    same = ["has_all(text, 'tea') AND a = 1 AND b BETWEEN 0 AND 10 AND c < 5"] * 700
    event = {"text": "green tea", "a": 1, "b": 3, "c": 4}
    assert agree(same, [event, {**event, "c": 5}, {**event, "text": "coffee"}, event]) == 1400


def test_one_key_shared_by_all_and_bounds_that_touch():
    texts = [f"has_all(text, 'tea') AND a >= {n % 40} AND a <= {n % 40 + 2}" for n in range(600)]
    events = [{"text": "tea", "a": a} for a in (-1, 0, 1, 2, 2.5, 39, 40, 41, 41.5, 100)]
    assert agree(texts, events)


def test_an_event_of_thousands_of_words_and_subscriptions_of_many():
    words = [f"w{n}" for n in range(3000)]
    texts = [f"has_all(text, '{' '.join(random.choice(words, 40))}')" for _ in range(60)]
    texts += [f"has_any(text, '{' '.join(random.choice(words, n))}')" for n in range(2, 40)]
    assert agree(texts, [{"text": " ".join(words)}, {"text": " ".join(words[::2])}, {"text": ""}])


def test_sets_of_strings_and_numbers_and_whatever_is_not_filed_by_its_keys():
    texts = [
        f"city IN ({', '.join(repr(f'c{n % 9 + m}') for m in range(n % 20 + 1))})"
        for n in range(90)
    ]
    texts += [f"a IN ({', '.join(str(n % 7 + m) for m in range(n % 20 + 1))})" for n in range(90)]
    texts += [f"NOT city = 'c{n}' AND a <> {n}" for n in range(9)]
    texts += ["city LIKE 'c1%'", "city IS NULL", "a IS NOT NULL AND city IS NULL", "city > 'c5'"]
    events = [{"city": f"c{n}", "a": n} for n in range(25)] + [{"a": 3}, {"city": "c3"}, {}]
    assert agree(texts, events)


def test_strings_with_one_long_common_prefix():
    prefix = "x" * 300
    texts = [f"city = '{prefix}{n}' AND a < {n}" for n in range(200)]
    events = [{"city": f"{prefix}{n}", "a": a} for n in (0, 7, 199, 200) for a in (0, 6.5, 7, 500)]
    assert agree(texts, [*events, {"city": prefix, "a": 0}])


def test_ranges_in_events_meet_equalities_and_bounds():
    texts = [f"a = {n}" for n in range(80)] + [f"a > {n} AND a < {n + 1}" for n in range(80)]
    texts += [f"a = {n} AND a = {n + 3}" for n in range(20)]
    events = [{"a": {"low": n, "high": n + width}} for n in (0, 3.5, 70) for width in (0, 0.2, 4)]
    assert agree(texts, events)


def test_more_attributes_than_a_record_of_a_block_holds():
    names = [f"a{n}" for n in range(60)]
    texts = []
    for _ in range(900):
        chosen = random.choice(names, 30, replace=False)
        texts.append(" AND ".join(f"{one} < {random.integers(2, 9)}" for one in chosen))
    events = [{name: int(random.integers(0, 3)) for name in names} for _ in range(12)]
    assert agree(texts, events)


@pytest.mark.parametrize("order", [1, -1])
def test_everybody_in_one_location_in_either_order(order):
    texts = [
        f"ST_Within(loc, ST_MakeEnvelope(0, 0, {1 + n % 3}, 1)) AND a < {n}" for n in range(800)
    ][::order]
    events = [{"loc": [x, 1], "a": 400} for x in (0, 1, 1.0000001, 2, 3, 3.5)]
    assert agree(texts, events)


def test_perturbed_events_find_no_near_miss():
    values = random.integers(0, 12, (1500, 4))
    texts = [
        f"a = {a} AND b >= {b} AND b <= {b + 1} AND c < {c}.5 AND d <> {d}" for a, b, c, d in values
    ]
    events = [
        {name: float(value) + move for name, value in zip("abcd", row, strict=True)}
        for row in values[:40]
        for move in (0.0, 1e-9, -1e-9)
    ]
    assert agree(texts, events)


def test_words_whose_hashes_are_equal_are_told_apart_by_their_bytes():
    texts = [Subscription(f"s{n}", parse(f"has_all(text, 'w{n % 5} w{n % 3}')")) for n in range(90)]
    events = [TimedEvent(Event(f"e{n}", {"text": f"w{n % 5} w{n % 4}"})) for n in range(20)]
    schema = Schema.declare({"text": "string"})
    columns, encoded_events = encoded(texts, schema), encode_events(events, schema)
    equal = np.uint64(12345)
    columns = columns._replace(string_hash=np.full_like(columns.string_hash, equal))
    encoded_events = encoded_events._replace(
        term_hash=np.full_like(encoded_events.term_hash, equal)
    )
    found = index_class(ALL_IN_HOMES).build(columns).match(encoded_events)
    assert rows_by_event(found) == SlowIndex(texts).match(events)


def test_what_is_inserted_removed_and_moved_while_segments_are_merged():
    engine, plain = Engine("packed pending=8 foreground=20", clock=None), Engine("scan", clock=None)
    for start in range(0, 240, 30):
        rows = [
            {
                "id": f"s{n}",
                "at": [n % 10, 0],
                "expression": f"ST_DWithin(loc, here(), {50000 + n}) OR a = {n % 12}",
            }
            for n in range(start, start + 30)
        ]
        moves = [{"id": f"s{n}", "at": [(n * 7) % 13, 0]} for n in range(0, start, 5)]
        gone = [{"id": f"s{n}"} for n in range(start - 30, start, 7) if n >= 0]
        events = [{"id": f"e{start}-{x}", "loc": [x, 0], "a": x} for x in range(12)]
        for one in (engine, plain):
            change(one, "subscribe", rows)
            change(one, "unsubscribe", gone)
            change(one, "move", [move for move in moves if move["id"] in one])
        assert change(engine, "publish", events) == change(plain, "publish", events)
        engine._state.index.check()
    engine._state.index.wait()
    engine._state.index.check()


def test_an_explanation_says_which_home_an_alternative_lies_in(tmp_path):
    engine = Engine(ALL_IN_HOMES, clock=None)
    texts = [f"city = 'c{n}' OR a BETWEEN 1 AND {n}" for n in range(600)]
    change(engine, "subscribe", [{"id": f"s{n}", "expression": t} for n, t in enumerate(texts)])
    explained = engine.explain("s7", {"id": "e", "a": 3})
    assert explained.homes == ("lists", "blocks")
    assert str(explained).endswith("\n  in lists, blocks")
    engine._state.index.check()
    engine.save(tmp_path / "saved")
    opened = Engine.open(tmp_path / "saved")
    assert opened.explain("s7", {"id": "e", "a": 3}).homes == ("lists", "blocks")
    waiting = Engine("packed", clock=None)
    waiting.subscribe("s", "a = 1")
    assert waiting.explain("s", {"id": "e", "a": 1}).homes == ("pending",)
    plain = Engine("scan", clock=None)
    plain.subscribe("s", "a = 1")
    assert plain.explain("s", {"id": "e", "a": 1}).homes == ()


def test_auto_goes_on_to_packed_by_itself_and_stays_auto_when_saved(monkeypatch, tmp_path):
    monkeypatch.setattr(catalog, "_MANY", 50)
    engine = Engine(clock=None)
    for n in range(49):
        engine.subscribe(f"s{n}", f"a = {n}")
    assert structure_of(type(engine._state.index)).name == "scan"
    engine.subscribe("s49", "a = 49")
    assert structure_of(type(engine._state.index)).name == "packed"
    assert engine.publish({"id": "e", "a": 49}) == ["s49"]
    engine.save(tmp_path / "engine")
    opened = Engine.open(tmp_path / "engine", clock=None)
    assert structure_of(type(opened._state.index)).name == "packed"
    assert opened._index == "auto"
    assert opened.publish({"id": "e2", "a": 7}) == ["s7"]


@pytest.mark.parametrize("form", ["has_any(text, {})", "text IN ({})", "price IN ({})"])
@pytest.mark.parametrize("words", [16, 17, 90])
def test_a_list_of_any_length_is_found_by_its_members(form, words):
    draw = np.random.default_rng(5)
    quote = "{}" if "price" in form else "'w{}'"
    lists = draw.integers(0, 9000 * words, (3000, words)).tolist()
    engine = Engine(ALL_IN_HOMES)
    engine.subscribe_batch(
        pa.table(
            {
                "id": [str(row) for row in range(len(lists))],
                "expression": [form.format(", ".join(map(quote.format, some))) for some in lists],
            }
        )
    )
    asked = [some[-1] for some in lists[:50]]
    events = {"id": [f"e{row}" for row in range(50)]}
    events |= {"price": asked} if "price" in form else {"text": [f"w{one}" for one in asked]}
    report = engine.publish_batch(pa.table(events), candidates=True)
    assert list(report) == [
        sorted(str(row) for row, some in enumerate(lists) if one in some) for one in asked
    ]
    assert report.candidates.sum() <= 2 * report.matches.num_rows
