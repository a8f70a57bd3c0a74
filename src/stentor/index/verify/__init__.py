"""The exact verifier: the last word on every pair that a structure cannot decide by itself.

    scratch       one event, spread out by attribute code and by term
    comparison, membership, pattern, keywords, box, circle, polygon, null_test
                  the test of each kind of predicate; `predicates` joins them
    predicates    whether a predicate, an alternative, a subscription holds; what it scores
    candidates    candidates of any structure → matches
    single        the same for one event, inside a structure's kernel
    scores        scores of matches, the k best
    reasons       why a pair does not match

Invariant: for each pair it says what `language/evaluate.py` says, to the last bit of the score.
"""

from stentor.index.verify.candidates import Candidates, best_of, scores_of, verify
from stentor.index.verify.reasons import Reasons, reasons_of

__all__ = ["Candidates", "Reasons", "best_of", "reasons_of", "scores_of", "verify"]
