"""More than 100,000 hostile texts: each gives a tree or a StentorError, and nothing else.

Plain seeded random, because it is the number of texts that counts here.
"""

import math
import random
import warnings
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import chain, product

import numpy as np
import pandas as pd
import pyarrow as pa

from stentor import Engine
from stentor.covering.covers import explain_covering
from stentor.encoding.subscriptions import NormalisedSubscription
from stentor.errors import NeverMatchesWarning, StentorError
from stentor.language.limits import ANY_SIZE, Limits
from stentor.language.normalise import normalise
from stentor.language.parser import parse
from stentor.language.printer import to_text
from stentor.model import Constant, Event, Kind, Point, Schema

VALID = [
    "brand = 'Huawei' AND price < 3300 AND storage IN (128, 256) AND NOT colour = 'red'",
    "has_all(text, 'ipad', \"discount\") AND ST_DWithin(loc, ST_Point(121.44, 36.16), 1000)",
    "(a <> -1.5e3 OR b NOT BETWEEN 'x' AND 'y') AND c IS NOT NULL OR NOT (d AND TRUE)",
    "seen >= TIMESTAMP '2026-11-15 12:00:00.5+01:00' AND `odd ``name` NOT LIKE 'a!%' ESCAPE '!'",
    "ST_Contains(ST_GeomFromText('POLYGON((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1))'), loc)",
    "ST_Within(loc, ST_MakeEnvelope(170, -10, -170, 10)) AND weight(s = r'C:\\n', 0.4)",
    "ST_DWithin(here(), loc, :radius) OR 3 >= n AND s = 'it''s \\u0041\\101\\%' AND x < -:radius",
]
TOKENS = r"""
    a b `c` `` ` price in IN not NOT and AND or OR is NULL null like between true FALSE
    = != <> < <= > >= == <=> => && || ! ~ ( ) ( ) ( ) , , ; . : :: ? - -- /* */ + * / %
    1 0 -1 .5 1. 1e3 1e999 1e-999 9007199254740993 12abc 1..2 0x1F 5L 1_0 007
    'x' 'it''s' "y" '' ' " r'\' R"z" r' '\ '\u12' '\ud800' '\UFFFFFFFF' '%' '_\%'
    has_all( has_any( weight( ST_Within( ST_Contains( ST_DWithin( ST_Point( here()
    ST_MakeEnvelope( ST_GeomFromText( foo( TIMESTAMP timestamp ESCAPE :p :missing DATE
"""
FRAGMENTS = [
    *TOKENS.split(),
    "'POLYGON((0 0, 1 0, 1 1, 0 0))'", "'POLYGON((", "'2026-11-15'", "TIMESTAMP '2026-02-30'",
    "ST_Point(1, 2)", "IS NOT NULL", "BETWEEN 1 AND", "IN (1, 2)", "LIKE 'a%'", "ST_Point(999, 0)",
    "\u2018", "größe", "\u00a0", "\u200b", "\ud800", "\0", "\x1f", "٣", "²", "K", "\n",
]  # fmt: skip
PARAMETERS = {"p": 5, "radius": 2.5}
SCHEMAS = [None, Schema(), Schema(plane=True), Schema.declare({"a": "timestamp", "b": "string"})]
ROOMY = Limits(bytes=10_000_000)


def outcome(text, schema):
    """Whether *text* was read; a tree must print and read back the same."""
    try:
        tree = parse(text, schema=schema, parameters=PARAMETERS)
    except StentorError as error:
        str(error)  # underlines the place, which must exist
        return False
    again = Schema(plane=True) if schema is not None and schema.plane else None
    assert parse(to_text(tree), schema=again, limits=ROOMY) == tree
    return True


def try_all(texts):
    """How many of *texts* there are, and how many were read."""
    tried = read = 0
    for text in texts:
        read += outcome(text, SCHEMAS[tried % len(SCHEMAS)])
        tried += 1
    return tried, read


def random_bytes(count):
    source = random.Random(1)
    for number in range(count):
        raw = source.randbytes(source.randrange(40))
        yield raw.decode(("latin-1", "utf-8", "utf-16")[number % 3], errors="replace")
        yield raw.decode("utf-8", errors="surrogateescape")


def random_ascii(count):
    source = random.Random(2)
    characters = "ab19.'\"`\\()<>=!-+,:%_ \n\t"
    for _ in range(count):
        yield "".join(source.choices(characters, k=source.randrange(30)))


def random_splices(count):
    source = random.Random(3)
    for _ in range(count):
        spaces = source.choice(["", " ", "  "])
        yield spaces.join(source.choices(FRAGMENTS, k=source.randrange(1, 14)))


def random_edits(count):
    """Valid texts with a few characters dropped, doubled, swapped or replaced."""
    source = random.Random(4)
    for _ in range(count):
        characters = list(source.choice(VALID))
        for _ in range(source.randrange(1, 4)):
            at = source.randrange(len(characters))
            characters[at] = source.choice(["", characters[at] * 2, source.choice(FRAGMENTS)])
        yield "".join(characters)


def random_joins(count):
    """Halves of valid texts, joined."""
    source = random.Random(5)
    for _ in range(count):
        first, second = source.choice(VALID), source.choice(VALID)
        yield first[: source.randrange(len(first))] + second[source.randrange(len(second)) :]


def every_part():
    """Every prefix and every suffix of the valid texts."""
    for text in VALID:
        for cut in range(len(text) + 1):
            yield text[:cut]
            yield text[cut:]


def giants():
    """What is long rather than odd: nests, numbers, lists, quotes without an end."""
    unit = 65_000
    openings = [
        "(", "NOT ", "NOT(", "a AND (", "a OR (b AND ", "weight(", "has_all(", "ST_Within(",
        "a IN (", "ST_DWithin(ST_Point(", "- ", "-", ")", ",", "'", '"', "`", "'\\", "r'", "''",
        "``", "\\", ".", "1", "9", "1.", "1e", "e", "a ", "a.", ":", ":a", "a=1 AND ", "TRUE OR ",
        "a IN (1) AND ", "x LIKE '%' OR ", "NOT a OR ", "\u00a0", "é", "😀", "--", "/*", "=", "<",
    ]  # fmt: skip
    for opening in openings:
        for count in (1, 50, 99, 100, 101, 102, 1_000, unit // len(opening), 200_000):
            yield opening * count
            yield "a = " + opening * count
            yield opening * count + "a" + ")" * count
    for digits in (15, 16, 308, 309, 310, 4_300, 4_301, 60_000):
        yield from (f"a < {'9' * digits}", f"a < {'0' * digits}1", f"a < 0.{'1' * digits}")
        yield from (f"a < 1e{'9' * digits}", f"a < {'9' * digits}e-{'9' * digits}")
        yield from (f"a = '{'x' * digits}'", f"a LIKE '{'%_' * digits}'", f"`{'n' * digits}` < 1")
        yield f"a IN ({', '.join(['1'] * digits)})"
        yield f"has_any(a, {', '.join(['1'] * digits)})"
        yield f"a = TIMESTAMP '{'9' * digits}'"
        yield f"ST_Within(a, ST_GeomFromText('POLYGON(({'0 0, ' * digits}0 0))'))"
        yield f"ST_Within(a, ST_GeomFromText('POLYGON({'(' * digits}'))"
        yield f"ST_DWithin(a, ST_Point(0.{'1' * digits}, 0), {'9' * digits})"


def test_hostile_texts_give_a_tree_or_a_stentor_error():
    texts = chain(
        random_bytes(14_000),
        random_ascii(22_000),
        random_splices(26_000),
        random_edits(14_000),
        random_joins(10_000),
        every_part(),
    )
    tried, read = try_all(texts)
    assert tried > 100_000
    assert read > 1_000  # some are valid: the texts are near the language, not far from it


def test_giant_texts_give_a_tree_or_a_stentor_error():
    tried, read = try_all(giants())
    assert tried > 1_000
    assert read > 50


def test_the_valid_texts_are_valid():
    assert all(outcome(text, None) for text in VALID)


HOSTILE = [
    0, -1, 1.5, 1e101, 1e308, -1e308, math.inf, -math.inf, math.nan, 2**53 + 1, 2**70, 10**400,
    -(10**5000), True, None, "", "x", "\ud800", "a\udfff", "%", "\\", "nurs*", "\0", "é" * 2000,
    b"x", [], [1, 2], [1e400, "x"], {}, {"low": 1, "high": 2}, {"low": "\ud800", "high": 1},
    object(), object, Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1e500"),
    Decimal("1e100000000"), Fraction(1, 3), Fraction(10**400), 1j, datetime.min, datetime.max,
    datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))), date.max, timedelta(1), range(2),
    np.float64("nan"), np.float32(1e30), np.int64(2**62 + 1), np.uint64(2**64 - 1), np.bool_(True),
    np.str_("x"), np.datetime64("NaT"), np.datetime64("2020-01-01"), np.timedelta64(1, "s"),
    np.array([1.0, 2.0]), np.array(5), np.array([[1, 2]]), pd.NA, pd.NaT, ..., ("\ud800", 1),
    "POLYGON((" + "0 0," * 40, "2026-11-15", "9999-99-99",
]  # fmt: skip
#: Texts with a parameter wherever a constant can stand.
WITH_PARAMETERS = [
    "weight(a > 1, :p) AND weight(a < 5, :q)", "weight(a = :p, :q)", "a = :p", "a IN (:p, :q)",
    "a BETWEEN :p AND :q", "a LIKE :p", "a LIKE 'x' ESCAPE :p", "has_any(a, :p)", "a < -:p",
    "has_all(a, :p, :q)", "ST_DWithin(a, ST_Point(:p, :q), :p)", "ST_DWithin(a, here(), :p)",
    "ST_Within(a, ST_MakeEnvelope(:p, :q, :p, :q))", "ST_Within(a, ST_GeomFromText(:p))",
    "a != :p AND b = :q", "NOT a IN (:p)", "a = TIMESTAMP :p", "a > :p OR b < :q",
]  # fmt: skip
EVENT = {"id": "e", "a": 3, "b": "x", "n": 2, "s": "x", "weights": {"a": 2}}


def refused(ask, *given, **named):
    """Whether *ask* refuses what it is given; nothing but a StentorError may leave it."""
    with warnings.catch_warnings(category=NeverMatchesWarning, action="ignore"):
        try:
            ask(*given, **named)
        except StentorError as error:
            str(error)
            return True
    return False


def engine_of(texts, **settings):
    """An engine that was asked to take in *texts*, and one that covers what has no attributes."""
    engine = Engine(clock=None, **settings)
    for number, text in enumerate(texts):
        refused(engine.subscribe, str(number), text, parameters=PARAMETERS, at=(1, 2))
    return engine


def test_whatever_an_engine_is_asked_it_answers_or_refuses_as_it_should():
    source = random.Random(6)
    texts = list(chain(random_splices(600), random_edits(600), random_joins(300), every_part()))
    texts += [text for text in giants() if len(text) < 3_000]
    source.shuffle(texts)
    stood = 0
    for start in range(0, len(texts), 150):
        some = texts[start : start + 150]
        engine = engine_of([*some, *VALID, "TRUE"])
        stood += len(engine)
        refused(engine.publish, EVENT)
        refused(engine.redundant)
        for id in engine:
            refused(engine.explain, id, EVENT)
        ids = list(map(str, range(len(some))))
        clean = [text.encode("utf-8", "replace").decode() for text in some]
        batch = Engine(clock=None)
        refused(batch.subscribe_batch, pa.table({"id": ids, "expression": clean}))
        refused(batch.step, [{"op": "subscribe", "id": "s", "expression": text} for text in some])
        trees = [engine.get(id)["expression"] for id in list(engine)[:12]]
        forms = [
            NormalisedSubscription(normalise(parse(text, limits=ANY_SIZE)), Point(1, 2))
            for text in trees
        ]
        for one, other in product(forms, forms):
            refused(explain_covering, one, other, engine.schema)
    assert stood > 500


def test_whatever_a_parameter_is_it_is_taken_or_refused():
    tried = refusals = 0
    engine = Engine(clock=None)
    for text in WITH_PARAMETERS:
        for value in HOSTILE:
            for given in ({"p": value, "q": 1}, {"p": 1, "q": value}, {"p": "x", "q": value}):
                refusals += refused(parse, text, parameters=given)
                refused(engine.subscribe, "s", text, parameters=given, at=(1, 2))
                tried += 1
    for value in HOSTILE:
        refused(parse, "a = :p", parameters=value)
    assert tried > refusals > 0


def test_whatever_a_table_of_parameters_holds_its_rows_are_taken_or_refused():
    columns = [
        pa.array([1.0, 1e308, math.nan]), pa.array([1, 2**53 + 1, None]), pa.array([1e101, -1, 0]),
        pa.array(["x", "nurs*", None]), pa.array(["%", "a", ""]), pa.array([True, False, None]),
        pa.nulls(3), pa.array([[1, 2]] * 3), pa.array([{"a": 1}] * 3), pa.array([b"\xff"] * 3),
        pa.array([Decimal("1.5")] * 3), pa.array([datetime.min] * 3), pa.array([date.max] * 3),
        pa.array([timedelta(1)] * 3), pa.array(["x", None, "y"]).dictionary_encode(),
        pa.array([1, 2, 3]).dictionary_encode(), pa.array([2**64 - 1] * 3, pa.uint64()),
        pa.chunked_array([[1.0, 2.0], [3.0]]), pa.array(["x", "y", "z"], pa.string_view()),
        pa.array([2**60] * 3, pa.timestamp("s")), pa.array([1] * 3, pa.timestamp("ns", "Mars/X")),
        pa.array([1.0] * 3, pa.float16()), pa.array([Decimal(10) ** 30] * 3, pa.decimal256(60, 2)),
    ]  # fmt: skip
    places, stood = pa.array([[1.0, 2.0]] * 3), 0
    for text, p, shift in product(WITH_PARAMETERS, range(len(columns)), (0, 1, 5)):
        q = columns[(p + shift) % len(columns)]
        engine = Engine(clock=None)
        table = pa.table({"id": list("abc"), "p": columns[p], "q": q, "at": places})
        refused(lambda: list(engine.subscribe_batch(table, text)))  # noqa: B023  # called now
        for id in engine:
            engine.get(id)
            stood += 1
    assert stood > 100


def test_whatever_an_event_weighs_it_is_taken_or_refused():
    engine = Engine(clock=None)
    engine.subscribe("s", "weight(a > 0, 1e100) AND weight(b IS NULL, 1e100)")
    for value in HOSTILE:
        event = {"id": "e", "a": 1, "weights": {"a": value, "b": value}}
        built = Event("e", {"a": Constant(Kind.NUMBER, 1.0)}, {"a": value})
        for ask in (engine.publish, engine.top, partial(engine.explain, "s")):
            refused(ask, event)
            refused(ask, {"id": "e", "a": 1, "weights": value})
            refused(ask, built)
            refused(ask, replace(built, weights=value))
        refused(engine.step, [{**event, "op": "publish"}], top=1)
        if not refused(engine.top, event):
            assert all(math.isfinite(score) for _, score in engine.top(event))
