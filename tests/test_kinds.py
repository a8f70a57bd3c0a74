"""Kinds of predicates: a closed set of numbers that are on disk, with a word in every layer.

What a new kind still lacks is named here, layer by layer; CONTRIBUTING.md shows how one is added.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from stentor.encoding import kinds
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.kinds import KIND_MASK, NEGATED, PredicateKind, are_among, is_among, traits
from stentor.encoding.predicates import filler, slots_of
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.index.catalog import index_class
from stentor.language import predicates as language
from stentor.language.evaluate import evaluate
from stentor.language.negation import Literal
from stentor.language.normalise import normalise
from stentor.language.parser import parse
from stentor.model import Not, Point
from stentor.model.kind import PredicateWord
from tests.docs import documents
from tests.support import grid, strategies

LAYERS = ["language.predicates", "encoding.predicates", "index.verify", "covering.implies"]
WORDS: tuple[PredicateWord, ...] = typing.get_args(PredicateWord)
HOME = Point(1.0, 2.0)
SCHEMA = grid.schema()


def test_the_numbers_are_those_of_saved_folders():
    assert {kind.name: kind.value for kind in PredicateKind} == {
        "INTERVAL": 0,
        "INTERVALS": 1,
        "MISSING": 2,
        "PRESENT": 3,
        "MEMBERSHIP": 4,
        "STRING_INTERVAL": 5,
        "PATTERN": 6,
        "KEYWORDS": 7,
        "BOX": 8,
        "CIRCLE": 9,
        "OWN_CIRCLE": 10,
        "POLYGON": 11,
        "REGULAR": 12,
        "PHRASE": 13,
    }
    assert all(type(getattr(kinds, kind.name)) is int for kind in PredicateKind)
    assert (KIND_MASK, NEGATED) == (63, 64)


def test_every_word_has_a_kind_and_every_kind_a_word():
    assert {traits(kind).word for kind in PredicateKind} == set(WORDS)


@pytest.mark.parametrize(
    ("mask", "about"),
    [(kinds.NUMBERS, "number"), (kinds.STRINGS, "string"), (kinds.REGIONS, "point")],
)
def test_masks_say_what_traits_say_and_nothing_of_unknown_kinds(mask, about):
    expected = [kind for kind in PredicateKind if traits(kind).about == about]
    assert [kind for kind in range(KIND_MASK + 1) if is_among(kind, mask)] == expected
    every = np.arange(2 * NEGATED, dtype=np.uint8)
    assert are_among(every, mask).tolist() == [is_among(int(kind), mask) for kind in every]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("word", WORDS)
def test_each_layer_has_a_file_for_each_word(layer, word):
    assert importlib.util.find_spec(f"stentor.{layer}.{word}") is not None


def predicates_of(word):
    """Predicates of one kind; none where `strategies` does not draw it yet."""
    return strategies.predicates().filter(lambda predicate: language.word_of(predicate) == word)


def in_layers(drawn):
    """A few examples, most of what is drawn being of another kind."""

    def decorated(check):
        rare = settings(max_examples=15, suppress_health_check=[HealthCheck.filter_too_much])
        return rare(given(drawn)(check))

    return decorated


@pytest.mark.parametrize("word", WORDS)
def test_the_language_reads_writes_and_simplifies_each_kind(word):
    @in_layers(predicates_of(word))
    def check(predicate):
        assert parse(language.to_text(predicate), schema=SCHEMA) == predicate
        kind = language.attribute_kind(predicate)
        assert kind in (None, grid.KINDS[predicate.attribute])
        plain, negated = (language.normal_form(predicate, flag) for flag in (False, True))
        assert plain != negated

    check()


#: Kinds of columns whose word is not that of the tree: lists of numbers, and strings equal to one.
OTHERWISE = {"comparison": {"membership"}, "membership": {"comparison"}}


@pytest.mark.parametrize("word", WORDS)
def test_the_encoding_appends_and_fills_each_kind(word):
    @in_layers(predicates_of(word))
    def check(predicate):
        for tree in (predicate, Not(predicate)):
            columns = encode_subscriptions([NormalisedSubscription(normalise(tree), HOME)], SCHEMA)
            found = {traits(PredicateKind(kind & KIND_MASK)).word for kind in columns.kind.tolist()}
            assert found <= {word} | OTHERWISE.get(word, set())
        fill = filler([Literal(predicate, False, 1.0)])
        assert fill is None or callable(fill)
        assert slots_of(predicate) == []

    check()


@pytest.mark.parametrize("word", WORDS)
def test_the_verifier_finds_what_each_kind_asks_for(word):
    def is_true(pair):
        return evaluate(*pair, here=HOME).truth

    predicate, event = find(
        st.tuples(predicates_of(word), strategies.events()),
        is_true,
        settings=settings(max_examples=20_000, database=None, phases=[Phase.generate]),
    )
    columns = encode_subscriptions([NormalisedSubscription(normalise(predicate), HOME)], SCHEMA)
    events = encode_events([TimedEvent(event)], SCHEMA)
    assert index_class("scan").build(columns).match(events).rows.tolist() == [0]


# CONTRIBUTING.md, "Adding a kind of predicate": its steps, one after another, on a copy.

ROOT = Path(__file__).parents[1]
ADDED = """
import stentor
from stentor.pipeline.sql.functions import functions_for

engine = stentor.Engine()
engine.subscribe("three", "has_length(brand, 3)")
engine.subscribe("other", "NOT has_length(brand, 3) AND price < 9")
engine.subscribe("cheap", "has_length(brand, 3) AND price < 9")
print(*engine.publish({"id": "e1", "brand": "\u00e9t\u00e9", "price": 5}))
print(*engine.publish({"id": "e2", "brand": "ete?", "price": 5}))
print(*engine.publish({"id": "e3", "price": 5}))
print(engine.redundant())
print(functions_for("length"))
"""


def test_a_kind_is_added_as_contributing_says(tmp_path):
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    steps = [block for block in documents.blocks("py") if block.page == "CONTRIBUTING.md"]
    unions = [step for step in steps if step.name in UNIONS]
    others = [step for step in steps if step.name not in UNIONS]
    for step in unions:
        follow(tmp_path / "src" / "stentor" / step.name, step.text)
    lacking = run(tmp_path, "-m", "mypy", "--strict", "src")
    lines = (re.match(r"src/stentor/(\S+?):.*assert_never", x) for x in lacking.stdout.splitlines())
    named = {found[1] for found in lines if found}
    told = {step.name for step in others if "case" in step.text and "# in " in step.text}
    assert named == told
    for step in others:
        follow(tmp_path / "src" / "stentor" / step.name, step.text)
    for layer in LAYERS:
        assert (tmp_path / "src" / "stentor" / layer.replace(".", "/") / "length.py").exists()
    checked = run(tmp_path, "-m", "mypy", "--strict", "src")
    assert checked.returncode == 0, checked.stdout
    answered = run(tmp_path, "-c", ADDED)
    assert answered.stdout.splitlines() == [
        "cheap three",
        "other",
        "",
        "[Redundant(id='cheap', covered_by='three')]",
        "('has_length',)",
    ], answered.stderr


#: Where the closed unions stand, from which mypy knows what is lacking.
UNIONS = {
    "model/kind.py",
    "model/expression.py",
    "language/normal_predicates.py",
    "encoding/kinds.py",
}


def run(folder, *arguments):
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "NUMBA_DISABLE_JIT": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def follow(path, text):
    """Do what a block says: a new file, or imports and what goes `in` and `above` something."""
    if not path.exists():
        path.write_text(text)
        return
    imports, sections = [], []
    for line in text.splitlines(keepends=True):
        if line.startswith(("# in ", "# above ")):
            sections.append((*line[2:].split(), []))
        else:
            (sections[-1][2] if sections else imports).append(line)
    lines = path.read_text().splitlines(keepends=True)
    for where, name, wanted in sections:
        at, added = place_of(lines, where, name, wanted)
        lines[at:at] = added
    body = ast.parse("".join(lines)).body
    last = max(one.end_lineno for one in body if isinstance(one, ast.Import | ast.ImportFrom))
    path.write_text("".join([*lines[:last], *imports, *lines[last:]]))


def place_of(lines, where, name, added):
    """Before which line *added* goes, and in which form."""
    node = next(one for one in ast.parse("".join(lines)).body if name in names_of(one))
    first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
    if where == "above":
        return first - 1, added
    stop = node.end_lineno
    if isinstance(node, ast.ClassDef):
        return stop, added
    if isinstance(node, ast.FunctionDef):
        at = max(n for n in range(first, stop) if is_end(lines[n]))
        return (at - 1 if lines[at - 1].strip() in ("case _:", "case other:") else at), added
    if isinstance(node.value, ast.BinOp):
        lines[stop - 1] = lines[stop - 1].rstrip() + " " + added[0]
        return stop, []
    before = lines[stop - 2].rstrip()
    lines[stop - 2] = before.removesuffix(",") + ",\n"
    return stop - 1, added


def is_end(line):
    """Whether a function may end in *line*: nothing is left, or what is left fails closed."""
    return line.strip().startswith(("assert_never(", "return False", "if which != KEYWORDS"))


def names_of(node):
    match node:
        case ast.FunctionDef(name) | ast.ClassDef(name):
            return [name]
        case ast.Assign(targets):
            return [one.id for one in targets if isinstance(one, ast.Name)]
        case ast.AnnAssign(ast.Name(name)):
            return [name]
    return []
