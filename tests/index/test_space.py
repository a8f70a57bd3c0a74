"""The content space that several parties agree on."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.broker import Dimension, Space
from stentor.broker.tables import event_ranges
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.errors import SettingsError
from stentor.language.evaluate import evaluate
from stentor.language.limits import ANY_SIZE
from stentor.language.normalise import normalise
from stentor.language.parser import parse
from stentor.model import Schema
from stentor.wire.events import event_from_dict
from tests.support import grid, strategies

SCHEMA = {"price": "number", "stock": "number", "loc": "point", "brand": "string"}


def columns_of(texts, schema):
    trees = (normalise(parse(text, schema=schema), ANY_SIZE) for text in texts)
    return encode_subscriptions([NormalisedSubscription(tree, None) for tree in trees], schema)


def test_the_most_selective_attributes_are_chosen():
    schema = Schema.declare(SCHEMA)
    texts = [f"price BETWEEN {one} AND {one + 1} AND stock > {one % 7}" for one in range(100)]
    for cells in ("equal", "variable"):
        space = Space.chosen(columns_of(texts, schema), schema, cells=cells, bits=4)
        assert space.dimensions[0].attribute == "price"
        assert (len(space.dimensions[0].edges) > 0) == (cells == "variable")
        assert Space.from_dict(json.loads(json.dumps(space.to_dict()))) == space
    with pytest.raises(SettingsError, match="name the dimensions"):
        Space.chosen(columns_of(["brand IS NOT NULL"], schema), schema)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, "a space has `dimensions`"),
        ({"dimensions": []}, "0 dimensions"),
        ({"dimensions": 7}, "a space has `dimensions`"),
        ({"dimensions": [{"attribute": "a", "low": 1}]}, "'high'"),
        ({"dimensions": [{"attribute": "a", "low": 1, "high": 1}]}, "expected low < high"),
        ({"dimensions": [{"attribute": "a", "low": 0, "high": float("inf")}]}, "low < high"),
        ({"dimensions": [{"attribute": "a", "low": 0, "high": 1, "axis": "z"}]}, "value, x or y"),
        ({"dimensions": [{"attribute": "a", "low": 0, "high": 1, "edges": [1]}]}, "1 edges"),
        ({"dimensions": [{"attribute": "a", "low": 0, "high": 1}], "bits": 60}, "60 bits"),
        ({"dimensions": [{"attribute": "a", "low": 0, "high": 1}], "bits": "x"}, "a space has"),
        ({"dimensions": [{"attribute": "a", "low": 0, "high": 1}], "bits": 1}, "expected 2 to"),
    ],
)
def test_what_is_no_space_is_refused(raw, message):
    with pytest.raises(SettingsError, match=message):
        Space.from_dict(raw)


DIMENSIONS = [
    Dimension("price", -1, 3),
    Dimension("stock", 0, 2, edges=(0.0, 0.5, 1.0, 1.0, 1.5, 2.0)),
    Dimension("loc", -180, 180, "x"),
    Dimension("loc", -90, 90, "y"),
    Dimension("sold", 0, 1),
    Dimension("text", 0, 1),
]


@given(
    strategies.subscriptions(),
    strategies.events(),
    st.lists(st.sampled_from(DIMENSIONS), min_size=1, max_size=3, unique=True),
    st.sampled_from([1, 4, 64]),
)
def test_whatever_matches_shares_a_number(subscription, event, dimensions, most):
    if len({bool(one.edges) for one in dimensions}) > 1:
        dimensions = [one for one in dimensions if not one.edges]
    space, schema = Space(tuple(dimensions), bits=3), grid.schema()
    standing = NormalisedSubscription(normalise(subscription.expression, ANY_SIZE), subscription.at)
    wanted = space.on(schema).of_subscriptions(encode_subscriptions([standing], schema), most)
    there = event_ranges([event], schema, space)
    shared = any(
        low <= upper and lower <= high
        for low, high in zip(wanted.low, wanted.high, strict=True)
        for lower, upper in zip(there.low, there.high, strict=True)
    )
    truth = evaluate(subscription.expression, event, here=subscription.at).truth
    assert shared or not truth


def test_an_event_without_a_value_has_the_null_coordinate():
    schema = Schema.declare(SCHEMA)
    space = Space((Dimension("price", 0, 7), Dimension("stock", 0, 7)), bits=3)
    event = event_from_dict({"id": "e", "stock": 3}, schema)
    ranges = event_ranges([event], schema, space)
    assert ranges.low.tolist() == ranges.high.tolist()
    assert np.array_equal(space.partition.curve.cells(ranges.low), [[0, 4]])
