"""When one expression covers another: attribute by attribute, kind by kind.

    normal form ─asked─▶ per attribute: numbers, strings and words, places, presence
    covers(a, b): each alternative of b implies some alternative of a

`geometry.py` is written on plain floats: the same compiled functions serve columns.
"""
