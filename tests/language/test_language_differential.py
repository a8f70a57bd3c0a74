"""What we accept, sqlglot reads as Spark SQL, and means the same on random events.

sqlglot's tree is evaluated here by a small evaluator of its own: SQL's three-valued logic over
sqlglot's nodes, sharing no code with Stentor.
"""

from datetime import UTC, datetime, timedelta

import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from stentor.language.evaluate import evaluate
from stentor.language.literals import unquote
from stentor.language.parser import parse
from stentor.language.printer import to_text
from stentor.model import Constant, Event, Kind

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# sqlglot's evaluation.


def sql_value(node, row):
    """The value of a column or literal; None is NULL."""
    match node:
        case exp.Column():
            return row.get(node.this.this)
        case exp.Boolean():
            return node.this
        case exp.RawString():
            return node.this
        case exp.Literal():
            return node.this if node.is_string else float(node.this)
        case exp.Neg():
            return -sql_value(node.this, row)
        case exp.Cast():
            moment = datetime.fromisoformat(node.this.this)
            return moment.replace(tzinfo=moment.tzinfo or UTC)
    raise AssertionError(f"a value that was not meant to be written: {node!r}")


def sql_truth(node, row):
    """True, False or None (unknown)."""
    match node:
        case exp.Paren():
            return sql_truth(node.this, row)
        case exp.And():
            return both(sql_truth(node.this, row), sql_truth(node.expression, row))
        case exp.Or():
            return opposite(both(
                opposite(sql_truth(node.this, row)), opposite(sql_truth(node.expression, row))
            ))  # fmt: skip
        case exp.Not():
            return opposite(sql_truth(node.this, row))
        case exp.Is():
            return sql_value(node.this, row) is None
        case exp.Escape():
            return sql_like(node.this, node.expression.this, row)
        case exp.Like():
            return sql_like(node, "\\", row)
        case exp.Between():
            value, low, high = (sql_value(node.args[arg], row) for arg in ("this", "low", "high"))
            return None if value is None else ordered(low) <= ordered(value) <= ordered(high)
        case exp.In():
            value = sql_value(node.this, row)
            choices = [sql_value(choice, row) for choice in node.expressions]
            return None if value is None else value in choices
        case exp.Boolean() | exp.Column():
            return sql_value(node, row)
    left, right = sql_value(node.this, row), sql_value(node.expression, row)
    if left is None or right is None:
        return None
    left, right = ordered(left), ordered(right)
    match node:
        case exp.EQ():
            return left == right
        case exp.NEQ():
            return left != right
        case exp.LT():
            return left < right
        case exp.LTE():
            return left <= right
        case exp.GT():
            return left > right
        case exp.GTE():
            return left >= right
    raise AssertionError(f"a predicate that was not meant to be written: {node!r}")


def both(left, right):
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def opposite(truth):
    return None if truth is None else not truth


def ordered(value):
    """Spark orders strings by their UTF-8 bytes."""
    return value.encode() if isinstance(value, str) else value


def sql_like(node, escape, row):
    value = sql_value(node.this, row)
    if value is None:
        return None
    truth = like(value, sql_value(node.expression, row), escape)
    return not truth if node.args.get("negate") else truth


def like(text, pattern, escape):
    """LIKE by its definition, case by case."""
    if not pattern:
        return not text
    if pattern[0] == escape:
        return text[:1] == pattern[1] and like(text[1:], pattern[2:], escape)
    if pattern[0] == "%":
        return any(like(text[cut:], pattern[1:], escape) for cut in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and like(text[1:], pattern[1:], escape)


# Random texts: every form of the language that is Spark's own, in every way to write it.

NUMBERS = {
    "-1.5": -1.5, "0": 0.0, "1": 1.0, "1.": 1.0, ".5": 0.5, "2e0": 2.0, "1E-1": 0.1, "-0": 0.0
}  # fmt: skip
STRINGS = {
    "''": "", "'a'": "a", '"ab"': "ab", r"'a\'b'": "a'b", r"'a\\b'": "a\\b", r"r'a\b'": "a\\b",
    r"'\u00e9'": "é", "'é'": "é", r"'\U0001F600'": "😀", r"'\101'": "A", r"'a\nb'": "a\nb",
    r"'a\qb'": "aqb", r"'50\%'": r"50\%", r"'a\_'": r"a\_", r"'\ud83d\ude00'": "😀",
    r"'\uffff'": "\uffff",
}  # fmt: skip
PATTERNS = [
    "'%'", "'a%'", "'_'", "'%b'", r"'a\_'", r"'%\\%'", r"'a\\\\b'", "'a!%!!%' ESCAPE '!'",
    "'%!_' ESCAPE '!'", "'a_b'", "''", r"r'a\\b'", "'__%'",
]  # fmt: skip
INSTANTS = {
    "TIMESTAMP '2026-11-15 12:00:00+01:00'": datetime(2026, 11, 15, 11, tzinfo=UTC),
    "timestamp '2026-11-15T11:00:00.500000+00:00'": datetime(2026, 11, 15, 11, 0, 0, 500_000, UTC),
    "TIMESTAMP '2026-11-15'": datetime(2026, 11, 15, tzinfo=UTC),
    "TIMESTAMP '1969-12-31 23:59:59+00:00'": datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
}
BOOLEANS = {"TRUE": True, "false": False}
LITERALS = {
    "n": NUMBERS, "`my n`": NUMBERS, "s": STRINGS, "`a``b`": STRINGS, "t": INSTANTS,
    "timestamp": INSTANTS, "flag": BOOLEANS, "`in`": BOOLEANS,
}  # fmt: skip
NAMES = {"`my n`": "my n", "`a``b`": "a`b", "`in`": "in"}
TEXTS = sorted({*STRINGS.values(), "a%", "a!", "A", "50%", "a_", "a%!x", "\n"})


@st.composite
def predicates(draw):
    name = draw(st.sampled_from(sorted(LITERALS)))
    literals = st.sampled_from(sorted(LITERALS[name]))
    boolean = LITERALS[name] is BOOLEANS
    operator = draw(st.sampled_from(["=", "!=", "<>"] + ["<", "<=", ">", ">="] * (not boolean)))
    negation = draw(st.sampled_from(["", "NOT ", "not "]))
    forms = [
        f"{name} {operator} {draw(literals)}",
        f"{draw(literals)} {operator} {name}",
        f"{name} {negation}IN ({', '.join(draw(st.lists(literals, min_size=1, max_size=3)))})",
        f"{name} Is {negation}Null",
    ]
    if boolean:
        forms += [name, draw(st.sampled_from(["TRUE", "false"]))]
    else:
        forms.append(f"{name} {negation}between {draw(literals)} AND {draw(literals)}")
    if LITERALS[name] is STRINGS:
        forms.append(f"{name} {negation}LIKE {draw(st.sampled_from(PATTERNS))}")
    return draw(st.sampled_from(forms))


def joined(inner):
    pairs = st.tuples(inner, st.sampled_from([" AND ", " and ", " OR ", "\nor\t"]), inner)
    return st.one_of(
        pairs.map("".join),
        pairs.map("".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"NOT {text}"),
        inner.map(lambda text: f"not({text})"),
    )


conditions = st.recursive(predicates(), joined, max_leaves=7)
rows = st.fixed_dictionaries({}, optional={
    **{name: st.sampled_from(sorted({*NUMBERS.values(), 3.0})) for name in ("n", "my n")},
    **{name: st.sampled_from(TEXTS) for name in ("s", "a`b")},
    **{name: st.sampled_from(sorted(INSTANTS.values())) for name in ("t", "timestamp")},
    **{name: st.booleans() for name in ("flag", "in")},
})  # fmt: skip


def event(row):
    attributes = {}
    for name, value in row.items():
        if isinstance(value, bool):
            attributes[name] = Constant(Kind.BOOLEAN, float(value))
        elif isinstance(value, datetime):
            micros = (value - EPOCH) // timedelta(microseconds=1)
            attributes[name] = Constant(Kind.TIMESTAMP, float(micros))
        else:
            kind = Kind.STRING if isinstance(value, str) else Kind.NUMBER
            attributes[name] = Constant(kind, value)
    return Event("e", attributes)


@settings(max_examples=600)
@given(conditions, st.lists(rows, min_size=1, max_size=6))
def test_sqlglot_reads_the_same_meaning(text, some_rows):
    tree = parse(text)
    theirs = sqlglot.parse_one(text, read="spark")
    printed = sqlglot.parse_one(to_text(tree), read="spark")
    for row in some_rows:
        ours = evaluate(tree, event(row)).truth
        assert ours == sql_truth(theirs, row)
        assert ours == sql_truth(printed, row)


# Without doubled quotes, which sqlglot still reads as Spark did before 4.1: as two strings.
string_bodies = st.lists(
    st.sampled_from([*r"\\\\%_nrtbZ0u12378aAfq ", r"\u0041", r"\101", r"\U0001F600", "é"])
).map("".join)


@settings(max_examples=600)
@given(string_bodies)
def test_sqlglot_reads_the_same_strings(body):
    ending = len(body) - len(body.rstrip("\\"))
    token = f"'{body[: len(body) - ending % 2]}'"  # else the last quote would be escaped
    assert unquote(token) == sqlglot.parse_one(f"s = {token}", read="spark").expression.this


def test_each_string_that_is_compared_means_what_it_should():
    for token, meaning in STRINGS.items():
        assert unquote(token) == meaning


def test_the_evaluator_tells_true_false_and_unknown_apart():
    read = sqlglot.parse_one("a = 1 OR s NOT LIKE 'x!%' ESCAPE '!'", read="spark")
    assert sql_truth(read, {"a": 1.0}) is True
    assert sql_truth(read, {"a": 2.0, "s": "x%"}) is False
    assert sql_truth(read, {"a": 2.0}) is None
