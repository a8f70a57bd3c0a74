"""Names follow docs/dictionary.md: one word, one meaning; siblings have the same files."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import stentor

PACKAGE = Path(stentor.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
STRUCTURES = sorted(path.parent for path in (PACKAGE / "index").glob("*/index.py"))
#: What every structure has. Most have more of the skeleton (`settings`, `build`, `remove`, `top`,
#: `live`): a verb without forty lines of its own lives in `insert` or `index`.
SKELETON = {"__init__", "layout", "insert", "match", "check", "index"}
#: Words that stood for several things at once: nothing is called by them any more.
FORBIDDEN = {
    *("settle", "settled", "settling", "desk", "knobs", "plant", "planted", "room", "rooms"),
    *("roomier", "place", "places", "told", "standing", "outcome", "filed", "filing", "backwards"),
}
#: Arguments and words of settings that users write, and names of files that were written before.
KEPT = {
    "engine/safe_region.py": {"place"},
    "index/ap_tree/settings.py": {"places"},
    "index/mo_tree/layout.py": {"room"},
    "pipeline/stream/segments.py": {"place"},
}
WORD = re.compile(r"_|(?<=[a-z])(?=[A-Z])")


def test_no_class_name_stands_for_two_things():
    homes = defaultdict(list)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(PACKAGE)))
    assert not {name: paths for name, paths in homes.items() if len(paths) > 1}


def defined_names(tree):
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.arg():
                yield node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_words_that_the_dictionary_rules_out_name_nothing(path):
    names = {path.stem, *defined_names(ast.parse(path.read_text()))}
    names -= KEPT.get(str(path.relative_to(PACKAGE)), set())
    assert not {name for name in names if FORBIDDEN & {word.lower() for word in WORD.split(name)}}


@pytest.mark.parametrize("folder", STRUCTURES, ids=lambda folder: folder.name)
def test_structures_have_the_same_files(folder):
    assert not SKELETON - {path.stem for path in folder.glob("*.py")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_has_more_than_500_lines(path):
    assert len(path.read_text().splitlines()) <= 500
