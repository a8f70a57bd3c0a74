"""Nodes of packed: the same as the scan and `evaluate`, all matches and the k best."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.encoding.columns import read_only_columns
from stentor.index.catalog import index_class, structure_class
from stentor.index.packed.cost_model import choose_homes
from stentor.index.packed.lists import axes as list_axes
from stentor.model import Schema, Scoring
from tests.support.workloads import Profiles, encoded, encoded_events

NODES = "packed pending=0 home=nodes"


def same(left, right):
    return all(np.array_equal(one, other) for one, other in zip(left, right, strict=True))


def agree(columns, events, name=NODES, most=(1, 3, 40)):
    """Assert that *name* says what the scan says, in every way of asking; what matches."""
    index, scan = structure_class(name).build(columns), structure_class("scan").build(columns)
    index.check()
    matches = scan.match(events)
    assert same(index.match(events), matches)
    for k in most:
        for scoring in Scoring:
            expected = scan.top(events, k, scoring=scoring)
            assert same(index.top(events, k, scoring=scoring), expected)
            assert same(index.top(events, k, scoring=scoring, threads=2), expected)
    return matches


def weighted(columns, random, spread):
    """*columns* with other weights: by *spread* from all alike to far apart."""
    weight = random.lognormal(0.0, spread, len(columns.weight)) if spread else np.ones(1)
    return read_only_columns(columns._replace(weight=np.resize(weight, len(columns.weight))))


def weighted_events(events, random, spread):
    weight = random.lognormal(0.0, spread, len(events.attribute))
    return read_only_columns(
        events._replace(
            weight_start=events.value_start, weight_attribute=events.attribute, weight=weight
        )
    )


@pytest.mark.parametrize("spread", [0.0, 0.1, 1.5])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_weighted_expressions_with_near_misses(spread, alpha):
    random = np.random.default_rng(11)
    recipe = Profiles(dimensions=60, match_share=0.05, alpha=alpha, predicates=5, values=9)
    columns = weighted(recipe.subscriptions(900), random, spread)
    events = weighted_events(recipe.events(40), random, spread)
    is_moved = random.random(len(events.low)) < 0.2
    near = events.low + random.integers(-1, 2, len(events.low)) * is_moved
    moved = read_only_columns(events._replace(low=near, high=near))
    assert len(agree(columns, events).rows)
    agree(columns, moved)
    agree(columns, moved, "packed pending=0")


@st.composite
def worlds(draw):
    """Subscriptions and events that touch, miss by one, ask nothing, or everything."""
    seed, names = draw(st.integers(0, 2**32)), [f"a{n}" for n in range(draw(st.integers(1, 40)))]
    random = np.random.default_rng(seed)
    texts, span = [], draw(st.sampled_from([4, 7, 700]))
    for _ in range(draw(st.integers(1, 120))):
        chosen = random.choice(names, min(len(names), random.integers(1, 20)), replace=False)
        tests = []
        for name in chosen:
            low = int(random.integers(0, span))
            high = low + int(random.integers(0, span // 2))
            tests.append(
                random.choice(
                    [
                        f"{name} BETWEEN {low} AND {high}",
                        f"weight({name} BETWEEN {low} AND {high}, {random.integers(0, 4)})",
                        f"{name} >= {low}",
                        f"{name} < {high}",
                        f"{name} = {low}",
                        f"{name} IS NOT NULL",
                        f"{name} IS NULL",
                        f"{name} <> {low}",
                    ],
                    p=[0.4, 0.3, 0.08, 0.08, 0.08, 0.02, 0.02, 0.02],
                )
            )
        texts.append(" OR ".join([" AND ".join(tests), *tests[: int(random.integers(0, 2))]]))
    records = []
    for _ in range(draw(st.integers(1, 6))):
        record = {"id": "e", "weights": {}}
        for name in random.choice(names, int(random.integers(0, len(names) + 1)), replace=False):
            low = float(random.integers(-1, span + 1))
            record[str(name)] = random.choice(
                [low, low + 0.5, {"low": low, "high": low + float(random.integers(0, 4))}]
            )
            if random.random() < 0.5:
                record["weights"][str(name)] = float(random.integers(0, 5))
        records.append(record)
    return names, texts, records


@settings(deadline=None, max_examples=40)
@given(world=worlds())
def test_any_world(world):
    names, texts, records = world
    schema = Schema.declare(dict.fromkeys(names, "number"))
    columns = encoded(texts, schema)
    agree(columns, encoded_events(records, schema))


def test_bounds_that_are_all_different_and_frames_wider_than_a_byte(monkeypatch):
    monkeypatch.setattr(list_axes, "MANY_CUTS", 40)
    monkeypatch.setattr(list_axes, "MOST_CUTS", 60)
    random = np.random.default_rng(3)
    names = [f"a{n}" for n in range(12)]
    schema = Schema.declare(dict.fromkeys(names, "number"))
    texts = []
    for _ in range(700):
        chosen = random.choice(names, 3, replace=False)
        lows = random.random(3) * 10
        texts.append(
            " AND ".join(
                f"weight({name} BETWEEN {low} AND {low + random.random() * 9}, {random.random()})"
                for name, low in zip(chosen, lows, strict=True)
            )
        )
    records = [
        {"id": "e", **{name: float(random.random() * 20) for name in names}} for _ in range(30)
    ]
    columns = encoded(texts, schema)
    bounds = {"id": "e", "a0": float(columns.low[columns.attribute == 0][0])}
    assert len(agree(columns, encoded_events([*records, bounds], schema)).rows)


def test_the_cost_model_sends_expressions_over_many_attributes_to_nodes():
    recipe = Profiles(dimensions=200, match_share=0.05, predicates=5, values=9)
    columns = recipe.subscriptions(2000)
    homes = choose_homes(columns, np.arange(2000))
    assert len(homes["nodes"]) > 1900
    index = structure_class("packed pending=0").build(columns)
    assert "nodes" in index.stats()["segments"][0]


def test_what_is_removed_closed_or_over_is_not_among_the_best():
    recipe = Profiles(dimensions=60, match_share=0.2, predicates=5, values=9)
    columns, events = recipe.subscriptions(900), recipe.events(20)
    index, scan = (index_class(name).build(columns) for name in (NODES, "scan"))
    for one in (index, scan):
        one.remove(np.arange(0, 900, 3))
        one.close(np.arange(1, 900, 3), np.full(300, 5))
    for k in (1, 7, 1000):
        assert same(index.top(events, k), scan.top(events, k))


def test_a_saved_index_finds_the_same_best(tmp_path):
    recipe = Profiles(dimensions=60, match_share=0.2, predicates=5, values=9)
    columns, events = recipe.subscriptions(900), recipe.events(20)
    kind = structure_class(NODES)
    kind.build(columns).save(tmp_path / "index")
    opened = kind.open(tmp_path / "index", columns)
    scan = structure_class("scan").build(columns)
    assert same(opened.match(events), scan.match(events))
    assert same(opened.top(events, 5), scan.top(events, 5))
