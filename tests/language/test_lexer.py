"""Tokens, their places, and what string, number and name tokens stand for."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.errors import ExpressionError, ExpressionSyntaxError, SettingsError
from stentor.language.lexer import (
    END,
    RESERVED,
    is_plain_name,
    parameter_spans,
    token_span,
    tokenize,
)
from stentor.language.limits import Limits
from stentor.language.literals import (
    quote,
    quote_name,
    read_number,
    unquote,
    unquote_name,
    write_number,
)
from stentor.language.predicates.pattern import canonical_pattern
from stentor.language.tree import tree_depth
from stentor.model import IsNull, Not


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a<=>b", ["a", "<=>", "b"]),
        ("a<=-5", ["a", "<=", "-", "5"]),
        ("a!=1", ["a", "!=", "1"]),
        ("a=1.5e-3,.5", ["a", "=", "1.5e-3", ",", ".5"]),
        ("'it''s'\"x\"\"y\"", ["'it''s'", '"x""y"']),
        (r"'it\'s' r'\'", [r"'it\'s'", r"r'\'"]),
        ("`a``b`:name", ["`a``b`", ":name"]),
        ("12abc 1.2.3 1..2", ["12abc", "1.2.3", "1..2"]),
        ("größe", ["größe"]),
        ("a\xa0=\u30001", ["a", "=", "1"]),
        ("'never closed AND a = 1", ["'never closed AND a = 1"]),
        ("a--b/*c", ["a", "--", "b", "/*", "c"]),
    ],
)
def test_tokens_are_the_longest_that_spark_would_take(text, tokens):
    assert tokenize(text)[: len(tokens)] == tokens
    assert set(tokenize(text)[len(tokens) :]) == {END}


@given(st.text())
def test_every_character_is_in_one_token_or_is_space(text):
    tokens = [token for token in tokenize(text) if token != END]
    places = [token_span(text, index) for index in range(len(tokens))]
    assert [text[start:stop] for start, stop in places] == tokens
    between = [0, *(edge for span in places for edge in span), len(text)]
    gaps = (text[start:stop] for start, stop in zip(between[::2], between[1::2], strict=True))
    assert not "".join(gaps).strip()


def test_the_end_stands_right_behind_the_last_token():
    assert token_span("price <  ", 2) == (7, 8)
    assert token_span("", 0) == (0, 1)


def test_keywords_are_known_in_every_mix_of_capitals():
    assert RESERVED["aNd"] == RESERVED["AND"] == "AND"
    assert "ıs" not in RESERVED
    assert not is_plain_name("bEtWeEn")
    assert is_plain_name("timestamp")


def test_a_colon_inside_a_string_is_no_parameter():
    text = r"a = :x AND b = ':y' AND `:z` = r':\' OR c < -:w_1"
    assert [text[start:stop] for start, stop in parameter_spans(text)] == [":x", ":w_1"]


@pytest.mark.parametrize(
    ("token", "meaning"),
    [
        (r"'\0\b\n\r\t\Z'", "\0\b\n\r\t\x1a"),
        (r"'\%\_'", r"\%\_"),
        (r"'\'\"\\\q'", "'\"\\q"),
        (r"'\101\060\377\18'", "A0" + "377" + "18"),
        (r"'\u0041\u00e9\u12'", "Aéu12"),
        (r"'\U0001F600\U1F600'", "😀U1F600"),
        (r"'\ud83d\ude00'", "😀"),
        ("'a''b\"\"c'", 'a\'b""c'),
        ('"a\'\'b""c"', "a''b\"c"),
        (r"r'\n'", r"\n"),
        ('R"it\'s \\"', "it's \\"),
        ("'two\nlines'", "two\nlines"),
        ("''", ""),
    ],
)
def test_strings_mean_what_they_mean_in_spark(token, meaning):
    assert unquote(token) == meaning


@pytest.mark.parametrize("token", ["'", "'abc", "'abc''", r"'abc\'", '"', "r'", "r'abc", "'\\"])
def test_a_string_without_an_end_is_refused(token):
    with pytest.raises(ExpressionSyntaxError, match="has no end"):
        unquote(token)


@pytest.mark.parametrize("token", [r"'\ud83d'", r"'\ude00\ud83d'", r"'\U0000D800'"])
def test_half_of_a_surrogate_pair_is_refused(token):
    with pytest.raises(ExpressionError, match="surrogate"):
        unquote(token)


def test_a_code_beyond_the_last_character_is_refused():
    with pytest.raises(ExpressionError, match="no character"):
        unquote(r"'\UFFFFFFFF'")


@given(st.text())
def test_a_quoted_string_reads_back_the_same_and_shows_all_of_itself(text):
    assert unquote(quote(text)) == text
    assert quote(text).isprintable()
    assert len([token for token in tokenize(quote(text)) if token != END]) == 1


@given(st.text(min_size=1))
def test_a_quoted_name_reads_back_the_same(name):
    written = quote_name(name)
    assert tokenize(written)[0] == written
    assert (unquote_name(written) if written[0] == "`" else written) == name


@pytest.mark.parametrize(
    ("token", "name"), [("`a b`", "a b"), ("````", "`"), ("`a```", "a`"), ("`in`", "in")]
)
def test_a_name_in_backquotes_is_any_text(token, name):
    assert tokenize(token)[0] == token
    assert unquote_name(token) == name


@pytest.mark.parametrize("token", ["`", "`a", "`a``", "```"])
def test_a_name_without_an_end_is_refused(token):
    with pytest.raises(ExpressionSyntaxError, match="has no end"):
        unquote_name(token)


@pytest.mark.parametrize(
    ("token", "double"),
    [
        ("1", 1.0),
        ("007", 7.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("1.e3", 1000.0),
        ("1E+3", 1000.0),
        ("9007199254740992", 2.0**53),
        ("9007199254740994", 2.0**53 + 2),
        ("0" * 5000 + "12", 12.0),
        ("1e-999", 0.0),
        ("1" + "0" * 22, 1e22),
    ],
)
def test_numbers_are_doubles(token, double):
    assert read_number(token) == double


@pytest.mark.parametrize("token", ["9007199254740993", "1" + "0" * 23, "9" * 400, "9" * 60_000])
def test_an_integer_that_a_double_cannot_hold_is_refused(token):
    with pytest.raises(ExpressionError, match="integer"):
        read_number(token)


@pytest.mark.parametrize("token", ["1e999", "1" * 400 + ".5"])
def test_a_number_beyond_the_largest_double_is_refused(token):
    with pytest.raises(ExpressionError, match="largest double"):
        read_number(token)


@pytest.mark.parametrize("token", ["1_000", "1e", "0x10", "1.2.3", ".", "1e5_0", "7²", "1٣"])
def test_what_is_not_a_number_is_refused(token):
    with pytest.raises(ExpressionSyntaxError, match="is not a number"):
        read_number(token)


@pytest.mark.parametrize("token", ["5L", "5s", "1.5BD", "3d", "2.F"])
def test_a_type_suffix_is_explained(token):
    with pytest.raises(ExpressionSyntaxError, match="type suffix"):
        read_number(token)


@given(st.floats(min_value=0, allow_infinity=False))
def test_a_written_number_reads_back_the_same(double):
    assert read_number(write_number(double)) == double


def test_whole_numbers_are_written_without_a_point():
    assert [write_number(x) for x in (3300.0, -2.0, 1e14, 1e15, 0.5)] == [
        "3300",
        "-2",
        "100000000000000",
        "1000000000000000.0",
        "0.5",
    ]
    assert math.copysign(1.0, read_number("0")) == 1.0


@pytest.mark.parametrize(
    ("pattern", "escape", "written"),
    [
        ("a%b_", "\\", "a%b_"),
        (r"100\%\\", "\\", r"100\%\\"),
        ("100!%!!", "!", r"100\%!"),
        ("a\\b", "!", r"a\\b"),
        ("%%_%_", "%", r"\%_\_"),
    ],
)
def test_a_pattern_has_backslashes_in_the_tree(pattern, escape, written):
    assert canonical_pattern(pattern, escape, 100) == written


def test_a_pattern_that_needs_no_change_stays_the_same_object():
    pattern = "".join(["1%", r"\%"])
    assert canonical_pattern(pattern, "\\", 100) is pattern
    plain = "".join(["1", "%"])
    assert canonical_pattern(plain, "!", 100) is plain


@pytest.mark.parametrize(
    ("pattern", "escape"), [("a\\", "\\"), (r"\a", "\\"), (r"%\\\b", "\\"), ("a_", "_")]
)
def test_an_escape_before_nothing_special_is_refused_as_spark_does(pattern, escape):
    with pytest.raises(ExpressionError, match="has its escape"):
        canonical_pattern(pattern, escape, 100)


@pytest.mark.parametrize("escape", ["", "ab", "😀"])
def test_an_escape_is_one_character(escape):
    with pytest.raises(ExpressionError, match="one character"):
        canonical_pattern("a", escape, 100)


@pytest.mark.parametrize(
    "wrong", [{"depth": 0}, {"depth": 101}, {"bytes": 1.5}, {"words": True}, {"predicates": "9"}]
)
def test_limits_are_whole_numbers_of_at_least_one(wrong):
    with pytest.raises(SettingsError, match=f"the limit '{next(iter(wrong))}'"):
        Limits(**wrong)


def test_a_tree_of_any_depth_can_be_measured():
    tree = IsNull("a")
    for _ in range(50_000):
        tree = Not(tree)
    assert tree_depth(tree) == 50_001
    while isinstance(tree, Not):  # let go of it level by level, not by recursion
        tree = tree.child
