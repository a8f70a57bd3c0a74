"""More than 100,000 hostile texts: each gives a tree or a StentorError, and nothing else.

Plain seeded random, because it is the number of texts that counts here.
"""

import random
from itertools import chain

from stentor.errors import StentorError
from stentor.language.limits import Limits
from stentor.language.parser import parse
from stentor.language.printer import to_text
from stentor.model import Schema

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
