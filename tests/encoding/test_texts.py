"""Texts of one shape and tables of parameters give the columns of the ordinary way, bit for bit."""

import math
import random
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.parameters import ParameterEncoder
from stentor.encoding.slots import Shaped, split_shape
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.encoding.template import SubscriptionCollector, SubscriptionHeads
from stentor.encoding.texts import LEAST_COMPILED, MOST_SHAPES, TextEncoder
from stentor.errors import ExpressionError, RecordError, SettingsError, StentorError
from stentor.language.check import check_and_learn
from stentor.language.limits import Limits
from stentor.model import Point, Schema
from stentor.model.values.time import NEVER

NUMBERS = st.sampled_from(
    ["0", "1", "2", "2.5", "0.0", "-0.0", "-1", "1e3", "1E-2", "3.", "179.5", "-90", "90.25",
     "1e999", "9007199254740993", "123456789012345678", "4503599627370497.5", "5e-324"]
)  # fmt: skip
WORDS = st.sampled_from(
    ["ipad", "iPad", "IPAD", "new york", "", "!!", "東京都", "é", "a", "b", "it''s", r"a\'b", ":x"]
)
PREDICATES = st.one_of(
    st.builds("price {} {}".format, st.sampled_from(["<", "<=", ">", ">=", "=", "!="]), NUMBERS),
    st.builds("price BETWEEN {} AND {}".format, NUMBERS, NUMBERS),
    st.builds("size IN ({}, {})".format, NUMBERS, NUMBERS),
    st.builds("size NOT IN ({})".format, NUMBERS),
    st.builds("{} > size".format, NUMBERS),
    st.builds("brand = '{}'".format, WORDS),
    st.builds("brand IN ('{}', '{}')".format, WORDS, WORDS),
    st.builds("brand LIKE '{}%'".format, WORDS),
    st.builds("colour = r'{}'".format, WORDS),
    st.builds("NOT brand = '{}'".format, WORDS),
    st.builds("brand NOT IN ('{}', '{}')".format, WORDS, WORDS),
    st.builds("maker != '{}'".format, WORDS),
    st.builds("size != {}".format, NUMBERS),
    st.builds("size NOT IN ({}, {}, 0, 5e-324)".format, NUMBERS, NUMBERS),
    st.builds("NOT size < {}".format, NUMBERS),
    st.builds("size NOT BETWEEN {} AND {}".format, NUMBERS, NUMBERS),
    st.builds("NOT has_any(title, '{}')".format, WORDS),
    st.builds("NOT ST_DWithin(loc, ST_Point({}, {}), 5)".format, NUMBERS, NUMBERS),
    st.builds("NOT weight(brand = '{}', {})".format, WORDS, NUMBERS),
    st.builds("has_all(text, '{}', '{}')".format, WORDS, WORDS),
    st.builds("has_any(title, '{}', '{}')".format, WORDS, WORDS),
    st.builds("ST_DWithin(loc, ST_Point({}, {}), {})".format, NUMBERS, NUMBERS, NUMBERS),
    st.builds("ST_DWithin(place, here(), {})".format, NUMBERS),
    st.builds(
        "ST_Within(spot, ST_MakeEnvelope({}, {}, {}, {}))".format,
        NUMBERS,
        NUMBERS,
        NUMBERS,
        NUMBERS,
    ),
    st.builds("weight(rating >= {}, {})".format, NUMBERS, NUMBERS),
    st.builds("at_noon > TIMESTAMP '2026-11-15 12:00:0{}'".format, st.integers(0, 9)),
    st.sampled_from(["in_stock", "note IS NULL", "memo IS NOT NULL", "x1 = 5", "NOT in_stock"]),
)
TEXTS = st.lists(PREDICATES, min_size=1, max_size=4).map(" AND ".join) | st.lists(
    PREDICATES, min_size=2, max_size=3
).map(" OR ".join)


def asked(count: int, *, standing: bool = True) -> SubscriptionHeads:
    position = np.full((count, 2), np.nan)
    if standing:
        position[::2] = (151.25, -33.5)
    return SubscriptionHeads([f"s{row}" for row in range(count)], position, np.full(count, NEVER))


def ordinary(
    texts: list[str], who: SubscriptionHeads, schema: Schema
) -> tuple[SubscriptionColumns, list[int]]:
    """One by one, as `Engine.subscribe` does it; and which could be done."""
    standing, rows = [], []
    for row, text in enumerate(texts):
        x, y = who.position[row]
        try:
            _, form = check_and_learn(text, schema, where=f"subscription {who.ids[row]!r}")
            at = None if np.isnan(x) else Point(float(x), float(y))
            standing.append(NormalisedSubscription(form, at).checked())
        except StentorError:
            continue
        rows.append(row)
    return encode_subscriptions(standing, schema), rows


def assert_equal(left: SubscriptionColumns, right: SubscriptionColumns) -> None:
    for name, one, other in zip(left._fields, left, right, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=name)


def learned(texts: list[str]) -> Schema:
    """A schema in which attributes have the codes that both ways agree on."""
    schema = Schema()
    ordinary(texts, asked(len(texts)), schema)
    return schema


@given(st.lists(TEXTS, min_size=1, max_size=12))
def test_texts_of_any_shape_are_encoded_as_one_by_one(texts):
    texts = [text for text in texts for _ in range(LEAST_COMPILED)]
    schema = learned(texts)
    who = asked(len(texts))
    expected, rows = ordinary(texts, who, schema)
    encoded = TextEncoder(schema).encode(texts, who)
    assert encoded.rows.tolist() == rows
    assert sorted(encoded.errors) == sorted(set(range(len(texts))) - set(rows))
    assert_equal(encoded.columns, expected)


@given(st.lists(st.lists(PREDICATES, min_size=1, max_size=4), min_size=1, max_size=8))
def test_texts_of_new_shapes_made_of_known_predicates_are_encoded_as_one_by_one(parts):
    orders = [order for one in parts for order in (one, one[::-1], one[1:] + one[:1])]
    texts = [" AND ".join(order) for order in orders]
    texts += [text.replace(" AND ", " and\n").replace("(", "( ") for text in texts]
    schema = learned(texts)
    who = asked(len(texts))
    expected, rows = ordinary(texts, who, schema)
    with patch.multiple("stentor.encoding.texts", LEAST_CUT=1, LEAST_COMPILED=1000):
        encoded = TextEncoder(schema).encode(texts, who)
    assert encoded.rows.tolist() == rows
    assert sorted(encoded.errors) == sorted(set(range(len(texts))) - set(rows))
    assert_equal(encoded.columns, expected)


def test_texts_of_ever_new_shapes_are_parsed_only_for_new_predicates():
    parts = [f"a{n} < " + "{}" for n in range(9)] + ["has_all(text, 'w{} x')", "b = '{}'"]
    rng = random.Random(1)
    texts = [" AND ".join(rng.sample(parts, 5)).format(*range(n, n + 5)) for n in range(400)]
    schema = learned(texts)
    parse = SubscriptionCollector.add_ordinary
    with patch.object(
        SubscriptionCollector, "add_ordinary", autospec=True, side_effect=parse
    ) as parsed:
        encoded = TextEncoder(schema).encode(texts, asked(400))
    assert parsed.call_count <= len(parts)
    assert_equal(encoded.columns, ordinary(texts, asked(400), schema)[0])


@pytest.mark.parametrize(
    "text",
    [
        "a < 1 OR b < 2 AND c < 3",
        "a = 'x AND b = 'y'",
        "`a AND b` < 1 AND c < 2",
        "a = \"it's\" AND b = 'y'",
        "NOT (a < 1 AND b < 2)",
        "a BETWEEN 1 AND 2 AND a > 1",
        "a < 1 \x1cAND b < 2",
        "a < 1 AND AND b < 2",
        "weight(a < 1, 2) AND has_all(t, 'x x') AND has_all(u, 'x !')",
    ],
)
def test_what_an_and_does_not_join_is_not_taken_apart(text):
    known = ["a < 1", "b < 2", "c < 3", "b = 'y'", "a > 1", "a BETWEEN 1 AND 2", "has_all(t, 'x')"]
    texts = [*known, *[text] * 2]
    schema = learned(texts)
    expected, rows = ordinary(texts, asked(len(texts)), schema)
    with patch.multiple("stentor.encoding.texts", LEAST_CUT=1, LEAST_COMPILED=1000):
        encoded = TextEncoder(schema).encode(texts, asked(len(texts)))
    assert encoded.rows.tolist() == rows
    assert_equal(encoded.columns, expected)


@given(st.lists(st.tuples(NUMBERS, WORDS, NUMBERS, NUMBERS), min_size=1, max_size=30))
def test_one_shape_with_odd_constants_is_encoded_as_one_by_one(constants):
    texts = [
        f"price < {a} AND has_all(text, '{w}') AND ST_DWithin(loc, ST_Point({b}, {c}), 500)"
        for a, w, b, c in constants
    ]
    schema = learned([*texts, "price < 1 AND has_all(text, 'a') AND loc IS NULL"])
    who = asked(len(texts))
    expected, rows = ordinary(texts, who, schema)
    encoded = TextEncoder(schema).encode(texts, who)
    assert encoded.rows.tolist() == rows
    assert_equal(encoded.columns, expected)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([None, 0, 1, -1, 2**53, 2**53 + 1, 7]),
            st.sampled_from([None, "ipad", "iPad", "two words", "", "it's", "\\"]),
            st.sampled_from([None, -0.0, 0.5, 100.0, 1e308, float("inf"), float("nan")]),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_a_table_of_parameters_equals_texts_with_the_values_in_place(rows):
    expression = (
        "price >= :least AND has_any(text, :word, 'sale') AND ST_DWithin(loc, here(), :reach)"
    )
    least, words, reach = zip(*rows, strict=True)
    values = {
        "least": pa.array(least, pa.int64()),
        "word": pa.array(words, pa.string()),
        "reach": pa.array(reach, pa.float64()),
    }
    schema = learned(["price >= 1 AND has_any(text, 'a') AND ST_DWithin(loc, here(), 1)"])
    who = asked(len(rows), standing=True)
    encoder = ParameterEncoder(expression, schema)
    encoded = encoder.encode(values, who)
    good = encoded.rows.tolist()
    written = encoder.texts(values, encoded.rows)
    expected, fitting = ordinary(written, SubscriptionHeads(
        [who.ids[row] for row in good], who.position[good], who.until[good]
    ), schema)  # fmt: skip
    assert fitting == list(range(len(good)))
    assert_equal(encoded.columns, expected)
    unusable = {None, 2**53 + 1, "", "\\", float("inf")}
    bad = [
        row
        for row, values in enumerate(rows)
        if unusable & set(values) or math.isnan(values[2]) or row % 2  # stands nowhere
    ]
    assert sorted(encoded.errors) == bad


SEVERAL_WORDS = st.lists(
    st.sampled_from(["ipad", "iPad", "sale", "x9", "it's", "", "é", "東京都", "nurs*"]),
    min_size=1,
    max_size=10,
).map(" ".join)
ALL_OF = [
    "has_all(text, :one)",
    "price < 3 AND NOT HAS_ALL( text , :one ) AND has_all(title, :two)",
    "weight(has_all(text, :one), 2) AND brand = :one AND has_any(title, :two)",
    "brand = 'has_all(text, :one)' AND has_all(text, :one, :two)",
]


@pytest.mark.parametrize("expression", ALL_OF)
@given(rows=st.lists(st.tuples(SEVERAL_WORDS, SEVERAL_WORDS), min_size=1, max_size=12))
def test_several_words_in_one_parameter_are_encoded_as_one_by_one(expression, rows):
    one, two = map(list, zip(*rows, strict=True))
    values = {"one": pa.array(one), "two": pa.array(two).dictionary_encode()}
    schema = learned(["price < 3 AND has_all(text, 'a') AND has_all(title, 'b') AND brand = 'c'"])
    who = asked(len(rows), standing=True)
    encoder = ParameterEncoder(expression, schema)
    encoded = encoder.encode(values, who)
    singly = [
        ParameterEncoder(expression, schema).encode(
            {name: array[row : row + 1].take(pa.array([0])) for name, array in values.items()},
            asked(1),
        )
        for row in range(len(rows))
    ]
    assert sorted(encoded.errors) == [row for row, found in enumerate(singly) if found.errors]
    for row, found in enumerate(singly):
        assert str(encoded.errors.get(row)) == str(found.errors.get(0))
    good = encoded.rows.tolist()
    heads = SubscriptionHeads([who.ids[row] for row in good], who.position[good], who.until[good])
    expected, _ = ordinary(encoder.texts(values, encoded.rows), heads, schema)
    assert_equal(encoded.columns, expected)


def test_several_words_in_one_parameter_are_not_parsed_row_by_row():
    words = ["red ipad", "Green ipad now", "one"] * 50
    encoder = ParameterEncoder("has_all(text, :words)", Schema())
    with patch.object(SubscriptionCollector, "add_ordinary") as parsed:
        encoded = encoder.encode({"words": pa.array(words)}, asked(len(words)))
    assert not parsed.called
    assert encoded.rows.tolist() == list(range(len(words)))


def test_texts_of_one_shape_with_several_words_are_parsed_only_for_new_numbers_of_words():
    texts = [f"has_all(text, '{words}')" for words in ["red ipad", "a b c", "one"] * 50]
    ordinarily = SubscriptionCollector.add_ordinary
    with patch.object(
        SubscriptionCollector, "add_ordinary", autospec=True, side_effect=ordinarily
    ) as parsed:
        TextEncoder(Schema()).encode(texts, asked(len(texts)))
    assert parsed.call_count == 2


def test_a_shape_is_compiled_once_and_filled_by_the_thousand():
    schema = Schema()
    encoder = TextEncoder(schema)
    texts = [f"price < {n} AND brand = 'b{n % 7}'" for n in range(1000)]
    encoded = encoder.encode(texts, asked(1000))
    assert len(encoder._templates) == 1
    assert next(iter(encoder._templates.values())) is not None
    assert_equal(encoded.columns, ordinary(texts, asked(1000), schema)[0])


def test_ever_new_shapes_do_not_fill_the_memory():
    encoder = TextEncoder(Schema())
    texts = [f"a{n % 50} < 1 AND b{n // 50} IS NULL" for n in range(MOST_SHAPES + 50)]
    encoder.encode(texts, asked(len(texts)))
    assert len(encoder._templates) <= MOST_SHAPES


def test_texts_teach_the_schema_in_their_order():
    texts = ["a LIKE 'x%'", *(f"a < {n}" for n in range(5))]
    encoded = TextEncoder(Schema()).encode(texts, asked(6))
    assert encoded.rows.tolist() == [0]
    assert "is a number in a < 3, but a string in subscription 's0'" in str(encoded.errors[4])


def test_a_text_beyond_the_limit_is_refused_with_its_reason():
    encoder = TextEncoder(Schema(), Limits(bytes=100))
    encoded = encoder.encode(["price < 1", "price < 1 AND " * 20 + "TRUE"], asked(2))
    assert encoded.rows.tolist() == [0]
    assert "limit is 100" in str(encoded.errors[1])


def test_here_without_a_position_is_refused():
    encoded = TextEncoder(Schema()).encode(
        ["ST_DWithin(loc, here(), 5)", "ST_DWithin(loc, here(), 6)"], asked(2)
    )
    assert encoded.rows.tolist() == [0]
    assert isinstance(encoded.errors[1], RecordError)


def test_a_parameter_without_a_column_is_named():
    with pytest.raises(SettingsError, match=":most"):
        ParameterEncoder("price < :most", Schema()).encode({"least": pa.array([1])}, asked(1))


def test_a_parameter_without_a_value_is_named():
    encoded = ParameterEncoder("price < :most", Schema()).encode(
        {"most": pa.array([1, None])}, asked(2)
    )
    assert encoded.rows.tolist() == [0]
    assert isinstance(encoded.errors[1], ExpressionError)
    assert ":most" in str(encoded.errors[1])


@pytest.mark.parametrize(
    ("text", "shape", "constants"),
    [
        ("a < 1", ("a < ", ""), [1.0]),
        ("a1 < 1.5e2", ("a1 < ", ""), [150.0]),
        ("a = 'x 1'", ("a = ", ""), ["x 1"]),
        ("a IN (1,2)", ("a IN (", ",", ")"), [1.0, 2.0]),
        ("a < 5L", ("a < 5L",), []),
    ],
)
def test_constants_are_taken_out_of_a_text(text, shape, constants):
    assert split_shape(text) == Shaped(shape, constants)


def test_a_long_integer_takes_the_ordinary_way():
    assert split_shape("a < 9007199254740993") is None
