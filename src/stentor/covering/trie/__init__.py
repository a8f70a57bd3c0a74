"""Covering among subscriptions of the whole language: one scheme for all kinds.

    alternative ─tokens─▶ path in the trie ─▶ group: same attributes, words, strings
                                                 └▶ k-d tree over its intervals and boxes

What an alternative wants is a set of tokens: "has the attribute price as a number", "has the word
ipad", "brand is Huawei", "is at a location". It can cover only what offers all of them, so the
coverers of a subscription are at those nodes of the trie whose path is a subset of what it offers.
Inside a group points dominate (`kd_tree/`), and the candidates are compared exactly
(`implies/decode.py`), in rare cases by the definition itself (`covers.py`).
"""
