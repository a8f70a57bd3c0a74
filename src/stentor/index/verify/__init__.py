"""The exact verifier: the last word on every pair that a structure cannot decide by itself.

    scratch       one event, spread out by attribute code and by term
    text, place   what predicates on strings and points ask, on bytes and coordinates
    alternatives  whether a predicate, an alternative, a subscription holds; what it scores
    candidates    candidates of any structure → matches
    scores        scores of matches, the k best
    explanations  why a pair does not match

Invariant: for each pair it says what `language/evaluate.py` says, to the last bit of the score.
"""

from stentor.index.verify.candidates import Candidates, settle
from stentor.index.verify.explanations import Reasons, reasons
from stentor.index.verify.scores import best_of, scores_of

__all__ = ["Candidates", "Reasons", "best_of", "reasons", "scores_of", "settle"]
