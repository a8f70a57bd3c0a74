"""Text to terms: the one definition of a word, for events and expressions alike.

1. Characters that are not seen are removed: format characters (soft hyphen, joiners, direction
   marks: category Cf), variation selectors, Unicode's other default ignorables. Not so the zero
   width space: it separates. So do ™ and ℠, like ®, which NFKC would turn into letters.
2. NFKC, `str.casefold`, NFKC again: full width, ligatures, upper case and the two ways to write é
   become one. Folding what is folded changes nothing.
3. A term is a letter or digit with all letters, digits and combining marks that follow it
   (categories L, N, M). Everything else separates: spaces, apostrophes, hyphens, `_`, symbols,
   emoji, lone surrogates. A mark that follows a separator goes with the separator.
4. Scripts written without spaces are cut into overlapping pairs of characters, each with its
   marks: Han, Hiragana and Katakana (one group); Thai, Lao, Khmer and Myanmar (another). A single
   character is a term by itself. A run ends where the group changes or other letters or decimal
   digits begin. Hangul is written with spaces: its words are terms like any others.

Of more than 30 marks in a row only the first 30 are kept, as many as Unicode's stream-safe text
has (UAX #15, section 13): no language needs more, and normalising them takes quadratic time.

Categories come from the running Python's `unicodedata`: processes that must agree on the newest
characters run the same version of Python.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# One letter for each kind of character: the kinds of a text are a string that patterns can search.
_LETTER, _MARK, _EAST, _SOUTH_EAST, _UNSEEN, _SEPARATOR = "lmesu "
_RUN: Final = re.compile("l[lm]*|e[em]*|s[sm]*")
_MOST_MARKS: Final = 30
_EXCESS: Final = re.compile(f"(?<={_MARK * _MOST_MARKS}){_MARK}+")

# Only letters of spaced scripts and separators: Latin, Greek, Cyrillic, Armenian, punctuation and
# currencies. Most texts need nothing else, and the `\w` of patterns is exact for them.
_SIMPLE: Final = re.compile(
    "[\0-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u0590\u2010-\u2027\u2030-\u205e\u20a0-\u20c0]*"
)
_WORD: Final = re.compile(r"[^\W_]+")
# Wildcards directly at a letter or digit, which mean any text or any character elsewhere.
_WILDCARD: Final = re.compile(
    r"(?<=[^\W_])[*?] | [*?%](?=[^\W_]) | (?<=[^\W\d_])% | \A_(?=[^\W_]) | (?<=[^\W_])_\Z",
    re.VERBOSE,
)

_ZERO_WIDTH_SPACE: Final = "\u200b"
# Default ignorables (Unicode's DerivedCoreProperties) of other categories than Cf: grapheme joiner,
# Hangul fillers, Khmer's inherent vowels, variation selectors.
_IGNORABLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_HAN_OR_KANA: Final = re.compile(
    "[\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\U0001aff0-\U0001b16f\U00020000-\U0003ffff]"
)
_THAI_LAO_KHMER_MYANMAR: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f\U000116d0-\U000116ff]"
)


def fold_terms(text: str) -> list[str]:
    """The terms of *text*, folded, in their order, repeated as they repeat.

    >>> fold_terms("Don't miss: iPhone15, e-reader; STRASSE = Straße")
    ['don', 't', 'miss', 'iphone15', 'e', 'reader', 'strasse', 'strasse']
    >>> fold_terms("iPad™ ﬁne CAFÉ 🎉")
    ['ipad', 'fine', 'café']
    >>> fold_terms("iPad東京都 水 ไทย3")
    ['ipad', '東京', '京都', '水', 'ไท', 'ทย', '3']

    Cost: linear; about 3 µs for nine words of Latin, Greek or Cyrillic letters, else about 15 µs.
    """
    if _SIMPLE.fullmatch(text):
        folded = _normalised(text)
        if _SIMPLE.fullmatch(folded):
            return _WORD.findall(folded)
    return _terms_of_any_script(text)


def has_term(word: str) -> bool:
    """Whether *word* has a term to search for.

    >>> has_term("iPad"), has_term("!?")
    (True, False)
    """
    return word.isalnum() or bool(fold_terms(word))


def has_wildcard(word: str) -> bool:
    """Whether *word* looks for part of a word, as `nurs*`, `n?rse`, `nurs%` and `nurs_` do.

    A percent sign after a digit is a percent sign, and `_` inside a word separates.

    >>> has_wildcard("nurs*"), has_wildcard("50% wi-fi snake_case")
    (True, False)
    """
    return not word.isalnum() and _WILDCARD.search(word) is not None


def _normalised(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _terms_of_any_script(text: str) -> list[str]:
    folded, kinds = _folded(text)
    terms = []
    for run in _RUN.finditer(kinds):
        start, stop = run.span()
        if kinds[start] == _LETTER:
            terms.append(folded[start:stop])
        else:
            terms += _pairs(folded, kinds, start, stop)
    return terms


def _folded(text: str) -> tuple[str, str]:
    """*text* after steps 1 and 2, and the kind of each of its characters."""
    text = text.replace("™", " ").replace("℠", " ")
    kinds = text.translate(_KINDS)
    if _UNSEEN in kinds:
        seen = (char for char, kind in zip(text, kinds, strict=True) if kind != _UNSEEN)
        text, kinds = "".join(seen), kinds.replace(_UNSEEN, "")
    text = _normalised(_without_excess_marks(text, kinds)[0])
    # Once more, because one mark can decompose into two.
    return _without_excess_marks(text, text.translate(_KINDS))


def _without_excess_marks(text: str, kinds: str) -> tuple[str, str]:
    if _MARK * (_MOST_MARKS + 1) not in kinds:
        return text, kinds
    bounds = [
        0,
        *(location for run in _EXCESS.finditer(kinds) for location in run.span()),
        len(text),
    ]
    kept = (text[start:stop] for start, stop in zip(bounds[::2], bounds[1::2], strict=True))
    return "".join(kept), _EXCESS.sub("", kinds)


def _pairs(folded: str, kinds: str, start: int, stop: int) -> list[str]:
    """The overlapping pairs of one run, marks going with their characters."""
    bounds = [position for position in range(start, stop) if kinds[position] != _MARK] + [stop]
    if len(bounds) == 2:
        return [folded[start:stop]]
    return [folded[first:second] for first, second in zip(bounds, bounds[2:], strict=False)]


class _KindTable(dict[int, str]):
    """The kind of each code point, found when it is first met: all at once would take 0.3 s."""

    def __missing__(self, point: int) -> str:
        char = chr(point)
        category = unicodedata.category(char)
        kind = _kind(char, category)
        if category not in {"Cn", "Co", "Cs"}:  # a million strangers must not fill the memory
            self[point] = kind
        return kind


def _kind(char: str, category: str) -> str:
    if category == "Cf" or _IGNORABLE.match(char):
        return _SEPARATOR if char == _ZERO_WIDTH_SPACE else _UNSEEN
    if category[0] == "M":
        return _MARK
    if category[0] not in "LN":
        return _SEPARATOR
    if category == "Nd":
        return _LETTER
    if _HAN_OR_KANA.match(char):
        return _EAST
    return _SOUTH_EAST if _THAI_LAO_KHMER_MYANMAR.match(char) else _LETTER


_KINDS: Final = _KindTable()
