"""What a term is; and that ASCII kernels, whole columns and single texts all agree on it."""

import unicodedata
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.encoding.hashing import attribute_seed, hash_bytes
from stentor.encoding.terms import TermColumns, terms_of_column, terms_of_texts
from stentor.errors import RecordError
from stentor.language import terms
from stentor.language.terms import fold_terms

SEED = attribute_seed("text")

# Characters at which the rules meet: cases, marks, unseen ones, scripts without spaces, separators.
EDGES = (
    "aZ09 _-'.\0\n\x7f\u00ad\u00b4\u00aa\u00e9\u00c9\u00df\u1e9e\u0130\u0131\u03a3\u03c2\u0390"
    "\u01f0\ufb01\uff21\u2122\u2120\u00ae\u2019\u20ac\u0301\u0308\u0323\u0344\u0345\u037a\u1fb4\u20e3"
    "\u200b\u200c\u200d\u2060\ufe0f\ufeff\u034f\u3164\U000e0101\u6771\u4eac\u3007\u3005\u3042\u30a2"
    "\u30fc\uff71\u3099\u30fb\u0e01\u0e49\u0e33\u0e51\u0e81\u1780\u17d2\u1000\ud55c\u1112\u1161"
    "\u0939\u093f\u094d\u0627\u064b\U0001f389\U00020000\ue000\U000e0fff\ud800"
)
texts = st.text(st.sampled_from(EDGES) | st.characters(), max_size=12)
ascii_texts = st.text(st.characters(max_codepoint=127), max_size=30)


def obvious_terms(text: str) -> list[str]:
    """The rules of the module's docstring, one character at a time and by the names of scripts."""
    text = "".join(" " if char in "™℠\u200b" else char for char in text if not is_unseen(char))
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    runs: list[tuple[str, list[str]]] = []
    script = None
    for char in text:
        category = unicodedata.category(char)[0]
        if category == "M" and script is not None:
            runs[-1][1][-1] += char
        elif category in {"L", "N"}:
            if script_of(char) != script:
                script = script_of(char)
                runs.append((script, []))
            runs[-1][1].append(char)
        elif category != "M":
            script = None
    found = []
    for script, characters in runs:
        if script == "spaced" or len(characters) == 1:
            found.append("".join(characters))
        else:
            found += [a + b for a, b in pairwise(characters)]
    return found


def is_unseen(char: str) -> bool:
    if unicodedata.category(char) == "Cf":
        return char != "\u200b"
    name = unicodedata.name(char, "")
    return any(
        part in name
        for part in ("VARIATION SELECTOR", "GRAPHEME JOINER", "VOWEL INHERENT", "FILLER")
    )


def script_of(char: str) -> str:
    name = unicodedata.name(char, "")
    if unicodedata.category(char) == "Nd":
        return "spaced"
    if name.startswith(("CJK ", "HIRAGANA", "KATAKANA", "HENTAIGANA", "IDEOGRAPHIC", "HANGZHOU")):
        return "east"
    if name.startswith(("THAI ", "LAO ", "KHMER ", "MYANMAR ")):
        return "south-east"
    return "spaced"


def terms_by_row(columns: TermColumns) -> list[list[str]]:
    """The terms as text, after a look at the form of *columns*."""
    assert [array.dtype for array in columns] == ["i8", "u8", "i8", "i8", "u1"]
    assert columns.start[0] == 0
    assert columns.start[-1] == len(columns.hash)
    assert len(columns.byte_start) == len(columns.byte_stop) == len(columns.hash)
    encoded = [
        columns.data[start:stop].tobytes()
        for start, stop in zip(columns.byte_start, columns.byte_stop, strict=True)
    ]
    assert columns.hash.tolist() == [hash_bytes(term, SEED) for term in encoded]
    return [
        [term.decode() for term in encoded[start:stop]] for start, stop in pairwise(columns.start)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("Straße STRASSE straẞe", ["strasse"] * 3),
        ("İstanbul", ["i\u0307stanbul"]),
        ("ΟΔΥΣΣΕΥΣ Οδυσσεύς", ["οδυσσευσ", "οδυσσεύσ"]),
        ("\uff49\uff30\uff41\uff44", ["ipad"]),
        ("\ufb01ne", ["fine"]),
        ("caf\u00e9 cafe\u0301 CAFE\u0301", ["caf\u00e9"] * 3),
        ("iphone15 15", ["iphone15", "15"]),
        ("don't e-mail snake_case", ["don", "t", "e", "mail", "snake", "case"]),
        ("it´s it’s", ["it", "s", "it", "s"]),
        ("a\0b", ["a", "b"]),
        ("to be to be", ["to", "be", "to", "be"]),
        ("m² ½", ["m2", "1", "2"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("कि क", ["कि", "क"]),
        ("한국어 문장", ["한국어", "문장"]),
    ],
)
def test_words_of_spaced_scripts_are_terms(text: str, expected: list[str]) -> None:
    assert fold_terms(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("東京都", ["東京", "京都"]),
        ("水", ["水"]),
        ("iPad東京", ["ipad", "東京"]),
        ("東京2024年", ["東京", "2024", "年"]),
        ("お茶とコーヒー", ["お茶", "茶と", "とコ", "コー", "ーヒ", "ヒー"]),
        ("ﾀﾜｰ・人々", ["タワ", "ワー", "人々"]),
        ("ภาษาไทย", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]),
        ("กี่ ที่นี่", ["กี่", "ที่นี่"]),
        ("ไทย๑๒ไทย", ["ไท", "ทย", "๑๒", "ไท", "ทย"]),
        ("ខ្មែរ", ["ខ្មែ", "មែរ"]),
        ("東ไ", ["東", "ไ"]),
    ],
)
def test_scripts_without_spaces_give_pairs_of_characters(text: str, expected: list[str]) -> None:
    assert fold_terms(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("co\u00adoperate", ["cooperate"]),
        ("می\u200cخواهم", ["میخواهم"]),
        ("e\u200d\u0301", ["\u00e9"]),
        ("\ufeffipad\u200e", ["ipad"]),
        ("ip\u2060ad", ["ipad"]),
        ("zero\u200bwidth", ["zero", "width"]),
        ("love❤\ufe0fyou", ["love", "you"]),
        ("👩\u200d💻 iPad🎉discount", ["ipad", "discount"]),
        ("iPad™ Care℠ Pro® ©2024", ["ipad", "care", "pro", "2024"]),
        ("\u0301a \u0301b", ["a", "b"]),
        ("x\ud800y", ["x", "y"]),
        ("x\ue000y", ["x", "y"]),
    ],
)
def test_unseen_characters_vanish_and_symbols_separate(text: str, expected: list[str]) -> None:
    assert fold_terms(text) == expected


@given(texts)
def test_terms_are_what_the_rules_say(text: str) -> None:
    assert fold_terms(text) == obvious_terms(text)


@given(texts)
def test_terms_fold_to_themselves(text: str) -> None:
    folded = fold_terms(text)
    assert fold_terms(" ".join(folded)) == folded


def test_every_character_folds_to_terms_that_fold_to_themselves() -> None:
    folded = fold_terms(" ".join(map(chr, range(0x110000))))
    assert len(folded) > 100_000
    assert fold_terms(" ".join(folded)) == folded


def test_every_simple_character_is_a_letter_or_a_separator() -> None:
    simple = [char for char in map(chr, range(0x110000)) if terms._SIMPLE.fullmatch(char)]
    assert len(simple) > 1_000
    for char in simple:
        is_word = bool(terms._WORD.fullmatch(char))
        assert terms._KINDS[ord(char)] == (terms._LETTER if is_word else terms._SEPARATOR), char


@given(st.text(st.characters(max_codepoint=0x5FF) | st.sampled_from("’–…€"), max_size=12))
def test_the_short_way_for_simple_texts_gives_the_same_terms(text: str) -> None:
    assert fold_terms(text) == terms._terms_of_any_script(text)


def test_of_very_many_marks_thirty_are_kept() -> None:
    assert fold_terms("x" + "\u0301" * 31 + "y") == ["x" + "\u0301" * 30 + "y"]
    assert fold_terms("x" + "\u0301\u00ad" * 40) == ["x" + "\u0301" * 30]
    # Each decomposes into two marks.
    folded = fold_terms("x" + "\u0344" * 20)
    assert len(folded[0]) == 31
    assert fold_terms(folded[0]) == folded


def test_a_flood_of_unordered_marks_takes_no_quadratic_time() -> None:
    # Two million marks would take hours to sort; thirty take no time.
    (term,) = fold_terms("x" + "\u0301\u0323" * 1_000_000)
    assert len(term) <= 31
    groups = ("x" + "\u0301" * 31) * 30_000
    assert fold_terms(groups) == [("x" + "\u0301" * 30) * 30_000]


def test_the_table_of_kinds_does_not_grow_with_characters_that_mean_nothing() -> None:
    fold_terms("é\u0301")
    before = len(terms._KINDS)
    fold_terms("\u0301" + "".join(map(chr, range(0xE000, 0xF000))) + "\ud800\U000e0fff")
    assert len(terms._KINDS) <= before + 1


@given(st.lists(ascii_texts, max_size=6))
def test_the_ascii_kernel_gives_the_terms_of_the_definition(rows: list[str]) -> None:
    assert terms_by_row(terms_of_texts(rows, SEED)) == [fold_terms(text) for text in rows]


@given(st.lists(texts | ascii_texts, max_size=6))
def test_mixed_columns_give_each_row_its_own_terms(rows: list[str]) -> None:
    assert terms_by_row(terms_of_texts(rows, SEED)) == [fold_terms(text) for text in rows]


@given(st.lists(st.none() | ascii_texts | st.sampled_from(["é è", "東京都", "iPad é"]), max_size=8))
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_a_slice_of_an_arrow_column_gives_its_own_rows(
    kind: pa.DataType, rows: list[str | None]
) -> None:
    array = pa.array(["before", *rows, "after"], kind)
    _, offset_buffer, data_buffer = array.buffers()
    width = np.int64 if kind == pa.large_string() else np.int32
    offsets = np.frombuffer(offset_buffer, width)[1 : len(rows) + 2]
    data = np.frombuffer(data_buffer, np.uint8)
    expected = [fold_terms(text or "") for text in rows]
    assert terms_by_row(terms_of_column(data, offsets, SEED)) == expected


def test_no_row_and_empty_rows_have_no_terms() -> None:
    assert terms_by_row(terms_of_texts([], SEED)) == []
    assert terms_by_row(terms_of_texts(["", " ", ""], SEED)) == [[], [], []]


@pytest.mark.parametrize("letter", ["a", "é"])
def test_texts_of_ten_thousand_terms_keep_them_all(letter: str) -> None:
    # One-letter terms are the most that a text can hold: more than is set aside at first.
    text = " ".join([letter] * 10_000)
    rows = terms_by_row(terms_of_texts([text, "b", text], SEED))
    assert rows == [[letter] * 10_000, ["b"], [letter] * 10_000]


def test_a_row_that_turns_out_not_to_be_ascii_leaves_nothing_behind() -> None:
    columns = terms_of_texts(["one two", "three four fünf", "six"], SEED)
    assert terms_by_row(columns) == [["one", "two"], ["three", "four", "fünf"], ["six"]]
    assert len(columns.data) == len("onetwo" + "threefour") + len("fünf".encode()) + len("six")


def test_bytes_that_are_not_utf_8_separate() -> None:
    data = np.frombuffer(b"one\xfftwo\xed\xa0\x80three", np.uint8)
    columns = terms_of_column(data, np.array([0, len(data)]), SEED)
    assert terms_by_row(columns) == [["one", "two", "three"]]


def test_the_callers_arrays_stay_writable() -> None:
    data, offsets = np.full(4, ord("a"), np.uint8), np.array([0, 4])
    terms_of_column(data, offsets, SEED)
    assert data.flags.writeable
    assert offsets.flags.writeable


@pytest.mark.parametrize("offsets", [[], [-1, 2], [0, 5], [0, 3, 2, 4]])
def test_offsets_that_leave_the_buffer_are_refused(offsets: list[int]) -> None:
    with pytest.raises(RecordError, match="at most 4"):
        terms_of_column(np.zeros(4, np.uint8), np.array(offsets, np.int64), SEED)
