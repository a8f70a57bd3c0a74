"""Packed at the limits of its memory: frontiers, lists and outputs that grow by retry."""

import numpy as np
import pytest

from stentor.encoding.columns import read_only_columns
from stentor.encoding.ragged import take
from stentor.index.catalog import structure_class
from stentor.index.packed import index as packed_index
from stentor.model import Schema, Scoring
from tests.support.workloads import encoded, encoded_events

HOMES = ["packed pending=0", "packed pending=0 home=nodes", "packed pending=0 home=blocks"]
every_home = pytest.mark.parametrize("name", HOMES)
SCHEMA = {"text": "string", "city": "string", "a": "number", "b": "number", "loc": "point"}
random = np.random.default_rng(5)


def schema_of(**more):
    return Schema.declare({**SCHEMA, **more})


def agree(name, columns, events):
    """Assert that *name* says what the scan says, all and the best; how many matches there are."""
    index, scan = structure_class(name).build(columns), structure_class("scan").build(columns)
    index.check()
    expected = scan.match(events)
    found = index.match(events)
    assert np.array_equal(found.starts, expected.starts)
    assert np.array_equal(found.rows, expected.rows)
    for k, scoring in ((1, Scoring.SUM), (3000, Scoring.MAX)):
        best, right = index.top(events, k, scoring=scoring), scan.top(events, k, scoring=scoring)
        assert all(np.array_equal(one, other) for one, other in zip(best, right, strict=True))
    return len(expected.rows)


def repeated(texts, schema, count):
    """*count* subscriptions: those of *texts*, again and again."""
    columns = encoded(texts, schema)
    return take(columns, np.resize(np.arange(len(texts)), count).astype(np.int64))


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(packed_index, "FIRST_CAPACITY", 1)
    monkeypatch.setattr(packed_index, "MOST_CAPACITY", 5_000)


@every_home
def test_one_event_matches_everything(name, little_memory):
    schema = schema_of()
    columns = repeated(["a > 0 AND b < 9", "a < 5", "b >= 1 AND b <= 4"], schema, 12_000)
    events = [{"id": "e", "a": 1, "b": 2}, {"id": "f", "a": 9, "b": 0}, {"id": "g"}]
    assert agree(name, columns, encoded_events(events, schema)) == 16_000


@every_home
def test_equal_subscriptions_and_an_event_that_fails_the_last_predicate(name):
    schema = schema_of()
    text = "has_all(text, 'tea') AND a BETWEEN 1 AND 2 AND b < 5 AND city = 'Oslo'"
    columns = repeated([text], schema, 6_000)
    event = {"id": "e", "text": "tea", "a": 1, "b": 4, "city": "Oslo"}
    others = [{**event, "b": 5}, {**event, "city": "Rome"}, {**event, "text": "coffee"}]
    assert agree(name, columns, encoded_events([event, *others], schema)) == 6_000


def test_an_event_of_100_000_keys():
    words = [f"w{n}" for n in range(100_000)]
    schema = schema_of()
    texts = [f"has_all(text, '{' '.join(random.choice(words, 3))}')" for _ in range(500)]
    texts += [f"has_any(text, '{' '.join(random.choice(words, 9))}') AND a > 1" for _ in range(99)]
    events = [{"id": "e", "text": " ".join(words), "a": 2}, {"id": "f", "text": "w1 w2"}]
    assert agree("packed pending=0", encoded(texts, schema), encoded_events(events, schema)) >= 599


@every_home
def test_an_event_of_thousands_of_attributes(name):
    names = [f"x{n}" for n in range(3_000)]
    schema = Schema.declare(dict.fromkeys(names, "number"))
    texts = [
        " AND ".join(f"{one} BETWEEN {n % 3} AND 5" for one in random.choice(names, 4))
        for n in range(900)
    ]
    events = [{"id": "e", **dict.fromkeys(names, 3)}, {"id": "f", **dict.fromkeys(names[::2], 1)}]
    assert agree(name, encoded(texts, schema), encoded_events(events, schema)) >= 900


@every_home
@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
def test_any_order_of_bounds(name, order):
    schema = schema_of()
    low = {"ascending": np.arange(2_000), "descending": np.arange(2_000)[::-1]}
    numbers = low.get(order, random.permutation(2_000))
    columns = encoded([f"a BETWEEN {n} AND {n + 7} AND b > {n % 5}" for n in numbers], schema)
    events = [{"id": "e", "a": a, "b": 3} for a in (-1, 0, 6.5, 7, 1000, 2006, 2007)]
    assert agree(name, columns, encoded_events(events, schema))


@every_home
def test_everybody_in_one_location(name):
    schema = schema_of()
    texts = [f"ST_Within(loc, ST_MakeEnvelope(0, 0, 1, {1 + n % 2})) AND a < {n}" for n in range(9)]
    columns = repeated(texts, schema, 3_000)
    events = [{"id": "e", "loc": [x, y], "a": 4} for x in (0, 1, 1.5) for y in (0, 1, 2, 2.5)]
    assert agree(name, columns, encoded_events(events, schema))


def signature_bit(code):
    """What `lists/pack.py` says, which only kernels can call."""
    return (code * 0x9E3779B97F4A7C15 % 2**64) >> 58


def test_words_that_all_have_the_same_bit_of_a_signature():
    """Codes are given in the order in which words come."""
    words = [f"w{n}" for n in range(4_000)]
    same = [words[n] for n in range(4_000) if signature_bit(n + 1) == signature_bit(1)]
    assert len(same) > 40
    schema = schema_of()
    texts = [f"has_all(text, '{word}')" for word in words]
    texts += [f"has_all(text, '{' '.join(random.choice(same, 3))}')" for _ in range(2_000)]
    events = [
        {"id": "e", "text": " ".join(random.choice(same, size, replace=False))}
        for size in (1, 3, 20, 40)
    ]
    assert agree("packed pending=0", encoded(texts, schema), encoded_events(events, schema))


@every_home
def test_strings_with_one_long_common_prefix_by_order_and_equality(name):
    schema, prefix = schema_of(), "y" * 400
    texts = [f"city = '{prefix}{n}' AND a < {n}" for n in range(400)]
    texts += [f"city > '{prefix}{n}' AND city <= '{prefix}{n + 1}'" for n in range(400)]
    events = [{"id": "e", "city": f"{prefix}{n}", "a": 7} for n in (0, 7, 8, 399, 400)]
    events.append({"id": "f", "city": prefix})
    assert agree(name, encoded(texts, schema), encoded_events(events, schema))


@every_home
def test_ranges_in_events_and_more_predicates_than_a_record_holds(name):
    names = [f"x{n}" for n in range(50)]
    schema = Schema.declare(dict.fromkeys(names, "number"))
    texts = []
    for n in range(700):
        chosen = random.choice(names, 24, replace=False)
        texts.append(" AND ".join(f"{one} BETWEEN {n % 4} AND {n % 4 + 5}" for one in chosen))
    events = [
        {"id": "e", **{one: {"low": low, "high": low + wide} for one in names}}
        for low in (0, 3, 7.5, 9)
        for wide in (0, 0.5, 4)
    ]
    assert agree(name, encoded(texts, schema), encoded_events(events, schema))


@every_home
def test_sets_in_events_and_a_key_that_all_share(name):
    schema = schema_of(tags="set")
    texts = [f"array_contains(tags, 't{n % 3}') AND a < {n}" for n in range(300)]
    texts += [f"array_contains(tags, 'all') AND array_contains(tags, {n})" for n in range(300)]
    events = [
        {"id": "e", "a": 150, "tags": ["t0", "all", 7]},
        {"id": "f", "a": 1, "tags": [*range(300), "all"]},
        {"id": "g", "tags": []},
        {"id": "h", "a": 3},
    ]
    assert agree(name, encoded(texts, schema), encoded_events(events, schema)) >= 350


@every_home
def test_weights_of_nothing_and_of_everything(name):
    schema = schema_of()
    columns = encoded([f"a > {n % 7} AND b < {n % 5 + 3}" for n in range(900)], schema)
    events = encoded_events(
        [
            {"id": "e", "a": 5, "b": 2, "weights": {"a": 0, "b": 0}},
            {"id": "f", "a": 5, "b": 2, "weights": {"a": 1e6, "b": 1e-9, "city": 1e6}},
        ],
        schema,
    )
    for weight in (np.zeros(1), np.array([0.0, 1e6]), np.array([1e-300, 3.0, 1e6])):
        spread = np.resize(weight, len(columns.weight))
        assert agree(name, read_only_columns(columns._replace(weight=spread)), events)
