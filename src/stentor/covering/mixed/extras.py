"""Tokens that only the definition finds."""

from __future__ import annotations

import numpy as np

from stentor.covering.meaning.asked import Strings
from stentor.covering.meaning.covers import Alternative
from stentor.covering.mixed.tokens import equal_token, word_token
from stentor.encoding.hashing import attribute_seed, hash_bytes
from stentor.language.terms import fold_terms
from stentor.model import Schema


def extra_tokens(alternative: Alternative, schema: Schema) -> list[int]:
    """What an alternative offers where several tests, or a few strings, mean it together.

    Whoever covers it covers its first text, or the first case of its words, too.
    """
    found: list[int] = []
    for name, asked in alternative.items():
        if not isinstance(asked, Strings):
            continue
        groups = list(asked.words.cases)
        if asked.texts is not None:
            groups = [frozenset(fold_terms(text)) for text in asked.texts]
            hashed = np.uint64(hash_bytes(asked.texts[0].encode()))
            kinds = (True, False) if len(asked.texts) == 1 else (True,)
            found += [int(equal_token(schema.code(name), hashed, chosen)) for chosen in kinds]
        seed = attribute_seed(name)
        for chosen, words in ((True, groups[0]), (False, frozenset.intersection(*groups))):
            hashes = [np.uint64(hash_bytes(word.encode(), seed)) for word in words]
            found += [int(word_token(one, chosen)) for one in hashes]
    return found
