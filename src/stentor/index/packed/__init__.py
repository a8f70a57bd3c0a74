"""Packed: Stentor's own index. Three homes under one roof, each as dense as its work allows.

    alternative ─┬ has something rare (word, string, equal number) ─▶ lists   by the rarest key
                 ├ has an attribute that few have                  ─▶ nodes   by that, and weights
                 └ has neither (intervals, boxes, circles)         ─▶ blocks  ordered by location
    pending (some hundred) ──▶ segment (homes) ──▶ merged with others as they grow

    event ─▶ each segment's homes ─▶ covered: proved by what lies in the home itself
                                  └▶ candidates: verified on the exact columns
          ─▶ rows that hold at its seq and time, ascending

A record says which predicates its own compare decides; an alternative all of whose predicates are
decided is covered, and its exact columns are never touched.
"""

from stentor.index.packed.index import PackedIndex

__all__ = ["PackedIndex"]
