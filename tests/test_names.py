"""Names follow docs/dictionary.md: one word, one meaning; siblings have the same files."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import stentor

ROOT = Path(__file__).parents[1]
PACKAGE = Path(stentor.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
STRUCTURES = sorted(path.parent for path in (PACKAGE / "index").glob("*/index.py"))
#: What every structure has. Most have more of the skeleton (`settings`, `build`, `remove`, `top`,
#: `live`): a verb without forty lines of its own lives in `insert` or `index`.
SKELETON = {"__init__", "layout", "insert", "match", "check", "index"}
#: Words of the dictionary's last column that name other things rightly, and which.
OTHERWISE = {
    "message": "brokers and neighbours send messages, and an error has one",
    "clause": "a field of the saved AP-Tree",
    "dimension": "as the dictionary says: the papers' word for what a tree is cut by",
    "name": "attributes, structures and files have names; only what a user gave is an id",
    "key": "of a dict, of a sort, of an API, of a list of packed",
    "entry": "of the papers' lists and nodes, and of folders and logs; not a row",
    "begin": "what goes on for a while begins: a merge, a transaction, a link",
    "end": "when a subscription or an event ends is a time, no position",
    "turn": "a Hilbert curve turns, a circle's tangent too",
    "when": "as the public type of times is called",
    "choose": "attributes, axes and filters are chosen, by a cost; structures are built",
    "file": "of a disk",
    "enter": "a context, a cell; `entered` is public",
    "store": "a broker's, on disk",
    "visit": "the cost of visiting a node, a setting of the AP-Tree",
    "overflow": "the size at which a node of a kd-tree is split",
    "pool": "of threads",
    "step": "of a rebuild, of a rendering, of a curve",
    "held": "what a home or a lock holds",
    "before": "what was, beside what is",
    "marks": "bits of rows, and signs in a picture",
}
#: What names other things in tests and in the laboratory only.
OTHERWISE_BESIDE = {
    "told": "what a program said that was run",
    "place": "on a map, or of a line in a file",
    "way": "in which something is done",
}
#: Words that stood for several things at once in the product, or forms of such a word.
FORMS = {
    *("settled", "settling", "knobs", "planted", "rooms", "roomier", "places", "standing"),
    *("outcome", "filed", "filing", "backwards"),
}
#: Arguments and words of settings that users write, names of files that were written before, and
#: an algorithm's own name.
KEPT = {
    "src/stentor/engine/safe_region.py": {"place"},
    "src/stentor/index/ap_tree/settings.py": {"places"},
    "src/stentor/index/mo_tree/layout.py": {"room"},
    "src/stentor/index/verify/pattern.py": {"find_two_way"},
    "src/stentor/pipeline/stream/segments.py": {"place"},
}
#: The laboratory's points of comparison: they have the words of the papers that they are from.
RIVALS = "lab/src/stentor_lab/baselines/"
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


def ruled_out():
    """The words of the columns "not" of the dictionary; what is in parentheses is a remark."""
    column = None
    for line in (ROOT / "docs" / "dictionary.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            column = None
        elif column is None:
            column = cells.index("not") if "not" in cells else len(cells)
        elif column < len(cells):
            words = re.sub(r"\(.*?\)", "", cells[column]).split(",")
            yield from (word.strip() for word in words if word.strip("- "))


RULED_OUT = {*ruled_out()}


def test_what_is_declared_to_be_named_otherwise_stands_in_the_dictionary():
    assert len(RULED_OUT) > 40
    assert not {*OTHERWISE, *OTHERWISE_BESIDE} - RULED_OUT
    assert not OTHERWISE.keys() & OTHERWISE_BESIDE.keys()


def wrong_names(names, words):
    """Those of *names* that contain one of *words*, which may be several in a row."""
    for name in names:
        said = "_".join(word.lower() for word in WORD.split(name) if word)
        if any(f"_{word.replace(' ', '_')}_" in f"_{said}_" for word in words):
            yield name


@pytest.mark.parametrize("folder", ["src", "lab", "tests"])
def test_words_that_the_dictionary_rules_out_name_nothing(folder):
    words = RULED_OUT - OTHERWISE.keys()
    words = words | FORMS if folder == "src" else words - OTHERWISE_BESIDE.keys()
    wrong = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        known = path.relative_to(ROOT).as_posix()
        names = {path.stem, *defined_names(ast.parse(path.read_text()))} - KEPT.get(known, set())
        names = {name for name in names if not name.startswith("test_")}  # sentences
        if not known.startswith(RIVALS) and (found := {*wrong_names(names, words)}):
            wrong[known] = found
    assert not wrong


@pytest.mark.parametrize("folder", STRUCTURES, ids=lambda folder: folder.name)
def test_structures_have_the_same_files(folder):
    assert not SKELETON - {path.stem for path in folder.glob("*.py")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_has_more_than_500_lines(path):
    assert len(path.read_text().splitlines()) <= 500
