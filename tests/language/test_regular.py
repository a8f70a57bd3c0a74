"""RLIKE and ILIKE: the tables that kernels run accept what RE2, or the definition, accepts."""

# ruff: noqa: E501

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stentor
from stentor._jit import kernel
from stentor.errors import ExpressionError, LimitError
from stentor.index.verify.pattern import is_accepted
from stentor.language.evaluate import evaluate
from stentor.language.predicates.pattern import like
from stentor.language.regular import compiled, found_in
from stentor.language.regular.syntax import folded
from tests.support import grid

ATOMS = [
    *("a", "b", "é", "k", ".", "[ab]", "[^a]", r"\d", r"\w", r"\s", r"\b", r"\B", "^", "$", "(?i)k", "(?i:a)"),
    *("[[:alpha:]]", "x{2}", "(a|b)*", "(?m)^", "(?m)$", r"\A", r"\z", "(?s).", r"\x41", r"\.", r"\Qa.b\E"),
    *("(?:ab)+", "a*?", "[a-z]{1,3}", "_", r"\n", "(?i)[k-l]", r"\x{1F389}", "(?P<x>a)", r"[\]a]", "[a\\-z]"),
]  # fmt: skip
patterns = st.lists(
    st.tuples(st.sampled_from(ATOMS), st.sampled_from(["", "", "", "|", "*", "?"])).map("".join),
    min_size=1,
    max_size=4,
).map("".join)
texts = st.text(st.sampled_from("abkKé1 \n_.xA\u212aſ🎉"), max_size=6)


@kernel
def asked(text, table):
    """`is_accepted`, which only kernels can call."""
    return is_accepted(text, table)


def accepts(syntax, pattern, text):
    table = np.frombuffer(compiled(syntax, pattern).table, np.uint8)
    return asked(np.frombuffer(text.encode(), np.uint8), table)


@given(patterns, texts)
def test_a_table_accepts_what_re2_finds(pattern, text):
    try:
        found = found_in(text, pattern)
    except ExpressionError:
        return  # a repetition of a repetition, say
    assert accepts("RLIKE", pattern, text) == found


@given(
    st.text(st.sampled_from("aBéÉ%_ςΣİ"), max_size=5),
    st.text(st.sampled_from("aAbBéÉςσİi"), max_size=5),
)
def test_ilike_is_like_of_small_letters(pattern, text):
    assert accepts("ILIKE", pattern, text) == like(folded(text), folded(pattern))


@pytest.mark.parametrize("pattern", [*grid.REGULAR, "^$", "a.b", r"\\", "'"])
def test_an_engine_answers_as_the_definition_does(pattern):
    engine = stentor.Engine("scan", clock=None)
    tree = stentor.parse("s RLIKE :p", parameters={"p": pattern})
    engine.subscribe("r", tree)
    engine.subscribe("n", ~stentor.col("s").rlike(pattern))
    engine.subscribe("i", stentor.col("s").ilike("A%b"))
    for number, text in enumerate([*grid.STRINGS, "Ab", "aXB"]):
        event = stentor.Event(str(number), {"s": stentor.model.Constant("string", text)})
        wanted = list(engine.publish({"id": str(number), "s": text}))
        truth = evaluate(tree, event).truth
        assert ("r" in wanted) == found_in(text, pattern) == ("n" not in wanted)
        assert truth in (None, "r" in wanted)
        assert ("i" in wanted) == like(folded(text), "a%b")


@pytest.mark.parametrize(
    ("pattern", "error"),
    [("(a", ExpressionError), ("a(?=b)", ExpressionError), (r"(a)\1", ExpressionError),
     ("(a|b)*a(a|b){14}", LimitError), ("((((a{100}){100}){100}))", ExpressionError), (r"\C", ExpressionError)],
)  # fmt: skip
def test_what_is_no_pattern_or_too_large_is_refused(pattern, error):
    with pytest.raises(error):
        stentor.parse("s RLIKE :p", parameters={"p": pattern})


def test_texts_read_back():
    for text in ("s RLIKE '^a[0-9]+'", "NOT s ILIKE 'A\\%%'", "s NOT RLIKE 'a|b'"):
        tree = stentor.parse(text)
        assert stentor.parse(stentor.to_text(tree)) == tree
