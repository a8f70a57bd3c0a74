"""Packed at its limits, large: 20,000 subscriptions, or STENTOR_SOAK_OPERATIONS of them."""

import os

import numpy as np
import pytest

from stentor.encoding.ragged import take
from stentor.index.catalog import structure_class
from stentor.index.packed import insert
from stentor.index.table import SubscriptionTable
from stentor.model import Schema
from tests.support.workloads import encoded, encoded_events

SIZE = int(os.environ.get("STENTOR_SOAK_OPERATIONS", "20000"))
#: Events with so many words, at most.
KEYS = min(100_000, 5 * SIZE)
DISTINCT = 2_000
SCHEMA = {"text": "string", "city": "string", "a": "number", "b": "number", "loc": "point"}
PREFIX = "y" * 400

#: Texts that are repeated until there are enough, and the events they are asked by.
LIMITS = {
    "one event matches everything": (
        ["a > 0 AND b < 9", "a < 5"],
        [{"a": 1, "b": 2}, {"a": 9, "b": 20}],
    ),
    "all are equal": (
        ["has_all(text, 'tea') AND a BETWEEN 1 AND 2 AND city = 'Oslo'"],
        [{"text": "tea", "a": 1, "city": "Oslo"}, {"text": "tea", "a": 3, "city": "Oslo"}],
    ),
    "one key is shared by all": (
        [f"has_all(text, 'tea') AND a BETWEEN {n} AND {n + 9}" for n in range(DISTINCT)],
        [{"text": "tea", "a": a} for a in (-1, 0, 700.5, 9e9)],
    ),
    "everybody is in one place": (
        [f"ST_Within(loc, ST_MakeEnvelope(0, 0, 1, {1 + n % 2})) AND a < {n}" for n in range(9)],
        [{"loc": [x, y], "a": 4} for x in (0, 1, 1.5) for y in (1, 2, 2.5)],
    ),
    "bounds ascend": (
        [f"a BETWEEN {n} AND {n + 7} AND b > {n % 5}" for n in range(DISTINCT)],
        [{"a": a, "b": 3} for a in (-1, 6.5, 1000, DISTINCT + 6, DISTINCT + 7)],
    ),
    "bounds descend": (
        [f"a BETWEEN {n} AND {n + 7} AND b > {n % 5}" for n in range(DISTINCT, 0, -1)],
        [{"a": a, "b": 3} for a in (0, 6.5, 1000, DISTINCT + 7, DISTINCT + 8)],
    ),
    "strings have one long common prefix": (
        [f"city >= '{PREFIX}{n}' AND a < {n}" for n in range(99)]
        + [f"city = '{PREFIX}{n}'" for n in range(99)],
        [{"city": PREFIX + str(n), "a": 50} for n in ("", 7, 98, 980)],
    ),
    "events have ranges and sets": (
        [f"a = {n} AND b > {n % 7}" for n in range(DISTINCT)] + ["city IN ('Oslo', 'Rome')"],
        [{"a": {"low": 5, "high": 40}, "b": {"low": 2, "high": 6}}, {"city": "Rome", "a": 5}],
    ),
    "there are more attributes than a record holds": (
        [" AND ".join(f"x{(n + 7 * k) % 60} < {k}" for k in range(1, 31)) for n in range(60)],
        [{f"x{n}": low for n in range(60)} for low in (0, 3, 31)],
    ),
}


def agree(index, scan, events):
    found, expected = index.match(events), scan.match(events)
    assert np.array_equal(found.starts, expected.starts)
    assert np.array_equal(found.rows, expected.rows)
    for k in (1, 2_000):
        best, right = index.top(events, k), scan.top(events, k)
        assert all(np.array_equal(one, other) for one, other in zip(best, right, strict=True))
    return len(expected.rows)


@pytest.mark.parametrize("home", ["cost", "lists", "nodes", "blocks"])
@pytest.mark.parametrize("limit", LIMITS)
def test_the_limits_hold_for_many_subscriptions(limit, home):
    texts, records = LIMITS[limit]
    schema = Schema.declare({**SCHEMA, **{f"x{n}": "number" for n in range(60)}})
    columns = take(encoded(texts, schema), np.resize(np.arange(len(texts)), SIZE))
    index = structure_class(f"packed pending=0 home={home}").build(columns)
    events = encoded_events([{"id": f"e{n}", **one} for n, one in enumerate(records)], schema)
    assert agree(index, structure_class("scan").build(columns), events)


def test_an_event_of_many_keys():
    schema, random = Schema.declare(SCHEMA), np.random.default_rng(1)
    words = [f"w{n}" for n in range(KEYS)]
    texts = [f"has_all(text, '{' '.join(random.choice(words, 3))}')" for _ in range(DISTINCT)]
    columns = take(encoded(texts, schema), np.resize(np.arange(DISTINCT), SIZE))
    index = structure_class("packed").build(columns)
    events = [{"id": "e", "text": " ".join(words)}, {"id": "f", "text": "w1 w2"}]
    scan = structure_class("scan").build(columns)
    assert agree(index, scan, encoded_events(events, schema)) >= SIZE


def test_an_index_that_grows_moves_and_shrinks_stays_small():
    schema, random = Schema.declare(SCHEMA), np.random.default_rng(2)
    texts = [
        f"has_all(text, 'w{n % 700}') AND ST_DWithin(loc, here(), 2000)" if n % 3 else f"a > {n}"
        for n in range(DISTINCT)
    ]
    shapes = encoded(texts, schema, np.zeros((DISTINCT, 2)))
    table = SubscriptionTable()
    table.append(take(shapes, np.resize(np.arange(DISTINCT), SIZE)))
    table.move(np.arange(SIZE), random.uniform(0, 1, (SIZE, 2)))
    index, scan = structure_class("packed")(), structure_class("scan")()
    for part in np.array_split(np.arange(SIZE), 400):
        for one in (index, scan):
            one.insert(take(table.columns, part))
        assert len(index._segments.all) <= insert.MOST_SEGMENTS + 1
    for step in range(40):
        rows = random.choice(SIZE, SIZE // 20, replace=False)
        to = index.positions(rows) + random.normal(0, (0.001, 0.3)[step % 2], (len(rows), 2))
        for one in (index, scan):
            one.move(rows, to)
        index.wait()
        assert index._segments.size <= 3 * SIZE
        assert len(index._segments.all) <= 40
    events = encoded_events(
        [
            {
                "id": f"e{n}",
                "text": f"w{n} w{7 * n % 700}",
                "loc": random.uniform(0, 1, 2).tolist(),
                "a": n,
            }
            for n in range(40)
        ],
        schema,
    )
    assert agree(index, scan, events)
    gone = np.arange(SIZE - 2_000)
    for one in (index, scan):
        one.remove(gone)
    index.wait()
    index.remove(gone[:1])
    index.wait()
    assert index._segments.size <= 6_000
    index.check()
    agree(index, scan, events)
