"""Arrays that grow: however many rows come at a time, nothing is written beside them."""

import numpy as np
import pytest

from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.ragged import concatenate
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.index.arena import FEW, GrowingColumns
from stentor.language.normalise import normalise
from stentor.language.parser import parse
from stentor.model import Schema


def some(count, schema):
    texts = (
        f"price < {number} AND brand IN ('a{number}', 'b') OR has_any(text, 'w{number}')"
        for number in range(count)
    )
    return encode_subscriptions(
        [NormalisedSubscription(normalise(parse(text, schema=schema))) for text in texts], schema
    )


@pytest.mark.parametrize(
    "sizes",
    [
        [1] * 40,
        [FEW + 1, 1, FEW + 6, 1],
        [1, 3 * FEW, 2, FEW, 1],
        [FEW + 1, 1] * 6,
        [0, 1, 0, 99, 1],
    ],
)
def test_few_rows_after_many_are_written_where_the_arrays_are_now(sizes):
    schema = Schema.declare({"price": "number", "brand": "string", "text": "string"})
    growing = GrowingColumns(SubscriptionColumns)
    parts = [some(count, schema) for count in sizes]
    for part in parts:
        growing.append(part)
    expected = concatenate(parts)
    for name in SubscriptionColumns._fields:
        assert np.array_equal(
            growing[name].view, getattr(expected, name), equal_nan=name == "position"
        )
