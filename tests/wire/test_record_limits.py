"""One record at its limits: work and memory grow with its size, and no faster.

Work is counted in lines of Python (kernels have no loops within loops over one record, see
`test_hash_flooding.py`), memory in bytes at the peak.
"""

import sys
import tracemalloc
from itertools import islice, pairwise, product

import pyarrow as pa
import pytest

from stentor import Engine, Limits, RecordLimits
from stentor.errors import LimitError, RecordError, StentorError
from stentor.language.regular import compiled

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def words(count):
    return ["".join(each) for each in islice(product(LETTERS, repeat=4), count)]


def cost(call):
    """The lines of Python that *call* runs, and the most bytes that it has at a time."""
    lines = 0

    def count(frame, event, _):
        nonlocal lines
        lines += event == "line"
        return count

    call()  # kernels are loaded, caches are filled
    before = sys.gettrace()
    sys.settrace(count)
    try:
        call()
    finally:
        sys.settrace(before)
    tracemalloc.start()
    try:
        call()
        return lines, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def fresh():
    engine = Engine(clock=None)
    engine.subscribe("ana", "has_all(text, 'aaaa') AND a1 = 1", at=(0, 0))
    engine.subscribe("bo", "has_any(text, 'none of them', 'aaab')", at=(0, 0))
    return engine


def published(**attributes):
    return lambda: fresh().publish({"id": "e", **attributes})


def subscribed(expression):
    return lambda: fresh().subscribe("new", expression)


def with_tables(syntax, form, count):
    """Patterns of which no table is kept yet."""

    def call():
        compiled.cache_clear()
        patterns = (form.format(place) for place in range(count))
        return subscribed(" AND ".join(f"s {syntax} '{one}'" for one in patterns))()

    return call


def ring(points):
    """A star of so many *points* around the origin."""
    from math import cos, pi, sin

    radii = [10 + place % 2 for place in range(points)]
    turns = [2 * pi * place / points for place in range(points)]
    corners = [f"{r * cos(t):.4f} {r * sin(t):.4f}" for r, t in zip(radii, turns, strict=True)]
    return f"POLYGON(({', '.join([*corners, corners[0]])}))"


RECORDS = {
    "attributes": lambda n: published(**{f"a{place}": place for place in range(n)}),
    "weights": lambda n: published(weights={f"a{place}": 1.0 for place in range(n)}),
    "words": lambda n: published(text=" ".join(words(8 * n))),
    "one word": lambda n: published(text="aaaa " * 8 * n),
    "short words": lambda n: published(text=" ".join(words(8 * n))[: 20 * n].replace("a", " ")),
    "letters": lambda n: published(text="a" * 40 * n),
    "ideographs": lambda n: published(text="東京都" * 4 * n),
    "strings": lambda n: published(**{f"s{place}": f"word {place}" for place in range(n)}),
    "numbers in a list": lambda n: subscribed(f"a IN ({', '.join(map(str, range(n)))})"),
    "strings in a list": lambda n: subscribed(f"a IN ({', '.join(map(repr, words(n)))})"),
    "predicates": lambda n: subscribed(" AND ".join(f"a{p} < {p}" for p in range(n // 2))),
    "alternatives": lambda n: subscribed(" OR ".join(f"a{p} < {p}" for p in range(n // 2))),
    "words to search": lambda n: subscribed(
        f"has_any(text, {', '.join(map(repr, words(n // 2)))})"
    ),
    "regular expressions": lambda n: with_tables("RLIKE", "a{:04}|bc$", n // 20),
    "patterns whatever the capitals": lambda n: with_tables("ILIKE", "%ab{:04}_%", n // 20),
    "corners": lambda n: subscribed(f"ST_Within(loc, ST_GeomFromText('{ring(n)}'))"),
}


@pytest.mark.parametrize("kind", RECORDS)
def test_twice_the_record_costs_twice_at_most(kind):
    sizes = [cost(RECORDS[kind](size)) for size in (250, 500, 1_000)]
    # Alternatives are compared with one another, which is why there are 1,024 at most.
    most = 4.2 if kind == "alternatives" else 2.3
    for (lines, memory), (more_lines, more_memory) in pairwise(sizes):
        assert more_lines <= most * lines
        assert more_memory <= 2.6 * memory + 200_000  # arrays grow by doubling


def test_an_event_at_all_its_limits_is_answered_and_one_beyond_them_refused():
    limits = RecordLimits(attributes=50, string_bytes=20_000, record_bytes=100_000)
    engine = Engine(clock=None, limits=limits)
    engine.subscribe("ana", "has_all(s0, 'aaaa') AND n1 = 1")
    long = "x" * 20_000
    most = {f"s{n}": long for n in range(4)} | {"s0": " ".join(words(4_000))}
    most |= {f"n{n}": n for n in range(46)} | {"weights": {f"n{n}": 1 for n in range(50)}}
    assert engine.publish({"id": "e", **most}) == ["ana"]
    beyond = (
        {**most, "n46": 1},
        {**most, "s0": long + "x"},
        {**most, "weights": {f"n{n}": 1 for n in range(51)}},
        {f"s{n}": long for n in range(6)},
    )
    for event in beyond:
        with pytest.raises(RecordError, match="limit"):
            engine.publish({"id": "e", **event})
        weights = event.pop("weights", {})
        columns = {name: [value] for name, value in event.items()}
        kind = pa.map_(pa.string(), pa.float64())
        columns["weights"] = pa.array([list(weights.items())], kind)
        try:
            answer = engine.publish_batch(pa.table({"id": ["e"], **columns}))[0]
        except RecordError as error:  # too many columns
            answer = error
        assert isinstance(answer, RecordError)
    assert engine.publish({"id": "f", **most}) == ["ana"]


def test_default_limits_are_held_at_once():
    """What is beyond a limit is refused before anything is made of it."""
    default, expression = RecordLimits(), Limits()
    huge = {
        "attributes": published(**{f"a{n}": n for n in range(default.attributes + 1)}),
        "weights": published(weights={f"a{n}": 1 for n in range(default.attributes + 1)}),
        "string_bytes": published(text="a" * (default.string_bytes + 1)),
        "record_bytes": published(**{f"t{n}": "a " * 499_999 for n in range(9)}),
        "bytes": subscribed("a = 1 OR " * (expression.bytes // 9) + "a = 1111111111"),
        "depth": subscribed("NOT " * 101 + "a = 1"),
        "predicates": subscribed(" AND ".join(["a < 1"] * 1_001)),
        "list_length": subscribed(f"a IN ({', '.join(['1'] * 10_001)})"),
        "words": subscribed(f"has_any(text, {', '.join(map(repr, words(1_001)))})"),
        "pattern_length": subscribed(f"text LIKE '{'a' * 1_025}'"),
        "length of a regular expression": subscribed(f"text RLIKE '{'a' * 1_025}'"),
        "states": subscribed("text RLIKE 'a.{1000}'"),
        "pattern_work": with_tables("RLIKE", "(.*z{}.*){{18}}", 100),
        "classes": with_tables("RLIKE", "[^{:03}]", 900),
        "pattern_work of ILIKE": with_tables("ILIKE", "%é{}%a_b%c%", 900),
        "pattern_bytes": subscribed(
            f"({' OR '.join(f'a = {n} AND b = {n}' for n in range(450))}) "
            "AND text RLIKE '(.*[a-y].*z.*é){18}'"
        ),
    }
    for name, call in huge.items():
        tracemalloc.start()
        with pytest.raises((RecordError, LimitError)) as refused:
            call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert isinstance(refused.value, StentorError), name
        assert peak < 30_000_000, name
