"""Text → tokens: one regular expression, no positions.

`tokenize` gives the tokens' texts only, because that is one call into C. Only an error
message needs the position of a token, so `token_span` finds it by reading the text again.
"""

from __future__ import annotations

import re
from itertools import product

#: Ends every list of tokens.
END = ""

# Each branch also takes its own broken form whole (an unclosed string to the end of the text, 12ab
# as one number): one clear error instead of several odd ones. The commonest come first.
_TOKEN = re.compile(
    r"""
    [ \t\n\f\r\v\xa0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]*+    # what Spark takes as space
    (?:(
        [a-qs-zA-QS-Z_]\w*+ (?: \.[^\W\d]\w*+ )*+   # name, keyword or function, but see r below
      | [(),]
      | '[^'\\]*+'(?!')
      | [<>=](?![<>=])
      | (?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?(?![\w.])
      | \.?[0-9][\w.]*+                           # not a number, but meant as one
      | '(?: [^'\\]++ | \\.? | '' )*+'?
      | "(?: [^"\\]++ | \\.? | "" )*+"?
      | [rR](?: '[^']*+'? | "[^"]*+"? )           # raw string
      | [^\W\d]\w*+ (?: \.[^\W\d]\w*+ )*+         # name that begins with r, or beyond A to Z
      | `(?: [^`]++ | `` )*+`?                    # quoted name
      | <=> | [<>=!]= | <> | =[<>] | && | \|\| | :: | -- | /\*
      | :[A-Za-z_][A-Za-z0-9_]*+                  # parameter
      | .
    ) | \Z)
    """,
    re.VERBOSE | re.DOTALL,
)


def tokenize(text: str) -> list[str]:
    """The tokens of *text*, with `END` at least twice after the last.

    >>> tokenize("price <3.5")
    ['price', '<', '3.5', '', '']
    """
    tokens = _TOKEN.findall(text)
    tokens.append(END)  # a cursor at END may look one further
    return tokens


def token_span(text: str, index: int) -> tuple[int, int]:
    """Where the *index*-th token of *text* starts and stops; `END` is right after the last.

    >>> token_span("price <3.5", 2)
    (7, 10)
    """
    stop = 0
    for number, match in enumerate(_TOKEN.finditer(text)):
        if match[1] is None:
            break
        start, stop = match.span(1)
        if number == index:
            return start, stop
    return stop, stop + 1


def parameter_spans(text: str) -> list[tuple[int, int]]:
    """Where the `:name` markers of *text* start and stop.

    >>> parameter_spans("price < :most AND brand = ':brand'")
    [(8, 13)]
    """
    return [
        match.span(1)
        for match in _TOKEN.finditer(text)
        if match[1] and match[1][0] == ":" and match[1][1:].isidentifier()
    ]


def is_plain_name(token: str) -> bool:
    """Whether *token* can name an attribute without backquotes."""
    if token.isidentifier():
        return token.isascii() and token not in RESERVED
    return "." in token and all(map(is_plain_name, token.split(".")))


def is_word(token: str, word: str) -> bool:
    """Whether *token* is *word* in some spelling: one that is special only in some contexts."""
    return token.isascii() and token.upper() == word


def _spellings(*words: str) -> dict[str, str]:
    """Every mix of capitals of each word, to the word: one look-up finds a keyword."""
    return {
        "".join(letters): word
        for word in words
        for letters in product(*zip(word.lower(), word, strict=True))
    }


#: Words that name an attribute only in backquotes, in all their spellings.
RESERVED = _spellings(
    "AND", "BETWEEN", "FALSE", "ILIKE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "RLIKE", "TRUE"
)
