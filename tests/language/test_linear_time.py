"""What strangers send is read and matched in linear time.

Reading is shown by long texts, on which anything quadratic would take minutes each; matching by
counting the bytes that are looked at.
"""

import json
import os
import subprocess
import sys
from contextlib import suppress
from itertools import product

import pytest

from stentor.encoding.slots import split_shape
from stentor.errors import LimitError, StentorError
from stentor.language.lexer import parameter_spans, tokenize
from stentor.language.limits import ANY_SIZE, Limits
from stentor.language.literals import unquote, unquote_name
from stentor.language.normalise import normalise
from stentor.language.parser import parse
from stentor.language.predicates.pattern import like, steps_of
from stentor.language.predicates.polygon import read_polygon
from stentor.language.terms import fold_terms, has_wildcard
from stentor.model import Like, Schema
from stentor.model.values.time import parse_timestamp
from stentor.wire.cloudevents import cloudevent_to_plain
from stentor.wire.records import record_from_dict

LONG = 40_000
UNITS = [
    "1", "1.", "1e1", "-", ".", " ", "\t", "(", ")", ",", "0 0,", "((", "))", ") ", "( ", "'", "''",
    "\\", "'\\", "\\'", '"', "`", "``", "r'", "a", "_", "%", "*", "e", "e+", ":a", "é", "e\u0301",
    "\u0301", "東", "\u00ad", "Z", "+01", "/", "a*", "1'", "'1",
]  # fmt: skip
#: What begins so is what each reader expects.
READERS = {
    "polygon": (
        ["POLYGON(", "POLYGON((0 0, 1", "POLYGON((0 0)", " "],
        lambda text: read_polygon(text, True, LONG),
    ),
    "tokens": (["", "'", "a = 1", "a = '"], tokenize),
    "parameters": (["", ":"], parameter_spans),
    "shape": (["", "'", "1", "a < 1"], split_shape),
    "string": (["'", '"', "r'", "'\\u0041"], unquote),
    "name": (["`", "`a"], unquote_name),
    "timestamp": (["2026-11-15", "2026-11-15 12:00:00.", "2026-11-15 ", ""], parse_timestamp),
    "terms": (["", "a"], fold_terms),
    "wildcards": (["", "a"], has_wildcard),
    "cloudevent": ([""], lambda text: cloudevent_to_plain(
        {"specversion": "1.0", "id": "1", "source": "s", "type": "t", text: 1})),
    "field": ([""], lambda text: record_from_dict({"op": "move", "id": "1", text: 1}, Schema())),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_no_text_is_read_in_more_than_linear_time(reader):
    beginnings, read = READERS[reader]
    for beginning, unit, end in product(beginnings, UNITS, ("", "x", ")")):
        with suppress(StentorError, ValueError):
            read(beginning + unit * (LONG // len(unit)) + end)


#: Texts and patterns on which plain searching takes O(text × pattern) steps.
HOSTILE = [
    ("a", "%{a}b%", 400),
    ("a", "%b{a}%", 400),
    ("ab", "%{ab}aa%", 200),
    ("aab", "%{aab}aaa%c", 130),
    ("a", "%{a}b%{a}c%", 200),
    ("é", "%{é}x%", 200),
    ("a", "{a}%b{a}", 400),
]
COUNTED = """
import json, sys
from stentor.index.verify.pattern import is_like

class Counted:
    looked = 0

    def __init__(self, text):
        self.bytes = text.encode()

    def __len__(self):
        return len(self.bytes)

    def __getitem__(self, at):
        Counted.looked += 1
        return self.bytes[at]

found = []
for text, pattern in json.load(sys.stdin):
    Counted.looked = 0
    is_like(Counted(text), Counted(pattern))
    found.append(Counted.looked)
print(json.dumps(found))
"""


def cases(size):
    """Each hostile text of about *size* characters, and its pattern."""
    for unit, pattern, count in HOSTILE:
        yield unit * (size // len(unit)), pattern.replace("{" + unit + "}", unit * count)


def test_a_pattern_without_single_characters_looks_at_each_byte_a_few_times():
    given = [*cases(2_000), *cases(8_000)]
    done = subprocess.run(
        [sys.executable, "-c", COUNTED],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    )
    for (text, pattern), looked in zip(given, json.loads(done.stdout), strict=True):
        assert looked < 14 * (len(text.encode()) + len(pattern.encode())), (pattern, looked)


def test_what_a_pattern_with_single_characters_takes_is_bounded_beforehand():
    wide = "%" + "a_" * 128 + "b%"
    assert steps_of(wide) == 8 * 257
    with pytest.raises(LimitError, match="steps for each character"):
        normalise(parse(f"a LIKE '{wide}'"))
    assert normalise(parse(f"a LIKE '{wide}'"), Limits(pattern_steps=8 * 257)).alternatives
    assert normalise(Like("a", wide), ANY_SIZE).alternatives
    # In the first and the last part, and without a `_`, length does not matter.
    for cheap in ("a_" * 500, f"{'a_' * 250}%{'b_' * 250}", f"%{'a' * 1000}%"):
        assert steps_of(cheap) == 1
    alternatives = " OR ".join(f"b = {number}" for number in range(600))
    several = " AND ".join(f"a LIKE '%{letter}%'" for letter in "wxyz")
    with pytest.raises(LimitError, match="2,400 steps"):
        normalise(parse(f"({alternatives}) AND {several}"))


def test_the_definition_of_like_takes_one_step_for_each_character():
    for text, pattern in [*cases(3_000_000), ("a" * 200_000, "%" + "a_" * 400 + "b%")]:
        assert not like(text, pattern)
